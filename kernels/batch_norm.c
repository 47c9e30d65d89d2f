/* Batch normalization of floats. It is bound by memory bandwidth, so each direction reads its tensors only twice:
 *
 * forward   statistics, then y = (x - mean) · factor + offset
 * gradient  the sums of dy and of dy · (x - mean), then dx
 *
 * Work is divided into pieces of rows, and these into blocks that fit into the first-level cache. Each block is read
 * twice: for its mean, then for the sum of squares about that mean. Blocks and pieces are combined with Chan's formula
 * in doubles, in order, so that a mean far from zero loses no precision and the result has the same bits at any number
 * of threads. */
#include "kernels/vector.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>

/* The tensor as rows. NHWC: rows of channels. NCHW: a row of `inner` elements for each image and channel. */
typedef struct norm {
    int64_t rows, channels, inner; /* inner is 1 for NHWC */
    int64_t piece_rows, pieces;
    const float *x, *dy;
    const float *side; /* added to the normalized values; null: nothing */
    float *target;
    const float *mean, *factor, *offset; /* for each channel */
    const float *slope, *level;          /* for each channel, used by the gradient */
    const float *relu_factor;            /* of the forward pass, used by the gradient with relu */
    bool relu;                           /* negative values become 0, and their gradient is 0 */
    bool is_fixed;                       /* the statistics were given: the gradient does not depend on x */
    double *partials;                    /* [pieces][2][channels] */
    double *counts;                      /* [pieces] */
} norm;

constexpr int64_t BLOCK_FLOATS = 2048, CHANNELS_BLOCK = 64;

/* ---- NHWC ---- */

/* Channels are processed in strips of 4, 2 or 1 vectors, whose parameters and sums stay in registers; the remaining
 * channels one at a time. */
#define EACH_STRIP(channels, call)                                                                                     \
    int64_t c = 0;                                                                                                     \
    for (; c + 64 <= (channels); c += 64) call(4);                                                                     \
    for (; c + 32 <= (channels); c += 32) call(2);                                                                     \
    for (; c + 16 <= (channels); c += 16) call(1);

/* Mean and centered sum of squares of `rows` rows of one strip. */
MR_INLINE void strip_moments(const float *x, int64_t rows, int64_t channels, float *mean, float *squares,
                             const int width)
{
    const float scale = 1.0f / (float)rows;
    mr_vector m[4], even[4], odd[4];
    for (int v = 0; v < width; v++) even[v] = odd[v] = (mr_vector){};
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2)
        for (int v = 0; v < width; v++) {
            even[v] += mr_vector_load(x + r * channels + v * 16);
            odd[v] += mr_vector_load(x + (r + 1) * channels + v * 16);
        }
    for (; r < rows; r++)
        for (int v = 0; v < width; v++) even[v] += mr_vector_load(x + r * channels + v * 16);
    for (int v = 0; v < width; v++) {
        m[v] = (even[v] + odd[v]) * scale;
        even[v] = odd[v] = (mr_vector){};
    }
    for (r = 0; r + 2 <= rows; r += 2)
        for (int v = 0; v < width; v++) {
            mr_vector d0 = mr_vector_load(x + r * channels + v * 16) - m[v];
            mr_vector d1 = mr_vector_load(x + (r + 1) * channels + v * 16) - m[v];
            even[v] += d0 * d0;
            odd[v] += d1 * d1;
        }
    for (; r < rows; r++)
        for (int v = 0; v < width; v++) {
            mr_vector d = mr_vector_load(x + r * channels + v * 16) - m[v];
            even[v] += d * d;
        }
    for (int v = 0; v < width; v++) {
        mr_vector_store(mean + v * 16, m[v]);
        mr_vector_store(squares + v * 16, even[v] + odd[v]);
    }
}

