/* PNG: header, whole decode, region with resize, in the ways that options choose between. The last byte of the input,
 * which an image can spare, picks the options. The corpus comes from `image_work corpus` (tests/oracle). */
#include "tests/fuzz/image_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_image(bytes, size_bytes, MR_IMAGE_PNG);
    return 0;
}
