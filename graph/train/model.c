/* Reading graphs from files. The type of a file follows from its contents: a text begins with a field name that only
 * one of the three messages has; in a binary file the fields of the same numbers have different types. */
#include "graph/train/model.h"

#include "base/status.h"
#include "graph/ir/graph.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/text.h"
#include "records/io/file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The limit of protobuf. */
constexpr size_t FILE_BYTES_MAX = INT32_MAX;

typedef enum format { FORMAT_UNKNOWN, FORMAT_GRAPH, FORMAT_META, FORMAT_SAVED } format;

typedef struct reading {
    mr_model *model;
    mr_arena arena;        /* of the messages */
    const char *chosen;    /* by the caller: a file or a directory */
    const char *path;      /* the file */
    const char *directory; /* of a SavedModel; null: none */
    const char *tags;
} reading;

/* ---- Recognition ---- */

static format text_format(mr_string text)
{
    static const struct {
        const char *name;
        format format;
    } names[] = {
        {"node", FORMAT_GRAPH},          {"versions", FORMAT_GRAPH},      {"library", FORMAT_GRAPH},
        {"version", FORMAT_GRAPH},       {"meta_info_def", FORMAT_META},  {"graph_def", FORMAT_META},
        {"saver_def", FORMAT_META},      {"collection_def", FORMAT_META}, {"signature_def", FORMAT_META},
        {"asset_file_def", FORMAT_META}, {"meta_graphs", FORMAT_SAVED},   {"saved_model_schema_version", FORMAT_SAVED}};
    const char *begin;
    size_t length = mr_proto_text_first_name(text, &begin);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i].name) && memcmp(begin, names[i].name, length) == 0) return names[i].format;
    return FORMAT_UNKNOWN;
}

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Reads the next field; `value` is empty for a number. */
static bool take_field(const uint8_t **at, const uint8_t *end, uint64_t *number, bool *has_bytes, mr_string *value)
{
    uint64_t tag, size_bytes = 0;
    if (!take_varint(at, end, &tag)) return false;
    *number = tag >> 3;
    *has_bytes = (tag & 7) == 2;
    *value = (mr_string){0};
    if ((tag & 7) == 0) return take_varint(at, end, &size_bytes);
    size_bytes = (tag & 7) == 1 ? 8 : 4;
    if (*has_bytes ? !take_varint(at, end, &size_bytes) : (tag & 7) != 1 && (tag & 7) != 5) return false;
    if (size_bytes > (uint64_t)(end - *at)) return false;
    *value = (mr_string){(const char *)*at, (size_t)size_bytes};
    *at += size_bytes;
    return true;
}

/* Whether a message is a NodeDef: its field 2 is the name of an operator. In a MetaInfoDef it is a list of them. */
static bool is_node(mr_string message)
{
    const uint8_t *at = (const uint8_t *)message.data, *end = at + message.size_bytes;
    uint64_t number;
    bool has_bytes;
    mr_string value;
    while (at < end && take_field(&at, end, &number, &has_bytes, &value)) {
        if (number != 2) continue;
        if (!has_bytes || value.size_bytes == 0) return false;
        for (size_t i = 0; i < value.size_bytes; i++) {
            char c = value.data[i];
            if (!isalnum((unsigned char)c) && c != '_' && c != '>' && c != '.' && c != '/') return false;
        }
        return true;
    }
    return false;
}

static format binary_format(mr_string bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.data, *end = at + bytes.size_bytes;
    bool has_meta = false, has_other = false;
    while (at < end) {
        uint64_t number;
        bool has_bytes;
        mr_string value;
        if (!take_field(&at, end, &number, &has_bytes, &value)) break;
        if (number == 1 && !has_bytes) return FORMAT_SAVED;
        if (number == 1 && is_node(value)) return FORMAT_GRAPH;
        has_meta |= number == 2 && has_bytes;
        has_other |= number == 1 || number >= 5 || (number == 3 && has_bytes);
    }
    return has_meta && has_other ? FORMAT_META : FORMAT_GRAPH;
}

/* ---- What a MetaGraphDef says ---- */

static mr_status copy_text(mr_model *m, const char *text, const char **copy, mr_error *error)
{
    *copy = mr_arena_strdup(&m->arena, text != nullptr ? text : "");
    return *copy != nullptr ? MR_OK : mr_fail_memory(error, 1);
}

