/* Elementwise operators: broadcasting without index arithmetic for each element. Dims that are contiguous in both
 * operands are merged, so that most calls process one long row; otherwise the rows are those of the last merged dim. A
 * short repeated row (a bias) is first copied several times into a scratch tile. */
#include "kernels/elementwise.h"
#include "base/halves.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

const float mr_one = 1;

constexpr int64_t HALF_CHUNK = 512;

typedef struct unary_job {
    mr_unary_loop loop;
    mr_dtype dtype, out_dtype;
    size_t size, out_size;
    char *target;
    const char *source;
    bool through_float;
} unary_job;

static void unary_piece(void *context, int64_t begin, int64_t end)
{
    const unary_job *job = context;
    char *target = job->target + (size_t)begin * job->out_size;
    const char *source = job->source + (size_t)begin * job->size;
    if (!job->through_float) {
        job->loop(target, source, end - begin);
        return;
    }
    float chunk[HALF_CHUNK];
    for (int64_t at = 0; at < end - begin; at += HALF_CHUNK) {
        int64_t count = MR_MIN(HALF_CHUNK, end - begin - at);
        mr_halves_to_floats(chunk, (const uint16_t *)source + at, count, job->dtype);
        if (mr_is_half(job->out_dtype)) {
            job->loop(chunk, chunk, count);
            mr_floats_to_halves((uint16_t *)target + at, chunk, count, job->out_dtype);
        } else {
            job->loop(target + (size_t)at * job->out_size, chunk, count);
        }
    }
}

mr_status mr_unary_run(mr_kernel_call *call, const mr_unary *unary, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    unary_job job = {.dtype = input->dtype, .out_dtype = call->node->output_dtypes[0]};
    job.through_float = mr_is_half(input->dtype) && unary->loops[input->dtype] == nullptr;
    mr_dtype served = job.through_float ? MR_FLOAT : input->dtype;
    job.loop =
        served == MR_FLOAT && unary->float_levels != nullptr ? unary->float_levels[mr_cpu()] : unary->loops[served];
    if (job.loop == nullptr) return mr_kernel_unsupported(call->node, error);
    job.size = mr_dtype_size(job.dtype);
    job.out_size = mr_dtype_size(job.out_dtype);
    job.source = input->data; /* before forwarding, which may take over the input's reference */
    int64_t count = mr_tensor_count(input);
    if (job.size == job.out_size)
        MR_TRY(mr_kernel_forward(call, 0, 0, input->shape, error));
    else
        MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, count, MR_GRAIN, unary_piece, &job);
    return MR_OK;
}

mr_status mr_kernel_broadcast(const mr_kernel_call *call, mr_shape a, mr_shape b, mr_shape *result, mr_error *error)
{
    *result = (mr_shape){.rank = MR_MAX(a.rank, b.rank)};
    for (int i = 0; i < result->rank; i++) {
        int ai = i - (result->rank - a.rank), bi = i - (result->rank - b.rank);
        int64_t x = ai < 0 ? 1 : a.dims[ai], y = bi < 0 ? 1 : b.dims[bi];
        if (x != y && x != 1 && y != 1) {
            char a_text[MR_SHAPE_TEXT_SIZE], b_text[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                                  mr_shape_text(a, a_text, sizeof a_text), mr_shape_text(b, b_text, sizeof b_text));
        }
        result->dims[i] = x == 1 ? y : x;
    }
    if (mr_shape_count(*result) < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the broadcast shape is too large");
    return MR_OK;
}

void mr_broadcast_strides(mr_shape shape, mr_shape wide, int64_t strides[MR_RANK_MAX])
{
    int lead = wide.rank - shape.rank;
    int64_t stride = 1;
    assert(lead >= 0);
    memset(strides, 0, sizeof(int64_t) * MR_RANK_MAX);
    if (mr_shape_count(shape) <= 0) return;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[lead + i] = shape.dims[i] == 1 ? 0 : stride;
        stride *= shape.dims[i];
    }
}

