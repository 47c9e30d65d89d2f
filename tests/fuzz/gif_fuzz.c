/* Fuzz target: GIF images, decoded by tfrecord-make and by DecodeGif. See foreign_fuzz.h. Corpus: foreign_corpus.py. */
#include "kernels/image/frames.h"
#include "tests/fuzz/foreign_fuzz.h"
#include "tools/tfrecord-make/foreign_gif.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_foreign(bytes, size_bytes, MR_IMAGE_GIF, foreign_decode_gif);
    mr_error error = {0};
    mr_tensor frames = {0};
    mr_status status = mr_gif_decode(bytes, size_bytes, size_bytes % 2 == 1, &frames, &error);
    if (status != MR_OK && error.message[0] == '\0') abort();
    mr_tensor_deinit(&frames);
    return 0;
}
