/* The list of the built-in parts, and the public functions that register them. */
#include "builtin/builtin.h"

#include "base/kernel.h"
#include "graph/abi/runner.h"
#include "graph/ir/graph.h"
#include "graph/state/state.h"
#include "graph/train/model.h"
#include "pipeline/to_device.h"
#include <pthread.h>

/* graph/ops/FAMILY_gradient.c: mr_gradients_FAMILY */
/* clang-format off */
#define GRADIENTS(X) \
    X(constant) X(identity) X(reshape) X(concat) X(slice) X(gather) \
    X(transpose) X(pad) X(binary) X(select) X(unary) X(reduce) \
    X(matmul) X(conv) X(bias) X(activation) X(pool) X(batch_norm) \
    X(softmax) X(control) X(image) X(sparse) X(scan) X(segment) X(special) X(complex) X(space) \
    X(diagonal) X(partition) X(rearrange) X(tensor_array) X(tensor_scatter) X(quantize) X(debug) \
    X(linalg) X(fft) X(image_sample) X(variable) X(ctc)
/* clang-format on */
/* kernels/FAMILY.c: mr_kernels_FAMILY */
/* clang-format off */
#define CPU_KERNELS(X) \
    X(array_view) X(array_join) X(array_slice) X(array_index) X(array_fill) X(math_unary) \
    X(math_binary) X(math_select) X(cast) X(reduce) X(activation) X(softmax) \
    X(matmul) X(conv) X(pool) X(batch_norm) X(random) X(image_ops) \
    X(sparse_move) X(sparse_math) X(sparse_matmul) X(sparse_sets) X(ragged) X(ragged_dense) X(math_pair) \
    X(special_gamma) X(special_bessel) X(special_integral) X(bitwise) X(complex) X(scan) X(counting) \
    X(segment) X(segment_grad) X(reduce_arg) X(reduce_norm) X(array_space) X(array_diagonal) \
    X(array_partition) X(array_set) X(array_rearrange) X(array_order) X(array_scatter) X(array_edit) \
    X(quantize) X(fake_quantize) X(debug) X(debug_summary) X(random_stateless) X(random_each) X(random_bounded) \
    X(image_resize) X(image_crop) X(image_color) X(image_box) X(image_suppress) X(image_codec) \
    X(audio) X(spectrogram) X(depthwise) X(pool_index) X(pool_positions) X(lrn) X(volume) X(morphology) \
    X(fractional_pool) X(ctc_loss) X(ctc_decoder) X(rnn) X(global_norm) X(linalg) X(decompose) X(least_squares) \
    X(einsum) X(fft) \
    X(string_format) X(string_join) X(string_split) X(string_bytes) X(string_hash) \
    X(string_regex) X(unicode) X(decode_csv) X(decode_raw) X(decode_json) \
    X(sparse_cross) X(image_glimpse) X(image_transform) X(image_filter) X(resampler) \
    X(matrix_function) X(tridiagonal) X(cholesky_grad) X(quantized) X(quantized_math) X(conv_fused) X(clustering) \
    X(elementwise_chain)
/* clang-format on */
/* cuda/FAMILY.c: mr_cuda_kernels_FAMILY */
/* clang-format off */
#define GPU_KERNELS(X) \
    X(elementwise) X(reduce) X(batch_norm) X(pool) X(softmax) X(conv) \
    X(matmul) X(array) X(random) X(training)
/* clang-format on */
/* graph/state/FAMILY.c: mr_state_kernels_FAMILY, and for operators that name a resource mr_state_FAMILY */
/* clang-format off */
#define STATE_KERNELS(X) \
    X(calls) X(script) X(basic) X(control) X(variable) X(update) X(optimizer) X(iterator) \
    X(checkpoint) X(summary) X(queue) X(file_reader) X(stack) X(tensor_array) X(tensor_list) \
    X(tensor_list_join) X(optional) X(variant) X(scatter) X(scatter_nd) X(gather) X(serialize_sparse) \
    X(candidate) X(table_ops) X(file) X(serialize) X(parse_example) \
    X(barrier) X(accumulator) X(accumulator_sparse) X(stage) X(map_stage) X(temporary) X(remap) \
    X(sparse_adam) X(sparse_map) X(critical) X(session_tensor) X(record_input) X(handles) X(summary_writer)
