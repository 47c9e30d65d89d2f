/* sparse_slices: the rows of a sparse tensor as elements. The entries of a row are found by binary search in the first
 * column of the indices, so empty rows cost nothing, and rows are addressed by number. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct sparse_settings {
    mr_tensor indices;     /* [n, rank] */
    mr_tensor coordinates; /* [n, rank - 1]: the indices without their first column */
    mr_tensor values;      /* [n] */
    mr_tensor shape;       /* [rank] */
} sparse_settings;

static mr_status sparse_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    (void)error;
    const sparse_settings *s = dataset->settings;
    *content = mr_digest_tensor(mr_digest_tensor(5, &s->indices), &s->values);
    *content = mr_digest_tensor(*content, &s->shape);
    return MR_OK;
}

/* The first entry whose row is not before `row`. */
static int64_t first_of(const sparse_settings *s, uint64_t row)
{
    int64_t low = 0, high = s->indices.shape.dims[0], rank = s->indices.shape.dims[1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((uint64_t)mr_tensor_int64s(&s->indices)[middle * rank] < row)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low >= 0 && low <= s->indices.shape.dims[0]);
    return low;
}

static mr_status sparse_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    (void)error;
    const sparse_settings *s = dataset->settings;
    int64_t begin = first_of(s, number), count = first_of(s, number + 1) - begin;
    int64_t rank = s->coordinates.shape.dims[1];
    assert(number < (uint64_t)dataset->count && count >= 0 && begin + count <= s->values.shape.dims[0]);
    workspace->count = 3;
    workspace->values[0].dtype = MR_INT64;
    workspace->values[0].shape = MR_SHAPE(count, rank);
    workspace->values[0].data = mr_tensor_int64s(&s->coordinates) + begin * rank;
    workspace->values[1].dtype = s->values.dtype;
    workspace->values[1].shape = MR_SHAPE(count);
    workspace->values[1].data = (const char *)s->values.data + (size_t)begin * mr_dtype_size(s->values.dtype);
    workspace->values[2].dtype = MR_INT64;
    workspace->values[2].shape = MR_SHAPE(rank);
    workspace->values[2].data = mr_tensor_int64s(&s->shape) + 1;
    return MR_OK;
}

static void sparse_deinit(mr_dataset *dataset)
{
    sparse_settings *s = dataset->settings;
    mr_tensor_deinit(&s->indices);
    mr_tensor_deinit(&s->coordinates);
    mr_tensor_deinit(&s->values);
    mr_tensor_deinit(&s->shape);
}

static const mr_dataset_kind sparse_kind = {.name = "sparse_slices",
                                            .role = MR_ROLE_SOURCE,
                                            .digest_content = sparse_digest,
                                            .stage_size_bytes = sizeof(mr_stage),
                                            .functions = &mr_numbers_functions,
                                            .read = sparse_read,
                                            .describe = mr_describe_element,
                                            .deinit = sparse_deinit};

/* ---- Builder ---- */

