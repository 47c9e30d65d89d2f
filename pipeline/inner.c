/* Inner pipelines, and datasets of elements in memory (inner.h). */
#include "pipeline/inner.h"

#include "base/thread.h"

void mr_inner_run_init(mr_run *run, const mr_stage *stage, bool is_threaded)
{
    const mr_run *outer = stage->run;
    *run = (mr_run){.threads = is_threaded && outer->threads > 0 ? 1 : 0,
                    .nesting = outer->nesting + MR_NESTING_PIPELINE,
                    .budget = outer->budget,
                    .holder = outer->holder != nullptr ? outer->holder : stage->counters,
                    .allocate = outer->allocate,
                    .allocate_context = outer->allocate_context,
                    .watch = outer->watch,
                    .engines = outer->engines};
}

mr_status mr_inner_fail_absent(mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned no dataset");
}

static mr_status check_made(const mr_dataset *dataset, const mr_element_spec *spec, mr_error *error)
{
    MR_TRY(mr_dataset_status(dataset, error));
    if (mr_dataset_final(dataset) != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s must end the complete pipeline, not a dataset inside it",
                       mr_dataset_final(dataset)->kind->name);
    mr_element_spec joined = *spec;
    return mr_spec_join(&joined, &dataset->spec, error);
}

mr_status mr_inner_open(mr_inner *inner, mr_dataset *dataset, mr_run *run, const mr_run *outer,
                        const mr_element_spec *spec, uint32_t purpose, uint64_t iteration, mr_error *error)
{
    mr_inner_close(inner);
    inner->dataset = dataset;
    atomic_store_explicit(&run->seed, atomic_load_explicit(&outer->seed, memory_order_relaxed), memory_order_relaxed);
    mr_status status = mr_nesting_check(run->nesting, error);
    if (status == MR_OK) status = check_made(dataset, spec, error);
    if (status == MR_OK) status = mr_pipeline_init(&inner->pipeline, dataset, run, purpose << 8, error);
    /* Iterations must be far below the maximum, because repeat multiplies them. */
    if (status == MR_OK) status = mr_stage_begin(inner->pipeline.top, iteration >> 32, error);
    inner->is_open = status == MR_OK;
    if (status != MR_OK) mr_inner_close(inner);
    return status;
}

void mr_inner_close(mr_inner *inner)
{
    mr_pipeline_deinit(&inner->pipeline);
    mr_dataset_free(inner->dataset);
    *inner = (mr_inner){0};
}

mr_status mr_inner_next(mr_inner *inner, mr_stage *stage, mr_item *item, mr_error *error)
{
    mr_stage *top = inner->pipeline.top;
    uint64_t before = top->position;
    mr_status status = mr_stage_next(top, item, error);
    if (top->position != before) stage->position++;
    if (status != MR_OK) return status;
    item->epoch = stage->iteration;
    item->number = stage->position - 1;
    mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

/* ---- Elements in memory ---- */

typedef struct items_settings {
    int64_t count;
    mr_tensor *tensors; /* count × number of components */
} items_settings;

static mr_status items_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    (void)error;
    const items_settings *s = dataset->settings;
    *content = mr_digest(11, (uint64_t)s->count);
    for (int64_t i = 0; i < s->count * dataset->spec.count; i++) *content = mr_digest_tensor(*content, &s->tensors[i]);
    return MR_OK;
}

static mr_status items_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    (void)error;
    const items_settings *s = dataset->settings;
    workspace->count = dataset->spec.count;
    for (int32_t i = 0; i < workspace->count; i++) {
        mr_tensor reference = mr_tensor_ref(&s->tensors[number * (uint64_t)workspace->count + (uint64_t)i]);
        mr_value_take(&workspace->values[i], &reference);
    }
    return MR_OK;
}

static void items_deinit(mr_dataset *dataset)
{
    items_settings *s = dataset->settings;
    for (int64_t i = 0; i < s->count * dataset->spec.count; i++) mr_tensor_deinit(&s->tensors[i]);
}

static const mr_dataset_kind items_kind = {.name = "elements",
                                           .role = MR_ROLE_SOURCE,
                                           .digest_content = items_digest,
                                           .stage_size_bytes = sizeof(mr_stage),
                                           .functions = &mr_numbers_functions,
                                           .read = items_read,
                                           .describe = mr_describe_element,
                                           .deinit = items_deinit};

mr_dataset *mr_dataset_of_items(const mr_element_spec *spec, const mr_item *items, int64_t count)
{
    mr_dataset *dataset = mr_dataset_new(&items_kind, nullptr, sizeof(items_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    items_settings *s = dataset->settings;
    if (mr_dataset_failed(mr_dataset_take_spec(dataset, spec))) return dataset;
    dataset->count = count;
    s->tensors = MR_ARENA_NEW(&dataset->arena, mr_tensor, (size_t)count * (size_t)spec->count + 1);
    if (s->tensors == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "elements: no memory");
    for (int64_t i = 0; i < count; i++)
        for (int32_t c = 0; c < spec->count; c++)
            s->tensors[i * spec->count + c] = mr_tensor_ref(&items[i].payload->tensors[c]);
    s->count = count;
    return dataset;
}
