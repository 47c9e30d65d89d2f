/* Joining strings: StringJoin, ReduceJoin, UnsortedSegmentJoin, StringNGrams. */
#include "kernels/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mr_status string_join(mr_kernel_call *call, mr_error *error)
{
    mr_string separator = mr_attr_string_or(call->node->attrs, "separator", "");
    mr_shape shape = MR_SCALAR;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    for (int i = 0; i < call->node->input_count; i++) {
        mr_shape one = call->inputs[i].shape;
        if (one.rank == 0) continue;
        if (shape.rank == 0)
            shape = one;
        else if (!mr_shape_equal(shape, one))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input shapes do not match: %s vs. %s",
                                  mr_shape_text(shape, a, sizeof a), mr_shape_text(one, b, sizeof b));
    }
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(mr_text_begin(call, 0, shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        for (int j = 0; j < call->node->input_count; j++) {
            if (j > 0) mr_text_add_string(&text, separator);
            mr_text_add_string(&text, mr_tensor_strings(&call->inputs[j])[call->inputs[j].shape.rank == 0 ? 0 : i]);
        }
        status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

/* ---- ReduceJoin ---- */

typedef struct reduction {
    int kept_rank, reduced_rank;
    int kept[MR_RANK_MAX], reduced[MR_RANK_MAX]; /* dimensions; the last one varies fastest */
    int64_t strides[MR_RANK_MAX];
    mr_shape input, output;
} reduction;

static mr_status read_axes(mr_kernel_call *call, reduction *r, mr_error *error)
{
    const mr_tensor *axes = &call->inputs[1];
    bool keep = mr_attr_bool_or(call->node->attrs, "keep_dims", false), is_reduced[MR_RANK_MAX] = {false};
    int rank = call->inputs[0].shape.rank;
    *r = (reduction){.input = call->inputs[0].shape};
    /* The first of the given dimensions varies fastest. */
    for (int64_t i = mr_tensor_count(axes) - 1; i >= 0; i--) {
        int32_t given = mr_tensor_int32s(axes)[i];
        if (given < -rank || given >= rank)
            return mr_kernel_fail(call->node, error, MR_OUT_OF_RANGE,
                                  "Invalid reduction dimension %d for input with %d dimension(s)", given, rank);
        int axis = given < 0 ? given + rank : given;
        if (is_reduced[axis])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Duplicate reduction dimension %d", axis);
        is_reduced[axis] = true;
        r->reduced[r->reduced_rank++] = axis;
    }
    for (int i = 0; i < rank; i++) {
        if (!is_reduced[i]) r->kept[r->kept_rank++] = i;
        if (!is_reduced[i] || keep) r->output.dims[r->output.rank++] = is_reduced[i] ? 1 : r->input.dims[i];
    }
    mr_shape_strides(r->input, r->strides);
    return MR_OK;
}

static int64_t input_offset(const reduction *r, const int *dimensions, int rank, int64_t index)
{
    int64_t offset = 0;
    for (int i = rank - 1; i >= 0; i--) {
        offset += r->strides[dimensions[i]] * (index % r->input.dims[dimensions[i]]);
        index /= r->input.dims[dimensions[i]];
    }
    return offset;
}

static mr_status reduce_join(mr_kernel_call *call, mr_error *error)
{
    mr_string separator = mr_attr_string_or(call->node->attrs, "separator", "");
    const mr_string *strings = mr_tensor_strings(&call->inputs[0]);
    reduction r;
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(read_axes(call, &r, error));
    MR_TRY(mr_text_begin(call, 0, r.output, &output, error));
    mr_status status = MR_OK;
    int64_t joined = 1;
    for (int i = 0; i < r.reduced_rank; i++)
        if (__builtin_mul_overflow(joined, r.input.dims[r.reduced[i]], &joined)) joined = 0;
    if (mr_shape_count(r.input) == 0) joined = 0;
    for (int64_t i = 0; i < output.count && joined > 0 && status == MR_OK; i++) {
        int64_t start = input_offset(&r, r.kept, r.kept_rank, i);
        for (int64_t j = 0; j < joined; j++) {
            if (j > 0) mr_text_add_string(&text, separator);
            mr_text_add_string(&text, strings[start + input_offset(&r, r.reduced, r.reduced_rank, j)]);
        }
        status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

/* ---- UnsortedSegmentJoin ---- */

static int64_t id_at(const mr_tensor *ids, int64_t i)
{
    return ids->dtype == MR_INT64 ? mr_tensor_int64s(ids)[i] : mr_tensor_int32s(ids)[i];
}

static mr_status check_segments(mr_kernel_call *call, int64_t *segments, mr_shape *shape, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *ids = &call->inputs[1];
    MR_TRY(mr_kernel_int(call, 2, "num_segments", segments, error));
    if (*segments < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Number of segments must be non-negative but got %" PRId64, *segments);
    if (ids->shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Segment_id cannot have rank 0");
    if (ids->shape.rank > input->shape.rank)
        return mr_kernel_fail(call->node, error, MR_OUT_OF_RANGE,
                              "Invalid segment_id rank %d for input with %d dimension(s)", ids->shape.rank,
                              input->shape.rank);
    *shape = MR_SHAPE(*segments);
    for (int i = 0; i < input->shape.rank; i++) {
        if (i >= ids->shape.rank)
            shape->dims[shape->rank++] = input->shape.dims[i];
        else if (ids->shape.dims[i] != input->shape.dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Segment dimension is %" PRId64 " while input dimension is %d in rank %d",
                                  ids->shape.dims[i], input->shape.rank, i);
    }
    for (int64_t i = 0, count = mr_tensor_count(ids); i < count; i++)
        if (id_at(ids, i) < 0 || id_at(ids, i) >= *segments)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "segment_ids are not allowed to exceed num_segments or to have negative values.");
    return MR_OK;
}

/* The inputs of each output, in order, as a list: the first input of an output, and the next one of the same output. */
static mr_status join_segments(mr_kernel_call *call, int64_t width, const mr_tensor *ids, mr_text_output *output,
                               int64_t *first, int64_t *last, int64_t *next, mr_error *error)
{
    mr_string separator = mr_attr_string_or(call->node->attrs, "separator", "");
    const mr_string *strings = mr_tensor_strings(&call->inputs[0]);
    int64_t rows = mr_tensor_count(ids);
    mr_text_builder text = {0};
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output->count; i++) first[i] = last[i] = -1;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < width; column++) {
            int64_t target = id_at(ids, row) * width + column, source = row * width + column;
            next[source] = -1;
            if (first[target] < 0)
                first[target] = source;
            else
                next[last[target]] = source;
            last[target] = source;
        }
    for (int64_t i = 0; i < output->count && status == MR_OK; i++) {
        for (int64_t at = first[i]; at >= 0; at = next[at]) {
            if (text.size_bytes > 0) mr_text_add_string(&text, separator);
            mr_text_add_string(&text, strings[at]);
        }
        status = mr_text_put(output, i, &text, error);
    }
    mr_text_deinit(&text);
    return status;
}

static mr_status unsorted_segment_join(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *ids = &call->inputs[1];
    int64_t segments;
    mr_shape shape;
    mr_text_output output;
    MR_TRY(check_segments(call, &segments, &shape, error));
    MR_TRY(mr_text_begin(call, 0, shape, &output, error));
    int64_t width = mr_dims_product(&call->inputs[0].shape, ids->shape.rank, call->inputs[0].shape.rank);
    size_t inputs = (size_t)mr_tensor_count(&call->inputs[0]);
    int64_t *first = calloc((size_t)output.count + 1, sizeof *first);
    int64_t *last = calloc((size_t)output.count + 1, sizeof *last);
    int64_t *next = calloc(inputs + 1, sizeof *next);
    mr_status status = first && last && next ? MR_OK : mr_fail_memory(error, inputs * sizeof *next);
    if (status == MR_OK && inputs > 0) status = join_segments(call, width, ids, &output, first, last, next, error);
    free(first);
    free(last);
    free(next);
    return mr_text_end(call, &output, status, error);
}

/* ---- StringNGrams ---- */

typedef struct ngrams {
    mr_string separator, left_pad, right_pad;
    const mr_attr *widths;
    int64_t pad_width;
    bool preserve_short;
} ngrams;

static int64_t pad_width(const ngrams *n, int64_t width)
{
    return MR_MIN(n->pad_width < 0 ? width - 1 : n->pad_width, width - 1);
}

/* Clamped, so that sums of several do not overflow. */
static int64_t ngram_count(const ngrams *n, int64_t length, int64_t width)
{
    int64_t count = length + 2 * pad_width(n, width) - width + 1;
    return count < 0 ? 0 : count;
}

static mr_status prepare_ngrams(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    ngrams *n = prepared;
    n->separator = mr_attr_string_or(node->attrs, "separator", "");
    n->left_pad = mr_attr_string_or(node->attrs, "left_pad", "");
    n->right_pad = mr_attr_string_or(node->attrs, "right_pad", "");
    n->widths = mr_attrs_find(node->attrs, "ngram_widths");
    n->pad_width = mr_attr_int_or(node->attrs, "pad_width", 0);
    n->preserve_short = mr_attr_bool_or(node->attrs, "preserve_short_sequences", false);
    for (int32_t i = 0; n->widths && i < n->widths->count; i++) {
        int64_t width = n->widths->values[i].integer;
        if (width <= 0)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "ngram_widths must contain positive values");
        if (width > INT32_MAX) return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "ngram_widths is too large");
    }
    if (n->pad_width > INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "pad_width is %" PRId64, n->pad_width);
    return MR_OK;
}

static mr_status check_splits(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *splits = &call->inputs[1];
    int64_t size = mr_tensor_count(&call->inputs[0]), count = mr_tensor_count(splits), before = 0;
    if (call->inputs[0].shape.rank != 1 || splits->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "data and data_splits must be vectors");
    if (count > 0 && id_at(splits, 0) != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "First split value must be 0, got %" PRId64,
                              id_at(splits, 0));
    for (int64_t i = 1; i < count; i++) {
        int64_t split = id_at(splits, i);
        if (split < before || split > size)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Invalid split value %" PRId64 ", must be in [%" PRId64 ", %" PRId64 "]", split,
                                  before, size);
        before = split;
    }
    if (count > 0 && before != size)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Last split value must be data size. Expected %" PRId64 ", got %" PRId64, size, before);
    return MR_OK;
}

