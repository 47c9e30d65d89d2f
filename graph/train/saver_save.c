/* How a Saver saves, and what it keeps in a directory.
 *
 * A checkpoint is written in this order: data, index (its presence marks both as complete), .meta, then the file
 * "checkpoint" that names it. Only then are the oldest checkpoints removed. */
#include "base/options.h"
#include "graph/run/execute.h"
#include "graph/run/session.h"
#include "graph/run/session_state.h"
#include "graph/train/saver_part.h"
#include "graph/train/saver_v1.h"
#include "records/checkpoint/checkpoint_part.h"
#include "records/io/file.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static mr_status write_state(mr_session *session, mr_checkpoint_writer *writer, mr_error *error)
{
    mr_tensor state = {0};
    MR_TRY(mr_session_save_state(session, &state, error));
    mr_status status = mr_checkpoint_write(writer, MR_SESSION_STATE_KEY, &state, error);
    mr_tensor_deinit(&state);
    return status;
}

/* A variable that is not trained may contain an intended infinity, for example as the best loss so far. */
static mr_status check_finite(const mr_saver *s, int32_t index, const mr_tensor *value, mr_error *error)
{
    int64_t at = s->requires_finite ? mr_tensor_find_nonfinite(value, !s->items[index].is_trainable) : -1;
    if (at < 0) return MR_OK;
    char shape[MR_SHAPE_TEXT_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT, "the variable %s is not finite: %s at element %" PRId64 " of %s",
                   s->items[index].key, mr_tensor_nonfinite_text(value, at), at,
                   mr_shape_text(value->shape, shape, sizeof shape));
}

static mr_status write_values(mr_saver *s, mr_session *session, mr_checkpoint_writer *writer, mr_error *error)
{
    for (int32_t i = 0; i < s->count; i++) {
        mr_tensor value = {0};
        MR_TRY(mr_session_read_variable(session, s->items[i].ref, &value, error));
        mr_status status = check_finite(s, i, &value, error);
        if (status == MR_OK) status = mr_saver_item_write(&s->items[i], writer, &value, error);
        mr_tensor_deinit(&value);
        MR_TRY(status);
    }
    return s->saves_state ? write_state(session, writer, error) : MR_OK;
}

/* All values are in memory at the same time: a V1 checkpoint is sorted by key. */
static mr_status write_v1(mr_saver *s, mr_session *session, const char *prefix, mr_error *error)
{
    mr_tensor *values = MR_ARENA_NEW(&s->scratch, mr_tensor, (size_t)s->count + 1);
    if (values == nullptr) return mr_fail_memory(error, (size_t)s->count * sizeof *values);
    mr_status status = MR_OK;
    for (int32_t i = 0; status == MR_OK && i < s->count; i++) {
        status = mr_session_read_variable(session, s->items[i].ref, &values[i], error);
        if (status == MR_OK) status = check_finite(s, i, &values[i], error);
    }
    if (status == MR_OK && s->saves_state) status = mr_session_save_state(session, &values[s->count], error);
    const mr_tensor *state = s->saves_state ? &values[s->count] : nullptr;
    if (status == MR_OK) status = mr_saver_write_v1(prefix, s->items, values, s->count, state, error);
    for (int32_t i = 0; i <= s->count; i++) mr_tensor_deinit(&values[i]);
    return status;
}

static mr_status write_checkpoint(mr_saver *s, mr_session *session, const char *prefix, mr_error *error)
{
    if (s->is_v1) return write_v1(s, session, prefix, error);
    mr_checkpoint_writer *writer = nullptr;
    MR_TRY(mr_checkpoint_writer_open(prefix, &writer, error));
    mr_status status = write_values(s, session, writer, error);
    if (status == MR_OK)
        status = mr_checkpoint_writer_close(writer, error);
    else
        mr_checkpoint_writer_discard(writer);
    /* Data without an index would only waste space. */
    char *index = status != MR_OK ? mr_arena_printf(&s->scratch, "%s.index", prefix) : nullptr;
    if (index != nullptr && !mr_file_exists(index)) (void)mr_checkpoint_remove(prefix, nullptr);
    return status;
}

