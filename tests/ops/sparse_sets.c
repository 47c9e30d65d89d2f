/* Samples of the operators of graph/ops/sparse_sets.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"DenseToDenseSetOperation", "int32[2,3]=3,1,1,4,2,5; int32[2,2]=1,4", "set_operation=union"},
    {"DenseToDenseSetOperation", "string[2,3]=a; string[2,2]=b", "set_operation=a-b"},
    {"DenseToSparseSetOperation", "int32[2,3]=3,1,1,4,2,5; int64[2,2]=0,1,1,0; int32[2]=1,5; int64[2]=2,2",
     "set_operation=intersection"},
    {"SparseToSparseSetOperation",
     "int64[2,2]=0,1,1,0; int32[2]=1,5; int64[2]=2,2; int64[3,2]=0,1,0,2,1,0; int32[3]=1,5,6; int64[2]=2,3",
     "set_operation=b-a"},
    {"SetSize", "int64[3,2]=0,1,0,2,1,0; int32[3]=5,5,6; int64[2]=2,3", ""},
    {"RaggedRange", "int32[2]=0,5; int32[2]=3,1; int32[2]=1,-2", ""},
    {"RaggedRange", "float[2]=0,5; float[]=7; float[]=1", ""},
    {"RaggedTensorToTensor", "int64[2]=-1,-1; float[4]; float[]=0; int64[3]=0,3,4",
     "row_partition_types=ROW_SPLITS"},
    {"RaggedGather", "int64[3]=0,3,4; float[4]; int32[2]=1,0", "OUTPUT_RAGGED_RANK=1"},
    {"RaggedTensorToSparse", "int64[3]=0,2,2+int64[3]=0,1,3; float[3,2]", ""})
/* clang-format on */