static mr_status copy_texts(mr_model *m, char *const *texts, size_t count, const char *const **copies, mr_error *error)
{
    const char **made = MR_ARENA_NEW(&m->arena, const char *, count + 1);
    if (made == nullptr) return mr_fail_memory(error, count * sizeof *made);
    for (size_t i = 0; i < count; i++) MR_TRY(copy_text(m, texts[i], &made[i], error));
    *copies = made;
    return MR_OK;
}

static mr_status read_tensors(mr_model *m, Mr__SignatureDef__TensorEntry *const *entries, size_t count,
                              const mr_model_tensor **tensors, int32_t *tensor_count, mr_error *error)
{
    mr_model_tensor *made = MR_ARENA_NEW(&m->arena, mr_model_tensor, count + 1);
    if (made == nullptr) return mr_fail_memory(error, count * sizeof *made);
    for (size_t i = 0; i < count; i++) {
        const Mr__TensorInfo *info = entries[i]->value;
        bool is_dense = info != nullptr && info->encoding_case == MR__TENSOR_INFO__ENCODING_NAME;
        const Mr__TensorShapeProto *shape = info != nullptr ? info->tensor_shape : nullptr;
        MR_TRY(copy_text(m, entries[i]->key, &made[i].key, error));
        MR_TRY(copy_text(m, is_dense ? info->name : "", &made[i].name, error));
        made[i].shape = MR_SHAPE_UNKNOWN;
        if (info != nullptr && info->dtype > 0 && info->dtype < MR_DTYPE_COUNT) made[i].dtype = (mr_dtype)info->dtype;
        if (shape == nullptr || shape->unknown_rank || shape->n_dim > MR_RANK_MAX) continue;
        made[i].shape = (mr_shape){.rank = (int32_t)shape->n_dim};
        for (size_t j = 0; j < shape->n_dim; j++)
            made[i].shape.dims[j] = shape->dim[j]->size < 0 ? -1 : shape->dim[j]->size;
    }
    *tensors = made;
    *tensor_count = (int32_t)count;
    return MR_OK;
}

static mr_status read_signatures(mr_model *m, const Mr__MetaGraphDef *meta, mr_error *error)
{
    mr_model_signature *made = MR_ARENA_NEW(&m->arena, mr_model_signature, meta->n_signature_def + 1);
    if (made == nullptr) return mr_fail_memory(error, meta->n_signature_def * sizeof *made);
    m->about.signatures = made;
    for (size_t i = 0; i < meta->n_signature_def; i++) {
        const Mr__SignatureDef *def = meta->signature_def[i]->value;
        if (def == nullptr) continue;
        mr_model_signature *s = &made[m->about.signature_count++];
        MR_TRY(copy_text(m, meta->signature_def[i]->key, &s->key, error));
        MR_TRY(copy_text(m, def->method_name, &s->method, error));
        MR_TRY(read_tensors(m, def->inputs, def->n_inputs, &s->inputs, &s->input_count, error));
        MR_TRY(read_tensors(m, def->outputs, def->n_outputs, &s->outputs, &s->output_count, error));
    }
    return MR_OK;
}

static mr_status read_queue_runner(mr_model *m, ProtobufCBinaryData bytes, mr_arena *arena,
                                   mr_model_queue_runner *runner, mr_error *error)
{
    Mr__QueueRunnerDef *def;
    MR_TRY(mr_proto_unpack_as(queue_runner_def, mr_proto_bytes(bytes), arena, &def, error));
    MR_TRY(copy_text(m, def->queue_name, &runner->queue, error));
    MR_TRY(copy_text(m, def->close_op_name, &runner->close_op, error));
    MR_TRY(copy_text(m, def->cancel_op_name, &runner->cancel_op, error));
    MR_TRY(copy_texts(m, def->enqueue_op_name, def->n_enqueue_op_name, &runner->enqueue_ops, error));
    runner->enqueue_count = (int32_t)def->n_enqueue_op_name;
    runner->closed_count = (int32_t)def->n_queue_closed_exception_types;
    runner->closed_codes = mr_arena_copy(&m->arena, def->queue_closed_exception_types,
                                         (size_t)runner->closed_count * sizeof *runner->closed_codes);
    return runner->closed_codes != nullptr ? MR_OK : mr_fail_memory(error, 1);
}

