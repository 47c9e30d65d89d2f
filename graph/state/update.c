/* AssignAdd, AssignSub and the Scatter operators: in-place updates. The session passes the variable's elements, without
 * other references, as input 0 (see mr_kernel.updates). */
#include "graph/state/state.h"

#include "base/pool.h"
#include <inttypes.h>
#include <string.h>

constexpr int64_t GRAIN = 16384;

typedef enum change { CHANGE_SET, CHANGE_ADD, CHANGE_SUB } change;

/* target[i] = target[i] + source[i * step], or another operation, for count elements; step 0: one source for all. */
typedef void (*change_function)(change how, void *target, const void *source, int64_t count, int64_t step);

#define CHANGE(name, type, load, store)                                                                                \
    static void name(change how, void *target, const void *source, int64_t count, int64_t step)                        \
    {                                                                                                                  \
        type *t = target;                                                                                              \
        const type *s = source;                                                                                        \
        switch (how) {                                                                                                 \
        case CHANGE_SET:                                                                                               \
            for (int64_t i = 0; i < count; i++) t[i] = s[i * step];                                                    \
            break;                                                                                                     \
        case CHANGE_ADD:                                                                                               \
            for (int64_t i = 0; i < count; i++) t[i] = store(load(t[i]) + load(s[i * step]));                          \
            break;                                                                                                     \
        case CHANGE_SUB:                                                                                               \
            for (int64_t i = 0; i < count; i++) t[i] = store(load(t[i]) - load(s[i * step]));                          \
            break;                                                                                                     \
        }                                                                                                              \
    }
#define SAME(x) (x)
/* Signed integers wrap around, as in TensorFlow, so they are added as unsigned ones. */
CHANGE(change_float, float, SAME, SAME)
CHANGE(change_double, double, SAME, SAME)
CHANGE(change_int8, uint8_t, SAME, (uint8_t))
CHANGE(change_int16, uint16_t, SAME, (uint16_t))
CHANGE(change_int32, uint32_t, SAME, SAME)
CHANGE(change_int64, uint64_t, SAME, SAME)
CHANGE(change_half, uint16_t, mr_half_to_float, mr_float_to_half)
CHANGE(change_bfloat16, uint16_t, mr_bfloat16_to_float, mr_float_to_bfloat16)

static const change_function changes[MR_DTYPE_COUNT] = {
    [MR_FLOAT] = change_float, [MR_DOUBLE] = change_double, [MR_INT8] = change_int8,   [MR_UINT8] = change_int8,
    [MR_INT16] = change_int16, [MR_UINT16] = change_int16,  [MR_INT32] = change_int32, [MR_UINT32] = change_int32,
    [MR_INT64] = change_int64, [MR_UINT64] = change_int64,  [MR_HALF] = change_half,   [MR_BFLOAT16] = change_bfloat16,
    [MR_BOOL] = change_int8,
};

typedef struct change_loop {
    change_function function;
    change how;
    char *target;
    const char *source;
    size_t size;
} change_loop;

static void change_piece(void *context, int64_t begin, int64_t end)
{
    const change_loop *loop = context;
    loop->function(loop->how, loop->target + (size_t)begin * loop->size, loop->source + (size_t)begin * loop->size,
                   end - begin, 1);
}

