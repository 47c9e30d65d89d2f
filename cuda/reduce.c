/* Reductions on the GPU. Adjacent dimensions are merged into runs that are kept or reduced. If there are few outputs
 * with many elements each, the elements are divided into chunks, whose results a second launch combines in order. */
#include "cuda/reduce.h"

#include "cuda/arguments.h"
#include "cuda/kernels.h"
#include "kernels/common.h"

#include <stdio.h>
#include <string.h>

/* Both kernels of a reduction, and those that combine chunks. */
typedef struct prepared {
    mr_cu_function row, column, row_join, column_join;
} prepared;

static mr_status find_all(const mr_kernel_node *node, const char *name, const char *join, prepared *p, mr_error *error)
{
    struct {
        const char *kind, *name;
        mr_cu_function *function;
    } wanted[] = {
        {"row", name, &p->row},
        {"column", name, &p->column},
        {"row", join, &p->row_join},
        {"column", join, &p->column_join},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s_%s", wanted[i].kind, wanted[i].name);
        MR_TRY(mr_cuda_find(node->device, MR_CUDA_reduce, text, wanted[i].function, error));
    }
    return MR_OK;
}

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    const char *name = "sum";
    if (strcmp(node->op, "Max") == 0) name = "largest";
    if (strcmp(node->op, "Min") == 0) name = "smallest";
    bool squares = strcmp(node->op, "L2Loss") == 0;
    return find_all(node, squares ? "squares" : name, name, memory, error);
}

/* One launch: reduces chunks, each to its own row of out. */
static mr_status launch(mr_kernel_call *call, mr_gpu_reduce *a, mr_cu_function row, mr_cu_function column, bool by_row,
                        int64_t chunks, mr_error *error)
{
    mr_cuda_grid grid = by_row ? (mr_cuda_grid){.x = a->outputs, .y = chunks, .width = MR_GPU_BLOCK}
                               : (mr_cuda_grid){.x = (a->outputs + 31) / 32, .y = chunks, .width = 32, .height = 8};
    return mr_cuda_launch(call, by_row ? row : column, grid, a, error);
}

static int64_t chunk_count(const mr_cuda_device *device, int64_t blocks, int64_t reduced, int64_t least)
{
    int64_t wanted = (int64_t)device->processors * 8 / MR_MAX(1, blocks), most = reduced / least;
    return MR_MAX(1, MR_MIN(MR_MIN(wanted, most), 1024));
}

/* The reduction described by `a`, except for chunk; the final result is stored in a.out. */
static mr_status reduce(mr_kernel_call *call, const prepared *p, mr_gpu_reduce a, mr_error *error)
{
    if (a.outputs == 0) return MR_OK;
    bool by_row = a.reduced_rank > 0 && a.reduced_strides[a.reduced_rank - 1] == 1;
    int64_t blocks = by_row ? a.outputs : (a.outputs + 31) / 32;
    int64_t chunks = chunk_count(mr_cuda_of(call), blocks, a.reduced, by_row ? 2048 : 128);
    a.chunk = (a.reduced + chunks - 1) / MR_MAX(1, chunks);
    if (chunks == 1) return launch(call, &a, p->row, p->column, by_row, 1, error);
    mr_buffer *partial;
    MR_TRY(mr_cuda_scratch(call, (size_t)(chunks * a.outputs) * sizeof(float), &partial, error));
    mr_gpu_reduce join = {.in = mr_buffer_data(partial),
                          .out = a.out,
                          .outputs = a.outputs,
                          .reduced = chunks,
                          .chunk = chunks,
                          .kept_rank = 1,
                          .reduced_rank = 1,
                          .kept_dims = {a.outputs},
                          .kept_strides = {1},
                          .reduced_dims = {chunks},
                          .reduced_strides = {a.outputs},
                          .scale = a.scale};
    a.out = mr_buffer_data(partial);
    a.scale = 1;
    mr_status status = launch(call, &a, p->row, p->column, by_row, chunks, error);
    if (status == MR_OK) status = launch(call, &join, p->row_join, p->column_join, false, 1, error);
    mr_buffer_unref(partial);
    return status;
}

void mr_cuda_chunks(const mr_cuda_device *device, int64_t rows, int64_t columns, int64_t *chunks, int64_t *chunk)
{
    *chunks = chunk_count(device, (columns + 31) / 32, rows, 128);
    *chunk = (rows + *chunks - 1) / *chunks;
}

mr_status mr_cuda_column_sums(mr_kernel_call *call, mr_cu_function function, const float *in, int64_t rows,
                              int64_t columns, float scale, float *out, mr_error *error)
{
    prepared p = {.column = function, .column_join = function};
    mr_gpu_reduce a = {.in = in,
                       .out = out,
                       .outputs = columns,
                       .reduced = rows,
                       .kept_rank = 1,
                       .reduced_rank = 1,
                       .kept_dims = {columns},
                       .kept_strides = {1},
                       .reduced_dims = {rows},
                       .reduced_strides = {columns},
                       .scale = scale};
    /* One column: a stride of 1 would make it a row. */
    if (columns == 1) a.reduced_rank = 2, a.reduced_dims[1] = 1, a.reduced_strides[1] = 0;
    return reduce(call, &p, a, error);
}