static mr_status check_forms(const mr_tensor *indices, const mr_tensor *values, const mr_tensor *shape, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (indices->dtype != MR_INT64 || indices->shape.rank != 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the indices must be a matrix of int64, not %s %s",
                       mr_dtype_name(indices->dtype), mr_shape_text(indices->shape, text, sizeof text));
    if (mr_dtype_size(values->dtype) == 0 || values->shape.rank != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the values must be a vector, not %s %s",
                       mr_dtype_name(values->dtype), mr_shape_text(values->shape, text, sizeof text));
    if (shape->dtype != MR_INT64 || shape->shape.rank != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the dense shape must be a vector of int64, not %s %s",
                       mr_dtype_name(shape->dtype), mr_shape_text(shape->shape, text, sizeof text));
    if (indices->shape.dims[0] != values->shape.dims[0])
        return mr_fail(error, MR_INVALID_ARGUMENT, "%lld values, but %lld indices", (long long)values->shape.dims[0],
                       (long long)indices->shape.dims[0]);
    if (shape->shape.dims[0] < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a sparse tensor without dimensions has no rows");
    if (indices->shape.dims[1] != shape->shape.dims[0])
        return mr_fail(error, MR_INVALID_ARGUMENT, "the indices have %lld dimensions, the dense shape has %lld",
                       (long long)indices->shape.dims[1], (long long)shape->shape.dims[0]);
    if (!mr_tensor_is_complete(indices) || !mr_tensor_is_complete(values) || !mr_tensor_is_complete(shape))
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of unknown shape, or without elements in host memory");
    return MR_OK;
}

static mr_status check_places(const mr_tensor *indices, const mr_tensor *shape, mr_error *error)
{
    const int64_t *sizes = mr_tensor_int64s(shape), *at = mr_tensor_int64s(indices);
    int64_t rank = indices->shape.dims[1];
    for (int64_t d = 0; d < rank; d++)
        if (sizes[d] < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "the dense shape has size %lld in dimension %lld",
                           (long long)sizes[d], (long long)d);
    for (int64_t i = 0; i < indices->shape.dims[0]; i++, at += rank) {
        for (int64_t d = 0; d < rank; d++)
            if (at[d] < 0 || at[d] >= sizes[d])
                return mr_fail(error, MR_INVALID_ARGUMENT,
                               "value %lld: index %lld in dimension %lld is out of range (size %lld)", (long long)i,
                               (long long)at[d], (long long)d, (long long)sizes[d]);
        if (i > 0 && at[0] < at[-rank])
            return mr_fail(error, MR_UNIMPLEMENTED,
                           "the values must be ordered by row: value %lld is in row %lld, the previous one "
                           "in row %lld",
                           (long long)i, (long long)at[0], (long long)at[-rank]);
    }
    return MR_OK;
}

static mr_status take_tensors(sparse_settings *s, const mr_tensor *indices, const mr_tensor *values,
                              const mr_tensor *shape, mr_error *error)
{
    MR_TRY(check_forms(indices, values, shape, error));
    MR_TRY(check_places(indices, shape, error));
    int64_t count = indices->shape.dims[0], rank = indices->shape.dims[1];
    MR_TRY(mr_tensor_init(&s->coordinates, MR_INT64, MR_SHAPE(count, rank - 1), error));
    s->indices = mr_tensor_ref(indices);
    s->values = mr_tensor_ref(values);
    s->shape = mr_tensor_ref(shape);
    const int64_t *from = mr_tensor_int64s(indices);
    int64_t *to = mr_tensor_int64s(&s->coordinates);
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 1; d < rank; d++) *to++ = from[i * rank + d];
    assert(to - mr_tensor_int64s(&s->coordinates) == mr_tensor_count(&s->coordinates));
    return MR_OK;
}

mr_dataset *mr_dataset_from_sparse_slices(const mr_tensor *indices, const mr_tensor *values,
                                          const mr_tensor *dense_shape)
{
    mr_dataset *dataset = mr_dataset_new(&sparse_kind, nullptr, sizeof(sparse_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, indices != nullptr, "indices"))) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, values != nullptr, "values"))) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, dense_shape != nullptr, "dense_shape"))) return dataset;
    mr_error error = {0};
    if (take_tensors(dataset->settings, indices, values, dense_shape, &error) != MR_OK)
        return mr_dataset_fail(dataset, error.status, "sparse_slices: %s", error.message);
    int64_t rank = dense_shape->shape.dims[0] - 1;
    dataset->count = mr_tensor_int64s(dense_shape)[0];
    dataset->spec = (mr_element_spec){.count = 3,
                                      .dtypes = {MR_INT64, values->dtype, MR_INT64},
                                      .shapes = {MR_SHAPE(-1, rank), MR_SHAPE(-1), MR_SHAPE(rank)}};
    return dataset;
}
