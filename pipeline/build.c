/* Builder: creates the stages and engines of a tree of datasets.
 *
 * From the source upwards, order stages are stacked on the order and work is collected. A batch turns the collected
 * work into the work on its rows; later work applies to complete batches, whose order is that of their numbers. An
 * engine is closed at the end of the chain, and before a dataset that cannot be part of it: a second batch, an order
 * stage on batches of unknown number, and any dataset that counts elements after work that drops some. A stream stage
 * starts a new chain on the engines of its inputs. prefetch_to_device is placed above the last engine. */
#include "pipeline/block.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/tuner.h"

#include <assert.h>
#include <stdlib.h>

typedef struct builder {
    mr_pipeline *pipeline;
    uint32_t *purpose; /* number of the last stage built */
    mr_engine_plan plan;
    bool is_threaded;
    bool drops;      /* delivers fewer elements than the order has items; how many is unknown */
    int32_t threads; /* maximum that a stage has requested; 0: tuned */
} builder;

/* Counts the datasets of a tree. */
static int32_t count_datasets(const mr_dataset *dataset)
{
    int32_t count = 0;
    for (; dataset != nullptr; dataset = dataset->input) {
        count++;
        for (int32_t i = 0; i < dataset->more_count; i++) count += count_datasets(dataset->more[i]);
    }
    return count;
}

static mr_status close_engine(builder *b, const mr_dataset *last, mr_counters *counters, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    int32_t most = plan->run->threads;
    last = mr_dataset_without_options(last);
    plan->last = last;
    plan->counters = counters;
    plan->drops = b->drops;
    if (plan->batch == nullptr) plan->row_spec = &last->spec;
    plan->threads = !b->is_threaded ? 0 : b->threads > 0 && b->threads < most ? b->threads : most;
    assert(plan->order != nullptr);
    /* An engine over a seekable order may also read ahead, because its reads never block on user code. */
    plan->is_tuned = plan->run->tuning != nullptr && (b->is_threaded || plan->order->is_seekable);
    plan->threads_first = plan->threads;
    if (plan->is_tuned && plan->threads == 0) plan->threads = most;
    /* Components keep their positions from the last work on that may move them. Decoding never moves them. */
    for (int32_t i = plan->work_count - 1; i >= 0; i--) {
        plan->works[i].is_last = true;
        if (mr_decode_keeps(plan->works[i].dataset)) continue;
        break;
    }
    mr_stage *engine = nullptr;
    mr_engine_plan closed = *plan;
    *plan = (mr_engine_plan){.run = closed.run, .prefetch = -1};
    b->is_threaded = false;
    b->drops = false;
    b->threads = 0;
    MR_TRY(mr_engine_new(&closed, &engine, error));
    plan->order = engine;
    if (closed.is_tuned) mr_tuning_add(closed.run->tuning, engine);
    return MR_OK;
}

static void add_work(builder *b, const mr_dataset *dataset, mr_counters *counters)
{
    mr_engine_plan *plan = &b->plan;
    assert(plan->work_count < MR_STAGES_MAX && plan->batch_work_count < MR_STAGES_MAX);
    mr_work work = {.dataset = dataset, .counters = counters, .purpose = *b->purpose};
    if (plan->batch != nullptr)
        plan->batch_works[plan->batch_work_count++] = work;
    else
        plan->works[plan->work_count++] = work;
    int32_t threads = mr_map_threads(dataset) + mr_process_map_threads(dataset) + mr_decode_threads(dataset) +
                      mr_filter_threads(dataset);
    if (threads > b->threads) b->threads = threads;
    b->is_threaded = true;
    b->drops |= dataset->kind->drops;
}

static mr_status add_order(builder *b, const mr_dataset *dataset, mr_counters *counters, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    bool is_counted = plan->batch == nullptr || plan->batches->count != MR_CARDINALITY_UNKNOWN;
    if (b->drops || (plan->batch != nullptr && (!is_counted || !plan->order->is_seekable)))
        MR_TRY(close_engine(b, dataset->input, counters - 1, error));
    mr_stage **order = plan->batch != nullptr ? &plan->batches : &plan->order;
    mr_stage *input = *order;
    assert(input != nullptr);
    *order = nullptr;
    return mr_stage_new(dataset, input, plan->run, counters, *b->purpose, order, error);
}

static mr_status add_batch(builder *b, const mr_dataset *dataset, mr_counters *counters, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    if (b->drops || plan->batch != nullptr) MR_TRY(close_engine(b, dataset->input, counters - 1, error));
    plan->batch = dataset;
    plan->batch_counters = counters;
    plan->row_spec = &dataset->input->spec;
    plan->prefetch = -1;
    assert(plan->order != nullptr);
    return mr_stage_numbers(plan->order->count < 0 ? plan->order->count : dataset->count, plan->run, nullptr,
                            &plan->batches, error);
}

static mr_status build_tree(mr_pipeline *pipeline, const mr_dataset *top, const mr_run *run, uint32_t *purpose,
                            mr_stage **engine, mr_error *error);

