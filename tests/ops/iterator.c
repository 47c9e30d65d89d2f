/* Samples of the operators of graph/ops/iterator.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"Iterator", "", "shared_name=i; container=; output_types=float; output_shapes=[2]"},
    {"IteratorGetNext", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"IteratorToStringHandle", "!resource[]", ""},
    {"IteratorV2", "", "shared_name=i; container=; output_types=float; output_shapes=[2]"},
    {"MakeIterator", "variant[]; !resource[]", "", "cannot be fed"},
    {"OneShotIterator", "", "dataset_factory=f; output_types=float; output_shapes=[2]"})
/* clang-format on */
