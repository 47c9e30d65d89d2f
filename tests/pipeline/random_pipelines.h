/* Random pipelines as text (see pipeline_text.h): the same seed generates the same pipeline. Each line is applied when
 * it is written, so that a stage is only chosen if its input has the required structure and the pipeline cannot block
 * indefinitely. */
#ifndef MR_TESTS_RANDOM_PIPELINES_H
#define MR_TESTS_RANDOM_PIPELINES_H

#include "tests/pipeline/pipeline_text.h"

#include <stdarg.h>

/* Properties of a dataset on the stack that its spec does not contain. */
typedef struct random_facts {
    int64_t most; /* maximum number of elements, if it is finite */
    bool endless;
    bool shuffled; /* the order differs from TensorFlow's */
    bool closed;   /* no stage may follow, because elements depend on the order */
} random_facts;

typedef struct random_pipeline {
    uint64_t state;
    text_stack stack;
    random_facts facts[TEXT_STACK_MAX];
    char text[4096];
    size_t used;
    int stages;
} random_pipeline;

enum { RANDOM_STAGES_MAX = 10, RANDOM_ELEMENTS_MAX = 2000 };

static inline int64_t random_below(random_pipeline *p, int64_t limit)
{
    uint64_t x = p->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((x ^ (x >> 31)) % (uint64_t)limit);
}

static inline int64_t random_between(random_pipeline *p, int64_t low, int64_t high)
{
    return low + random_below(p, high - low + 1);
}

/* Writes a line and applies it. */
[[gnu::format(printf, 2, 3)]] static inline void random_line(random_pipeline *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *at = &p->text[p->used];
    p->used += (size_t)vsnprintf(&p->text[p->used], sizeof p->text - p->used, format, args);
    va_end(args);
    p->text[p->used++] = '\n';
    p->text[p->used] = 0;
    text_line line;
    if (text_line_read(&at, &line)) text_apply(&p->stack, &line);
    p->stages++;
}

static inline random_facts *random_top(random_pipeline *p)
{
    return &p->facts[p->stack.count - 1];
}

static inline void random_source(random_pipeline *p)
{
    int64_t most = random_between(p, 0, random_below(p, 4) == 0 ? 60 : 20);
    int64_t components = random_between(p, 1, 3), step = random_between(p, 1, 3);
    int64_t start = random_between(p, -5, 9);
    switch (random_below(p, 9)) {
    case 0:
    case 1:
        random_line(p, "slices %lld %lld", (long long)most, (long long)components);
        break;
    case 2:
        random_line(p, "generator %lld %lld", (long long)start, (long long)most);
        break;
    case 3:
        random_line(p, "sparse %lld %lld %lld", (long long)most, (long long)components, (long long)step);
        break;
    case 4:
        if (random_below(p, 2) == 0) {
            random_line(p, "tensors %lld", (long long)start);
            most = 1;
            break;
        }
        /* Its numbers differ from TensorFlow's. */
        random_line(p, "random %lld", (long long)step);
        random_line(p, "map zero");
        random_line(p, "take %lld", (long long)most);
        break;
    default:
        random_line(p, "range %lld %lld %lld", (long long)start, (long long)(start + most * step), (long long)step);
    }
    *random_top(p) = (random_facts){.most = most};
}

static inline bool random_is_scalar(const mr_element_spec *spec)
{
    return spec->count == 1 && spec->shapes[0].rank == 0;
}

/* Whether all sizes are known, with the smallest and the largest rank of the components. */
static inline bool random_sizes_known(const mr_element_spec *spec, int *least, int *largest)
{
    bool known = true;
    *least = MR_RANK_MAX, *largest = 0;
    for (int32_t c = 0; c < spec->count; c++) {
        int rank = spec->shapes[c].rank;
        if (rank < *least) *least = rank;
        if (rank > *largest) *largest = rank;
        known &= mr_shape_count(spec->shapes[c]) >= 0;
    }
    return known;
}

/* Whether the data has an index and a known length. */
static inline bool random_is_indexed(const random_pipeline *p)
{
    static const char *const words[] = {"range ", "slices ", "map ",   "prefetch ",
                                        "take ",  "skip ",   "shard ", "repeat "};
    if (p->stack.count != 1 || mr_dataset_cardinality(p->stack.datasets[0]) == MR_CARDINALITY_UNKNOWN) return false;
    for (const char *at = p->text; *at != 0; at += strcspn(at, "\n") + 1) {
        bool is_one = false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            is_one |= strncmp(at, words[i], strlen(words[i])) == 0;
        if (!is_one) return false;
    }
    return true;
}

