/* The tuner's controller, on simulated pipelines without a clock or threads. */
#include "pipeline/engine/tuner.h"

#include "tests/test.h"

#include <math.h>
#include <string.h>

typedef struct modelled_engine {
    double work;      /* seconds per element */
    double hand_over; /* cost for the caller of taking an element from the threads */
    int32_t depth;    /* with less, a fifth of the throughput is lost */
    int32_t reads;    /* elements that must be prefetched; with less, some are late */
    double latency;   /* seconds to wait for a late element */
    int32_t threads_max;
    bool stays_threaded;
    size_t slot_bytes;
} modelled_engine;

typedef struct model {
    int32_t count;
    modelled_engine engines[3];
    double consumer; /* seconds per element */
    int32_t processors, threads_max;
    size_t budget_bytes;
    double noise;
} model;

typedef struct state {
    int32_t threads[3], depth[3], reads[3];
} state;

/* The proportion of elements that are still waited for with this number of reads. */
static double share_late(const modelled_engine *e, int32_t reads)
{
    return reads >= e->reads ? 0 : 1 - (double)reads / e->reads;
}

/* Seconds per element, and how long callers wait for each engine in that time. */
static double element_seconds(const model *m, const state *s, double *waits)
{
    double inline_work = 0, slowest = 0, processor = 0, lost = 1;
    int32_t threads = 0;
    for (int32_t i = 0; i < m->count; i++) {
        const modelled_engine *e = &m->engines[i];
        double work = e->work + inline_work + share_late(e, s->reads[i]) * e->latency;
        processor += e->work;
        if (s->threads[i] == 0) {
            inline_work = work;
            continue;
        }
        threads += s->threads[i];
        if (s->depth[i] < e->depth) lost = 1.25;
        slowest = fmax(slowest, work / s->threads[i]);
        inline_work = e->hand_over;
        processor += e->hand_over;
    }
    double caller = m->consumer + inline_work;
    double crowd = threads > m->processors ? 1 + 0.02 * (threads - m->processors) : 1;
    double seconds = fmax(fmax(slowest, caller), (processor + m->consumer) / m->processors) * crowd * lost;
    for (int32_t i = 0; i < m->count && waits != nullptr; i++)
        waits[i] = i + 1 < m->count ? fmax(0, seconds - m->engines[i + 1].work) : seconds - m->consumer;
    return seconds;
}

static double best_rate(const model *m)
{
    double best = 0;
    for (int code = 0; code < (m->count > 1 ? 8000 : 20); code++) {
        state s = {.threads = {code % 20, code / 20 % 20, code / 400}, .depth = {64, 64, 64}, .reads = {999, 999, 999}};
        int32_t total = 0;
        bool is_allowed = true;
        for (int32_t i = 0; i < 3; i++) {
            total += s.threads[i];
            is_allowed &= i >= m->count ? s.threads[i] == 0
                                        : s.threads[i] <= m->engines[i].threads_max &&
                                              (s.threads[i] > 0 || !m->engines[i].stays_threaded);
        }
        if (is_allowed && total <= m->threads_max) best = fmax(best, 1 / element_seconds(m, &s, nullptr));
    }
    return best;
}

typedef struct simulation {
    mr_tuner tuner;
    double now;
    uint64_t elements, state;
    double work[3], starved[3], late[3];
    int32_t decisions;
    char last[320];
} simulation;

static void gauge(const model *m, const state *s, const simulation *sim, mr_engine_gauge *gauges)
{
    static const char *const names[] = {"first", "second", "third"};
    for (int32_t i = 0; i < m->count; i++)
        gauges[i] = (mr_engine_gauge){.name = names[i],
                                      .threads = s->threads[i],
                                      .threads_max = m->engines[i].threads_max,
                                      .depth = s->depth[i],
                                      .may_be_inline = !m->engines[i].stays_threaded,
                                      .slot_bytes = m->engines[i].slot_bytes,
                                      .slots = s->depth[i] + 1,
                                      .slot_rows = 1,
                                      .reads = s->reads[i],
                                      .rows_requested = s->reads[i] > 0 ? sim->elements : 0,
                                      .rows_waited = (uint64_t)sim->late[i],
                                      .work_ns = (uint64_t)(sim->work[i] * 1e9),
                                      .starved_ns = (uint64_t)(sim->starved[i] * 1e9)};
}