/* The same for channels [0, width), width <= CHANNELS_BLOCK. */
MR_INLINE void block_moments(const float *x, int64_t rows, int64_t channels, int64_t width, float *mean, float *squares)
{
#define MOMENTS(vectors) strip_moments(x + c, rows, channels, mean + c, squares + c, vectors)
    EACH_STRIP(width, MOMENTS)
    for (; c < width; c++) {
        float sum = 0, square = 0;
        for (int64_t r = 0; r < rows; r++) sum += x[r * channels + c];
        float m = sum / (float)rows;
        for (int64_t r = 0; r < rows; r++) square += (x[r * channels + c] - m) * (x[r * channels + c] - m);
        mean[c] = m;
        squares[c] = square;
    }
}

/* dy without an activation; otherwise its product with 1 where the normalized value is above 0 and with 0 elsewhere:
 * ReluGrad multiplies, so that NaN stays. The value is computed exactly as in the forward pass: both agree to the bit.
 */
MR_INLINE mr_vector passed(mr_vector dy, mr_vector centred, mr_vector factor, mr_vector offset, const bool relu)
{
    if (!relu) return dy;
    return dy * mr_vector_choose(centred * factor + offset > 0.0f, mr_vector_of(1), (mr_vector){});
}

/* The sums of dy and dy · (x - mean) over `rows` rows of one strip; `at` is the index of the strip's first element. */
MR_INLINE void strip_products(const norm *n, int64_t at, int64_t c, int64_t rows, float *sums, float *products,
                              const int width, const bool relu)
{
    const int64_t channels = n->channels;
    mr_vector mean[4], factor[4], offset[4], s[4], p[4];
    for (int v = 0; v < width; v++) {
        mean[v] = mr_vector_load(n->mean + c + v * 16);
        factor[v] = relu ? mr_vector_load(n->relu_factor + c + v * 16) : mean[v];
        offset[v] = relu ? mr_vector_load(n->offset + c + v * 16) : mean[v];
        s[v] = p[v] = (mr_vector){};
    }
    for (int64_t r = 0; r < rows; r++)
        for (int v = 0; v < width; v++) {
            mr_vector centred = mr_vector_load(n->x + at + r * channels + v * 16) - mean[v];
            mr_vector dy =
                passed(mr_vector_load(n->dy + at + r * channels + v * 16), centred, factor[v], offset[v], relu);
            s[v] += dy;
            p[v] += dy * centred;
        }
    for (int v = 0; v < width; v++) {
        mr_vector_store(sums + v * 16, s[v]);
        mr_vector_store(products + v * 16, p[v]);
    }
}

MR_INLINE float passed_one(const norm *n, int64_t at, int64_t c, const bool relu)
{
    if (!relu) return n->dy[at];
    return n->dy[at] * ((n->x[at] - n->mean[c]) * n->relu_factor[c] + n->offset[c] > 0 ? 1.0f : 0.0f);
}

/* The same for channels [first, first + width). */
MR_INLINE void block_products(const norm *n, int64_t row, int64_t rows, int64_t first, int64_t width, float *sums,
                              float *products, const bool relu)
{
    const int64_t channels = n->channels, at = row * channels + first;
#define PRODUCTS(vectors) strip_products(n, at + c, first + c, rows, sums + c, products + c, vectors, relu)
    EACH_STRIP(width, PRODUCTS)
    for (; c < width; c++) {
        float sum = 0, product = 0;
        for (int64_t r = 0; r < rows; r++) {
            int64_t index = at + r * channels + c;
            float dy = passed_one(n, index, first + c, relu);
            sum += dy;
            product += dy * (n->x[index] - n->mean[first + c]);
        }
        sums[c] = sum;
        products[c] = product;
    }
}

/* Combines a block's mean and squares with those of the `count` values before it. */
static void join_moments(double *mean, double *squares, double count, double block_mean, double block_squares,
                         double block_count)
{
    double away = block_mean - *mean, all = count + block_count;
    *mean += away * (block_count / all);
    *squares += block_squares + away * away * (count * block_count / all);
}

