/* Writing SavedModels. The order of the files: assets, variables, and then saved_model.pb, which makes them one. */
#include "graph/train/saved_model.h"

#include "base/options.h"
#include "base/status.h"
#include "graph/ir/meta_change.h"
#include "graph/train/train.h"
#include "proto/text.h"
#include "records/io/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Lifetime ---- */

static mr_status check_empty(const char *directory, mr_error *error)
{
    struct stat about;
    if (stat(directory, &about) != 0) return MR_OK;
    DIR *stream = opendir(directory);
    if (stream == nullptr) return mr_file_fail(error, errno, "open", directory);
    bool is_empty = true;
    for (struct dirent *entry; (entry = readdir(stream)) != nullptr;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) is_empty = false;
    closedir(stream);
    if (is_empty) return MR_OK;
    return mr_fail(error, MR_ALREADY_EXISTS, "%s: the directory is not empty; a SavedModel is written to a new one",
                   directory);
}

mr_status mr_saved_model_new(const char *directory, mr_saved_model **model, mr_error *error)
{
    if (model != nullptr) *model = nullptr;
    if (directory == nullptr || *directory == '\0' || model == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_new: %s",
                       model == nullptr       ? "model is null"
                       : directory == nullptr ? "directory is null"
                                              : "directory has no name");
    MR_TRY(check_empty(directory, error));
    mr_saved_model *m = calloc(1, sizeof *m);
    if (m == nullptr) return mr_fail_memory(error, sizeof *m);
    m->directory = mr_arena_strdup(&m->arena, directory);
    if (m->directory == nullptr) {
        mr_saved_model_free(m);
        return mr_fail_memory(error, strlen(directory));
    }
    *model = m;
    return MR_OK;
}

void mr_saved_model_free(mr_saved_model *model)
{
    if (model == nullptr) return;
    mr_arena_deinit(&model->arena);
    free(model);
}

/* ---- Checks ---- */

static bool has_tag(const Mr__MetaGraphDef *meta, const char *tag)
{
    for (size_t i = 0; i < meta->meta_info_def->n_tags; i++)
        if (strcmp(meta->meta_info_def->tags[i], tag) == 0) return true;
    return false;
}