/* Simulates until the tuner settles, or up to the time limit. Checks every setting against its limits. */
static void simulate(const model *m, state *s, simulation *sim, double seconds)
{
    double end = sim->now + seconds;
    int32_t total_first = s->threads[0] + s->threads[1] + s->threads[2];
    while (sim->now < end) {
        double waits[3], element = element_seconds(m, s, waits);
        sim->state = sim->state * 6364136223846793005u + 1442695040888963407u;
        element *= 1 + m->noise * ((double)(sim->state >> 40) / (double)(1 << 24) - 0.5);
        sim->now += element;
        sim->elements++;
        for (int32_t i = 0; i < m->count; i++) {
            double late = share_late(&m->engines[i], s->reads[i]);
            sim->late[i] += late;
            sim->work[i] += m->engines[i].work + late * m->engines[i].latency;
            sim->starved[i] += waits[i];
        }
        uint64_t now_ns = (uint64_t)(sim->now * 1e9);
        if (!mr_tuner_is_due(&sim->tuner, now_ns, sim->elements)) continue;
        mr_engine_gauge gauges[3];
        mr_tuner_decision decision;
        gauge(m, s, sim, gauges);
        if (!mr_tuner_step(&sim->tuner, now_ns, sim->elements, gauges, m->count, &decision)) continue;
        snprintf(sim->last, sizeof sim->last, "%s", decision.line);
        CHECK(strchr(decision.line, '\n') == nullptr && decision.line[0] != '\0');
        if (!decision.has_setting) continue;
        const mr_tuner_setting *set = &decision.setting;
        sim->decisions++;
        s->threads[set->engine] = set->threads;
        s->depth[set->engine] = set->depth;
        s->reads[set->engine] = set->reads;
        int32_t total = s->threads[0] + s->threads[1] + s->threads[2];
        CHECK(total <= m->threads_max || total < total_first);
        CHECK(set->threads <= m->engines[set->engine].threads_max && set->depth >= 1);
        CHECK(set->threads > 0 || !m->engines[set->engine].stays_threaded);
    }
}

static void begin(const model *m, simulation *sim)
{
    *sim = (simulation){.state = 7};
    mr_tuner_init(&sim->tuner, m->threads_max, m->processors, m->budget_bytes);
}

/* The tuner ends close to the best of all settings and makes no changes after that. */
static void check_tunes(const model *m, state s, double share)
{
    simulation sim;
    begin(m, &sim);
    simulate(m, &s, &sim, 60);
    if (sim.tuner.phase != MR_TUNER_SETTLED)
        test_fail(__FILE__, __LINE__, "not settled after %d decisions: %s", (int)sim.decisions, sim.last);
    double rate = 1 / element_seconds(m, &s, nullptr), best = best_rate(m);
    if (rate < share * best)
        test_fail(__FILE__, __LINE__, "%.1f/s with %d %d %d threads, %.1f/s are possible", rate, (int)s.threads[0],
                  (int)s.threads[1], (int)s.threads[2], best);
    int32_t decisions = sim.decisions;
    simulate(m, &s, &sim, 60);
    CHECK_EQ(sim.decisions, decisions);
}

static const model decode = {.count = 1,
                             .engines = {{.work = 4e-3, .hand_over = 1e-5, .threads_max = 16, .slot_bytes = 1000}},
                             .processors = 8,
                             .threads_max = 8,
                             .budget_bytes = 1 << 20,
                             .noise = 0.04};

TEST(tuner_heavy_work_gets_all_processors)
{
    check_tunes(&decode, (state){{1}, {1}}, 0.95);
    check_tunes(&decode, (state){{0}, {1}}, 0.95);
    check_tunes(&decode, (state){{8}, {2}}, 0.95);
}

