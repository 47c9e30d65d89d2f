/* The ScatterNd operators that update a variable, by reference and by handle: slices at index vectors are updated one
 * after the other, so that duplicates accumulate. See graph/state/scatter.c for variables of strings. */
#include "graph/state/change.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct slices {
    int64_t depth; /* of an index vector */
    int64_t count;
    int64_t width; /* elements of a slice */
} slices;

/* Checks the shapes. */
static mr_status measure(const mr_kernel_call *call, const mr_tensor *target, slices *s, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    mr_shape indices = call->inputs[1].shape, updates = call->inputs[2].shape;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (target->dtype != call->inputs[2].dtype)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but the updates are %s",
                              mr_dtype_name(target->dtype), mr_dtype_name(call->inputs[2].dtype));
    (void)mr_shape_text(indices, a, sizeof a);
    if (target->shape.rank < 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Output must be at least 1-D, got shape: []");
    int64_t elements = mr_tensor_count(target), vectors = mr_shape_count(indices), values = mr_shape_count(updates);
    bool is_idle = vectors == 0 && values == 0;
    if (!is_idle && (elements == 0 || vectors == 0 || values == 0))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Indices and updates specified for empty output.  indices shape: %s", a);
    if (indices.rank < 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Indices must be at least 1-D, got shape: %s", a);
    int lead = indices.rank - 1;
    for (int i = 0; i < lead; i++)
        if (i >= updates.rank || updates.dims[i] != indices.dims[i])
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                  "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of "
                                  "updates[shape=%s]",
                                  lead, a, lead, mr_shape_text(updates, b, sizeof b));
    s->depth = indices.dims[lead];
    bool fits = s->depth <= target->shape.rank && updates.rank - lead == target->shape.rank - s->depth;
    for (int i = lead; fits && i < updates.rank; i++) fits = updates.dims[i] == target->shape.dims[s->depth + i - lead];
    if (!fits)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Dimensions [%" PRId64 ",%d) of input[shape=%s] must match dimensions [%" PRId64
                              ",%d) of updates[shape=%s]",
                              s->depth, target->shape.rank, mr_shape_text(target->shape, a, sizeof a), s->depth,
                              updates.rank, mr_shape_text(updates, b, sizeof b));
    s->count = mr_dims_product(&indices, 0, lead);
    s->width = mr_dims_product(&target->shape, (int)s->depth, target->shape.rank);
    return MR_OK;
}

static mr_status bad_vector(const mr_kernel_call *call, const mr_tensor *target, const slices *s, int64_t at,
                            mr_error *error)
{
    const mr_tensor *indices = &call->inputs[1];
    char position[MR_POSITION_TEXT_SIZE], shape[MR_SHAPE_TEXT_SIZE], vector[MR_POSITION_TEXT_SIZE] = "";
    mr_shape lead = indices->shape;
    size_t used = 0;
    lead.rank--;
    for (int64_t d = 0; d < s->depth && used < sizeof vector; d++)
        used += (size_t)snprintf(vector + used, sizeof vector - used, "%s%" PRId64, d ? ", " : "",
                                 mr_change_index(indices, at * s->depth + d));
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices%s = [%s] does not index into shape %s",
                          mr_position_text(lead, at, position, sizeof position), vector,
                          mr_shape_text(target->shape, shape, sizeof shape));
}

/* The offset of slice `at`, in slices. */
static mr_status offset_of(const mr_kernel_call *call, const mr_tensor *target, const slices *s, int64_t at,
                           int64_t *offset, mr_error *error)
{
    *offset = 0;
    for (int64_t d = 0; d < s->depth; d++) {
        int64_t index = mr_change_index(&call->inputs[1], at * s->depth + d), size = target->shape.dims[d];
        if (index < 0 || index >= size) return bad_vector(call, target, s, at, error);
        *offset = *offset * size + index;
    }
    return MR_OK;
}

static mr_status scatter(mr_kernel_call *call, mr_change change, mr_error *error)
{
    const mr_tensor *target = &call->inputs[0], *updates = &call->inputs[2];
    slices s;
    int64_t offset;
    MR_TRY(measure(call, target, &s, error));
    mr_change_function function = mr_change_find(change, target->dtype);
    if (!function)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s has no such operation",
                              mr_dtype_name(target->dtype));
    size_t slice_bytes = (size_t)s.width * mr_dtype_size(target->dtype);
    if (mr_tensor_count(updates) == 0) return MR_OK;
    for (int64_t i = 0; i < s.count; i++) MR_TRY(offset_of(call, target, &s, i, &offset, error));
    for (int64_t i = 0; i < s.count; i++) {
        MR_TRY(offset_of(call, target, &s, i, &offset, error));
        function((char *)target->data + (size_t)offset * slice_bytes,
                 (const char *)updates->data + (size_t)i * slice_bytes, s.width, 1);
    }
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
SCATTER(scatter_min, MR_CHANGE_MIN)
SCATTER(scatter_max, MR_CHANGE_MAX)

static mr_status scatter_strings(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    mr_tensor value = {0};
    slices s = {0};
    MR_TRY(mr_handle_get(call, 0, &mr_variable_class, &resource, error));
    mr_variable_state *variable = (mr_variable_state *)resource;
    MR_TRY(mr_variable_read(variable, MR_VARIABLE_CHANGE, &value, error));
    mr_status status = measure(call, &value, &s, error);
    if (status == MR_OK && mr_tensor_count(&call->inputs[2]) == 0) s.count = 0;
    int64_t *offsets = nullptr;
    if (status == MR_OK && !(offsets = malloc((size_t)MR_MAX(s.count, 1) * sizeof *offsets)))
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; status == MR_OK && i < s.count; i++)
        status = offset_of(call, &value, &s, i, &offsets[i], error);
    if (status == MR_OK)
        status = mr_change_strings(call, variable, &call->inputs[2], offsets, s.count, s.width, 1, error);
    if (status == MR_OK && call->node->output_count > 0) call->outputs[0] = call->inputs[0];
    free(offsets);
    mr_tensor_deinit(&value);
    return status;
}

#define REALS "half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64"
#define NUMBERS REALS ", complex64, complex128"
#define BOTH(name, run_function, allowed)                                                                              \
    {.op = "ScatterNd" name, .types = "T: " allowed, .run = run_function, .updates = 1},                               \
        {.op = "ResourceScatterNd" name, .types = "T: " allowed, .run = run_function, .updates = 1}
static const mr_kernel kernels[] = {
    BOTH("Update", scatter_set, "bool, " NUMBERS),
    BOTH("Add", scatter_add, "bool, " NUMBERS),
    BOTH("Sub", scatter_sub, "bool, " NUMBERS),
    BOTH("Min", scatter_min, REALS),
    BOTH("Max", scatter_max, REALS),
    {.op = "ScatterNdUpdate", .types = "T: string", .run = scatter_strings},
    {.op = "ResourceScatterNdUpdate", .types = "T: string", .run = scatter_strings},
};
const mr_kernel_table mr_state_kernels_scatter_nd = {kernels, sizeof kernels / sizeof kernels[0]};
