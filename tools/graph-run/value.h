/* Tensor values on the command line and in files: [[1, 2], [3, 4]], "text", and NumPy's .npy. */
#ifndef MR_TOOLS_GRAPH_RUN_VALUE_H
#define MR_TOOLS_GRAPH_RUN_VALUE_H

#include <millrace/formats.h>
#include <stdio.h>

/* Parses a number, a "text" or nested lists of them as a tensor of dtype; "@file.npy" reads a file, whose dtype must
 * match. */
mr_status value_parse(const char *text, mr_dtype dtype, mr_tensor *value, mr_error *error);
/* Prints nested lists, one row per line; of a long dimension only the first and last elements. */
void value_print(FILE *file, const mr_tensor *value, int64_t elements_max);

#endif
