/* Stages: what all order and stream stages share. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t mr_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool mr_run_is_cancelled(const mr_run *run)
{
    return run->engines != nullptr && atomic_load_explicit(&run->engines->is_cancelled, memory_order_relaxed);
}

uint64_t mr_stage_seed(const mr_run *run, uint64_t seed, uint32_t purpose)
{
    return mr_digest(mr_digest(mr_digest(0, atomic_load_explicit(&run->seed, memory_order_relaxed)), seed), purpose);
}

void mr_stage_warn(const mr_stage *stage, const char *format, ...)
{
    mr_counters *counters = stage->run->holder != nullptr ? stage->run->holder : stage->counters;
    int32_t none = 0;
    if (!atomic_compare_exchange_strong_explicit(&counters->warned, &none, 1, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(counters->warning, sizeof counters->warning, format, args);
    va_end(args);
    atomic_store_explicit(&counters->warned, 2, memory_order_release);
}

static mr_status prepare(mr_stage *made, const mr_dataset *dataset, const mr_run *run, mr_counters *counters,
                         uint32_t purpose, mr_stage **stage, mr_error *error)
{
    const mr_dataset_kind *kind = dataset->kind;
    assert(kind->functions != nullptr && kind->stage_size_bytes >= sizeof(mr_stage));
    made->functions = kind->functions;
    made->dataset = dataset;
    made->run = run;
    made->counters = counters;
    made->purpose = purpose;
    made->count = dataset->count;
    made->is_seekable = kind->role != MR_ROLE_STREAM && (made->input == nullptr || made->input->is_seekable);
    mr_status status = kind->prepare == nullptr ? MR_OK : kind->prepare(made, error);
    if (status != MR_OK)
        mr_stage_free(made);
    else
        *stage = made;
    return status;
}

mr_status mr_stage_new(const mr_dataset *dataset, mr_stage *input, const mr_run *run, mr_counters *counters,
                       uint32_t purpose, mr_stage **stage, mr_error *error)
{
    *stage = nullptr;
    mr_stage *made = calloc(1, dataset->kind->stage_size_bytes);
    if (made == nullptr) {
        mr_stage_free(input);
        return mr_fail_memory(error, dataset->kind->stage_size_bytes);
    }
    made->input = input;
    return prepare(made, dataset, run, counters, purpose, stage, error);
}

mr_status mr_stage_new_stream(const mr_dataset *dataset, mr_stage *const *children, int32_t count, const mr_run *run,
                              mr_counters *counters, uint32_t purpose, mr_stage **stage, mr_error *error)
{
    *stage = nullptr;
    mr_stage *made = calloc(1, dataset->kind->stage_size_bytes);
    mr_stage **kept = malloc((size_t)count * sizeof *kept);
    if (made == nullptr || kept == nullptr) {
        for (int32_t i = 0; i < count; i++) mr_stage_free(children[i]);
        free(made);
        free(kept);
        return mr_fail_memory(error, dataset->kind->stage_size_bytes);
    }
    for (int32_t i = 0; i < count; i++) {
        assert(children[i] != nullptr);
        kept[i] = children[i];
    }
    made->children = kept;
    made->child_count = count;
    return prepare(made, dataset, run, counters, purpose, stage, error);
}

/* The recursion is as deep as datasets are nested, which builders limit. */
void mr_stage_free(mr_stage *stage)
{
    while (stage != nullptr) {
        mr_stage *input = stage->input;
        assert(stage->child_count == 0 || stage->children != nullptr);
        if (stage->functions->deinit != nullptr) stage->functions->deinit(stage);
        mr_stage_release_all(stage);
        for (int32_t i = 0; i < stage->child_count; i++) mr_stage_free(stage->children[i]);
        free(stage->children);
        free(stage);
        stage = input;
    }
}

void mr_stage_cancel(mr_stage *stage)
{
    for (; stage != nullptr; stage = stage->input) {
        if (stage->functions->cancel != nullptr) stage->functions->cancel(stage);
        for (int32_t i = 0; i < stage->child_count; i++) mr_stage_cancel(stage->children[i]);
    }
}

/* ---- State ---- */

mr_status mr_stage_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    MR_TRY(mr_state_put(state, stage->iteration, error));
    MR_TRY(mr_state_put(state, stage->position, error));
    if (stage->is_seekable) return MR_OK;
    if (stage->is_lost)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the state cannot be saved: the pipeline ran out of memory");
    if (stage->functions->save != nullptr) return stage->functions->save(stage, state, error);
    if (stage->input != nullptr) MR_TRY(mr_stage_save(stage->input, state, error));
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_save(stage->children[i], state, error));
    return MR_OK;
}

