/* SaveV2, RestoreV2, ShardedFilename: checkpoints from inside the graph, as built by TensorFlow's Saver. */
#include "graph/state/state.h"

#include "kernels/common.h"
#include "records/checkpoint/checkpoint.h"
#include <inttypes.h>
#include <millrace/saver.h>
#include <string.h>

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
    const mr_tensor *value = &call->inputs[3 + index];
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
    if (status == MR_OK) status = mr_checkpoint_writer_open(prefix, &writer, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++) status = save_one(call, writer, &arena, i, error);
    if (status == MR_OK)
        status = mr_checkpoint_writer_close(writer, error);
    else
        mr_checkpoint_writer_discard(writer);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status restore_one(mr_kernel_call *call, mr_checkpoint_reader *reader, mr_arena *arena, int64_t index,
                             mr_error *error)
{
    const char *key;
    MR_TRY(key_at(call, arena, index, &key, error));
    bool is_slice;
    mr_shape full;
    mr_checkpoint_slice slice;
    MR_TRY(mr_checkpoint_slice_parse(mr_tensor_strings(&call->inputs[2])[index], &is_slice, &full, &slice, error));
    mr_tensor *value = &call->outputs[index];
    MR_TRY(is_slice ? mr_checkpoint_read_slice(reader, key, &slice, value, error)
                    : mr_checkpoint_read(reader, key, value, error));
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
    if (status == MR_OK) status = mr_checkpoint_reader_open(prefix, &reader, error);
    for (int64_t i = 0; status == MR_OK && i < count; i++) status = restore_one(call, reader, &arena, i, error);
    mr_checkpoint_reader_close(reader);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status sharded_filename(mr_kernel_call *call, mr_error *error)
{
    mr_arena arena = {0};
    const char *base;
    int64_t shard, shard_count;
    MR_TRY(mr_kernel_int(call, 1, "shard", &shard, error));
    MR_TRY(mr_kernel_int(call, 2, "num_shards", &shard_count, error));
    mr_status status = text_input(call, &arena, 0, &base, error);
    if (status == MR_OK) {
        char *name = mr_arena_printf(&arena, "%s-%05" PRId64 "-of-%05" PRId64, base, shard, shard_count);
        status =
            name ? mr_tensor_init_string(&call->outputs[0], mr_string_from(name), error) : mr_fail_memory(error, 1);
    }
    mr_arena_deinit(&arena);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "SaveV2", .run = save},
    {.op = "RestoreV2", .run = restore},
    {.op = "ShardedFilename", .run = sharded_filename},
};
const mr_kernel_table mr_state_kernels_checkpoint = {kernels, sizeof kernels / sizeof kernels[0]};
