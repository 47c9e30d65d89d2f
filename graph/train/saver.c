/* Saver: a set of variables, the nodes that TensorFlow's Saver would add, and the checkpoints of a directory.
 *
 * The nodes make exported graphs usable by other programs (and by graph-run). This Saver itself copies directly from
 * the session to the checkpoint's files, between runs, and adds the session's state (random numbers, iterators).
 *
 * A checkpoint is written in this order: data, index (its presence marks both as complete), .meta, then the file
 * "checkpoint" that names it. Only then are the oldest checkpoints removed. */
#include "base/options.h"
#include "graph/run/execute.h"
#include "graph/run/session.h"
#include "graph/run/session_state.h"
#include "graph/train/saver_nodes.h"
#include "graph/train/saver_v1.h"
#include "records/io/file.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct mr_saver {
    mr_arena arena;
    mr_arena scratch; /* for one save */
    mr_graph *graph;
    int32_t count;
    mr_saver_item *items; /* sorted by key */
    int32_t max_to_keep;  /* 0: all */
    double keep_every_s;  /* 0: none is kept beyond max_to_keep */
    double next_kept;     /* time of the next one that is kept, since 1970 */
    bool saves_state;
    bool saves_meta_graph;
    bool is_v1;
    bool pads_step;
    bool requires_finite;  /* see mr_saver_require_finite */
    char *clean_directory; /* the directory that has been cleaned of the files of killed processes */
};

static void check_version(mr_graph *graph, const mr_saver_options *options)
{
    if (options->write_version < MR_CHECKPOINT_V2 || options->write_version > MR_CHECKPOINT_V1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver's write_version is %d, which does not exist",
                            (int)options->write_version);
    else if (options->sharded < 0 || options->sharded > 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver's sharded is %d, not 0 or 1", (int)options->sharded);
    else if (options->write_version == MR_CHECKPOINT_V1 && options->sharded)
        (void)mr_graph_fail(graph, MR_UNIMPLEMENTED,
                            "the saver is sharded: V1 checkpoints are written as one file only");
}

static mr_saver *make(mr_graph *graph, const mr_saver_options *given, bool with_nodes)
{
    static const mr_saver_options defaults = {.size = sizeof defaults, MR_SAVER_DEFAULTS};
    mr_saver_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_saver_options, &options, given != nullptr ? given : &defaults, &error);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return nullptr;
    }
    mr_saver *s = calloc(1, sizeof *s);
    if (s == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
        return nullptr;
    }
    bool all = options.variables == nullptr;
    s->graph = graph;
    s->max_to_keep = options.max_to_keep;
    s->saves_state = all;
    s->saves_meta_graph = options.write_meta_graph;
    s->pads_step = options.pad_step_number;
    s->keep_every_s = options.keep_checkpoint_every_n_hours * 3600;
    s->next_kept = (double)time(nullptr) + s->keep_every_s;
    (void)mr_train_check_count(graph, "the saver's max_to_keep", options.max_to_keep, 0);
    if (!(options.keep_checkpoint_every_n_hours >= 0) || isinf(options.keep_checkpoint_every_n_hours))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the saver's keep_checkpoint_every_n_hours is %g, not at least 0",
                            options.keep_checkpoint_every_n_hours);
    if (options.max_to_keep == 0 && options.keep_checkpoint_every_n_hours > 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the saver's keep_checkpoint_every_n_hours has no effect if max_to_keep is 0");
    if (all && (options.variable_count != 0 || options.keys != nullptr))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver's %s has no effect without variables",
                            options.keys != nullptr ? "keys" : "variable_count");
    s->is_v1 = options.write_version == MR_CHECKPOINT_V1;
    check_version(graph, &options);
    if (mr_graph_status(graph, nullptr) == MR_OK) s->items = mr_saver_items_new(graph, &s->arena, &options, &s->count);
    if (s->items == nullptr) s->count = 0;
    if (mr_graph_status(graph, nullptr) != MR_OK) return s;
    if (with_nodes) mr_saver_make_nodes(graph, &s->arena, s->items, s->count, &options);
    return s;
}

mr_saver *mr_saver_new_(mr_graph *graph, const mr_saver_options *options)
{
    return make(graph, options, true);
}

mr_saver *mr_saver_adopt(mr_graph *graph, const mr_saver_options *options)
{
    return make(graph, options, false);
}

void mr_saver_free(mr_saver *saver)
{
    if (saver == nullptr) return;
    free(saver->clean_directory);
    mr_arena_deinit(&saver->arena);
    mr_arena_deinit(&saver->scratch);
    free(saver);
}