mr_status mr_stage_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    uint64_t iteration = 0, position = 0;
    MR_TRY(mr_state_get(reader, &iteration, error));
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &position, error));
    if (stage->is_seekable) {
        MR_TRY(mr_stage_begin(stage, iteration, error));
        MR_TRY(mr_stage_seek(stage, position, error));
        return stage->position == position ? MR_OK : mr_state_refuse(error);
    }
    stage->iteration = iteration;
    stage->position = position;
    stage->is_lost = false;
    if (stage->functions->restore != nullptr) return stage->functions->restore(stage, reader, error);
    if (stage->input != nullptr) MR_TRY(mr_stage_restore(stage->input, reader, error));
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_restore(stage->children[i], reader, error));
    return MR_OK;
}

mr_status mr_stage_save_nothing(mr_stage *stage, mr_state *state, mr_error *error)
{
    (void)stage;
    (void)state;
    (void)error;
    return MR_OK;
}

mr_status mr_stage_restore_forward(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    (void)reader;
    uint64_t position = stage->position;
    MR_TRY(mr_stage_begin(stage, stage->iteration, error));
    MR_TRY(mr_stage_seek_forward(stage, position, error));
    return stage->position == position ? MR_OK : mr_state_refuse(error);
}

mr_status mr_stage_begin_simple(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    (void)error;
    stage->iteration = iteration;
    stage->position = 0;
    return MR_OK;
}

mr_status mr_stage_seek_simple(mr_stage *stage, uint64_t position, mr_error *error)
{
    (void)error;
    stage->position = stage->count >= 0 && position > (uint64_t)stage->count ? (uint64_t)stage->count : position;
    return MR_OK;
}

mr_status mr_stage_skip(mr_stage *stage, mr_error *error)
{
    mr_item item = {0};
    if (mr_run_is_cancelled(stage->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    uint64_t before = stage->position;
    mr_status status = mr_stage_next(stage, &item, error);
    mr_item_deinit(&item);
    assert(stage->position == before || stage->position == before + 1);
    bool is_over = status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED;
    return is_over || stage->position == before ? status : MR_OK;
}

mr_status mr_stage_seek_forward(mr_stage *stage, uint64_t position, mr_error *error)
{
    if (position < stage->position) MR_TRY(mr_stage_begin(stage, stage->iteration, error));
    while (stage->position < position) {
        mr_status status = mr_stage_skip(stage, error);
        if (status == MR_OUT_OF_RANGE) break;
        MR_TRY(status);
    }
    return MR_OK;
}

mr_status mr_order_pull(mr_stage *stage, mr_item *item, mr_error *error)
{
    uint64_t before = stage->input->position;
    assert(stage->child_count == 0);
    mr_status status = mr_stage_next(stage->input, item, error);
    if (stage->input->position != before) stage->position++;
    MR_TRY(status);
    mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

mr_status mr_stream_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->children[0], iteration, error);
}

mr_status mr_stream_pull(mr_stage *stage, mr_item *item, mr_error *error)
{
    assert(stage->child_count >= 1 && stage->input == nullptr);
    mr_stage *child = stage->children[0];
    uint64_t before = child->position;
    mr_status status = mr_stage_next(child, item, error);
    if (status != MR_OK && child->position != before) stage->position++;
    return status;
}

void mr_stream_number(mr_stage *stage, mr_item *item)
{
    assert(stage->position < MR_POSITION_MAX);
    item->epoch = stage->iteration;
    item->number = stage->position++;
    mr_count(&stage->counters->elements, 1);
}

static mr_status numbers_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    if (mr_stage_ended(stage)) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    *item = (mr_item){.epoch = stage->iteration, .number = stage->position++};
    if (stage->counters != nullptr) mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

void mr_describe_element(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    (void)dataset;
    snprintf(text, size_bytes, "element %llu", (unsigned long long)number);
}

const mr_stage_functions mr_numbers_functions = {
    .begin = mr_stage_begin_simple, .next = numbers_next, .seek = mr_stage_seek_simple};

mr_status mr_stage_numbers(int64_t count, const mr_run *run, mr_counters *counters, mr_stage **stage, mr_error *error)
{
    mr_stage *made = calloc(1, sizeof *made);
    *stage = made;
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    *made = (mr_stage){
        .functions = &mr_numbers_functions, .run = run, .counters = counters, .count = count, .is_seekable = true};
    return MR_OK;
}