typedef struct binary_job {
    mr_binary_loop loop;
    mr_dtype dtype, out_dtype;
    bool through_float;
    size_t size, out_size;
    int rank;
    int64_t dims[MR_RANK_MAX], a_strides[MR_RANK_MAX], b_strides[MR_RANK_MAX];
    int64_t row_blocks; /* number of pieces of one long row */
    int tile_operand;   /* 0: none; 1: a is a repeated short row, 2: b is */
    char *target;
    const char *a, *b;
} binary_job;

constexpr size_t TILE_BYTES = 16384;

static void join_dims(binary_job *job, mr_shape a, mr_shape b, mr_shape wide)
{
    int64_t as[MR_RANK_MAX], bs[MR_RANK_MAX];
    mr_broadcast_strides(a, wide, as);
    mr_broadcast_strides(b, wide, bs);
    int rank = 0;
    assert(mr_shape_count(wide) > 0);
    for (int i = 0; i < wide.rank; i++) {
        if (wide.dims[i] == 1) continue;
        int p = rank - 1;
        if (rank > 0 && job->a_strides[p] == as[i] * wide.dims[i] && job->b_strides[p] == bs[i] * wide.dims[i]) {
            job->dims[p] *= wide.dims[i];
        } else {
            p = rank++;
            job->dims[p] = wide.dims[i];
        }
        job->a_strides[p] = as[i];
        job->b_strides[p] = bs[i];
    }
    if (rank == 0) {
        rank = 1;
        job->dims[0] = 1;
        job->a_strides[0] = job->b_strides[0] = 1;
    }
    job->rank = rank;
}

static void half_row(const binary_job *job, char *target, const char *a, const char *b, int64_t count,
                     mr_operands operands)
{
    float ac[HALF_CHUNK], bc[HALF_CHUNK];
    for (int64_t at = 0; at < count; at += HALF_CHUNK) {
        int64_t n = MR_MIN(HALF_CHUNK, count - at);
        mr_halves_to_floats(ac, (const uint16_t *)a + (operands == MR_A_SCALAR ? 0 : at),
                            operands == MR_A_SCALAR ? 1 : n, job->dtype);
        mr_halves_to_floats(bc, (const uint16_t *)b + (operands == MR_B_SCALAR ? 0 : at),
                            operands == MR_B_SCALAR ? 1 : n, job->dtype);
        if (mr_is_half(job->out_dtype)) {
            float rc[HALF_CHUNK];
            job->loop(rc, ac, bc, n, operands);
            mr_floats_to_halves((uint16_t *)target + at, rc, n, job->out_dtype);
        } else {
            job->loop(target + (size_t)at * job->out_size, ac, bc, n, operands);
        }
    }
}

static void binary_row(const binary_job *job, char *target, const char *a, const char *b, int64_t count,
                       mr_operands operands)
{
    if (job->through_float)
        half_row(job, target, a, b, count, operands);
    else
        job->loop(target, a, b, count, operands);
}

static void binary_rows(void *context, int64_t begin, int64_t end)
{
    const binary_job *job = context;
    int last = job->rank - 1;
    int64_t inner = job->dims[last], as = job->a_strides[last], bs = job->b_strides[last];
    int64_t block = (inner + job->row_blocks - 1) / job->row_blocks;
    mr_operands operands = as == 0 ? MR_A_SCALAR : bs == 0 ? MR_B_SCALAR : MR_BOTH_ROWS;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / job->row_blocks, at = unit % job->row_blocks * block, rest = row, ao = 0, bo = 0;
        int64_t count = MR_MIN(block, inner - at);
        if (count <= 0) continue;
        for (int i = last - 1; i >= 0; i--) {
            int64_t index = rest % job->dims[i];
            rest /= job->dims[i];
            ao += index * job->a_strides[i];
            bo += index * job->b_strides[i];
        }
        binary_row(job, job->target + (size_t)(row * inner + at) * job->out_size,
                   job->a + (size_t)(ao + at * as) * job->size, job->b + (size_t)(bo + at * bs) * job->size, count,
                   operands);
    }
}

