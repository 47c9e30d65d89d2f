/* Order stages: what all of them share. */
#include "pipeline/pipeline.h"

#include <stdlib.h>
#include <time.h>

uint64_t mr_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

mr_payload *mr_payload_new(int32_t count)
{
    mr_payload *payload = calloc(1, sizeof *payload + (size_t)count * sizeof(mr_tensor));
    if (payload != nullptr) payload->count = count;
    return payload;
}

void mr_item_deinit(mr_item *item)
{
    if (item->payload != nullptr) {
        for (int32_t i = 0; i < item->payload->count; i++) mr_tensor_deinit(&item->payload->tensors[i]);
        free(item->payload);
    }
    *item = (mr_item){0};
}

mr_status mr_stage_new(const mr_dataset *dataset, mr_stage *input, const mr_run *run, mr_counters *counters,
                       uint32_t purpose, mr_stage **stage, mr_error *error)
{
    const mr_dataset_kind *kind = dataset->kind;
    *stage = nullptr;
    mr_stage *made = calloc(1, kind->stage_size_bytes);
    if (made == nullptr) {
        mr_stage_free(input);
        return mr_fail_memory(error, kind->stage_size_bytes);
    }
    made->functions = kind->functions;
    made->input = input;
    made->dataset = dataset;
    made->run = run;
    made->counters = counters;
    made->purpose = purpose;
    made->count = dataset->count;
    mr_status status = kind->prepare == nullptr ? MR_OK : kind->prepare(made, error);
    if (status != MR_OK)
        mr_stage_free(made);
    else
        *stage = made;
    return status;
}

void mr_stage_free(mr_stage *stage)
{
    while (stage != nullptr) {
        mr_stage *input = stage->input;
        if (stage->functions->deinit != nullptr) stage->functions->deinit(stage);
        free(stage);
        stage = input;
    }
}

void mr_stage_cancel(mr_stage *stage)
{
    for (; stage != nullptr; stage = stage->input)
        if (stage->functions->cancel != nullptr) stage->functions->cancel(stage);
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

mr_status mr_stage_seek_forward(mr_stage *stage, uint64_t position, mr_error *error)
{
    if (position < stage->position) MR_TRY(mr_stage_begin(stage, stage->iteration, error));
    while (stage->position < position) {
        mr_item item = {0};
        mr_status status = mr_stage_next(stage, &item, error);
        mr_item_deinit(&item);
        if (status == MR_OUT_OF_RANGE) break;
        MR_TRY(status);
    }
    return MR_OK;
}

static mr_status numbers_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    if (mr_stage_ended(stage)) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    *item = (mr_item){.epoch = stage->iteration, .number = stage->position++};
    if (stage->counters != nullptr) mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

const mr_stage_functions mr_numbers_functions = {
    .begin = mr_stage_begin_simple, .next = numbers_next, .seek = mr_stage_seek_simple};

mr_status mr_stage_numbers(int64_t count, const mr_run *run, mr_counters *counters, mr_stage **stage, mr_error *error)
{
    mr_stage *made = calloc(1, sizeof *made);
    *stage = made;
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    *made = (mr_stage){.functions = &mr_numbers_functions, .run = run, .counters = counters, .count = count};
    return MR_OK;
}
