/* The operators of lists of tensors that join elements to a tensor, and divide a tensor into elements. */
#include "graph/state/tensor_list.h"

#include <inttypes.h>

/* ---- Joining ---- */

/* The element shape of the list and of input `index`. */
static mr_status common_shape(const mr_kernel_call *call, const mr_list *list, int index, mr_shape *shape,
                              mr_error *error)
{
    MR_TRY(mr_list_shape_input(call, index, shape, error));
    return mr_member_merge(call, *shape, list->element_shape, shape, error);
}

/* Every element that is set must have the shape, which is completed by those of the elements. */
static mr_status merge_element(const mr_kernel_call *call, const mr_list *list, int64_t index, mr_shape *shape,
                               mr_error *error)
{
    const mr_tensor *element = &list->items->at[index];
    return mr_member_is_set(element) ? mr_member_merge(call, *shape, element->shape, shape, error) : MR_OK;
}

/* Stacks elements indices[i], without indices elements i. */
static mr_status join_elements(mr_kernel_call *call, const mr_list *list, const int32_t *indices, int64_t count,
                               mr_shape element, mr_error *error)
{
    mr_joined join;
    mr_shape shape;
    MR_TRY(mr_shape_prepend(call, count, element, &shape, error));
    MR_TRY(mr_joined_init(call, 0, shape, &join, error));
    int64_t zeros = count > 0 ? join.sink.count / count : 0;
    for (int64_t i = 0; i < count; i++) mr_joined_add(&join, &list->items->at[indices ? indices[i] : i], zeros);
    return mr_joined_finish(call, &join, error);
}

