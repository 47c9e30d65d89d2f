/* Moving blocks between the spatial dimensions and the batch or the channels, and extracting patches. */
#include "graph/ir/op.h"

static mr_status size_add(int64_t size, int64_t more, int64_t *result, mr_error *error)
{
    *result = -1;
    if (size < 0) return MR_OK;
    if (__builtin_add_overflow(size, more, result))
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension size overflow from adding %lld and %lld", (long long)size,
                       (long long)more);
    if (*result < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Negative dimension size caused by subtracting %lld from %lld",
                       (long long)-more, (long long)size);
    return MR_OK;
}

static mr_status size_multiply(int64_t size, int64_t factor, int64_t *result, mr_error *error)
{
    *result = -1;
    if (size < 0 || factor < 0) return MR_OK;
    if (__builtin_mul_overflow(size, factor, result))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Negative dimension size caused by overflow when multiplying %lld "
                       "and %lld",
                       (long long)size, (long long)factor);
    return MR_OK;
}

static mr_status size_divide(int64_t size, int64_t divisor, int64_t *result, mr_error *error)
{
    *result = -1;
    if (size < 0) return MR_OK;
    if (size % divisor != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension size must be evenly divisible by %lld but is %lld",
                       (long long)divisor, (long long)size);
    *result = size / divisor;
    return MR_OK;
}

/* A vector or matrix of int32 or int64 that is known while the graph is built. */
static int64_t constant_at(const mr_tensor *constant, int64_t index)
{
    return constant->dtype == MR_INT64 ? mr_tensor_int64s(constant)[index] : mr_tensor_int32s(constant)[index];
}

/* What SpaceToBatch and BatchToSpace have in common. block_shape is null if its values are unknown. */
typedef struct blocks {
    mr_shape input;
    int32_t count;
    bool known;
    int64_t sizes[MR_RANK_MAX];
    int64_t product;
    const mr_tensor *edges; /* paddings or crops; null: unknown */
} blocks;

static mr_status read_blocks(const mr_shape_call *call, int32_t edges, const mr_tensor *block_shape, int64_t count,
                             blocks *b, const char *what, mr_error *error)
{
    mr_shape matrix;
    MR_TRY(mr_shape_with_rank(call->inputs[edges], 2, &matrix, error));
    MR_TRY(mr_size_merge(matrix.dims[0], count, &matrix.dims[0], error));
    MR_TRY(mr_size_merge(matrix.dims[1], 2, &matrix.dims[1], error));
    b->input = call->inputs[0];
    MR_TRY(mr_shape_at_least(b->input, (int32_t)count + 1, error));
    b->count = (int32_t)count;
    b->edges = call->constants[edges];
    b->product = 1;
    b->known = block_shape != nullptr || count == 0;
    for (int32_t i = 0; block_shape != nullptr && i < b->count; i++) {
        b->sizes[i] = constant_at(block_shape, i);
        if (b->sizes[i] < 1) return mr_fail(error, MR_INVALID_ARGUMENT, "block_shape must be positive");
        if (__builtin_mul_overflow(b->product, b->sizes[i], &b->product))
            return mr_fail(error, MR_INVALID_ARGUMENT, "block_shape is too large");
    }
    for (int64_t i = 0; b->edges != nullptr && i < 2 * count; i++)
        if (constant_at(b->edges, i) < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "%s cannot be negative", what);
    return MR_OK;
}

static mr_status space_to_batch(mr_shape_call *call, const blocks *b, mr_error *error)
{
    mr_shape result = b->input;
    if (result.rank < 0) return MR_OK;
    result.dims[0] = -1;
    if (b->known) MR_TRY(size_multiply(b->input.dims[0], b->product, &result.dims[0], error));
    for (int32_t i = 0; i < b->count; i++) {
        int64_t *size = &result.dims[i + 1], both = 0;
        if (b->edges == nullptr || !b->known) {
            *size = -1;
            continue;
        }
        MR_TRY(size_add(constant_at(b->edges, 2 * i), constant_at(b->edges, 2 * i + 1), &both, error));
        MR_TRY(size_add(*size, both, size, error));
        MR_TRY(size_divide(*size, b->sizes[i], size, error));
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status batch_to_space(mr_shape_call *call, const blocks *b, mr_error *error)
{
    mr_shape result = b->input;
    if (result.rank < 0) return MR_OK;
    result.dims[0] = -1;
    if (b->known) MR_TRY(size_divide(b->input.dims[0], b->product, &result.dims[0], error));
    for (int32_t i = 0; i < b->count; i++) {
        int64_t *size = &result.dims[i + 1];
        if (b->edges == nullptr || !b->known) {
            *size = -1;
            continue;
        }
        MR_TRY(size_multiply(*size, b->sizes[i], size, error));
        MR_TRY(size_add(*size, -constant_at(b->edges, 2 * i), size, error));
        MR_TRY(size_add(*size, -constant_at(b->edges, 2 * i + 1), size, error));
    }
    call->outputs[0] = result;
    return MR_OK;
}

/* block_shape is a vector of known length. */
static mr_status count_blocks(const mr_shape_call *call, int64_t *count, mr_error *error)
{
    mr_shape vector;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &vector, error));
    if (vector.dims[0] < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "block_shape must have known size.");
    if (vector.dims[0] >= MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "block_shape has %lld elements", (long long)vector.dims[0]);
    *count = vector.dims[0];
    return MR_OK;
}

