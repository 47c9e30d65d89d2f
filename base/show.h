/* Tensors as text, for messages to people: "[0 1 2...]", as TensorFlow's SummarizeValue writes them. */
#ifndef MR_BASE_SHOW_H
#define MR_BASE_SHOW_H

#include <millrace/tensor.h>
#include <stdio.h>

/* Writes at most `most` elements (negative: all), and "..." for the others. Dimensions after the first have brackets;
 * the first has none. Elements of types without a form are "?". */
void mr_tensor_show(const mr_tensor *tensor, int64_t most, FILE *file);

#endif
