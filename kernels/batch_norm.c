/* Batch normalisation of floats. Memory is what it costs, so each direction reads its tensors twice and no more:
 *
 * forward   statistics, then y = (x - mean) · factor + offset
 * gradient  the sums of dy and of dy · (x - mean), then dx
 *
 * A piece of rows takes each of its blocks, small enough for the first cache, through two sweeps: its mean, then its sum
 * of squares about that mean. Blocks and pieces are joined by Chan's formula in doubles, in order, so a mean far from zero
 * costs no digits and any number of threads gives the same bits. */
#include "kernels/vector.h"
#include <inttypes.h>
#include <math.h>

/* NHWC: rows of channels, one run. NCHW: for each image and channel a row of `inner` elements. */
typedef struct norm {
    int64_t rows, channels, inner; /* inner: 1 for NHWC */
    int64_t piece_rows, pieces;
    const float *x, *dy;
    float *target;
    const float *mean, *factor, *offset; /* by channel; for the gradient see apply_grad */
    double *partials;                    /* [pieces][2][channels] */
    double *counts;                      /* [pieces] */
} norm;

constexpr int64_t BLOCK_FLOATS = 4096, CHANNELS_BLOCK = 64;

/* ---- NHWC ---- */

/* Mean and centred sum of squares of `rows` rows, channels [0, width) with width <= CHANNELS_BLOCK. */
MR_INLINE void block_moments(const float *x, int64_t rows, int64_t channels, int64_t width, float *mean, float *squares)
{
    const float scale = 1.0f / (float)rows;
    int64_t c = 0;
    for (; c + 16 <= width; c += 16) {
        mr_vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
        int64_t r = 0;
        for (; r + 4 <= rows; r += 4) {
            const float *from = x + r * channels + c;
            s0 += mr_vector_load(from);
            s1 += mr_vector_load(from + channels);
            s2 += mr_vector_load(from + 2 * channels);
            s3 += mr_vector_load(from + 3 * channels);
        }
        for (; r < rows; r++) s0 += mr_vector_load(x + r * channels + c);
        mr_vector m = ((s0 + s1) + (s2 + s3)) * scale;
        s0 = s1 = s2 = s3 = (mr_vector){};
        for (r = 0; r + 4 <= rows; r += 4) {
            const float *from = x + r * channels + c;
            mr_vector d0 = mr_vector_load(from) - m, d1 = mr_vector_load(from + channels) - m;
            mr_vector d2 = mr_vector_load(from + 2 * channels) - m, d3 = mr_vector_load(from + 3 * channels) - m;
            s0 += d0 * d0;
            s1 += d1 * d1;
            s2 += d2 * d2;
            s3 += d3 * d3;
        }
        for (; r < rows; r++) {
            mr_vector d = mr_vector_load(x + r * channels + c) - m;
            s0 += d * d;
        }
        mr_vector_store(mean + c, m);
        mr_vector_store(squares + c, (s0 + s1) + (s2 + s3));
    }
    for (; c < width; c++) {
        float sum = 0, square = 0;
        for (int64_t r = 0; r < rows; r++) sum += x[r * channels + c];
        float m = sum * scale;
        for (int64_t r = 0; r < rows; r++) square += (x[r * channels + c] - m) * (x[r * channels + c] - m);
        mean[c] = m;
        squares[c] = square;
    }
}

