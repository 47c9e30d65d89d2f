/* Queues of every kind behave as in TensorFlow; coordinators, queue runners, input producers, readers and batches. */
#include "tests/test.h"

#include <millrace/queue.h>
#include <millrace/record.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_queue *queue_of(mr_queue_kind kind, int64_t capacity, int64_t min_after_dequeue)
{
    mr_error error = {0};
    mr_queue *queue = nullptr;
    mr_queue_options options = {.size = sizeof options,
                                .capacity = capacity,
                                .component_count = 1,
                                .dtypes = {MR_INT64},
                                .shapes = {MR_SCALAR},
                                .min_after_dequeue = min_after_dequeue,
                                .seed = kind == MR_QUEUE_RANDOM_SHUFFLE ? 7 : 0};
    if (kind == MR_QUEUE_PADDING_FIFO) options.shapes[0] = MR_SHAPE(-1);
    CHECK_OK(mr_queue_new(kind, &options, &queue, &error));
    return queue;
}

static mr_status put(mr_queue *queue, int64_t number)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_int64(&tensor, number, &error));
    mr_status status = mr_queue_enqueue(queue, &tensor, &error);
    mr_tensor_deinit(&tensor);
    return status;
}

static void put_row(mr_queue *queue, const int64_t *numbers, int64_t count, bool many)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_INT64, MR_SHAPE(count), numbers, &error));
    if (many)
        CHECK_OK(mr_queue_enqueue_many(queue, &tensor, &error));
    else
        CHECK_OK(mr_queue_enqueue(queue, &tensor, &error));
    mr_tensor_deinit(&tensor);
}

static int64_t get(mr_queue *queue)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_queue_dequeue(queue, &tensor, &error));
    int64_t number = mr_tensor_int64s(&tensor)[0];
    mr_tensor_deinit(&tensor);
    return number;
}

static void check_batch(mr_queue *queue, int64_t count, bool up_to, const int64_t *expected, int64_t expected_count)
{
    mr_error error = {0};
    mr_tensor batch = {0};
    if (up_to)
        CHECK_OK(mr_queue_dequeue_up_to(queue, count, &batch, &error));
    else
        CHECK_OK(mr_queue_dequeue_many(queue, count, &batch, &error));
    CHECK_EQ(mr_tensor_count(&batch), expected_count);
    for (int64_t i = 0; i < expected_count; i++) CHECK_EQ(mr_tensor_int64s(&batch)[i], expected[i]);
    mr_tensor_deinit(&batch);
}

TEST(a_fifo_queue_keeps_order_and_ends_when_closed)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_queue *queue = queue_of(MR_QUEUE_FIFO, 10, 0);
    put_row(queue, (int64_t[]){1, 2, 3, 4, 5}, 5, true);
    CHECK_EQ(mr_queue_size(queue), 5);
    CHECK_EQ(get(queue), 1);
    check_batch(queue, 2, false, (int64_t[]){2, 3}, 2);
    mr_queue_close(queue, false);
    CHECK(mr_queue_is_closed(queue));
    CHECK_EQ(put(queue, 9), MR_CANCELLED);
    CHECK_EQ(mr_queue_dequeue_many(queue, 3, &tensor, &error), MR_OUT_OF_RANGE);
    CHECK_STR(error.message, "FIFOQueue is closed and has insufficient elements (requested 3, current size 2)");
    check_batch(queue, 3, true, (int64_t[]){4, 5}, 2);
    CHECK_EQ(mr_queue_dequeue(queue, &tensor, &error), MR_OUT_OF_RANGE);
    CHECK_EQ(mr_queue_dequeue_up_to(queue, 3, &tensor, &error), MR_OUT_OF_RANGE);
    mr_queue_unref(queue);
}

TEST(a_priority_queue_returns_the_smallest_first)
{
    mr_queue *queue = queue_of(MR_QUEUE_PRIORITY, 100, 0);
    int64_t in[] = {5, 3, 9, 1, 7, 3, 0, 8, 2};
    put_row(queue, in, 9, true);
    check_batch(queue, 9, false, (int64_t[]){0, 1, 2, 3, 3, 5, 7, 8, 9}, 9);
    mr_queue_unref(queue);
}

