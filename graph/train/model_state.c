/* The state of a model: restoring and saving checkpoints, and the initialization of a SavedModel. */
#include "graph/train/model.h"

#include "base/status.h"
#include "records/checkpoint/checkpoint.h"
#include "records/io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Feeds of paths ---- */

static mr_status run_op(mr_model *m, mr_session *session, const char *name, mr_feeds feeds, mr_error *error)
{
    char plain[MR_OUTPUT_NAME_SIZE];
    size_t length = strcspn(name, ":");
    if (length >= sizeof plain) return mr_fail(error, MR_INVALID_ARGUMENT, "%.100s…: too long", name);
    memcpy(plain, name, length);
    plain[length] = '\0';
    mr_node *node = mr_graph_find(m->graph, plain);
    if (node == nullptr) return mr_fail(error, MR_NOT_FOUND, "the graph has no node %.200s", plain);
    return mr_session_run(session, feeds, (mr_outputs){0}, nullptr, &node, 1, error);
}

/* Runs a node with a path as the value of an output. */
static mr_status run_with_path(mr_model *m, mr_session *session, const char *op, const char *output, const char *path,
                               mr_error *error)
{
    mr_feed feed = {.output = mr_graph_find_output(m->graph, output)};
    MR_TRY(mr_tensor_init_string(&feed.value, mr_string_from(path), error));
    mr_status status = run_op(m, session, op, (mr_feeds){&feed, 1}, error);
    mr_tensor_deinit(&feed.value);
    return status;
}

static bool has_saver(const mr_model *m, const char *op)
{
    return *op != '\0' && *m->about.saver_filename != '\0' &&
           mr_graph_find_output(m->graph, m->about.saver_filename).node != nullptr;
}

/* ---- By name ---- */

static bool is_variable(const mr_graph *graph, const mr_node *node)
{
    const char *op = mr_node_op(node);
    if (strcmp(op, "VariableV2") != 0 && strcmp(op, "Variable") != 0 && strcmp(op, "VarHandleOp") != 0) return false;
    int32_t locals = mr_graph_variable_count(graph, MR_LOCAL_VARIABLES);
    for (int32_t i = 0; i < locals; i++)
        if (mr_graph_variable(graph, MR_LOCAL_VARIABLES, i).ref.node == node) return false;
    return true;
}

/* Checks that the checkpoint has all variables; the message is that of TensorFlow's NotFoundError. */
static mr_status check_keys(mr_graph *graph, mr_checkpoint_reader *reader, const char *prefix, mr_error *error)
{
    constexpr int NAMES_MAX = 8;
    char names[1024] = "";
    size_t used = 0;
    int missing = 0, variables = 0;
    for (int32_t i = 0; i < mr_graph_node_count(graph); i++) {
        const mr_node *node = mr_graph_node(graph, i);
        if (!is_variable(graph, node)) continue;
        variables++;
        if (mr_checkpoint_has(reader, mr_node_name(node))) continue;
        if (missing++ < NAMES_MAX && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", mr_node_name(node));
    }
    if (variables == 0) return mr_fail(error, MR_NOT_FOUND, "the graph has no variables");
    if (missing == 0) return MR_OK;
    if (missing == 1) return mr_fail(error, MR_NOT_FOUND, "Key %s not found in checkpoint %s", names, prefix);
    return mr_fail(error, MR_NOT_FOUND, "%d of the graph's %d variables are not found in checkpoint %s: %s%s", missing,
                   variables, prefix, names, missing > NAMES_MAX ? ", …" : "");
}

static mr_status set_variable(mr_session *session, mr_checkpoint_reader *reader, mr_node *node, mr_error *error)
{
    mr_tensor value = {0};
    MR_TRY(mr_checkpoint_read(reader, mr_node_name(node), &value, error));
    mr_status status = mr_session_write_variable(session, (mr_output){node, 0}, &value, error);
    mr_tensor_deinit(&value);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "restoring %s", mr_node_name(node));
}

static mr_status restore_by_name(mr_model *m, mr_session *session, const char *prefix, mr_error *error)
{
    mr_checkpoint_reader *reader = nullptr;
    MR_TRY(mr_checkpoint_reader_open(prefix, &reader, error));
    mr_status status = check_keys(m->graph, reader, prefix, error);
    for (int32_t i = 0; status == MR_OK && i < mr_graph_node_count(m->graph); i++)
        if (is_variable(m->graph, mr_graph_node(m->graph, i)))
            status = set_variable(session, reader, mr_graph_node(m->graph, i), error);
    mr_checkpoint_reader_close(reader);
    return status;
}

