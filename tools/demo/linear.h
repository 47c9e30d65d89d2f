/* The baseline of the demo: the accuracy of a linear model on the same images. */
#ifndef MR_TOOLS_DEMO_LINEAR_H
#define MR_TOOLS_DEMO_LINEAR_H

#include <millrace/status.h>

/* Trains softmax regression on 32 x 32 color pixels and returns its accuracy on the validation records, 0 … 1.
 * train, validation  patterns of record files */
mr_status linear_accuracy(const char *train, const char *validation, int class_count, double *accuracy,
                          mr_error *error);

#endif
