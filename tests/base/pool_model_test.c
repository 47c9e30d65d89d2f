/* Model test of parallel loops: random sizes below, at and above the numbers of threads and pieces, up to the largest.
 * Every piece runs once, with the bounds that count and grain determine. Pools are created and freed, and loops run
 * from many threads and inside other loops. */
#include "base/pool.h"
#include "base/random.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>

constexpr int64_t PIECES_MAX = 130;

typedef struct pieces {
    int64_t count, grain, pieces;
    atomic_int times[PIECES_MAX];
    atomic_bool is_wrong;
} pieces;

static void run_piece(void *context, int64_t begin, int64_t end)
{
    pieces *p = context;
    int64_t piece = begin / p->grain;
    int64_t expected = p->count - begin > p->grain ? begin + p->grain : p->count;
    if (begin < 0 || begin % p->grain != 0 || piece >= p->pieces || end != expected) {
        atomic_store(&p->is_wrong, true);
        return;
    }
    atomic_fetch_add(&p->times[piece], 1);
}

/* False: a piece did not run exactly once, or an unexpected piece ran. */
static bool run_loop(mr_pool *pool, int64_t count, int64_t grain)
{
    pieces p = {.count = count, .grain = grain < 1 ? 1 : grain};
    p.pieces = count <= 0 ? 0 : count / p.grain + (count % p.grain != 0);
    CHECK(p.pieces <= PIECES_MAX);
    mr_pool_for(pool, count, grain, run_piece, &p);
    for (int64_t i = 0; i < PIECES_MAX; i++)
        if (p.times[i] != (i < p.pieces)) return false;
    return !p.is_wrong;
}

static bool run_random_loop(mr_pool *pool, mr_random *random)
{
    static const int64_t grains[] = {1, 2, 7, 64, (int64_t)1 << 32, INT64_MAX / 128, INT64_MAX};
    int64_t grain = grains[mr_random_below(random, 7)];
    int64_t most = INT64_MAX / grain < 128 ? INT64_MAX / grain : 128;
    int64_t count = grain * (int64_t)mr_random_below(random, (uint64_t)most + 1);
    int64_t extra = (int64_t)mr_random_below(random, 3) - 1;
    if (extra < 0 || count < INT64_MAX) count += extra;
    return run_loop(pool, count, grain);
}

TEST(a_pool_is_as_its_model)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 0, 0, 0x706f6f6c);
    for (int round = 0; round < 40; round++) {
        mr_pool *pool = nullptr;
        CHECK_OK(mr_pool_new(1 + round % 7, &pool, &error));
        for (int i = 0; i < 60; i++) CHECK(run_random_loop(pool, &random));
        mr_pool_free(pool);
    }
}

TEST(a_pool_takes_counts_and_grains_at_their_limits)
{
    static const int64_t counts[] = {INT64_MIN, -1, 0, 1, 2, INT64_MAX - 1, INT64_MAX};
    mr_error error = {0};
    mr_pool *pool = nullptr;
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 7; i++) {
        CHECK(run_loop(pool, counts[i], INT64_MAX));
        CHECK(run_loop(pool, counts[i], INT64_MAX / 2));
        CHECK(run_loop(pool, counts[i], INT64_MAX / 128));
        if (counts[i] > 2) continue;
        CHECK(run_loop(pool, counts[i], 0));
        CHECK(run_loop(pool, counts[i], INT64_MIN));
    }
    mr_pool_free(pool);
}

TEST(a_pool_has_between_one_thread_and_its_maximum)
{
    mr_error error = {0};
    mr_pool *pool = nullptr;
    static const int counts[] = {INT32_MIN, -1, 0};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_pool_new(counts[i], &pool, &error));
        CHECK_EQ(mr_pool_thread_count(pool), mr_processor_count());
        mr_pool_free(pool);
    }
}

typedef struct nest {
    mr_pool *pool;
    uint64_t number;
    atomic_int failures;
} nest;

static void run_inner(void *context, int64_t begin, int64_t end)
{
    nest *n = context;
    for (int64_t i = begin; i < end; i++) {
        mr_random random = mr_random_at(test_seed(), n->number, (uint64_t)i, 0x6e657374);
        if (!run_random_loop(n->pool, &random)) atomic_fetch_add(&n->failures, 1);
    }
}

static void *call(void *context)
{
    nest *n = context;
    for (int i = 0; i < 20; i++) mr_pool_for(n->pool, 12, 1 + i % 3, run_inner, n);
    return nullptr;
}

TEST(many_callers_of_nested_loops_run_every_piece_once)
{
    constexpr int CALLERS = 4;
    mr_error error = {0};
    for (int threads = 1; threads <= 4; threads++) {
        mr_pool *pool = nullptr;
        nest nests[CALLERS];
        pthread_t callers[CALLERS];
        CHECK_OK(mr_pool_new(threads, &pool, &error));
        for (int i = 0; i < CALLERS; i++) {
            nests[i] = (nest){.pool = pool, .number = (uint64_t)(threads * CALLERS + i)};
            CHECK(pthread_create(&callers[i], nullptr, call, &nests[i]) == 0);
        }
        for (int i = 0; i < CALLERS; i++) {
            CHECK(pthread_join(callers[i], nullptr) == 0);
            CHECK_EQ(nests[i].failures, 0);
        }
        mr_pool_free(pool);
    }
}
