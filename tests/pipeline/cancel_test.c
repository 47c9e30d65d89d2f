/* Cancellation wakes every waiting thread, also in pipelines inside stages, and stops running work at the next row. */
#include "tests/kernels/images.h"
#include "tests/pipeline/pipelines.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* A map function that blocks at some elements until it is released. */
typedef struct hurdle {
    atomic_bool is_open, is_reached;
    atomic_int calls;
    int64_t stuck_at; /* blocks at this value and larger ones; -1: never */
} hurdle;

static mr_status pass(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)random, (void)error;
    hurdle *h = context;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    atomic_fetch_add(&h->calls, 1);
    if (h->stuck_at >= 0 && value >= h->stuck_at) {
        atomic_store(&h->is_reached, true);
        while (!atomic_load(&h->is_open)) (void)sched_yield();
    }
    output->count = 1;
    ((int64_t *)output->tensors[0].data)[0] = value;
    return MR_OK;
}

static mr_status some(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)input, (void)error;
    *output = mr_dataset_map(mr_dataset_range(0, 50, 1), pass, context, &one_int64);
    return MR_OK;
}

static mr_status keeps_odd(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)context, (void)error;
    *stays = mr_tensor_int64s(&input->tensors[0])[0] % 2 != 0;
    return MR_OK;
}

constexpr int SHAPES = 6;

static mr_dataset *nested(int shape, hurdle *h)
{
    mr_dataset *d = mr_dataset_repeat(mr_dataset_range(0, 1000, 1), MR_INFINITE);
    switch (shape) {
    case 0: /* the caller itself waits for the inner threads */
        return mr_dataset_interleave(d, some, h, &one_int64, .cycle_length = 4, .parallel = true);
    case 1:
        d = mr_dataset_interleave(d, some, h, &one_int64, .cycle_length = 3, .block_length = 2, .parallel = true);
        return mr_dataset_prefetch(mr_dataset_batch(d, 7), 2);
    case 2:
        d = mr_dataset_filter(mr_dataset_map(d, pass, h, &one_int64), keeps_odd, nullptr);
        return mr_dataset_batch(mr_dataset_shuffle(d, .buffer_size = 100, .seed = 5), 8);
    case 3:
        d = mr_dataset_take(mr_dataset_map(d, pass, h, &one_int64), 3000);
        return mr_dataset_repeat(mr_dataset_cache(d, nullptr), MR_INFINITE);
    case 4:
        d = mr_dataset_window(mr_dataset_map(d, pass, h, &one_int64), nullptr, nullptr, nullptr, .window_size = 5);
        return mr_dataset_prefetch(mr_dataset_unbatch(d), 4);
    default:
        d = mr_dataset_interleave(d, some, h, &one_int64, .parallel = true);
        d = mr_dataset_zip((mr_dataset *[]){d, mr_dataset_repeat(mr_dataset_range(0, 9, 1), MR_INFINITE)}, 2);
        return mr_dataset_batch(mr_dataset_shuffle(d, .buffer_size = 20), 3);
    }
}

static atomic_int delivered;

static void *consume(void *argument)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_status status;
    while ((status = mr_iterator_next(argument, &element, &error)) == MR_OK) atomic_fetch_add(&delivered, 1);
    mr_element_deinit(&element);
    return status == MR_CANCELLED ? argument : nullptr;
}

static mr_iterator *iterate(mr_dataset *dataset, int32_t threads)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
    mr_dataset_free(dataset);
    return iterator;
}

static void *nothing(void *argument)
{
    return argument;
}

static int threads_here(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != nullptr);
    while (readdir(tasks) != nullptr) count++;
    closedir(tasks);
    return count;
}

/* After cancel returns, each thread starts at most one more row. All threads must end, otherwise the test hangs. */
TEST(cancel_at_a_random_moment)
{
    constexpr int THREADS_MAX = 3 * 4 + 16 + 1; /* consecutive engines, datasets of a cycle, the consumer */
    pthread_t first;
    CHECK(pthread_create(&first, nullptr, nothing, nullptr) == 0); /* a sanitizer may start a thread of its own here */
    pthread_join(first, nullptr);
    int threads = threads_here();
    uint64_t draw = test_seed() * 0x9e3779b97f4a7c15u;
    for (int round = 0; round < 5 * SHAPES; round++) {
        hurdle h = {.stuck_at = -1};
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        int moment = (int)(draw >> 40) % 2000;
        mr_iterator *iterator = iterate(nested(round % SHAPES, &h), 1 + round % 4);
        pthread_t thread;
        void *result = nullptr;
        CHECK(pthread_create(&thread, nullptr, consume, iterator) == 0);
        while (atomic_load(&h.calls) < moment) (void)sched_yield();
        mr_iterator_cancel(iterator);
        int calls = atomic_load(&h.calls);
        pthread_join(thread, &result);
        CHECK(result == iterator);
        mr_error error = {0};
        mr_element element = {0};
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_CANCELLED);
        mr_iterator_free(iterator);
        CHECK(atomic_load(&h.calls) - calls <= THREADS_MAX);
        while (threads_here() > threads) (void)sched_yield();
    }
}