/* The moments of one piece of rows. Channels are processed in blocks, to limit the size of the arrays. */
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
        for (int64_t first = 0; first < n->channels; first += CHANNELS_BLOCK) {
            float s[CHANNELS_BLOCK], p[CHANNELS_BLOCK];
            int64_t width = MR_MIN(CHANNELS_BLOCK, n->channels - first);
            if (n->relu)
                block_products(n, row, rows, first, width, s, p, true);
            else
                block_products(n, row, rows, first, width, s, p, false);
            for (int64_t i = 0; i < width; i++) {
                sums[first + i] += (double)s[i];
                products[first + i] += (double)p[i];
            }
        }
    }
}
MR_LEVELS(products, (const norm *n, int64_t piece), (n, piece))

/* target = (x - mean) · factor + offset + side; with relu, negative values become 0. */
MR_INLINE void apply_strip(const norm *n, int64_t begin, int64_t end, int64_t c, const int width, const bool relu,
                           const bool side)
{
    const int64_t channels = n->channels;
    mr_vector mean[4], factor[4], offset[4];
    for (int v = 0; v < width; v++) {
        mean[v] = mr_vector_load(n->mean + c + v * 16);
        factor[v] = mr_vector_load(n->factor + c + v * 16);
        offset[v] = mr_vector_load(n->offset + c + v * 16);
    }
    for (int64_t r = begin; r < end; r++)
        for (int v = 0; v < width; v++) {
            int64_t at = r * channels + c + v * 16;
            mr_vector y = (mr_vector_load(n->x + at) - mean[v]) * factor[v] + offset[v];
            if (side) y += mr_vector_load(n->side + at);
            mr_vector_store(n->target + at, relu ? mr_vector_choose(y < 0.0f, (mr_vector){}, y) : y);
        }
}

MR_INLINE void apply_all(const norm *n, int64_t begin, int64_t end, const bool relu, const bool side)
{
#define APPLY(vectors) apply_strip(n, begin, end, c, vectors, relu, side)
    EACH_STRIP(n->channels, APPLY)
    for (int64_t first = c, r = begin; r < end; r++)
        for (c = first; c < n->channels; c++) {
            const int64_t at = r * n->channels + c;
            float y = (n->x[at] - n->mean[c]) * n->factor[c] + n->offset[c];
            if (side) y += n->side[at];
            n->target[at] = relu && y < 0 ? 0 : y;
        }
}

MR_INLINE void apply_body(const norm *n, int64_t begin, int64_t end)
{
    assert(!n->side || n->relu);
    if (n->side)
        apply_all(n, begin, end, true, true);
    else if (n->relu)
        apply_all(n, begin, end, true, false);
    else
        apply_all(n, begin, end, false, false);
}
MR_LEVELS(apply, (const norm *n, int64_t begin, int64_t end), (n, begin, end))

/* target = (dy - level) · factor - (x - mean) · slope; dy · factor with fixed statistics, also if x is infinite. */
MR_INLINE void apply_grad_strip(const norm *n, int64_t begin, int64_t end, int64_t c, const int width, const bool relu,
                                const bool is_fixed)
{
    const int64_t channels = n->channels;
    mr_vector mean[4], factor[4], relu_factor[4], offset[4], slope[4], level[4];
    for (int v = 0; v < width; v++) {
        mean[v] = mr_vector_load(n->mean + c + v * 16);
        factor[v] = mr_vector_load(n->factor + c + v * 16);
        relu_factor[v] = relu ? mr_vector_load(n->relu_factor + c + v * 16) : mean[v];
        offset[v] = relu ? mr_vector_load(n->offset + c + v * 16) : mean[v];
        slope[v] = mr_vector_load(n->slope + c + v * 16);
        level[v] = mr_vector_load(n->level + c + v * 16);
    }
    for (int64_t r = begin; r < end; r++)
        for (int v = 0; v < width; v++) {
            int64_t at = r * channels + c + v * 16;
            mr_vector centred = mr_vector_load(n->x + at) - mean[v];
            mr_vector dy = passed(mr_vector_load(n->dy + at), centred, relu_factor[v], offset[v], relu);
            mr_vector dx = is_fixed ? dy * factor[v] : (dy - level[v]) * factor[v] - centred * slope[v];
            mr_vector_store(n->target + at, dx);
        }
}

