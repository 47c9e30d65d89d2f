/* Samples of the operators of graph/ops/parsing.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"DecodeCSV", "string[2]=1,2.5; int32[1]+float[0]", ""},
    {"DecodeRaw", "string[3]=abcdefgh", "out_type=int16"},
    {"DecodePaddedRaw", "string[3]=abc; int32[]=8", "out_type=int32"},
    {"DecodeCompressed", "string[2]=abc", ""},
    {"DecodeJSONExample", "string[2]={}", ""},
    {"ParseTensor", "string[]=", "out_type=float", "Cannot parse tensor"},
    {"SerializeTensor", "float[2,3]", ""},
    {"ParseExample",
     "string[2]=; string[0]; string[]=a; string[]=b; float[2]",
     "sparse_types=int64; dense_shapes=[2]"},
    {"ParseExampleV2",
     "string[2]=; string[0]; string[1]=a; string[1]=b; string[1]=c; float[2]",
     "num_sparse=1; sparse_types=int64; dense_shapes=[2]; ragged_value_types=float; ragged_split_types=int32"},
    {"ParseSingleExample",
     "string[]=; float[2]",
     "num_sparse=1; sparse_keys=a; dense_keys=b; sparse_types=string; dense_shapes=[2]"},
    {"ParseSequenceExample",
     "string[2]=; string[0]; float[2]",
     "feature_list_dense_missing_assumed_empty=d; context_sparse_keys=a; context_dense_keys=b; "
     "feature_list_sparse_keys=c; feature_list_dense_keys=d; Ncontext_sparse=1; Ncontext_dense=1; "
     "Nfeature_list_sparse=1; Nfeature_list_dense=1; context_sparse_types=int64; "
     "feature_list_dense_types=float; context_dense_shapes=[2]; feature_list_sparse_types=int64; "
     "feature_list_dense_shapes=[3]"},
    {"ParseSequenceExampleV2",
     "string[2]=; string[0]; string[1]=a; string[1]=b; string[1]=e; string[1]=c; string[1]=d; string[1]=f; "
     "bool[1]=1; float[2]",
     "Ncontext_sparse=1; context_sparse_types=int64; context_ragged_value_types=int64; "
     "context_ragged_split_types=int64; context_dense_shapes=[2]; Nfeature_list_sparse=1; "
     "Nfeature_list_dense=1; feature_list_dense_types=float; feature_list_sparse_types=int64; "
     "feature_list_ragged_value_types=float; feature_list_ragged_split_types=int32; "
     "feature_list_dense_shapes=[3]"},
    {"ParseSingleSequenceExample",
     "string[]=; string[1]=d; string[]=a; string[]=b; string[]=c; string[]=d; float[2]; string[]=",
     "context_sparse_types=int64; feature_list_dense_types=float; context_dense_shapes=[2]; "
     "feature_list_sparse_types=int64; feature_list_dense_shapes=[3]"})
/* clang-format on */