TEST(a_padding_queue_pads_to_the_longest)
{
    mr_queue *queue = queue_of(MR_QUEUE_PADDING_FIFO, 10, 0);
    put_row(queue, (int64_t[]){1}, 1, false);
    put_row(queue, (int64_t[]){2, 2, 2}, 3, false);
    put_row(queue, nullptr, 0, false);
    check_batch(queue, 3, false, (int64_t[]){1, 0, 0, 2, 2, 2, 0, 0, 0}, 9);
    mr_queue_unref(queue);
}

static void *get_one(void *queue)
{
    static int64_t number;
    number = get(queue);
    return &number;
}

TEST(a_shuffling_queue_keeps_some_until_it_is_closed)
{
    mr_queue *queue = queue_of(MR_QUEUE_RANDOM_SHUFFLE, 100, 3);
    put_row(queue, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7}, 8, true);
    int64_t sum = 0, in_order = 0;
    for (int i = 0; i < 5; i++) {
        int64_t number = get(queue);
        sum += number;
        in_order += number == i;
    }
    CHECK(in_order < 5);
    pthread_t waiter;
    void *number;
    CHECK(pthread_create(&waiter, nullptr, get_one, queue) == 0);
    CHECK_EQ(mr_queue_size(queue), 3);
    mr_queue_close(queue, false);
    CHECK(pthread_join(waiter, &number) == 0);
    sum += *(int64_t *)number;
    for (int i = 0; i < 2; i++) sum += get(queue);
    CHECK_EQ(sum, 28);
    mr_queue_unref(queue);
}

typedef struct pending {
    mr_queue *queue;
    int64_t number;
    mr_status status;
} pending;

static void *put_pending(void *context)
{
    pending *p = context;
    p->status = put(p->queue, p->number);
    return nullptr;
}

static void *take_three(void *context)
{
    mr_error error = {0};
    mr_tensor batch = {0};
    CHECK_OK(mr_queue_dequeue_many(context, 3, &batch, &error));
    mr_tensor_deinit(&batch);
    return nullptr;
}

TEST(waiting_calls_are_served_cancelled_or_admitted)
{
    /* A close lets waiting enqueues complete, and rejects later ones. */
    pthread_t thread;
    mr_queue *queue = queue_of(MR_QUEUE_FIFO, 1, 0);
    CHECK_EQ(put(queue, 1), MR_OK);
    pending p = {queue, 2, MR_INTERNAL};
    CHECK(pthread_create(&thread, nullptr, put_pending, &p) == 0);
    CHECK_EQ(get(queue), 1);
    CHECK_EQ(get(queue), 2);
    CHECK(pthread_join(thread, nullptr) == 0);
    CHECK_EQ(p.status, MR_OK);
    /* With capacity 0 no enqueue ever completes; a close that cancels ends it. */
    mr_queue *none = queue_of(MR_QUEUE_FIFO, 0, 0);
    p = (pending){none, 3, MR_OK};
    CHECK(pthread_create(&thread, nullptr, put_pending, &p) == 0);
    mr_queue_close(none, true);
    CHECK(pthread_join(thread, nullptr) == 0);
    CHECK_EQ(p.status, MR_CANCELLED);
    mr_queue_unref(none);
    /* A batch larger than the capacity. */
    CHECK(pthread_create(&thread, nullptr, take_three, queue) == 0);
    for (int64_t i = 0; i < 3; i++) CHECK_EQ(put(queue, i), MR_OK);
    CHECK(pthread_join(thread, nullptr) == 0);
    mr_queue_unref(queue);
}