/* cancel returns before the blocked element is done; otherwise the test hangs. */
TEST(cancel_does_not_wait_for_a_stuck_element)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        /* Four datasets are open in shape 0, and the first element of each is delivered before the caller waits. */
        int before = shape == 0 ? 4 : 0;
        hurdle h = {.stuck_at = 20};
        atomic_store(&delivered, 0);
        mr_iterator *iterator = iterate(nested(shape, &h), 2);
        pthread_t thread;
        void *result = nullptr;
        CHECK(pthread_create(&thread, nullptr, consume, iterator) == 0);
        while (!atomic_load(&h.is_reached) || atomic_load(&delivered) < before) (void)sched_yield();
        mr_iterator_cancel(iterator);
        pthread_join(thread, &result);
        CHECK(result == iterator);
        atomic_store(&h.is_open, true);
        mr_iterator_free(iterator);
    }
}

typedef struct canceller {
    mr_iterator *iterator;
    int calls;
} canceller;

static mr_status cancel_at_5000(void *context, const mr_element *input, mr_random *random, mr_element *output,
                                mr_error *error)
{
    (void)random, (void)error;
    canceller *c = context;
    if (++c->calls == 5000) mr_iterator_cancel(c->iterator);
    output->count = 1;
    ((int64_t *)output->tensors[0].data)[0] = mr_tensor_int64s(&input->tensors[0])[0];
    return MR_OK;
}

TEST(cancel_stops_a_task_at_its_next_row)
{
    canceller c = {0};
    mr_dataset *d =
        mr_dataset_map(mr_dataset_range(0, 100000, 1), cancel_at_5000, &c, &one_int64, .num_parallel_calls = 1);
    c.iterator = iterate(mr_dataset_batch(d, 100000), 1);
    mr_error error = {0};
    mr_element element = {0};
    CHECK_STATUS(mr_iterator_next(c.iterator, &element, &error), MR_CANCELLED);
    mr_iterator_free(c.iterator);
    CHECK_EQ(c.calls, 5000);
}

typedef struct image_work {
    mr_iterator *iterator;
    atomic_int decoded;
} image_work;

static mr_status cancel_now(void *context, const mr_element *input, mr_random *random, mr_element *output,
                            mr_error *error)
{
    (void)random, (void)error;
    mr_iterator_cancel(((image_work *)context)->iterator);
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 1;
    return MR_OK;
}

static mr_status count_decoded(void *context, const mr_element *input, mr_random *random, mr_element *output,
                               mr_error *error)
{
    (void)random, (void)error;
    atomic_fetch_add(&((image_work *)context)->decoded, 1);
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 1;
    return MR_OK;
}

/* Decoding stops before the end of the image: the map function after the decoder is not called. */
TEST(cancel_stops_an_image_at_its_next_row)
{
    static unsigned char pixels[64 * 48];
    static const mr_element_spec bytes = {.count = 1, .dtypes = {MR_STRING}, .shapes = {{.rank = 0}}};
    static const mr_element_spec decoded = {
        .count = 1, .dtypes = {MR_UINT8}, .shapes = {{.rank = 3, .dims = {48, 64, 1}}}};
    test_bytes files[] = {test_encode_jpeg(pixels, 64, 48, &(test_jpeg_options){.channels = 1}),
                          test_png(64, 48, (test_png_options){PNG_COLOR_TYPE_GRAY, 8, false, false, false})};
    for (int i = 0; i < 2; i++) {
        image_work work = {0};
        mr_error error = {0};
        mr_tensor file = {0};
        mr_element element = {0};
        mr_string string = {(const char *)files[i].bytes, files[i].size_bytes};
        CHECK_OK(mr_tensor_init_string(&file, string, &error));
        mr_dataset *d = mr_dataset_map(mr_dataset_from_tensors(&file, 1), cancel_now, &work, &bytes, .own_input = true);
        d = mr_dataset_decode_image(d, .image = MR_OPTIONS(mr_image_options, .height = 48, .width = 64, .channels = 1,
                                                           .dtype = MR_UINT8, .crop = MR_CROP_NONE));
        d = mr_dataset_map(d, count_decoded, &work, &decoded, .own_input = true);
        work.iterator = iterate(d, 1);
        CHECK_STATUS(mr_iterator_next(work.iterator, &element, &error), MR_CANCELLED);
        mr_iterator_free(work.iterator);
        CHECK_EQ(atomic_load(&work.decoded), 0);
        mr_tensor_deinit(&file);
        free(files[i].bytes);
    }
}