static mr_status add_stream(builder *b, const mr_dataset *dataset, mr_counters **counters, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    int32_t count = 0;
    mr_stage **children = calloc((size_t)dataset->more_count + 1, sizeof *children);
    if (children == nullptr) return mr_fail_memory(error, sizeof *children);
    mr_status status = MR_OK;
    if (dataset->input != nullptr) {
        /* An order without work needs an engine, too, to convert items to elements. */
        status = close_engine(b, dataset->input, *counters, error);
        if (status == MR_OK) children[count++] = plan->order;
        plan->order = nullptr;
    }
    for (int32_t i = 0; i < dataset->more_count && status == MR_OK; i++) {
        status = build_tree(b->pipeline, dataset->more[i], plan->run, b->purpose, &children[count], error);
        if (status == MR_OK) count++;
    }
    if (status == MR_OK) {
        *counters = &b->pipeline->counters[b->pipeline->counter_count++];
        (*counters)->stage = dataset->kind->name;
        ++*b->purpose;
        status = mr_stage_new_stream(dataset, children, count, plan->run, *counters, *b->purpose, &plan->order, error);
    } else {
        for (int32_t i = 0; i < count; i++) mr_stage_free(children[i]);
    }
    free(children);
    return status;
}

static mr_status add(builder *b, const mr_dataset *dataset, mr_counters *counters, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    switch (dataset->kind->role) {
    case MR_ROLE_SOURCE:
        plan->source = dataset;
        plan->source_counters = counters;
        b->is_threaded = dataset->is_heavy;
        return mr_stage_new(dataset, nullptr, plan->run, counters, *b->purpose, &plan->order, error);
    case MR_ROLE_ORDER:
        return add_order(b, dataset, counters, error);
    case MR_ROLE_WORK:
        /* Batches are delivered by number before any is dropped: work that drops batches is the row work of the next
         * engine. */
        if (plan->ignore != nullptr || (plan->batch != nullptr && dataset->kind->drops))
            MR_TRY(close_engine(b, dataset->input, counters - 1, error));
        add_work(b, dataset, counters);
        return MR_OK;
    case MR_ROLE_PREFETCH: {
        int32_t depth = ((const mr_prefetch_settings *)dataset->settings)->depth;
        if (plan->prefetch < 0 || plan->batch != nullptr) plan->prefetch = depth;
        b->is_threaded = true;
        return MR_OK;
    }
    case MR_ROLE_IGNORE:
        if (plan->ignore != nullptr) MR_TRY(close_engine(b, dataset->input, counters - 1, error));
        plan->ignore = dataset;
        b->drops = true;
        return MR_OK;
    case MR_ROLE_BATCH:
        return add_batch(b, dataset, counters, error);
    case MR_ROLE_TO_DEVICE: {
        MR_TRY(close_engine(b, dataset->input, counters - 1, error));
        mr_stage *engine = plan->order;
        plan->order = nullptr;
        return mr_stage_new(dataset, engine, plan->run, counters, *b->purpose, &plan->order, error);
    }
    case MR_ROLE_STREAM:
    case MR_ROLE_OPTIONS:
        return MR_OK;
    }
    return MR_OK;
}

static mr_status build_chain(builder *b, const mr_dataset *const *chain, int32_t count, mr_error *error)
{
    mr_counters *counters = nullptr;
    for (int32_t i = count - 1; i >= 0; i--) {
        const mr_dataset *dataset = chain[i];
        if (dataset->kind->role == MR_ROLE_STREAM) {
            MR_TRY(add_stream(b, dataset, &counters, error));
            continue;
        }
        counters = &b->pipeline->counters[b->pipeline->counter_count++];
        counters->stage = dataset->kind->name;
        if (dataset->kind->role != MR_ROLE_PREFETCH) ++*b->purpose;
        MR_TRY(add(b, dataset, counters, error));
    }
    assert(counters != nullptr);
    if (chain[0]->kind->role == MR_ROLE_TO_DEVICE) return MR_OK;
    return close_engine(b, chain[0], counters, error);
}

/* The recursion is as deep as datasets are nested, which builders limit. */
static mr_status build_tree(mr_pipeline *pipeline, const mr_dataset *top, const mr_run *run, uint32_t *purpose,
                            mr_stage **engine, mr_error *error)
{
    const mr_dataset *chain[MR_STAGES_MAX];
    int32_t count = 0;
    const mr_dataset *next = top;
    do {
        assert(count < MR_STAGES_MAX);
        next = mr_dataset_without_options(next);
        chain[count++] = next;
        next = next->input;
    } while (next != nullptr);
    builder *b = calloc(1, sizeof *b);
    if (b == nullptr) return mr_fail_memory(error, sizeof *b);
    *b = (builder){.pipeline = pipeline, .purpose = purpose, .plan = {.run = run, .prefetch = -1}};
    mr_status status = build_chain(b, chain, count, error);
    if (status == MR_OK) {
        *engine = b->plan.order;
    } else {
        mr_stage_free(b->plan.order);
        mr_stage_free(b->plan.batches);
    }
    free(b);
    return status;
}

mr_status mr_pipeline_init(mr_pipeline *pipeline, const mr_dataset *dataset, const mr_run *run, uint32_t purpose,
                           mr_error *error)
{
    *pipeline = (mr_pipeline){0};
    size_t count = (size_t)count_datasets(dataset);
    pipeline->counters = calloc(count, sizeof *pipeline->counters);
    if (pipeline->counters == nullptr) return mr_fail_memory(error, count * sizeof *pipeline->counters);
    mr_status status = build_tree(pipeline, dataset, run, &purpose, &pipeline->top, error);
    assert((size_t)pipeline->counter_count <= count);
    if (status != MR_OK) mr_pipeline_deinit(pipeline);
    return status;
}

void mr_pipeline_deinit(mr_pipeline *pipeline)
{
    mr_stage_free(pipeline->top);
    free(pipeline->counters);
    *pipeline = (mr_pipeline){0};
}