MR_INLINE float grad_one(const norm *n, int64_t at, int64_t c, float dy)
{
    if (n->is_fixed) return dy * n->factor[c];
    return (dy - n->level[c]) * n->factor[c] - (n->x[at] - n->mean[c]) * n->slope[c];
}

MR_INLINE void apply_grad_all(const norm *n, int64_t begin, int64_t end, const bool relu, const bool is_fixed)
{
#define APPLY_GRAD(vectors) apply_grad_strip(n, begin, end, c, vectors, relu, is_fixed)
    EACH_STRIP(n->channels, APPLY_GRAD)
    for (int64_t first = c, r = begin; r < end; r++)
        for (c = first; c < n->channels; c++) {
            int64_t at = r * n->channels + c;
            float dy = passed_one(n, at, c, relu);
            n->target[at] = grad_one(n, at, c, dy);
        }
}

MR_INLINE void apply_grad_body(const norm *n, int64_t begin, int64_t end)
{
    if (n->relu && n->is_fixed)
        apply_grad_all(n, begin, end, true, true);
    else if (n->relu)
        apply_grad_all(n, begin, end, true, false);
    else if (n->is_fixed)
        apply_grad_all(n, begin, end, false, true);
    else
        apply_grad_all(n, begin, end, false, false);
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

/* Processes rows in blocks that stay in the first-level cache for all strips of channels. */
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
        double mean = sum / count;
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
                float dy = passed_one(n, at, c, n->relu);
                sum += (double)dy;
                product += (double)dy * (double)(n->x[at] - n->mean[c]);
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
            if (n->dy != nullptr) {
                n->target[at] = grad_one(n, at, c, passed_one(n, at, c, n->relu));
                continue;
            }
            float y = (n->x[at] - n->mean[c]) * n->factor[c] + n->offset[c];
            if (n->side) y += n->side[at];
            n->target[at] = n->relu && y < 0 ? 0 : y;
        }
}

/* ---- The operators ----
 *
 * With the attribute activation_mode = "Relu" both include Relu, as TensorFlow's _FusedBatchNormEx and
 * _FusedBatchNormGradEx do. With keeps_factors the forward pass has the factors and offsets that it applied as output
 * 5, and the gradient with Relu takes them as input 5: it needs neither the output of the forward pass nor its scale
 * and offset, which may have been updated meanwhile. The forward pass may take a tensor as input 5 that is added before
 * Relu. A plan may replace FusedBatchNormV3 and Relu, and ReluGrad and FusedBatchNormGradV3, by them.
 *
 * _FusedBatchNormApply computes the output of the forward pass again: from x, its mean, its factors and offsets, and
 * what was added. */

typedef struct norm_attrs {
    float epsilon, average;
    int rank; /* of the input, which data_format specifies */
    bool training, nchw, relu, keeps_factors;
} norm_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_string format = mr_attr_string_or(node->attrs, "data_format", "NHWC");
    bool nchw = mr_string_equal(format, MR_STR("NCHW")) || mr_string_equal(format, MR_STR("NCDHW"));
    if (!nchw && !mr_string_equal(format, MR_STR("NHWC")) && !mr_string_equal(format, MR_STR("NDHWC")))
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "data_format %.*s", (int)MR_MIN(format.size_bytes, 32u),
                              format.data);
    *(norm_attrs *)prepared = (norm_attrs){.epsilon = mr_attr_float_or(node->attrs, "epsilon", 0.0001f),
                                           .average = mr_attr_float_or(node->attrs, "exponential_avg_factor", 1.0f),
                                           .rank = (int)format.size_bytes,
                                           .training = mr_attr_bool_or(node->attrs, "is_training", true),
                                           .nchw = nchw,
                                           .keeps_factors = mr_attr_bool_or(node->attrs, "keeps_factors", false)};
    mr_string activation = mr_attr_string_or(node->attrs, "activation_mode", "Identity");
    ((norm_attrs *)prepared)->relu = mr_string_equal(activation, MR_STR("Relu"));
    return MR_OK;
}

