/* Fuzz target: TIFF images. See foreign_fuzz.h. Corpus: foreign_corpus.py. */
#include "tests/fuzz/foreign_fuzz.h"
#include "tools/common/lerc.c"
#include "tools/tfrecord-make/foreign_tiff.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_foreign(bytes, size_bytes, MR_IMAGE_TIFF, foreign_decode_tiff);
    return 0;
}
