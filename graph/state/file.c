/* ReadFile, WriteFile, MatchingFiles. */
#include "graph/state/state.h"

#include "base/rights.h"
#include "records/io/file.h"
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Larger files are an error. */
constexpr size_t READ_MAX_BYTES = (size_t)1 << 36;

/* A string of an input as a null-terminated path in the arena. */
static mr_status path_at(mr_kernel_call *call, mr_arena *arena, int input, int64_t index, const char *what,
                         const char **path, mr_error *error)
{
    mr_string name = mr_tensor_strings(&call->inputs[input])[index];
    if (name.size_bytes > 0 && memchr(name.data, 0, name.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the %s has a zero byte", what);
    *path = mr_arena_strndup(arena, name.data, name.size_bytes);
    return *path ? MR_OK : mr_fail_memory(error, name.size_bytes);
}

static mr_status expect_scalar(mr_kernel_call *call, int input, const char *what, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[input].shape.rank == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s tensor must be scalar, but had shape: %s", what,
                          mr_shape_text(call->inputs[input].shape, text, sizeof text));
}

static mr_status read_file(mr_kernel_call *call, mr_error *error)
{
    mr_arena arena = {0};
    const char *path = nullptr;
    char *bytes = nullptr;
    size_t size = 0;
    MR_TRY(expect_scalar(call, 0, "Input filename", error));
    mr_status status = path_at(call, &arena, 0, 0, "file name", &path, error);
    if (status == MR_OK) status = mr_file_read_all(path, READ_MAX_BYTES, &bytes, &size, error);
    struct stat info;
    if (status == MR_NOT_FOUND)
        status = mr_kernel_fail(call->node, error, MR_NOT_FOUND, "%s; No such file or directory", path);
    else if (status != MR_OK && path && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        status = mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "%s; Is a directory", path);
    if (status == MR_OK) status = mr_tensor_init_string(&call->outputs[0], (mr_string){bytes, size}, error);
    free(bytes);
    mr_arena_deinit(&arena);
    return status;
}

/* Every file that an operator of this file writes is written here. */
static mr_status put_file(mr_kernel_call *call, const char *path, mr_string contents, mr_arena *arena, mr_error *error)
{
    MR_TRY(mr_kernel_check_write(call, path, error));
    char *directory = mr_arena_strdup(arena, path);
    if (!directory) return mr_fail_memory(error, strlen(path));
    char *slash = strrchr(directory, '/');
    if (slash && slash != directory) {
        *slash = '\0';
        MR_TRY(mr_file_make_directories(directory, error));
    }
    return mr_file_write_no_sync(path, contents.data ? contents.data : "", contents.size_bytes, error);
}

static mr_status write_file(mr_kernel_call *call, mr_error *error)
{
    mr_arena arena = {0};
    const char *path = nullptr;
    MR_TRY(expect_scalar(call, 0, "Input filename", error));
    MR_TRY(expect_scalar(call, 1, "Contents", error));
    mr_status status = path_at(call, &arena, 0, 0, "file name", &path, error);
    if (status == MR_OK && path[0] == '\0')
        status = mr_kernel_fail(call->node, error, MR_NOT_FOUND, "; No such file or directory");
    if (status == MR_OK) status = put_file(call, path, mr_tensor_strings(&call->inputs[1])[0], &arena, error);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- MatchingFiles ---- */

static int compare_names(const void *a, const void *b)
{
    const mr_string *left = a, *right = b;
    return strcmp(left->data, right->data);
}

/* Patterns match names that start with a dot too, but not "." and "..". */
static bool is_listed(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static mr_status match(mr_kernel_call *call, mr_arena *arena, glob_t *found, mr_error *error)
{
    for (int64_t i = 0, count = mr_tensor_count(&call->inputs[0]); i < count; i++) {
        const char *pattern;
        MR_TRY(path_at(call, arena, 0, i, "pattern", &pattern, error));
        int code = glob(pattern, GLOB_NOSORT | GLOB_PERIOD | (i > 0 ? GLOB_APPEND : 0), nullptr, found);
        if (code == GLOB_NOSPACE) return mr_fail_memory(error, strlen(pattern));
    }
    return MR_OK;
}

static mr_status matching_files(mr_kernel_call *call, mr_error *error)
{
    mr_arena arena = {0};
    glob_t found = {0};
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[0].shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input patterns tensor must be scalar or vector, but had shape: %s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    mr_status status = match(call, &arena, &found, error);
    mr_string *names = MR_ARENA_NEW(&arena, mr_string, found.gl_pathc + 1);
    if (status == MR_OK && !names) status = mr_fail_memory(error, found.gl_pathc * sizeof *names);
    int64_t count = 0;
    for (size_t i = 0; status == MR_OK && i < found.gl_pathc; i++)
        if (is_listed(found.gl_pathv[i])) names[count++] = mr_string_from(found.gl_pathv[i]);
    if (count > 0) qsort(names, (size_t)count, sizeof *names, compare_names);
    if (status == MR_OK) status = mr_tensor_init_strings(&call->outputs[0], MR_SHAPE(count), names, error);
    if (mr_tensor_count(&call->inputs[0]) > 0) globfree(&found);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- ImmutableConst ---- */

static mr_status check_known(const mr_kernel_call *call, mr_shape shape, mr_error *error)
{
    bool is_known = shape.rank >= 0 && mr_shape_count(shape) >= 0;
    if (is_known && mr_dtype_size(call->node->output_dtypes[0]) > 0 && call->node->output_dtypes[0] != MR_STRING)
        return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s",
                          is_known ? "a tensor of this dtype cannot be read from memory"
                                   : "the shape is not fully known");
}

static mr_status map_file(mr_kernel_call *call, mr_error *error)
{
    mr_string name = mr_attr_string_or(call->node->attrs, "memory_region_name", "");
    mr_shape shape;
    char *bytes = nullptr;
    size_t size = 0;
    mr_arena arena = {0};
    MR_TRY(mr_attr_get_shape(call->node->attrs, "shape", &shape, error));
    MR_TRY(check_known(call, shape, error));
    if (name.size_bytes == 0 || memchr(name.data, 0, name.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "memory_region_name is not the name of a file");
    const char *path = mr_arena_strndup(&arena, name.data, name.size_bytes);
    mr_status status =
        path ? mr_file_read_all(path, READ_MAX_BYTES, &bytes, &size, error) : mr_fail_memory(error, name.size_bytes);
    size_t needed = (size_t)mr_shape_count(shape);
    if (status == MR_OK &&
        (__builtin_mul_overflow(needed, mr_dtype_size(call->node->output_dtypes[0]), &needed) || needed > size))
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                "%s has %zu bytes, which is too few for the tensor", path, size);
    if (status == MR_OK)
        status = mr_tensor_init_copy(&call->outputs[0], call->node->output_dtypes[0], shape, bytes, error);
    free(bytes);
    mr_arena_deinit(&arena);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "ImmutableConst", .run = map_file},
    {.op = "ReadFile", .run = read_file},
    {.op = "WriteFile", .run = write_file},
    {.op = "MatchingFiles", .run = matching_files},
};
const mr_kernel_table mr_state_kernels_file = {kernels, sizeof kernels / sizeof kernels[0]};