static mr_status geometry(const mr_kernel_call *call, const mr_tensor *x, norm *n, mr_error *error)
{
    const norm_attrs *attrs = call->prepared;
    char text[MR_SHAPE_TEXT_SIZE];
    int rank = x->shape.rank;
    if (rank != attrs->rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4 or 5-dimensional%s",
                              mr_shape_text(x->shape, text, sizeof text));
    const int64_t *d = x->shape.dims;
    *n = (norm){.rows = attrs->nchw ? d[0] : mr_dims_product(&x->shape, 0, rank - 1),
                .channels = attrs->nchw ? d[1] : d[rank - 1],
                .inner = attrs->nchw ? mr_dims_product(&x->shape, 2, rank) : 1,
                .relu = attrs->relu,
                .x = x->data};
    constexpr int64_t PIECE_FLOATS = 131072;
    n->piece_rows = MR_MAX(1, PIECE_FLOATS / MR_MAX(1, n->channels));
    n->pieces = n->rows / n->piece_rows + (n->rows % n->piece_rows != 0);
    assert(n->rows >= 0 && n->channels >= 0 && n->inner >= 0);
    return MR_OK;
}

/* An input with an element for each channel: name, and the name that TensorFlow reports if the size is wrong. */
static mr_status check_vector(const mr_kernel_call *call, int input, int64_t channels, const char *name,
                              const char *sized, mr_error *error)
{
    mr_shape shape = call->inputs[input].shape;
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 1-dimensional%s", name,
                              mr_shape_text(shape, text, sizeof text));
    if (shape.dims[0] == channels) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "%s must have the same number of elements as the channels of x, got %" PRId64 " and %" PRId64,
                          sized, shape.dims[0], channels);
}

static mr_status check_rank(const mr_kernel_call *call, int input, const char *name, mr_error *error)
{
    mr_shape shape = call->inputs[input].shape;
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank == 1) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 1-dimensional%s", name,
                          mr_shape_text(shape, text, sizeof text));
}

/* Allocates one scratch buffer of doubles for the partial sums and floats for each channel. */
static mr_status workspace(mr_kernel_call *call, norm *n, int floats_by_channel, mr_buffer **buffer, float **floats,
                           mr_error *error)
{
    assert(n->rows > 0 && n->channels > 0 && n->inner > 0);
    int64_t pieces = n->inner == 1 ? n->pieces : 1, doubles = pieces * (2 * n->channels + 1);
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

/* Computes mean and squares of all rows and stores them in the first partial. */
static void find_moments(mr_kernel_call *call, norm *n)
{
    mr_pool *pool = call->device->pool;
    if (!by_rows(call->prepared)) {
        mr_pool_for(pool, n->channels, 1, nchw_moments, n);
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
                    n->dy != nullptr ? apply_grad_rows : apply_rows, n);
}

constexpr int SIDE = 5, APPLIED_SIDE = 3; /* inputs: what is added */

static mr_status apply_alone(mr_kernel_call *call, norm *n, mr_error *error)
{
    MR_TRY(mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error));
    n->target = call->outputs[0].data;
    run_apply(call, n);
    return MR_OK;
}

/* The shape of the sum of x and the tensor of that input. Plans only use it for shapes that are equal but for the size
 * of the batch, which may be 1. */
