/* Digits for examples: the idx format of MNIST, and a plotter with ten glyphs of line segments. */
#include "tools/common/digits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

constexpr int64_t PIXELS = 28 * 28;

/* ---- Read: big-endian header, then bytes ---- */

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads all items of one file, item_bytes each; *count is the number in the header. The caller frees the result. */
static mr_status read_idx(const char *path, uint32_t magic, int64_t item_bytes, unsigned char **items, int64_t *count,
                          mr_error *error)
{
    unsigned char header[16];
    size_t header_bytes = magic == 0x803 ? 16 : 8;
    FILE *file = fopen(path, "rb");
    if (file == nullptr) return mr_fail(error, MR_NOT_FOUND, "%s: cannot be opened", path);
    mr_status status = MR_OK;
    if (fread(header, 1, header_bytes, file) != header_bytes || big_endian(header) != magic ||
        (magic == 0x803 && (big_endian(header + 8) != 28 || big_endian(header + 12) != 28)))
        status = mr_fail(error, MR_DATA_LOSS, "%s: not an idx file of MNIST", path);
    *count = status == MR_OK ? (int64_t)big_endian(header + 4) : 0;
    *items = status == MR_OK && *count <= 10000000 ? malloc((size_t)(*count * item_bytes + 1)) : nullptr;
    if (status == MR_OK && *items == nullptr) status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: too large", path);
    if (status == MR_OK && fread(*items, (size_t)item_bytes, (size_t)*count, file) != (size_t)*count)
        status = mr_fail(error, MR_DATA_LOSS, "%s: shorter than its header says", path);
    fclose(file);
    return status;
}

static mr_status make(digits *digits, int64_t count, mr_error *error)
{
    digits->count = count;
    MR_TRY(mr_tensor_init(&digits->images, MR_FLOAT, MR_SHAPE(count, PIXELS), error));
    return mr_tensor_init(&digits->labels, MR_INT64, MR_SHAPE(count), error);
}

mr_status digits_read(digits *digits, const char *directory, const char *prefix, mr_error *error)
{
    char path[4096];
    unsigned char *images = nullptr, *labels = nullptr;
    int64_t image_count = 0, label_count = 0;
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", directory, prefix);
    mr_status status = read_idx(path, 0x803, PIXELS, &images, &image_count, error);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", directory, prefix);
    if (status == MR_OK) status = read_idx(path, 0x801, 1, &labels, &label_count, error);
    if (status == MR_OK && image_count != label_count)
        status = mr_fail(error, MR_DATA_LOSS, "%s: not as many labels as images", path);
    if (status == MR_OK) status = make(digits, image_count, error);
    for (int64_t i = 0; status == MR_OK && i < image_count * PIXELS; i++)
        mr_tensor_floats(&digits->images)[i] = (float)images[i] / 255;
    for (int64_t i = 0; status == MR_OK && i < label_count; i++) {
        mr_tensor_int64s(&digits->labels)[i] = labels[i];
        if (labels[i] > 9) status = mr_fail(error, MR_DATA_LOSS, "%s: label %d is not a digit", path, labels[i]);
    }
    free(images);
    free(labels);
    return status;
}

/* ---- Draw ---- */

/* Corners of each digit's strokes on a grid of 3 x 5: columns 'a' … 'c', rows 1 … 5; a space lifts the pen. */
static const char *const strokes[10] = {
    "a1c1c5a5a1",   "a2b1b5",       "a1c1c3a3a5c5", "a1c1c3a3 c3c5a5", "a1a3c3 c1c5",
    "c1a1a3c3c5a5", "c1a1a5c5c3a3", "a1c1b5",       "a1c1c5a5a1 a3c3", "c3a3a1c1c5a5",
};

typedef struct pen {
    float xx, xy, yx, yy, x, y; /* transform from grid to pixels */
    float width;
    float *pixels;
} pen;

static void plot(const char *path, const pen *p)
{
    float x0 = 0, y0 = 0;
    bool down = false;
    for (; *path != '\0'; path += *path == ' ' ? 1 : 2) {
        if (*path == ' ') {
            down = false;
            continue;
        }
        float u = (float)(path[0] - 'b'), v = (float)(path[1] - '3');
        float x1 = p->xx * u + p->xy * v + p->x, y1 = p->yx * u + p->yy * v + p->y;
        float length = hypotf(x1 - x0, y1 - y0);
        for (int i = 0; down && i < PIXELS; i++) {
            float dx = (float)(i % 28) - x0, dy = (float)(i / 28) - y0;
            float along = length > 0 ? (dx * (x1 - x0) + dy * (y1 - y0)) / (length * length) : 0;
            along = fminf(1, fmaxf(0, along));
            float distance = hypotf(dx - along * (x1 - x0), dy - along * (y1 - y0));
            p->pixels[i] = fmaxf(p->pixels[i], fminf(1, fmaxf(0, p->width + 0.5f - distance)));
        }
        x0 = x1, y0 = y1;
        down = true;
    }
}

/* SplitMix64: works well with any seed. */
static uint64_t next(uint64_t *random)
{
    uint64_t bits = *random += 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
}

static float between(uint64_t *random, float low, float high)
{
    return low + (high - low) * (float)(next(random) >> 40) / (1 << 24);
}

/* The sum of four uniform distributions is close enough to a normal one; its standard deviation is 1. */
static float normal(uint64_t *random)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += between(random, -1, 1);
    return sum * 0.8660254f;
}

static void draw(int64_t digit, uint64_t *random, float *pixels)
{
    for (int i = 0; i < PIXELS; i++) pixels[i] = 0;
    float angle = between(random, -0.25f, 0.25f), slant = between(random, -0.3f, 0.3f);
    float width = between(random, 3.2f, 6), height = between(random, 3.2f, 5);
    pen p = {
        .xx = width * cosf(angle),
        .xy = -height * sinf(angle) + slant * height,
        .yx = width * sinf(angle),
        .yy = height * cosf(angle),
        .x = between(random, 10.5f, 16.5f),
        .y = between(random, 11, 16),
        .width = between(random, 0.7f, 1.8f),
        .pixels = pixels,
    };
    plot(strokes[digit], &p);
    float ink = between(random, 0.6f, 1);
    for (int i = 0; i < PIXELS; i++) pixels[i] = fminf(1, fmaxf(0, ink * pixels[i] + 0.12f * normal(random)));
}

mr_status digits_draw(digits *digits, int64_t count, uint64_t seed, mr_error *error)
{
    MR_TRY(make(digits, count, error));
    for (int64_t i = 0; i < count; i++) {
        uint64_t random = seed << 32 | (uint64_t)i;
        int64_t digit = (int64_t)(next(&random) % 10);
        mr_tensor_int64s(&digits->labels)[i] = digit;
        draw(digit, &random, mr_tensor_floats(&digits->images) + i * PIXELS);
    }
    return MR_OK;
}

mr_status digits_batch(const digits *digits, int64_t index, int64_t size, mr_tensor *images, mr_tensor *labels,
                       mr_error *error)
{
    int64_t batches = digits->count / size;
    int64_t begin = batches > 0 ? index % batches * size : 0, end = batches > 0 ? begin + size : digits->count;
    MR_TRY(mr_tensor_rows(&digits->images, begin, end, images, error));
    return mr_tensor_rows(&digits->labels, begin, end, labels, error);
}

void digits_deinit(digits *digits)
{
    mr_tensor_deinit(&digits->images);
    mr_tensor_deinit(&digits->labels);
}