/* The same for dy and dy · (x - mean). */
MR_INLINE void block_products(const float *x, const float *dy, int64_t rows, int64_t channels, int64_t width,
                              const float *mean, float *sums, float *products)
{
    int64_t c = 0;
    for (; c + 16 <= width; c += 16) {
        mr_vector m = mr_vector_load(mean + c), s0 = {}, s1 = {}, p0 = {}, p1 = {};
        int64_t r = 0;
        for (; r + 2 <= rows; r += 2) {
            const float *gradient = dy + r * channels + c, *from = x + r * channels + c;
            mr_vector g0 = mr_vector_load(gradient), g1 = mr_vector_load(gradient + channels);
            s0 += g0;
            s1 += g1;
            p0 += g0 * (mr_vector_load(from) - m);
            p1 += g1 * (mr_vector_load(from + channels) - m);
        }
        if (r < rows) {
            mr_vector g = mr_vector_load(dy + r * channels + c);
            s0 += g;
            p0 += g * (mr_vector_load(x + r * channels + c) - m);
        }
        mr_vector_store(sums + c, s0 + s1);
        mr_vector_store(products + c, p0 + p1);
    }
    for (; c < width; c++) {
        float sum = 0, product = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += dy[r * channels + c];
            product += dy[r * channels + c] * (x[r * channels + c] - mean[c]);
        }
        sums[c] = sum;
        products[c] = product;
    }
}

/* Joins a block's mean and squares to those of count values before it. */
static void join_moments(double *mean, double *squares, double count, double block_mean, double block_squares,
                         double block_count)
{
    double away = block_mean - *mean, all = count + block_count;
    *mean += away * (block_count / all);
    *squares += block_squares + away * away * (count * block_count / all);
}

/* Rows of one piece; channels in strips so that the arrays stay small. */
MR_INLINE void moments_body(const norm *n, int64_t piece)
{
    int64_t from = piece * n->piece_rows, to = MR_MIN(n->rows, from + n->piece_rows);
    double *mean = n->partials + piece * 2 * n->channels, *squares = mean + n->channels;
    memset(mean, 0, (size_t)(2 * n->channels) * sizeof *mean);
    int64_t block = MR_MAX(1, BLOCK_FLOATS / n->channels);
    for (int64_t row = from; row < to; row += block) {
        int64_t rows = MR_MIN(block, to - row);
        for (int64_t c = 0; c < n->channels; c += CHANNELS_BLOCK) {
            float m[CHANNELS_BLOCK], s[CHANNELS_BLOCK];
            int64_t width = MR_MIN(CHANNELS_BLOCK, n->channels - c);
            block_moments(n->x + row * n->channels + c, rows, n->channels, width, m, s);
            for (int64_t i = 0; i < width; i++)
                join_moments(mean + c + i, squares + c + i, (double)(row - from), (double)m[i], (double)s[i],
                             (double)rows);
        }
    }
    n->counts[piece] = (double)(to - from);
}
MR_LEVELS(moments, (const norm *n, int64_t piece), (n, piece))

MR_INLINE void products_body(const norm *n, int64_t piece)
{
    int64_t from = piece * n->piece_rows, to = MR_MIN(n->rows, from + n->piece_rows);
    double *sums = n->partials + piece * 2 * n->channels, *products = sums + n->channels;
    memset(sums, 0, (size_t)(2 * n->channels) * sizeof *sums);
    int64_t block = MR_MAX(1, BLOCK_FLOATS / n->channels);
    for (int64_t row = from; row < to; row += block) {
        int64_t rows = MR_MIN(block, to - row);
        for (int64_t c = 0; c < n->channels; c += CHANNELS_BLOCK) {
            float s[CHANNELS_BLOCK], p[CHANNELS_BLOCK];
            int64_t width = MR_MIN(CHANNELS_BLOCK, n->channels - c), at = row * n->channels + c;
            block_products(n->x + at, n->dy + at, rows, n->channels, width, n->mean + c, s, p);
            for (int64_t i = 0; i < width; i++) {
                sums[c + i] += (double)s[i];
                products[c + i] += (double)p[i];
            }
        }
    }
}
MR_LEVELS(products, (const norm *n, int64_t piece), (n, piece))