static mr_status read_queue_runners(mr_model *m, const Mr__CollectionDef__BytesList *list, mr_arena *arena,
                                    mr_error *error)
{
    mr_model_queue_runner *made = MR_ARENA_NEW(&m->arena, mr_model_queue_runner, list->n_value + 1);
    if (made == nullptr) return mr_fail_memory(error, list->n_value * sizeof *made);
    for (size_t i = 0; i < list->n_value; i++) {
        mr_status status = read_queue_runner(m, list->value[i], arena, &made[i], error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "collection queue_runners");
    }
    m->about.queue_runners = made;
    m->about.queue_runner_count = (int32_t)list->n_value;
    return MR_OK;
}

/* The names in a collection of variables. */
static mr_status read_variables(mr_model *m, const Mr__CollectionDef__BytesList *list, mr_arena *arena,
                                mr_model_collection *collection, mr_error *error)
{
    const char **names = MR_ARENA_NEW(&m->arena, const char *, list->n_value + 1);
    if (names == nullptr) return mr_fail_memory(error, list->n_value * sizeof *names);
    for (size_t i = 0; i < list->n_value; i++) {
        Mr__VariableDef *def;
        MR_TRY(mr_proto_unpack_as(variable_def, mr_proto_bytes(list->value[i]), arena, &def, error));
        MR_TRY(copy_text(m, def->variable_name, &names[i], error));
    }
    collection->items = names;
    return MR_OK;
}

static mr_status read_collection(mr_model *m, const char *name, const Mr__CollectionDef *def, mr_arena *arena,
                                 mr_model_collection *collection, mr_error *error)
{
    MR_TRY(copy_text(m, name, &collection->name, error));
    switch (def->kind_case) {
    case MR__COLLECTION_DEF__KIND_NODE_LIST:
        collection->count = (int32_t)def->node_list->n_value;
        return copy_texts(m, def->node_list->value, def->node_list->n_value, &collection->items, error);
    case MR__COLLECTION_DEF__KIND_BYTES_LIST:
        collection->count = (int32_t)def->bytes_list->n_value;
        if (strcmp(name, "queue_runners") == 0) return read_queue_runners(m, def->bytes_list, arena, error);
        if (mr_graph_variable_count(m->graph, name) > 0)
            return read_variables(m, def->bytes_list, arena, collection, error);
        return MR_OK;
    case MR__COLLECTION_DEF__KIND_INT64_LIST:
        collection->count = (int32_t)def->int64_list->n_value;
        return MR_OK;
    case MR__COLLECTION_DEF__KIND_FLOAT_LIST:
        collection->count = (int32_t)def->float_list->n_value;
        return MR_OK;
    case MR__COLLECTION_DEF__KIND_ANY_LIST:
        collection->count = (int32_t)def->any_list->n_value;
        return MR_OK;
    default:
        return MR_OK;
    }
}

static mr_status read_collections(reading *r, const Mr__MetaGraphDef *meta, mr_error *error)
{
    mr_model *m = r->model;
    mr_model_collection *made = MR_ARENA_NEW(&m->arena, mr_model_collection, meta->n_collection_def + 1);
    if (made == nullptr) return mr_fail_memory(error, meta->n_collection_def * sizeof *made);
    m->about.collections = made;
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        if (entry->value == nullptr) continue;
        MR_TRY(read_collection(m, entry->key, entry->value, &r->arena, &made[m->about.collection_count], error));
        m->about.collection_count++;
    }
    return MR_OK;
}

/* ---- SavedModel ---- */

static mr_status add_asset(reading *r, const Mr__AssetFileDef *asset, mr_error *error)
{
    mr_model *m = r->model;
    mr_model_asset *to = &m->assets[m->asset_count];
    const Mr__TensorInfo *info = asset->tensor_info;
    if (info == nullptr || info->encoding_case != MR__TENSOR_INFO__ENCODING_NAME) return MR_OK;
    /* A file name from the graph must not leave the directory. */
    if (strchr(asset->filename, '/') != nullptr || strcmp(asset->filename, "..") == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "asset %.200s: not a file name", asset->filename);
    MR_TRY(copy_text(m, info->name, &to->output, error));
    to->path = mr_arena_printf(&m->arena, "%s/assets/%s", r->directory, asset->filename);
    if (to->path == nullptr) return mr_fail_memory(error, strlen(asset->filename));
    m->asset_count++;
    return MR_OK;
}

