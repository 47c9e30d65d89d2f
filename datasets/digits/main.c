/* digits: draws digits of 28 x 28 pixels into MNIST's four idx files, so that the MNIST examples can be run without the
 * original data.
 *
 *     digits --out DIR
 *
 * writes DIR/train-images-idx3-ubyte, …: 6,000 training digits and 1,000 test digits with random offset, slant, scale
 * and noise. The files are the same on every machine. */
#include "common/arena.h"
#include "common/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr int PIXELS = 28 * 28;

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

static void draw(int digit, uint64_t *random, float *pixels)
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

/* ---- Files ---- */

static unsigned char *put_big_endian(unsigned char *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) *out++ = (unsigned char)(value >> shift);
    return out;
}

/* Writes DIRECTORY/PREFIX-KIND-ubyte. bytes: the header and the data that follows it */
static mr_status write_idx(const char *directory, const char *prefix, const char *kind, const unsigned char *bytes,
                           size_t size_bytes, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s-%s-ubyte", directory, prefix, kind) < 0) return fail_memory(error, strlen(directory));
    mr_status status = file_write_all(path, bytes, size_bytes, error);
    free(path);
    return status;
}

/* Draws `count` digits. The same seed draws the same digits. */
static mr_status write_digits(const char *directory, const char *prefix, uint32_t count, uint64_t seed, mr_error *error)
{
    static constexpr size_t IMAGES_HEADER = 16, LABELS_HEADER = 8;
    size_t images_size = IMAGES_HEADER + (size_t)count * PIXELS, labels_size = LABELS_HEADER + count;
    unsigned char *images = malloc(images_size), *labels = malloc(labels_size);
    mr_status status = images && labels ? MR_OK : fail_memory(error, images_size);
    if (status == MR_OK) {
        unsigned char *pixel = put_big_endian(put_big_endian(images, 0x803), count);
        pixel = put_big_endian(put_big_endian(pixel, 28), 28);
        unsigned char *label = put_big_endian(put_big_endian(labels, 0x801), count);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t random = seed << 32 | i;
            float drawn[PIXELS];
            *label = (unsigned char)(next(&random) % 10);
            draw(*label++, &random, drawn);
            for (int j = 0; j < PIXELS; j++) *pixel++ = (unsigned char)lrintf(255 * drawn[j]);
        }
        status = write_idx(directory, prefix, "images-idx3", images, images_size, error);
        if (status == MR_OK) status = write_idx(directory, prefix, "labels-idx1", labels, labels_size, error);
    }
    free(images);
    free(labels);
    return status;
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: digits --out DIR\n";
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(usage, stdout) < 0 || fflush(stdout) != 0;
    if (argc != 3 || strcmp(argv[1], "--out") != 0) return fputs(usage, stderr), 2;
    mr_error error = {0};
    mr_status status = file_make_directories(argv[2], &error);
    if (status == MR_OK) status = write_digits(argv[2], "train", 6000, 1, &error);
    if (status == MR_OK) status = write_digits(argv[2], "t10k", 1000, 2, &error);
    if (status != MR_OK) fprintf(stderr, "digits: %s\n", error.message);
    return status == MR_OK ? 0 : 1;
}
