/* Fuzz target: BMP images, decoded by tfrecord-make and by DecodeBmp. See foreign_fuzz.h. Corpus: foreign_corpus.py. */
#include "kernels/image/frames.h"
#include "tests/fuzz/foreign_fuzz.h"
#include "tools/tfrecord-make/foreign_bmp.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_foreign(bytes, size_bytes, MR_IMAGE_BMP, foreign_decode_bmp);
    static const int channels[] = {0, 3, 4, 1};
    mr_error error = {0};
    mr_tensor image = {0};
    mr_status status = mr_bmp_decode(bytes, size_bytes, channels[size_bytes % 4], &image, &error);
    if (status != MR_OK && error.message[0] == '\0') abort();
    mr_tensor_deinit(&image);
    return 0;
}