/* Assets are a field of the MetaGraphDef, and in older files a collection of serialized AssetFileDefs. */
static mr_status read_assets(reading *r, const Mr__MetaGraphDef *meta, mr_error *error)
{
    mr_model *m = r->model;
    const Mr__CollectionDef__AnyList *list = nullptr;
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__CollectionDef *def = meta->collection_def[i]->value;
        if (def != nullptr && def->kind_case == MR__COLLECTION_DEF__KIND_ANY_LIST &&
            strcmp(meta->collection_def[i]->key, "saved_model_assets") == 0)
            list = def->any_list;
    }
    size_t most = meta->n_asset_file_def + (list != nullptr ? list->n_value : 0);
    m->assets = MR_ARENA_NEW(&m->arena, mr_model_asset, most + 1);
    if (m->assets == nullptr) return mr_fail_memory(error, most * sizeof *m->assets);
    for (size_t i = 0; i < meta->n_asset_file_def; i++) MR_TRY(add_asset(r, meta->asset_file_def[i], error));
    if (meta->n_asset_file_def > 0) return MR_OK;
    for (size_t i = 0; list != nullptr && i < list->n_value; i++) {
        Mr__AssetFileDef *asset;
        MR_TRY(mr_proto_unpack_as(asset_file_def, mr_proto_bytes(list->value[i]->value), &r->arena, &asset, error));
        MR_TRY(add_asset(r, asset, error));
    }
    return MR_OK;
}

/* The operations that initialize a SavedModel: its main operation, or that of older files. */
static mr_status find_init_ops(mr_model *m, mr_error *error)
{
    static const char *const collections[] = {"saved_model_main_op", "legacy_init_op"};
    const mr_model_collection *found = nullptr;
    const mr_model_signature *signature = nullptr;
    for (size_t i = 0; i < 2 && found == nullptr; i++)
        for (int32_t j = 0; j < m->about.collection_count; j++)
            if (strcmp(m->about.collections[j].name, collections[i]) == 0 && m->about.collections[j].items != nullptr)
                found = &m->about.collections[j];
    for (int32_t i = 0; i < m->about.signature_count; i++)
        if (strcmp(m->about.signatures[i].key, "__saved_model_init_op") == 0) signature = &m->about.signatures[i];
    size_t most =
        (found != nullptr ? (size_t)found->count : 0) + (signature != nullptr ? (size_t)signature->output_count : 0);
    m->init_ops = MR_ARENA_NEW(&m->arena, const char *, most + 1);
    if (m->init_ops == nullptr) return mr_fail_memory(error, most * sizeof *m->init_ops);
    for (int32_t i = 0; found != nullptr && i < found->count; i++) m->init_ops[m->init_count++] = found->items[i];
    for (int32_t i = 0; signature != nullptr && i < signature->output_count; i++)
        m->init_ops[m->init_count++] = signature->outputs[i].name;
    return MR_OK;
}

/* "serve,gpu" of a graph, in the arena. */
static const char *tags_of(const Mr__MetaGraphDef *meta, mr_arena *arena)
{
    const Mr__MetaGraphDef__MetaInfoDef *info = meta->meta_info_def;
    const char *tags = "";
    for (size_t i = 0; tags != nullptr && info != nullptr && i < info->n_tags; i++)
        tags = i == 0 ? mr_arena_strdup(arena, info->tags[i]) : mr_arena_printf(arena, "%s,%s", tags, info->tags[i]);
    return tags;
}

/* Whether the list has exactly the tags of the graph, in any order. */
static bool has_tags(const Mr__MetaGraphDef *meta, const char *list)
{
    const Mr__MetaGraphDef__MetaInfoDef *info = meta->meta_info_def;
    size_t count = info != nullptr ? info->n_tags : 0, wanted = 0;
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < count && (strlen(info->tags[i]) != length || memcmp(info->tags[i], at, length) != 0)) i++;
        if (i == count) return false;
        wanted++;
        at += length + (at[length] == ',');
    }
    return wanted == count;
}