static mr_status add_times(mr_text_builder *text, mr_string word, mr_string separator, int64_t count, mr_error *error)
{
    if (word.size_bytes + separator.size_bytes == 0) return MR_OK;
    for (int64_t i = 0; i < count && !text->failed; i++) {
        if (text->size_bytes > INT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "an n-gram is too large");
        mr_text_add_string(text, word);
        mr_text_add_string(text, separator);
    }
    return MR_OK;
}

/* Writes n-gram `index` of `count`. */
static mr_status put_ngram(const ngrams *n, const mr_string *data, int64_t index, int64_t count, int64_t width,
                           mr_text_builder *text, mr_error *error)
{
    int64_t pad = pad_width(n, width), left = MR_MAX(0, pad - index), right = MR_MAX(0, pad - (count - index - 1));
    int64_t tokens = width - (left + right), start = left > 0 ? 0 : index - pad;
    MR_TRY(add_times(text, n->left_pad, n->separator, left, error));
    for (int64_t i = 0; i < tokens - 1; i++) {
        mr_text_add_string(text, data[start + i]);
        mr_text_add_string(text, n->separator);
    }
    if (tokens > 0) mr_text_add_string(text, data[start + tokens - 1]);
    if (tokens > 0 && right > 0) mr_text_add_string(text, n->separator);
    MR_TRY(add_times(text, n->right_pad, n->separator, right - 1, error));
    if (right > 0 || tokens <= 0) mr_text_add_string(text, n->right_pad);
    return MR_OK;
}

