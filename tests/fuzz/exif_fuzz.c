/* Fuzz target: EXIF and TIFF data. Reads must stay within the bytes, and a removed orientation must no longer be found.
 * The bytes are also inserted into a JPEG of 16 x 16 pixels, which is then rotated as they specify. Corpus:
 * exif_corpus.py. */
#include "kernels/image/exif.h"

#include <millrace/image.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A gray JPEG of 16 x 16 pixels without its start marker. */
static mr_string small_jpeg(void)
{
    static mr_tensor bytes;
    if (bytes.data == nullptr) {
        mr_tensor pixels = {0};
        if (mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(16, 16, 1), nullptr) != MR_OK) abort();
        if (mr_image_encode_jpeg(&pixels, 50, &bytes, nullptr) != MR_OK) abort();
        mr_tensor_deinit(&pixels);
    }
    mr_string jpeg = mr_tensor_strings(&bytes)[0];
    return (mr_string){jpeg.data + 2, jpeg.size_bytes - 2};
}

static void turn(const uint8_t *exif, size_t size_bytes)
{
    mr_string tail = small_jpeg();
    size_t whole = 12 + size_bytes + tail.size_bytes;
    unsigned char *file = malloc(whole);
    mr_tensor upright = {0};
    mr_error error = {0};
    mr_image_info info = {0};
    if (file == nullptr) return;
    memcpy(file, "\xff\xd8\xff\xe1\0\0Exif\0\0", 12);
    file[4] = (unsigned char)((size_bytes + 8) >> 8);
    file[5] = (unsigned char)(size_bytes + 8);
    memcpy(file + 12, exif, size_bytes);
    memcpy(file + 12 + size_bytes, tail.data, tail.size_bytes);
    mr_status status = mr_image_orient_jpeg(file, whole, &upright, &error);
    if ((status == MR_OK) != (mr_exif_orientation(exif, size_bytes) != 0)) abort();
    if (status == MR_OK) {
        mr_string turned = mr_tensor_strings(&upright)[0];
        if (mr_image_probe(turned.data, turned.size_bytes, &info, &error) != MR_OK || info.orientation != 0) abort();
    }
    mr_tensor_deinit(&upright);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes > 60'000) return 0;
    int32_t orientation = mr_exif_orientation(bytes, size_bytes), width = 0, height = 0;
    if (orientation < 0 || orientation > 8) abort();
    if (mr_tiff_size(bytes, size_bytes, &width, &height) && (width < 1 || height < 1)) abort();
    unsigned char *copy = malloc(size_bytes + 1);
    if (copy == nullptr) return 0;
    memcpy(copy, bytes, size_bytes);
    mr_exif_remove_orientation(copy, size_bytes);
    if (mr_exif_orientation(copy, size_bytes) != 0) abort();
    free(copy);
    turn(bytes, size_bytes);
    return 0;
}