static mr_status stack(mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t expected = mr_attr_int_or(call->node->attrs, "num_elements", -1);
    const mr_list *list;
    mr_shape shape;
    MR_TRY(mr_list_at(call, 0, &list, error));
    MR_TRY(mr_list_check_dtype(call, list, error));
    if (expected != -1 && list->count != expected)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Operation expected a list with %" PRId64 " elements but got a list with %" PRId64
                              " elements.",
                              expected, list->count);
    MR_TRY(common_shape(call, list, 1, &shape, error));
    if (list->count == 0 && !mr_shape_is_known(shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to stack elements of an empty list with non-fully-defined element_shape: %s",
                              mr_shape_text(shape, text, sizeof text));
    for (int64_t i = 0; i < list->count; i++) MR_TRY(merge_element(call, list, i, &shape, error));
    if (!mr_shape_is_known(shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to stack list which only contains uninitialized tensors and has a "
                              "non-fully-defined element_shape: %s",
                              mr_shape_text(shape, text, sizeof text));
    return join_elements(call, list, nullptr, list->count, shape, error);
}

static mr_status gather(mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_list *list;
    mr_shape shape;
    int64_t count = mr_tensor_count(&call->inputs[1]);
    const int32_t *indices = mr_tensor_int32s(&call->inputs[1]);
    MR_TRY(mr_list_at(call, 0, &list, error));
    MR_TRY(mr_list_check_dtype(call, list, error));
    MR_TRY(common_shape(call, list, 2, &shape, error));
    if (count == 0 && !mr_shape_is_known(shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to gather 0-elements from a list with non-fully-defined shape: %s",
                              mr_shape_text(shape, text, sizeof text));
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= list->count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Trying to gather element %d in a list with %" PRId64 " elements.", (int)indices[i],
                                  list->count);
        MR_TRY(merge_element(call, list, indices[i], &shape, error));
    }
    if (!mr_shape_is_known(shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to gather uninitialized tensors from a list with non-fully-defined "
                              "element_shape: %s",
                              mr_shape_text(shape, text, sizeof text));
    return join_elements(call, list, indices, count, shape, error);
}

/* ---- Concatenating ---- */

typedef struct concatenation {
    const mr_list *list;
    int64_t rows;  /* of an element that is not set, if no input says more; -1: not known */
    mr_shape tail; /* the shape of the elements without dimension 0 */
} concatenation;

/* What the attr or the inputs specify of the elements' shape. */
static mr_status concat_given(const mr_kernel_call *call, concatenation *c, mr_error *error)
{
    mr_shape shape;
    c->rows = -1;
    if (call->node->input_count == 1) {
        MR_TRY(mr_attr_get_shape(call->node->attrs, "element_shape", &shape, error));
        if (shape.rank == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "element_shape must not be empty");
    } else {
        MR_TRY(common_shape(call, c->list, 1, &shape, error));
        if (shape.rank == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Concat requires elements to be at least vectors, found scalars instead.");
        if (shape.rank > 0) c->rows = shape.dims[0];
    }
    c->tail = mr_shape_tail(shape);
    return MR_OK;
}

/* What the elements that are set add to that. */
static mr_status concat_found(const mr_kernel_call *call, concatenation *c, mr_error *error)
{
    int64_t common = c->rows;
    bool is_common = true;
    for (int64_t i = 0; i < c->list->count; i++) {
        const mr_tensor *element = &c->list->items->at[i];
        if (!mr_member_is_set(element)) continue;
        if (element->shape.rank == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Concat saw a scalar shape at index %" PRId64 " but requires at least vectors.", i);
        MR_TRY(mr_member_merge(call, c->tail, mr_shape_tail(element->shape), &c->tail, error));
        int64_t rows = element->shape.dims[0];
        if (c->rows >= 0 && rows != c->rows)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "First entry of element_shape input does not match the first dim of list element at "
                                  "index: %" PRId64 " Expected: %" PRId64 " Actual: %" PRId64,
                                  i, c->rows, rows);
        is_common &= common < 0 || common == rows;
        common = rows;
    }
    c->rows = is_common ? common : -1;
    return MR_OK;
}

/* The number of rows of element `index`. */
static mr_status concat_rows(const mr_kernel_call *call, const concatenation *c, int64_t index, int64_t *rows,
                             mr_error *error)
{
    const mr_tensor *element = &c->list->items->at[index];
    const mr_tensor *given = call->node->input_count > 2 ? &call->inputs[2] : nullptr;
    int64_t count = given ? mr_tensor_count(given) : 0;
    *rows = c->rows;
    if (mr_member_is_set(element)) {
        *rows = element->shape.dims[0];
    } else if (index < count) {
        *rows = mr_tensor_int64s(given)[index];
        if (*rows < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "leading_dims[%" PRId64 "] is %" PRId64,
                                  index, *rows);
    } else if (c->rows < 0 && !given) {
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Concating lists with uninitialized tensors is not supported in this version of "
                              "TensorListConcat. Consider updating your GraphDef to run the newer version.");
    } else if (c->rows < 0) {
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "List contains uninitialized tensor at index %" PRId64
                              " but leading_dims has only %" PRId64 " elements.",
                              index, count);
    }
    return MR_OK;
}

static mr_status concat_elements(mr_kernel_call *call, const concatenation *c, mr_error *error)
{
    mr_shape shape;
    mr_joined join;
    int64_t total = 0, count = c->list->count;
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(count), error));
    int64_t *lengths = mr_tensor_int64s(&call->outputs[1]);
    for (int64_t i = 0; i < count; i++) {
        MR_TRY(concat_rows(call, c, i, &lengths[i], error));
        if (__builtin_add_overflow(total, lengths[i], &total))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the result is too large");
    }
    MR_TRY(mr_shape_prepend(call, total, c->tail, &shape, error));
    MR_TRY(mr_joined_init(call, 0, shape, &join, error));
    int64_t row = total > 0 ? join.sink.count / total : 0;
    for (int64_t i = 0; i < count; i++) mr_joined_add(&join, &c->list->items->at[i], lengths[i] * row);
    return mr_joined_finish(call, &join, error);
}

