/* Operators that reinterpret, roll or reverse elements, change rows, or add up what tiling and mirroring repeated. */
#include "kernels/accumulate.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

/* The same bytes as another dtype. */
static mr_status bitcast(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_dtype dtype = call->node->output_dtypes[0];
    size_t from = mr_dtype_size(input->dtype), to = mr_dtype_size(dtype);
    mr_shape shape = input->shape;
    bool fits = from > 0 && to > 0;
    if (fits && from < to) {
        fits = shape.rank > 0 && shape.dims[shape.rank - 1] == (int64_t)(to / from);
        if (fits) shape.dims[--shape.rank] = 0;
    } else if (fits && from > to) {
        fits = shape.rank < MR_RANK_MAX;
        if (fits) shape.dims[shape.rank++] = (int64_t)(from / to);
    }
    if (!fits) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Cannot bitcast from %d to %d: shape %s",
                              (int)input->dtype, (int)dtype, mr_shape_text(input->shape, text, sizeof text));
    }
    call->outputs[0] = mr_tensor_ref(input);
    call->outputs[0].dtype = dtype;
    call->outputs[0].shape = shape;
    return MR_OK;
}

/* ---- ReverseSequence ---- */

typedef struct reverse_job {
    const mr_tensor *lengths;
    const char *source;
    char *target;
    size_t bytes; /* of the elements after both dimensions */
    int64_t first, middle, second;
    bool batch_first; /* the batch dimension is before the sequence */
} reverse_job;

/* Rows are numbered by (outer, first, middle, second). */
static void reverse_rows(void *context, int64_t begin, int64_t end)
{
    const reverse_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        int64_t b = row % job->second, rest = row / job->second, m = rest % job->middle;
        rest /= job->middle;
        int64_t a = rest % job->first, outer = rest / job->first;
        int64_t batch = job->batch_first ? a : b, at = job->batch_first ? b : a;
        int64_t length = integer_at(job->lengths, batch);
        int64_t from = at < length ? length - 1 - at : at;
        int64_t source = job->batch_first ? ((outer * job->first + a) * job->middle + m) * job->second + from
                                          : ((outer * job->first + from) * job->middle + m) * job->second + b;
        memcpy(job->target + (size_t)row * job->bytes, job->source + (size_t)source * job->bytes, job->bytes);
    }
}

static mr_status check_sequences(mr_kernel_call *call, int64_t batch, int64_t sequence, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *lengths = &call->inputs[1];
    int rank = input->shape.rank;
    if (lengths->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "seq_lengths must be 1-dim, not %d",
                              lengths->shape.rank);
    if (batch == sequence)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "batch_dim == seq_dim == %" PRId64, sequence);
    if (sequence >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "seq_dim must be < input rank ( %" PRId64 " vs. %d)", sequence, rank);
    if (batch >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "batch_dim must be < input rank ( %" PRId64 " vs. %d)", batch, rank);
    if (batch < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid batch_dim %" PRId64, batch);
    if (sequence < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid seq_dim %" PRId64, sequence);
    int64_t count = mr_tensor_count(lengths);
    if (count != input->shape.dims[batch])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Length of seq_lengths != input.dims(%" PRId64 "), (%" PRId64 " vs. %" PRId64 ")", batch,
                              count, input->shape.dims[batch]);
    for (int64_t i = 0; i < count; i++) {
        int64_t length = integer_at(lengths, i);
        if (length < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "seq_lens(%" PRId64 ") < 0", i);
        if (length > input->shape.dims[sequence])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "seq_lens(%" PRId64 ") > input.dims(%" PRId64 ")", i, sequence);
    }
    return MR_OK;
}