/* clang-format on */
/* graph/data/FILE.c: mr_data_kernels_FILE */
#define DATA_KERNELS(X)                                                                                                \
    X(iterator)                                                                                                        \
    X(sources)                                                                                                         \
    X(stages) X(functions) X(shuffle) X(window) X(reduce) X(generator) X(write) X(sparse) X(resources) X(reducer)
#define STATES(X)                                                                                                      \
    X(one_shot)                                                                                                        \
    X(variable)                                                                                                        \
    X(iterator)                                                                                                        \
    X(queue) X(file_reader) X(table_ops) X(barrier) X(accumulator) X(critical) X(thread_pool) X(summary_writer)

#define DECLARE_GRADIENTS(family) extern const mr_gradient_table mr_gradients_##family;
#define DECLARE_CPU(family) extern const mr_kernel_table mr_kernels_##family;
#define DECLARE_GPU(family) extern const mr_kernel_table mr_cuda_kernels_##family;
#define DECLARE_STATE_KERNELS(family) extern const mr_kernel_table mr_state_kernels_##family;
#define DECLARE_DATA_KERNELS(file) extern const mr_kernel_table mr_data_kernels_##file;
#define DECLARE_STATE(family) extern const mr_state_table mr_state_##family;
GRADIENTS(DECLARE_GRADIENTS)
CPU_KERNELS(DECLARE_CPU)
GPU_KERNELS(DECLARE_GPU)
STATE_KERNELS(DECLARE_STATE_KERNELS)
DATA_KERNELS(DECLARE_DATA_KERNELS)
STATES(DECLARE_STATE)
extern const mr_device_entry mr_cuda_device_entry;

static void register_devices(void)
{
    mr_device_register(&mr_cuda_device_entry);
}

static void register_kernels(void)
{
#define REGISTER_CPU(family) mr_kernel_table_register(&mr_kernels_##family);
#define REGISTER_GPU(family) mr_kernel_table_register(&mr_cuda_kernels_##family);
#define REGISTER_DATA(file) mr_kernel_table_register(&mr_data_kernels_##file);
#define REGISTER_STATE(family) mr_kernel_table_register(&mr_state_kernels_##family);
    STATE_KERNELS(REGISTER_STATE)
    DATA_KERNELS(REGISTER_DATA)
    CPU_KERNELS(REGISTER_CPU)
    GPU_KERNELS(REGISTER_GPU)
}

static void register_gradients_and_states(void)
{
#define GRADIENTS_ADDRESS(family) &mr_gradients_##family,
#define STATE_ADDRESS(family) &mr_state_##family,
    static const mr_gradient_table *const gradients[] = {GRADIENTS(GRADIENTS_ADDRESS)};
    static const mr_state_table *const states[] = {STATES(STATE_ADDRESS)};
    mr_gradient_tables_register(gradients, sizeof gradients / sizeof gradients[0]);
    mr_state_tables_register(states, sizeof states / sizeof states[0]);
}

static void register_all(void)
{
    register_devices();
    register_kernels();
    mr_builtin_register_operators();
    register_gradients_and_states();
}

void mr_builtin_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_all);
}

/* ---- Public functions ---- */

mr_graph *mr_graph_new(void)
{
    mr_builtin_register();
    return mr_graph_create();
}

mr_graph *mr_graph_default(void)
{
    mr_builtin_register();
    return mr_graph_default_or_create(mr_graph_create, mr_graph_free);
}

mr_status mr_runner_new(const void *graph_def, size_t size_bytes, const mr_session_options *options, mr_runner **runner,
                        mr_error *error)
{
    mr_builtin_register();
    return mr_runner_create(graph_def, size_bytes, options, runner, error);
}

mr_status mr_model_open(const char *path, const char *tags, mr_model **model, mr_error *error)
{
    mr_builtin_register();
    if (path == nullptr || model == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_model_open: %s is null", path == nullptr ? "path" : "model");
    return mr_model_read(path, tags, model, error);
}

mr_status mr_device_open(const char *name, mr_device **device, mr_error *error)
{
    mr_builtin_register();
    return mr_device_retain_named(name, device, error);
}

mr_dataset *mr_dataset_prefetch_to_device(mr_dataset *input, const char *device, int32_t depth)
{
    mr_builtin_register();
    return mr_dataset_to_device(input, device, true, depth);
}

mr_dataset *mr_dataset_copy_to_device(mr_dataset *input, const char *device)
{
    mr_builtin_register();
    return mr_dataset_to_device(input, device, false, 0);
}
