/* Scales an image with an antialiasing filter, in integers.
 *
 * There are two passes of weighted sums, along columns first. The Catmull-Rom filter extends over two source pixels to
 * each side of a result pixel, multiplied by the reduction if the image shrinks. Weights are integers whose sum is
 * 2^14. They are computed with additions, multiplications and divisions of doubles only, and everything else is integer
 * arithmetic, so that the result does not depend on the processor. 8-bit samples keep 6 extra bits between the passes,
 * 16-bit samples keep 4.
 *
 * A pixel's color contributes in proportion to its alpha: with an alpha channel, colors are multiplied by alpha before
 * scaling and divided by it afterwards, in 16 bits. */
#include "base/arguments.h"
#include "base/status.h"

#include <millrace/image.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static constexpr int WEIGHT_BITS = 14;
static constexpr int KEPT_BITS_8 = 6, KEPT_BITS_16 = 4;
/* Number of samples of a row that are summed at a time; their sums stay in the first-level cache. */
static constexpr int64_t PIECE = 1024;
static constexpr int64_t SIDE_MAX = 1 << 20;

/* Result i is the sum of weights[i * taps + k] x source[first[i] + k] over k < taps. */
typedef struct axis {
    int64_t target_count, taps;
    int64_t *first;
    int16_t *weights;
} axis;

static double catmull_rom(double x)
{
    if (x < 0) x = -x;
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
    return 0;
}

static void free_axis(axis *axis)
{
    free(axis->first);
    free(axis->weights);
}

/* Computes the weights of one result pixel, whose sum is exactly 2^14. The running sum is rounded, not each weight, so
 * that thousands of small weights are accurate, too. */
static void fill_weights(int16_t *weights, int64_t taps, double centre, double stretch, int64_t first)
{
    double sum = 0, sum_so_far = 0;
    for (int64_t k = 0; k < taps; k++) sum += catmull_rom(((double)(first + k) + 0.5 - centre) / stretch);
    int64_t before = 0;
    for (int64_t k = 0; k < taps; k++) {
        sum_so_far += catmull_rom(((double)(first + k) + 0.5 - centre) / stretch);
        double exact = sum_so_far / sum * (1 << WEIGHT_BITS);
        int64_t now = (int64_t)(exact < 0 ? exact - 0.5 : exact + 0.5);
        weights[k] = (int16_t)(now - before);
        before = now;
    }
    assert(before == 1 << WEIGHT_BITS);
}

static mr_status make_axis(axis *axis, int64_t source_count, int64_t target_count, mr_error *error)
{
    double scale = (double)source_count / (double)target_count, stretch = scale < 1 ? 1 : scale;
    int64_t taps = (int64_t)(4 * stretch) + 2;
    if (taps > source_count) taps = source_count;
    axis->target_count = target_count;
    axis->taps = taps;
    axis->first = malloc((size_t)target_count * sizeof(int64_t));
    axis->weights = malloc((size_t)(target_count * taps) * sizeof(int16_t));
    if (axis->first == nullptr || axis->weights == nullptr)
        return mr_fail_memory(error, (size_t)(target_count * taps) * sizeof(int16_t));
    for (int64_t i = 0; i < target_count; i++) {
        double centre = ((double)i + 0.5) * scale;
        int64_t first = (int64_t)(centre - 2 * stretch + 0.5);
        if (first > source_count - taps) first = source_count - taps;
        if (first < 0) first = 0;
        axis->first[i] = first;
        fill_weights(axis->weights + i * taps, taps, centre, stretch, first);
    }
    return MR_OK;
}

/* Functions for one sample size: 8-bit samples use int16 and int32, 16-bit samples use int32 and int64. The
 * intermediate row stores the channels one after another, so that the second pass sums adjacent elements. */