/* ---- Loops that would not end ---- */

static mr_status drops_all(void *context, const mr_element *input, bool *stays, mr_error *error)
{
    (void)context, (void)input, (void)error;
    *stays = false;
    return MR_OK;
}

static mr_status nothing_for_it(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)input, (void)error;
    *output = mr_dataset_range(0, 0, 1);
    return MR_OK;
}

static mr_status nothing_of_it(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    *output = mr_dataset_take(window, 0);
    return MR_OK;
}

static mr_status one_key(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    (void)context, (void)input, (void)error;
    *key = 0;
    return MR_OK;
}

static mr_status group_of_it(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)key;
    return nothing_of_it(context, window, output, error);
}

static mr_status constant(void *context, const mr_element *input, mr_random *random, mr_element *output,
                          mr_error *error)
{
    MR_TRY(pass(context, input, random, output, error));
    ((int64_t *)output->tensors[0].data)[0] = 0;
    return MR_OK;
}

static mr_dataset *counted(hurdle *h)
{
    return mr_dataset_map(mr_dataset_repeat(mr_dataset_range(0, 1000, 1), MR_INFINITE), pass, h, &one_int64);
}

constexpr int LOOPS = 13;

/* After at most one element the pipeline computes indefinitely and delivers nothing more. */
static mr_dataset *loop(int which, hurdle *h)
{
    static const double target[] = {0, 1}, initial[] = {0.5, 0.5}, weights[] = {1, 1e-300};
    mr_dataset *d = counted(h), *none;
    switch (which) {
    case 0:
        return mr_dataset_filter(d, drops_all, nullptr);
    case 1:
        return mr_dataset_batch(mr_dataset_filter(d, drops_all, nullptr), 4);
    case 2:
        return mr_dataset_flat_map(d, nothing_for_it, nullptr, &one_int64);
    case 3:
        return mr_dataset_interleave(d, nothing_for_it, nullptr, &one_int64, .cycle_length = 3, .parallel = true);
    case 4:
        return mr_dataset_window(d, nothing_of_it, nullptr, &one_int64, .window_size = 3);
    case 5:
        return mr_dataset_group_by_window(d, one_key, group_of_it, nullptr, &one_int64, .window_size = 4);
    case 6:
        return mr_dataset_group_by_window(d, one_key, group_of_it, nullptr, &one_int64, .window_size = INT64_MAX);
    case 7:
        mr_dataset_free(d);
        d = mr_dataset_map(mr_dataset_repeat(mr_dataset_range(0, 9, 1), MR_INFINITE), constant, h, &one_int64);
        return mr_dataset_skip(mr_dataset_unique(d), 1);
    case 8: /* far more than are computed before it is cancelled */
        return mr_dataset_skip(mr_dataset_filter(d, keeps_odd, nullptr), (int64_t)1 << 50);
    case 9:
        return mr_dataset_shuffle(mr_dataset_filter(d, keeps_odd, nullptr), .buffer_size = 50000000, .seed = 1);
    case 10:
        return mr_dataset_rejection_resample(d, one_key, nullptr, target, 2, .initial_dist = initial);
    case 11: /* the first pass of a cache */
        return mr_dataset_cache(mr_dataset_flat_map(d, nothing_for_it, nullptr, &one_int64), nullptr);
    default: /* draws the exhausted input again and again */
        none = mr_dataset_map(mr_dataset_range(0, 1000, 1), pass, h, &one_int64);
        return mr_dataset_sample_from_datasets(((mr_dataset *[]){none, d}), weights, 2);
    }
}

/* Cancelled by another thread while it loops. All its threads must end, otherwise the test hangs. */
TEST(cancel_ends_loops_that_deliver_nothing)
{
    for (int which = 0; which < LOOPS; which++)
        for (int32_t threads = 1; threads < 3; threads++) {
            hurdle h = {.stuck_at = -1};
            mr_iterator *iterator = iterate(loop(which, &h), threads);
            pthread_t thread;
            void *result = nullptr;
            CHECK(pthread_create(&thread, nullptr, consume, iterator) == 0);
            while (atomic_load(&h.calls) < 1000) (void)sched_yield();
            mr_iterator_cancel(iterator);
            pthread_join(thread, &result);
            if (result != iterator) test_fail(__FILE__, __LINE__, "loop %d ended in itself", which);
            mr_iterator_free(iterator);
        }
}
