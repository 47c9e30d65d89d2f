/* take_while: the elements before the first one that the predicate rejects. The predicate is called in order, one
 * element at a time, because elements after that must not be requested. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct take_while_settings {
    mr_predicate predicate;
    void *context;
    mr_function_options options;
} take_while_settings;

typedef struct take_while_stage {
    mr_stage stage;
    bool has_ended;
} take_while_stage;

static mr_status take_while_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    ((take_while_stage *)stage)->has_ended = false;
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->children[0], iteration, error);
}

static mr_status take_while_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    take_while_stage *self = (take_while_stage *)stage;
    const take_while_settings *s = stage->dataset->settings;
    mr_stage *child = stage->children[0];
    if (self->has_ended) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    uint64_t before = child->position;
    mr_status status = mr_stage_next(child, item, error);
    if (child->position != before) stage->position++;
    if (status != MR_OK) return status;
    assert(item->payload != nullptr);
    bool stays = false;
    mr_element element = mr_payload_view(item->payload);
    status = s->predicate(s->context, &element, &stays, error);
    status = mr_stage_fail_prefix(stage, "element", item->number, status, error);
    if (status == MR_OK && stays) {
        item->epoch = stage->iteration;
        item->number = stage->position - 1;
        mr_count(&stage->counters->elements, 1);
        return MR_OK;
    }
    mr_item_deinit(item);
    if (status != MR_OK) return status;
    assert(stage->position > 0 && child->position == before + 1);
    self->has_ended = true;
    stage->position--;
    return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
}

static mr_status take_while_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    MR_TRY(mr_state_put(state, ((take_while_stage *)stage)->has_ended, error));
    return mr_stage_save(stage->children[0], state, error);
}

static mr_status take_while_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    MR_TRY(mr_state_get_bool(reader, &((take_while_stage *)stage)->has_ended, error));
    return mr_stage_restore(stage->children[0], reader, error);
}

static const mr_stage_functions take_while_functions = {.begin = take_while_begin,
                                                        .next = take_while_next,
                                                        .seek = mr_stage_seek_forward,
                                                        .save = take_while_save,
                                                        .restore = take_while_restore};

static void take_while_deinit(mr_dataset *dataset)
{
    const take_while_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_dataset_kind take_while_kind = {.name = "take_while",
                                                .role = MR_ROLE_STREAM,
                                                .stage_size_bytes = sizeof(take_while_stage),
                                                .functions = &take_while_functions,
                                                .deinit = take_while_deinit};

mr_dataset *mr_dataset_take_while_(mr_dataset *input, mr_predicate predicate, void *context,
                                   const mr_function_options *given)
{
    mr_function_options options;
    input = MR_DATASET_READ(mr_function_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&take_while_kind, input, sizeof(take_while_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    *(take_while_settings *)dataset->settings = (take_while_settings){predicate, context, options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, predicate != nullptr, "predicate"))) return dataset;
    (void)mr_dataset_refuse(dataset, options.num_parallel_calls != 0, "num_parallel_calls",
                            "the predicate is called in order");
    dataset->count = MR_CARDINALITY_UNKNOWN;
    return dataset;
}