static mr_status reverse_sequence(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t batch = mr_attr_int_or(call->node->attrs, "batch_dim", 0);
    int64_t sequence = mr_attr_int_or(call->node->attrs, "seq_dim", 0);
    mr_sink sink;
    MR_TRY(check_sequences(call, batch, sequence, error));
    MR_TRY(mr_sink_init(call, 0, input->shape, &sink, error));
    int a = (int)MR_MIN(batch, sequence), b = (int)MR_MAX(batch, sequence);
    int64_t inner = mr_dims_product(&input->shape, b + 1, input->shape.rank);
    reverse_job job = {.lengths = &call->inputs[1],
                       .source = input->data,
                       .target = sink.data,
                       .bytes = (size_t)inner * sink.element_size,
                       .first = input->shape.dims[a],
                       .middle = mr_dims_product(&input->shape, a + 1, b),
                       .second = input->shape.dims[b],
                       .batch_first = batch < sequence};
    if (sink.count > 0)
        mr_pool_for(call->device->pool, sink.count / inner, MR_MAX(1, MR_GRAIN / inner), reverse_rows, &job);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* ---- Roll ---- */

/* The shift of each dimension, in [0, size). */
static mr_status read_shifts(mr_kernel_call *call, int64_t *shifts, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    static const char *const names[] = {"", "shift", "axis"};
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 1-D or higher");
    for (int i = 1; i < 3; i++)
        if (call->inputs[i].shape.rank > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s must be a scalar or a 1-D vector. Found: %s", names[i],
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    int64_t count = mr_tensor_count(&call->inputs[1]);
    if (!mr_shape_equal(call->inputs[1].shape, call->inputs[2].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shift and axis must have the same size");
    memset(shifts, 0, sizeof *shifts * MR_RANK_MAX);
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = integer_at(&call->inputs[2], i), shift = integer_at(&call->inputs[1], i);
        if (axis < -shape.rank || axis >= shape.rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis %" PRId64 " is out of range",
                                  axis < 0 ? axis + shape.rank : axis);
        if (axis < 0) axis += shape.rank;
        int64_t size = MR_MAX(shape.dims[axis], 1), by = shift % size;
        if (by < 0) by += size;
        shifts[axis] = shifts[axis] < size - by ? shifts[axis] + by : shifts[axis] - (size - by);
    }
    return MR_OK;
}

/* Each rolled dimension has two pieces: its end moves to the beginning. Every combination of pieces is a copy. */
static mr_status roll(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t shifts[MR_RANK_MAX], strides[MR_RANK_MAX];
    mr_sink sink;
    MR_TRY(read_shifts(call, shifts, error));
    MR_TRY(mr_sink_init(call, 0, input->shape, &sink, error));
    mr_shape_strides(input->shape, strides);
    for (int pieces = 0; sink.count > 0 && pieces < 1 << input->shape.rank; pieces++) {
        mr_copy copy = {.rank = input->shape.rank, .element_size = sink.element_size};
        int64_t from = 0, to = 0;
        bool is_empty = false;
        for (int i = 0; i < input->shape.rank; i++) {
            int64_t size = input->shape.dims[i];
            bool is_end = pieces >> i & 1;
            copy.target_strides[i] = copy.source_strides[i] = strides[i];
            copy.dims[i] = is_end ? shifts[i] : size - shifts[i];
            from += is_end ? (size - shifts[i]) * strides[i] : 0;
            to += is_end ? 0 : shifts[i] * strides[i];
            is_empty = is_empty || copy.dims[i] == 0;
        }
        if (is_empty) continue;
        copy.source = (const char *)input->data + from * (int64_t)sink.element_size;
        copy.target = (char *)sink.data + to * (int64_t)sink.element_size;
        mr_copy_strided(copy, call->device->pool);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* ---- UnravelIndex ---- */

static mr_status check_unravel(mr_kernel_call *call, int64_t *product, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0], *dims = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t limit = dims->dtype == MR_INT32 ? INT32_MAX : INT64_MAX, count = mr_tensor_count(dims);
    if (indices->shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The indices can only be scalar or vector, got \"%s\"",
                              mr_shape_text(indices->shape, text, sizeof text));
    if (dims->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The indices can only be 1-D, got \"%s\"",
                              mr_shape_text(dims->shape, text, sizeof text));
    *product = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t size = integer_at(dims, i);
        if (size == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input dims cannot contain a dim of zero, but dims contains zero at index %" PRId64,
                                  i);
        if (size < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input dims cannot be negative. Got dim = %" PRId64 " at index %" PRId64, size, i);
        if (size > limit / *product)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input dims product is causing integer overflow");
        *product *= size;
    }
    return MR_OK;
}

static void put_integer(mr_tensor *tensor, int64_t i, int64_t value)
{
    if (tensor->dtype == MR_INT64)
        ((int64_t *)tensor->data)[i] = value;
    else
        ((int32_t *)tensor->data)[i] = (int32_t)value;
}

/* A negative index gives coordinates that are negative or 0, as in TensorFlow. */
static mr_status unravel_index(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0], *dims = &call->inputs[1];
    int64_t product, count = mr_tensor_count(indices), rank = mr_tensor_count(dims);
    MR_TRY(check_unravel(call, &product, error));
    for (int64_t i = 0; i < count; i++)
        if (integer_at(indices, i) >= product)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "index is out of bound as with dims");
    MR_TRY(mr_kernel_output(call, 0, indices->shape.rank == 0 ? MR_SHAPE(rank) : MR_SHAPE(rank, count), error));
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = integer_at(indices, i);
        for (int64_t d = rank - 1; d >= 0; d--) {
            int64_t size = integer_at(dims, d);
            put_integer(&call->outputs[0], d * count + i, rest % size);
            rest /= size;
        }
    }
    return MR_OK;
}

/* ---- MirrorPadGrad ---- */

/* Folds one dimension of [outer, size, inner]: the first `before` and the last `after` elements are added to those that
 * they mirror. */
static void fold_dimension(mr_accumulate add, size_t element_size, const char *source, char *target, int64_t outer,
                           int64_t size, int64_t inner, const int64_t *sides, int64_t skip)
{
    int64_t middle = size - sides[0] - sides[1];
    size_t bytes = (size_t)inner * element_size;
    for (int64_t o = 0; o < outer; o++) {
        const char *from = source + (size_t)(o * size) * bytes;
        char *to = target + (size_t)(o * middle) * bytes;
        memcpy(to, from + (size_t)sides[0] * bytes, (size_t)middle * bytes);
        for (int64_t i = 0; i < sides[0]; i++)
            add(to + (size_t)(sides[0] - 1 + skip - i) * bytes, from + (size_t)i * bytes, inner);
        for (int64_t i = 0; i < sides[1]; i++)
            add(to + (size_t)(middle - 1 - skip - i) * bytes, from + (size_t)(sides[0] + middle + i) * bytes, inner);
    }
}

static mr_status check_mirror(mr_kernel_call *call, int64_t skip, int64_t (*sides)[2], mr_shape *shape, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *paddings = &call->inputs[1];
    *shape = input->shape;
    if (paddings->shape.rank != 2 || paddings->shape.dims[1] != 2 || paddings->shape.dims[0] != shape->rank) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The first dimension of paddings must be the rank of inputs%s %s",
                              mr_shape_text(paddings->shape, a, sizeof a), mr_shape_text(*shape, b, sizeof b));
    }
    for (int i = 0; i < shape->rank; i++) {
        int64_t before = sides[i][0] = integer_at(paddings, 2 * i),
                after = sides[i][1] = integer_at(paddings, 2 * i + 1);
        if (before < 0 || after < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Paddings must be non-negative: %" PRId64 ", %" PRId64, before, after);
        int64_t most = shape->dims[i];
        if (before > most || after > most - before)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Total paddings must be less than the input dimension size: dimension %d has %" PRId64
                                  " and %" PRId64,
                                  i, before, after);
        int64_t middle = shape->dims[i] = most - before - after;
        if (before > middle - skip || after > middle - skip) {
            if (skip == 0)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "paddings must be no greater than the output dimension size: %" PRId64
                                      ", %" PRId64 " greater than %" PRId64,
                                      before, after, middle);
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "paddings must be less than the output dimension size: %" PRId64 ", %" PRId64
                                  " not less than %" PRId64,
                                  before, after, middle);
        }
    }
    return MR_OK;
}

