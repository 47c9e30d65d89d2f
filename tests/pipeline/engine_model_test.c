/* The engine's rings, slots and workspaces, compared with an array as the model: threads, depth and reads change at
 * random while it runs, other threads measure it, and it seeks. The replay log is compared with a set of elements. */
#include "pipeline/engine/engine.h"
#include "pipeline/engine/tuner.h"
#include "pipeline/replay_log.h"

#include "tests/test.h"

#include <pthread.h>
#include <sched.h>

static uint64_t draw_next(uint64_t *draw)
{
    *draw = *draw * 6364136223846793005u + 1442695040888963407u;
    return *draw >> 33;
}

static uint64_t below(uint64_t *draw, uint64_t limit)
{
    return draw_next(draw) % limit;
}

/* Triples a number. Some numbers take longer; 12, 25, 38 … fail. */
static mr_status triple(void *, const mr_element *input, mr_random *, mr_element *output, mr_error *error)
{
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    for (volatile int64_t i = 0; i < (value % 7 == 0 ? 3000 : 3); i++) {}
    if (value % 13 == 12) return mr_fail(error, MR_DATA_LOSS, "unlucky");
    output->count = 1;
    ((int64_t *)output->tensors[0].data)[0] = value * 3;
    return MR_OK;
}

static const mr_element_spec one_int64 = {.count = 1, .dtypes = {MR_INT64}};

/* The content of element, or batch, `position` of the model; false if it fails. */
static bool expected(uint64_t position, int64_t count, int64_t batch, int64_t *first, int64_t *rows)
{
    int64_t size = batch == 0 ? 1 : batch, begin = (int64_t)position * size;
    int64_t end = begin + size < count ? begin + size : count;
    *first = begin * 3;
    *rows = end - begin;
    for (int64_t i = begin; i < end; i++)
        if (i % 13 == 12) return false;
    return true;
}

typedef struct machine {
    mr_run run;
    mr_budget budget;
    mr_engines engines;
    mr_pipeline pipeline;
    atomic_bool is_over;
} machine;

static void *measure(void *argument)
{
    machine *m = argument;
    mr_engine_gauge gauge;
    while (!atomic_load(&m->is_over)) {
        mr_engine_measure(m->pipeline.top, &gauge);
        CHECK(gauge.threads >= 0 && gauge.threads <= gauge.threads_max && gauge.ready <= gauge.slots + 1024);
        (void)sched_yield();
    }
    return nullptr;
}

static void check_next(machine *m, uint64_t *position, int64_t count, int64_t batch)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    int64_t first = 0, rows = 0;
    bool is_good = expected(*position, count, batch, &first, &rows);
    mr_status status = mr_engine_next(m->pipeline.top, &tensor, &error);
    if (rows <= 0) {
        CHECK_STATUS(status, MR_OUT_OF_RANGE);
        return;
    }
    ++*position;
    CHECK_STATUS(status, is_good ? MR_OK : MR_DATA_LOSS);
    if (!is_good) return;
    CHECK_EQ(mr_tensor_count(&tensor), rows);
    for (int64_t i = 0; i < rows; i++) CHECK_EQ(((const int64_t *)tensor.data)[i], first + 3 * i);
    mr_tensor_deinit(&tensor);
}

static void run_engine(uint64_t *draw)
{
    static const int32_t threads_max[] = {1, 2, 7, 64};
    static const int64_t batches[] = {0, 1, 3, 64, 5000};
    static const int64_t counts[] = {0, 1, 63, 64, 65, 1000};
    static const size_t budgets[] = {1, 5000, (size_t)1 << 30};
    mr_error error = {0};
    machine m = {.budget = {.limit_bytes = budgets[below(draw, 3)]}};
    int64_t batch = batches[below(draw, 5)], count = counts[below(draw, 6)];
    mr_engines_init(&m.engines);
    m.run = (mr_run){.threads = threads_max[below(draw, 4)], .budget = &m.budget, .engines = &m.engines};
    mr_iterator_options options = {.size = sizeof options, .tune = MR_TUNE_ON, .threads = m.run.threads};
    CHECK_OK(mr_tuning_new(&options, &m.run, &m.run.tuning, &error));
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, count, 1), triple, nullptr, &one_int64);
    if (batch > 0) d = mr_dataset_batch(d, batch);
    if (below(draw, 2) == 0) d = mr_dataset_prefetch(d, (int32_t)below(draw, 100));
    CHECK_OK(mr_pipeline_init(&m.pipeline, d, &m.run, 0, &error));
    mr_stage *top = m.pipeline.top;
    CHECK_OK(mr_stage_begin(top, 0, &error));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, measure, &m), 0);
    uint64_t position = 0;
    mr_engine_gauge gauge;
    for (int i = 0; i < 250; i++) {
        uint64_t units = (uint64_t)(batch == 0 ? count : (count + batch - 1) / batch) + 1;
        switch (below(draw, 12)) {
        case 0:
            mr_engine_measure(top, &gauge);
            mr_engine_set(top, (int32_t)below(draw, (uint64_t)gauge.threads_max + 1),
                          1 + (int32_t)below(draw, (uint64_t)(gauge.depth > MR_DEPTH_MAX ? gauge.depth : MR_DEPTH_MAX)),
                          (int32_t)below(draw, MR_READS_MAX + 1));
            break;
        case 1:
            position = below(draw, units);
            CHECK_OK(mr_stage_seek(top, position, &error));
            break;
        case 2:
            CHECK_OK(mr_stage_begin(top, below(draw, 5), &error));
            position = 0;
            break;
        default:
            check_next(&m, &position, count, batch);
        }
    }
    if (below(draw, 2) == 0) mr_engines_cancel(&m.engines);
    atomic_store(&m.is_over, true);
    pthread_join(thread, nullptr);
    mr_pipeline_deinit(&m.pipeline);
    mr_tuning_free(m.run.tuning);
    mr_engines_deinit(&m.engines);
    mr_dataset_free(d);
    /* All counted memory has been released. */
    CHECK_EQ(atomic_load(&m.budget.held_bytes), 0);
    CHECK_EQ(atomic_load(&m.budget.kept_bytes), 0);
}