/* Processes rows [begin, end) of a [rows, inner] operand with an [inner] operand. */
static void binary_tile(void *context, int64_t begin, int64_t end)
{
    const binary_job *job = context;
    alignas(64) char tile[TILE_BYTES];
    int64_t inner = job->dims[1];
    size_t row_bytes = (size_t)inner * job->size;
    int64_t tile_rows = MR_MIN((int64_t)(TILE_BYTES / row_bytes), end - begin);
    const char *repeated = job->tile_operand == 1 ? job->a : job->b;
    assert(tile_rows > 0);
    for (int64_t r = 0; r < tile_rows; r++) memcpy(tile + (size_t)r * row_bytes, repeated, row_bytes);
    for (int64_t row = begin; row < end; row += tile_rows) {
        int64_t rows = MR_MIN(tile_rows, end - row);
        const char *row_operand = (job->tile_operand == 1 ? job->b : job->a) + (size_t)row * row_bytes;
        char *target = job->target + (size_t)(row * inner) * job->out_size;
        binary_row(job, target, job->tile_operand == 1 ? tile : row_operand,
                   job->tile_operand == 1 ? row_operand : tile, rows * inner, MR_BOTH_ROWS);
    }
}

#define SCAN(dtype, type, suffix)                                                                                      \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            zero |= ((const type *)b->data)[i] == 0;                                                                   \
            negative |= (double)((const type *)b->data)[i] < 0;                                                        \
        }                                                                                                              \
        break;

static mr_status check_divisor(mr_kernel_call *call, const mr_binary *binary, mr_error *error)
{
    const mr_tensor *b = &call->inputs[1];
    int64_t count = mr_tensor_count(b);
    bool zero = false, negative = false;
    switch (b->dtype) {
        MR_EACH_NUMBER(SCAN)
    default:
        return MR_OK;
    }
    if (b->dtype == MR_FLOAT || b->dtype == MR_DOUBLE) return MR_OK;
    if (binary->nonzero_b && zero)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Integer division by zero");
    if (binary->nonnegative_b && negative)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Integers to negative integer powers are not allowed");
    return MR_OK;
}

bool mr_unary_describe(const mr_unary *unary, mr_dtype dtype, mr_elementwise *elementwise)
{
    mr_unary_loop loop = dtype == MR_FLOAT && unary->float_levels ? unary->float_levels[mr_cpu()] : unary->loops[dtype];
    *elementwise = (mr_elementwise){.unary = loop};
    return loop != nullptr;
}

bool mr_binary_describe(const mr_binary *binary, mr_dtype dtype, mr_elementwise *elementwise)
{
    bool is_checked = (binary->nonzero_b || binary->nonnegative_b) && dtype != MR_FLOAT && dtype != MR_DOUBLE;
    mr_binary_loop loop =
        dtype == MR_FLOAT && binary->float_levels ? binary->float_levels[mr_cpu()] : binary->loops[dtype];
    *elementwise = (mr_elementwise){.binary = loop, .rule = binary->rule};
    return loop != nullptr && !is_checked;
}

