/* repeat: the input several times, each time as another iteration, so that shuffle draws a new order and elements have
 * new random numbers. An empty input ends it, even with MR_INFINITE. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct repeat_settings {
    int64_t count;
} repeat_settings;

typedef struct repeat_stage {
    mr_stage stage;
    uint64_t pass;       /* of the input, from 0 */
    int64_t input_count; /* of the stage, or learned at the end of the first pass */
} repeat_stage;

static uint64_t repeat_digest(const mr_dataset *dataset)
{
    return (uint64_t)((const repeat_settings *)dataset->settings)->count;
}

static int64_t passes(const repeat_stage *self)
{
    return ((const repeat_settings *)self->stage.dataset->settings)->count;
}

static bool is_past(const repeat_stage *self, uint64_t pass)
{
    return passes(self) >= 0 && pass >= (uint64_t)passes(self);
}

/* Number of the input's iteration for a pass: unique across all iterations of the stage. An infinite repeat has several
 * iterations only under a take; these are placed far apart. */
static mr_status begin_pass(repeat_stage *self, uint64_t pass, mr_error *error)
{
    assert(!is_past(self, pass));
    uint64_t width = passes(self) >= 0 ? (uint64_t)passes(self) : (uint64_t)1 << 40;
    self->pass = pass;
    return mr_stage_begin(self->stage.input, self->stage.iteration * width + pass, error);
}

static mr_status repeat_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    repeat_stage *self = (repeat_stage *)stage;
    return is_past(self, 0) ? MR_OK : begin_pass(self, 0, error);
}

static mr_status repeat_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    repeat_stage *self = (repeat_stage *)stage;
    while (!is_past(self, self->pass)) {
        uint64_t before = stage->input->position;
        mr_status status = mr_order_pull(stage, item, error);
        if (status != MR_OUT_OF_RANGE) return status;
        assert(before <= MR_POSITION_MAX);
        self->input_count = (int64_t)before;
        if (before == 0) return status;
        if (is_past(self, self->pass + 1)) {
            self->pass++;
            break;
        }
        MR_TRY(begin_pass(self, self->pass + 1, error));
    }
    return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
}

static mr_status repeat_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    repeat_stage *self = (repeat_stage *)stage;
    if (stage->count >= 0 && position > (uint64_t)stage->count) position = (uint64_t)stage->count;
    /* Passes may differ in length when elements are dropped. */
    if (stage->input->count == MR_CARDINALITY_UNKNOWN && !stage->input->is_seekable)
        return mr_stage_seek_forward(stage, position, error);
    if (self->input_count == MR_CARDINALITY_UNKNOWN) {
        /* The end of the first pass determines its length; later positions are computed from it. */
        if (position < stage->position) MR_TRY(repeat_begin(stage, stage->iteration, error));
        while (stage->position < position && self->input_count == MR_CARDINALITY_UNKNOWN) {
            mr_status status = mr_stage_skip(stage, error);
            if (status == MR_OUT_OF_RANGE) return MR_OK;
            MR_TRY(status);
        }
        if (stage->position == position) return MR_OK;
    }
    if (self->input_count == 0) return MR_OK;
    uint64_t size = self->input_count == MR_INFINITE ? MR_POSITION_MAX : (uint64_t)self->input_count;
    assert(size > 0);
    uint64_t pass = position / size;
    stage->position = position;
    if (is_past(self, pass)) {
        stage->position = (uint64_t)passes(self) * size;
        self->pass = pass;
        return MR_OK;
    }
    if (pass != self->pass) MR_TRY(begin_pass(self, pass, error));
    return mr_stage_seek(stage->input, position % size, error);
}

static mr_status repeat_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    ((repeat_stage *)stage)->input_count = stage->input->count;
    return MR_OK;
}

static mr_status repeat_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    const repeat_stage *self = (const repeat_stage *)stage;
    MR_TRY(mr_state_put(state, self->pass, error));
    MR_TRY(mr_state_put(state, (uint64_t)(self->input_count - MR_CARDINALITY_UNKNOWN), error));
    /* With a count of 0 the input has never begun. */
    return passes(self) == 0 ? MR_OK : mr_stage_save(stage->input, state, error);
}

static mr_status repeat_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    repeat_stage *self = (repeat_stage *)stage;
    uint64_t input_count = 0, pass_max = passes(self) >= 0 ? (uint64_t)passes(self) : MR_POSITION_SAVED_MAX;
    MR_TRY(mr_state_get_below(reader, pass_max, &self->pass, error));
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &input_count, error));
    self->input_count = (int64_t)input_count + MR_CARDINALITY_UNKNOWN;
    if (stage->input->count != MR_CARDINALITY_UNKNOWN && self->input_count != stage->input->count)
        return mr_state_refuse(error);
    return passes(self) == 0 ? MR_OK : mr_stage_restore(stage->input, reader, error);
}

static const mr_stage_functions repeat_functions = {
    .begin = repeat_begin, .next = repeat_next, .seek = repeat_seek, .save = repeat_save, .restore = repeat_restore};

static const mr_dataset_kind repeat_kind = {.name = "repeat",
                                            .role = MR_ROLE_ORDER,
                                            .digest = repeat_digest,
                                            .stage_size_bytes = sizeof(repeat_stage),
                                            .functions = &repeat_functions,
                                            .prepare = repeat_prepare};

mr_dataset *mr_dataset_repeat(mr_dataset *input, int64_t count)
{
    mr_dataset *dataset = mr_dataset_new(&repeat_kind, input, sizeof(repeat_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (count < 0) count = MR_INFINITE;
    ((repeat_settings *)dataset->settings)->count = count;
    int64_t n = input->count;
    if (count == 0 || n == 0)
        dataset->count = 0;
    else if (n == MR_INFINITE || (count == MR_INFINITE && n > 0))
        dataset->count = MR_INFINITE;
    else if (n < 0)
        dataset->count = MR_CARDINALITY_UNKNOWN;
    else if (__builtin_mul_overflow(n, count, &dataset->count) || (uint64_t)dataset->count > MR_POSITION_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "repeat: %lld × %lld elements are too many",
                               (long long)count, (long long)n);
    return dataset;
}