static mr_status check_tags(const mr_saved_model *m, mr_names tags, mr_error *error)
{
    const char *what = "mr_saved_model_add";
    if (tags.count <= 0 || tags.items == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the graph has no tags", what);
    for (int32_t i = 0; i < tags.count; i++) {
        if (tags.items[i] == nullptr || *tags.items[i] == '\0' || strchr(tags.items[i], ',') != nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: tag %d is %s", what, i,
                           tags.items[i] == nullptr ? "null"
                           : *tags.items[i] == '\0' ? "empty"
                                                    : "not one word: it has a comma");
        for (int32_t j = 0; j < i; j++)
            if (strcmp(tags.items[j], tags.items[i]) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the tag %.100s is given twice", what, tags.items[i]);
    }
    for (int32_t i = 0; i < m->count; i++) {
        bool same = m->graphs[i]->meta_info_def->n_tags == (size_t)tags.count;
        for (int32_t j = 0; j < tags.count; j++) same &= has_tag(m->graphs[i], tags.items[j]);
        if (same)
            return mr_fail(error, MR_ALREADY_EXISTS, "%s: graph %d has the same tags: %.100s%s", what, i, tags.items[0],
                           tags.count > 1 ? ", …" : "");
    }
    return MR_OK;
}

static mr_status check_node(const mr_graph *graph, const char *option, const mr_node *node, mr_error *error)
{
    if (node == nullptr || node->graph == graph) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: %s is a node of another graph", option);
}

static mr_status check_assets(const mr_graph *graph, const mr_saved_graph *o, mr_error *error)
{
    if (o->asset_count < 0 || (o->asset_count > 0 && o->assets == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: %d assets at null", o->asset_count);
    for (int32_t i = 0; i < o->asset_count; i++) {
        const mr_asset *asset = &o->assets[i];
        if (asset->path == nullptr || *asset->path == '\0')
            return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: asset %d has no path", i);
        const mr_output output = asset->output;
        if (output.node == nullptr || output.node->graph != graph || output.index < 0 ||
            output.index >= output.node->output_count || mr_output_dtype(output) != MR_STRING)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "mr_saved_model_add: asset %.200s is not for a string output of the graph", asset->path);
        if (!mr_file_exists(asset->path))
            return mr_fail(error, MR_NOT_FOUND, "%s: no such file; it is an asset of a SavedModel", asset->path);
    }
    return MR_OK;
}

static mr_status check(mr_saved_model *m, const mr_graph *graph, const mr_session *session, const mr_saved_graph *o,
                       mr_error *error)
{
    MR_TRY(check_tags(m, o->tags, error));
    MR_TRY(mr_saved_signatures(m, graph, o, nullptr, error));
    MR_TRY(check_node(graph, "main_op", o->main_op, error));
    MR_TRY(check_node(graph, "legacy_init_op", o->legacy_init_op, error));
    MR_TRY(check_assets(graph, o, error));
    if (o->main_op != nullptr && o->legacy_init_op != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: both main_op and legacy_init_op are given");
    if (m->count == 0 && session == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "mr_saved_model_add: session is null, but the first graph saves the variables");
    if (m->count > 0 && session != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "mr_saved_model_add: session has no effect: the first graph has saved the variables");
    return MR_OK;
}

/* ---- Files ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

static bool is_name_taken(const mr_saved_model *m, const char *name)
{
    for (int32_t i = 0; i < m->asset_count; i++)
        if (strcmp(m->assets[i].name, name) == 0) return true;
    return false;
}

/* The name in assets/, copying the file there for the first time. Another file of the same name gets a suffix. */
static mr_status copy_asset(mr_saved_model *m, const char *path, const char **name, mr_error *error)
{
    for (int32_t i = 0; i < m->asset_count; i++)
        if (strcmp(m->assets[i].path, path) == 0) {
            *name = m->assets[i].name;
            return MR_OK;
        }
    const char *directory = mr_arena_printf(&m->arena, "%s/assets", m->directory);
    const char *unique = mr_arena_strdup(&m->arena, base_name(path));
    for (int i = 1; unique != nullptr && is_name_taken(m, unique); i++)
        unique = mr_arena_printf(&m->arena, "%s_%d", base_name(path), i);
    const char *target = mr_arena_printf(&m->arena, "%s/%s", directory ? directory : "", unique ? unique : "");
    const char *source = mr_arena_strdup(&m->arena, path);
    mr_saved_asset *assets = MR_ARENA_NEW(&m->arena, mr_saved_asset, (size_t)m->asset_count + 1);
    if (!directory || !unique || !target || !source || !assets) return mr_fail_memory(error, strlen(path));
    char *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(mr_file_make_directories(directory, error));
    MR_TRY(mr_file_read_all(path, SIZE_MAX / 2, &bytes, &size_bytes, error));
    const mr_status status = mr_file_write_all(target, bytes, size_bytes, error);
    free(bytes);
    if (status != MR_OK) return status;
    if (m->asset_count > 0) memcpy(assets, m->assets, (size_t)m->asset_count * sizeof *assets);
    assets[m->asset_count++] = (mr_saved_asset){source, unique};
    m->assets = assets;
    *name = unique;
    return MR_OK;
}

static mr_status write_variables(mr_saved_model *m, mr_saver *saver, mr_session *session, mr_error *error)
{
    const char *directory = mr_arena_printf(&m->arena, "%s/variables", m->directory);
    const char *prefix = mr_arena_printf(&m->arena, "%s/variables", directory ? directory : "");
    if (directory == nullptr || prefix == nullptr) return mr_fail_memory(error, strlen(m->directory));
    MR_TRY(mr_file_make_directories(directory, error));
    return mr_saver_write_variables(saver, session, prefix, error);
}

/* ---- The MetaGraphDef ---- */

static mr_status set_tags(mr_saved_model *m, Mr__MetaGraphDef *meta, mr_names tags, mr_error *error)
{
    Mr__MetaGraphDef__MetaInfoDef *info = meta->meta_info_def;
    info->tags = MR_ARENA_NEW(&m->arena, char *, (size_t)tags.count);
    if (info->tags == nullptr) return mr_fail_memory(error, (size_t)tags.count * sizeof(char *));
    for (int32_t i = 0; i < tags.count; i++) {
        info->tags[i] = mr_arena_strdup(&m->arena, tags.items[i]);
        if (info->tags[i] == nullptr) return mr_fail_memory(error, 64);
    }
    info->n_tags = (size_t)tags.count;
    return MR_OK;
}

static mr_status write_meta(mr_saved_model *m, const mr_graph *graph, const mr_saved_graph *o,
                            Mr__MetaGraphDef **result, mr_error *error)
{
    mr_tensor bytes = {0};
    Mr__MetaGraphDef *meta = nullptr;
    MR_TRY(mr_graph_export_meta(graph, &bytes, error));
    mr_status status = mr_proto_unpack_as(meta_graph_def, mr_tensor_strings(&bytes)[0], &m->arena, &meta, error);
    mr_tensor_deinit(&bytes);
    if (status != MR_OK) return status;
    MR_TRY(set_tags(m, meta, o->tags, error));
    MR_TRY(mr_saved_signatures(m, graph, o, meta, error));
    if (o->main_op != nullptr) MR_TRY(mr_saved_add_node(m, meta, "saved_model_main_op", o->main_op, error));
    if (o->legacy_init_op != nullptr) MR_TRY(mr_saved_add_node(m, meta, "legacy_init_op", o->legacy_init_op, error));
    if (o->clear_devices) mr_meta_clear_devices(meta);
    if (o->strip_default_attrs) MR_TRY(mr_meta_strip_defaults(meta, &m->arena, error));
    for (int32_t i = 0; i < o->asset_count; i++) {
        const char *name = nullptr;
        MR_TRY(copy_asset(m, o->assets[i].path, &name, error));
        MR_TRY(mr_saved_add_asset(m, meta, o->assets[i].output, name, error));
    }
    *result = meta;
    return MR_OK;
}

static mr_status add(mr_saved_model *m, mr_graph *graph, mr_session *session, const mr_saved_graph *o, mr_error *error)
{
    const uint8_t *saver_def = graph->saver_def;
    const size_t saver_def_size_bytes = graph->saver_def_size_bytes;
    const bool has_variables = mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES) > 0;
    mr_saver *saver = has_variables ? mr_saver_new(graph, .write_meta_graph = false) : nullptr;
    Mr__MetaGraphDef *meta = nullptr;
    Mr__MetaGraphDef **graphs = MR_ARENA_NEW(&m->arena, Mr__MetaGraphDef *, (size_t)m->count + 1);
    mr_status status = graphs != nullptr ? mr_graph_status(graph, error) : mr_fail_memory(error, sizeof(void *));
    if (status == MR_OK) status = mr_file_make_directories(m->directory, error);
    if (status == MR_OK && saver != nullptr && session != nullptr) status = write_variables(m, saver, session, error);
    if (status == MR_OK) status = write_meta(m, graph, o, &meta, error);
    mr_saver_free(saver);
    /* The graph's own Saver, if it has one, is exported by others. */
    graph->saver_def = saver_def;
    graph->saver_def_size_bytes = saver_def_size_bytes;
    if (status != MR_OK) return status;
    if (m->count > 0) memcpy(graphs, m->graphs, (size_t)m->count * sizeof(Mr__MetaGraphDef *));
    graphs[m->count++] = meta;
    m->graphs = graphs;
    return MR_OK;
}

mr_status mr_saved_model_add(mr_saved_model *model, mr_graph *graph, mr_session *session, const mr_saved_graph *given,
                             mr_error *error)
{
    mr_saved_graph options;
    if (model == nullptr || graph == nullptr || given == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: %s is null",
                       model == nullptr   ? "model"
                       : graph == nullptr ? "graph"
                                          : "options");
    MR_TRY(mr_graph_status(graph, error));
    MR_TRY(MR_OPTIONS_READ(mr_saved_graph, &options, given, error));
    MR_TRY(check(model, graph, session, &options, error));
    return add(model, graph, session, &options, error);
}

/* ---- saved_model.pb ---- */

static mr_status write_text(const Mr__SavedModel *saved, const char *path, mr_error *error)
{
    mr_string text = {0};
    MR_TRY(mr_proto_text_write(saved, &text, error));
    const mr_status status = mr_file_write_all(path, text.data, text.size_bytes, error);
    free((void *)text.data);
    return status;
}

mr_status mr_saved_model_save(mr_saved_model *model, bool as_text, mr_error *error)
{
    Mr__SavedModel saved = MR__SAVED_MODEL__INIT;
    mr_arena arena = {0};
    mr_string bytes = {0};
    if (model == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_save: model is null");
    if (model->count == 0)
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s: a SavedModel without graphs", model->directory);
    saved.saved_model_schema_version = 1;
    saved.meta_graphs = model->graphs;
    saved.n_meta_graphs = (size_t)model->count;
    const char *path = mr_arena_printf(&arena, "%s/saved_model.%s", model->directory, as_text ? "pbtxt" : "pb");
    mr_status status = path != nullptr ? MR_OK : mr_fail_memory(error, strlen(model->directory));
    if (status == MR_OK && !as_text) status = mr_proto_pack(&saved, &arena, &bytes, error);
    if (status == MR_OK)
        status =
            as_text ? write_text(&saved, path, error) : mr_file_write_all(path, bytes.data, bytes.size_bytes, error);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_saved_model_simple_save(mr_graph *graph, mr_session *session, const char *directory,
                                     mr_named_outputs inputs, mr_named_outputs outputs, mr_node *legacy_init_op,
                                     mr_error *error)
{
    const char *tag = MR_SERVING;
    const mr_signature_def signature = {
        .key = MR_DEFAULT_SERVING_SIGNATURE, .method = MR_PREDICT_METHOD, .inputs = inputs, .outputs = outputs};
    const mr_saved_graph options = {.size = sizeof options,
                                    .tags = {&tag, 1},
                                    .signatures = &signature,
                                    .signature_count = 1,
                                    .legacy_init_op = legacy_init_op};
    mr_saved_model *model = nullptr;
    MR_TRY(mr_saved_model_new(directory, &model, error));
    mr_status status = mr_saved_model_add(model, graph, session, &options, error);
    if (status == MR_OK) status = mr_saved_model_save(model, false, error);
    mr_saved_model_free(model);
    return status;
}
