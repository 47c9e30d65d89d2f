/* A network like the demo's at any size, for a session on any device: convolutions, batch normalization, pooling,
 * dropout, a dense layer, softmax cross entropy, weight decay, Adam. */
#ifndef MR_TESTS_CUDA_MODEL_H
#define MR_TESTS_CUDA_MODEL_H

#include <millrace/millrace.h>

typedef struct model_size {
    int32_t batch, side, filters, classes;
} model_size;

/* Trains a new network on random images for `steps` steps and returns the loss of each.
 * device   null: the CPU
 * seconds  duration of the steps after the first two; may be null
 * notes    the session's notes on placement, truncated to notes_size; may be null */
mr_status model_train(model_size size, const char *device, int32_t steps, float *losses, double *seconds, char *notes,
                      size_t notes_size, mr_error *error);

#endif
