/* Samples of the operators of graph/ops/tensor_array.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"TensorArrayV2", "int32[]=3", "dtype=float"},
    {"TensorArrayGrad", "string[2]=a; float[]", "source=gradients", "cannot be fetched"},
    {"TensorArrayGradV2", "string[2]=a; float[]", "source=gradients", "no tensor array with the name"},
    {"TensorArrayWriteV2", "string[2]=a; int32[]=0; float[3]; float[]", "", "no tensor array with the name"},
    {"TensorArrayReadV2", "string[2]=a; int32[]=1; float[]", "dtype=float", "no tensor array with the name"},
    {"TensorArrayGatherV2", "string[2]=a; int32[2]=1,3; float[]", "dtype=float", "no tensor array with the name"},
    {"TensorArrayScatterV2", "string[2]=a; int32[2]=0,1; float[2,3]; float[]", "", "no tensor array with the name"},
    {"TensorArrayConcatV2", "string[2]=a; float[]", "dtype=float", "no tensor array with the name"},
    {"TensorArraySplitV2", "string[2]=a; float[3,2]; int64[2]=1,2; float[]", "", "no tensor array with the name"},
    {"TensorArraySizeV2", "string[2]=a; float[]", "", "no tensor array with the name"},
    {"TensorArrayCloseV2", "string[2]=a", "", "no tensor array with the name"},
    {"TensorArrayV3", "int32[]=3", "dtype=float"},
    {"TensorArrayGradV3", "%float[2,3]; float[]", "source=gradients"},
    {"TensorArrayGradWithShape", "%float[2,3]; float[]; int32[2]=4,5", "source=gradients"},
    {"TensorArrayWriteV3", "%float[]; int32[]=0; float[3]; float[]", "", "not resizeable"},
    {"TensorArrayReadV3", "%float[2,3]; int32[]=1; float[]", "dtype=float"},
    {"TensorArrayGatherV3", "%float[4,3]; int32[2]=1,3; float[]", "dtype=float"},
    {"TensorArrayScatterV3", "%float[2,3]; int32[0]; float[0,3]; float[]", ""},
    {"TensorArrayConcatV3", "%float[4,3,2]; float[]", "dtype=float"},
    {"TensorArraySplitV3", "%float[0,3]; float[0,3]; int64[0]; float[]", ""},
    {"TensorArraySizeV3", "%float[2,3]; float[]", ""},
    {"TensorArrayCloseV3", "%float[2,3]", ""},
    {"TensorArray", "int32[]=3", "dtype=float", "cannot be fetched"},
    {"TensorArrayWrite", "&string[2]; int32[]=0; float[3]; float[]", "", "is not a tensor array"},
    {"TensorArrayRead", "&string[2]; int32[]=1; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArrayGather", "&string[2]; int32[2]=1,3; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArrayScatter", "&string[2]; int32[2]=0,1; float[2,3]; float[]", "", "is not a tensor array"},
    {"TensorArrayConcat", "&string[2]; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArraySplit", "&string[2]; float[3,2]; int64[2]=1,2; float[]", "", "is not a tensor array"},
    {"TensorArraySize", "&string[2]; float[]", "", "is not a tensor array"},
    {"TensorArrayClose", "&string[2]", "", "is not a tensor array"},
    {"TensorArrayPack", "&string[2]; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArrayUnpack", "&string[2]; float[2,3]; float[]", "", "is not a tensor array"})
/* clang-format on */
