/* Model test of the CPU device's blocks: random sizes below, at and above every class limit and that of the heap,
 * blocks freed by other threads and after the device, and failing allocations. */
#include "base/device.h"
#include "base/random.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- One thread: which block is returned ---- */

constexpr int CLASSES_MAX = 80, BLOCKS_MAX = 64, SPARE_MAX = 4;
constexpr size_t KEPT_MIN_BYTES = (size_t)64 << 20;
#if __has_feature(address_sanitizer)
constexpr size_t SMALL_BYTES_MAX = SIZE_MAX;
#else
constexpr size_t SMALL_BYTES_MAX = (size_t)64 << 10; /* larger ones are those of the heap */
#endif

typedef struct class_model {
    size_t capacity_bytes;
    int count;
    mr_buffer *freed[1 << 12]; /* the last one freed is the next one allocated */
} class_model;

typedef struct model {
    class_model classes[CLASSES_MAX];
    int class_count;
    mr_buffer *spare[SPARE_MAX]; /* freed blocks of the smallest class that still count as live; also a stack */
    int spare_count;
    size_t live_bytes, live_max_bytes, kept_bytes;
    mr_buffer *blocks[BLOCKS_MAX];
    int block_count;
} model;

/* Capacities: 256, 320, 384, 448, 512, 640, … bytes: quarters between powers of two. */
static void model_init(model *m)
{
    *m = (model){0};
    for (size_t power = 256; m->class_count < CLASSES_MAX; power *= 2)
        for (size_t quarter = 0; quarter < 4 && m->class_count < CLASSES_MAX; quarter++)
            m->classes[m->class_count++].capacity_bytes = power + quarter * power / 4;
}

static class_model *class_of(model *m, size_t size_bytes)
{
    for (int i = 0; i < m->class_count; i++)
        if (size_bytes <= m->classes[i].capacity_bytes) return &m->classes[i];
    test_fail(__FILE__, __LINE__, "no class for %zu bytes", size_bytes);
}

static void forget_freed(model *m)
{
    for (int i = 0; i < m->class_count; i++) m->classes[i].count = 0;
    m->kept_bytes = 0;
}

static void touch(mr_buffer *block, size_t size_bytes)
{
    unsigned char *data = mr_buffer_data(block);
    CHECK_EQ(mr_buffer_size(block), size_bytes);
    CHECK_EQ((uintptr_t)data % 64, 0);
    if (size_bytes > 0) data[0] = data[size_bytes - 1] = 1;
}

/* The heap may return any memory that is free. */
static void allocate_large(model *m, mr_device *device, size_t size_bytes)
{
    mr_error error = {0};
    mr_buffer *block = nullptr;
    CHECK_OK(device->functions->allocate(device, size_bytes, &block, &error));
    touch(block, size_bytes);
    for (int i = 0; i < m->block_count; i++) {
        const char *from = mr_buffer_data(m->blocks[i]), *to = from + mr_buffer_size(m->blocks[i]);
        CHECK((const char *)mr_buffer_data(block) + size_bytes <= from || to <= (const char *)mr_buffer_data(block));
    }
    m->blocks[m->block_count++] = block;
}

/* fails: number of consecutive allocations of the C library that fail. */
static void model_allocate(model *m, mr_device *device, size_t size_bytes, int fails)
{
    mr_error error = {0};
    mr_buffer *block = nullptr;
    class_model *of = class_of(m, size_bytes);
    if (size_bytes > SMALL_BYTES_MAX) {
        allocate_large(m, device, size_bytes);
        return;
    }
    if (fails > 0) test_fail_allocations(test_allocations() + 1, fails);
    mr_status status = device->functions->allocate(device, size_bytes, &block, &error);
    if (fails > 0) test_fail_allocations(0, 0);
    bool is_spare = of == &m->classes[0] && m->spare_count > 0, is_kept = is_spare || of->count > 0;
    if (!is_kept && fails > 0) forget_freed(m);
    if (!is_kept && fails > 1) {
        CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
        CHECK(block == nullptr);
        /* Bytes whose allocation failed count towards the maximum. */
        if (m->live_bytes + of->capacity_bytes > m->live_max_bytes)
            m->live_max_bytes = m->live_bytes + of->capacity_bytes;
        return;
    }
    CHECK_OK(status);
    if (is_spare) {
        CHECK(block == m->spare[--m->spare_count]);
        touch(block, size_bytes);
        m->blocks[m->block_count++] = block;
        return;
    }
    if (is_kept) {
        CHECK(block == of->freed[--of->count]);
        m->kept_bytes -= of->capacity_bytes;
    }
    m->live_bytes += of->capacity_bytes;
    if (m->live_bytes > m->live_max_bytes) m->live_max_bytes = m->live_bytes;
    touch(block, size_bytes);
    m->blocks[m->block_count++] = block;
}