TEST(bad_elements_and_options_are_refused)
{
    mr_error error = {0};
    mr_queue *queue = queue_of(MR_QUEUE_FIFO, 3, 0), *none = nullptr;
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_float(&tensor, 1, &error));
    CHECK_EQ(mr_queue_enqueue(queue, &tensor, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "FIFOQueue: component 0 is float, not int64");
    mr_tensor_deinit(&tensor);
    CHECK_OK(mr_tensor_init(&tensor, MR_INT64, MR_SHAPE(2), &error));
    CHECK_EQ(mr_queue_enqueue(queue, &tensor, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&tensor);
    mr_queue_unref(queue);
    mr_queue_options o = {
        .size = sizeof o, .capacity = 5, .component_count = 1, .dtypes = {MR_INT64}, .min_after_dequeue = 5};
    CHECK_EQ(mr_queue_new(MR_QUEUE_RANDOM_SHUFFLE, &o, &none, &error), MR_INVALID_ARGUMENT);
    o = (mr_queue_options){.size = sizeof o, .capacity = 5, .component_count = 1, .dtypes = {MR_FLOAT}};
    CHECK_EQ(mr_queue_new(MR_QUEUE_PRIORITY, &o, &none, &error), MR_INVALID_ARGUMENT);
}

/* ---- A million elements ---- */

constexpr int64_t MILLION = 1'000'000;
constexpr int THREADS = 2;

typedef struct crowd {
    mr_queue *queue;
    _Atomic int64_t next;
    unsigned char *seen;
    _Atomic int64_t twice;
} crowd;

static void *bring(void *context)
{
    crowd *c = context;
    for (int64_t i; (i = atomic_fetch_add(&c->next, 1)) < MILLION;) CHECK_EQ(put(c->queue, i), MR_OK);
    return nullptr;
}

static void *fetch(void *context)
{
    crowd *c = context;
    mr_error error = {0};
    mr_tensor tensor = {0};
    while (mr_queue_dequeue(c->queue, &tensor, &error) == MR_OK) {
        if (__atomic_exchange_n(&c->seen[mr_tensor_int64s(&tensor)[0]], 1, __ATOMIC_RELAXED) != 0)
            atomic_fetch_add(&c->twice, 1);
        mr_tensor_deinit(&tensor);
    }
    CHECK_EQ(error.status, MR_OUT_OF_RANGE);
    return nullptr;
}

TEST(a_million_elements_go_through_once_each)
{
    crowd c = {.queue = queue_of(MR_QUEUE_FIFO, 512, 0), .seen = calloc(MILLION, 1)};
    pthread_t bringers[THREADS], fetchers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&bringers[i], nullptr, bring, &c) == 0);
        CHECK(pthread_create(&fetchers[i], nullptr, fetch, &c) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(bringers[i], nullptr) == 0);
    mr_queue_close(c.queue, false);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(fetchers[i], nullptr) == 0);
    int64_t lost = 0;
    for (int64_t i = 0; i < MILLION; i++) lost += c.seen[i] == 0;
    CHECK_EQ(lost, 0);
    CHECK_EQ(c.twice, 0);
    mr_queue_unref(c.queue);
    free(c.seen);
}

/* ---- Coordinator and runners ---- */

static mr_status wait_for_stop(void *context, mr_coordinator *coordinator, mr_error *error)
{
    (void)context, (void)error;
    return mr_coordinator_wait_for_stop(coordinator, -1) ? MR_OK : MR_INTERNAL;
}

static mr_status fail_at_once(void *context, mr_coordinator *coordinator, mr_error *error)
{
    (void)coordinator;
    return mr_fail(error, *(const mr_status *)context, "because");
}

TEST(error_of_one_thread_stops_all_and_reaches_join)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    mr_status reasons[] = {MR_DATA_LOSS, MR_OUT_OF_RANGE};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(mr_coordinator_start(coordinator, &(mr_member){.run = wait_for_stop}, &error));
        CHECK_OK(mr_coordinator_start(coordinator, &(mr_member){.run = fail_at_once, .context = &reasons[i]}, &error));
        mr_status status = mr_coordinator_join(coordinator, -1, &error);
        CHECK_EQ(status, i == 0 ? MR_DATA_LOSS : MR_OK);
        if (i == 0) CHECK_STR(error.message, "because");
        CHECK(mr_coordinator_should_stop(coordinator));
        mr_coordinator_clear_stop(coordinator);
        CHECK(!mr_coordinator_wait_for_stop(coordinator, 0));
    }
    mr_coordinator_free(coordinator);
}

static mr_status sleep_on(void *context, mr_coordinator *coordinator, mr_error *error)
{
    (void)coordinator, (void)error;
    (void)get(context);
    return MR_OK;
}

TEST(members_that_do_not_stop_in_time_are_reported)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    mr_queue *queue = queue_of(MR_QUEUE_FIFO, 1, 0);
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    CHECK_OK(mr_coordinator_start(coordinator, &(mr_member){.run = sleep_on, .context = queue}, &error));
    mr_coordinator_request_stop(coordinator, nullptr);
    CHECK_EQ(mr_coordinator_join(coordinator, 1000, &error), MR_DEADLINE_EXCEEDED);
    CHECK_EQ(put(queue, 1), MR_OK);
    mr_coordinator_free(coordinator);
    mr_queue_unref(queue);
}

