/* Resolves a path to a checkpoint and sets a graph's variables from it. */
#include "graph-run/restore.h"

#include <millrace/saver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The length of a path without the suffix of a checkpoint file. */
static size_t prefix_length(const char *path)
{
    size_t length = strlen(path);
    static const char *const endings[] = {".index", ".meta"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t size = strlen(endings[i]);
        if (length > size && strcmp(path + length - size, endings[i]) == 0) return length - size;
    }
    static const char data[] = ".data-00000-of-00000";
    if (length < sizeof data || strncmp(path + length - strlen(data), ".data-", 6) != 0) return length;
    return length - strlen(data);
}

static mr_status find_prefix(const char *path, char *prefix, size_t size, mr_error *error)
{
    struct stat about;
    bool exists = stat(path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) return mr_latest_checkpoint(path, prefix, size, error);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = prefix_length(path);
    if (exists && strcmp(name, "checkpoint") == 0) {
        char directory[4096];
        int written =
            snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
        if (written >= (int)sizeof directory) return mr_fail(error, MR_INVALID_ARGUMENT, "%.100s…: too long", path);
        return mr_latest_checkpoint(directory, prefix, size, error);
    }
    if (length >= size) return mr_fail(error, MR_INVALID_ARGUMENT, "%.100s…: too long", path);
    memcpy(prefix, path, length);
    prefix[length] = '\0';
    return MR_OK;
}

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
    if (variables == 0) return mr_fail(error, MR_NOT_FOUND, "--restore: the graph has no variables");
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

mr_status restore_variables(mr_graph *graph, mr_session *session, const char *path, mr_error *error)
{
    char prefix[4096];
    mr_checkpoint_reader *reader = nullptr;
    MR_TRY(find_prefix(path, prefix, sizeof prefix, error));
    MR_TRY(mr_checkpoint_reader_open(prefix, &reader, error));
    mr_status status = check_keys(graph, reader, prefix, error);
    for (int32_t i = 0; status == MR_OK && i < mr_graph_node_count(graph); i++)
        if (is_variable(graph, mr_graph_node(graph, i)))
            status = set_variable(session, reader, mr_graph_node(graph, i), error);
    mr_checkpoint_reader_close(reader);
    return status;
}
