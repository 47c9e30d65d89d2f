/* Threads and depths that change while a pipeline runs: neither elements nor states depend on them. */
#include "pipeline/engine/engine_internal.h"
#include "pipeline/engine/tuner.h"
#include "tests/pipeline/pipelines.h"

static mr_status is_not_third(void *context, const mr_element *input, bool *keep, mr_error *error)
{
    (void)context, (void)error;
    *keep = mr_tensor_int64s(&input->tensors[0])[0] % 3 != 0;
    return MR_OK;
}

static mr_dataset *some_chain(int which)
{
    mr_dataset *d = mr_dataset_range(0, 400, 1);
    switch (which) {
    case 0: /* number of threads not set */
        return mr_dataset_batch(mr_dataset_shuffle(d, .seed = 1), 3);
    case 1:
        d = mr_dataset_map(mr_dataset_shuffle(d, .seed = 1), jitter, nullptr, &one_int64);
        return mr_dataset_prefetch(mr_dataset_batch(d, 7), 3);
    case 2: /* rows of blocks */
        return mr_dataset_prefetch(mr_dataset_map(d, jitter, nullptr, &one_int64), 64);
    case 3: /* two engines, and a stage that drops elements */
        d = mr_dataset_filter(mr_dataset_map(d, jitter, nullptr, &one_int64), is_not_third, nullptr);
        d = mr_dataset_map(mr_dataset_take(d, 200), jitter, nullptr, &one_int64);
        return mr_dataset_prefetch(mr_dataset_batch(d, 5), 0);
    default: /* a stream between engines */
        d = mr_dataset_map(d, jitter, nullptr, &one_int64);
        d = mr_dataset_shuffle(mr_dataset_unbatch(mr_dataset_batch(d, 10)), .buffer_size = 30, .seed = 2);
        return mr_dataset_batch(mr_dataset_map(d, jitter, nullptr, &one_int64), 2);
    }
}
static constexpr int CHAINS = 5;

typedef struct opened {
    mr_run run;
    mr_engines engines;
    mr_budget budget;
    mr_dataset *dataset;
    mr_pipeline pipeline;
} opened;

static void open_tuned(opened *o, int which, int32_t threads)
{
    mr_error error = {0};
    *o = (opened){.dataset = some_chain(which)};
    mr_engines_init(&o->engines);
    o->budget.limit_bytes = 1 << 20;
    o->run = (mr_run){.threads = threads, .budget = &o->budget, .engines = &o->engines};
    CHECK_OK(mr_tuning_new(MR_OPTIONS(mr_iterator_options, .tune = MR_TUNE_ON), &o->run, &o->run.tuning, &error));
    CHECK_OK(mr_pipeline_init(&o->pipeline, o->dataset, &o->run, 0, &error));
    mr_tuning_begin(o->run.tuning);
    CHECK_OK(mr_stage_begin(o->pipeline.top, 0, &error));
}

static void close_tuned(opened *o)
{
    mr_pipeline_deinit(&o->pipeline);
    mr_engines_deinit(&o->engines);
    mr_tuning_free(o->run.tuning);
    mr_dataset_free(o->dataset);
}

/* Changes the setting of each tuned engine; called at every element. */
static void change(opened *o, mr_random *random)
{
    for (mr_engine *engine = o->engines.first; engine != nullptr; engine = engine->next) {
        mr_engine_gauge gauge;
        if (!engine->plan.is_tuned) continue;
        mr_engine_measure(&engine->stage, &gauge);
        int32_t least = gauge.may_be_inline ? 0 : 1, range = gauge.threads_max - least + 1;
        int32_t threads = least + (int32_t)mr_random_below(random, (uint32_t)range);
        mr_engine_set(&engine->stage, threads, 1 + (int32_t)mr_random_below(random, 9),
                      (int32_t)mr_random_below(random, 200));
    }
}

/* The next element's digest; false at the end. */
static bool next_digest(opened *o, uint64_t *digest)
{
    mr_error error = {0};
    mr_tensor tensors[MR_COMPONENTS_MAX];
    mr_status status = mr_engine_next(o->pipeline.top, tensors, &error);
    if (status == MR_OUT_OF_RANGE) return false;
    CHECK_OK(status);
    mr_element element = {.count = o->dataset->spec.count, .tensors = tensors};
    *digest = element_digest(0xcbf29ce484222325u, &element);
    for (int32_t i = 0; i < element.count; i++) mr_tensor_deinit(&tensors[i]);
    return true;
}

