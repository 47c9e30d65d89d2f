/* tensors, slices and list_files: elements from tensors in memory, which the dataset references. tensors has one
 * element, the tensors themselves; slices has one for each row of dimension 0; list_files has slices of paths. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>

typedef struct slices_settings {
    int32_t count;
    mr_tensor *tensors;
    size_t *row_bytes;
} slices_settings;

static mr_status slices_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    (void)error;
    const slices_settings *s = dataset->settings;
    *content = mr_digest(2, (uint64_t)s->count);
    for (int32_t i = 0; i < s->count; i++) *content = mr_digest_tensor(*content, &s->tensors[i]);
    return MR_OK;
}

static mr_status slices_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    (void)error;
    const slices_settings *s = dataset->settings;
    assert(number < (uint64_t)dataset->count && s->count == dataset->spec.count);
    workspace->count = s->count;
    for (int32_t i = 0; i < s->count; i++) {
        mr_value *value = &workspace->values[i];
        value->dtype = s->tensors[i].dtype;
        value->shape = dataset->spec.shapes[i];
        value->data = (const char *)s->tensors[i].data + number * s->row_bytes[i];
    }
    return MR_OK;
}

/* Only the start: the hardware prefetcher loads the rest of a long row. */
static void slices_prefetch(const mr_dataset *dataset, uint64_t number)
{
    constexpr size_t LINE_BYTES = 64, BYTES_MAX = 512;
    const slices_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->count; i++) {
        const char *row = (const char *)s->tensors[i].data + number * s->row_bytes[i];
        size_t size_bytes = s->row_bytes[i] < BYTES_MAX ? s->row_bytes[i] : BYTES_MAX;
        for (size_t at = 0; at < size_bytes; at += LINE_BYTES) __builtin_prefetch(row + at);
    }
}

/* Prefetches rows ahead of copying. Shuffled rows are not in cache. */
static void slices_copy(const mr_dataset *dataset, const mr_item *items, int32_t count, void *const *rows)
{
    constexpr int32_t AHEAD = 8;
    const slices_settings *s = dataset->settings;
    for (int32_t r = 0; r < count && r < AHEAD; r++) slices_prefetch(dataset, items[r].number);
    for (int32_t r = 0; r < count; r++) {
        if (r + AHEAD < count) slices_prefetch(dataset, items[r + AHEAD].number);
        for (int32_t c = 0; c < s->count; c++) {
            size_t row_bytes = s->row_bytes[c];
            assert(items[r].number < (uint64_t)dataset->count);
            const char *row = (const char *)s->tensors[c].data + items[r].number * row_bytes;
            char *target = (char *)rows[c] + (size_t)r * row_bytes;
            if (row_bytes == sizeof(uint64_t))
                memcpy(target, row, sizeof(uint64_t));
            else if (row_bytes > 0)
                memcpy(target, row, row_bytes);
        }
    }
}

static void slices_deinit(mr_dataset *dataset)
{
    slices_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->count; i++) mr_tensor_deinit(&s->tensors[i]);
}

#define KIND(kind_name, digest_function, ...)                                                                          \
    {.name = (kind_name),                                                                                              \
     .role = MR_ROLE_SOURCE,                                                                                           \
     .digest_content = (digest_function),                                                                              \
     .stage_size_bytes = sizeof(mr_stage),                                                                             \
     .functions = &mr_numbers_functions,                                                                               \
     .read = slices_read,                                                                                              \
     .describe = mr_describe_element,                                                                                  \
     .deinit = slices_deinit __VA_OPT__(, ) __VA_ARGS__}
static const mr_dataset_kind tensors_kind = KIND("tensors", slices_digest);
static const mr_dataset_kind slices_kind =
    KIND("slices", slices_digest, .prefetch = slices_prefetch, .copy = slices_copy);

