/* ExtractGlimpse, ExtractGlimpseV2: windows of images. What is outside of an image is noise. TensorFlow draws it from
 * an unseeded generator; here it depends only on the image's number and the number of runs before. */
#include "kernels/random.h"
#include <math.h>
#include <string.h>

typedef enum noise { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO } noise;

typedef struct glimpse_options {
    bool centered, normalized, is_first_version;
    noise noise;
} glimpse_options;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    glimpse_options *options = prepared;
    mr_string noise = mr_attr_string_or(node->attrs, "noise", "uniform");
    bool uniform = mr_attr_bool_or(node->attrs, "uniform_noise", true);
    *options = (glimpse_options){.centered = mr_attr_bool_or(node->attrs, "centered", true),
                                 .normalized = mr_attr_bool_or(node->attrs, "normalized", true),
                                 .is_first_version = strcmp(node->op, "ExtractGlimpse") == 0};
    if (uniform && noise.size_bytes != 0 && !mr_string_equal(noise, MR_STR("uniform")))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "The uniform_noise and noise could not be specified at the same time");
    if (noise.size_bytes == 0)
        options->noise = uniform ? NOISE_UNIFORM : NOISE_GAUSSIAN;
    else if (mr_string_equal(noise, MR_STR("uniform")))
        options->noise = NOISE_UNIFORM;
    else if (mr_string_equal(noise, MR_STR("gaussian")))
        options->noise = NOISE_GAUSSIAN;
    else if (mr_string_equal(noise, MR_STR("zero")))
        options->noise = NOISE_ZERO;
    else
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "The noise could only be uniform, gaussian, or zero, got%.*s", (int)noise.size_bytes,
                              noise.data);
    return MR_OK;
}

/* One axis of a glimpse: `count` pixels from `from` of the image are pixels from `to` of the glimpse. */
typedef struct overlap {
    int64_t from, to, count;
    bool has_noise;
} overlap;

static overlap overlap_of(const glimpse_options *options, float offset, int64_t size, int64_t image)
{
    float half = (float)image / 2.0f;
    if (options->normalized) offset *= (float)image;
    if (options->is_first_version) {
        if (options->centered) offset = offset / 2.0f + half;
        offset -= (float)size / 2.0f;
    } else if (options->centered && options->normalized) {
        offset = offset / 2.0f + half - (float)size / 2.0f;
    } else if (options->centered) {
        offset += half;
    }
    /* An offset that does not fit into an integer is outside of every image. */
    constexpr int64_t far = (int64_t)1 << 40;
    int64_t at = offset > -0x1p40f && offset < 0x1p40f ? (int64_t)offset : offset > 0 ? far : -far;
    overlap overlap = {.from = at, .count = size};
    if (at < 0) {
        int64_t left = MR_MAX(0, size + at);
        overlap = (struct overlap){0, size - left, left, true};
    } else if (at + size >= image) {
        overlap = (struct overlap){at, 0, MR_MAX(0, image - at), true};
    }
    overlap.count = MR_MIN(overlap.count, image);
    return overlap;
}

typedef struct glimpse {
    const float *image;
    float *target;
    int64_t height, width, out_height, out_width, channels;
    mr_words words;
} glimpse;

static void fill_uniform(glimpse *g)
{
    int64_t count = g->height * g->width * g->channels;
    float low = count > 0 ? g->image[0] : 0, high = low;
    for (int64_t i = 0; i < count; i++) {
        low = g->image[i] < low ? g->image[i] : low;
        high = g->image[i] > high ? g->image[i] : high;
    }
    for (int64_t i = 0; i < g->out_height * g->out_width * g->channels; i++)
        g->target[i] = low + mr_random_float(mr_words_next(&g->words)) * (high - low);
}