static mr_status select_graph(reading *r, const Mr__SavedModel *saved, const Mr__MetaGraphDef **meta, mr_error *error)
{
    const char *wanted = r->tags != nullptr ? r->tags : "serve";
    char *all = "";
    *meta = nullptr;
    if (saved->n_meta_graphs == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "a SavedModel without graphs");
    if (r->tags == nullptr && saved->n_meta_graphs == 1) *meta = saved->meta_graphs[0];
    for (size_t i = 0; *meta == nullptr && i < saved->n_meta_graphs; i++)
        if (has_tags(saved->meta_graphs[i], wanted)) *meta = saved->meta_graphs[i];
    for (size_t i = 0; *meta == nullptr && all != nullptr && i < saved->n_meta_graphs && i < 16; i++)
        all = mr_arena_printf(&r->arena, "%s%s%s", all, i > 0 ? "; " : "", tags_of(saved->meta_graphs[i], &r->arena));
    if (*meta != nullptr) return MR_OK;
    return mr_fail(error, MR_NOT_FOUND, "the SavedModel has no graph with the tags %.100s; it has: %.300s", wanted,
                   all != nullptr ? all : "");
}

/* ---- Import ---- */

static mr_status describe(reading *r, const Mr__MetaGraphDef *meta, mr_error *error)
{
    mr_model *m = r->model;
    const Mr__SaverDef *saver = meta->saver_def;
    MR_TRY(copy_text(m, meta->meta_info_def ? meta->meta_info_def->tensorflow_version : "",
                     &m->about.tensorflow_version, error));
    MR_TRY(copy_text(m, saver ? saver->filename_tensor_name : "", &m->about.saver_filename, error));
    MR_TRY(copy_text(m, saver ? saver->save_tensor_name : "", &m->about.saver_save, error));
    MR_TRY(copy_text(m, saver ? saver->restore_op_name : "", &m->about.saver_restore, error));
    m->about.tags = tags_of(meta, &m->arena);
    if (m->about.tags == nullptr) return mr_fail_memory(error, 1);
    MR_TRY(read_signatures(m, meta, error));
    return read_collections(r, meta, error);
}

static mr_status import_meta(reading *r, const Mr__MetaGraphDef *meta, mr_error *error)
{
    mr_string bytes = {0};
    MR_TRY(mr_proto_pack(meta, &r->arena, &bytes, error));
    MR_TRY(mr_graph_import_meta(r->model->graph, bytes.data, bytes.size_bytes, error));
    return describe(r, meta, error);
}

static mr_status import_saved(reading *r, mr_string bytes, mr_error *error)
{
    mr_model *m = r->model;
    Mr__SavedModel *saved;
    const Mr__MetaGraphDef *meta;
    MR_TRY(mr_proto_unpack_as(saved_model, bytes, &r->arena, &saved, error));
    MR_TRY(select_graph(r, saved, &meta, error));
    MR_TRY(import_meta(r, meta, error));
    if (r->directory == nullptr) return MR_OK;
    MR_TRY(read_assets(r, meta, error));
    MR_TRY(find_init_ops(m, error));
    const char *prefix = mr_arena_printf(&m->arena, "%s/variables/variables", r->directory);
    const char *index = mr_arena_printf(&m->arena, "%s.index", prefix ? prefix : "");
    if (prefix == nullptr || index == nullptr) return mr_fail_memory(error, 1);
    if (mr_file_exists(index)) m->about.variables = prefix;
    return MR_OK;
}

static mr_status import_binary(reading *r, format format, mr_string bytes, mr_error *error)
{
    mr_model *m = r->model;
    Mr__MetaGraphDef *meta;
    switch (format) {
    case FORMAT_META:
        m->about.format = "MetaGraphDef";
        MR_TRY(mr_proto_unpack_as(meta_graph_def, bytes, &r->arena, &meta, error));
        MR_TRY(mr_graph_import_meta(m->graph, bytes.data, bytes.size_bytes, error));
        return describe(r, meta, error);
    case FORMAT_SAVED:
        m->about.format = "SavedModel";
        return import_saved(r, bytes, error);
    default:
        m->about.format = "GraphDef";
        return mr_graph_import(m->graph, bytes.data, bytes.size_bytes, nullptr, error);
    }
}

static mr_status import_text(reading *r, format format, mr_string text, mr_error *error)
{
    const ProtobufCMessageDescriptor *descriptor = format == FORMAT_META    ? &mr__meta_graph_def__descriptor
                                                   : format == FORMAT_SAVED ? &mr__saved_model__descriptor
                                                                            : &mr__graph_def__descriptor;
    mr_string bytes;
    MR_TRY(mr_proto_text_parse(descriptor, text, &bytes, error));
    r->model->about.is_text = true;
    mr_status status = import_binary(r, format, bytes, error);
    free((void *)bytes.data);
    return status;
}

