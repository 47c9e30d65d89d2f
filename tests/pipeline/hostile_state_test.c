/* Manipulated states with a valid checksum: restore rejects or accepts them, and never crashes, hangs or reads out of
 * bounds. Run these tests under ASan and UBSan. Afterwards the original state can still be restored. */
#include "tests/pipeline/pipelines.h"

#include <millrace/record.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static const char *text_path(void)
{
    const char *path = test_path("lines.txt");
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr && fputs("one\ntwo\nthree\n\nfive\nsix\nseven\n", file) >= 0 && fclose(file) == 0);
    return path;
}

static mr_status three(void *context, void *state, mr_element *output, mr_error *error)
{
    (void)context;
    int64_t *next = state;
    if (*next == 20) return mr_fail(error, MR_OUT_OF_RANGE, "end");
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], 3 * (*next)++, error));
    output->count = 1;
    return MR_OK;
}

static mr_status open_three(void *context, uint64_t iteration, void **state, mr_error *error)
{
    (void)context, (void)iteration;
    *state = calloc(1, sizeof(int64_t));
    return *state != nullptr ? MR_OK : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
}

static void close_three(void *context, void *state)
{
    (void)context;
    free(state);
}

static const mr_generator threes = {.open = open_three, .next = three, .close = close_three};

static mr_dataset *generated(void)
{
    return mr_dataset_generator(&threes, nullptr, &one_int64);
}

static mr_status made(void *context, const mr_element *input, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    int64_t start = mr_tensor_int64s(&input->tensors[0])[0];
    *output = mr_dataset_shuffle(mr_dataset_range(start, start + 4, 1), .buffer_size = 2);
    return MR_OK;
}

static mr_status step(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                      mr_element *output, mr_error *error)
{
    (void)context, (void)error;
    next_state->tensors[0] = mr_tensor_ref(&state->tensors[0]);
    next_state->tensors[1] = mr_tensor_ref(&state->tensors[1]);
    next_state->count = 2;
    /* Reads a bool: any byte except 0 and 1 is undefined behavior. */
    bool flag = ((const bool *)state->tensors[0].data)[0];
    int64_t sum = mr_tensor_int64s(&input->tensors[0])[0] + flag;
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], sum, error));
    output->count = 1;
    return MR_OK;
}

static mr_dataset *scanned(mr_dataset *input)
{
    mr_error error = {0};
    mr_element state = {0};
    CHECK_OK(mr_element_init(&state, 2, &error));
    CHECK_OK(mr_tensor_init_copy(&state.tensors[0], MR_BOOL, MR_SHAPE(3), (bool[]){true, false, true}, &error));
    CHECK_OK(mr_tensor_init_strings(&state.tensors[1], MR_SHAPE(2),
                                    (mr_string[]){mr_string_from("a"), mr_string_from("bcd")}, &error));
    mr_dataset *d = mr_dataset_scan(input, &state, step, nullptr, &one_int64);
    mr_element_deinit(&state);
    return d;
}

static mr_status key(void *context, const mr_element *input, int64_t *result, mr_error *error)
{
    (void)context, (void)error;
    *result = mr_tensor_int64s(&input->tensors[0])[0] % 3;
    return MR_OK;
}

static mr_status group(void *context, int64_t which, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)context, (void)error;
    /* Only values of the key function are keys. */
    if (which < 0 || which > 2) test_fail(__FILE__, __LINE__, "key %lld", (long long)which);
    *output = window;
    return MR_OK;
}

static mr_dataset *bucketed(mr_dataset *input)
{
    return mr_dataset_bucket_by_sequence_length(input, key, nullptr, ((int64_t[]){1, 2}), 2, ((int64_t[]){2, 3, 4}));
}

static mr_dataset *rows(int64_t count)
{
    return mr_dataset_batch(mr_dataset_range(0, count, 1), 2);
}

