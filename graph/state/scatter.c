/* The Scatter operators, by reference and by handle: rows of the variable are updated one after the other, so that
 * duplicate indices accumulate. The session passes the variable's elements, without other references, as input 0 (see
 * mr_kernel.updates); a variable of strings is passed as a handle and gets a new value. */
#include "graph/state/change.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mr_status bad_shapes(const mr_kernel_node *node, const mr_tensor *target, const mr_tensor *indices,
                            const mr_tensor *updates, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE], c[MR_SHAPE_TEXT_SIZE];
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                          "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
                          "updates.shape %s, indices.shape %s, params.shape %s",
                          mr_shape_text(updates->shape, a, sizeof a), mr_shape_text(indices->shape, b, sizeof b),
                          mr_shape_text(target->shape, c, sizeof c));
}

static bool is_prefix(mr_shape prefix, mr_shape shape)
{
    if (prefix.rank > shape.rank) return false;
    for (int32_t i = 0; i < prefix.rank; i++)
        if (prefix.dims[i] != shape.dims[i]) return false;
    return true;
}

mr_status mr_scatter_check(const mr_kernel_node *node, const mr_tensor *target, const mr_tensor *indices,
                           const mr_tensor *updates, mr_error *error)
{
    bool by_handle = strncmp(node->op, "Resource", 8) == 0;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE], position[MR_POSITION_TEXT_SIZE];
    if (target->dtype != updates->dtype)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but the updates are %s",
                              mr_dtype_name(target->dtype), mr_dtype_name(updates->dtype));
    if (target->shape.rank < 1 && !by_handle)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "params must be at least 1-D, got shape []");
    if (target->shape.rank < 1) return bad_shapes(node, target, indices, updates, error);
    if (by_handle && updates->shape.rank > 0 && !is_prefix(indices->shape, updates->shape))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "The shape of indices (%s) must be a prefix of the shape of updates (%s)",
                              mr_shape_text(indices->shape, a, sizeof a), mr_shape_text(updates->shape, b, sizeof b));
    mr_shape wanted = indices->shape;
    bool fits = wanted.rank + target->shape.rank - 1 <= MR_RANK_MAX;
    for (int32_t i = 1; fits && i < target->shape.rank; i++) wanted.dims[wanted.rank++] = target->shape.dims[i];
    if (updates->shape.rank != 0 && (!fits || !mr_shape_equal(updates->shape, wanted)))
        return bad_shapes(node, target, indices, updates, error);
    for (int64_t i = 0, count = mr_tensor_count(indices); i < count; i++) {
        int64_t row = mr_change_index(indices, i);
        if (row < 0 || row >= target->shape.dims[0])
            return mr_kernel_fail(
                node, error, MR_INVALID_ARGUMENT, "indices%s = %" PRId64 " is not in [0, %" PRId64 ")",
                mr_position_text(indices->shape, i, position, sizeof position), row, target->shape.dims[0]);
    }
    return MR_OK;
}

static mr_status check(const mr_kernel_call *call, const mr_tensor *target, mr_error *error)
{
    return mr_scatter_check(call->node, target, &call->inputs[1], &call->inputs[2], error);
}

static int64_t width_of(const mr_tensor *target)
{
    return mr_dims_product(&target->shape, 1, target->shape.rank);
}

static mr_status scatter(mr_kernel_call *call, mr_change change, mr_error *error)
{
    const mr_tensor *target = &call->inputs[0], *indices = &call->inputs[1], *updates = &call->inputs[2];
    MR_TRY(check(call, target, error));
    mr_change_function function = mr_change_find(change, target->dtype);
    if (!function)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s has no such operation",
                              mr_dtype_name(target->dtype));
    const int64_t width = width_of(target);
    if (change == MR_CHANGE_DIV && width > 0 && mr_tensor_count(indices) > 0 && !mr_change_divides(updates))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Integer division by zero");
    int64_t step = updates->shape.rank == 0 ? 0 : 1;
    size_t row_bytes = (size_t)width * mr_dtype_size(target->dtype);
    for (int64_t i = 0, count = mr_tensor_count(indices); width > 0 && i < count; i++)
        function((char *)target->data + (size_t)mr_change_index(indices, i) * row_bytes,
                 (const char *)updates->data + (step ? (size_t)i * row_bytes : 0), width, step);
    return MR_OK;
}

#define SCATTER(name, change)                                                                                          \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return scatter(call, change, error);                                                                           \
    }
SCATTER(scatter_set, MR_CHANGE_SET)
SCATTER(scatter_add, MR_CHANGE_ADD)
SCATTER(scatter_sub, MR_CHANGE_SUB)
SCATTER(scatter_mul, MR_CHANGE_MUL)
SCATTER(scatter_div, MR_CHANGE_DIV)
SCATTER(scatter_min, MR_CHANGE_MIN)
SCATTER(scatter_max, MR_CHANGE_MAX)

static mr_status scatter_strings(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    mr_tensor value = {0};
    const mr_tensor *indices = &call->inputs[1], *updates = &call->inputs[2];
    MR_TRY(mr_handle_get(call, 0, &mr_variable_class, &resource, error));
    mr_variable_state *variable = (mr_variable_state *)resource;
    MR_TRY(mr_variable_read(variable, MR_VARIABLE_CHANGE, &value, error));
    mr_status status = check(call, &value, error);
    int64_t count = mr_tensor_count(indices);
    int64_t *rows = nullptr;
    if (status == MR_OK && !(rows = malloc((size_t)MR_MAX(count, 1) * sizeof *rows)))
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; status == MR_OK && i < count; i++) rows[i] = mr_change_index(indices, i);
    if (status == MR_OK)
        status = mr_change_strings(call, variable, updates, rows, count, width_of(&value),
                                   updates->shape.rank == 0 ? 0 : 1, error);
    if (status == MR_OK && call->node->output_count > 0) call->outputs[0] = call->inputs[0];
    free(rows);
    mr_tensor_deinit(&value);
    return status;
}

#define REALS "half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64"
#define NUMBERS REALS ", complex64, complex128"
#define BOTH(name, run_function, allowed)                                                                              \
    {.op = "Scatter" name, .types = "T: " allowed, .run = run_function, .updates = 1},                                 \
        {.op = "ResourceScatter" name, .types = "dtype: " allowed, .run = run_function, .updates = 1}
static const mr_kernel kernels[] = {
    BOTH("Update", scatter_set, "bool, " NUMBERS),
    BOTH("Add", scatter_add, NUMBERS),
    BOTH("Sub", scatter_sub, NUMBERS),
    BOTH("Mul", scatter_mul, NUMBERS),
    BOTH("Div", scatter_div, NUMBERS),
    BOTH("Min", scatter_min, REALS),
    BOTH("Max", scatter_max, REALS),
    {.op = "ScatterUpdate", .types = "T: string", .run = scatter_strings},
    {.op = "ResourceScatterUpdate", .types = "dtype: string", .run = scatter_strings},
};
const mr_kernel_table mr_state_kernels_scatter = {kernels, sizeof kernels / sizeof kernels[0]};