/* target = (x - mean) · factor + offset */
MR_INLINE void apply_body(const norm *n, int64_t begin, int64_t end)
{
    const int64_t channels = n->channels;
    for (int64_t c = 0; c + 16 <= channels; c += 16) {
        mr_vector mean = mr_vector_load(n->mean + c), factor = mr_vector_load(n->factor + c);
        mr_vector offset = mr_vector_load(n->offset + c);
        for (int64_t r = begin; r < end; r++) {
            int64_t at = r * channels + c;
            mr_vector_store(n->target + at, (mr_vector_load(n->x + at) - mean) * factor + offset);
        }
    }
    for (int64_t r = begin; r < end; r++)
        for (int64_t c = channels / 16 * 16; c < channels; c++)
            n->target[r * channels + c] = (n->x[r * channels + c] - n->mean[c]) * n->factor[c] + n->offset[c];
}
MR_LEVELS(apply, (const norm *n, int64_t begin, int64_t end), (n, begin, end))

/* target = dy · factor - (x - mean) · slope - level; offset holds slope, then level, of all channels. */
MR_INLINE void apply_grad_body(const norm *n, int64_t begin, int64_t end)
{
    const int64_t channels = n->channels;
    const float *slopes = n->offset, *levels = n->offset + channels;
    for (int64_t c = 0; c + 16 <= channels; c += 16) {
        mr_vector mean = mr_vector_load(n->mean + c), factor = mr_vector_load(n->factor + c);
        mr_vector slope = mr_vector_load(slopes + c), level = mr_vector_load(levels + c);
        for (int64_t r = begin; r < end; r++) {
            int64_t at = r * channels + c;
            mr_vector value = mr_vector_load(n->dy + at) * factor - (mr_vector_load(n->x + at) - mean) * slope - level;
            mr_vector_store(n->target + at, value);
        }
    }
    for (int64_t r = begin; r < end; r++)
        for (int64_t c = channels / 16 * 16; c < channels; c++) {
            int64_t at = r * channels + c;
            n->target[at] = n->dy[at] * n->factor[c] - (n->x[at] - n->mean[c]) * slopes[c] - levels[c];
        }
}
MR_LEVELS(apply_grad, (const norm *n, int64_t begin, int64_t end), (n, begin, end))

static void moments_pieces(void *context, int64_t begin, int64_t end)
{
    for (int64_t piece = begin; piece < end; piece++) moments[mr_cpu()](context, piece);
}

static void products_pieces(void *context, int64_t begin, int64_t end)
{
    for (int64_t piece = begin; piece < end; piece++) products[mr_cpu()](context, piece);
}

/* Rows in blocks that stay in the first cache over all strips of channels. */
static void apply_rows(void *context, int64_t begin, int64_t end)
{
    const norm *n = context;
    int64_t block = MR_MAX(1, BLOCK_FLOATS / n->channels);
    for (int64_t row = begin; row < end; row += block) apply[mr_cpu()](n, row, MR_MIN(end, row + block));
}

static void apply_grad_rows(void *context, int64_t begin, int64_t end)
{
    const norm *n = context;
    int64_t block = MR_MAX(1, BLOCK_FLOATS / n->channels);
    for (int64_t row = begin; row < end; row += block) apply_grad[mr_cpu()](n, row, MR_MIN(end, row + block));
}

/* ---- NCHW: a unit is one channel ---- */

static void nchw_moments(void *context, int64_t begin, int64_t end)
{
    const norm *n = context;
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, squares = 0, count = (double)(n->rows * n->inner);
        for (int64_t r = 0; r < n->rows; r++)
            for (int64_t i = 0; i < n->inner; i++) sum += (double)n->x[(r * n->channels + c) * n->inner + i];
        double mean = count > 0 ? sum / count : 0;
        for (int64_t r = 0; r < n->rows; r++)
            for (int64_t i = 0; i < n->inner; i++) {
                double d = (double)n->x[(r * n->channels + c) * n->inner + i] - mean;
                squares += d * d;
            }
        n->partials[c] = mean;
        n->partials[n->channels + c] = squares;
    }
}