TEST(engine_model_with_settings_that_change_all_the_time)
{
    uint64_t draw = test_seed() * 0x9e3779b97f4a7c15u;
    for (int round = 0; round < (test_is_sanitized() ? 30 : 80); round++) run_engine(&draw);
}

/* ---- The replay log ---- */

enum { ELEMENTS = 600 };

/* Restores a copy of the log and compares its contents. */
static void check_restored(const mr_run *run, mr_counters *counters, mr_replay_log *replay, mr_stage *input,
                           const bool *is_held)
{
    mr_error error = {0};
    mr_state state = {0};
    mr_stage *other = nullptr, keeper = {.run = run, .counters = counters};
    uint64_t base = 0, again = 0, end = 0, count = 0, position = input->position;
    CHECK_OK(mr_replay_log_save(replay, input, &state, &base, &error));
    CHECK_OK(mr_stage_numbers(ELEMENTS, run, counters, &other, &error));
    CHECK_OK(mr_stage_begin(other, 0, &error));
    mr_replay_log copy = {.stage = &keeper, .interval = replay->interval};
    mr_state_reader reader = {state.bytes, (const unsigned char *)state.bytes + state.size_bytes};
    CHECK_OK(mr_replay_log_restore(&copy, other, &reader, &again, &end, &error));
    CHECK_EQ(again, base);
    CHECK_EQ(end, position);
    mr_item items[ELEMENTS] = {0};
    mr_replay_item held[ELEMENTS];
    /* The order of the items does not matter. */
    for (uint64_t i = ELEMENTS; i-- > 0;)
        if (is_held[i]) held[count++] = (mr_replay_item){i, &items[i]};
    CHECK_OK(mr_replay_log_refill(&copy, other, end, held, count, &error));
    CHECK_EQ(other->position, position);
    for (uint64_t i = 0; i < ELEMENTS; i++)
        if (is_held[i]) {
            CHECK_EQ(items[i].number, i);
            mr_replay_log_release(&copy, i);
        }
    for (uint64_t i = 0; i < copy.count; i++) CHECK_EQ(copy.checkpoints[i].retained, 0);
    mr_replay_log_deinit(&copy);
    mr_state_deinit(&state);
    mr_stage_release_all(&keeper);
    mr_stage_free(other);
}

static void run_replay(uint64_t *draw)
{
    mr_error error = {0};
    mr_budget budget = {.limit_bytes = 1};
    mr_run run = {.budget = &budget};
    mr_counters counters = {.stage = "replay"};
    mr_stage *input = nullptr, keeper = {.run = &run, .counters = &counters};
    mr_replay_log replay = {.stage = &keeper, .interval = (uint64_t[]){0, 1, 16, 100, 10000}[below(draw, 5)]};
    bool is_held[ELEMENTS] = {false};
    CHECK_OK(mr_stage_numbers(ELEMENTS, &run, &counters, &input, &error));
    CHECK_OK(mr_stage_begin(input, 0, &error));
    for (int i = 0; i < 1200; i++) {
        uint64_t which = below(draw, ELEMENTS);
        if (below(draw, 2) == 0 && input->position < ELEMENTS) {
            mr_item item = {0};
            uint64_t origin = input->position;
            CHECK_OK(mr_replay_log_step(&replay, input, &error));
            CHECK_OK(mr_stage_next(input, &item, &error));
            is_held[origin] = below(draw, 3) != 0;
            if (is_held[origin]) mr_replay_log_retain(&replay, origin);
        } else if (is_held[which]) {
            mr_replay_log_release(&replay, which);
            is_held[which] = false;
        }
        if (below(draw, 60) == 0) check_restored(&run, &counters, &replay, input, is_held);
    }
    check_restored(&run, &counters, &replay, input, is_held);
    mr_replay_log_deinit(&replay);
    mr_stage_release_all(&keeper);
    mr_stage_free(input);
    CHECK_EQ(atomic_load(&budget.held_bytes), 0);
}

TEST(replay_log_model_restores_retained_elements)
{
    uint64_t draw = test_seed() * 0x9e3779b97f4a7c15u;
    for (int round = 0; round < 30; round++) run_replay(&draw);
}
