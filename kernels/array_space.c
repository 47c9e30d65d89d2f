/* Moves blocks between the spatial dimensions and the batch or the channels, and extracts patches: one strided copy
 * for each position in a block or patch. */
#include "kernels/common.h"
#include <inttypes.h>
#include <string.h>

/* The positions i of `count` for which start + i · step is in [0, size). */
static void positions_inside(int64_t start, int64_t step, int64_t count, int64_t size, int64_t *first, int64_t *length)
{
    *first = start < 0 ? (-start + step - 1) / step : 0;
    int64_t end = size > start ? (size - start + step - 1) / step : 0;
    end = MR_MIN(end, count);
    *length = MR_MAX(end - *first, 0);
}

/* ---- SpaceToBatch and BatchToSpace ---- */

/* The blocks of dimensions 1, 2, … and what is added to (or cropped from) each of these. */
typedef struct blocks {
    int count;
    int64_t sizes[MR_RANK_MAX];
    int64_t before[MR_RANK_MAX], after[MR_RANK_MAX];
    int64_t product;
} blocks;

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

/* Reads block sizes from input 1 or attr block_size, and paddings or crops from the last input. */
static mr_status read_blocks(mr_kernel_call *call, bool to_batch, blocks *b, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *edges = &call->inputs[call->node->input_count - 1];
    const mr_tensor *sizes = call->node->input_count > 2 ? &call->inputs[1] : nullptr;
    if (sizes == nullptr && input->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input rank should be: 4instead of: %d",
                              input->shape.rank);
    if (sizes != nullptr && sizes->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "block_shape rank should be 1 instead of %d",
                              sizes->shape.rank);
    int64_t count = sizes != nullptr ? sizes->shape.dims[0] : 2;
    if (input->shape.rank < count + 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input rank should be >= %" PRId64 " instead of %d", count + 1, input->shape.rank);
    if (edges->shape.rank != 2 || edges->shape.dims[0] != count || edges->shape.dims[1] != 2) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%s should have shape [%" PRId64 ", 2] instead of %s", to_batch ? "paddings" : "crops",
                              count, mr_shape_text(edges->shape, text, sizeof text));
    }
    *b = (blocks){.count = (int)count, .product = 1};
    for (int i = 0; i < b->count; i++) {
        int64_t size = sizes != nullptr ? integer_at(sizes, i) : mr_attr_int_or(call->node->attrs, "block_size", 0);
        if (size < 1 && to_batch)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "All values in block_shape must be positive, got value, %" PRId64 " at index %d.",
                                  size, i);
        if (size < 1 || __builtin_mul_overflow(b->product, size, &b->product))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Product of block sizes must be positive, got %" PRId64, size < 1 ? size : -1);
        b->sizes[i] = size;
        b->before[i] = integer_at(edges, 2 * i);
        b->after[i] = integer_at(edges, 2 * i + 1);
        if (b->before[i] < 0 || b->after[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be non-negative",
                                  to_batch ? "Paddings" : "Crops");
        if (b->before[i] > INT32_MAX || b->after[i] > INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s of dimension %d are too large",
                                  to_batch ? "paddings" : "crops", i + 1);
    }
    return MR_OK;
}

/* Copies between a tensor with the spatial dimensions and one in which their blocks are in the batch: element j of
 * block position p is at j · size + p - before. */
static void copy_blocks(mr_kernel_call *call, const blocks *b, mr_shape space, mr_shape batched, const mr_sink *sink,
                        bool to_batch)
{
    int64_t space_strides[MR_RANK_MAX], batched_strides[MR_RANK_MAX];
    const char *source = call->inputs[0].data;
    mr_shape_strides(space, space_strides);
    mr_shape_strides(batched, batched_strides);
    int64_t batch = space.dims[0];
    for (int64_t combination = 0; combination < b->product; combination++) {
        mr_copy copy = {.rank = batched.rank, .element_size = sink->element_size};
        int64_t rest = combination, in_space = 0, in_batched = combination * batch * batched_strides[0];
        bool is_empty = false;
        int64_t *in_strides = to_batch ? copy.source_strides : copy.target_strides;
        int64_t *out_strides = to_batch ? copy.target_strides : copy.source_strides;
        for (int i = batched.rank - 1; i >= 0; i--) {
            bool is_block = i >= 1 && i <= b->count;
            copy.dims[i] = i == 0 ? batch : batched.dims[i];
            in_strides[i] = space_strides[i];
            out_strides[i] = batched_strides[i];
            if (!is_block) continue;
            int64_t size = b->sizes[i - 1], start = rest % size - b->before[i - 1], first;
            rest /= size;
            positions_inside(start, size, batched.dims[i], space.dims[i], &first, &copy.dims[i]);
            is_empty = is_empty || copy.dims[i] == 0;
            if (is_empty) continue;
            in_space += (start + first * size) * space_strides[i];
            in_batched += first * batched_strides[i];
            in_strides[i] = space_strides[i] * size;
        }
        if (is_empty) continue;
        copy.source = source + (to_batch ? in_space : in_batched) * (int64_t)sink->element_size;
        copy.target = (char *)sink->data + (to_batch ? in_batched : in_space) * (int64_t)sink->element_size;
        mr_copy_strided(copy, call->device->pool);
    }
}