/* Hashes the paths, which are the elements, and the content of the files, which later stages read. */
static mr_status list_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    const mr_tensor *names = &((const slices_settings *)dataset->settings)->tensors[0];
    const mr_string *strings = mr_tensor_strings(names);
    int64_t count = mr_tensor_count(names);
    assert(names->shape.rank == 1 && count <= INT32_MAX);
    char **paths = calloc((size_t)count + 1, sizeof *paths);
    bool is_complete = paths != nullptr;
    for (int64_t i = 0; i < count && is_complete; i++) {
        paths[i] = strndup(strings[i].data, strings[i].size_bytes);
        is_complete = paths[i] != nullptr;
    }
    *content = mr_digest_tensor(12, names);
    mr_status status = is_complete ? mr_digest_paths(content, (const char *const *)paths, (int32_t)count, error)
                                   : mr_fail_memory(error, (size_t)count * sizeof *paths);
    if (paths != nullptr) mr_paths_free(paths, (int32_t)count);
    return status;
}

static const mr_dataset_kind list_kind =
    KIND("list_files", list_digest, .prefetch = slices_prefetch, .copy = slices_copy);

static mr_dataset *from(const mr_dataset_kind *kind, const mr_tensor *components, int32_t count)
{
    mr_dataset *dataset = mr_dataset_new(kind, nullptr, sizeof(slices_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    slices_settings *s = dataset->settings;
    if (count < 1 || count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %d components, expected 1 to %d", kind->name, count,
                               MR_COMPONENTS_MAX);
    if (mr_dataset_failed(mr_dataset_require(dataset, components != nullptr, "components"))) return dataset;
    s->tensors = MR_ARENA_NEW(&dataset->arena, mr_tensor, (size_t)count);
    s->row_bytes = MR_ARENA_NEW(&dataset->arena, size_t, (size_t)count);
    if (s->tensors == nullptr || s->row_bytes == nullptr)
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind->name);
    bool is_rows = kind != &tensors_kind;
    dataset->count = is_rows ? components[0].shape.dims[0] : 1;
    for (int32_t i = 0; i < count; i++) {
        mr_shape shape = components[i].shape;
        if (mr_dtype_size(components[i].dtype) == 0)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: component %d has dtype %s", kind->name, i,
                                   mr_dtype_name(components[i].dtype));
        if (!mr_tensor_is_complete(&components[i]))
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "%s: component %d has an unknown shape, or no elements in host memory", kind->name,
                                   i);
        if (is_rows && shape.rank < 1)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: component %d is a scalar, which has no rows",
                                   kind->name, i);
        if (is_rows && shape.dims[0] != dataset->count)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: component %d has %lld rows, component 0 has %lld",
                                   kind->name, i, (long long)shape.dims[0], (long long)dataset->count);
        if (is_rows) {
            for (int32_t d = 1; d < shape.rank; d++) shape.dims[d - 1] = shape.dims[d];
            shape.dims[--shape.rank] = 0;
        }
        s->tensors[i] = mr_tensor_ref(&components[i]);
        s->count = i + 1;
        s->row_bytes[i] = (size_t)mr_shape_count(shape) * mr_dtype_size(components[i].dtype);
        dataset->spec.count = i + 1;
        dataset->spec.dtypes[i] = components[i].dtype;
        dataset->spec.shapes[i] = shape;
    }
    return dataset;
}

mr_dataset *mr_dataset_from_tensors(const mr_tensor *components, int32_t count)
{
    return from(&tensors_kind, components, count);
}

mr_dataset *mr_dataset_from_slices(const mr_tensor *components, int32_t count)
{
    return from(&slices_kind, components, count);
}

mr_dataset *mr_dataset_list_files(const char *pattern)
{
    char **paths = nullptr;
    int32_t count = 0;
    mr_error error = {0};
    mr_tensor names = {0};
    mr_status status = mr_paths_match(pattern, &paths, &count, &error);
    mr_string *strings = status == MR_OK ? calloc((size_t)count + 1, sizeof *strings) : nullptr;
    if (status == MR_OK && strings == nullptr) status = mr_fail_memory(&error, (size_t)count * sizeof *strings);
    for (int32_t i = 0; status == MR_OK && i < count; i++) strings[i] = mr_string_from(paths[i]);
    if (status == MR_OK) status = mr_tensor_init_strings(&names, MR_SHAPE(count), strings, &error);
    free(strings);
    mr_paths_free(paths, count);
    mr_dataset *dataset = status == MR_OK ? from(&list_kind, &names, 1) : mr_dataset_range(0, 0, 1);
    mr_tensor_deinit(&names);
    if (status == MR_OK) return dataset;
    return mr_dataset_fail(dataset, status, "list_files: %s", error.message);
}