static void nchw_products(void *context, int64_t begin, int64_t end)
{
    const norm *n = context;
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, product = 0;
        for (int64_t r = 0; r < n->rows; r++)
            for (int64_t i = 0; i < n->inner; i++) {
                int64_t at = (r * n->channels + c) * n->inner + i;
                sum += (double)n->dy[at];
                product += (double)n->dy[at] * (double)(n->x[at] - n->mean[c]);
            }
        n->partials[c] = sum;
        n->partials[n->channels + c] = product;
    }
}

static void nchw_apply(void *context, int64_t begin, int64_t end)
{
    const norm *n = context;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0, c = row % n->channels; i < n->inner; i++) {
            int64_t at = row * n->inner + i;
            n->target[at] =
                n->dy ? n->dy[at] * n->factor[c] - (n->x[at] - n->mean[c]) * n->offset[c] - n->offset[n->channels + c]
                      : (n->x[at] - n->mean[c]) * n->factor[c] + n->offset[c];
        }
}

/* ---- The operators ---- */

typedef struct norm_attrs {
    float epsilon, average;
    bool training, nchw;
} norm_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_string format = mr_attr_string_or(node->attrs, "data_format", "NHWC");
    bool nchw = mr_string_equal(format, MR_STR("NCHW"));
    if (!nchw && !mr_string_equal(format, MR_STR("NHWC")))
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "data_format %.*s", (int)MR_MIN(format.size_bytes, 32u),
                              format.data);
    *(norm_attrs *)prepared = (norm_attrs){.epsilon = mr_attr_float_or(node->attrs, "epsilon", 0.0001f),
                                           .average = mr_attr_float_or(node->attrs, "exponential_avg_factor", 1.0f),
                                           .training = mr_attr_bool_or(node->attrs, "is_training", true),
                                           .nchw = nchw};
    return MR_OK;
}

static mr_status geometry(const mr_kernel_call *call, const mr_tensor *x, norm *n, mr_error *error)
{
    const norm_attrs *attrs = call->prepared;
    if (x->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must have 4 dimensions, not %d",
                              x->shape.rank);
    const int64_t *d = x->shape.dims;
    *n = (norm){.rows = attrs->nchw ? d[0] : d[0] * d[1] * d[2],
                .channels = attrs->nchw ? d[1] : d[3],
                .inner = attrs->nchw ? d[2] * d[3] : 1,
                .x = x->data};
    constexpr int64_t PIECE_FLOATS = 131072;
    n->piece_rows = MR_MAX(1, PIECE_FLOATS / MR_MAX(1, n->channels));
    n->pieces = (n->rows + n->piece_rows - 1) / n->piece_rows;
    return MR_OK;
}

static mr_status check_vector(const mr_kernel_call *call, int input, int64_t channels, const char *what,
                              mr_error *error)
{
    mr_shape shape = call->inputs[input].shape;
    if (shape.rank == 1 && shape.dims[0] == channels) return MR_OK;
    char text[MR_SHAPE_TEXT_SIZE];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s is %s for %" PRId64 " channels", what,
                          mr_shape_text(shape, text, sizeof text), channels);
}

/* Doubles for the partial sums and floats by channel, in one scratch buffer. */
static mr_status workspace(mr_kernel_call *call, norm *n, int floats_by_channel, mr_buffer **buffer, float **floats,
                           mr_error *error)
{
    int64_t pieces = n->inner == 1 ? MR_MAX(1, n->pieces) : 1, doubles = pieces * (2 * n->channels + 1);
    size_t size_bytes = (size_t)doubles * sizeof(double) + (size_t)(floats_by_channel * n->channels) * sizeof(float);
    MR_TRY(call->device->functions->allocate(call->device, MR_MAX(size_bytes, 64u), buffer, error));
    n->partials = mr_buffer_data(*buffer);
    n->counts = n->partials + pieces * 2 * n->channels;
    *floats = (float *)(n->counts + pieces);
    return MR_OK;
}

static bool by_rows(const norm_attrs *attrs)
{
    return !attrs->nchw;
}