static mr_status sum_shape(const mr_kernel_call *call, int input, mr_shape *shape, mr_error *error)
{
    const mr_shape x = call->inputs[0].shape, side = call->inputs[input].shape;
    *shape = x;
    if (side.rank == x.rank && x.dims[0] == 1) shape->dims[0] = side.dims[0];
    mr_shape same = *shape;
    if (side.rank == x.rank && side.dims[0] == 1) same.dims[0] = 1;
    if (mr_shape_equal(same, side)) return MR_OK;
    char texts[2][MR_SHAPE_TEXT_SIZE];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                          mr_shape_text(x, texts[0], sizeof texts[0]), mr_shape_text(side, texts[1], sizeof texts[1]));
}

/* Repeats the smaller of x and what is added. */
static mr_status apply_repeated(mr_kernel_call *call, norm *n, int input, mr_shape shape, mr_error *error)
{
    const int64_t x_count = mr_tensor_count(&call->inputs[0]), side_count = mr_tensor_count(&call->inputs[input]);
    const float *side = call->inputs[input].data;
    assert(n->relu && x_count != side_count);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    const int64_t count = mr_tensor_count(&call->outputs[0]);
    if (count == 0) return MR_OK;
    mr_buffer *buffer;
    MR_TRY(call->device->functions->allocate(call->device, (size_t)x_count * sizeof(float), &buffer, error));
    n->target = mr_buffer_data(buffer);
    n->relu = false;
    run_apply(call, n);
    float *to = call->outputs[0].data;
    for (int64_t i = 0; i < count; i++) {
        const float y = n->target[i % x_count] + side[i % side_count];
        to[i] = y < 0 ? 0 : y;
    }
    mr_buffer_unref(buffer);
    return MR_OK;
}

/* Adds the tensor of that input and applies Relu. */
static mr_status apply_with_side(mr_kernel_call *call, norm *n, int input, mr_error *error)
{
    mr_shape shape;
    MR_TRY(sum_shape(call, input, &shape, error));
    if (!mr_shape_equal(call->inputs[0].shape, call->inputs[input].shape))
        return apply_repeated(call, n, input, shape, error);
    n->side = call->inputs[input].data;
    MR_TRY(mr_kernel_forward(call, 0, input, shape, error));
    n->target = call->outputs[0].data;
    run_apply(call, n);
    return MR_OK;
}

static float factor_of(float scale, float variance, float epsilon)
{
    return scale / sqrtf(variance + epsilon);
}

/* Without elements there are no statistics: as in TensorFlow, the results are NaN for each channel, even where
 * statistics are given. */
static mr_status normalize_empty(mr_kernel_call *call, mr_error *error)
{
    for (int i = 1; i < 5; i++)
        for (int64_t c = 0, count = mr_tensor_count(&call->outputs[i]); c < count; c++)
            ((float *)call->outputs[i].data)[c] = NAN;
    mr_shape shape = call->inputs[0].shape;
    if (call->node->input_count > SIDE) MR_TRY(sum_shape(call, SIDE, &shape, error));
    return mr_kernel_output(call, 0, shape, error);
}