/* Before anything is read: a device has no end, and a file may be larger than the memory. */
static mr_status check_file(const char *path, mr_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0 || S_ISDIR(about.st_mode) || S_ISFIFO(about.st_mode)) return MR_OK;
    if (!S_ISREG(about.st_mode))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: neither a regular file nor a pipe", path);
    if ((uint64_t)about.st_size <= FILE_BYTES_MAX) return MR_OK;
    return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                   "%s: %" PRIu64 " bytes; a graph has at most 2 GiB, the limit of protobuf", path,
                   (uint64_t)about.st_size);
}

static mr_status import_file(reading *r, mr_error *error)
{
    char *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(check_file(r->path, error));
    MR_TRY(r->path == r->chosen ? mr_file_read_all(r->path, FILE_BYTES_MAX, &bytes, &size_bytes, error)
                                : mr_file_read_regular(r->path, FILE_BYTES_MAX, &bytes, &size_bytes, error));
    mr_string all = {bytes, size_bytes};
    format text = text_format(all);
    mr_status status =
        text != FORMAT_UNKNOWN ? import_text(r, text, all, error) : import_binary(r, binary_format(all), all, error);
    free(bytes);
    if (status == MR_OK && mr_graph_node_count(r->model->graph) == 0)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "graph without nodes (%zu bytes)", size_bytes);
    if (status == MR_OK && r->tags != nullptr && strcmp(r->model->about.format, "SavedModel") != 0)
        status =
            mr_fail(error, MR_INVALID_ARGUMENT, "a %s has no tags; only a SavedModel does", r->model->about.format);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s", r->path);
}

/* ---- Lifetime ---- */

/* A directory stands for the file in it, binary or text. */
static mr_status find_file(reading *r, const char *path, mr_error *error)
{
    static const char *const names[] = {"saved_model.pb", "saved_model.pbtxt"};
    struct stat about;
    r->path = r->chosen = path;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        r->directory = path;
        for (size_t i = 0; i < 2; i++) {
            const char *file = mr_arena_printf(&r->model->arena, "%s/%s", path, names[i]);
            if (file == nullptr) return mr_fail_memory(error, strlen(path));
            r->path = file;
            if (mr_file_exists(file)) return MR_OK;
        }
        return mr_fail(error, MR_NOT_FOUND, "%s: a directory without saved_model.pb", path);
    }
    const char *slash = strrchr(path, '/');
    if (slash == path) slash = nullptr;
    const char *name = slash != nullptr ? slash + 1 : path;
    if (strcmp(name, names[0]) != 0 && strcmp(name, names[1]) != 0) return MR_OK;
    r->directory = slash == nullptr ? mr_arena_strdup(&r->model->arena, ".")
                                    : mr_arena_strndup(&r->model->arena, path, (size_t)(slash - path));
    return r->directory != nullptr ? MR_OK : mr_fail_memory(error, strlen(path));
}

mr_status mr_model_read(const char *path, const char *tags, mr_model **model, mr_error *error)
{
    mr_model *made = calloc(1, sizeof *made);
    *model = nullptr;
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    reading r = {.model = made, .tags = tags};
    made->about = (mr_model_about){.format = "",
                                   .tensorflow_version = "",
                                   .tags = "",
                                   .saver_filename = "",
                                   .saver_save = "",
                                   .saver_restore = "",
                                   .variables = ""};
    made->graph = mr_graph_create();
    mr_status status = made->graph != nullptr ? MR_OK : mr_fail_memory(error, sizeof(mr_graph));
    if (status == MR_OK) status = find_file(&r, path, error);
    if (status == MR_OK) status = import_file(&r, error);
    mr_arena_deinit(&r.arena);
    if (status == MR_OK)
        *model = made;
    else
        mr_model_free(made);
    return status;
}

void mr_model_free(mr_model *model)
{
    if (model == nullptr) return;
    mr_graph_free(model->graph);
    mr_arena_deinit(&model->arena);
    free(model);
}

mr_graph *mr_model_graph(mr_model *model)
{
    return model == nullptr ? nullptr : model->graph;
}

const mr_model_about *mr_model_info(const mr_model *model)
{
    return model == nullptr ? nullptr : &model->about;
}
