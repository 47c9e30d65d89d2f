/* Values on the command line and in files: [[1, 2], [3, 4]], "text", and NumPy's .npy. */
#ifndef MR_TOOLS_GRAPH_RUN_VALUE_H
#define MR_TOOLS_GRAPH_RUN_VALUE_H

#include <millrace/formats.h>
#include <stdio.h>

/* A number, a "text" or nested lists of them, as a tensor of that dtype; "@file.npy" reads a file, which must have it. */
mr_status value_parse(const char *text, mr_dtype dtype, mr_tensor *value, mr_error *error);
/* Nested lists, lines broken between rows; of a long dimension the first and last elements. */
void value_print(FILE *file, const mr_tensor *value, int64_t elements_max);

#endif