static mr_status change_whole(mr_kernel_call *call, change how, mr_error *error)
{
    const mr_tensor *target = &call->inputs[0], *source = &call->inputs[1];
    char wanted[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    if (target->dtype != source->dtype || !changes[target->dtype])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but the value is a %s",
                              mr_dtype_name(target->dtype), mr_dtype_name(source->dtype));
    if (!mr_shape_equal(target->shape, source->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable has shape %s, but the value has %s",
                              mr_shape_text(target->shape, wanted, sizeof wanted),
                              mr_shape_text(source->shape, given, sizeof given));
    change_loop loop = {.function = changes[target->dtype],
                        .how = how,
                        .target = target->data,
                        .source = source->data,
                        .size = mr_dtype_size(target->dtype)};
    mr_pool_for(call->device->pool, mr_tensor_count(target), GRAIN, change_piece, &loop);
    return MR_OK;
}

static mr_status assign_add(mr_kernel_call *call, mr_error *error)
{
    return change_whole(call, CHANGE_ADD, error);
}

static mr_status assign_sub(mr_kernel_call *call, mr_error *error)
{
    return change_whole(call, CHANGE_SUB, error);
}

/* ---- Scatter: rows of the variable are updated one after the other, so that duplicate indices accumulate ---- */

static int64_t index_at(const mr_tensor *indices, int64_t at)
{
    return indices->dtype == MR_INT64 ? mr_tensor_int64s(indices)[at] : mr_tensor_int32s(indices)[at];
}

static mr_status check_scatter(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *target = &call->inputs[0], *indices = &call->inputs[1], *source = &call->inputs[2];
    if (target->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a scalar and has no rows");
    if (target->dtype != source->dtype || !changes[target->dtype])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but the updates are %s",
                              mr_dtype_name(target->dtype), mr_dtype_name(source->dtype));
    if (indices->shape.rank + target->shape.rank - 1 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the indices have too many dimensions");
    mr_shape wanted = indices->shape;
    for (int32_t i = 1; i < target->shape.rank; i++) wanted.dims[wanted.rank++] = target->shape.dims[i];
    char wanted_text[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    if (source->shape.rank != 0 && !mr_shape_equal(source->shape, wanted))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the updates have shape %s, not %s",
                              mr_shape_text(source->shape, given, sizeof given),
                              mr_shape_text(wanted, wanted_text, sizeof wanted_text));
    for (int64_t i = 0, count = mr_tensor_count(indices); i < count; i++) {
        int64_t row = index_at(indices, i);
        if (row < 0 || row >= target->shape.dims[0])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "indices[%" PRId64 "] = %" PRId64 " is not in [0, %" PRId64 ")", i, row,
                                  target->shape.dims[0]);
    }
    return MR_OK;
}

static mr_status scatter(mr_kernel_call *call, change how, mr_error *error)
{
    MR_TRY(check_scatter(call, error));
    const mr_tensor *target = &call->inputs[0], *indices = &call->inputs[1], *source = &call->inputs[2];
    int64_t rows = target->shape.dims[0];
    int64_t width = rows > 0 ? mr_tensor_count(target) / rows : 0;
    size_t row_bytes = (size_t)width * mr_dtype_size(target->dtype);
    int64_t step = source->shape.rank == 0 ? 0 : 1;
    for (int64_t i = 0, count = mr_tensor_count(indices); i < count; i++)
        changes[target->dtype](how, (char *)target->data + (size_t)index_at(indices, i) * row_bytes,
                               (const char *)source->data + (step ? (size_t)i * row_bytes : 0), width, step);
    return MR_OK;
}

static mr_status scatter_set(mr_kernel_call *call, mr_error *error)
{
    return scatter(call, CHANGE_SET, error);
}

static mr_status scatter_add(mr_kernel_call *call, mr_error *error)
{
    return scatter(call, CHANGE_ADD, error);
}

static mr_status scatter_sub(mr_kernel_call *call, mr_error *error)
{
    return scatter(call, CHANGE_SUB, error);
}

#define NUMBERS "float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, half, bfloat16"
static const mr_kernel kernels[] = {
    {.op = "AssignAdd", .types = "T: " NUMBERS, .run = assign_add, .updates = 1},
    {.op = "AssignSub", .types = "T: " NUMBERS, .run = assign_sub, .updates = 1},
    {.op = "AssignAddVariableOp", .types = "dtype: " NUMBERS, .run = assign_add, .updates = 1},
    {.op = "AssignSubVariableOp", .types = "dtype: " NUMBERS, .run = assign_sub, .updates = 1},
    {.op = "ScatterUpdate", .types = "T: bool, " NUMBERS, .run = scatter_set, .updates = 1},
    {.op = "ScatterAdd", .types = "T: " NUMBERS, .run = scatter_add, .updates = 1},
    {.op = "ScatterSub", .types = "T: " NUMBERS, .run = scatter_sub, .updates = 1},
    {.op = "ResourceScatterUpdate", .types = "dtype: bool, " NUMBERS, .run = scatter_set, .updates = 1},
    {.op = "ResourceScatterAdd", .types = "dtype: " NUMBERS, .run = scatter_add, .updates = 1},
    {.op = "ResourceScatterSub", .types = "dtype: " NUMBERS, .run = scatter_sub, .updates = 1},
};
const mr_kernel_table mr_state_kernels_update = {kernels, sizeof kernels / sizeof kernels[0]};
