/* The checkpoints of a directory: their list, their removal, and waiting for a new one. */
#include "base/options.h"
#include "records/checkpoint/checkpoint_part.h"
#include "records/io/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* What the caller gets, and the memory that it refers to. */
typedef struct list_memory {
    mr_checkpoint_list list;
    mr_checkpoint_state state;
} list_memory;

mr_status mr_checkpoint_list_read(const char *directory, const char *latest_filename, mr_checkpoint_list **list,
                                  mr_error *error)
{
    static const char function[] = "mr_checkpoint_list_read";
    if (list == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: list is null", function);
    *list = nullptr;
    MR_TRY(mr_checkpoint_check_names(function, directory, latest_filename, error));
    list_memory *memory = calloc(1, sizeof *memory);
    if (memory == nullptr) return mr_fail_memory(error, sizeof *memory);
    const mr_status status = mr_checkpoint_state_read(directory, latest_filename, &memory->state, error);
    if (status != MR_OK) {
        free(memory);
        return status;
    }
    memory->list.latest = memory->state.latest;
    memory->list.paths = (mr_names){memory->state.paths, memory->state.count};
    *list = &memory->list;
    return MR_OK;
}

void mr_checkpoint_list_free(mr_checkpoint_list *list)
{
    if (list == nullptr) return;
    mr_checkpoint_state_deinit(&((list_memory *)list)->state);
    free(list);
}

mr_status mr_checkpoint_list_write(const char *directory, const char *latest_filename, mr_names paths, mr_error *error)
{
    static const char function[] = "mr_checkpoint_list_write";
    MR_TRY(mr_checkpoint_check_names(function, directory, latest_filename, error));
    if (paths.count < 1 || paths.items == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: there are no paths", function);
    for (int32_t i = 0; i < paths.count; i++)
        if (paths.items[i] == nullptr || *paths.items[i] == '\0')
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: path %d is %s", function, (int)i,
                           paths.items[i] == nullptr ? "null" : "empty");
    return mr_checkpoint_state_write(directory, latest_filename, paths.items, paths.count, error);
}

/* ---- The files of a checkpoint ---- */

mr_status mr_checkpoint_remove(const char *path, mr_error *error)
{
    /* The index contains the number of data files. If it cannot be read, one data file is assumed. */
    int32_t shards = 1;
    mr_checkpoint_reader *reader = nullptr;
    if (mr_checkpoint_reader_open(path, &reader, nullptr) == MR_OK) shards = mr_checkpoint_shard_count(reader);
    mr_checkpoint_reader_close(reader);
    char *index = mr_checkpoint_index_path(path);
    mr_status status = index == nullptr ? mr_fail_memory(error, strlen(path)) : mr_file_remove(index, error);
    free(index);
    for (int32_t i = 0; status == MR_OK && i < shards; i++) {
        char *data = mr_checkpoint_data_path(path, i, shards);
        status = data == nullptr ? mr_fail_memory(error, strlen(path)) : mr_file_remove(data, error);
        free(data);
    }
    return status;
}

static bool modified(const char *path, double *seconds)
{
    struct stat about;
    if (path == nullptr || stat(path, &about) != 0) return false;
    *seconds = (double)about.st_mtim.tv_sec + (double)about.st_mtim.tv_nsec * 1e-9;
    return true;
}

mr_status mr_checkpoint_mtime(const char *path, double *seconds, mr_error *error)
{
    if (path == nullptr || seconds == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_mtime: %s is null",
                       path == nullptr ? "path" : "seconds");
    char **files = nullptr, *index = mr_checkpoint_index_path(path);
    int32_t count = 0;
    if (index == nullptr) return mr_fail_memory(error, strlen(path));
    bool found = modified(index, seconds);
    free(index);
    if (found) return MR_OK;
    MR_TRY(mr_checkpoint_v1_files(path, &files, &count, error));
    for (int32_t i = 0; i < count; i++) {
        found = found || modified(files[i], seconds);
        free(files[i]);
    }
    free((void *)files);
    return found ? MR_OK : mr_fail(error, MR_NOT_FOUND, "%s: there is no checkpoint", path);
}

bool mr_checkpoint_suffix_is_valid(const char *suffix)
{
    return *suffix != '\0' && strchr(suffix, '/') == nullptr && strcmp(suffix, "index") != 0 &&
           strncmp(suffix, "data-", strlen("data-")) != 0;
}

mr_status mr_checkpoint_delete(const char *path, const char *meta_graph_suffix, mr_error *error)
{
    if (path == nullptr || *path == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_delete: path is %s",
                       path == nullptr ? "null" : "empty");
    const char *suffix = meta_graph_suffix != nullptr ? meta_graph_suffix : "meta";
    if (!mr_checkpoint_suffix_is_valid(suffix))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_delete: meta_graph_suffix \"%.200s\" is not valid",
                       suffix);
    mr_arena arena = {0};
    const char *meta = mr_arena_printf(&arena, "%s.%s", path, suffix);
    char **files = nullptr;
    int32_t count = 0;
    mr_status status = meta != nullptr ? mr_checkpoint_remove(path, error) : mr_fail_memory(error, strlen(path));
    if (status == MR_OK) status = mr_checkpoint_v1_files(path, &files, &count, error);
    for (int32_t i = 0; i < count; i++) {
        if (status == MR_OK) status = mr_file_remove(files[i], error);
        free(files[i]);
    }
    free((void *)files);
    if (status == MR_OK) status = mr_file_remove(meta, error);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Waiting ---- */

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void sleep_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0) {}
}

static mr_status check_secs(const char *option, double value, mr_error *error)
{
    if (value >= 0 && value <= 1e9) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "mr_checkpoint_wait: %s is %g, but must be a number above 0, at most 1e9", option, value);
}

/* The latest checkpoint, if it is another one than `last`. A file that is being replaced, or a checkpoint that is
 * removed meanwhile, is looked at again. */
static bool find_new(const char *directory, const char *file, const char *last, mr_checkpoint_state *state)
{
    if (mr_checkpoint_state_read(directory, file, state, nullptr) != MR_OK) return false;
    const bool is_new = state->latest != nullptr && (last == nullptr || strcmp(state->latest, last) != 0);
    if (is_new && mr_checkpoint_exists(state->latest)) return true;
    mr_checkpoint_state_deinit(state);
    return false;
}

mr_status mr_checkpoint_wait(const char *directory, const char *last, const mr_checkpoint_wait_options *options,
                             char *path, size_t path_size, mr_error *error)
{
    mr_checkpoint_wait_options o;
    mr_checkpoint_state state;
    MR_TRY(MR_OPTIONS_READ(mr_checkpoint_wait_options, &o, options, error));
    MR_TRY(mr_checkpoint_check_names("mr_checkpoint_wait", directory, o.latest_filename, error));
    if (path == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_wait: path is null");
    MR_TRY(check_secs("interval_secs", o.interval_secs, error));
    MR_TRY(check_secs("timeout_secs", o.timeout_secs, error));
    const double interval = o.interval_secs > 0 ? o.interval_secs : 1, start = now();
    while (!find_new(directory, o.latest_filename, last, &state)) {
        const double left = o.timeout_secs > 0 ? start + o.timeout_secs - now() : INFINITY;
        if (left <= 0)
            return mr_fail(error, MR_DEADLINE_EXCEEDED, "%s: no new checkpoint in %g s", directory, o.timeout_secs);
        sleep_for(left < interval ? left : interval);
    }
    const mr_status status = mr_checkpoint_copy_path(state.latest, path, path_size, error);
    mr_checkpoint_state_deinit(&state);
    return status;
}