/* Leaves mean and squares of all rows in the first partial. */
static void find_moments(mr_kernel_call *call, norm *n)
{
    mr_pool *pool = call->device->pool;
    if (!by_rows(call->prepared)) {
        mr_pool_for(pool, n->channels, 1, nchw_moments, n);
        return;
    }
    if (n->rows == 0) {
        memset(n->partials, 0, (size_t)(2 * n->channels) * sizeof *n->partials);
        return;
    }
    mr_pool_for(pool, n->pieces, 1, moments_pieces, n);
    double count = n->counts[0];
    for (int64_t p = 1; p < n->pieces; p++) {
        const double *part = n->partials + p * 2 * n->channels;
        for (int64_t c = 0; c < n->channels; c++)
            join_moments(n->partials + c, n->partials + n->channels + c, count, part[c], part[n->channels + c],
                         n->counts[p]);
        count += n->counts[p];
    }
}

static void run_apply(mr_kernel_call *call, norm *n)
{
    mr_pool *pool = call->device->pool;
    if (!by_rows(call->prepared))
        mr_pool_for(pool, n->rows * n->channels, 1, nchw_apply, n);
    else
        mr_pool_for(pool, n->rows, MR_MAX(1, 2 * MR_GRAIN / MR_MAX(1, n->channels)),
                    n->dy ? apply_grad_rows : apply_rows, n);
}

static mr_status fused_batch_norm(mr_kernel_call *call, mr_error *error)
{
    const norm_attrs *attrs = call->prepared;
    norm n;
    float *factor;
    mr_buffer *buffer;
    MR_TRY(geometry(call, &call->inputs[0], &n, error));
    mr_shape vector = MR_SHAPE(n.channels);
    MR_TRY(check_vector(call, 1, n.channels, "scale", error));
    MR_TRY(check_vector(call, 2, n.channels, "offset", error));
    bool estimates = !attrs->training || attrs->average != 1.0f;
    if (estimates) MR_TRY(check_vector(call, 3, n.channels, "mean", error));
    if (estimates) MR_TRY(check_vector(call, 4, n.channels, "variance", error));
    for (int i = 1; i < 5; i++) MR_TRY(mr_kernel_output(call, i, vector, error));
    if (call->node->output_count > 5) {
        MR_TRY(mr_kernel_output(call, 5, MR_SCALAR, error));
        *(float *)call->outputs[5].data = 0;
    }
    MR_TRY(workspace(call, &n, 1, &buffer, &factor, error));
    /* Outputs: batch_mean, batch_variance (running estimates), then mean and variance kept for the gradient. */
    float *out[4];
    for (int i = 0; i < 4; i++) out[i] = call->outputs[1 + i].data;
    const float *old_mean = call->inputs[3].data, *old_variance = call->inputs[4].data;
    double count = (double)(n.rows * n.inner), unbiased = count > 1 ? count / (count - 1) : 1;
    if (attrs->training) find_moments(call, &n);
    for (int64_t c = 0; c < n.channels; c++) {
        float mean, variance;
        if (attrs->training) {
            double square_mean = count > 0 ? n.partials[n.channels + c] / count : 0;
            mean = (float)n.partials[c];
            variance = (float)square_mean;
            float corrected = (float)(square_mean * unbiased), average = attrs->average;
            out[0][c] = average == 1.0f ? mean : (1.0f - average) * old_mean[c] + average * mean;
            out[1][c] = average == 1.0f ? corrected : (1.0f - average) * old_variance[c] + average * corrected;
        } else {
            out[0][c] = mean = old_mean[c];
            out[1][c] = variance = old_variance[c];
        }
        out[2][c] = mean;
        out[3][c] = variance;
        factor[c] = ((const float *)call->inputs[1].data)[c] / sqrtf(variance + attrs->epsilon);
    }
    n.mean = out[2];
    n.factor = factor;
    n.offset = call->inputs[2].data;
    mr_status status = mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error);
    if (status == MR_OK) {
        n.target = call->outputs[0].data;
        run_apply(call, &n);
    }
    mr_buffer_unref(buffer);
    return status;
}