/* ---- The operators ---- */

static mr_status reduced_axes(mr_kernel_call *call, bool is_reduced[MR_RANK_MAX], mr_error *error)
{
    int64_t axes[MR_RANK_MAX];
    int count, axis;
    MR_TRY(mr_kernel_ints(call, 1, "reduction_indices", axes, MR_RANK_MAX, &count, error));
    for (int i = 0; i < count; i++) {
        MR_TRY(mr_kernel_axis(call, axes[i], call->inputs[0].shape.rank, &axis, error));
        is_reduced[axis] = true;
    }
    return MR_OK;
}

/* Merges adjacent dimensions of the same kind into runs. */
static void join_dimensions(mr_shape shape, const bool *is_reduced, mr_gpu_reduce *a)
{
    int64_t strides[MR_RANK_MAX];
    int last = -1; /* kind of the previous run */
    mr_shape_strides(shape, strides);
    a->outputs = a->reduced = 1;
    for (int32_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] == 1) continue;
        int32_t *rank = is_reduced[i] ? &a->reduced_rank : &a->kept_rank;
        int64_t *dims = is_reduced[i] ? a->reduced_dims : a->kept_dims;
        int64_t *own = is_reduced[i] ? a->reduced_strides : a->kept_strides;
        if (last == (int)is_reduced[i]) {
            dims[*rank - 1] *= shape.dims[i];
            own[*rank - 1] = strides[i];
        } else {
            dims[*rank] = shape.dims[i];
            own[(*rank)++] = strides[i];
        }
        last = is_reduced[i];
        *(is_reduced[i] ? &a->reduced : &a->outputs) *= shape.dims[i];
    }
}

static mr_status reduce_axes(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape, result = MR_SCALAR;
    bool is_reduced[MR_RANK_MAX] = {false}, keep = mr_attr_bool_or(call->node->attrs, "keep_dims", false);
    MR_TRY(reduced_axes(call, is_reduced, error));
    for (int32_t i = 0; i < shape.rank; i++) {
        if (!is_reduced[i])
            result.dims[result.rank++] = shape.dims[i];
        else if (keep)
            result.dims[result.rank++] = 1;
    }
    MR_TRY(mr_kernel_output(call, 0, result, error));
    mr_gpu_reduce a = {.in = call->inputs[0].data, .out = call->outputs[0].data, .scale = 1};
    join_dimensions(shape, is_reduced, &a);
    /* The mean of no elements is NaN: 0 * (1 / 0). */
    if (strcmp(call->node->op, "Mean") == 0) a.scale = 1.0f / (float)a.reduced;
    return reduce(call, call->prepared, a, error);
}

static mr_status l2_loss(mr_kernel_call *call, mr_error *error)
{
    int64_t count = mr_tensor_count(&call->inputs[0]);
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    mr_gpu_reduce a = {.in = call->inputs[0].data,
                       .out = call->outputs[0].data,
                       .outputs = 1,
                       .reduced = count,
                       .reduced_rank = 1,
                       .reduced_dims = {count},
                       .reduced_strides = {1},
                       .scale = 0.5f};
    return reduce(call, call->prepared, a, error);
}

static mr_status bias_add_grad(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    bool nchw = mr_string_equal(mr_attr_string_or(call->node->attrs, "data_format", "NHWC"), MR_STR("NCHW"));
    int32_t channels = nchw ? 1 : shape.rank - 1;
    if (shape.rank < 2) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "out_backprop has no channels");
    bool is_reduced[MR_RANK_MAX];
    for (int32_t i = 0; i < MR_RANK_MAX; i++) is_reduced[i] = i != channels;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(shape.dims[channels]), error));
    mr_gpu_reduce a = {.in = call->inputs[0].data, .out = call->outputs[0].data, .scale = 1};
    join_dimensions(shape, is_reduced, &a);
    return reduce(call, call->prepared, a, error);
}

#define ROW(name, function, hosts)                                                                                     \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = "T: float",                                                                                              \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare,                                                                                               \
     .host_inputs = hosts}

static const mr_kernel kernels[] = {
    ROW("Sum", reduce_axes, 1 << 1), ROW("Mean", reduce_axes, 1 << 1), ROW("Max", reduce_axes, 1 << 1),
    ROW("Min", reduce_axes, 1 << 1), ROW("L2Loss", l2_loss, 0),        ROW("BiasAddGrad", bias_add_grad, 0),
};

MR_CUDA_FAMILY(reduce);