TEST(tuning_changes_nothing_that_is_delivered)
{
    for (int which = 0; which < CHAINS; which++) {
        uint64_t expected[ELEMENTS_MAX];
        int count = elements_of(some_chain, which, 1, nullptr, expected), at = 0;
        mr_random random = mr_random_at(5, 0, (uint64_t)which, 0);
        opened o;
        open_tuned(&o, which, 4);
        for (uint64_t digest; next_digest(&o, &digest); at++) {
            if (at >= count || digest != expected[at]) test_fail(__FILE__, __LINE__, "chain %d: element %d", which, at);
            change(&o, &random);
        }
        CHECK_EQ(at, count);
        close_tuned(&o);
    }
}

TEST(tuning_changes_no_state)
{
    for (int which = 0; which < CHAINS; which++) {
        uint64_t expected[ELEMENTS_MAX], digest;
        int count = elements_of(some_chain, which, 1, nullptr, expected);
        mr_random random = mr_random_at(6, 0, (uint64_t)which, 0);
        opened o;
        open_tuned(&o, which, 3);
        for (int at = 0; at < count && at < 40; at++) {
            mr_error error = {0};
            mr_state state = {0};
            opened other;
            CHECK_OK(mr_stage_save(o.pipeline.top, &state, &error));
            open_tuned(&other, which, 2);
            mr_state_reader reader = {state.bytes, state.bytes + state.size_bytes};
            CHECK_OK(mr_stage_restore(other.pipeline.top, &reader, &error));
            for (int i = at; i < at + 3 && i < count; i++) {
                CHECK(next_digest(&other, &digest));
                CHECK_EQ(digest, expected[i]);
                change(&other, &random);
            }
            close_tuned(&other);
            mr_state_deinit(&state);
            change(&o, &random);
            CHECK(next_digest(&o, &digest));
        }
        close_tuned(&o);
    }
}

/* No engine starts with more than its share; an engine for which no thread is left runs inline. */
TEST(tuning_divides_threads_among_engines)
{
    for (int which = 0; which < CHAINS; which++)
        for (int32_t threads = 1; threads < 4; threads++) {
            opened o;
            open_tuned(&o, which, threads);
            int32_t total = 0, forced = 0;
            for (mr_engine *engine = o.engines.first; engine != nullptr; engine = engine->next) {
                mr_engine_gauge gauge;
                if (!engine->plan.is_tuned) continue;
                mr_engine_measure(&engine->stage, &gauge);
                total += gauge.threads;
                forced += gauge.may_be_inline ? 0 : gauge.threads;
            }
            CHECK(total <= (forced > threads ? forced : threads));
            close_tuned(&o);
        }
}

static void tell(void *context, const char *line)
{
    snprintf(context, 320, "%s", line);
}

/* The complete tuner, with the real clock: a decision needs many elements. */
TEST(tuning_reports_its_decisions)
{
    mr_error error = {0};
    char line[320] = "";
    mr_dataset *d = mr_dataset_repeat(mr_dataset_range(0, 1000, 1), MR_INFINITE);
    d = mr_dataset_batch(mr_dataset_map(d, jitter, nullptr, &one_int64), 20);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_iterator_options options = {.size = sizeof options,
                                   .threads = 3,
                                   .tune = MR_TUNE_ON,
                                   .threads_first = 1,
                                   .tuned = tell,
                                   .tuned_context = line};
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    mr_dataset_free(d);
    mr_tuned tuned;
    mr_iterator_tuned(iterator, &tuned);
    CHECK(tuned.is_on && !tuned.is_settled && tuned.decisions == 0);
    while (line[0] == '\0') CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_iterator_tuned(iterator, &tuned);
    CHECK(strcmp(tuned.line, line) == 0);
    mr_stage_statistics stages[8];
    int32_t count = mr_iterator_statistics(iterator, stages, 8);
    for (int32_t i = 0; i < count; i++) CHECK(stages[i].threads <= 3);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
}

TEST(tuning_is_off_if_threads_are_set)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_range(0, 10, 1);
    const struct {
        mr_iterator_options options;
        bool is_on;
    } cases[] = {{{0}, true},
                 {{.tune = MR_TUNE_OFF}, false},
                 {{.threads = 2}, false},
                 {{.threads = 2, .tune = MR_TUNE_ON}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_iterator *iterator = nullptr;
        mr_tuned tuned;
        mr_iterator_options options = cases[i].options;
        options.size = sizeof options;
        CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
        mr_iterator_tuned(iterator, &tuned);
        CHECK_EQ(tuned.is_on, cases[i].is_on);
        mr_iterator_free(iterator);
    }
    mr_iterator *iterator = nullptr;
    mr_iterator_options wrong = {.size = sizeof wrong, .threads_first = -1};
    CHECK_EQ(mr_iterator_new(d, &wrong, &iterator, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
}