static mr_status mirror_pad_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_string mode = mr_attr_string_or(call->node->attrs, "mode", "REFLECT");
    int64_t skip = mr_string_equal(mode, MR_STR("REFLECT")) ? 1 : 0, sides[MR_RANK_MAX][2];
    mr_accumulate add = mr_accumulate_find(MR_ADD, input->dtype);
    mr_shape shape;
    if (add == nullptr)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "%s is not supported", mr_dtype_name(input->dtype));
    MR_TRY(check_mirror(call, skip, sides, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t count = mr_tensor_count(input);
    if (count == 0 || mr_shape_count(shape) == 0) return MR_OK;
    size_t element_size = mr_dtype_size(input->dtype);
    char *buffers[2] = {malloc((size_t)count * element_size), malloc((size_t)count * element_size)};
    mr_status status = MR_OK;
    if (buffers[0] == nullptr || buffers[1] == nullptr) {
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    } else {
        const char *from = input->data;
        mr_shape now = input->shape;
        for (int i = 0; i < now.rank; i++) {
            char *to = buffers[i % 2];
            fold_dimension(add, element_size, from, to, mr_dims_product(&now, 0, i), now.dims[i],
                           mr_dims_product(&now, i + 1, now.rank), sides[i], skip);
            now.dims[i] = shape.dims[i];
            from = to;
        }
        memcpy(call->outputs[0].data, from, mr_tensor_size_bytes(&call->outputs[0]));
    }
    free(buffers[0]);
    free(buffers[1]);
    return status;
}

/* ---- TileGrad ---- */

/* Adds up the repetitions, of which each is copied as a block of the input. */
static mr_status tile_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t multiples[MR_RANK_MAX], strides[MR_RANK_MAX], tiles = 1;
    int count, rank = input->shape.rank;
    mr_accumulate add = mr_accumulate_find(MR_ADD, input->dtype);
    mr_shape shape = input->shape;
    MR_TRY(mr_kernel_ints(call, 1, "multiples", multiples, MR_RANK_MAX, &count, error));
    if (count != rank || add == nullptr)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected multiples argument to be a vector of length %d but got length %d", rank, count);
    for (int i = 0; i < rank; i++) {
        if (multiples[i] < 1 || shape.dims[i] % multiples[i] != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Expected input_dim %d to be divisible by multiples %" PRId64 ", but %" PRId64, i,
                                  multiples[i], shape.dims[i]);
        shape.dims[i] /= multiples[i];
        if (mr_tensor_count(input) > 0) tiles *= multiples[i];
    }
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(input) == 0) return MR_OK;
    mr_tensor *output = &call->outputs[0];
    size_t element_size = mr_dtype_size(input->dtype), bytes = mr_tensor_size_bytes(output);
    char *block = malloc(bytes);
    if (block == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_shape_strides(input->shape, strides);
    for (int64_t tile = 0; tile < tiles; tile++) {
        mr_copy copy = {.rank = rank, .element_size = element_size, .target = tile == 0 ? output->data : block};
        int64_t rest = tile, from = 0;
        mr_shape_strides(shape, copy.target_strides);
        for (int i = rank - 1; i >= 0; i--) {
            copy.dims[i] = shape.dims[i];
            copy.source_strides[i] = strides[i];
            from += rest % multiples[i] * shape.dims[i] * strides[i];
            rest /= multiples[i];
        }
        copy.source = (const char *)input->data + from * (int64_t)element_size;
        mr_copy_strided(copy, call->device->pool);
        if (tile > 0) add(output->data, block, mr_tensor_count(output));
    }
    free(block);
    return MR_OK;
}

