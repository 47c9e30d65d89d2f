/* The common part of the fuzz targets for JPEG, PNG and crop-ready JPEGs. Calls return, with a message if they fail. */
#ifndef MR_TESTS_FUZZ_IMAGE_FUZZ_H
#define MR_TESTS_FUZZ_IMAGE_FUZZ_H

#include <millrace/image.h>
#include <stdint.h>
#include <stdlib.h>

static inline void fuzz_check(mr_status status, const mr_error *error)
{
    if (status != MR_OK && (error->message[0] == '\0' || error->status != status)) abort();
}

static inline void fuzz_decode(const uint8_t *bytes, size_t size_bytes, unsigned choice)
{
    mr_error error = {0};
    mr_tensor image = {0};
    static const int32_t channels[] = {0, 1, 3, 4}, ratios[] = {1, 2, 4, 8};
    mr_image_decode_options options = {.size = sizeof options,
                                       .channels = channels[choice & 3],
                                       .ratio = ratios[choice >> 2 & 3],
                                       .dtype = (choice & 16) != 0 ? MR_UINT16 : MR_UINT8,
                                       .try_recover_truncated = (choice & 32) != 0,
                                       .accept_damaged = (choice & 64) != 0,
                                       .no_fancy_upsampling = (choice & 128) != 0,
                                       .pixels_max = 1 << 18};
    fuzz_check(mr_image_decode(bytes, size_bytes, &options, &image, &error), &error);
    mr_tensor_deinit(&image);
}

static inline void fuzz_region(const uint8_t *bytes, size_t size_bytes, const mr_image_info *info, unsigned choice)
{
    static mr_image_scratch *scratch; /* reused, as in a worker: an input must not affect the next one */
    mr_error error = {0};
    if (scratch == nullptr && mr_image_scratch_new(&scratch, &error) != MR_OK) return;
    mr_image_options options = {.size = sizeof options,
                                .height = 9,
                                .width = 13,
                                .channels = (choice & 1) != 0 ? 1 : 3,
                                .method = (mr_resize_method)(choice >> 1 & 3),
                                .accept_damaged = (choice & 8) != 0,
                                .accept_truncated = (choice & 16) != 0,
                                .layout = (choice & 32) != 0 ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC,
                                .pixels_max = 1 << 18};
    if ((choice & 128) != 0) {
        options.crop = (choice & 256) != 0 ? MR_CROP_CENTER_WINDOW : MR_CROP_RANDOM_WINDOW;
        options.padding_mode = (choice & 512) != 0 ? MR_IMAGE_PAD_REFLECT : MR_IMAGE_PAD_ZERO;
        options.padding = options.crop == MR_CROP_RANDOM_WINDOW ? 4 : 0;
    }
    mr_image_region region = {.x = info->width / 5,
                              .y = info->height / 3,
                              .width = info->width / 2 + 1,
                              .height = info->height / 2 + 1,
                              .flip = (choice & 64) != 0};
    if (options.crop != MR_CROP_NONE) region = (mr_image_region){.x = -3, .y = -2, .width = 13, .height = 9};
    region.brightness = (choice & 4) != 0 ? 0.25f : 0;
    region.contrast = (choice & 2) != 0 ? 1.5f : 0;
    region.saturation = options.channels == 3 && (choice & 64) != 0 ? 0.5f : 0;
    region.hue = options.channels == 3 && (choice & 32) != 0 ? -0.3f : 0;
    float target[9 * 13 * 3];
    fuzz_check(mr_image_decode_region(bytes, size_bytes, &options, region, target, scratch, &error), &error);
}

static inline void fuzz_image(const uint8_t *bytes, size_t size_bytes, mr_image_format format)
{
    mr_error error = {0};
    mr_image_info info = {0};
    mr_status status = mr_image_probe(bytes, size_bytes, &info, &error);
    fuzz_check(status, &error);
    if (info.format != format || size_bytes == 0) return;
    unsigned choice = bytes[size_bytes - 1] * 167u + (unsigned)size_bytes * 13u;
    fuzz_decode(bytes, size_bytes, choice);
    if (status == MR_OK) fuzz_region(bytes, size_bytes, &info, choice);
}

#endif