static void model_free(model *m, int which)
{
    mr_buffer *block = m->blocks[which];
    class_model *of = class_of(m, mr_buffer_size(block));
    const bool is_large = mr_buffer_size(block) > SMALL_BYTES_MAX;
    m->blocks[which] = m->blocks[--m->block_count];
    mr_buffer_unref(block);
    if (is_large) return;
    if (of == &m->classes[0] && m->spare_count < SPARE_MAX) {
        m->spare[m->spare_count++] = block;
        return;
    }
    m->live_bytes -= of->capacity_bytes;
    size_t most_bytes = 2 * m->live_max_bytes > KEPT_MIN_BYTES ? 2 * m->live_max_bytes : KEPT_MIN_BYTES;
    if (m->kept_bytes + of->capacity_bytes > most_bytes) return;
    CHECK(of->count < (int)(sizeof of->freed / sizeof of->freed[0]));
    of->freed[of->count++] = block;
    m->kept_bytes += of->capacity_bytes;
}

/* Near a class limit: mostly small, up to 24 MiB. */
static size_t draw_size(mr_random *random, int class_count)
{
    int most = mr_random_below(random, 8) == 0 ? class_count : 24;
    size_t power = (size_t)256 << mr_random_below(random, (uint64_t)most / 4);
    size_t limit_bytes = power + (size_t)mr_random_below(random, 4) * power / 4;
    if (mr_random_below(random, 12) == 0) return mr_random_below(random, 257);
    return limit_bytes + (size_t)mr_random_below(random, 3) - 1;
}

TEST(a_block_cache_is_as_its_model)
{
    static model m;
    bool can_fail = test_allocations() >= 0;
    for (uint64_t round = 0; round < 8; round++) {
        mr_error error = {0};
        mr_device *device = nullptr;
        mr_random random = mr_random_at(test_seed(), round, 0, 0x626c6f63);
        model_init(&m);
        CHECK_OK(mr_device_cpu_new(nullptr, &device, &error));
        int most = 1 + (int)mr_random_below(&random, BLOCKS_MAX);
        for (int i = 0; i < 4000; i++) {
            bool allocates = m.block_count == 0 || (m.block_count < most && mr_random_below(&random, 2) == 0);
            if (allocates)
                model_allocate(&m, device, draw_size(&random, 66),
                               can_fail && mr_random_below(&random, 40) == 0 ? 1 + (int)mr_random_below(&random, 2)
                                                                             : 0);
            else
                model_free(&m, (int)mr_random_below(&random, (uint64_t)m.block_count));
        }
        /* Blocks outlive the device. */
        if (round % 2 == 0) mr_device_free(device);
        for (int i = 0; i < m.block_count; i++) {
            touch(m.blocks[i], mr_buffer_size(m.blocks[i]));
            mr_buffer_unref(m.blocks[i]);
        }
        if (round % 2 == 1) mr_device_free(device);
    }
}

/* Each number of failures in a row: the block is there, or the error says so, and later blocks are. */
TEST(a_large_block_without_memory)
{
    if (test_allocations() < 0) return;
    for (int fails = 1; fails <= 6; fails++) {
        mr_error error = {0};
        mr_device *device = nullptr;
        mr_buffer *block = nullptr, *small = nullptr;
        CHECK_OK(mr_device_cpu_new(nullptr, &device, &error));
        CHECK_OK(device->functions->allocate(device, 1000, &small, &error));
        mr_buffer_unref(small); /* kept, and returned if memory lacks */
        test_fail_allocations(test_allocations() + 1, fails);
        const mr_status status = device->functions->allocate(device, (size_t)1 << 20, &block, &error);
        test_fail_allocations(0, 0);
        CHECK(status == MR_OK || (status == MR_RESOURCE_EXHAUSTED && !block && fails > 1));
        if (block) mr_buffer_unref(block);
        CHECK_OK(device->functions->allocate(device, (size_t)1 << 20, &block, &error));
        touch(block, (size_t)1 << 20);
        mr_device_free(device);
        mr_buffer_unref(block);
    }
}

