/* Fuzz target: JPEG. Reads the header, decodes the complete image, and decodes and resizes a region, with various
 * options. If libjpeg itself decodes the image without a warning, regions of it must have the same pixels, with and
 * without restart segments. The last byte of the input, which an image does not need, selects the options. The corpus
 * comes from `image_work corpus` (tests/oracle). */
#include "kernels/image/jpeg.h"
#include "tests/fuzz/image_fuzz.h"

#include <string.h>

static void check_region(const uint8_t *bytes, size_t size_bytes, const mr_tensor *whole, mr_image_region region)
{
    static mr_image_scratch *scratch;
    static unsigned char target[3 << 16];
    mr_error error = {0};
    if (scratch == nullptr && mr_image_scratch_new(&scratch, &error) != MR_OK) return;
    mr_image_options options = {.size = sizeof options, .dtype = MR_UINT8};
    if (mr_image_decode_region(bytes, size_bytes, &options, region, target, scratch, &error) != MR_OK) abort();
    size_t row_bytes = (size_t)region.width * 3, stride = (size_t)whole->shape.dims[1] * 3;
    for (int32_t y = 0; y < region.height; y++)
        if (memcmp(target + (size_t)y * row_bytes,
                   mr_tensor_uint8s(whole) + (size_t)(region.y + y) * stride + (size_t)region.x * 3, row_bytes) != 0)
            abort();
}

static void check_regions(const uint8_t *bytes, size_t size_bytes, unsigned choice)
{
    static mr_jpeg_reader reader = {.always_plain = true};
    mr_error error = {0};
    mr_tensor whole = {0};
    mr_image_decode_options options = {.size = sizeof options, .channels = 3, .pixels_max = 1 << 16};
    mr_status status = mr_jpeg_reader_open(&reader, bytes, size_bytes, &options, &error);
    if (status != MR_OK || mr_jpeg_reader_start(&reader, nullptr, &error) != MR_OK) return;
    int32_t width = reader.width, height = reader.height;
    if (mr_tensor_init(&whole, MR_UINT8, MR_SHAPE(height, width, 3), &error) != MR_OK) return;
    for (int32_t y = 0; y < height && status == MR_OK; y++)
        status = mr_jpeg_reader_row(&reader, mr_tensor_uint8s(&whole) + (size_t)y * (size_t)width * 3, &error);
    if (status == MR_OK) status = mr_jpeg_reader_finish(&reader, &error);
    for (unsigned i = 0; i < 4 && status == MR_OK; i++, choice = choice * 747796405u + 2891336453u) {
        mr_image_region region = {.x = (int32_t)(choice >> 3 & 0xffff) % width,
                                  .y = (int32_t)(choice >> 11 & 0xffff) % height};
        region.width = 1 + (int32_t)(choice >> 5 & 0xffff) % (width - region.x);
        region.height = 1 + (int32_t)(choice >> 7 & 0xffff) % (height - region.y);
        check_region(bytes, size_bytes, &whole, region);
    }
    mr_tensor_deinit(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_error error = {0};
    mr_image_info info = {0};
    fuzz_image(bytes, size_bytes, MR_IMAGE_JPEG);
    if (mr_image_probe(bytes, size_bytes, &info, &error) == MR_OK && info.format == MR_IMAGE_JPEG)
        check_regions(bytes, size_bytes, bytes[size_bytes - 1] * 167u + (unsigned)size_bytes * 13u);
    return 0;
}
