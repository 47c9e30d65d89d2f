/* Fuzz target: PNG. Reads the header, decodes the complete image, and decodes and resizes a region, with various
 * options. The last byte of the input, which an image does not need, selects the options. The corpus comes from
 * `image_work corpus` (tests/oracle). */
#include "tests/fuzz/image_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_image(bytes, size_bytes, MR_IMAGE_PNG);
    return 0;
}
