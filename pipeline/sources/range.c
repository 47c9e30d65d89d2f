/* range: int64 scalars start, start + step, … before stop, as tf.data.Dataset.range. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct range_settings {
    int64_t start, stop, step;
} range_settings;

static uint64_t range_digest(const mr_dataset *dataset)
{
    const range_settings *s = dataset->settings;
    return mr_digest(mr_digest(mr_digest(1, (uint64_t)s->start), (uint64_t)s->stop), (uint64_t)s->step);
}

static mr_status range_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    (void)error;
    const range_settings *s = dataset->settings;
    mr_value *value = &workspace->values[0];
    assert(number < (uint64_t)dataset->count && s->step != 0);
    workspace->count = 1;
    value->dtype = MR_INT64;
    value->shape = MR_SCALAR;
    /* Cannot overflow, because number is below the count. Unsigned, because step × number alone may exceed
     * INT64_MAX. */
    value->integer = (int64_t)((uint64_t)s->start + (uint64_t)s->step * number);
    value->data = &value->integer;
    return MR_OK;
}

static const mr_dataset_kind range_kind = {.name = "range",
                                           .role = MR_ROLE_SOURCE,
                                           .digest = range_digest,
                                           .stage_size_bytes = sizeof(mr_stage),
                                           .functions = &mr_numbers_functions,
                                           .read = range_read,
                                           .describe = mr_describe_element};

mr_dataset *mr_dataset_range(int64_t start, int64_t stop, int64_t step)
{
    mr_dataset *dataset = mr_dataset_new(&range_kind, nullptr, sizeof(range_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    *(range_settings *)dataset->settings = (range_settings){start, stop, step};
    dataset->spec = (mr_element_spec){.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    if (step == 0) return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "range: step is 0");
    if (step > 0 ? start >= stop : start <= stop) return dataset;
    uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t count = (distance - 1) / stride + 1;
    if (count > MR_POSITION_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "range: %llu elements are too many",
                               (unsigned long long)count);
    dataset->count = (int64_t)count;
    return dataset;
}