static mr_status concat(mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    concatenation c;
    MR_TRY(mr_list_at(call, 0, &c.list, error));
    MR_TRY(mr_list_check_dtype(call, c.list, error));
    MR_TRY(concat_given(call, &c, error));
    if (c.list->count == 0 && !mr_shape_is_known(c.tail))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "All except the first dimension must be fully defined when concating an empty tensor "
                              "list. element_shape: %s",
                              mr_shape_text(c.tail, text, sizeof text));
    MR_TRY(concat_found(call, &c, error));
    if (!mr_shape_is_known(c.tail))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to concat list with only uninitialized tensors but "
                              "element_shape_except_first_dim is not fully defined: %s",
                              mr_shape_text(c.tail, text, sizeof text));
    return concat_elements(call, &c, error);
}

/* ---- Dividing ---- */

static mr_status check_rows(const mr_kernel_call *call, const mr_tensor *tensor, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (tensor->shape.rank > 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Tensor must be at least a vector, but saw shape: %s",
                          mr_shape_text(tensor->shape, text, sizeof text));
}

static mr_status check_row_shape(const mr_kernel_call *call, mr_shape element, mr_shape tensor, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_shape row = mr_shape_tail(tensor);
    if (mr_shape_compatible(element, row)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Specified a list with shape %s from a tensor with shape %s",
                          mr_shape_text(element, first, sizeof first), mr_shape_text(row, second, sizeof second));
}

