#include "graph/train/saver_v1.h"

#include "base/status.h"
#include "graph/run/session_state.h"
#include "records/checkpoint/checkpoint_part.h"
#include "records/io/file.h"

#include <stdlib.h>

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

bool mr_saver_files_exist(const char *prefix)
{
    char *index = mr_checkpoint_index_path(prefix);
    const bool exists = index != nullptr && (mr_file_exists(index) || mr_checkpoint_is_v1(prefix));
    free(index);
    return exists;
}

mr_status mr_saver_remove_files(const char *prefix, mr_error *error)
{
    char **paths = nullptr;
    int32_t count = 0;
    mr_status status = mr_checkpoint_remove(prefix, error);
    if (status == MR_OK) status = mr_checkpoint_v1_files(prefix, &paths, &count, error);
    for (int32_t i = 0; i < count; i++) {
        if (status == MR_OK) status = mr_file_remove(paths[i], error);
        free(paths[i]);
    }
    free((void *)paths);
    return status;
}
