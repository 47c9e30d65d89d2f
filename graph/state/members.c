/* What stacks, arrays and lists have in common: their elements. */
#include "graph/state/members.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

constexpr int32_t DEPTH_MAX = 1000;

mr_variant *mr_tensor_variant(const mr_tensor *tensor)
{
    if (tensor->dtype != MR_VARIANT || tensor->shape.rank != 0) return nullptr;
    mr_resource *resource = mr_tensor_any_resource(tensor);
    return resource && resource->class->kind == MR_RESOURCE_VARIANT ? (mr_variant *)resource : nullptr;
}

/* ---- References ---- */

mr_status mr_holder_new(const mr_resource_class *class, mr_holder **holder, mr_error *error)
{
    static atomic_uint_fast64_t count;
    mr_resource *resource;
    MR_TRY(mr_resource_new(class, &resource, error));
    *holder = (mr_holder *)resource;
    (*holder)->number = atomic_fetch_add(&count, 1);
    return MR_OK;
}

mr_status mr_variant_new(const mr_resource_class *class, mr_variant **variant, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(class, &resource, error));
    *variant = (mr_variant *)resource;
    (*variant)->depth = 1;
    (*variant)->oldest = UINT64_MAX;
    return MR_OK;
}

/* The oldest stack or array that the tensor refers to. */
static uint64_t oldest_of(const mr_tensor *tensor)
{
    const mr_variant *variant = mr_tensor_variant(tensor);
    if (variant) return variant->oldest;
    if (tensor->dtype != MR_RESOURCE) return UINT64_MAX;
    const mr_resource *resource = mr_tensor_any_resource(tensor);
    return resource && resource->class->kind == MR_RESOURCE_HOLDER ? ((const mr_holder *)resource)->number : UINT64_MAX;
}

static mr_status check_scalar(const mr_kernel_call *call, const mr_tensor *element, mr_error *error)
{
    if (element->dtype != MR_VARIANT || element->shape.rank == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a tensor of variants must be a scalar");
}

mr_status mr_holder_check(const mr_kernel_call *call, const mr_holder *holder, const mr_tensor *element,
                          mr_error *error)
{
    MR_TRY(check_scalar(call, element, error));
    if (oldest_of(element) > holder->number) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                          "the element is the handle of a stack or of a tensor array that is older than the %s",
                          holder->resource.class->name);
}

mr_status mr_variant_check(const mr_kernel_call *call, mr_variant *variant, const mr_tensor *element, mr_error *error)
{
    MR_TRY(check_scalar(call, element, error));
    const mr_variant *inner = mr_tensor_variant(element);
    int32_t depth = inner ? inner->depth : 0;
    uint64_t oldest = oldest_of(element);
    if (depth >= DEPTH_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "lists are nested more than %d times", DEPTH_MAX);
    variant->depth = MR_MAX(variant->depth, depth + 1);
    variant->oldest = MR_MIN(variant->oldest, oldest);
    return MR_OK;
}

/* ---- Shapes ---- */

mr_status mr_member_merge(const mr_kernel_call *call, mr_shape a, mr_shape b, mr_shape *merged, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    if (mr_shape_compatible(a, b)) return mr_shape_merge(a, b, merged, error);
    if (a.rank != b.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "PartialTensorShape: Incompatible ranks during merge: %d vs. %d", (int)a.rank,
                              (int)b.rank);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "PartialTensorShape: Incompatible shapes during merge: %s vs. %s",
                          mr_shape_text(a, first, sizeof first), mr_shape_text(b, second, sizeof second));
}

mr_shape mr_shape_tail(mr_shape shape)
{
    assert(shape.rank != 0);
    if (shape.rank < 0) return shape;
    mr_shape result = {.rank = shape.rank - 1};
    for (int32_t i = 1; i < shape.rank; i++) result.dims[i - 1] = shape.dims[i];
    return result;
}

mr_status mr_shape_prepend(const mr_kernel_call *call, int64_t size, mr_shape shape, mr_shape *result, mr_error *error)
{
    assert(shape.rank >= 0);
    if (shape.rank == MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "the result has more than %d dimensions",
                              MR_RANK_MAX);
    *result = MR_SHAPE(size);
    for (int32_t i = 0; i < shape.rank; i++) result->dims[result->rank++] = shape.dims[i];
    return MR_OK;
}

mr_status mr_member_int(const mr_kernel_call *call, int input, const char *what, int32_t *value, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    char text[MR_SHAPE_TEXT_SIZE];
    if (tensor->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s, but had shape: %s", what,
                              mr_shape_text(tensor->shape, text, sizeof text));
    *value = mr_tensor_int32s(tensor)[0];
    return MR_OK;
}

/* ---- Rows ---- */