/* dx = factor · (dy - mean(dy) - (x - mean) · mean(dy · (x - mean)) / (variance + epsilon)), with factor = scale / sqrt(…);
 * with fixed statistics only factor · dy. */
static mr_status fused_batch_norm_grad(mr_kernel_call *call, mr_error *error)
{
    const norm_attrs *attrs = call->prepared;
    norm n;
    float *floats;
    mr_buffer *buffer;
    MR_TRY(geometry(call, &call->inputs[1], &n, error));
    if (!mr_shape_equal(call->inputs[0].shape, call->inputs[1].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "y_backprop and x differ in shape");
    for (int i = 2; i < 5; i++) MR_TRY(check_vector(call, i, n.channels, "a vector of the statistics", error));
    for (int i = 1; i < 3; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(n.channels), error));
    for (int i = 3; i < 5; i++) {
        MR_TRY(mr_kernel_output(call, i, MR_SHAPE(0), error)); /* nothing is kept in them, as in TensorFlow */
    }
    MR_TRY(workspace(call, &n, 3, &buffer, &floats, error));
    mr_pool *pool = call->device->pool;
    int64_t pieces = n.pieces;
    n.dy = call->inputs[0].data;
    n.mean = call->inputs[3].data;
    if (!by_rows(attrs)) {
        mr_pool_for(pool, n.channels, 1, nchw_products, &n);
        pieces = 1;
    } else if (n.rows == 0) {
        memset(n.partials, 0, (size_t)(2 * n.channels) * sizeof *n.partials);
    } else {
        mr_pool_for(pool, n.pieces, 1, products_pieces, &n);
    }
    for (int64_t p = 1; p < pieces; p++)
        for (int64_t i = 0; i < 2 * n.channels; i++) n.partials[i] += n.partials[p * 2 * n.channels + i];
    float *factor = floats, *slope = floats + n.channels, *level = slope + n.channels;
    double count = MR_MAX(1.0, (double)(n.rows * n.inner));
    for (int64_t c = 0; c < n.channels; c++) {
        double variance = (double)((const float *)call->inputs[4].data)[c] + (double)attrs->epsilon;
        double scale = (double)((const float *)call->inputs[2].data)[c], root = 1 / sqrt(variance);
        double sum = n.partials[c], product = n.partials[n.channels + c];
        ((float *)call->outputs[1].data)[c] = (float)(product * root);
        ((float *)call->outputs[2].data)[c] = (float)sum;
        factor[c] = (float)(scale * root);
        slope[c] = attrs->training ? (float)(scale * root * product / count / variance) : 0;
        level[c] = attrs->training ? (float)(scale * root * sum / count) : 0;
    }
    n.factor = factor;
    n.offset = slope;
    mr_status status = mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error);
    if (status == MR_OK) {
        n.target = call->outputs[0].data;
        run_apply(call, &n);
    }
    mr_buffer_unref(buffer);
    return status;
}

#define ROW(name, served, function)                                                                                    \
    {.op = name, .types = served, .run = function, .prepared_size_bytes = sizeof(norm_attrs), .prepare = prepare}
static const mr_kernel kernels[] = {
    ROW("FusedBatchNorm", "T: float", fused_batch_norm),
    ROW("FusedBatchNormV2", "T: float; U: float", fused_batch_norm),
    ROW("FusedBatchNormV3", "T: float; U: float", fused_batch_norm),
    ROW("FusedBatchNormGrad", "T: float", fused_batch_norm_grad),
    ROW("FusedBatchNormGradV2", "T: float; U: float", fused_batch_norm_grad),
    ROW("FusedBatchNormGradV3", "T: float; U: float", fused_batch_norm_grad),
};
MR_KERNEL_FAMILY(batch_norm);