static mr_status space_to_batch(mr_kernel_call *call, mr_error *error)
{
    blocks b;
    mr_sink sink;
    mr_shape space = call->inputs[0].shape, batched = space;
    MR_TRY(read_blocks(call, true, &b, error));
    if (__builtin_mul_overflow(space.dims[0], b.product, &batched.dims[0]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the batch becomes too large");
    bool is_padded = false;
    for (int i = 0; i < b.count; i++) {
        int64_t padded;
        if (__builtin_add_overflow(space.dims[i + 1], b.before[i] + b.after[i], &padded))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i + 1);
        if (padded % b.sizes[i] != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "padded_shape[%d]=%" PRId64 " is not divisible by block_shape[%d]=%" PRId64, i,
                                  padded, i, b.sizes[i]);
        batched.dims[i + 1] = padded / b.sizes[i];
        is_padded = is_padded || b.before[i] > 0 || b.after[i] > 0;
    }
    MR_TRY(mr_sink_init(call, 0, batched, &sink, error));
    static const char zeros[16];
    if (is_padded && !sink.is_string)
        mr_fill_elements(sink.data, zeros, sink.element_size, sink.count, call->device->pool);
    if (sink.count > 0 && mr_tensor_count(&call->inputs[0]) > 0) copy_blocks(call, &b, space, batched, &sink, true);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status batch_to_space(mr_kernel_call *call, mr_error *error)
{
    blocks b;
    mr_sink sink;
    mr_shape batched = call->inputs[0].shape, space = batched;
    MR_TRY(read_blocks(call, false, &b, error));
    if (batched.dims[0] % b.product != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input batch dimension (%" PRId64 ") is not divisible by product of block sizes "
                              "(%" PRId64 ")",
                              batched.dims[0], b.product);
    space.dims[0] = batched.dims[0] / b.product;
    for (int i = 0; i < b.count; i++) {
        if (__builtin_mul_overflow(batched.dims[i + 1], b.sizes[i], &space.dims[i + 1]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i + 1);
        space.dims[i + 1] -= b.before[i] + b.after[i];
        if (space.dims[i + 1] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "cropped_shape[%d]=%" PRId64 " must be non-negative", i, space.dims[i + 1]);
    }
    MR_TRY(mr_sink_init(call, 0, space, &sink, error));
    if (sink.count > 0) copy_blocks(call, &b, space, batched, &sink, false);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* ---- DepthToSpace and SpaceToDepth ---- */

/* Views the input as [batch, …] with the block as two dimensions of its own and permutes these.
 * order  for each dimension of the output's view, the dimension of the input's view */
static mr_status permute(mr_kernel_call *call, mr_shape view, const int *order, mr_shape output, mr_error *error)
{
    mr_sink sink;
    int64_t strides[MR_RANK_MAX], stride = 1;
    MR_TRY(mr_sink_init(call, 0, output, &sink, error));
    for (int i = view.rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= sink.count > 0 ? view.dims[i] : 0;
    }
    mr_copy copy = {
        .rank = view.rank, .element_size = sink.element_size, .target = sink.data, .source = call->inputs[0].data};
    stride = 1;
    for (int i = view.rank - 1; i >= 0; i--) {
        copy.dims[i] = view.dims[order[i]];
        copy.source_strides[i] = strides[order[i]];
        copy.target_strides[i] = stride;
        stride *= sink.count > 0 ? copy.dims[i] : 0;
    }
    if (sink.count > 0) mr_copy_strided(copy, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* NCHW_VECT_C is [batch, depth / 4, height, width, 4]; its last dimension is not moved. */
typedef struct layout {
    int64_t batch, height, width, depth, vector, block;
    bool is_last; /* channels are the last dimension */
    int height_axis, depth_axis;
} layout;

static mr_status read_layout(mr_kernel_call *call, layout *l, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    mr_string format = mr_attr_string_or(call->node->attrs, "data_format", "NHWC");
    bool is_vector = mr_string_equal(format, MR_STR("NCHW_VECT_C"));
    int rank = is_vector ? 5 : 4;
    if (shape.rank != rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input rank should be: %d instead of: %d", rank,
                              shape.rank);
    *l = (layout){.is_last = mr_string_equal(format, MR_STR("NHWC")), .vector = is_vector ? shape.dims[4] : 1};
    l->block = mr_attr_int_or(call->node->attrs, "block_size", 2);
    if (l->block < 1 || l->block > INT32_MAX || (is_vector && l->vector != 4))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "block_size or the shape is out of range");
    l->height_axis = l->is_last ? 1 : 2;
    l->depth_axis = l->is_last ? 3 : 1;
    l->batch = shape.dims[0];
    l->height = shape.dims[l->height_axis];
    l->width = shape.dims[l->height_axis + 1];
    l->depth = shape.dims[l->depth_axis];
    return MR_OK;
}

static mr_status depth_to_space(mr_kernel_call *call, mr_error *error)
{
    layout l;
    MR_TRY(read_layout(call, &l, error));
    mr_shape output = call->inputs[0].shape;
    int64_t square = l.block * l.block, b = l.block;
    if (l.depth % square != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input depth dimension %" PRId64 " should be divisible by: %" PRId64, l.depth, square);
    output.dims[l.depth_axis] = l.depth / square;
    if (__builtin_mul_overflow(l.height, b, &output.dims[l.height_axis]) ||
        __builtin_mul_overflow(l.width, b, &output.dims[l.height_axis + 1]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the image becomes too large");
    if (l.is_last)
        return permute(call, MR_SHAPE(l.batch, l.height, l.width, b, b, l.depth / square),
                       (const int[]){0, 1, 3, 2, 4, 5}, output, error);
    return permute(call, MR_SHAPE(l.batch, b, b, l.depth / square, l.height, l.width, l.vector),
                   (const int[]){0, 3, 4, 1, 5, 2, 6}, output, error);
}

static mr_status space_to_depth(mr_kernel_call *call, mr_error *error)
{
    layout l;
    MR_TRY(read_layout(call, &l, error));
    mr_shape output = call->inputs[0].shape;
    int64_t square = l.block * l.block, b = l.block;
    if (l.height % b != 0 || l.width % b != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Image width %" PRId64 " and height %" PRId64
                              " should be divisible by block_size: %" PRId64,
                              l.width, l.height, b);
    output.dims[l.height_axis] = l.height / b;
    output.dims[l.height_axis + 1] = l.width / b;
    if (__builtin_mul_overflow(l.depth, square, &output.dims[l.depth_axis]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the depth becomes too large");
    if (l.is_last)
        return permute(call, MR_SHAPE(l.batch, l.height / b, b, l.width / b, b, l.depth),
                       (const int[]){0, 1, 3, 2, 4, 5}, output, error);
    return permute(call, MR_SHAPE(l.batch, l.depth, l.height / b, b, l.width / b, b, l.vector),
                   (const int[]){0, 3, 5, 1, 2, 4, 6}, output, error);
}

/* ---- Patches ---- */

constexpr int PATCH_RANK_MAX = 5;
typedef struct patch {
    int rank;
    int64_t sizes[PATCH_RANK_MAX], strides[PATCH_RANK_MAX], rates[PATCH_RANK_MAX];
    bool is_same;
} patch;

static mr_status read_numbers(const mr_kernel_node *node, const char *name, int rank, int64_t *values, mr_error *error)
{
    int32_t count = 0;
    MR_TRY(mr_attr_get_ints(node->attrs, name, values, PATCH_RANK_MAX, &count, error));
    if (count != rank)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s must have %d elements, but has %d", name, rank,
                              count);
    if (values[0] != 1 || values[rank - 1] != 1)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "Only support %s across space.", name);
    for (int i = 0; i < rank; i++)
        if (values[i] < 1 || values[i] > INT32_MAX)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s[%d] is %" PRId64 ", out of range", name, i,
                                  values[i]);
    return MR_OK;
}

static mr_status prepare_patch(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    patch *p = prepared;
    bool has_rates = mr_attrs_find(node->attrs, "rates") != nullptr;
    p->rank = has_rates ? 4 : 5;
    p->is_same = mr_string_equal(mr_attr_string_or(node->attrs, "padding", "VALID"), MR_STR("SAME"));
    for (int i = 0; i < p->rank; i++) p->rates[i] = 1;
    MR_TRY(read_numbers(node, "ksizes", p->rank, p->sizes, error));
    MR_TRY(read_numbers(node, "strides", p->rank, p->strides, error));
    return has_rates ? read_numbers(node, "rates", p->rank, p->rates, error) : MR_OK;
}

/* For each position in a patch, copies the channels of every patch at once. */
static void copy_patches(mr_kernel_call *call, const patch *p, mr_shape input, const int64_t *before,
                         const mr_sink *sink)
{
    int64_t depth = input.dims[p->rank - 1], in_strides[MR_RANK_MAX], out_strides[MR_RANK_MAX];
    int64_t positions = sink->shape.dims[p->rank - 1] / depth;
    mr_shape_strides(input, in_strides);
    mr_shape_strides(sink->shape, out_strides);
    for (int64_t position = 0; position < positions; position++) {
        mr_copy copy = {.rank = p->rank, .element_size = sink->element_size};
        int64_t rest = position, from = 0, to = position * depth;
        bool is_empty = false;
        for (int i = p->rank - 1; i >= 0; i--) {
            copy.dims[i] = input.dims[i];
            copy.source_strides[i] = in_strides[i];
            copy.target_strides[i] = out_strides[i];
            if (i == 0 || i == p->rank - 1) continue;
            int64_t start = rest % p->sizes[i] * p->rates[i] - before[i], first;
            rest /= p->sizes[i];
            positions_inside(start, p->strides[i], sink->shape.dims[i], input.dims[i], &first, &copy.dims[i]);
            is_empty = is_empty || copy.dims[i] == 0;
            if (is_empty) continue;
            from += (start + first * p->strides[i]) * in_strides[i];
            to += first * out_strides[i];
            copy.source_strides[i] = in_strides[i] * p->strides[i];
        }
        if (is_empty) continue;
        copy.source = (const char *)call->inputs[0].data + from * (int64_t)sink->element_size;
        copy.target = (char *)sink->data + to * (int64_t)sink->element_size;
        mr_copy_strided(copy, call->device->pool);
    }
}

static mr_status extract_patches(mr_kernel_call *call, mr_error *error)
{
    const patch *p = call->prepared;
    mr_shape input = call->inputs[0].shape, output = input;
    int64_t before[PATCH_RANK_MAX] = {0};
    if (input.rank != p->rank) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be %d-dimensional%s", p->rank,
                              mr_shape_text(input, text, sizeof text));
    }
    for (int i = 1; i < p->rank - 1; i++) {
        int64_t size = input.dims[i], window = (p->sizes[i] - 1) * p->rates[i] + 1, stride = p->strides[i];
        const int64_t places = (size - window + stride) / stride; /* TensorFlow's formula; the result may be 0 */
        if (!p->is_same && places < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                                  ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                                  places, size, window, stride);
        output.dims[i] = p->is_same ? size / stride + (size % stride != 0) : places;
        if (p->is_same && output.dims[i] > 0) {
            int64_t both = window - (size - (output.dims[i] - 1) * stride);
            before[i] = (p->rank == 4 ? MR_MAX(both, 0) : both) / 2; /* TensorFlow's volumes may skip elements */
        }
        if (__builtin_mul_overflow(output.dims[p->rank - 1], p->sizes[i], &output.dims[p->rank - 1]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the patches are too large");
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, output, &sink, error));
    static const char zeros[16];
    if (!sink.is_string) mr_fill_elements(sink.data, zeros, sink.element_size, sink.count, call->device->pool);
    if (sink.count > 0) copy_patches(call, p, input, before, &sink);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static const mr_kernel kernels[] = {
    {.op = "SpaceToBatchND", .run = space_to_batch, .host_inputs = 1 << 1 | 1 << 2},
    {.op = "SpaceToBatch", .run = space_to_batch, .host_inputs = 1 << 1},
    {.op = "BatchToSpaceND", .run = batch_to_space, .host_inputs = 1 << 1 | 1 << 2},
    {.op = "BatchToSpace", .run = batch_to_space, .host_inputs = 1 << 1},
    {.op = "DepthToSpace", .run = depth_to_space},
    {.op = "SpaceToDepth", .run = space_to_depth},
    {.op = "ExtractImagePatches",
     .run = extract_patches,
     .prepared_size_bytes = sizeof(patch),
     .prepare = prepare_patch},
    {.op = "ExtractVolumePatches",
     .run = extract_patches,
     .prepared_size_bytes = sizeof(patch),
     .prepare = prepare_patch},
};
MR_KERNEL_FAMILY(array_space);
