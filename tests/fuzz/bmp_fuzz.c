/* Fuzz target: BMP images. See foreign_fuzz.h. Corpus: foreign_corpus.py. */
#include "tests/fuzz/foreign_fuzz.h"
#include "tools/tfrecord-make/foreign_bmp.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_foreign(bytes, size_bytes, MR_IMAGE_BMP, foreign_decode_bmp);
    return 0;
}
