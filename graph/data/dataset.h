/* Datasets as values of a graph: variants that refer to a dataset of <millrace/dataset.h>, and functions of the graph's
 * library as functions of a pipeline. */
#ifndef MR_GRAPH_DATA_DATASET_H
#define MR_GRAPH_DATA_DATASET_H

#include "graph/run/function.h"
#include "graph/state/state.h"

#include <millrace/dataset.h>

/* The dataset of an input. Borrowed from the input; builders of <millrace/dataset.h> that consume it need a
 * reference: mr_dataset_ref. */
mr_status mr_data_input(const mr_kernel_call *call, int32_t input, mr_dataset **dataset, mr_error *error);
/* Makes the dataset, which it consumes, output 0. A dataset that has failed is the call's error. */
mr_status mr_data_output(mr_kernel_call *call, mr_dataset *dataset, mr_error *error);
/* Makes a tensor of the dataset, which belongs to the tensor if this succeeds. */
mr_status mr_data_wrap(mr_dataset *dataset, mr_tensor *tensor, mr_error *error);
/* The structure that the attrs output_types and output_shapes state. A variant that is no scalar is a serialized sparse
 * tensor, which is strings in a pipeline (graph/state/serialized.h); other variants are datasets. */
mr_status mr_data_spec(const mr_kernel_call *call, mr_element_spec *spec, mr_error *error);
/* A scalar of int64, bool or string at an input. The string is borrowed from the input. */
mr_status mr_data_int(const mr_kernel_call *call, int32_t input, const char *name, int64_t *value, mr_error *error);
mr_status mr_data_bool(const mr_kernel_call *call, int32_t input, const char *name, bool *value, mr_error *error);
mr_status mr_data_string(const mr_kernel_call *call, int32_t input, const char *name, mr_string *value,
                         mr_error *error);

/* The next element of an iterator, until the run of the call is stopped. */
mr_status mr_data_next(const mr_kernel_call *call, mr_iterator *iterator, mr_element *element, mr_error *error);

/* A function with the tensors that it captured. Calls of it are runs of their own. */
typedef struct mr_data_function mr_data_function;
/* The function of an attr, with the inputs of the call from first_captured on, or captured_count of them, as its last
 * arguments. Owned by the caller.
 * errors  MR_INVALID_ARGUMENT if the attr is not a function; those of its definition */
mr_status mr_data_function_new(const mr_kernel_call *call, const char *attr, int32_t first_captured,
                               int32_t captured_count, mr_data_function **function, mr_error *error);
/* For the release options of pipelines; null is allowed. */
void mr_data_function_free(void *function);
int32_t mr_data_function_output_count(const mr_data_function *function);
/* Whether a call of it may have side effects or draw random numbers. */
bool mr_data_function_is_stateful(const mr_data_function *function);
/* Calls it with the components of an element, and then with those of a second one (null: none). Tensors without a
 * buffer are copied.
 * outputs  count of them; empty on entry, owned by the caller
 * threads  any */
mr_status mr_data_function_call(const mr_data_function *function, const mr_element *first, const mr_element *second,
                                mr_tensor *outputs, int32_t count, mr_error *error);
/* mr_data_function_call as an mr_map_function: the context is the function. */
mr_status mr_data_function_map(void *function, const mr_element *input, mr_random *random, mr_element *output,
                               mr_error *error);
/* As an mr_predicate, and as an mr_dataset_function. */
mr_status mr_data_function_test(void *function, const mr_element *input, bool *keep, mr_error *error);
mr_status mr_data_function_dataset(void *function, const mr_element *input, mr_dataset **output, mr_error *error);

/* The seeds of a generator for shuffling, input `input`; *found is false for that of DummySeedGenerator, which has
 * none. */
typedef struct mr_data_seeds {
    int64_t seed, seed2;
    bool reshuffles;
} mr_data_seeds;
mr_status mr_data_seed_generator(const mr_kernel_call *call, int32_t input, mr_data_seeds *seeds, bool *found,
                                 mr_error *error);

/* The dataset of batches of an input, which it consumes. The size may be larger than any batch can be. */
mr_dataset *mr_data_batch(mr_dataset *input, int64_t size, bool drop_remainder);

/* What the windows of a dataset are made of. */
typedef struct mr_data_windows {
    mr_dataset *input; /* borrowed from the tensor */
    int64_t size, shift, stride;
    bool drops_remainder;
} mr_data_windows;
/* As mr_data_output for a dataset of windows, whose elements are variants of datasets. */
mr_status mr_data_output_windows(mr_kernel_call *call, mr_dataset *dataset, const mr_data_windows *windows,
                                 mr_error *error);
/* Of an input that is a dataset of windows; otherwise null. Borrowed from the input. */
const mr_data_windows *mr_data_input_windows(const mr_kernel_call *call, int32_t input);
/* The dataset of what the function, which it consumes, makes of each window of input 0.
 * flat  the function returns datasets, which are joined; otherwise an element */
mr_status mr_data_windows_map(const mr_kernel_call *call, mr_data_function *function, const mr_element_spec *spec,
                              bool flat, mr_dataset **mapped, mr_error *error);

#endif