mr_status mr_saver_write_variables(mr_saver *saver, mr_session *session, const char *prefix, mr_error *error)
{
    const bool saves_state = saver->saves_state;
    mr_arena_reset(&saver->scratch);
    saver->saves_state = false;
    const mr_status status = write_checkpoint(saver, session, prefix, error);
    saver->saves_state = saves_state;
    return status;
}

static const char *meta_suffix(const mr_saver *s)
{
    return s->how != nullptr && s->how->meta_graph_suffix != nullptr ? s->how->meta_graph_suffix : "meta";
}

static const char *state_file(const mr_saver *s)
{
    return s->how != nullptr && s->how->latest_filename != nullptr ? s->how->latest_filename : MR_CHECKPOINT_STATE_FILE;
}

static mr_status write_meta_graph(mr_saver *s, const char *prefix, mr_error *error)
{
    char *path = mr_arena_printf(&s->scratch, "%s.%s", prefix, meta_suffix(s));
    if (path == nullptr) return mr_fail_memory(error, strlen(prefix));
    const bool strips = s->how != nullptr && s->how->strip_default_attrs;
    mr_tensor meta = {0};
    MR_TRY(mr_graph_export_meta_with(s->graph, MR_OPTIONS(mr_meta_export_options, .strip_default_attrs = strips), &meta,
                                     error));
    mr_string bytes = mr_tensor_strings(&meta)[0];
    mr_status status = mr_file_write_all(path, bytes.data, bytes.size_bytes, error);
    mr_tensor_deinit(&meta);
    return status;
}

static mr_status remove_checkpoint(mr_saver *s, const char *prefix, mr_error *error)
{
    return mr_checkpoint_delete(prefix, meta_suffix(s), error);
}

/* Whether a checkpoint that max_to_keep would remove is the one to keep of these hours, as in TensorFlow. */
static bool is_kept(mr_saver *s, const char *prefix)
{
    struct stat about;
    char *index = mr_arena_printf(&s->scratch, "%s.index", prefix);
    if (s->keep_every_s <= 0 || index == nullptr) return false;
    if (stat(index, &about) != 0 && stat(prefix, &about) != 0) return false;
    if ((double)about.st_mtime <= s->next_kept) return false;
    s->next_kept += s->keep_every_s;
    return true;
}

/* Keeps copies of the paths for mr_saver_last_checkpoints. Nobody relies on them if memory is exhausted. */
static void remember(mr_saver *s, const char *const *paths, int32_t count)
{
    mr_arena_reset(&s->names);
    s->last = (mr_names){0};
    const char **copies = MR_ARENA_NEW(&s->names, const char *, (size_t)count + 1);
    for (int32_t i = 0; copies != nullptr && i < count; i++) {
        copies[i] = mr_arena_strdup(&s->names, paths[i]);
        if (copies[i] == nullptr) return;
    }
    if (copies != nullptr) s->last = (mr_names){copies, count};
}

mr_names mr_saver_last_checkpoints(const mr_saver *saver)
{
    return saver != nullptr ? saver->last : (mr_names){0};
}

/* Whether a checkpoint is one of this path, "path" or "path-STEP": not "path2-STEP", which another saver may keep. */
static bool is_of_path(const char *checkpoint, const char *path)
{
    const size_t length = strlen(path);
    if (strncmp(checkpoint, path, length) != 0) return false;
    const char *rest = checkpoint + length;
    return *rest == '\0' || (*rest == '-' && rest[1] != '\0' && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

/* "checkpoint" lists the earlier checkpoints that still exist and belong to the same path, then this one. Those beyond
 * max_to_keep are removed after it has been written. */
static mr_status update_state(mr_saver *s, const char *directory, const char *path, const char *prefix, mr_error *error)
{
    const bool is_named = s->how == nullptr || !s->how->no_state;
    mr_checkpoint_state state = {0};
    mr_status status = mr_checkpoint_state_read(directory, state_file(s), &state, nullptr);
    int32_t known = status == MR_OK ? state.count : 0, count = 0;
    const char **paths = MR_ARENA_NEW(&s->scratch, const char *, (size_t)known + 1);
    if (paths == nullptr) {
        mr_checkpoint_state_deinit(&state);
        return mr_fail_memory(error, sizeof *paths);
    }
    for (int32_t i = 0; i < known; i++) {
        bool ours = is_of_path(state.paths[i], path) && strcmp(state.paths[i], prefix) != 0;
        if (ours && mr_checkpoint_exists(state.paths[i])) paths[count++] = state.paths[i];
    }
    paths[count++] = prefix;
    int32_t first = is_named && s->max_to_keep > 0 && count > s->max_to_keep ? count - s->max_to_keep : 0;
    assert(count <= known + 1 && first < count); /* what has just been written is not removed */
    status = MR_OK;
    if (is_named) status = mr_checkpoint_state_write(directory, state_file(s), paths + first, count - first, error);
    for (int32_t i = 0; status == MR_OK && i < first; i++)
        if (!is_kept(s, paths[i])) status = remove_checkpoint(s, paths[i], error);
    if (status == MR_OK) remember(s, paths + first, count - first);
    mr_checkpoint_state_deinit(&state);
    return status;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), size = strlen(ending);
    return length >= size && strcmp(text + length - size, ending) == 0;
}

/* The length of the checkpoint prefix in a file name of this path's checkpoints, "base.data-…" or "base-STEP.meta". 0:
 * any other file. */
static size_t prefix_length(const char *name, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0) return 0;
    if (name[length] == '-') length += 1 + strspn(name + length + 1, "0123456789");
    return name[length] == '.' ? length : 0;
}

