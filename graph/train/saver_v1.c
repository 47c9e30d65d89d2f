#include "graph/train/saver_v1.h"

#include "base/status.h"
#include "graph/run/session_state.h"
#include "records/checkpoint/checkpoint_part.h"

static void describe(mr_checkpoint_v1_item *to, const char *key, const mr_tensor *value)
{
    *to = (mr_checkpoint_v1_item){.key = key, .full = value->shape, .value = value};
    to->slice.rank = value->shape.rank;
    for (int32_t i = 0; i < to->slice.rank; i++) to->slice.lengths[i] = -1;
}

mr_status mr_saver_write_v1(const char *prefix, const mr_saver_item *items, const mr_tensor *values, int32_t count,
                            const mr_tensor *state, mr_error *error)
{
    mr_arena arena = {0};
    mr_checkpoint_v1_item *all = MR_ARENA_NEW(&arena, mr_checkpoint_v1_item, (size_t)count + 1);
    if (all == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *all);
    for (int32_t i = 0; i < count; i++) {
        describe(&all[i], items[i].key, &values[i]);
        if (!items[i].is_slice) continue;
        all[i].full = items[i].full;
        all[i].slice = items[i].slice;
    }
    if (state != nullptr) describe(&all[count++], MR_SESSION_STATE_KEY, state);
    const mr_status status = mr_checkpoint_v1_write(prefix, all, count, error);
    mr_arena_deinit(&arena);
    return status;
}
