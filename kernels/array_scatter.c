/* Scattering slices: ScatterNd into zeros, TensorScatter… into a copy of a tensor. Slices with the same index are
 * combined in the order of their rows; of several replacements the last one wins. */
#include "kernels/accumulate.h"
#include "kernels/indices.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_nd_depth(mr_kernel_call *call, const mr_tensor *indices, int rank, const char *name, int64_t *depth,
                      int64_t *rows, mr_error *error)
{
    if (indices->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices must be at least a vector");
    mr_shape lead = indices->shape;
    *depth = lead.dims[--lead.rank];
    *rows = mr_shape_count(lead);
    if (*rows < 0 || *rows > INT32_MAX) /* TensorFlow's limit. Index vectors of size 0 can exceed it. */
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices has too many index vectors");
    if (*depth > rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "index innermost dimension length must be <= %s rank; saw: %" PRId64 " vs. %d", name,
                              *depth, rank);
    return MR_OK;
}

mr_status mr_nd_offset(mr_kernel_call *call, const mr_tensor *indices, int64_t row, int64_t depth, mr_shape shape,
                       const char *name, int64_t *offset, mr_error *error)
{
    bool is_inside = true;
    *offset = 0;
    for (int64_t d = 0; d < depth && is_inside; d++) {
        int64_t index = mr_index_at(indices, row * depth + d);
        is_inside = index >= 0 && index < shape.dims[d];
        if (is_inside) *offset = *offset * shape.dims[d] + index;
    }
    if (is_inside) return MR_OK;
    char at[MR_POSITION_TEXT_SIZE], text[MR_SHAPE_TEXT_SIZE], vector[MR_RANK_MAX * 24] = "";
    mr_shape lead = indices->shape;
    bool is_gather = strcmp(call->node->op, "GatherNd") == 0;
    lead.rank--;
    size_t used = 0;
    for (int64_t d = 0; d < depth; d++)
        used += (size_t)snprintf(vector + used, sizeof vector - used, "%s%" PRId64, d > 0 ? ", " : "",
                                 mr_index_at(indices, row * depth + d));
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices%s = [%s] does not index into %s %s%s%s",
                          mr_position_text(lead, row, at, sizeof at), vector, name,
                          mr_shape_text(shape, text, sizeof text), is_gather ? ", node name: " : "",
                          is_gather ? call->node->name : "");
}

/* How updates change the target. */
typedef enum change { CHANGE_REPLACE, CHANGE_ADD, CHANGE_SUBTRACT, CHANGE_MAXIMUM, CHANGE_MINIMUM } change;

static mr_status prepare_change(const mr_kernel_node *node, void *prepared, mr_error *)
{
    static const struct {
        const char *op;
        change change;
    } changes[] = {{"TensorScatterUpdate", CHANGE_REPLACE},
                   {"TensorScatterSub", CHANGE_SUBTRACT},
                   {"TensorScatterMax", CHANGE_MAXIMUM},
                   {"TensorScatterMin", CHANGE_MINIMUM}};
    *(change *)prepared = CHANGE_ADD;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        if (strcmp(node->op, changes[i].op) == 0) *(change *)prepared = changes[i].change;
    return MR_OK;
}

static mr_accumulate find_combine(change change, mr_dtype dtype)
{
    return change == CHANGE_REPLACE ? nullptr : mr_accumulate_find((mr_accumulation)(change - CHANGE_ADD), dtype);
}

/* Checks the shape of updates: that of the index vectors, followed by that of a slice of `shape`. */
static mr_status check_updates(mr_kernel_call *call, const mr_tensor *indices, const mr_tensor *updates, mr_shape shape,
                               int64_t depth, bool is_scatter_nd, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    int outer = indices->shape.rank - 1;
    if (mr_shape_count(shape) == 0 && (mr_tensor_count(indices) > 0 || mr_tensor_count(updates) > 0)) {
        if (!is_scatter_nd)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Indices and updates specified for empty output shape");
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Indices and updates specified for empty output.  indices shape: %s",
                              mr_shape_text(indices->shape, a, sizeof a));
    }
    if (mr_tensor_count(indices) == 0 && mr_tensor_count(updates) > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Indices and updates specified for empty output shape");
    bool fits = updates->shape.rank >= outer;
    for (int i = 0; fits && i < outer; i++) fits = updates->shape.dims[i] == indices->shape.dims[i];
    if (!fits && strncmp(call->node->op, "Tensor", 6) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Outer dimensions of indices and update must match. Indices shape: %s, updates shape:%s",
                              mr_shape_text(indices->shape, a, sizeof a), mr_shape_text(updates->shape, b, sizeof b));
    if (!fits)
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of updates[shape=%s]", outer,
            mr_shape_text(indices->shape, a, sizeof a), outer, mr_shape_text(updates->shape, b, sizeof b));
    fits = depth <= shape.rank && updates->shape.rank == outer + shape.rank - (int)depth;
    for (int i = outer; fits && i < updates->shape.rank; i++)
        fits = updates->shape.dims[i] == shape.dims[(int)depth + i - outer];
    if (fits) return MR_OK;
    if (!is_scatter_nd)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Inner dimensions of output shape must match inner dimensions of updates shape. Output: "
                              "%s updates: %s",
                              mr_shape_text(shape, a, sizeof a), mr_shape_text(updates->shape, b, sizeof b));
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Dimensions [%" PRId64 ",%d) of input[shape=%s] must match dimensions [%d,%d) of "
                          "updates[shape=%s]",
                          depth, shape.rank, mr_shape_text(shape, a, sizeof a), outer, updates->shape.rank,
                          mr_shape_text(updates->shape, b, sizeof b));
}

