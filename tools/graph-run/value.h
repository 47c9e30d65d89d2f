/* Tensor values on the command line and in files: [[1, 2], [3, 4]], "text", and NumPy's .npy. */
#ifndef MR_TOOLS_GRAPH_RUN_VALUE_H
#define MR_TOOLS_GRAPH_RUN_VALUE_H

#include <millrace/formats.h>
#include <stdio.h>

/* Parses a number, a "text" or nested lists of them as a tensor of dtype; "@file.npy" reads a file, whose elements are
 * converted. */
mr_status value_parse(const char *text, mr_dtype dtype, mr_tensor *value, mr_error *error);
/* Converts an array to a dtype in which each of its elements could be written as text: integers to integers and floats,
 * floats to floats, complex numbers to complex numbers, and 0 and 1 to booleans. Floats are rounded.
 * value   replaced; unchanged after an error
 * errors  MR_INVALID_ARGUMENT: another pair of dtypes, or an element that is out of range */
mr_status value_convert(mr_tensor *value, mr_dtype dtype, mr_error *error);
/* Prints nested lists, one row per line; of a long dimension only the first and last elements. */
void value_print(FILE *file, const mr_tensor *value, int64_t elements_max);

#endif