static mr_status space_to_batch_nd_shape(mr_shape_call *call, mr_error *error)
{
    blocks b;
    int64_t count = 0;
    MR_TRY(count_blocks(call, &count, error));
    MR_TRY(read_blocks(call, 2, call->constants[1], count, &b, "paddings", error));
    return space_to_batch(call, &b, error);
}

static mr_status batch_to_space_nd_shape(mr_shape_call *call, mr_error *error)
{
    blocks b;
    int64_t count = 0;
    MR_TRY(count_blocks(call, &count, error));
    MR_TRY(read_blocks(call, 2, call->constants[1], count, &b, "crops", error));
    return batch_to_space(call, &b, error);
}

/* The older operators have two blocks of the same size, in an attr. */
static mr_status read_square_blocks(const mr_shape_call *call, blocks *b, const char *what, mr_error *error)
{
    mr_shape input;
    int64_t size = mr_attr_int_or(call->attrs, "block_size", 0);
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    MR_TRY(read_blocks(call, 1, nullptr, 2, b, what, error));
    b->input = input;
    b->known = true;
    b->sizes[0] = b->sizes[1] = size;
    if (__builtin_mul_overflow(size, size, &b->product))
        return mr_fail(error, MR_INVALID_ARGUMENT, "block_size is too large");
    return MR_OK;
}

static mr_status space_to_batch_shape(mr_shape_call *call, mr_error *error)
{
    blocks b;
    MR_TRY(read_square_blocks(call, &b, "paddings", error));
    return space_to_batch(call, &b, error);
}

static mr_status batch_to_space_shape(mr_shape_call *call, mr_error *error)
{
    blocks b;
    MR_TRY(read_square_blocks(call, &b, "crops", error));
    return batch_to_space(call, &b, error);
}