static mr_status fused_batch_norm(mr_kernel_call *call, mr_error *error)
{
    const norm_attrs *attrs = call->prepared;
    norm n;
    float *factor;
    mr_buffer *buffer;
    MR_HALF_AS_FLOAT(fused_batch_norm);
    MR_TRY(geometry(call, &call->inputs[0], &n, error));
    mr_shape vector = MR_SHAPE(n.channels);
    MR_TRY(check_vector(call, 1, n.channels, "scale", "scale", error));
    MR_TRY(check_vector(call, 2, n.channels, "offset", "offset", error));
    if (!attrs->training) {
        MR_TRY(check_vector(call, 3, n.channels, "estimated_mean", "When is_training=false, mean", error));
        MR_TRY(check_vector(call, 4, n.channels, "estimated_variance", "When is_training=false, variance", error));
    } else {
        MR_TRY(check_rank(call, 3, "estimated_mean", error));
        MR_TRY(check_rank(call, 4, "estimated_variance", error));
    }
    if (attrs->training && attrs->average != 1.0f) {
        MR_TRY(check_vector(call, 3, n.channels, "estimated_mean", "When exponential_avg_factor != 1, mean", error));
        MR_TRY(check_vector(call, 4, n.channels, "estimated_variance", "When exponential_avg_factor != 1, variance",
                            error));
    }
    for (int i = 1; i < 5; i++) MR_TRY(mr_kernel_output(call, i, vector, error));
    if (call->node->output_count > 5) {
        MR_TRY(mr_kernel_output(call, 5, attrs->keeps_factors ? MR_SHAPE(2 * n.channels) : MR_SCALAR, error));
        memset(call->outputs[5].data, 0, mr_tensor_size_bytes(&call->outputs[5]));
    }
    if (mr_tensor_count(&call->inputs[0]) == 0) return normalize_empty(call, error);
    MR_TRY(workspace(call, &n, 1, &buffer, &factor, error));
    /* Outputs: batch_mean and batch_variance (running estimates), then mean and variance for the gradient. */
    float *out[4];
    for (int i = 0; i < 4; i++) out[i] = call->outputs[1 + i].data;
    const float *old_mean = call->inputs[3].data, *old_variance = call->inputs[4].data;
    double count = (double)(n.rows * n.inner), unbiased = count > 1 ? count / (count - 1) : 1;
    if (attrs->training) find_moments(call, &n);
    for (int64_t c = 0; c < n.channels; c++) {
        float mean, variance;
        if (attrs->training) {
            double square_mean = n.partials[n.channels + c] / count;
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
        factor[c] = factor_of(((const float *)call->inputs[1].data)[c], variance, attrs->epsilon);
    }
    n.mean = out[2];
    n.factor = factor;
    n.offset = call->inputs[2].data;
    if (attrs->keeps_factors)
        for (int64_t c = 0; c < n.channels; c++) {
            ((float *)call->outputs[5].data)[c] = factor[c];
            ((float *)call->outputs[5].data)[n.channels + c] = n.offset[c];
        }
    mr_status status =
        call->node->input_count > SIDE ? apply_with_side(call, &n, SIDE, error) : apply_alone(call, &n, error);
    mr_buffer_unref(buffer);
    return status;
}

static mr_status fused_batch_norm_apply(mr_kernel_call *call, mr_error *error)
{
    norm n;
    MR_TRY(geometry(call, &call->inputs[0], &n, error));
    MR_TRY(check_vector(call, 1, n.channels, "mean", "mean", error));
    MR_TRY(check_vector(call, 2, 2 * n.channels, "factors", "factors and offsets", error));
    n.mean = call->inputs[1].data;
    n.factor = call->inputs[2].data;
    n.offset = n.factor + n.channels;
    return call->node->input_count > APPLIED_SIDE ? apply_with_side(call, &n, APPLIED_SIDE, error)
                                                  : apply_alone(call, &n, error);
}

/* dx = factor · (dy - mean(dy) - (x - mean) · mean(dy · (x - mean)) / (variance + epsilon)), where factor = scale /
 * sqrt(…). With fixed statistics dx = factor · dy. */
static mr_status fused_batch_norm_grad(mr_kernel_call *call, mr_error *error)
{
    const norm_attrs *attrs = call->prepared;
    norm n;
    float *floats;
    mr_buffer *buffer;
    MR_HALF_AS_FLOAT(fused_batch_norm_grad);
    MR_TRY(geometry(call, &call->inputs[1], &n, error));
    if (!mr_shape_equal(call->inputs[0].shape, call->inputs[1].shape)) {
        char x[MR_SHAPE_TEXT_SIZE], y[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "x and y_backprop must have same shape, but x has shape %s and y_backprop has shape %s",
                              mr_shape_text(call->inputs[1].shape, x, sizeof x),
                              mr_shape_text(call->inputs[0].shape, y, sizeof y));
    }
    if (attrs->relu) MR_TRY(check_vector(call, 5, 2 * n.channels, "factors", "factors and offsets", error));
    MR_TRY(check_vector(call, 2, n.channels, "scale", "scale", error));
    MR_TRY(check_vector(call, 3, n.channels, "saved mean", "reserve_space_1", error));
    MR_TRY(check_vector(call, 4, n.channels, "saved variance", "reserve_space_2", error));
    for (int i = 1; i < 3; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(n.channels), error));
    for (int i = 3; i < 5; i++) {
        MR_TRY(mr_kernel_output(call, i, MR_SHAPE(0), error)); /* unused, as in TensorFlow */
    }
    if (mr_tensor_count(&call->inputs[0]) == 0) {
        for (int i = 1; i < 3; i++) memset(call->outputs[i].data, 0, mr_tensor_size_bytes(&call->outputs[i]));
        return mr_kernel_output(call, 0, call->inputs[0].shape, error);
    }
    MR_TRY(workspace(call, &n, 3, &buffer, &floats, error));
    mr_pool *pool = call->device->pool;
    int64_t pieces = n.pieces;
    float *factor = floats, *slope = floats + n.channels, *level = slope + n.channels;
    n.dy = call->inputs[0].data;
    n.is_fixed = !attrs->training;
    n.mean = call->inputs[3].data;
    n.factor = factor;
    n.relu_factor = attrs->relu ? call->inputs[5].data : nullptr;
    n.offset = attrs->relu ? n.relu_factor + n.channels : nullptr;
    n.slope = slope;
    n.level = level;
    for (int64_t c = 0; c < n.channels; c++)
        factor[c] = factor_of(((const float *)call->inputs[2].data)[c], ((const float *)call->inputs[4].data)[c],
                              attrs->epsilon);
    if (!by_rows(attrs)) {
        mr_pool_for(pool, n.channels, 1, nchw_products, &n);
        pieces = 1;
    } else {
        mr_pool_for(pool, n.pieces, 1, products_pieces, &n);
    }
    for (int64_t p = 1; p < pieces; p++)
        for (int64_t i = 0; i < 2 * n.channels; i++) n.partials[i] += n.partials[p * 2 * n.channels + i];
    double count = (double)(n.rows * n.inner);
    for (int64_t c = 0; c < n.channels; c++) {
        double variance = (double)((const float *)call->inputs[4].data)[c] + (double)attrs->epsilon;
        double scale = (double)((const float *)call->inputs[2].data)[c], root = 1 / sqrt(variance);
        double sum = n.partials[c], product = n.partials[n.channels + c];
        ((float *)call->outputs[1].data)[c] = (float)(product * root);
        ((float *)call->outputs[2].data)[c] = (float)sum;
        slope[c] = attrs->training ? (float)(scale * root * product / count / variance) : 0;
        level[c] = attrs->training ? (float)(sum / count) : 0;
    }
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
    ROW("FusedBatchNormV2", "T: half, bfloat16, float; U: float", fused_batch_norm),
    ROW("FusedBatchNormV3", "T: half, bfloat16, float; U: float", fused_batch_norm),
    ROW("FusedBatchNormGrad", "T: float", fused_batch_norm_grad),
    ROW("FusedBatchNormGradV2", "T: half, bfloat16, float; U: float", fused_batch_norm_grad),
    ROW("FusedBatchNormGradV3", "T: half, bfloat16, float; U: float", fused_batch_norm_grad),
    ROW("_FusedBatchNormEx", "T: float", fused_batch_norm),
    ROW("_FusedBatchNormGradEx", "T: float", fused_batch_norm_grad),
    ROW("_FusedBatchNormApply", "T: float", fused_batch_norm_apply),
};
MR_KERNEL_FAMILY(batch_norm);