/* Stages that treat each element separately: their results do not depend on the order. */
static inline void random_element_stage(random_pipeline *p)
{
    static const char *const functions[] = {"affine", "mod", "pair", "first", "sum", "spread", "affine"};
    random_facts *facts = random_top(p);
    switch (random_below(p, 8)) {
    case 7:
        if (mr_dataset_spec(p->stack.datasets[p->stack.count - 1])->count > 3) return random_line(p, "map first");
        return random_line(p, "resample");
    case 0:
    case 1:
    case 2:
        random_line(p, "map %s", functions[random_below(p, 7)]);
        return;
    case 3:
        if (facts->endless) return random_line(p, "prefetch %lld", (long long)random_between(p, 1, 4));
        return random_line(p, "filter %lld %lld", (long long)random_between(p, 2, 5), (long long)random_below(p, 3));
    case 4:
        if (facts->endless) return random_line(p, "map affine");
        random_line(p, "map fail");
        return random_line(p, "ignore_errors");
    case 5:
        if (facts->endless || facts->most > 60) return random_line(p, "map mod");
        facts->most *= 3;
        if (random_below(p, 2) == 0) return random_line(p, "flat_map %s", random_below(p, 2) == 0 ? "count" : "same");
        return random_line(p, "interleave %s %lld %lld %lld", random_below(p, 2) == 0 ? "count" : "same",
                           (long long)random_between(p, 1, 4), (long long)random_between(p, 1, 3),
                           (long long)random_below(p, 2));
    default:
        return random_line(p, "prefetch %lld", (long long)random_between(p, 1, 4));
    }
}

static inline void random_batch(random_pipeline *p, const mr_element_spec *spec)
{
    int least = 0, largest = 0;
    bool known = random_sizes_known(spec, &least, &largest);
    if (largest >= 3) return;
    random_facts *facts = random_top(p);
    if (!facts->shuffled && spec->count <= 3 && random_below(p, 3) == 0) {
        if (random_is_indexed(p) && random_below(p, 2) == 0) {
            int64_t workers = random_between(p, 1, 3);
            return random_line(p, "distribute %lld %lld %lld", (long long)(workers * random_between(p, 1, 3)),
                               (long long)workers, (long long)random_below(p, workers));
        }
        if (spec->count == 1 && random_below(p, 2) == 0)
            return random_line(p, "sparse_batch %lld", (long long)random_between(p, 1, 4));
        return random_line(p, "ragged %lld %lld", (long long)random_between(p, 1, 4), (long long)random_below(p, 2));
    }
    facts->closed |= facts->shuffled;
    random_line(p, "%s %lld %lld", known && random_below(p, 3) != 0 ? "batch" : "padded_batch",
                (long long)random_between(p, 1, 6), (long long)(facts->shuffled ? 0 : random_below(p, 2)));
}

/* Stages that depend on the order and number of elements. */
static inline void random_order_stage(random_pipeline *p, const mr_element_spec *spec)
{
    random_facts *facts = random_top(p);
    int least = 0, largest = 0;
    bool known = random_sizes_known(spec, &least, &largest);
    switch (random_below(p, 12)) {
    case 11: {
        int64_t count = mr_dataset_cardinality(p->stack.datasets[p->stack.count - 1]);
        /* The position of the failure is known only if no stage follows. */
        facts->closed |= count == MR_CARDINALITY_UNKNOWN;
        if (facts->closed && (facts->endless || strstr(p->text, "ignore_errors") != nullptr)) return;
        return random_line(p, "assert %lld",
                           (long long)(count == MR_CARDINALITY_UNKNOWN ? random_between(p, 0, 12) : count));
    }
    case 0:
        return random_line(p, "take %lld", (long long)random_between(p, -1, 25));
    case 1:
        return random_line(p, "skip %lld", (long long)random_between(p, facts->endless ? 0 : -1, 9));
    case 2: {
        int64_t count = random_between(p, 1, 4);
        return random_line(p, "shard %lld %lld", (long long)count, (long long)random_below(p, count));
    }
    case 3:
        return random_line(p, "take_while %lld", (long long)random_between(p, 0, 90));
    case 4:
        return random_line(p, "enumerate %lld", (long long)random_between(p, 0, 5));
    case 5:
        return random_line(p, "scan");
    case 6: {
        if (facts->most > 200) return;
        bool flat = !known || random_below(p, 2) == 0;
        facts->most *= 3;
        return random_line(p, "window %s %lld %lld %lld %lld", flat ? "flat" : "batch",
                           (long long)random_between(p, 1, 4), (long long)random_between(p, 1, 5),
                           (long long)random_between(p, 1, 3), (long long)random_below(p, 2));
    }
    case 7:
        if (facts->endless || !known || largest > 2) return;
        return random_line(p, "group %lld %lld", (long long)random_between(p, 1, 4),
                           (long long)random_between(p, 1, 4));
    case 8:
        if (facts->endless || largest > 2) return;
        if (least < 1) return random_line(p, "map spread");
        return random_line(p, "bucket %lld %lld %lld %lld", (long long)random_between(p, 1, 3),
                           (long long)random_between(p, 1, 3), (long long)random_between(p, 1, 3),
                           (long long)random_below(p, 2));
    case 9:
        if (facts->endless || !facts->most) return;
        facts->shuffled = true;
        return random_line(p, "shuffle %lld %lld", (long long)random_between(p, 1, random_below(p, 2) ? 9 : 100),
                           (long long)random_below(p, 2));
    default:
        if (least < 1 || spec->count > 1 || facts->most > 200) return;
        facts->most *= 4;
        return random_line(p, "unbatch");
    }
}