TEST(tuner_too_many_threads_become_fewer)
{
    model m = decode;
    m.threads_max = m.engines[0].threads_max = 16;
    m.processors = 2;
    state s = {{16}, {64}};
    check_tunes(&m, s, 0.95);
    simulation sim;
    begin(&m, &sim);
    simulate(&m, &s, &sim, 60);
    CHECK_EQ(s.threads[0], 2);
    CHECK(s.depth[0] < 64);
}

/* Each engine gets an integer number of threads, although one engine could use all of them if the others were inline. A
 * tenth is lost. */
TEST(tuner_threads_go_where_the_work_is)
{
    model m = {.count = 3,
               .engines = {{.work = 1e-3, .hand_over = 1e-5, .threads_max = 8},
                           {.work = 5e-3, .hand_over = 1e-5, .threads_max = 8},
                           {.work = 1e-5, .hand_over = 1e-5, .threads_max = 8}},
               .processors = 8,
               .threads_max = 8,
               .budget_bytes = 1 << 20,
               .noise = 0.04};
    check_tunes(&m, (state){{1, 1, 1}, {1, 1, 1}}, 0.9);
    check_tunes(&m, (state){{3, 2, 3}, {2, 2, 2}}, 0.9);
    check_tunes(&m, (state){{6, 1, 1}, {2, 2, 2}}, 0.9);
}

TEST(tuner_trivial_work_is_done_inline)
{
    model m = decode;
    m.engines[0].work = 3e-5;
    m.engines[0].hand_over = 3e-4;
    state s = {{1}, {2}};
    check_tunes(&m, s, 0.95);
    m.engines[0].stays_threaded = true;
    check_tunes(&m, s, 0.95);
}

TEST(tuner_leaves_a_slow_consumer_alone)
{
    model m = decode;
    m.consumer = 0.02;
    state s = {{6}, {2}};
    simulation sim;
    begin(&m, &sim);
    simulate(&m, &s, &sim, 60);
    CHECK_EQ(sim.tuner.phase, MR_TUNER_SETTLED);
    CHECK_EQ(s.threads[0], 1);
    CHECK_EQ(s.depth[0], 2);
}

TEST(tuner_reads_ahead_within_the_budget)
{
    model m = decode;
    m.engines[0].depth = 12;
    m.engines[0].slot_bytes = 1000;
    m.threads_max = 4;
    m.consumer = 3.6e-3;
    m.engines[0].work = 3.6e-3 * 0.9;
    m.processors = 2;
    state s = {{1}, {2}};
    check_tunes(&m, s, 0.95);
    m.budget_bytes = 5000;
    simulation sim;
    begin(&m, &sim);
    simulate(&m, &s, &sim, 60);
    CHECK(s.depth[0] <= 4);
}

/* A remote disk: the number of concurrent reads determines the throughput. */
TEST(tuner_reads_more_elements_ahead)
{
    model m = decode;
    m.engines[0].work = 1e-3;
    m.engines[0].reads = 200;
    m.engines[0].latency = 0.02;
    state s = {.threads = {8}, .depth = {2}, .reads = {32}};
    check_tunes(&m, s, 0.95);
    simulation sim;
    begin(&m, &sim);
    simulate(&m, &s, &sim, 60);
    CHECK(s.reads[0] >= 200);
    /* If no element is waited for, none needs to be prefetched. */
    m.engines[0].reads = 0;
    s = (state){.threads = {8}, .depth = {2}, .reads = {32}};
    begin(&m, &sim);
    simulate(&m, &s, &sim, 60);
    CHECK_EQ(s.reads[0], 32);
}

TEST(tuner_looks_again_when_the_work_changes)
{
    model m = decode;
    m.consumer = 4e-3;
    state s = {{1}, {2}};
    simulation sim;
    begin(&m, &sim);
    simulate(&m, &s, &sim, 60);
    CHECK_EQ(sim.tuner.phase, MR_TUNER_SETTLED);
    m.engines[0].work = 2e-2;
    simulate(&m, &s, &sim, 120);
    CHECK_EQ(sim.tuner.phase, MR_TUNER_SETTLED);
    CHECK(1 / element_seconds(&m, &s, nullptr) > 0.95 * best_rate(&m));
}