/* Normal numbers with the mean and deviation of the channel, within its range. */
static void fill_gaussian(glimpse *g)
{
    int64_t count = g->height * g->width;
    for (int64_t c = 0; c < g->channels; c++) {
        double sum = 0, squares = 0;
        float low = count > 0 ? g->image[c] : 0, high = low, pair[2];
        for (int64_t i = 0; i < count; i++) {
            float x = g->image[i * g->channels + c];
            sum += (double)x;
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        double mean = count > 0 ? sum / (double)count : 0;
        for (int64_t i = 0; i < count; i++) {
            double x = (double)g->image[i * g->channels + c] - mean;
            squares += x * x;
        }
        double sigma = count > 0 ? sqrt(squares / (double)count) : 0;
        for (int64_t i = 0; i < g->out_height * g->out_width; i++) {
            if (i % 2 == 0) {
                uint32_t first = mr_words_next(&g->words), second = mr_words_next(&g->words);
                mr_random_normal_floats(first, second, pair);
            }
            float x = (float)(mean + (double)pair[i % 2] * sigma);
            g->target[i * g->channels + c] = x < low ? low : x > high ? high : x;
        }
    }
}

static void extract(glimpse *g, const glimpse_options *options, overlap y, overlap x)
{
    int64_t row = g->out_width * g->channels;
    if (y.has_noise || x.has_noise) {
        if (options->noise == NOISE_UNIFORM)
            fill_uniform(g);
        else if (options->noise == NOISE_GAUSSIAN)
            fill_gaussian(g);
        else
            memset(g->target, 0, (size_t)(g->out_height * row) * sizeof(float));
    }
    for (int64_t i = 0; i < y.count && x.count > 0; i++)
        memcpy(g->target + (y.to + i) * row + x.to * g->channels,
               g->image + ((y.from + i) * g->width + x.from) * g->channels,
               (size_t)(x.count * g->channels) * sizeof(float));
}

static mr_status check(const mr_kernel_call *call, mr_error *error)
{
    mr_shape images = call->inputs[0].shape, size = call->inputs[1].shape, offsets = call->inputs[2].shape;
    char text[MR_SHAPE_TEXT_SIZE];
    if (images.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input must be 4-dimensional (batch_size, height, width, depth)%s",
                              mr_shape_text(images, text, sizeof text));
    if (size.rank != 1 || size.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input must be a vector of size 2 (height, width)%s",
                              mr_shape_text(size, text, sizeof text));
    if (offsets.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be a matrix%s",
                              mr_shape_text(offsets, text, sizeof text));
    if (offsets.dims[0] != images.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "first dimension should be batch%s",
                              mr_shape_text(offsets, text, sizeof text));
    if (offsets.dims[1] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "second dimension should be of size 2 (y,x)%s",
                              mr_shape_text(offsets, text, sizeof text));
    return MR_OK;
}

static mr_status extract_glimpse(mr_kernel_call *call, mr_error *error)
{
    const glimpse_options *options = call->prepared;
    MR_TRY(check(call, error));
    const int64_t *dims = call->inputs[0].shape.dims;
    const int32_t *size = mr_tensor_int32s(&call->inputs[1]);
    const float *offsets = mr_tensor_floats(&call->inputs[2]);
    if (size[0] < 0 || size[1] < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected a non-negative size, got %d x %d",
                              size[0], size[1]);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], size[0], size[1], dims[3]), error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    bool is_empty = dims[1] == 0 || dims[2] == 0;
    glimpse g = {.height = is_empty ? 0 : dims[1],
                 .width = is_empty ? 0 : dims[2],
                 .out_height = size[0],
                 .out_width = size[1],
                 .channels = dims[3]};
    for (int64_t i = 0; i < dims[0]; i++) {
        g.image = mr_tensor_floats(&call->inputs[0]) + i * g.height * g.width * g.channels;
        g.target = mr_tensor_floats(&call->outputs[0]) + i * g.out_height * g.out_width * g.channels;
        g.words = (mr_words){.philox = mr_philox_seed(call->invocation, (uint64_t)i), .used = 4};
        extract(&g, options, overlap_of(options, offsets[2 * i], g.out_height, g.height),
                overlap_of(options, offsets[2 * i + 1], g.out_width, g.width));
    }
    return MR_OK;
}

#define GLIMPSE(name)                                                                                                  \
    {.op = name, .run = extract_glimpse, .prepared_size_bytes = sizeof(glimpse_options), .prepare = prepare}
static const mr_kernel kernels[] = {
    GLIMPSE("ExtractGlimpse"),
    GLIMPSE("ExtractGlimpseV2"),
};
MR_KERNEL_FAMILY(image_glimpse);