TEST(input_producers_deliver_complete_epochs)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    mr_queue *queue = nullptr;
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    CHECK_OK(mr_range_input_producer(5, MR_OPTIONS(mr_input_producer_options, .epochs = 3, .seed = 1), coordinator,
                                     &queue, &error));
    int64_t first[15];
    for (int epoch = 0; epoch < 3; epoch++) {
        int64_t seen = 0;
        for (int i = 0; i < 5; i++) seen |= 1 << (first[5 * epoch + i] = get(queue));
        CHECK_EQ(seen, 31);
    }
    CHECK(memcmp(first, first + 5, 5 * sizeof *first) != 0 || memcmp(first, first + 10, 5 * sizeof *first) != 0);
    mr_tensor tensor = {0};
    CHECK_EQ(mr_queue_dequeue(queue, &tensor, &error), MR_OUT_OF_RANGE);
    CHECK_OK(mr_coordinator_join(coordinator, -1, &error));
    mr_queue_unref(queue);
    /* A producer without an epoch limit, stopped from outside while it waits. */
    mr_coordinator_clear_stop(coordinator);
    CHECK_OK(mr_range_input_producer(5, MR_OPTIONS(mr_input_producer_options, .no_shuffle = true, .capacity = 2),
                                     coordinator, &queue, &error));
    for (int64_t i = 0; i < 12; i++) CHECK_EQ(get(queue), i % 5);
    mr_coordinator_request_stop(coordinator, nullptr);
    CHECK_OK(mr_coordinator_join(coordinator, -1, &error));
    mr_queue_unref(queue);
    mr_coordinator_free(coordinator);
}

/* ---- Readers ---- */

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(test_path("%s", name), "wb");
    CHECK(file != nullptr && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Keys (without their directory) and values of all records of a reader. */
static void check_reader(mr_reader_kind kind, const mr_reader_options *options, const char *expected)
{
    mr_error error = {0};
    mr_reader *reader = nullptr;
    mr_queue *names = nullptr;
    mr_tensor key = {0}, value = {0};
    char found[1024] = "";
    size_t length = 0;
    mr_queue_options o = {
        .size = sizeof o, .capacity = 9, .component_count = 1, .dtypes = {MR_STRING}, .shapes = {MR_SCALAR}};
    CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &o, &names, &error));
    const char *files[] = {"one.txt", "two.txt"};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(mr_tensor_init_string(&key, mr_string_from(test_path("%s", files[i])), &error));
        CHECK_OK(mr_queue_enqueue(names, &key, &error));
        mr_tensor_deinit(&key);
    }
    mr_queue_close(names, false);
    CHECK_OK(mr_reader_new(kind, options, &reader, &error));
    while (mr_reader_read(reader, names, &key, &value, &error) == MR_OK) {
        mr_string k = mr_tensor_strings(&key)[0], v = mr_tensor_strings(&value)[0];
        const char *base = memrchr(k.data, '/', k.size_bytes);
        length +=
            (size_t)snprintf(found + length, sizeof found - length, "%.*s=%.*s|",
                             (int)(k.size_bytes - (size_t)(base + 1 - k.data)), base + 1, (int)v.size_bytes, v.data);
        mr_tensor_deinit(&key);
        mr_tensor_deinit(&value);
    }
    CHECK_EQ(error.status, MR_OUT_OF_RANGE);
    CHECK_STR(found, expected);
    CHECK_EQ(mr_reader_work_units_completed(reader), 2);
    mr_reader_free(reader);
    mr_queue_unref(names);
}

TEST(readers_go_from_file_to_file)
{
    write_file("one.txt", "head\nab\ncd");
    write_file("two.txt", "head2\r\nef\n");
    check_reader(MR_READER_WHOLE_FILE, nullptr, "one.txt=head\nab\ncd|two.txt=head2\r\nef\n|");
    check_reader(MR_READER_TEXT_LINE, nullptr,
                 "one.txt:1=head|one.txt:2=ab|one.txt:3=cd|two.txt:1=head2|two.txt:2=ef|");
    check_reader(MR_READER_TEXT_LINE, MR_OPTIONS(mr_reader_options, .skip_header_lines = 1),
                 "one.txt:2=ab|one.txt:3=cd|two.txt:2=ef|");
    check_reader(MR_READER_FIXED_LENGTH, MR_OPTIONS(mr_reader_options, .record_bytes = 3, .header_bytes = 1),
                 "one.txt:0=ead|one.txt:1=\nab|one.txt:2=\ncd|two.txt:0=ead|two.txt:1=2\r\n|two.txt:2=ef\n|");
}

