/* V1 checkpoints, of TensorFlow before 0.12: a table in one file for each shard, PREFIX or PREFIX-00000-of-00002. Its
 * key "" holds the names, types, shapes and slices of the file's tensors; every other key is that of a slice and holds
 * its elements as a TensorProto. A complete tensor is one slice. */
#include "base/status.h"
#include "proto/bundle.pb-c.h"
#include "proto/proto.h"
#include "records/checkpoint/checkpoint_part.h"

#include <assert.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Copies `count` numbers of a list, which has another width if the dtype is a short integer. */
static mr_status copy_list(const void *list, size_t found, size_t list_bytes, size_t count, size_t element_bytes,
                           void *target, mr_error *error)
{
    if (found != count) return mr_fail(error, MR_DATA_LOSS, "%zu values, but the shape has %zu elements", found, count);
    assert(element_bytes <= list_bytes);
    for (size_t i = 0; i < count; i++) /* the low bytes */
        memcpy((char *)target + i * element_bytes, (const char *)list + i * list_bytes, element_bytes);
    return MR_OK;
}

static mr_status copy_numbers(const Mr__TensorProto *data, mr_dtype dtype, size_t count, void *target, mr_error *error)
{
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    size_t size = mr_dtype_size(dtype);
#define LIST(field, type) copy_list(data->field, data->n_##field, sizeof(type), count, size, target, error)
    switch (dtype) {
    case MR_FLOAT:
        return LIST(float_val, float);
    case MR_DOUBLE:
        return LIST(double_val, double);
    case MR_INT64:
        return LIST(int64_val, int64_t);
    case MR_UINT32:
        return LIST(uint32_val, uint32_t);
    case MR_UINT64:
        return LIST(uint64_val, uint64_t);
    case MR_BOOL:
        if (data->n_bool_val == count)
            for (size_t i = 0; i < count; i++) ((bool *)target)[i] = data->bool_val[i] != 0;
        return data->n_bool_val == count ? MR_OK : LIST(bool_val, protobuf_c_boolean);
    case MR_HALF:
    case MR_BFLOAT16:
        return LIST(half_val, int32_t);
    case MR_COMPLEX64:
        count *= 2, size = sizeof(float);
        return LIST(scomplex_val, float);
    case MR_COMPLEX128:
        count *= 2, size = sizeof(double);
        return LIST(dcomplex_val, double);
    default:
        if (size > sizeof(int32_t)) return mr_fail(error, MR_UNIMPLEMENTED, "type %s", mr_dtype_name(dtype));
        return LIST(int_val, int32_t);
    }
#undef LIST
}

static mr_status copy_strings(const Mr__TensorProto *data, mr_shape shape, mr_arena *arena, mr_tensor *value,
                              mr_error *error)
{
    size_t count = (size_t)mr_shape_count(shape);
    if (data->n_string_val != count)
        return mr_fail(error, MR_DATA_LOSS, "%zu values, but the shape has %zu elements", data->n_string_val, count);
    mr_string *strings = MR_ARENA_NEW(arena, mr_string, count + 1);
    if (strings == nullptr) return mr_fail_memory(error, count * sizeof *strings);
    for (size_t i = 0; i < count; i++) strings[i] = mr_proto_bytes(data->string_val[i]);
    return mr_tensor_init_strings(value, shape, strings, error);
}

mr_status mr_checkpoint_v1_decode(mr_string bytes, mr_dtype dtype, mr_shape shape, mr_arena *arena, mr_tensor *value,
                                  mr_error *error)
{
    Mr__SavedTensorSlices *saved;
    *value = (mr_tensor){0};
    MR_TRY(mr_proto_unpack_as(saved_tensor_slices, bytes, arena, &saved, error));
    const Mr__TensorProto *data = saved->data != nullptr ? saved->data->data : nullptr;
    if (data == nullptr) return mr_fail(error, MR_DATA_LOSS, "a slice without data");
    /* The first versions did not store the type with the data. */
    if (data->dtype != 0 && data->dtype != (int32_t)dtype)
        return mr_fail(error, MR_DATA_LOSS, "the data of a slice has another type");
    if (dtype == MR_STRING) return copy_strings(data, shape, arena, value, error);
    if (mr_dtype_size(dtype) == 0) return mr_fail(error, MR_UNIMPLEMENTED, "type %s", mr_dtype_name(dtype));
    MR_TRY(mr_tensor_init(value, dtype, shape, error));
    mr_status status = copy_numbers(data, dtype, (size_t)mr_shape_count(shape), value->data, error);
    if (status != MR_OK) mr_tensor_deinit(value);
    return status;
}

/* ---- Files ---- */

static bool is_regular(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Finds shard 0 among the files of a directory, "PREFIX-00000-of-00002"; 0 if there is none. */
static int32_t find_shard_count(const char *path)
{
    char *pattern = nullptr;
    glob_t found = {0};
    int32_t count = 0;
    size_t length = strlen(path), at = 0;
    pattern = malloc(2 * length + sizeof "-00000-of-[0-9][0-9][0-9][0-9][0-9]");
    if (pattern == nullptr) return 0;
    for (size_t i = 0; i < length; i++) {
        if (strchr("*?[\\", path[i]) != nullptr) pattern[at++] = '\\';
        pattern[at++] = path[i];
    }
    memcpy(pattern + at, "-00000-of-[0-9][0-9][0-9][0-9][0-9]", sizeof "-00000-of-[0-9][0-9][0-9][0-9][0-9]");
    if (glob(pattern, 0, nullptr, &found) == 0 && found.gl_pathc == 1)
        count = (int32_t)strtol(found.gl_pathv[0] + strlen(found.gl_pathv[0]) - 5, nullptr, 10);
    globfree(&found);
    free(pattern);
    return count;
}

bool mr_checkpoint_is_v1(const char *path)
{
    return is_regular(path) || find_shard_count(path) > 0;
}

mr_status mr_checkpoint_v1_files(const char *path, char ***paths, int32_t *count, mr_error *error)
{
    bool is_one = is_regular(path);
    int32_t shards = is_one ? 1 : find_shard_count(path);
    *paths = nullptr;
    *count = 0;
    if (shards == 0) return MR_OK;
    *paths = calloc((size_t)shards, sizeof **paths);
    if (*paths == nullptr) return mr_fail_memory(error, (size_t)shards * sizeof **paths);
    for (; *count < shards; ++*count) {
        size_t size_bytes = strlen(path) + sizeof "-00000-of-00000";
        char *name = malloc(size_bytes);
        if (name == nullptr) return mr_fail_memory(error, size_bytes);
        if (is_one)
            snprintf(name, size_bytes, "%s", path);
        else
            snprintf(name, size_bytes, "%s-%05d-of-%05d", path, (int)*count, (int)shards);
        (*paths)[*count] = name;
    }
    return MR_OK;
}