static mr_status write_by_name(mr_model *m, mr_session *session, mr_checkpoint_writer *writer, mr_error *error)
{
    int32_t count = 0;
    for (int32_t i = 0; i < mr_graph_node_count(m->graph); i++) {
        mr_node *node = mr_graph_node(m->graph, i);
        mr_tensor value = {0};
        if (!is_variable(m->graph, node)) continue;
        MR_TRY(mr_session_read_variable(session, (mr_output){node, 0}, &value, error));
        mr_status status = mr_checkpoint_write(writer, mr_node_name(node), &value, error);
        mr_tensor_deinit(&value);
        MR_TRY(status);
        count++;
    }
    return count > 0 ? MR_OK : mr_fail(error, MR_FAILED_PRECONDITION, "the graph has no variables to save");
}

static mr_status save_by_name(mr_model *m, mr_session *session, const char *prefix, mr_error *error)
{
    mr_checkpoint_writer *writer = nullptr;
    MR_TRY(mr_checkpoint_writer_open(prefix, &writer, error));
    mr_status status = write_by_name(m, session, writer, error);
    if (status == MR_OK) return mr_checkpoint_writer_close(writer, error);
    mr_checkpoint_writer_discard(writer);
    return status;
}

/* ---- Public functions ---- */

mr_status mr_model_restore(mr_model *model, mr_session *session, const char *prefix, mr_error *error)
{
    if (model == nullptr || session == nullptr || prefix == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_model_restore: %s is null",
                       model == nullptr     ? "model"
                       : session == nullptr ? "session"
                                            : "prefix");
    const char *restore = model->about.saver_restore;
    if (!has_saver(model, restore)) return restore_by_name(model, session, prefix, error);
    return run_with_path(model, session, restore, model->about.saver_filename, prefix, error);
}

mr_status mr_model_initialize(mr_model *model, mr_session *session, mr_error *error)
{
    if (model == nullptr || session == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_model_initialize: %s is null",
                       model == nullptr ? "model" : "session");
    mr_feed *feeds = calloc((size_t)model->asset_count + 1, sizeof *feeds);
    mr_status status = MR_OK;
    if (feeds == nullptr) return mr_fail_memory(error, (size_t)model->asset_count * sizeof *feeds);
    if (*model->about.variables != '\0') status = mr_model_restore(model, session, model->about.variables, error);
    for (int32_t i = 0; status == MR_OK && i < model->asset_count; i++) {
        feeds[i].output = mr_graph_find_output(model->graph, model->assets[i].output);
        status = mr_tensor_init_string(&feeds[i].value, mr_string_from(model->assets[i].path), error);
    }
    for (int32_t i = 0; status == MR_OK && i < model->init_count; i++)
        status = run_op(model, session, model->init_ops[i], (mr_feeds){feeds, model->asset_count}, error);
    for (int32_t i = 0; i < model->asset_count; i++) mr_tensor_deinit(&feeds[i].value);
    free(feeds);
    return status;
}

static mr_status write_meta(mr_model *m, mr_arena *arena, const char *prefix, mr_error *error)
{
    char *path = mr_arena_printf(arena, "%s.meta", prefix);
    mr_tensor meta = {0};
    if (path == nullptr) return mr_fail_memory(error, strlen(prefix));
    MR_TRY(mr_graph_export_meta(m->graph, &meta, error));
    mr_string bytes = mr_tensor_strings(&meta)[0];
    mr_status status = mr_file_write_all(path, bytes.data, bytes.size_bytes, error);
    mr_tensor_deinit(&meta);
    return status;
}

static mr_status save(mr_model *m, mr_session *session, const char *prefix, mr_arena *arena, mr_error *error)
{
    const char *slash = strrchr(prefix, '/'), *op = m->about.saver_save;
    const char *name = slash != nullptr ? slash + 1 : prefix;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: a checkpoint needs a name", prefix);
    const char *directory = slash == nullptr  ? "."
                            : slash == prefix ? "/"
                                              : mr_arena_strndup(arena, prefix, (size_t)(slash - prefix));
    const char *full = slash != nullptr ? prefix : mr_arena_printf(arena, "./%s", prefix);
    if (directory == nullptr || full == nullptr) return mr_fail_memory(error, strlen(prefix));
    MR_TRY(mr_file_make_directories(directory, error));
    MR_TRY(has_saver(m, op) ? run_with_path(m, session, op, m->about.saver_filename, full, error)
                            : save_by_name(m, session, full, error));
    MR_TRY(write_meta(m, arena, full, error));
    return mr_checkpoint_state_write(directory, nullptr, &full, 1, error);
}

mr_status mr_model_save(mr_model *model, mr_session *session, const char *prefix, mr_error *error)
{
    if (model == nullptr || session == nullptr || prefix == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_model_save: %s is null",
                       model == nullptr     ? "model"
                       : session == nullptr ? "session"
                                            : "prefix");
    mr_arena arena = {0};
    mr_status status = save(model, session, prefix, &arena, error);
    mr_arena_deinit(&arena);
    return status;
}