#define SCALE(bits, sample, kept, sum, kept_bits)                                                                      \
    static void rows_##bits(const sample *source, int64_t row_count, int64_t channels, const int16_t *weights,         \
                            int64_t taps, kept *row)                                                                   \
    {                                                                                                                  \
        int64_t width = row_count / channels, piece = PIECE / channels * channels;                                     \
        for (int64_t begin = 0; begin < row_count; begin += piece) {                                                   \
            int64_t count = row_count - begin < piece ? row_count - begin : piece;                                     \
            int32_t sums[PIECE] = {0};                                                                                 \
            for (int64_t x = 0; x < count; x++) sums[x] = 1 << (WEIGHT_BITS - kept_bits - 1);                          \
            for (int64_t k = 0; k < taps; k++) {                                                                       \
                const sample *from = source + k * row_count + begin;                                                   \
                int32_t weight = weights[k];                                                                           \
                for (int64_t x = 0; x < count; x++) sums[x] += weight * (int32_t)from[x];                              \
            }                                                                                                          \
            for (int64_t c = 0; c < channels; c++) {                                                                   \
                kept *to = row + c * width + begin / channels;                                                         \
                for (int64_t x = 0; x < count / channels; x++)                                                         \
                    to[x] = (kept)(sums[x * channels + c] >> (WEIGHT_BITS - kept_bits));                               \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void columns_##bits(const kept *row, int64_t width, int64_t channels, const axis *axis, sample *target)     \
    {                                                                                                                  \
        for (int64_t c = 0; c < channels; c++, row += width)                                                           \
            for (int64_t x = 0; x < axis->target_count; x++) {                                                         \
                const kept *from = row + axis->first[x];                                                               \
                const int16_t *weights = axis->weights + x * axis->taps;                                               \
                sum total = 1 << (WEIGHT_BITS + kept_bits - 1);                                                        \
                for (int64_t k = 0; k < axis->taps; k++) total += (sum)from[k] * (sum)weights[k];                      \
                total >>= WEIGHT_BITS + kept_bits;                                                                     \
                sum most = (sample) - 1;                                                                               \
                target[x * channels + c] = (sample)(total < 0 ? 0 : total > most ? most : total);                      \
            }                                                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    static void scale_##bits(const mr_tensor *image, const axis *down, const axis *across, kept *row,                  \
                             mr_tensor *scaled)                                                                        \
    {                                                                                                                  \
        int64_t channels = image->shape.dims[2], width = image->shape.dims[1];                                         \
        const sample *source = image->data;                                                                            \
        sample *target = scaled->data;                                                                                 \
        for (int64_t y = 0; y < down->target_count; y++) {                                                             \
            rows_##bits(source + down->first[y] * width * channels, width * channels, channels,                        \
                        down->weights + y * down->taps, down->taps, row);                                              \
            columns_##bits(row, width, channels, across, target + y * across->target_count * channels);                \
        }                                                                                                              \
    }

SCALE(8, uint8_t, int16_t, int32_t, KEPT_BITS_8)
SCALE(16, uint16_t, int32_t, int64_t, KEPT_BITS_16)

static mr_status scale_plain(const mr_tensor *image, int64_t height, int64_t width, mr_tensor *scaled, mr_error *error)
{
    int64_t row_count = image->shape.dims[1] * image->shape.dims[2];
    axis down = {0}, across = {0};
    mr_status status = make_axis(&down, image->shape.dims[0], height, error);
    if (status == MR_OK) status = make_axis(&across, image->shape.dims[1], width, error);
    void *row = malloc((size_t)row_count * sizeof(int32_t));
    if (status == MR_OK && row == nullptr) status = mr_fail_memory(error, (size_t)row_count * sizeof(int32_t));
    if (status == MR_OK)
        status = mr_tensor_init(scaled, image->dtype, MR_SHAPE(height, width, image->shape.dims[2]), error);
    if (status == MR_OK && image->dtype == MR_UINT8)
        scale_8(image, &down, &across, row, scaled);
    else if (status == MR_OK)
        scale_16(image, &down, &across, row, scaled);
    free(row);
    free_axis(&down);
    free_axis(&across);
    return status;
}

/* Multiplies colors by alpha, in 16 bits. */
static void multiply(const mr_tensor *image, uint16_t *target)
{
    int64_t channels = image->shape.dims[2], count = mr_tensor_count(image);
    bool narrow = image->dtype == MR_UINT8;
    uint64_t most = narrow ? 255 : 65535;
    const uint8_t *bytes = image->data;
    const uint16_t *words = image->data;
    for (int64_t i = 0; i < count; i += channels)
        for (int64_t c = 0; c < channels; c++) {
            uint64_t value = narrow ? bytes[i + c] : words[i + c],
                     alpha = narrow ? bytes[i + channels - 1] : words[i + channels - 1];
            target[i + c] = (uint16_t)(c == channels - 1 ? value * 65535 / most
                                                         : (value * alpha * 65535 + most * most / 2) / (most * most));
        }
}

static void divide(const uint16_t *source, mr_tensor *image)
{
    int64_t channels = image->shape.dims[2], count = mr_tensor_count(image);
    bool narrow = image->dtype == MR_UINT8;
    uint64_t most = narrow ? 255 : 65535;
    uint8_t *bytes = image->data;
    uint16_t *words = image->data;
    for (int64_t i = 0; i < count; i += channels)
        for (int64_t c = 0; c < channels; c++) {
            uint64_t alpha = source[i + channels - 1], value = source[i + c];
            if (c == channels - 1)
                value = (value * most + 32767) / 65535;
            else
                value = alpha == 0 ? 0 : (value * most + alpha / 2) / alpha;
            if (value > most) value = most;
            if (narrow)
                bytes[i + c] = (uint8_t)value;
            else
                words[i + c] = (uint16_t)value;
        }
}

static mr_status scale_with_alpha(const mr_tensor *image, int64_t height, int64_t width, mr_tensor *scaled,
                                  mr_error *error)
{
    mr_tensor multiplied = {0}, smaller = {0};
    MR_TRY(mr_tensor_init(&multiplied, MR_UINT16, image->shape, error));
    multiply(image, multiplied.data);
    mr_status status = scale_plain(&multiplied, height, width, &smaller, error);
    if (status == MR_OK)
        status = mr_tensor_init(scaled, image->dtype, MR_SHAPE(height, width, image->shape.dims[2]), error);
    if (status == MR_OK) divide(smaller.data, scaled);
    mr_tensor_deinit(&smaller);
    mr_tensor_deinit(&multiplied);
    return status;
}

mr_status mr_image_scale(const mr_tensor *image, int64_t height, int64_t width, mr_tensor *scaled, mr_error *error)
{
    MR_REFUSE_NULL(image, error);
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_shape *shape = &image->shape;
    if ((image->dtype != MR_UINT8 && image->dtype != MR_UINT16) || shape->rank != 3 || shape->dims[0] < 1 ||
        shape->dims[1] < 1 || shape->dims[2] < 1 || shape->dims[2] > 4 || shape->dims[0] > SIDE_MAX ||
        shape->dims[1] > SIDE_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "images to scale must be [height, width, 1 … 4] of uint8 or uint16, not %s of shape %s",
                       mr_dtype_name(image->dtype), mr_shape_text(*shape, text, sizeof(text)));
    if (height < 1 || width < 1 || height > SIDE_MAX || width > SIDE_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "an image cannot be scaled to %lld x %lld pixels", (long long)width,
                       (long long)height);
    if (shape->dims[2] % 2 == 0) return scale_with_alpha(image, height, width, scaled, error);
    return scale_plain(image, height, width, scaled, error);
}