/* ---- Rows ---- */

/* InplaceUpdate, InplaceAdd, InplaceSub: v has a row for each element of i. As in TensorFlow, these count modulo the
 * number of rows of x. */
static mr_status change_rows(mr_kernel_call *call, bool replaces, mr_accumulation kind, mr_error *error)
{
    const mr_tensor *x = &call->inputs[0], *i = &call->inputs[1], *v = &call->inputs[2];
    mr_accumulate combine = replaces ? nullptr : mr_accumulate_find(kind, x->dtype);
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (!replaces && (combine == nullptr || x->dtype == MR_BOOL))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unsupported data type: %s",
                              mr_dtype_name(x->dtype));
    if (i->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "i must be a vector. %s",
                              mr_shape_text(i->shape, a, sizeof a));
    if (x->shape.rank != v->shape.rank || x->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "x and v shape doesn't match (ranks differ): %s vs. %s",
                              mr_shape_text(x->shape, a, sizeof a), mr_shape_text(v->shape, b, sizeof b));
    for (int d = 1; d < x->shape.rank; d++)
        if (x->shape.dims[d] != v->shape.dims[d])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "x and v shape doesn't match at index %d : %s vs. %s", d,
                                  mr_shape_text(x->shape, a, sizeof a), mr_shape_text(v->shape, b, sizeof b));
    if (i->shape.dims[0] != v->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "i and x shape doesn't match at index 0: %s vs. %s", mr_shape_text(i->shape, a, sizeof a),
                              mr_shape_text(v->shape, b, sizeof b));
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, x->shape, &sink, error));
    int64_t inner = mr_dims_product(&x->shape, 1, x->shape.rank), size = x->shape.dims[0], count = i->shape.dims[0];
    size_t bytes = (size_t)inner * sink.element_size;
    if (sink.count > 0) memcpy(sink.data, x->data, (size_t)sink.count * sink.element_size);
    for (int64_t j = 0; sink.count > 0 && j < count; j++) {
        int64_t row = integer_at(i, j) % size;
        char *target = (char *)sink.data + (size_t)(row < 0 ? row + size : row) * bytes;
        const char *source = (const char *)v->data + (size_t)j * bytes;
        if (combine != nullptr)
            combine(target, source, inner);
        else
            memcpy(target, source, bytes);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status inplace_update(mr_kernel_call *call, mr_error *error)
{
    return change_rows(call, true, MR_ADD, error);
}

static mr_status inplace_add(mr_kernel_call *call, mr_error *error)
{
    return change_rows(call, false, MR_ADD, error);
}

static mr_status inplace_sub(mr_kernel_call *call, mr_error *error)
{
    return change_rows(call, false, MR_SUBTRACT, error);
}

static mr_status deep_copy(mr_kernel_call *call, mr_error *error)
{
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, call->inputs[0].shape, &sink, error));
    if (sink.count > 0) memcpy(sink.data, call->inputs[0].data, (size_t)sink.count * sink.element_size);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* The elements are zero in any case: unspecified ones could be data of another computation. */
