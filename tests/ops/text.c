/* Samples of the operators of graph/ops/text.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"AsString", "float[2,3]", "precision=2; width=8"},
    {"AsString", "int64[3]=1,-2,3", "fill=0; width=5"},
    {"DecodeBase64", "string[2]=aGVsbG8", ""},
    {"EncodeBase64", "string[2]=hello", "pad=true"},
    {"ReduceJoin", "string[2,3]=a; int32[1]=1", "separator=-"},
    {"StringFormat", "float[2,3]+int32[5]", "template=%s and %s"},
    {"StringJoin", "string[2]=a+string[]=b", ""},
    {"StringLength", "string[2,3]=abc", "unit=UTF8_CHAR"},
    {"StringLower", "string[2]=ABC", "encoding=utf-8"},
    {"StringUpper", "string[2]=abc", ""},
    {"StringNGrams",
     "string[5]=a; int64[3]=0,2,5",
     "separator=-; ngram_widths=2,3; left_pad=l; right_pad=r; pad_width=-1; preserve_short_sequences=true"},
    {"StringSplit", "string[2]=a b c; string[]= ", ""},
    {"StringSplitV2", "string[2]=a b c; string[]=", "maxsplit=1"},
    {"StringStrip", "string[3]= a ", ""},
    {"StringToHashBucket", "string[3]=abc", "num_buckets=10"},
    {"StringToHashBucketFast", "string[3]=abc", "num_buckets=10"},
    {"StringToHashBucketStrong", "string[3]=abc", "num_buckets=10; key=1,2"},
    {"StringToNumber", "string[3]=12", "out_type=int64"},
    {"Substr", "string[2,3]=abcdef; int32[3]=1,2,3; int32[3]=2,1,2", "unit=UTF8_CHAR"},
    {"UnsortedSegmentJoin", "string[4,2]=a; int32[4]=0,1,0,2; int32[]=3", "separator=-"},
    {"Fingerprint", "float[3,4]; string[]=farmhash64", ""})
/* clang-format on */
