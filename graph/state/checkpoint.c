/* SaveV2, RestoreV2, MergeV2Checkpoints, ShardedFilename, ShardedFilespec, and Save, SaveSlices, Restore, RestoreSlice
 * for V1 checkpoints: checkpoints from inside the graph, as built by TensorFlow's Saver. Both kinds are read by either
 * operator. */
#include "graph/state/serialized.h"

#include "base/rights.h"
#include "kernels/common.h"
#include "records/checkpoint/checkpoint_part.h"
#include <inttypes.h>
#include <millrace/saver.h>
#include <string.h>
#include <unistd.h>

/* A scalar string input, null-terminated, in the arena. */
static mr_status text_input(mr_kernel_call *call, mr_arena *arena, int input, const char **text, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    if (tensor->dtype != MR_STRING || mr_tensor_count(tensor) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d must be one string", input);
    mr_string value = mr_tensor_strings(tensor)[0];
    if (memchr(value.data ? value.data : "", 0, value.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d has a zero byte", input);
    *text = mr_arena_strndup(arena, value.data, value.size_bytes);
    return *text ? MR_OK : mr_fail_memory(error, value.size_bytes);
}

static mr_status check_lists(mr_kernel_call *call, int64_t count, mr_error *error)
{
    for (int input = 1; input <= 2; input++)
        if (call->inputs[input].dtype != MR_STRING || mr_tensor_count(&call->inputs[input]) != count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d has %" PRId64 " elements, not %" PRId64, input,
                                  mr_tensor_count(&call->inputs[input]), count);
    return MR_OK;
}

static mr_status key_at(mr_kernel_call *call, mr_arena *arena, int64_t index, const char **key, mr_error *error)
{
    mr_string name = mr_tensor_strings(&call->inputs[1])[index];
    if (memchr(name.data ? name.data : "", 0, name.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor name %" PRId64 " has a zero byte", index);
    *key = mr_arena_strndup(arena, name.data, name.size_bytes);
    return *key ? MR_OK : mr_fail_memory(error, name.size_bytes);
}

static mr_status save_one(mr_kernel_call *call, mr_checkpoint_writer *writer, mr_arena *arena, int64_t index,
                          mr_error *error)
{
    const char *key;
    MR_TRY(key_at(call, arena, index, &key, error));
    bool is_slice;
    mr_shape full;
    mr_checkpoint_slice slice;
    MR_TRY(mr_checkpoint_slice_parse(mr_tensor_strings(&call->inputs[2])[index], &is_slice, &full, &slice, error));
    const mr_tensor *value = &call->inputs[3 + index], *strings = mr_serialized_strings(value);
    if (strings) value = strings;
    return is_slice ? mr_checkpoint_write_slice(writer, key, full, &slice, value, error)
                    : mr_checkpoint_write(writer, key, value, error);
}

static mr_status save(mr_kernel_call *call, mr_error *error)
{
    int64_t count = call->node->input_count - 3;
    MR_TRY(check_lists(call, count, error));
    mr_arena arena = {0};
    mr_checkpoint_writer *writer = nullptr;
    const char *prefix;
    mr_status status = text_input(call, &arena, 0, &prefix, error);
    if (status == MR_OK) status = mr_kernel_check_write(call, prefix, error);
    if (status == MR_OK) status = mr_checkpoint_writer_open(prefix, &writer, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++) status = save_one(call, writer, &arena, i, error);
    if (status == MR_OK)
        status = mr_checkpoint_writer_close(writer, error);
    else
        mr_checkpoint_writer_discard(writer);
    mr_arena_deinit(&arena);
    return status;
}

/* Opens the checkpoint of input 0. */
static mr_status open_reader(const char *path, mr_checkpoint_reader **reader, mr_error *error)
{
    mr_error why = {0};
    mr_status status = mr_checkpoint_reader_open(path, reader, &why);
    if (status == MR_NOT_FOUND)
        return mr_fail(error, MR_NOT_FOUND,
                       "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s: %s", path,
                       why.message);
    return status == MR_OK ? MR_OK : mr_fail(error, status, "%s", why.message);
}

static mr_status restore_one(mr_kernel_call *call, mr_checkpoint_reader *reader, mr_arena *arena, int64_t index,
                             mr_error *error)
{
    const char *key;
    MR_TRY(key_at(call, arena, index, &key, error));
    bool is_slice = false;
    mr_shape full;
    mr_checkpoint_slice slice;
    if (call->node->input_count > 2)
        MR_TRY(mr_checkpoint_slice_parse(mr_tensor_strings(&call->inputs[2])[index], &is_slice, &full, &slice, error));
    mr_tensor *value = &call->outputs[index];
    bool is_v1 = strcmp(call->node->op, "RestoreV2") != 0;
    if (!mr_checkpoint_has(reader, key))
        return mr_fail(
            error, MR_NOT_FOUND,
            is_v1 ? "Tensor name \"%.200s\" not found in checkpoint files" : "Key %.200s not found in checkpoint", key);
    MR_TRY(is_slice ? mr_checkpoint_read_slice(reader, key, &full, &slice, value, error)
                    : mr_checkpoint_read(reader, key, value, error));
    MR_TRY(mr_serialized_to_graph(value, call->node->output_dtypes[index], error));
    if (value->dtype != call->node->output_dtypes[index] && is_v1)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Expected to restore a tensor of type %s, got a tensor of type %s instead: tensor_name = %s",
                       mr_dtype_name(call->node->output_dtypes[index]), mr_dtype_name(value->dtype), key);
    if (value->dtype != call->node->output_dtypes[index])
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "tensor_name = %s; expected dtype %s does not equal original dtype %s", key,
                       mr_dtype_name(call->node->output_dtypes[index]), mr_dtype_name(value->dtype));
    return MR_OK;
}

static mr_status restore(mr_kernel_call *call, mr_error *error)
{
    int64_t count = call->node->output_count;
    MR_TRY(check_lists(call, count, error));
    mr_arena arena = {0};
    mr_checkpoint_reader *reader = nullptr;
    const char *prefix;
    mr_status status = text_input(call, &arena, 0, &prefix, error);
    if (status == MR_OK) status = open_reader(prefix, &reader, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++) status = restore_one(call, reader, &arena, i, error);
    mr_checkpoint_reader_close(reader);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- V1 ---- */

static mr_status item_at(mr_kernel_call *call, mr_arena *arena, int64_t index, bool has_slices,
                         mr_checkpoint_v1_item *item, mr_error *error)
{
    bool is_slice = false;
    const mr_tensor *value = &call->inputs[(has_slices ? 3 : 2) + index];
    MR_TRY(key_at(call, arena, index, &item->key, error));
    if (has_slices)
        MR_TRY(mr_checkpoint_slice_parse(mr_tensor_strings(&call->inputs[2])[index], &is_slice, &item->full,
                                         &item->slice, error));
    item->value = value;
    if (is_slice) {
        mr_shape shape;
        MR_TRY(mr_checkpoint_slice_shape(&item->slice, item->full, &shape, error));
        if (mr_shape_equal(shape, value->shape)) return MR_OK;
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shape of %.100s is not that of its slice",
                              item->key);
    }
    item->full = value->shape;
    item->slice.rank = value->shape.rank;
    for (int32_t i = 0; i < value->shape.rank; i++) item->slice.lengths[i] = -1;
    return MR_OK;
}

static mr_status save_v1(mr_kernel_call *call, bool has_slices, mr_error *error)
{
    int64_t count = call->node->input_count - (has_slices ? 3 : 2);
    for (int input = 1; input <= 1 + has_slices; input++)
        if (mr_tensor_count(&call->inputs[input]) != count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d has %" PRId64 " elements, not %" PRId64, input,
                                  mr_tensor_count(&call->inputs[input]), count);
    mr_arena arena = {0};
    const char *path;
    mr_checkpoint_v1_item *items = MR_ARENA_NEW(&arena, mr_checkpoint_v1_item, (size_t)count + 1);
    mr_status status = items ? text_input(call, &arena, 0, &path, error) : mr_fail_memory(error, 1);
    if (status == MR_OK) status = mr_kernel_check_write(call, path, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++)
        status = item_at(call, &arena, i, has_slices, &items[i], error);
    if (status == MR_OK) status = mr_checkpoint_v1_write(path, items, (int32_t)count, error);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status save_complete_v1(mr_kernel_call *call, mr_error *error)
{
    return save_v1(call, false, error);
}

static mr_status save_slices_v1(mr_kernel_call *call, mr_error *error)
{
    return save_v1(call, true, error);
}

/* A saver writes the pattern of all its shards, "model-?????-of-00002"; without it, the reader finds them. */
static void cut_pattern(char *path)
{
    size_t length = strlen(path), cut = strlen("-\?\?\?\?\?-of-00001");
    if (length > cut && strncmp(path + length - cut, "-\?\?\?\?\?-of-", 10) == 0) path[length - cut] = '\0';
}

static mr_status restore_v1(mr_kernel_call *call, mr_error *error)
{
    mr_arena arena = {0};
    mr_checkpoint_reader *reader = nullptr;
    const char *path = nullptr;
    for (int i = 1; i < call->node->input_count; i++)
        if (mr_tensor_count(&call->inputs[i]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d must be one string", i);
    mr_status status = text_input(call, &arena, 0, &path, error);
    if (status == MR_OK) {
        cut_pattern((char *)path);
        status = open_reader(path, &reader, error);
    }
    if (status == MR_OK) status = restore_one(call, reader, &arena, 0, error);
    mr_checkpoint_reader_close(reader);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Merge ---- */

typedef struct merge {
    bool keeps_directories, allows_missing;
} merge;

static mr_status prepare_merge(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    merge *m = prepared;
    const mr_attr *deletes = mr_attrs_find(node->attrs, "delete_old_dirs");
    const mr_attr *missing = mr_attrs_find(node->attrs, "allow_missing_files");
    m->keeps_directories = deletes && !deletes->values[0].boolean;
    m->allows_missing = missing && missing->values[0].boolean;
    return MR_OK;
}

static mr_status merge_one(mr_checkpoint_writer *writer, const char *prefix, bool allows_missing, mr_error *error)
{
    mr_checkpoint_reader *reader = nullptr;
    mr_status status = mr_checkpoint_reader_open(prefix, &reader, error);
    if (status == MR_NOT_FOUND && allows_missing) return MR_OK;
    for (int32_t i = 0; status == MR_OK && i < mr_checkpoint_count(reader); i++)
        status = mr_checkpoint_copy(reader, mr_checkpoint_key(reader, i, nullptr, nullptr), writer, error);
    mr_checkpoint_reader_close(reader);
    return status;
}

static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

/* Removes a part, and its directory if it is empty then and not that of the merged checkpoint. A part that remains does
 * no harm. */
static void remove_part(char *prefix, const char *merged)
{
    if (strcmp(prefix, merged) == 0) return;
    (void)mr_checkpoint_remove(prefix, nullptr);
    size_t length = directory_length(prefix);
    if (length == 0 || (length == directory_length(merged) && strncmp(prefix, merged, length) == 0)) return;
    prefix[length] = '\0';
    (void)rmdir(prefix);
}

static mr_status write_merged(mr_kernel_call *call, mr_arena *arena, const char *merged, mr_error *error)
{
    const merge *m = call->prepared;
    int64_t count = mr_tensor_count(&call->inputs[0]);
    char **prefixes = MR_ARENA_NEW(arena, char *, (size_t)count + 1);
    if (!prefixes) return mr_fail_memory(error, (size_t)count * sizeof *prefixes);
    for (int64_t i = 0; i < count; i++) {
        mr_string value = mr_tensor_strings(&call->inputs[0])[i];
        if (memchr(value.data ? value.data : "", 0, value.size_bytes))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "prefix %" PRId64 " has a zero byte", i);
        prefixes[i] = mr_arena_strndup(arena, value.data, value.size_bytes);
        if (!prefixes[i]) return mr_fail_memory(error, value.size_bytes);
        if (!m->keeps_directories) MR_TRY(mr_kernel_check_write(call, prefixes[i], error));
    }
    mr_checkpoint_writer *writer = nullptr;
    mr_status status = mr_checkpoint_writer_open(merged, &writer, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++)
        status = merge_one(writer, prefixes[i], m->allows_missing, error);
    if (status != MR_OK) {
        mr_checkpoint_writer_discard(writer);
        return status;
    }
    MR_TRY(mr_checkpoint_writer_close(writer, error));
    for (int64_t i = 0; i < count && !m->keeps_directories; i++) remove_part(prefixes[i], merged);
    return MR_OK;
}

static mr_status merge_checkpoints(mr_kernel_call *call, mr_error *error)
{
    if (call->inputs[0].shape.rank != 1) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input checkpoint_prefixes should be an 1-D tensor, got %s instead.",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    }
    mr_arena arena = {0};
    const char *merged;
    mr_status status = text_input(call, &arena, 1, &merged, error);
    if (status == MR_OK) status = mr_kernel_check_write(call, merged, error);
    if (status == MR_OK) status = write_merged(call, &arena, merged, error);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Names of shards ---- */

/* The name of one shard, or the pattern of all of them. */
static mr_status shard_name(mr_kernel_call *call, bool is_pattern, mr_error *error)
{
    mr_arena arena = {0};
    const char *base;
    int64_t shard = 0, shard_count;
    if (!is_pattern) MR_TRY(mr_kernel_int(call, 1, "shard", &shard, error));
    MR_TRY(mr_kernel_int(call, is_pattern ? 1 : 2, "num_shards", &shard_count, error));
    mr_status status = text_input(call, &arena, 0, &base, error);
    if (status == MR_OK) {
        char *name = is_pattern ? mr_arena_printf(&arena, "%s-\?\?\?\?\?-of-%05" PRId64, base, shard_count)
                                : mr_arena_printf(&arena, "%s-%05" PRId64 "-of-%05" PRId64, base, shard, shard_count);
        status =
            name ? mr_tensor_init_string(&call->outputs[0], mr_string_from(name), error) : mr_fail_memory(error, 1);
    }
    mr_arena_deinit(&arena);
    return status;
}

static mr_status sharded_filename(mr_kernel_call *call, mr_error *error)
{
    return shard_name(call, false, error);
}

static mr_status sharded_filespec(mr_kernel_call *call, mr_error *error)
{
    return shard_name(call, true, error);
}

static const mr_kernel kernels[] = {
    {.op = "SaveV2", .run = save},
    {.op = "RestoreV2", .run = restore},
    {.op = "MergeV2Checkpoints",
     .run = merge_checkpoints,
     .prepare = prepare_merge,
     .prepared_size_bytes = sizeof(merge)},
    {.op = "ShardedFilename", .run = sharded_filename},
    {.op = "ShardedFilespec", .run = sharded_filespec},
    {.op = "Save", .run = save_complete_v1},
    {.op = "SaveSlices", .run = save_slices_v1},
    {.op = "Restore", .run = restore_v1},
    {.op = "RestoreSlice", .run = restore_v1},
};
const mr_kernel_table mr_state_kernels_checkpoint = {kernels, sizeof kernels / sizeof kernels[0]};