/* DepthToSpace and SpaceToDepth. NCHW_VECT_C has the channels in dimensions 1 and 4, and dimension 4 is unchanged. */
static mr_status depth_shape(mr_shape_call *call, bool to_space, mr_error *error)
{
    mr_string format = mr_attr_string_or(call->attrs, "data_format", "NHWC");
    bool is_vector = mr_string_equal(format, MR_STR("NCHW_VECT_C"));
    bool is_last = mr_string_equal(format, MR_STR("NHWC"));
    int32_t channels = is_last ? 3 : 1, height = is_last ? 1 : 2;
    int64_t block = mr_attr_int_or(call->attrs, "block_size", 2), square;
    mr_shape result;
    MR_TRY(mr_shape_with_rank(call->inputs[0], is_vector ? 5 : 4, &result, error));
    if (is_vector) MR_TRY(mr_size_merge(result.dims[4], 4, &result.dims[4], error));
    if (block < 1 || __builtin_mul_overflow(block, block, &square))
        return mr_fail(error, MR_INVALID_ARGUMENT, "block_size %lld is out of range", (long long)block);
    for (int32_t i = height; i < height + 2; i++)
        MR_TRY(to_space ? size_multiply(result.dims[i], block, &result.dims[i], error)
                        : size_divide(result.dims[i], block, &result.dims[i], error));
    MR_TRY(to_space ? size_divide(result.dims[channels], square, &result.dims[channels], error)
                    : size_multiply(result.dims[channels], square, &result.dims[channels], error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status depth_to_space_shape(mr_shape_call *call, mr_error *error)
{
    return depth_shape(call, true, error);
}

static mr_status space_to_depth_shape(mr_shape_call *call, mr_error *error)
{
    return depth_shape(call, false, error);
}

static mr_status patch_numbers(const mr_shape_call *call, const char *name, int32_t count, int64_t *values,
                               mr_error *error)
{
    int32_t found = 0;
    const mr_attr *attr = mr_attrs_find(call->attrs, name);
    if (attr != nullptr && attr->count != count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s requires the %s attribute to contain %d values, but got: %d",
                       call->op->name, name, count, attr->count);
    MR_TRY(mr_attr_get_ints(call->attrs, name, values, count, &found, error));
    for (int32_t i = 0; i < found; i++)
        if (values[i] < 1 || values[i] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s[%d] is %lld, expected at least 1", name, i,
                           (long long)values[i]);
    return MR_OK;
}

/* ExtractImagePatches and ExtractVolumePatches: the elements of a patch become channels. */
static mr_status patches(mr_shape_call *call, int32_t rank, bool has_rates, mr_error *error)
{
    int64_t sizes[MR_RANK_MAX], strides[MR_RANK_MAX], rates[MR_RANK_MAX];
    mr_shape result;
    MR_TRY(mr_shape_with_rank(call->inputs[0], rank, &result, error));
    MR_TRY(patch_numbers(call, "ksizes", rank, sizes, error));
    MR_TRY(patch_numbers(call, "strides", rank, strides, error));
    for (int32_t i = 0; i < rank; i++) rates[i] = 1;
    if (has_rates) MR_TRY(patch_numbers(call, "rates", rank, rates, error));
    bool is_same = mr_string_equal(mr_attr_string_or(call->attrs, "padding", "VALID"), MR_STR("SAME"));
    for (int32_t i = 1; i < rank - 1; i++) {
        int64_t size = result.dims[i], window = (sizes[i] - 1) * rates[i] + 1;
        MR_TRY(size_multiply(result.dims[rank - 1], sizes[i], &result.dims[rank - 1], error));
        if (size < 0) continue;
        result.dims[i] =
            is_same ? size / strides[i] + (size % strides[i] != 0) : (size - window + strides[i]) / strides[i];
        if (result.dims[i] < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Negative dimension size caused by subtracting %lld from %lld",
                           (long long)window, (long long)size);
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status image_patches_shape(mr_shape_call *call, mr_error *error)
{
    return patches(call, 4, true, error);
}

static mr_status volume_patches_shape(mr_shape_call *call, mr_error *error)
{
    return patches(call, 5, false, error);
}

static const mr_op space_ops[] = {
    {.name = "SpaceToBatchND",
     .signature = "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tblock_shape: {int32, int64} = int32; Tpaddings: {int32, int64} = int32",
     .shape = space_to_batch_nd_shape,
     .doc = "Pads the spatial dimensions with zeros and moves the elements of each block into the batch dimension."},
    {.name = "BatchToSpaceND",
     .signature = "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T",
     .attrs = "T: type; Tblock_shape: {int32, int64} = int32; Tcrops: {int32, int64} = int32",
     .shape = batch_to_space_nd_shape,
     .doc = "Moves parts of the batch dimension into blocks of the spatial dimensions and crops these."},
    {.name = "SpaceToBatch",
     .signature = "input: T, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2",
     .shape = space_to_batch_shape,
     .doc = "Pads images with zeros and moves the elements of each square block into the batch dimension."},
    {.name = "BatchToSpace",
     .signature = "input: T, crops: Tidx -> output: T",
     .attrs = "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32",
     .shape = batch_to_space_shape,
     .doc = "Moves parts of the batch dimension into square blocks of the images and crops these."},
    {.name = "SpaceToDepth",
     .signature = "input: T -> output: T",
     .attrs = "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .shape = space_to_depth_shape,
     .doc = "Moves the pixels of each square block into the channels."},
    {.name = "DepthToSpace",
     .signature = "input: T -> output: T",
     .attrs = "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .shape = depth_to_space_shape,
     .doc = "Moves groups of channels into square blocks of pixels."},
    {.name = "ExtractImagePatches",
     .signature = "images: T -> patches: T",
     .attrs = "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; "
              "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
              "complex128, bool}; padding: {'SAME', 'VALID'}",
     .shape = image_patches_shape,
     .doc = "Returns the patch of the image around each position, with its elements as channels."},
    {.name = "ExtractVolumePatches",
     .signature = "input: T -> patches: T",
     .attrs = "ksizes: list(int) >= 5; strides: list(int) >= 5; T: realnumbertype; padding: {'SAME', 'VALID'}",
     .shape = volume_patches_shape,
     .doc = "Returns the patch of the volume around each position, with its elements as channels."},
};

const mr_op_table mr_ops_space = {space_ops, sizeof space_ops / sizeof space_ops[0]};
