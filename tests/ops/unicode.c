/* Samples of the operators of graph/ops/unicode.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"UnicodeDecode", "string[2,3]=abc", "input_encoding=UTF-8"},
    {"UnicodeDecodeWithOffsets", "string[2]=abcd", "input_encoding=UTF-16-BE"},
    {"UnicodeEncode", "int32[4]=65,66,8364,128512; int64[3]=0,1,4", "output_encoding=UTF-16-BE"},
    {"UnicodeScript", "int32[3]=65,945,0", ""},
    {"UnicodeTranscode", "string[2]=abc", "input_encoding=UTF-8; output_encoding=UTF-32-BE"})
/* clang-format on */
