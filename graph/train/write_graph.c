/* The graph in the files of a training run: with the shapes of its outputs, as TensorFlow writes it. */
#include "graph/train/write_graph.h"
#include "base/arguments.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/ir/convert.h"
#include "graph/run/session.h"
#include "proto/text.h"
#include "records/io/file.h"
#include <millrace/model.h>

#include <stdlib.h>
#include <string.h>

static mr_status with_shapes(const mr_graph *graph, mr_arena *arena, Mr__GraphDef **def, mr_error *error)
{
    MR_TRY(mr_graph_write(graph, arena, def, error));
    return mr_graph_write_shapes(graph, *def, arena, error);
}

mr_status mr_train_write_graph_text(const mr_graph *graph, const char *directory, mr_error *error)
{
    mr_arena arena = {0};
    mr_string text = {0};
    Mr__GraphDef *def = nullptr;
    const char *path = mr_arena_printf(&arena, "%s/graph.pbtxt", directory);
    mr_status status = path != nullptr ? with_shapes(graph, &arena, &def, error) : mr_fail_memory(error, 1);
    /* The file is only for reading by people: no reason to refuse a training. */
    if (status == MR_OK) status = mr_proto_text_write_declared(def, &text, error);
    if (status == MR_OK) status = mr_file_write_no_sync(path, text.data, text.size_bytes, error);
    free((void *)text.data);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_event_writer_add_graph(mr_event_writer *writer, const mr_graph *graph, mr_error *error)
{
    mr_arena arena = {0};
    mr_string bytes = {0};
    Mr__GraphDef *def = nullptr;
    MR_REFUSE_NULL(writer, error);
    mr_status status = with_shapes(graph, &arena, &def, error);
    if (status == MR_OK) status = mr_proto_pack(def, &arena, &bytes, error);
    if (status == MR_OK) status = mr_event_writer_add_graph_def(writer, 0, bytes, error);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_train_write_graph_events(const mr_graph *graph, mr_event_writer *writer, mr_error *error)
{
    mr_arena arena = {0};
    mr_string bytes = {0};
    Mr__MetaGraphDef *meta = nullptr;
    MR_TRY(mr_event_writer_add_graph(writer, graph, error));
    mr_status status = mr_graph_write_meta(graph, &arena, &meta, error);
    if (status == MR_OK) status = mr_proto_pack(meta, &arena, &bytes, error);
    if (status == MR_OK) status = mr_event_writer_add_meta_graph_def(writer, 0, bytes, error);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Files of programs ---- */

static bool is_meta_kind(mr_graph_file kind)
{
    return kind == MR_GRAPH_FILE_META || kind == MR_GRAPH_FILE_META_TEXT;
}

static mr_status pack_graph(const mr_graph *graph, mr_graph_file kind, const mr_meta_export_options *options,
                            mr_arena *arena, mr_string *bytes, mr_error *error)
{
    const bool is_meta = is_meta_kind(kind);
    Mr__MetaGraphDef *meta = nullptr;
    Mr__GraphDef *def = nullptr;
    MR_TRY(is_meta ? mr_graph_write_meta_with(graph, options, arena, &meta, error)
                   : mr_graph_write(graph, arena, &def, error));
    const void *message = is_meta ? (const void *)meta : def;
    if (kind == MR_GRAPH_FILE_BINARY || kind == MR_GRAPH_FILE_META) return mr_proto_pack(message, arena, bytes, error);
    return mr_proto_text_write(message, bytes, error);
}

static mr_status make_parent(const char *path, mr_arena *arena, mr_error *error)
{
    const char *slash = strrchr(path, '/');
    if (slash == nullptr || slash == path) return MR_OK;
    const char *parent = mr_arena_strndup(arena, path, (size_t)(slash - path));
    return parent != nullptr ? mr_file_make_directories(parent, error) : mr_fail_memory(error, strlen(path));
}

mr_status mr_graph_write_file_with(const mr_graph *graph, const char *path, mr_graph_file kind,
                                   const mr_meta_export_options *given, mr_error *error)
{
    mr_meta_export_options options;
    if (graph == nullptr) return mr_session_null("mr_graph_write_file: graph", error);
    if (path == nullptr) return mr_session_null("mr_graph_write_file: path", error);
    if (*path == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_write_file: path is empty");
    if ((unsigned)kind > MR_GRAPH_FILE_META_TEXT)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_write_file: %d is no kind of file", (int)kind);
    if (given != nullptr && !is_meta_kind(kind))
        return mr_fail(
            error, MR_INVALID_ARGUMENT,
            "mr_graph_write_file_with: the options have no effect on a GraphDef: they are of a MetaGraphDef");
    mr_arena arena = {0};
    mr_string bytes = {0};
    MR_TRY(MR_OPTIONS_READ(mr_meta_export_options, &options, given, error));
    mr_status status = mr_graph_status(graph, error);
    if (status == MR_OK) status = pack_graph(graph, kind, &options, &arena, &bytes, error);
    if (status == MR_OK) status = make_parent(path, &arena, error);
    if (status == MR_OK) status = mr_file_write_all(path, bytes.data, bytes.size_bytes, error);
    if (kind == MR_GRAPH_FILE_TEXT || kind == MR_GRAPH_FILE_META_TEXT) free((void *)bytes.data);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_graph_write_file(const mr_graph *graph, const char *path, mr_graph_file kind, mr_error *error)
{
    return mr_graph_write_file_with(graph, path, kind, nullptr, error);
}