enum { CHAINS = 26 };
static mr_dataset *chain(int which)
{
    const double halves[] = {0.4, 0.3, 0.3};
    mr_dataset *range = mr_dataset_range(0, 40, 1);
    switch (which) {
    case 0:
        return mr_dataset_repeat(mr_dataset_shuffle(range, .seed = 3), 2);
    case 1:
        return mr_dataset_shuffle(mr_dataset_repeat(range, 2), .buffer_size = 7);
    case 2:
        return mr_dataset_unique(range);
    case 3:
        return scanned(range);
    case 4:
        return mr_dataset_interleave(range, made, nullptr, &one_int64, .cycle_length = 3, .block_length = 2);
    case 5:
        return mr_dataset_flat_map(mr_dataset_unique(range), made, nullptr, &one_int64);
    case 6:
        return mr_dataset_group_by_window(range, key, group, nullptr, &one_int64, .window_size = 4);
    case 7:
        return mr_dataset_group_by_window(mr_dataset_unique(range), key, group, nullptr, &one_int64, .window_size = 4);
    case 8:
        return bucketed(mr_dataset_unbatch(mr_dataset_batch(mr_dataset_batch(range, 2), 2)));
    case 9:
        return mr_dataset_window(range, nullptr, nullptr, nullptr, .window_size = 4, .shift = 2, .stride = 2);
    case 10:
        return mr_dataset_window(mr_dataset_unique(range), nullptr, nullptr, nullptr, .window_size = 3, .shift = 5);
    case 11:
        return mr_dataset_sample_from_datasets(((mr_dataset *[]){range, mr_dataset_range(0, 9, 1), generated()}),
                                               nullptr, 3, .seed = 2);
    case 12:
        return mr_dataset_choose_from_datasets(((mr_dataset *[]){range, mr_dataset_range(0, 9, 1)}), 2,
                                               mr_dataset_repeat(mr_dataset_range(0, 2, 1), 9));
    case 13:
        mr_dataset_free(range);
        return mr_dataset_unbatch(rows(40));
    case 14:
        return mr_dataset_rejection_resample(range, key, nullptr, halves, 3);
    case 15:
        mr_dataset_free(range);
        return mr_dataset_shuffle(generated(), .buffer_size = 5);
    case 16:
        return mr_dataset_batch(mr_dataset_shuffle(mr_dataset_unique(range), .buffer_size = 5), 3);
    case 17:
        return mr_dataset_repeat(mr_dataset_cache(mr_dataset_unique(range), nullptr), 2);
    case 18:
        return mr_dataset_repeat(mr_dataset_cache(range, test_path("hostile.cache")), 2);
    case 19:
        mr_dataset_free(range);
        return mr_dataset_shuffle(mr_dataset_repeat(mr_dataset_text_lines(text_path()), 2), .buffer_size = 3);
    case 20:
        mr_dataset_free(range);
        return mr_dataset_text_lines(text_path());
    case 21:
        return mr_dataset_zip((mr_dataset *[]){range, generated(), mr_dataset_enumerate(generated(), INT64_MIN)}, 3);
    case 22:
        return mr_dataset_concatenate(mr_dataset_unique(range), mr_dataset_skip(generated(), 4));
    case 23:
        mr_dataset_free(range);
        return mr_dataset_shard(mr_dataset_repeat(generated(), 3), 3, 1);
    case 24:
        return mr_dataset_ignore_errors(mr_dataset_take(mr_dataset_repeat(mr_dataset_unique(range), 3), 70),
                                        .errors_max = 3);
    case 25:
        mr_dataset_free(range);
        return mr_dataset_batch(mr_dataset_padded_batch(scanned(generated()), 3), 2);
    default:
        mr_dataset_free(range);
        return nullptr;
    }
}

/* ---- Mutations ---- */

static uint64_t random_state;
static uint64_t draw(uint64_t limit)
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % limit;
}

enum { HEAD_BYTES = 24, STATE_BYTES_MAX = 4096 };

static void put_checksum(unsigned char *bytes, size_t size_bytes)
{
    uint32_t crc = mr_crc32c(0, bytes, size_bytes - 4);
    for (int i = 0; i < 4; i++) bytes[size_bytes - 4 + (size_t)i] = (unsigned char)(crc >> (8 * i));
}

/* Changes the bytes between the header and the checksum; returns the new size. */
static size_t mutate(unsigned char *bytes, size_t size_bytes)
{
    static const unsigned char huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    size_t body_bytes = size_bytes - HEAD_BYTES - 4, at = HEAD_BYTES + (size_t)draw(body_bytes);
    size_t left = size_bytes - 4 - at;
    switch (draw(6)) {
    case 0:
        bytes[at] = (unsigned char)(bytes[at] ^ (1u << draw(8)));
        return size_bytes;
    case 1:
        bytes[at] = (unsigned char)draw(256);
        return size_bytes;
    case 2:
        bytes[at] = (unsigned char)(bytes[at] + 1);
        return size_bytes;
    case 3: /* truncated */
        return at + 4;
    case 4: { /* a huge number of any number of bits replaces a byte */
        size_t more = 1 + (size_t)draw(sizeof huge - 1);
        memmove(bytes + at + more + 1, bytes + at + 1, left - 1);
        memcpy(bytes + at, huge + sizeof huge - 1 - more, more);
        bytes[at + more] = (unsigned char)draw(128);
        return size_bytes + more;
    }
    default: /* one byte less */
        memmove(bytes + at, bytes + at + 1, left - 1);
        return size_bytes - 1;
    }
}

static void restore_bytes(mr_iterator *iterator, const unsigned char *bytes, size_t size_bytes, mr_status *status)
{
    mr_error error = {0};
    mr_tensor state = {0};
    CHECK_OK(mr_tensor_init_string(&state, (mr_string){(const char *)bytes, size_bytes}, &error));
    *status = mr_iterator_restore(iterator, &state, &error);
    mr_tensor_deinit(&state);
}