TEST(a_block_cache_refuses_impossible_sizes)
{
    static const size_t sizes[] = {SIZE_MAX,        SIZE_MAX - 64,   PTRDIFF_MAX,    PTRDIFF_MAX / 4 + 1,
                                   PTRDIFF_MAX / 4, (size_t)1 << 60, (size_t)1 << 50};
    mr_error error = {0};
    mr_device *device = nullptr;
    CHECK_OK(mr_device_cpu_new(nullptr, &device, &error));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        mr_buffer *block = nullptr;
        CHECK_EQ(device->functions->allocate(device, sizes[i], &block, &error), MR_RESOURCE_EXHAUSTED);
        CHECK(block == nullptr);
    }
    mr_device_free(device);
}

/* ---- Several threads ---- */

constexpr int THREADS = 4, EXCHANGE = 16, HELD = 8;

typedef struct shared {
    mr_device *device;
    pthread_mutex_t mutex;
    mr_buffer *exchange[EXCHANGE];
    atomic_int device_users; /* the last one frees the device while blocks are still allocated */
    atomic_bool is_wrong;
} shared;

typedef struct worker {
    shared *shared;
    uint64_t number;
    pthread_t thread;
} worker;

/* Every byte identifies its block, so an overlap or a block that is returned twice is detected. */
static void mark(mr_buffer *block, uint64_t word)
{
    unsigned char *data = mr_buffer_data(block);
    for (size_t i = 0; i < mr_buffer_size(block); i++) data[i] = (unsigned char)(word >> 8 * (i % 8) ^ i / 8);
}

static bool is_marked(const mr_buffer *block)
{
    const unsigned char *data = mr_buffer_data(block);
    size_t size_bytes = mr_buffer_size(block);
    for (size_t i = 8; i < size_bytes; i++)
        if ((data[i] ^ (unsigned char)(i / 8)) != data[i % 8]) return false;
    return true;
}

static void give_up(shared *s, mr_buffer *block)
{
    if (!is_marked(block)) atomic_store(&s->is_wrong, true);
    mr_buffer_unref(block);
}

static void trade(worker *w, mr_random *random, mr_buffer **block)
{
    shared *s = w->shared;
    pthread_mutex_lock(&s->mutex);
    mr_buffer **place = &s->exchange[mr_random_below(random, EXCHANGE)];
    mr_buffer *other = *place;
    *place = *block;
    pthread_mutex_unlock(&s->mutex);
    *block = other;
}

static void *work(void *context)
{
    worker *w = context;
    shared *s = w->shared;
    mr_random random = mr_random_at(test_seed(), w->number, 1, 0x626c6f63);
    mr_buffer *held[HELD] = {0};
    int operations = test_is_sanitized() ? 3000 : 20000;
    for (int i = 0; i < operations; i++) {
        mr_buffer **block = &held[mr_random_below(&random, HELD)];
        switch (mr_random_below(&random, 4)) {
        case 0:
            if (*block != nullptr) give_up(s, *block);
            *block = nullptr;
            break;
        case 1:
            trade(w, &random, block);
            break;
        case 2:
            if (*block != nullptr) mr_buffer_unref(mr_buffer_ref(*block));
            break;
        default:
            if (*block != nullptr) break;
            const size_t most = mr_random_below(&random, 50) == 0 ? 300000 : 4099; /* also large ones */
            if (s->device->functions->allocate(s->device, draw_size(&random, 40) % most, block, nullptr) != MR_OK)
                atomic_store(&s->is_wrong, true);
            else
                mark(*block, mr_random_next64(&random));
        }
    }
    if (atomic_fetch_sub(&s->device_users, 1) == 1) mr_device_free(s->device);
    for (int i = 0; i < HELD; i++)
        if (held[i] != nullptr) give_up(s, held[i]);
    return nullptr;
}

TEST(a_block_cache_of_several_threads)
{
    for (uint64_t round = 0; round < 3; round++) {
        mr_error error = {0};
        shared s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .device_users = THREADS};
        worker workers[THREADS];
        CHECK_OK(mr_device_cpu_new(nullptr, &s.device, &error));
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){.shared = &s, .number = round * THREADS + (uint64_t)i};
            CHECK(pthread_create(&workers[i].thread, nullptr, work, &workers[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(workers[i].thread, nullptr) == 0);
        for (int i = 0; i < EXCHANGE; i++)
            if (s.exchange[i] != nullptr) give_up(&s, s.exchange[i]);
        CHECK(!s.is_wrong);
        pthread_mutex_destroy(&s.mutex);
    }
}
