/* Samples of the operators of graph/ops/tensor_list.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"EmptyTensorList", "int32[2]=2,3; int32[]=4", "element_dtype=float"},
    {"TensorListReserve", "int32[2]=2,3; int32[]=4", "element_dtype=float"},
    {"TensorListPushBack", "^float[4,2,3]; float[2,3]", ""},
    {"TensorListPopBack", "^float[4,2,3]; int32[2]=2,3", "element_dtype=float"},
    {"TensorListLength", "^float[4,2,3]", ""},
    {"TensorListElementShape", "^float[4,2,3]", "shape_type=int32"},
    {"TensorListResize", "^float[4,2,3]; int32[]=7", ""},
    {"TensorListGetItem", "^float[4,2,3]; int32[]=1; int32[2]=2,3", "element_dtype=float"},
    {"TensorListSetItem", "^float[4,2,3]; int32[]=1; float[2,3]", ""},
    {"TensorListStack", "^float[4,2,3]; int32[2]=2,3", "element_dtype=float"},
    {"TensorListGather", "^float[4,2,3]; int32[2]=0,3; int32[2]=2,3", "element_dtype=float"},
    {"TensorListScatter", "float[2,3]; int32[2]=0,5; int32[1]=3", ""},
    {"TensorListScatterV2", "float[2,3]; int32[2]=0,5; int32[1]=3; int32[]=8", ""},
    {"TensorListScatterIntoExistingList", "^float[4,3]; float[2,3]; int32[2]=0,5", ""},
    {"TensorListFromTensor", "float[4,2,3]; int32[2]=2,3", ""},
    {"TensorListConcat", "^float[4,2,3]", "element_dtype=float"},
    {"TensorListConcatV2", "^float[4,2,3]; int32[2]=2,3; int64[0]", "element_dtype=float"},
    {"TensorListSplit", "float[5,3]; int32[2]=-1,3; int64[2]=1,4", ""},
    {"TensorListConcatLists", "^float[4,2,3]; ^float[5,2,3]", "element_dtype=float"})
/* clang-format on */