/* True for what a killed process leaves: a partial file of this path, or data or a graph without an index. */
static bool is_leftover(mr_saver *s, const char *directory, const char *name, const char *base)
{
    const char *file = state_file(s);
    if (strncmp(name, file, strlen(file)) == 0 && strcmp(name + strlen(file), MR_FILE_PARTIAL) == 0) return true;
    size_t length = prefix_length(name, base);
    if (length == 0) return false;
    if (ends_with(name, MR_FILE_PARTIAL)) return true;
    if (strncmp(name + length, ".data-", strlen(".data-")) != 0 && strcmp(name + length, ".meta") != 0) return false;
    char *prefix = mr_arena_printf(&s->scratch, "%s/%.*s", directory, (int)length, name);
    return prefix != nullptr && !mr_checkpoint_exists(prefix);
}

/* Runs once for each directory. This process is the only writer, so no file there is still being written. */
static mr_status clean(mr_saver *s, const char *directory, const char *base, mr_error *error)
{
    if (s->clean_directory != nullptr && strcmp(s->clean_directory, directory) == 0) return MR_OK;
    DIR *stream = opendir(directory);
    mr_status status = MR_OK;
    for (struct dirent *entry; stream != nullptr && status == MR_OK && (entry = readdir(stream)) != nullptr;) {
        if (!is_leftover(s, directory, entry->d_name, base)) continue;
        char *path = mr_arena_printf(&s->scratch, "%s/%s", directory, entry->d_name);
        status = path == nullptr ? mr_fail_memory(error, 1) : mr_file_remove(path, error);
    }
    if (stream != nullptr) closedir(stream);
    free(s->clean_directory);
    s->clean_directory = strdup(directory);
    return status;
}

mr_status mr_saver_clean(mr_saver *saver, const char *path, mr_error *error)
{
    const char *slash = strrchr(path, '/');
    mr_arena_reset(&saver->scratch);
    char *directory = slash == nullptr ? mr_arena_strdup(&saver->scratch, ".")
                                       : mr_arena_strndup(&saver->scratch, path, (size_t)(slash - path) + 1);
    if (directory == nullptr) return mr_fail_memory(error, strlen(path));
    return clean(saver, directory, slash == nullptr ? path : slash + 1, error);
}

/* True if directory/checkpoint names that checkpoint, or cannot be read, in which case it might. */
static bool is_named(const mr_saver *s, const char *directory, const char *prefix)
{
    mr_checkpoint_state state = {0};
    mr_status status = mr_checkpoint_state_read(directory, state_file(s), &state, nullptr);
    bool named = status != MR_OK && status != MR_NOT_FOUND;
    for (int32_t i = 0; status == MR_OK && !named && i < state.count; i++) named = strcmp(state.paths[i], prefix) == 0;
    mr_checkpoint_state_deinit(&state);
    return named;
}