/* The n-grams of one row, from element *at of the output. */
static mr_status put_row(const ngrams *n, mr_kernel_call *call, const mr_string *data, int64_t length,
                         mr_text_output *output, int64_t *at, mr_text_builder *text, mr_error *error)
{
    int64_t before = *at;
    for (int32_t i = 0; n->widths && i < n->widths->count; i++) {
        int64_t width = n->widths->values[i].integer, count = ngram_count(n, length, width);
        for (int64_t j = 0; j < count; j++) {
            MR_TRY(put_ngram(n, data, j, count, width, text, error));
            MR_TRY(mr_text_put(output, (*at)++, text, error));
        }
    }
    if (!n->preserve_short || *at != before || length == 0) return MR_OK;
    if (n->pad_width < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not "
                              "provided, got %" PRId64,
                              n->pad_width);
    MR_TRY(put_ngram(n, data, 0, 1, length + 2 * n->pad_width, text, error));
    return mr_text_put(output, (*at)++, text, error);
}

/* The number of n-grams of all rows, and their splits. */
static mr_status put_splits(const ngrams *n, mr_kernel_call *call, int64_t *total, mr_error *error)
{
    const mr_tensor *splits = &call->inputs[1];
    int64_t count = mr_tensor_count(splits);
    bool is_empty = mr_tensor_count(&call->inputs[0]) == 0;
    MR_TRY(mr_kernel_output(call, 1, splits->shape, error));
    mr_tensor *output = &call->outputs[1];
    *total = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = i > 0 ? id_at(splits, i) - id_at(splits, i - 1) : 0, row = 0;
        for (int32_t j = 0; i > 0 && !is_empty && n->widths && j < n->widths->count; j++)
            row += ngram_count(n, length, n->widths->values[j].integer);
        if (n->preserve_short && length > 0 && row == 0) row = 1;
        *total += row;
        if (*total > INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are too many n-grams");
        if (output->dtype == MR_INT64)
            mr_tensor_int64s(output)[i] = *total;
        else
            mr_tensor_int32s(output)[i] = (int32_t)*total;
    }
    return MR_OK;
}

static mr_status string_ngrams(mr_kernel_call *call, mr_error *error)
{
    const ngrams *n = call->prepared;
    const mr_tensor *splits = &call->inputs[1];
    int64_t total, at = 0;
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(check_splits(call, error));
    MR_TRY(put_splits(n, call, &total, error));
    MR_TRY(mr_text_begin(call, 0, MR_SHAPE(total), &output, error));
    const mr_string *data = mr_tensor_strings(&call->inputs[0]);
    mr_status status = MR_OK;
    bool is_empty = mr_tensor_count(&call->inputs[0]) == 0;
    for (int64_t i = 1; i < mr_tensor_count(splits) && !is_empty && status == MR_OK; i++) {
        int64_t begin = id_at(splits, i - 1);
        status = put_row(n, call, data + begin, id_at(splits, i) - begin, &output, &at, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

static const mr_kernel kernels[] = {
    {.op = "StringJoin", .run = string_join},
    {.op = "ReduceJoin", .run = reduce_join},
    {.op = "UnsortedSegmentJoin", .run = unsorted_segment_join},
    {.op = "StringNGrams", .run = string_ngrams, .prepared_size_bytes = sizeof(ngrams), .prepare = prepare_ngrams},
};
MR_KERNEL_FAMILY(string_join);