/* Stages that read their input repeatedly. */
static inline void random_repeat(random_pipeline *p)
{
    random_facts *facts = random_top(p);
    if (!facts->endless && random_below(p, 3) == 0) return random_line(p, "cache");
    int64_t count = random_between(p, facts->shuffled || facts->endless ? 0 : -1, 3);
    if (facts->most * (count < 0 ? 1 : count) > RANDOM_ELEMENTS_MAX) return;
    if (count < 0)
        facts->endless = true;
    else
        facts->most *= count;
    random_line(p, "repeat %lld", (long long)count);
}

/* Adds a second dataset, and a stage that combines the two. */
static inline void random_join(random_pipeline *p)
{
    random_facts *first = random_top(p);
    if (p->stack.count + 2 >= TEXT_STACK_MAX || p->stages + 3 > RANDOM_STAGES_MAX) return;
    int64_t kind = random_below(p, 3);
    const mr_element_spec *spec = mr_dataset_spec(p->stack.datasets[p->stack.count - 1]);
    if (kind == 0 && !first->shuffled && spec->count < 4) {
        random_source(p);
        return random_line(p, "zip");
    }
    /* The other stages require equal structures. */
    if (!random_is_scalar(spec)) return;
    random_line(p, "range 100 %lld 2", (long long)random_between(p, 100, 130));
    if (kind == 1 || first->shuffled) {
        first->most += 15;
        return random_line(p, "concatenate");
    }
    if (!first->endless && random_below(p, 2) == 0) {
        first->most += 15;
        first->shuffled = true;
        return random_line(p, "sample");
    }
    int64_t choices = random_between(p, 0, 25);
    random_line(p, "range 0 %lld 1", (long long)choices);
    random_line(p, "map choice");
    random_line(p, "choose %lld", (long long)random_below(p, 2));
    *first = (random_facts){.most = choices};
}

/* Fills *p with a pipeline of at most RANDOM_STAGES_MAX stages, as text and as a dataset, which the caller frees. */
static inline mr_dataset *random_pipeline_make(random_pipeline *p, uint64_t seed)
{
    *p = (random_pipeline){.state = seed * 0x2545f4914f6cdd1du + 1};
    random_source(p);
    int64_t wanted = random_between(p, 2, RANDOM_STAGES_MAX);
    for (int tries = 0; p->stages < wanted && tries < 40 && !random_top(p)->closed; tries++) {
        const mr_element_spec *spec = mr_dataset_spec(p->stack.datasets[p->stack.count - 1]);
        bool ordered = !random_top(p)->shuffled;
        int64_t kind = random_below(p, 10);
        if (kind < 4)
            random_element_stage(p);
        else if (kind < 7 && ordered)
            random_order_stage(p, spec);
        else if (kind == 7)
            random_batch(p, spec);
        else if (kind == 8)
            random_repeat(p);
        else if (kind == 9 && random_is_scalar(spec) && !random_top(p)->endless && random_below(p, 2) == 0)
            random_line(p, "unique");
        else if (kind == 9)
            random_join(p);
    }
    return p->stack.datasets[0];
}

#endif