/* The consumer pauses. Elements that become ready during the pause must not count as throughput. */
TEST(tuner_pauses_are_no_measurements)
{
    state s = {{1}, {1}};
    simulation sim;
    begin(&decode, &sim);
    for (int i = 0; i < 400; i++) {
        simulate(&decode, &s, &sim, 0.33);
        sim.now += 5;
    }
    CHECK_EQ(sim.tuner.phase, MR_TUNER_SETTLED);
    CHECK_EQ(s.threads[0], 8);
}

/* Slots that become ready together are delivered together. The throughput is that of their production. */
TEST(tuner_bursts_are_no_rate)
{
    mr_tuner tuner;
    mr_tuner_init(&tuner, 4, 4, 1 << 20);
    mr_engine_gauge gauge = {.name = "made", .threads = 1, .threads_max = 4, .depth = 1, .slots = 2, .slot_rows = 1};
    mr_tuner_decision decision;
    CHECK(!mr_tuner_step(&tuner, 1, 0, &gauge, 1, &decision));
    for (uint64_t t = 1; t <= 2; t++) {
        gauge.produced = 10 * (double)t;
        (void)mr_tuner_step(&tuner, 1 + t * 1000000000, 100 * t, &gauge, 1, &decision);
    }
    CHECK(fabs(tuner.base - 10) < 1e-3);
}

/* With two threads and a caller that helps, one thread may be too many. */
TEST(tuner_a_caller_that_works_along_needs_fewer_threads)
{
    mr_tuner tuner;
    mr_tuner_init(&tuner, 2, 2, 1 << 20);
    mr_engine_gauge gauge = {
        .name = "quick", .threads = 2, .threads_max = 2, .depth = 2, .slots = 3, .slot_rows = 1, .is_cheap = true};
    mr_tuner_decision decision;
    CHECK(!mr_tuner_step(&tuner, 1, 0, &gauge, 1, &decision));
    for (uint64_t t = 1; t <= 2; t++) {
        gauge.work_ns = t * 1990000000;
        gauge.starved_ns = t * 900000000;
        bool is_decided = mr_tuner_step(&tuner, 1 + t * 1000000000, 1000 * t, &gauge, 1, &decision);
        CHECK(is_decided == (t == 2));
    }
    CHECK(decision.has_setting);
    CHECK_EQ(decision.setting.threads, 1);
    CHECK(strstr(decision.line, "quick: 2 -> 1 threads: its caller helped for 90 %") != nullptr);
}

/* Another process takes half of the machine during the decisive trial. */
TEST(tuner_tries_again_what_was_tried_in_a_bad_moment)
{
    model m = decode, slowed = decode;
    m.threads_max = m.engines[0].threads_max = 2;
    slowed.threads_max = slowed.engines[0].threads_max = 2;
    slowed.engines[0].work *= 2.2;
    state s = {{1}, {1}};
    simulation sim;
    begin(&m, &sim);
    while (sim.decisions == 0) simulate(&m, &s, &sim, 0.01);
    CHECK_EQ(s.threads[0], 2);
    while (sim.decisions == 1) simulate(&slowed, &s, &sim, 0.01);
    CHECK_EQ(s.threads[0], 1);
    simulate(&slowed, &s, &sim, 60);
    CHECK_EQ(s.threads[0], 2);
    CHECK_EQ(sim.tuner.phase, MR_TUNER_SETTLED);
}

TEST(tuner_reports_decisions_with_reasons)
{
    state s = {{1}, {1}};
    simulation sim;
    begin(&decode, &sim);
    while (sim.decisions == 0) simulate(&decode, &s, &sim, 0.05);
    CHECK(strstr(sim.last, "first: 1 -> 2 threads: its caller waited 100 % of 0.1") != nullptr);
    CHECK(strstr(sim.last, "1 thread busy") != nullptr);
}