static mr_status empty(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    mr_sink sink;
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    if (sink.count > 0 && !sink.is_string) memset(sink.data, 0, (size_t)sink.count * sink.element_size);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status parallel_concat(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape, part;
    mr_sink sink;
    MR_TRY(mr_attr_get_shape(call->node->attrs, "shape", &shape, error));
    if (shape.rank < 1 || shape.dims[0] != call->node->input_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "attr shape does not have %d rows, one for each value", call->node->input_count);
    part = shape;
    part.dims[0] = 1;
    for (int i = 0; i < call->node->input_count; i++)
        if (!mr_shape_equal(call->inputs[i].shape, part)) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "value %d has shape %s, expected %s", i,
                                  mr_shape_text(call->inputs[i].shape, a, sizeof a), mr_shape_text(part, b, sizeof b));
        }
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    size_t bytes = (size_t)mr_dims_product(&shape, 1, shape.rank) * sink.element_size;
    for (int i = 0; sink.count > 0 && i < call->node->input_count; i++)
        memcpy((char *)sink.data + (size_t)i * bytes, call->inputs[i].data, bytes);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static const mr_kernel kernels[] = {
    {.op = "Bitcast", .run = bitcast},
    {.op = "ReverseSequence", .run = reverse_sequence, .host_inputs = 1 << 1},
    {.op = "Roll", .run = roll, .host_inputs = 3 << 1},
    {.op = "UnravelIndex", .run = unravel_index},
    {.op = "MirrorPadGrad", .run = mirror_pad_grad, .host_inputs = 1 << 1},
    {.op = "TileGrad", .run = tile_grad, .host_inputs = 1 << 1},
    {.op = "InplaceUpdate", .run = inplace_update},
    {.op = "InplaceAdd", .run = inplace_add},
    {.op = "InplaceSub", .run = inplace_sub},
    {.op = "DeepCopy", .run = deep_copy},
    {.op = "Empty", .run = empty, .host_inputs = 1 << 0},
    {.op = "ParallelConcat", .run = parallel_concat},
};
MR_KERNEL_FAMILY(array_rearrange);