/* ---- Save ---- */

static mr_status write_state(mr_session *session, mr_checkpoint_writer *writer, mr_error *error)
{
    mr_tensor state = {0};
    MR_TRY(mr_session_save_state(session, &state, error));
    mr_status status = mr_checkpoint_write(writer, MR_SESSION_STATE_KEY, &state, error);
    mr_tensor_deinit(&state);
    return status;
}

const mr_graph *mr_saver_graph(const mr_saver *saver)
{
    return saver->graph;
}

void mr_saver_require_finite(mr_saver *saver)
{
    saver->requires_finite = true;
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

static mr_status write_meta_graph(mr_saver *s, const char *prefix, mr_error *error)
{
    char *path = mr_arena_printf(&s->scratch, "%s.meta", prefix);
    if (path == nullptr) return mr_fail_memory(error, strlen(prefix));
    mr_tensor meta = {0};
    MR_TRY(mr_graph_export_meta(s->graph, &meta, error));
    mr_string bytes = mr_tensor_strings(&meta)[0];
    mr_status status = mr_file_write_all(path, bytes.data, bytes.size_bytes, error);
    mr_tensor_deinit(&meta);
    return status;
}

static mr_status remove_checkpoint(mr_saver *s, const char *prefix, mr_error *error)
{
    MR_TRY(mr_saver_remove_files(prefix, error));
    char *meta = mr_arena_printf(&s->scratch, "%s.meta", prefix);
    return meta == nullptr ? mr_fail_memory(error, strlen(prefix)) : mr_file_remove(meta, error);
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

/* "checkpoint" lists the earlier checkpoints that still exist and belong to the same path, then this one. Those beyond
 * max_to_keep are removed after it has been written. */
static mr_status update_state(mr_saver *s, const char *directory, const char *path, const char *prefix, mr_error *error)
{
    mr_checkpoint_state state = {0};
    mr_status status = mr_checkpoint_state_read(directory, &state, nullptr);
    int32_t known = status == MR_OK ? state.count : 0, count = 0;
    const char **paths = MR_ARENA_NEW(&s->scratch, const char *, (size_t)known + 1);
    if (paths == nullptr) {
        mr_checkpoint_state_deinit(&state);
        return mr_fail_memory(error, sizeof *paths);
    }
    for (int32_t i = 0; i < known; i++) {
        bool ours = strncmp(state.paths[i], path, strlen(path)) == 0 && strcmp(state.paths[i], prefix) != 0;
        if (ours && mr_saver_files_exist(state.paths[i])) paths[count++] = state.paths[i];
    }
    paths[count++] = prefix;
    int32_t first = s->max_to_keep > 0 && count > s->max_to_keep ? count - s->max_to_keep : 0;
    status = mr_checkpoint_state_write(directory, paths + first, count - first, error);
    for (int32_t i = 0; status == MR_OK && i < first; i++)
        if (!is_kept(s, paths[i])) status = remove_checkpoint(s, paths[i], error);
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
    if (strcmp(name, "checkpoint" MR_FILE_PARTIAL) == 0) return true;
    size_t length = prefix_length(name, base);
    if (length == 0) return false;
    if (ends_with(name, MR_FILE_PARTIAL)) return true;
    if (strncmp(name + length, ".data-", strlen(".data-")) != 0 && strcmp(name + length, ".meta") != 0) return false;
    char *prefix = mr_arena_printf(&s->scratch, "%s/%.*s", directory, (int)length, name);
    return prefix != nullptr && !mr_saver_files_exist(prefix);
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
static bool is_named(const char *directory, const char *prefix)
{
    mr_checkpoint_state state = {0};
    mr_status status = mr_checkpoint_state_read(directory, &state, nullptr);
    bool named = status != MR_OK && status != MR_NOT_FOUND;
    for (int32_t i = 0; status == MR_OK && !named && i < state.count; i++) named = strcmp(state.paths[i], prefix) == 0;
    mr_checkpoint_state_deinit(&state);
    return named;
}

mr_status mr_saver_save(mr_saver *saver, mr_session *session, const char *path, int64_t step, mr_error *error)
{
    if (session == nullptr) return mr_session_null("mr_saver_save: session", error);
    if (path == nullptr) return mr_session_null("mr_saver_save: path", error);
    if (saver == nullptr || saver->count == 0)
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the saver has no variables", path);
    mr_arena_reset(&saver->scratch);
    const char *slash = strrchr(path, '/');
    const char *base = slash != nullptr ? slash + 1 : path;
    if (*base == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s\": a checkpoint needs a name", path);
    if (step < -1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the step is %" PRId64 ", but must be at least -1", path, step);
    char *directory = slash == nullptr ? mr_arena_strdup(&saver->scratch, ".")
                      : slash == path  ? mr_arena_strdup(&saver->scratch, "/")
                                       : mr_arena_strndup(&saver->scratch, path, (size_t)(slash - path));
    char *full =
        slash == nullptr ? mr_arena_printf(&saver->scratch, "./%s", path) : mr_arena_strdup(&saver->scratch, path);
    if (directory == nullptr || full == nullptr) return mr_fail_memory(error, strlen(path));
    char *prefix =
        step < 0 ? full : mr_arena_printf(&saver->scratch, "%s-%0*" PRId64, full, saver->pads_step ? 8 : 1, step);
    if (prefix == nullptr) return mr_fail_memory(error, strlen(path));
    MR_TRY(mr_file_make_directories(directory, error));
    MR_TRY(clean(saver, directory, base, error));
    MR_TRY(write_checkpoint(saver, session, prefix, error));
    mr_status status = saver->saves_meta_graph ? write_meta_graph(saver, prefix, error) : MR_OK;
    if (status == MR_OK) status = update_state(saver, directory, full, prefix, error);
    /* For example on a full disk: files that are not yet named by "checkpoint" are removed to free space. */
    if (status != MR_OK && !is_named(directory, prefix)) (void)remove_checkpoint(saver, prefix, nullptr);
    return status;
}

/* ---- Restore ---- */

static mr_status restore_variables(mr_saver *s, mr_session *session, mr_checkpoint_reader *reader, const char *path,
                                   mr_error *error)
{
    MR_TRY(mr_saver_items_check(s->items, s->count, reader, path, error));
    for (int32_t i = 0; i < s->count; i++) {
        mr_tensor value = {0};
        MR_TRY(mr_saver_item_read(&s->items[i], reader, path, &value, error));
        mr_status status = mr_session_write_variable(session, s->items[i].ref, &value, error);
        mr_tensor_deinit(&value);
        MR_TRY(status);
    }
    return MR_OK;
}

static mr_status restore_state(mr_saver *s, mr_session *session, mr_checkpoint_reader *reader, const char *path,
                               bool with_iterators, mr_error *error)
{
    if (!s->saves_state || !mr_checkpoint_has(reader, MR_SESSION_STATE_KEY)) return MR_OK;
    mr_tensor state = {0};
    MR_TRY(mr_checkpoint_read(reader, MR_SESSION_STATE_KEY, &state, error));
    mr_status status = with_iterators ? mr_session_restore_state(session, &state, error)
                                      : mr_session_restore_random(session, &state, error);
    mr_tensor_deinit(&state);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s", path);
}

static mr_status open_reader(const mr_saver *s, const char *path, mr_checkpoint_reader **reader, mr_error *error)
{
    *reader = nullptr;
    if (s == nullptr || s->count == 0)
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the saver has no variables", path);
    return mr_checkpoint_reader_open(path, reader, error);
}

mr_status mr_saver_restore_variables(mr_saver *saver, mr_session *session, const char *path, mr_error *error)
{
    mr_checkpoint_reader *reader;
    MR_TRY(open_reader(saver, path, &reader, error));
    mr_status status = restore_variables(saver, session, reader, path, error);
    mr_checkpoint_reader_close(reader);
    return status;
}

mr_status mr_saver_restore_state(mr_saver *saver, mr_session *session, const char *path, bool with_iterators,
                                 mr_error *error)
{
    mr_checkpoint_reader *reader;
    MR_TRY(open_reader(saver, path, &reader, error));
    mr_status status = restore_state(saver, session, reader, path, with_iterators, error);
    mr_checkpoint_reader_close(reader);
    return status;
}

mr_status mr_saver_restore(mr_saver *saver, mr_session *session, const char *path, mr_error *error)
{
    mr_checkpoint_reader *reader;
    if (session == nullptr) return mr_session_null("mr_saver_restore: session", error);
    if (path == nullptr) return mr_session_null("mr_saver_restore: path", error);
    MR_TRY(open_reader(saver, path, &reader, error));
    mr_status status = restore_variables(saver, session, reader, path, error);
    if (status == MR_OK) status = restore_state(saver, session, reader, path, true, error);
    mr_checkpoint_reader_close(reader);
    return status;
}
