/* tensors and slices: elements out of tensors in memory, of which the dataset takes a share. tensors is one element, the
 * tensors as they are; slices is one for each row of dimension 0. */
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <string.h>

typedef struct slices_settings {
    int32_t count;
    mr_tensor *tensors;
    size_t *row_bytes;
} slices_settings;

static uint64_t slices_digest(const mr_dataset *dataset)
{
    /* The shapes; the contents may be large, and a program that made them other ones knows it. */
    const slices_settings *s = dataset->settings;
    uint64_t digest = mr_digest(2, (uint64_t)s->count);
    for (int32_t i = 0; i < s->count; i++) {
        digest = mr_digest(digest, (uint64_t)s->tensors[i].dtype);
        digest = mr_digest_bytes(digest, s->tensors[i].shape.dims, sizeof s->tensors[i].shape.dims);
    }
    return digest;
}

static mr_status slices_read(const mr_dataset *dataset, uint64_t number, mr_lane *lane, mr_error *error)
{
    (void)error;
    const slices_settings *s = dataset->settings;
    lane->count = s->count;
    for (int32_t i = 0; i < s->count; i++) {
        mr_value *value = &lane->values[i];
        value->dtype = s->tensors[i].dtype;
        value->shape = dataset->spec.shapes[i];
        value->data = (const char *)s->tensors[i].data + number * s->row_bytes[i];
    }
    return MR_OK;
}

/* Of a long row the processor fetches what follows by itself. */
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

/* Shuffled rows are in no cache: they are asked for some rows before they are copied. */
static void slices_copy(const mr_dataset *dataset, const mr_item *items, int32_t count, void *const *rows)
{
    constexpr int32_t AHEAD = 8;
    const slices_settings *s = dataset->settings;
    for (int32_t r = 0; r < count && r < AHEAD; r++) slices_prefetch(dataset, items[r].number);
    for (int32_t r = 0; r < count; r++) {
        if (r + AHEAD < count) slices_prefetch(dataset, items[r + AHEAD].number);
        for (int32_t c = 0; c < s->count; c++) {
            size_t row_bytes = s->row_bytes[c];
            const char *row = (const char *)s->tensors[c].data + items[r].number * row_bytes;
            char *target = (char *)rows[c] + (size_t)r * row_bytes;
            if (row_bytes == sizeof(uint64_t))
                memcpy(target, row, sizeof(uint64_t));
            else if (row_bytes > 0)
                memcpy(target, row, row_bytes);
        }
    }
}

static void slices_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    (void)dataset;
    snprintf(text, size_bytes, "element %llu", (unsigned long long)number);
}

static void slices_deinit(mr_dataset *dataset)
{
    slices_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->count; i++) mr_tensor_deinit(&s->tensors[i]);
}

static const mr_dataset_kind tensors_kind = {.name = "tensors",
                                             .role = MR_ROLE_SOURCE,
                                             .digest = slices_digest,
                                             .stage_size_bytes = sizeof(mr_stage),
                                             .functions = &mr_numbers_functions,
                                             .read = slices_read,
                                             .describe = slices_describe,
                                             .deinit = slices_deinit};
static const mr_dataset_kind slices_kind = {.name = "slices",
                                            .role = MR_ROLE_SOURCE,
                                            .digest = slices_digest,
                                            .stage_size_bytes = sizeof(mr_stage),
                                            .functions = &mr_numbers_functions,
                                            .read = slices_read,
                                            .prefetch = slices_prefetch,
                                            .copy = slices_copy,
                                            .describe = slices_describe,
                                            .deinit = slices_deinit};

static mr_dataset *from(const mr_dataset_kind *kind, const mr_tensor *components, int32_t count)
{
    mr_dataset *dataset = mr_dataset_new(kind, nullptr, sizeof(slices_settings));
    if (dataset == nullptr) return nullptr;
    slices_settings *s = dataset->settings;
    if (count < 1 || count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %d components, where 1 to %d may be", kind->name,
                               count, MR_COMPONENTS_MAX);
    if (mr_dataset_failed(mr_dataset_require(dataset, components != nullptr, "components"))) return dataset;
    s->tensors = MR_ARENA_NEW(&dataset->arena, mr_tensor, (size_t)count);
    s->row_bytes = MR_ARENA_NEW(&dataset->arena, size_t, (size_t)count);
    if (s->tensors == nullptr || s->row_bytes == nullptr)
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind->name);
    bool is_rows = kind == &slices_kind;
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