static void check_chain(int which, int position, int rounds)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_tensor state = {0};
    mr_element element = {0};
    uint64_t rest[8] = {0}, again[8] = {0};
    mr_dataset *d = chain(which);
    /* There are few elements. A stage that exceeds this budget has trusted a manipulated number. */
    const mr_iterator_options options = {.size = sizeof options, .threads = 1, .budget_bytes = 1 << 20};
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    mr_dataset_free(d);
    for (int i = 0; i < position; i++) (void)mr_iterator_next(iterator, &element, nullptr);
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    mr_string good = mr_tensor_strings(&state)[0];
    CHECK(good.size_bytes < STATE_BYTES_MAX);
    int count = digests_of(iterator, rest, 8);
    for (int round = 0; round < rounds; round++) {
        unsigned char bytes[STATE_BYTES_MAX + 64];
        mr_status status = MR_OK;
        memcpy(bytes, good.data, good.size_bytes);
        size_t size_bytes = good.size_bytes;
        for (uint64_t times = 1 + draw(2); times > 0 && size_bytes > HEAD_BYTES + 5; times--)
            size_bytes = mutate(bytes, size_bytes);
        put_checksum(bytes, size_bytes);
        restore_bytes(iterator, bytes, size_bytes, &status);
        if (status != MR_OK && status != MR_INVALID_ARGUMENT && status != MR_RESOURCE_EXHAUSTED)
            test_fail(__FILE__, __LINE__, "chain %d: restore says %s", which, mr_status_name(status));
        for (int i = 0; i < 6; i++)
            if (mr_iterator_next(iterator, &element, nullptr) == MR_OUT_OF_RANGE) break;
        if (round % 16 != 0) continue;
        restore_bytes(iterator, (const unsigned char *)good.data, good.size_bytes, &status);
        CHECK_EQ(status, MR_OK);
        CHECK_EQ(digests_of(iterator, again, 8), count);
        CHECK(memcmp(rest, again, (size_t)count * sizeof *rest) == 0);
    }
    mr_element_deinit(&element);
    mr_tensor_deinit(&state);
    mr_iterator_free(iterator);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

TEST(hostile_states_are_refused_or_work)
{
    const int positions[] = {0, 1, 5, 11, 60};
    double start = seconds();
    alarm(60); /* ends a test that hangs */
    random_state = test_seed() * 1000;
    for (int pass = 0; pass < 5 && seconds() - start < 5; pass++)
        for (int which = 0; which < CHAINS; which++) check_chain(which, positions[pass], 120);
    alarm(0);
}

/* ---- States whose restore may take long ---- */

static void *cancel_soon(void *iterator)
{
    usleep(30'000);
    mr_iterator_cancel(iterator);
    return nullptr;
}

/* Positions that restore reaches by reading elements one by one: it can be cancelled. */
TEST(hostile_positions_can_be_cancelled)
{
    alarm(60);
    for (int which = 0; which < 3; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_tensor state = {0};
        mr_element element = {0};
        pthread_t thread;
        mr_dataset *endless = mr_dataset_repeat(mr_dataset_range(0, 40, 1), MR_INFINITE);
        mr_dataset *d = which == 0 ? mr_dataset_unique(endless)
                        : which == 1
                            ? mr_dataset_window(endless, nullptr, nullptr, nullptr, .window_size = 2, .shift = 1 << 20)
                            : mr_dataset_shuffle(mr_dataset_unbatch(mr_dataset_batch(endless, 2)), .buffer_size = 4);
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, &error));
        mr_dataset_free(d);
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        mr_string good = mr_tensor_strings(&state)[0];
        CHECK_EQ(pthread_create(&thread, nullptr, cancel_soon, iterator), 0);
        random_state = test_seed();
        double start = seconds();
        for (;;) {
            unsigned char bytes[STATE_BYTES_MAX + 64];
            mr_status status = MR_OK;
            memcpy(bytes, good.data, good.size_bytes);
            size_t size_bytes = mutate(bytes, good.size_bytes);
            put_checksum(bytes, size_bytes);
            restore_bytes(iterator, bytes, size_bytes, &status);
            if (status == MR_OK) status = mr_iterator_next(iterator, &element, &error);
            if (status == MR_CANCELLED) break;
            CHECK(seconds() - start < 20);
        }
        CHECK_EQ(pthread_join(thread, nullptr), 0);
        mr_element_deinit(&element);
        mr_tensor_deinit(&state);
        mr_iterator_free(iterator);
    }
    alarm(0);
}

/* Positions after the end of the data. */
TEST(hostile_positions_after_the_end_are_rejected)
{
    for (int which = 0; which < 2; which++) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_tensor state = {0};
        mr_status status = MR_OK;
        mr_dataset *d = which == 0 ? mr_dataset_batch(mr_dataset_range(0, 40, 1), 4) : mr_dataset_range(0, 10, 1);
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        mr_dataset_free(d);
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        unsigned char bytes[64];
        mr_string good = mr_tensor_strings(&state)[0];
        memcpy(bytes, good.data, good.size_bytes);
        for (int position = 9; position < 13; position++) {
            bytes[HEAD_BYTES] = (unsigned char)position;
            put_checksum(bytes, good.size_bytes);
            restore_bytes(iterator, bytes, good.size_bytes, &status);
            CHECK_EQ(status, position <= 10 ? MR_OK : MR_INVALID_ARGUMENT);
        }
        mr_tensor_deinit(&state);
        mr_iterator_free(iterator);
    }
}
