/* Saver: a set of variables, the nodes that TensorFlow's Saver would add, and the checkpoints of a directory.
 *
 * The nodes make exported graphs usable by other programs (and by graph-run). This Saver itself copies directly from
 * the session to the checkpoint's files, between runs, and adds the session's state (random numbers, iterators). */
#include "base/options.h"
#include "graph/run/session.h"
#include "graph/run/session_state.h"
#include "graph/train/saver_part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void check_keeping(mr_graph *graph, const mr_saver_options *options)
{
    const double hours = options->keep_checkpoint_every_n_hours;
    (void)mr_train_check_count(graph, "the saver's max_to_keep", options->max_to_keep, 0);
    if (!(hours >= 0) || isinf(hours))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the saver's keep_checkpoint_every_n_hours is %g, not at least 0", hours);
    if (options->max_to_keep == 0 && hours > 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the saver's keep_checkpoint_every_n_hours has no effect if max_to_keep is 0");
}

static void check_variables(mr_graph *graph, const mr_saver_options *options)
{
    if (options->variables == nullptr && (options->variable_count != 0 || options->keys != nullptr))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the saver's %s has no effect without variables",
                            options->keys != nullptr ? "keys" : "variable_count");
}

static bool is_empty(const mr_saver *s)
{
    const mr_saver_options *o = &s->options;
    return o->allow_empty && (o->variables != nullptr ? o->variable_count == 0
                                                      : mr_graph_variable_count(s->graph, MR_GLOBAL_VARIABLES) == 0);
}

static void build(mr_saver *s)
{
    s->is_built = true;
    if (is_empty(s) || mr_graph_status(s->graph, nullptr) != MR_OK) return;
    s->items = mr_saver_items_new(s->graph, &s->arena, &s->options, &s->count);
    if (s->items == nullptr) s->count = 0;
    if (mr_graph_status(s->graph, nullptr) == MR_OK && s->with_nodes)
        mr_saver_make_nodes(s->graph, &s->arena, s->items, s->count, &s->options);
}

/* What the options borrow, for a saver that is built later. */
static bool keep_options(mr_saver *s)
{
    mr_saver_options *o = &s->options;
    const size_t count = o->variable_count > 0 ? (size_t)o->variable_count : 0;
    if (o->name != nullptr) {
        o->name = mr_arena_strdup(&s->arena, o->name);
        if (o->name == nullptr) return false;
    }
    if (o->keys != nullptr) {
        const char **keys = MR_ARENA_NEW(&s->arena, const char *, count + 1);
        for (size_t i = 0; keys != nullptr && i < count; i++) {
            keys[i] = o->keys[i] != nullptr ? mr_arena_strdup(&s->arena, o->keys[i]) : nullptr;
            if (keys[i] == nullptr && o->keys[i] != nullptr) return false;
        }
        o->keys = keys;
        if (keys == nullptr) return false;
    }
    if (o->variables == nullptr) return true;
    mr_output *variables = MR_ARENA_NEW(&s->arena, mr_output, count + 1);
    if (variables == nullptr) return false;
    memcpy(variables, o->variables, count * sizeof *variables);
    o->variables = variables;
    return true;
}

static mr_saver *make(mr_graph *graph, const mr_saver_options *given, bool with_nodes)
{
    static const mr_saver_options defaults = {.size = sizeof defaults, MR_SAVER_DEFAULTS};
    mr_saver_options options;
    mr_error error = {0};
    if (graph == nullptr) return nullptr;
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
    s->graph = graph;
    s->with_nodes = with_nodes;
    s->options = options;
    s->max_to_keep = options.max_to_keep;
    s->saves_state = options.variables == nullptr;
    s->saves_meta_graph = options.write_meta_graph;
    s->pads_step = options.pad_step_number;
    s->keep_every_s = options.keep_checkpoint_every_n_hours * 3600;
    s->next_kept = (double)time(nullptr) + s->keep_every_s;
    s->is_v1 = options.write_version == MR_CHECKPOINT_V1;
    check_keeping(graph, &options);
    check_variables(graph, &options);
    check_version(graph, &options);
    if (!options.defer_build)
        build(s);
    else if (!keep_options(s))
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
    return s;
}

mr_saver *mr_saver_new_(mr_graph *graph, const mr_saver_options *options)
{
    return make(graph, options, true);
}

void mr_saver_build(mr_saver *saver)
{
    if (saver == nullptr) return;
    if (saver->is_built)
        (void)mr_graph_fail(saver->graph, MR_FAILED_PRECONDITION, "mr_saver_build: the saver has already been built");
    else
        build(saver);
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
    mr_arena_deinit(&saver->names);
    free(saver);
}

mr_status mr_saver_check_ready(const mr_saver *s, const char *path, mr_error *error)
{
    if (s != nullptr && !s->is_built)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "%s: the saver has defer_build and has not been built: call mr_saver_build", path);
    if (s == nullptr || (s->count == 0 && !s->options.allow_empty))
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the saver has no variables", path);
    return MR_OK;
}

/* ---- Save ---- */

const mr_graph *mr_saver_graph(const mr_saver *saver)
{
    return saver->graph;
}

void mr_saver_require_finite(mr_saver *saver)
{
    saver->requires_finite = true;
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

/* Null: the saver has nothing to restore. */
static mr_status open_reader(const mr_saver *s, const char *path, mr_checkpoint_reader **reader, mr_error *error)
{
    *reader = nullptr;
    MR_TRY(mr_saver_check_ready(s, path, error));
    return s->count > 0 ? mr_checkpoint_reader_open(path, reader, error) : MR_OK;
}

mr_status mr_saver_restore_variables(mr_saver *saver, mr_session *session, const char *path, mr_error *error)
{
    mr_checkpoint_reader *reader;
    MR_TRY(open_reader(saver, path, &reader, error));
    if (reader == nullptr) return MR_OK;
    mr_status status = restore_variables(saver, session, reader, path, error);
    mr_checkpoint_reader_close(reader);
    return status;
}

mr_status mr_saver_restore_state(mr_saver *saver, mr_session *session, const char *path, bool with_iterators,
                                 mr_error *error)
{
    mr_checkpoint_reader *reader;
    MR_TRY(open_reader(saver, path, &reader, error));
    if (reader == nullptr) return MR_OK;
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
    if (reader == nullptr) return MR_OK;
    mr_status status = restore_variables(saver, session, reader, path, error);
    if (status == MR_OK) status = restore_state(saver, session, reader, path, true, error);
    mr_checkpoint_reader_close(reader);
    return status;
}
