/* graph/ops/script.c */
#include "tests/ops/sample.h"

SAMPLES({"PyFunc", "float[2]+string[]=a", "token=f; Tout=float", "no functions for graphs"},
        {"PyFuncStateless", "float[2]+int32[]", "token=f; Tout=int32", "no functions for graphs"})