/* path  "directory/base", with `directory` and `base` taken apart */
static mr_status save(mr_saver *s, mr_session *session, const char *directory, const char *base, const char *path,
                      int64_t step, mr_error *error)
{
    const char *prefix =
        step < 0 ? path : mr_arena_printf(&s->scratch, "%s-%0*" PRId64, path, s->pads_step ? 8 : 1, step);
    if (prefix == nullptr) return mr_fail_memory(error, strlen(path));
    assert(strncmp(prefix, directory, strlen(directory)) == 0 && strchr(base, '/') == nullptr);
    const char *own = strrchr(prefix, '/') + 1;
    const size_t length = strlen(own);
    if (strncmp(state_file(s), own, length) == 0 && (state_file(s)[length] == '\0' || state_file(s)[length] == '.'))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: latest_filename \"%.200s\" is the name of one of the checkpoint's own files", path,
                       state_file(s));
    MR_TRY(mr_file_make_directories(directory, error));
    MR_TRY(clean(s, directory, base, error));
    if (s->count > 0) MR_TRY(write_checkpoint(s, session, prefix, error));
    mr_status status = MR_OK;
    if (s->saves_meta_graph && (s->how == nullptr || !s->how->no_meta_graph))
        status = write_meta_graph(s, prefix, error);
    if (status == MR_OK && s->count > 0) status = update_state(s, directory, path, prefix, error);
    /* For example on a full disk: files that are not yet named by "checkpoint" are removed to free space. */
    if (status != MR_OK && !is_named(s, directory, prefix)) (void)remove_checkpoint(s, prefix, nullptr);
    return status;
}

static mr_status save_to(mr_saver *s, mr_session *session, const char *path, int64_t step, mr_error *error)
{
    MR_TRY(mr_saver_check_ready(s, path, error));
    mr_arena_reset(&s->scratch);
    const char *slash = strrchr(path, '/');
    const char *base = slash != nullptr ? slash + 1 : path;
    if (*base == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s\": a checkpoint needs a name", path);
    if (step < -1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the step is %" PRId64 ", but must be at least -1", path, step);
    char *directory = slash == nullptr ? mr_arena_strdup(&s->scratch, ".")
                      : slash == path  ? mr_arena_strdup(&s->scratch, "/")
                                       : mr_arena_strndup(&s->scratch, path, (size_t)(slash - path));
    char *full = slash == nullptr ? mr_arena_printf(&s->scratch, "./%s", path) : mr_arena_strdup(&s->scratch, path);
    if (directory == nullptr || full == nullptr) return mr_fail_memory(error, strlen(path));
    return save(s, session, directory, base, full, step, error);
}

static mr_status check_how(const mr_saver *s, const char *path, const mr_saver_save_options *how, mr_error *error)
{
    const char *file = how->latest_filename, *suffix = how->meta_graph_suffix;
    const bool has_meta = s == nullptr || (s->saves_meta_graph && !how->no_meta_graph);
    if (file != nullptr && !mr_checkpoint_state_name_is_valid(file))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: latest_filename \"%.200s\" is not the name of a file", path,
                       file);
    if (file != nullptr && how->no_state)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: latest_filename has no effect with no_state", path);
    if (suffix != nullptr && !mr_checkpoint_suffix_is_valid(suffix))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: meta_graph_suffix \"%.200s\" is not valid", path, suffix);
    if (!has_meta && (suffix != nullptr || how->strip_default_attrs))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has no effect: no graph is written", path,
                       suffix != nullptr ? "meta_graph_suffix" : "strip_default_attrs");
    return MR_OK;
}

mr_status mr_saver_save_with(mr_saver *saver, mr_session *session, const char *path, int64_t step,
                             const mr_saver_save_options *options, mr_error *error)
{
    mr_saver_save_options how;
    if (session == nullptr) return mr_session_null("mr_saver_save: session", error);
    if (path == nullptr) return mr_session_null("mr_saver_save: path", error);
    MR_TRY(MR_OPTIONS_READ(mr_saver_save_options, &how, options, error));
    MR_TRY(check_how(saver, path, &how, error));
    if (saver != nullptr) saver->how = &how;
    const mr_status status = save_to(saver, session, path, step, error);
    if (saver != nullptr) saver->how = nullptr;
    return status;
}

mr_status mr_saver_save(mr_saver *saver, mr_session *session, const char *path, int64_t step, mr_error *error)
{
    return mr_saver_save_with(saver, session, path, step, nullptr, error);
}