/* Strings that are added are appended. The joined bytes are kept until the sink has copied them. */
typedef struct joined {
    struct joined *next;
    char bytes[];
} joined;

static mr_status append(mr_kernel_call *call, mr_string *target, mr_string more, joined **kept, mr_error *error)
{
    if (target->size_bytes == 0) {
        *target = more;
        return MR_OK;
    }
    joined *both = malloc(sizeof *both + target->size_bytes + more.size_bytes);
    if (both == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    both->next = *kept;
    *kept = both;
    memcpy(both->bytes, target->data, target->size_bytes);
    if (more.size_bytes > 0) memcpy(both->bytes + target->size_bytes, more.data, more.size_bytes);
    *target = (mr_string){both->bytes, target->size_bytes + more.size_bytes};
    return MR_OK;
}

static mr_status scatter(mr_kernel_call *call, const mr_tensor *indices, const mr_tensor *updates, const mr_sink *sink,
                         int64_t depth, int64_t rows, change change, joined **kept, mr_error *error)
{
    int64_t slice = mr_dims_product(&sink->shape, (int)depth, sink->shape.rank);
    size_t bytes = (size_t)slice * sink->element_size;
    mr_accumulate combine = find_combine(change, updates->dtype);
    for (int64_t row = 0; slice > 0 && row < rows; row++) {
        int64_t offset;
        MR_TRY(mr_nd_offset(call, indices, row, depth, sink->shape, "shape", &offset, error));
        char *target = (char *)sink->data + (size_t)offset * bytes;
        const char *source = (const char *)updates->data + (size_t)row * bytes;
        if (sink->is_string && change == CHANGE_ADD) {
            for (int64_t i = 0; i < slice; i++)
                MR_TRY(append(call, (mr_string *)target + i, ((const mr_string *)source)[i], kept, error));
        } else if (change == CHANGE_REPLACE) {
            memcpy(target, source, bytes);
        } else {
            combine(target, source, slice);
        }
    }
    return MR_OK;
}

/* Scatters into a new tensor: zeros, or a copy of `from`. */
static mr_status scatter_into(mr_kernel_call *call, const mr_tensor *from, const mr_tensor *indices,
                              const mr_tensor *updates, mr_shape shape, change change, mr_error *error)
{
    int64_t depth, rows;
    char text[MR_SHAPE_TEXT_SIZE];
    if (indices->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Indices shape must have rank at least one. Found:%s",
                              mr_shape_text(indices->shape, text, sizeof text));
    bool appends = updates->dtype == MR_STRING && change == CHANGE_ADD;
    if (change != CHANGE_REPLACE && !appends && find_combine(change, updates->dtype) == nullptr)
        return mr_kernel_unsupported(call->node, error);
    MR_TRY(mr_nd_depth(call, indices, INT32_MAX, "output", &depth, &rows, error));
    MR_TRY(check_updates(call, indices, updates, shape, depth, from == nullptr, error));
    mr_sink sink;
    joined *kept = nullptr;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    if (sink.count > 0 && from != nullptr)
        memcpy(sink.data, from->data, (size_t)sink.count * sink.element_size);
    else if (sink.count > 0 && !sink.is_string)
        memset(sink.data, 0, (size_t)sink.count * sink.element_size);
    mr_status status = scatter(call, indices, updates, &sink, depth, rows, change, &kept, error);
    status = mr_sink_finish(call, &sink, status, error);
    while (kept != nullptr) {
        joined *next = kept->next;
        free(kept);
        kept = next;
    }
    return status;
}

static mr_status scatter_nd(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    const mr_tensor *sizes = &call->inputs[2];
    if (sizes->shape.rank != 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape must be a vector");
    if (sizes->dtype == MR_INT16) {
        int64_t rank = mr_tensor_count(sizes);
        if (rank > MR_RANK_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
        shape = (mr_shape){.rank = (int32_t)rank};
        for (int i = 0; i < shape.rank; i++) shape.dims[i] = mr_index_at(sizes, i);
        for (int i = 0; i < shape.rank; i++)
            if (shape.dims[i] < 0)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Dimension %" PRId64 " must be >= 0",
                                      shape.dims[i]);
    } else {
        MR_TRY(mr_kernel_shape(call, 2, &shape, error));
    }
    return scatter_into(call, nullptr, &call->inputs[0], &call->inputs[1], shape, CHANGE_ADD, error);
}

static mr_status tensor_scatter(mr_kernel_call *call, mr_error *error)
{
    const change *change = call->prepared;
    return scatter_into(call, &call->inputs[0], &call->inputs[1], &call->inputs[2], call->inputs[0].shape, *change,
                        error);
}

#define CHANGES .run = tensor_scatter, .prepared_size_bytes = sizeof(change), .prepare = prepare_change

static const mr_kernel kernels[] = {
    {.op = "ScatterNd", .run = scatter_nd, .host_inputs = 1 << 2},
    {.op = "TensorScatterUpdate", CHANGES},
    {.op = "TensorScatterAdd", CHANGES},
    {.op = "TensorScatterSub", CHANGES},
    {.op = "TensorScatterMax", CHANGES},
    {.op = "TensorScatterMin", CHANGES},
    {.op = "ScatterNdNonAliasingAdd", CHANGES},
};
MR_KERNEL_FAMILY(array_scatter);