TEST(a_reader_reads_records_up_to_a_number)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(test_path("r.tfrecord"), nullptr, &writer, &error));
    for (int i = 0; i < 5; i++) CHECK_OK(mr_record_writer_append(writer, &(char){(char)('a' + i)}, 1, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_coordinator *coordinator = nullptr;
    mr_queue *names = nullptr;
    mr_reader *reader = nullptr;
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    const char *path = test_path("r.tfrecord");
    CHECK_OK(mr_string_input_producer(&path, 1, MR_OPTIONS(mr_input_producer_options, .epochs = 2), coordinator, &names,
                                      &error));
    CHECK_OK(mr_reader_new(MR_READER_TF_RECORD, nullptr, &reader, &error));
    static const int64_t expected[] = {3, 2, 3, 2};
    for (int i = 0; i < 4; i++) {
        mr_tensor keys = {0}, values = {0};
        CHECK_OK(mr_reader_read_up_to(reader, names, 3, &keys, &values, &error));
        CHECK_EQ(mr_tensor_count(&values), expected[i]);
        CHECK_EQ(mr_tensor_strings(&values)[0].data[0], i % 2 == 0 ? 'a' : 'd');
        mr_tensor_deinit(&keys);
        mr_tensor_deinit(&values);
    }
    CHECK_EQ(mr_reader_records_produced(reader), 10);
    mr_reader_free(reader);
    mr_queue_unref(names);
    CHECK_OK(mr_coordinator_join(coordinator, -1, &error));
    mr_coordinator_free(coordinator);
}

/* ---- Batches ---- */

typedef struct counting {
    int64_t next, end;
} counting;

static mr_status count_up(void *context, mr_element *output, mr_error *error)
{
    counting *c = context;
    if (c->next == c->end) return mr_fail(error, MR_OUT_OF_RANGE, "end");
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], c->next++, error);
}

static bool is_odd(void *context, const mr_element *element)
{
    (void)context;
    return mr_tensor_int64s(&element->tensors[0])[0] % 2 == 1;
}

static int64_t sum_of_batches(const mr_train_batch_options *options, int32_t producers, int64_t *batches)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    mr_queue *queue = nullptr;
    counting counters[2] = {{0, 50}, {50, 101}};
    mr_producer made[2] = {{count_up, &counters[0], nullptr}, {count_up, &counters[1], nullptr}};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    mr_element batch = {0};
    int64_t sum = 0;
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    CHECK_OK(mr_train_batch(made, producers, &spec, options, coordinator, &queue, &error));
    for (*batches = 0; mr_train_batch_next(queue, &batch, &error) == MR_OK; ++*batches)
        for (int64_t i = 0; i < mr_tensor_count(&batch.tensors[0]); i++) sum += mr_tensor_int64s(&batch.tensors[0])[i];
    CHECK_EQ(error.status, MR_OUT_OF_RANGE);
    mr_element_deinit(&batch);
    mr_queue_unref(queue);
    CHECK_OK(mr_coordinator_join(coordinator, -1, &error));
    mr_coordinator_free(coordinator);
    return sum;
}

TEST(batches_contain_all_elements_of_producers)
{
    int64_t batches;
    CHECK_EQ(sum_of_batches(MR_OPTIONS(mr_train_batch_options, .batch_size = 10), 1, &batches), 1225);
    CHECK_EQ(batches, 5);
    CHECK_EQ(sum_of_batches(MR_OPTIONS(mr_train_batch_options, .batch_size = 10, .allow_smaller_final_batch = true), 2,
                            &batches),
             5050);
    CHECK_EQ(batches, 11);
    CHECK_EQ(
        sum_of_batches(MR_OPTIONS(mr_train_batch_options, .batch_size = 7, .shuffle = true, .min_after_dequeue = 10,
                                  .seed = 4, .capacity = 20, .allow_smaller_final_batch = true),
                       2, &batches),
        5050);
    CHECK_EQ(batches, 15);
    CHECK_EQ(sum_of_batches(
                 MR_OPTIONS(mr_train_batch_options, .batch_size = 5, .keep = is_odd, .allow_smaller_final_batch = true),
                 2, &batches),
             2500);
}