mr_status mr_members_source(const mr_kernel_call *call, int input, mr_tensor *source, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    if (tensor->buffer && tensor->buffer->is_mutable) return mr_tensor_duplicate(call->device, tensor, source, error);
    *source = mr_tensor_ref(tensor);
    return MR_OK;
}

mr_status mr_members_rows(const mr_tensor *source, int64_t begin, int64_t end, bool drop, mr_tensor *rows,
                          mr_error *error)
{
    MR_TRY(mr_tensor_rows(source, begin, end, rows, error));
    assert(!drop || end == begin + 1);
    if (drop) rows->shape = mr_shape_tail(rows->shape);
    return MR_OK;
}

/* ---- Zeros and sums ---- */

mr_status mr_members_zeros(const mr_kernel_call *call, mr_dtype dtype, mr_shape shape, mr_tensor *zeros,
                           mr_error *error)
{
    if (dtype == MR_VARIANT && shape.rank == 0) {
        *zeros = (mr_tensor){.dtype = MR_VARIANT, .shape = MR_SCALAR};
        return MR_OK;
    }
    MR_TRY(mr_tensor_init_on(zeros, call->device, dtype, shape, error));
    if (mr_tensor_size_bytes(zeros) > 0) memset(zeros->data, 0, mr_tensor_size_bytes(zeros));
    return MR_OK;
}

bool mr_members_can_add(mr_dtype dtype)
{
    switch (dtype) {
#define CASE(name, type, suffix) case name:
        MR_EACH_NUMBER(CASE)
    case MR_HALF:
    case MR_BFLOAT16:
    case MR_COMPLEX64:
    case MR_COMPLEX128:
        return true;
    default:
        return false;
    }
#undef CASE
}

#define ADD(name, type, suffix)                                                                                        \
    static void add_##suffix(void *sum, const void *a, const void *b, int64_t count)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)sum)[i] = (type)(((const type *)a)[i] + ((const type *)b)[i]);    \
    }
MR_EACH_WRAPPING_NUMBER(ADD)

static void add_half(uint16_t *sum, const uint16_t *a, const uint16_t *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) sum[i] = mr_float_to_half(mr_half_to_float(a[i]) + mr_half_to_float(b[i]));
}

static void add_bfloat16(uint16_t *sum, const uint16_t *a, const uint16_t *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = mr_float_to_bfloat16(mr_bfloat16_to_float(a[i]) + mr_bfloat16_to_float(b[i]));
}

static void add_elements(mr_dtype dtype, void *sum, const void *a, const void *b, int64_t count)
{
    switch (dtype) {
#define CASE(name, type, suffix)                                                                                       \
    case name:                                                                                                         \
        add_##suffix(sum, a, b, count);                                                                                \
        break;
        MR_EACH_NUMBER(CASE)
#undef CASE
    case MR_HALF:
        add_half(sum, a, b, count);
        break;
    case MR_BFLOAT16:
        add_bfloat16(sum, a, b, count);
        break;
    case MR_COMPLEX64:
        add_float(sum, a, b, 2 * count);
        break;
    case MR_COMPLEX128:
        add_double(sum, a, b, 2 * count);
        break;
    default:
        assert(false);
    }
}

mr_status mr_members_add(const mr_kernel_call *call, const mr_tensor *a, const mr_tensor *b, mr_tensor *sum,
                         mr_error *error)
{
    assert(mr_members_can_add(a->dtype) && a->dtype == b->dtype && mr_shape_equal(a->shape, b->shape));
    if (sum != a) MR_TRY(mr_tensor_init_on(sum, call->device, a->dtype, a->shape, error));
    add_elements(a->dtype, sum->data, a->data, b->data, mr_tensor_count(a));
    return MR_OK;
}

/* ---- Concatenation ---- */

mr_status mr_joined_init(mr_kernel_call *call, int index, mr_shape shape, mr_joined *join, mr_error *error)
{
    *join = (mr_joined){0};
    if (mr_dtype_size(call->node->output_dtypes[index]) == 0)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a tensor of %ss must be a scalar",
                              mr_dtype_name(call->node->output_dtypes[index]));
    return mr_sink_init(call, index, shape, &join->sink, error);
}

void mr_joined_add(mr_joined *join, const mr_tensor *element, int64_t zeros)
{
    bool is_set = mr_member_is_set(element);
    int64_t count = is_set ? mr_tensor_count(element) : zeros;
    size_t size = join->sink.element_size;
    assert(count >= 0 && count <= join->sink.count - join->used);
    char *target = (char *)join->sink.data + (size_t)join->used * size;
    if (count > 0 && is_set) memcpy(target, element->data, (size_t)count * size);
    if (count > 0 && !is_set) memset(target, 0, (size_t)count * size);
    join->used += count;
}

mr_status mr_joined_finish(mr_kernel_call *call, mr_joined *join, mr_error *error)
{
    assert(join->used == join->sink.count);
    return mr_sink_finish(call, &join->sink, MR_OK, error);
}
