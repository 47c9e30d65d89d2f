/* Fuzz target: conversion to crop-ready JPEGs. The conversion returns, with a message if it fails. Its output decodes
 * to the pixels of the original, with our decoder and with libjpeg's, and converting it again does not change it. The
 * last byte selects the segment length. The corpus comes from `image_work corpus` (tests/oracle). */
#include "kernels/image/jpeg.h"
#include "tests/fuzz/image_fuzz.h"

#include <string.h>

/* The pixels from one of the two decoders. False if the decoder rejects the image. */
static bool decode_whole(const void *bytes, size_t size_bytes, bool by_libjpeg, bool accurate, mr_tensor *image)
{
    static mr_jpeg_reader reader;
    mr_error error = {0};
    mr_image_decode_options options = {.size = sizeof options, .accurate_dct = accurate, .pixels_max = 1 << 18};
    reader.always_plain = by_libjpeg;
    *image = (mr_tensor){0};
    mr_status status = mr_jpeg_reader_open(&reader, bytes, size_bytes, &options, &error);
    if (status == MR_OK) status = mr_jpeg_reader_start(&reader, nullptr, &error);
    mr_shape shape = MR_SHAPE(reader.height, reader.width, reader.channels);
    if (status == MR_OK && mr_tensor_init(image, MR_UINT8, shape, &error) != MR_OK) return false;
    size_t row_bytes = (size_t)reader.width * (size_t)reader.channels;
    for (int32_t y = 0; y < reader.height && status == MR_OK; y++)
        status = mr_jpeg_reader_row(&reader, mr_tensor_uint8s(image) + (size_t)y * row_bytes, &error);
    if (status == MR_OK) status = mr_jpeg_reader_finish(&reader, &error);
    fuzz_check(status, &error);
    if (status != MR_OK) mr_tensor_deinit(image);
    return status == MR_OK;
}

static void check_same(const mr_tensor *expected, const void *bytes, size_t size_bytes, bool by_libjpeg, bool accurate)
{
    mr_tensor image;
    if (!decode_whole(bytes, size_bytes, by_libjpeg, accurate, &image)) abort();
    if (!mr_shape_equal(expected->shape, image.shape)) abort();
    if (memcmp(expected->data, image.data, mr_tensor_size_bytes(&image)) != 0) abort();
    mr_tensor_deinit(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_error error = {0};
    mr_tensor ready = {0}, again = {0}, image;
    if (size_bytes == 0) return 0;
    static const int32_t segments[] = {0, 1, 2, 3, 7, 100, 65535, 65536};
    mr_crop_ready_options options = {.size = sizeof options,
                                     .restart_interval = segments[bytes[size_bytes - 1] & 7],
                                     .keep_icc_profile = (bytes[size_bytes - 1] & 8) != 0,
                                     .pixels_max = 1 << 18};
    mr_crop_ready_info info;
    mr_status status = mr_image_crop_ready(bytes, size_bytes, &options, &ready, &info, &error);
    fuzz_check(status, &error);
    if (status != MR_OK) return 0;
    mr_string made = mr_tensor_strings(&ready)[0];
    for (int accurate = 0; accurate < 2; accurate++) {
        if (!decode_whole(bytes, size_bytes, true, accurate != 0, &image)) continue;
        check_same(&image, bytes, size_bytes, false, accurate != 0);
        check_same(&image, made.data, made.size_bytes, true, accurate != 0);
        check_same(&image, made.data, made.size_bytes, false, accurate != 0);
        mr_tensor_deinit(&image);
    }
    if (mr_image_crop_ready(made.data, made.size_bytes, &options, &again, nullptr, &error) != MR_OK) abort();
    if (!mr_string_equal(made, mr_tensor_strings(&again)[0])) abort();
    mr_tensor_deinit(&ready);
    mr_tensor_deinit(&again);
    return 0;
}
