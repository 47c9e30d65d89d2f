/* Inputs and outputs of a graph that is transformed. */
#include "base/status.h"
#include "graph/train/transform.h"

mr_status mr_transform_marks(mr_transforming *t, const char *role, mr_names names, bool **marks, mr_error *error)
{
    *marks = MR_ARENA_NEW(&t->r.arena, bool, (size_t)t->r.count + 1);
    if (*marks == nullptr) return mr_fail_memory(error, (size_t)t->r.count);
    return mr_rewrite_mark(&t->r, role, names, *marks, error);
}

mr_status mr_transform_prune(mr_transforming *t, mr_error *error)
{
    bool *outputs, *inputs;
    MR_TRY(mr_transform_marks(t, "output", t->outputs, &outputs, error));
    MR_TRY(mr_transform_marks(t, "input", t->inputs, &inputs, error));
    for (int32_t i = 0; i < t->r.count; i++) outputs[i] |= inputs[i];
    return mr_rewrite_keep_reachable(&t->r, outputs, nullptr, error);
}
