/* Samples of the operators of graph/ops/iterator.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"SerializeIterator", "!resource[]", "", "has not been initialized"},
    {"DeserializeIterator", "!resource[]; variant[]", "", "not the state of an iterator"},
    {"Iterator", "", "shared_name=i; container=; output_types=float; output_shapes=[2]"},
    {"IteratorGetNext", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"IteratorToStringHandle", "!resource[]", ""},
    {"IteratorV2", "", "shared_name=i; container=; output_types=float; output_shapes=[2]"},
    {"IteratorFromStringHandle", "string[]=none", "output_types=float; output_shapes=[2]", "not the handle"},
    {"IteratorFromStringHandleV2", "string[]=none", "output_types=float; output_shapes=[2]", "not the handle"},
    {"IteratorGetNextSync", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"IteratorGetNextAsOptional", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"AnonymousIterator", "", "output_types=float; output_shapes=[2]", "cannot be fetched"},
    {"AnonymousIteratorV2", "", "output_types=float; output_shapes=[2]", "cannot be fetched"},
    {"AnonymousIteratorV3", "", "output_types=float; output_shapes=[2]", "cannot be fetched"},
    {"DeleteIterator", "!resource[]; variant[]", "", "cannot be fed"},
    {"MakeIterator", "#variant[]=RangeDataset; !resource[]", ""},
    {"OneShotIterator", "", "dataset_factory=f; output_types=float; output_shapes=[2]"})
/* clang-format on */
