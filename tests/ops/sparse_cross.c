/* Samples of the operators of graph/ops/sparse_cross.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"SparseCross",
     "int64[3,2]=0,0,0,1,1,0+int64[2,2]=0,0,1,0; string[3]=text+string[2]=a; int64[2]=2,2+int64[2]=2,1; string[2,1]=c",
     "hashed_output=false; num_buckets=0; hash_key=1; out_type=string; internal_type=string"},
    {"SparseCross",
     "int64[3,2]=0,0,0,1,1,0+int64[2,2]=0,0,1,0; int64[3]+string[2]=a; int64[2]=2,2+int64[2]=2,1; int64[2,1]",
     "hashed_output=true; num_buckets=10; hash_key=956888297470; out_type=int64; internal_type=int64"},
    {"SparseCrossV2",
     "int64[3,2]=0,0,0,1,1,0+int64[2,2]=0,0,1,0; int64[3]+string[2]=a; int64[2]=2,2+int64[2]=2,1; string[2,3]=c; "
     "string[]=_",
     ""},
    {"SparseCrossHashed",
     "int64[3,2]=0,0,0,1,1,0+int64[2,2]=0,0,1,0; int64[3]+string[2]=a; int64[2]=2,2+int64[2]=2,1; string[2,3]=c; "
     "int64[]=7; bool[]=1; int64[2]",
     ""})
/* clang-format on */
