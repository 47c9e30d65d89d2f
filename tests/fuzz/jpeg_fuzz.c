/* JPEG: header, whole decode, region with resize, in the ways that options choose between. The last byte of the input,
 * which a picture can spare, picks the options. The corpus comes from `picture_work corpus` (tests/oracle). */
#include "tests/fuzz/picture_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    fuzz_picture(bytes, size_bytes, MR_IMAGE_JPEG);
    return 0;
}