/* Sets elements indices[i], without indices elements i, to the rows of an input. */
static mr_status set_rows(mr_kernel_call *call, mr_list *list, int input, const int32_t *indices, mr_error *error)
{
    mr_tensor source, row;
    MR_TRY(mr_list_own(list, 0, error));
    MR_TRY(mr_members_source(call, input, &source, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < source.shape.dims[0] && status == MR_OK; i++) {
        status = mr_members_rows(&source, i, i + 1, true, &row, error);
        if (status != MR_OK) break;
        status = mr_list_set(call, list, indices ? indices[i] : i, &row, error);
        mr_tensor_deinit(&row);
    }
    mr_tensor_deinit(&source);
    return status;
}

static mr_status from_tensor(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[0];
    mr_list *list;
    mr_shape shape;
    MR_TRY(mr_list_shape_input(call, 1, &shape, error));
    MR_TRY(check_rows(call, tensor, error));
    MR_TRY(check_row_shape(call, shape, tensor->shape, error));
    MR_TRY(mr_list_new(call, 0, tensor->dtype, shape, &list, error));
    MR_TRY(mr_list_resize(list, tensor->shape.dims[0], error));
    return set_rows(call, list, 0, nullptr, error);
}

static mr_status scatter_count(const mr_kernel_call *call, int64_t *count, mr_error *error)
{
    *count = -1;
    if (call->node->input_count < 4) return MR_OK;
    if (call->inputs[3].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_elements must be a scalar");
    *count = mr_tensor_int32s(&call->inputs[3])[0];
    if (*count >= -1) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "TensorListScatter expects num_elements >= -1, found: %" PRId64, *count);
}

static mr_status scatter(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[0];
    const int32_t *indices = mr_tensor_int32s(&call->inputs[1]);
    int64_t index_count = mr_tensor_count(&call->inputs[1]), count, size;
    mr_list *list;
    mr_shape shape;
    MR_TRY(mr_list_shape_input(call, 2, &shape, error));
    MR_TRY(scatter_count(call, &count, error));
    MR_TRY(check_rows(call, tensor, error));
    MR_TRY(check_row_shape(call, shape, tensor->shape, error));
    if (index_count != tensor->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Invalid number of rows in input tensor. Expected: %" PRId64 " Actual: %" PRId64,
                              index_count, tensor->shape.dims[0]);
    size = MR_MAX(count, 0);
    for (int64_t i = 0; i < index_count; i++) {
        if (indices[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Indices in TensorListScatter must all be non-negative.");
        if (count != -1 && indices[i] >= count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "TensorListScatter: Trying to scatter at index %d in list with size %" PRId64,
                                  (int)indices[i], count);
        size = MR_MAX(size, (int64_t)indices[i] + 1);
    }
    MR_TRY(mr_list_new(call, 0, tensor->dtype, shape, &list, error));
    MR_TRY(mr_list_resize(list, size, error));
    return set_rows(call, list, 0, indices, error);
}

static mr_status scatter_into(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[1], *indices = &call->inputs[2];
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_list *from;
    mr_list *list;
    MR_TRY(mr_list_at(call, 0, &from, error));
    if (tensor->dtype != from->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Invalid data types; input tensor type: %s list element_type: %s",
                              mr_dtype_name(tensor->dtype), mr_dtype_name(from->dtype));
    MR_TRY(check_rows(call, tensor, error));
    if (indices->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected indices to be a vector, but received shape: %s",
                              mr_shape_text(indices->shape, text, sizeof text));
    if (indices->shape.dims[0] != tensor->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected len(indices) == tensor.shape[0], but saw: %" PRId64 " vs. %" PRId64,
                              indices->shape.dims[0], tensor->shape.dims[0]);
    int64_t size = from->count;
    for (int64_t i = 0; i < indices->shape.dims[0]; i++) {
        int32_t index = mr_tensor_int32s(indices)[i];
        if (index < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Indices in TensorListScatter must all be non-negative.");
        size = MR_MAX(size, (int64_t)index + 1);
    }
    MR_TRY(mr_list_change(call, &list, error));
    MR_TRY(mr_list_resize(list, size, error));
    return set_rows(call, list, 1, mr_tensor_int32s(indices), error);
}

static mr_status split_parts(mr_kernel_call *call, mr_list *list, mr_error *error)
{
    const int64_t *lengths = mr_tensor_int64s(&call->inputs[2]);
    int64_t rows = call->inputs[0].shape.dims[0], begin = 0;
    mr_tensor source, part;
    MR_TRY(mr_members_source(call, 0, &source, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < list->count && status == MR_OK; i++) {
        int64_t end;
        if (lengths[i] < 0)
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid value in lengths: %" PRId64,
                                    lengths[i]);
        else if (__builtin_add_overflow(begin, lengths[i], &end) || end > rows)
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                    "Attempting to slice [%" PRId64 ", %" PRId64 "] from tensor with length %" PRId64,
                                    begin, end, rows);
        if (status == MR_OK) status = mr_members_rows(&source, begin, end, false, &part, error);
        if (status != MR_OK) break;
        status = mr_list_set(call, list, i, &part, error);
        mr_tensor_deinit(&part);
        begin = end;
    }
    if (status == MR_OK && begin != rows)
        status =
            mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                           "Unused values in tensor. Length of tensor: %" PRId64 " Values used: %" PRId64, rows, begin);
    mr_tensor_deinit(&source);
    return status;
}

static mr_status split(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[0], *lengths = &call->inputs[2];
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_list *list;
    mr_shape shape;
    MR_TRY(mr_list_shape_input(call, 1, &shape, error));
    mr_shape_text(shape, first, sizeof first);
    if (shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorListSplit requires element_shape to be at least of rank 1, but saw: %s", first);
    MR_TRY(check_rows(call, tensor, error));
    if (!mr_shape_compatible(mr_shape_tail(shape), mr_shape_tail(tensor->shape)))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "tensor shape %s is not compatible with element_shape %s",
                              mr_shape_text(tensor->shape, second, sizeof second), first);
    if (lengths->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected lengths to be a vector, received shape: %s",
                              mr_shape_text(lengths->shape, second, sizeof second));
    MR_TRY(mr_list_new(call, 0, tensor->dtype, shape, &list, error));
    MR_TRY(mr_list_resize(list, lengths->shape.dims[0], error));
    return split_parts(call, list, error);
}

static const mr_kernel kernels[] = {
    {.op = "TensorListStack", .run = stack},
    {.op = "TensorListGather", .run = gather},
    {.op = "TensorListConcat", .run = concat},
    {.op = "TensorListConcatV2", .run = concat},
    {.op = "TensorListFromTensor", .run = from_tensor},
    {.op = "TensorListScatter", .run = scatter},
    {.op = "TensorListScatterV2", .run = scatter},
    {.op = "TensorListScatterIntoExistingList", .run = scatter_into},
    {.op = "TensorListSplit", .run = split},
};
const mr_kernel_table mr_state_kernels_tensor_list_join = {kernels, sizeof kernels / sizeof kernels[0]};