mr_status mr_bias_check(const mr_kernel_call *call, int channel, bool is_last, mr_error *error)
{
    const mr_shape value = call->inputs[0].shape, bias = call->inputs[1].shape;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (value.rank >= 2 && bias.rank == 1 && bias.dims[0] == value.dims[channel]) return MR_OK;
    mr_shape_text(bias, a, sizeof a);
    mr_shape_text(value, b, sizeof b);
    if (value.rank < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input tensor must be at least 2D: %s", b);
    if (bias.rank != 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Biases must be 1D: %s", a);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Must provide as many biases as the %s dimension of the input tensor: %s vs. %s",
                          is_last ? "last" : "channel", a, b);
}

mr_status mr_binary_shape(const mr_kernel_call *call, mr_operand_rule rule, mr_shape *b, mr_shape *result,
                          mr_error *error)
{
    const mr_shape a = call->inputs[0].shape;
    *b = call->inputs[1].shape;
    *result = a;
    switch (rule) {
    case MR_OPERANDS_SAME_SHAPE:
        return mr_kernel_same_shape(call, 0, 1, error);
    case MR_OPERANDS_SAME_COUNT:
        *b = a;
        return mr_kernel_same_count(call, 0, 1, error);
    case MR_OPERANDS_BIAS:
        return mr_bias_check(call, a.rank - 1, true, error);
    case MR_OPERANDS_BROADCAST:
        return mr_kernel_broadcast(call, a, *b, result, error);
    }
    unreachable();
}

mr_status mr_binary_run(mr_kernel_call *call, const mr_binary *binary, mr_error *error)
{
    const mr_tensor *a = &call->inputs[0], *b = &call->inputs[1];
    mr_shape a_shape = a->shape, b_shape, wide;
    MR_TRY(mr_binary_shape(call, binary->rule, &b_shape, &wide, error));
    binary_job job = {.dtype = a->dtype, .out_dtype = call->node->output_dtypes[0], .row_blocks = 1};
    job.through_float = mr_is_half(a->dtype) && binary->loops[a->dtype] == nullptr;
    mr_dtype served = job.through_float ? MR_FLOAT : a->dtype;
    job.loop =
        served == MR_FLOAT && binary->float_levels != nullptr ? binary->float_levels[mr_cpu()] : binary->loops[served];
    if (job.loop == nullptr || a->dtype != b->dtype) return mr_kernel_unsupported(call->node, error);
    const int64_t count = mr_shape_count(wide);
    if ((binary->nonzero_b || binary->nonnegative_b) && count > 0) MR_TRY(check_divisor(call, binary, error));
    job.size = mr_dtype_size(job.dtype);
    job.out_size = mr_dtype_size(job.out_dtype);
    bool same_size = job.size == job.out_size;
    /* Pointers are read before forwarding, which may move a reference out of inputs[]. */
    job.a = a->data;
    job.b = b->data;
    bool use_a = same_size && mr_shape_equal(a_shape, wide) && call->may_reuse != nullptr && call->may_reuse[0];
    bool use_b = same_size && mr_shape_equal(b_shape, wide) && call->may_reuse != nullptr && call->may_reuse[1];
    if (use_a || use_b)
        MR_TRY(mr_kernel_forward(call, 0, use_a ? 0 : 1, wide, error));
    else
        MR_TRY(mr_kernel_output(call, 0, wide, error));
    job.target = call->outputs[0].data;
    if (count == 0) return MR_OK;
    join_dims(&job, a_shape, b_shape, wide);
    int last = job.rank - 1;
    int64_t inner = job.dims[last];
    if (job.rank == 2 && (size_t)inner * job.size <= TILE_BYTES / 4 && inner > 1) {
        if (job.a_strides[0] == inner && job.a_strides[1] == 1 && job.b_strides[0] == 0 && job.b_strides[1] == 1)
            job.tile_operand = 2;
        if (job.b_strides[0] == inner && job.b_strides[1] == 1 && job.a_strides[0] == 0 && job.a_strides[1] == 1)
            job.tile_operand = 1;
    }
    if (job.tile_operand) {
        mr_pool_for(call->device->pool, job.dims[0], MR_MAX(1, MR_GRAIN / inner), binary_tile, &job);
        return MR_OK;
    }
    job.row_blocks = MR_MAX(1, inner / MR_GRAIN);
    mr_pool_for(call->device->pool, count / inner * job.row_blocks, MR_MAX(1, MR_GRAIN / inner), binary_rows, &job);
    return MR_OK;
}
