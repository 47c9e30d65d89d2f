/* Queue runners of a graph: filled queues, the end of the data, errors, stops, exported and imported collections. */
#include "tests/test.h"

#include <millrace/millrace.h>

typedef struct fixture {
    mr_graph *graph;
    mr_output queue, next; /* of int64 */
    mr_node *enqueue;      /* enqueues 0, 1, … below the limit; then the data end */
    mr_node *init;
    mr_session *session;
    mr_coordinator *coordinator;
} fixture;

static fixture build(int64_t limit)
{
    fixture f = {.graph = mr_graph_new()};
    mr_graph *g = f.graph;
    f.queue = mr_fifo_queue_v2(g, .component_types = MR_DTYPES(MR_INT64), .capacity = 5, .name = "queue");
    mr_variable counter = mr_get_variable(g, "counter", MR_SCALAR, .dtype = MR_INT64,
                                          .initializer = {.kind = MR_INIT_ZEROS}, .use_resource = true);
    mr_output number = mr_resource_count_up_to(g, counter.ref, MR_INT64, .limit = limit);
    f.enqueue = mr_queue_enqueue_v2(g, f.queue, MR_OUTPUTS(number), .name = "enqueue");
    mr_output_range next = mr_queue_dequeue_v2(g, f.queue, .component_types = MR_DTYPES(MR_INT64), .name = "next");
    f.next = (mr_output){next.node, 0};
    f.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return f;
}

static void open_session(fixture *f)
{
    mr_error error = {0};
    CHECK_OK(mr_session_new(f->graph, nullptr, &f->session, &error));
    CHECK_OK(mr_coordinator_new(&f->coordinator, &error));
    CHECK_OK(mr_session_run(f->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &f->init, 1, &error));
}

static void deinit(fixture *f)
{
    mr_coordinator_free(f->coordinator);
    mr_session_free(f->session);
    mr_graph_free(f->graph);
}

static mr_status dequeue(const fixture *f, int64_t *value, mr_error *error)
{
    mr_tensor result = {0};
    MR_TRY(mr_session_run(f->session, MR_NO_FEEDS, MR_OUTPUTS(f->next), &result, nullptr, 0, error));
    *value = mr_tensor_int64s(&result)[0];
    mr_tensor_deinit(&result);
    return MR_OK;
}

static int start(const fixture *f, const char *collection)
{
    mr_error error = {0};
    int32_t threads = -1;
    CHECK_OK(mr_start_queue_runners(f->session, f->coordinator, collection, &threads, &error));
    return threads;
}

/* Each number is dequeued once, then the queue is closed. */
static void check_all_numbers(const fixture *f, int64_t limit)
{
    mr_error error = {0};
    int64_t sum = 0, value, count = 0;
    mr_status status;
    while ((status = dequeue(f, &value, &error)) == MR_OK) {
        sum += value;
        count++;
    }
    CHECK_EQ(status, MR_OUT_OF_RANGE);
    CHECK_EQ(count, limit);
    CHECK_EQ(sum, limit * (limit - 1) / 2);
    CHECK(!mr_coordinator_should_stop(f->coordinator));
    CHECK_OK(mr_coordinator_join(f->coordinator, -1, &error));
}

TEST(queue_runners_end_with_their_data)
{
    for (int threads = 1; threads <= 4; threads++) {
        fixture f = build(100);
        mr_node *const all[] = {f.enqueue, f.enqueue, f.enqueue, f.enqueue};
        mr_add_queue_runner(f.graph, f.queue, all, threads);
        open_session(&f);
        CHECK_EQ(start(&f, nullptr), threads);
        check_all_numbers(&f, 100);
        deinit(&f);
    }
}

TEST(queue_runners_that_run_are_not_started_again)
{
    mr_error error = {0};
    fixture f = build(INT64_MAX);
    mr_node *const both[] = {f.enqueue, f.enqueue};
    int64_t value;
    mr_add_queue_runner(f.graph, f.queue, both, 2);
    open_session(&f);
    CHECK_EQ(start(&f, nullptr), 2);
    CHECK_EQ(start(&f, nullptr), 0);
    CHECK_OK(dequeue(&f, &value, &error));
    mr_coordinator_request_stop(f.coordinator, nullptr);
    CHECK_OK(mr_coordinator_join(f.coordinator, -1, &error));
    CHECK_EQ(start(&f, nullptr), 2); /* they end at once: the stop remains */
    CHECK_OK(mr_coordinator_join(f.coordinator, -1, &error));
    deinit(&f);
}

/* Threads wait for a full queue, and the program for an empty one: a stop ends both. */
TEST(queue_runners_stop)
{
    mr_error error = {0};
    fixture f = build(INT64_MAX);
    mr_node *const all[] = {f.enqueue, f.enqueue, f.enqueue};
    int64_t value;
    mr_add_queue_runner(f.graph, f.queue, all, 3);
    open_session(&f);
    CHECK_EQ(start(&f, nullptr), 3);
    for (int i = 0; i < 20; i++) CHECK_OK(dequeue(&f, &value, &error));
    mr_coordinator_request_stop(f.coordinator, nullptr);
    CHECK_OK(mr_coordinator_join(f.coordinator, -1, &error));
    mr_status status = MR_OK;
    while (status == MR_OK) status = dequeue(&f, &value, &error);
    CHECK_EQ(status, MR_OUT_OF_RANGE);
    deinit(&f);
}

TEST(queue_runners_report_errors)
{
    mr_error error = {0};
    fixture f = build(10);
    mr_output fed = mr_placeholder(f.graph, MR_INT64, .shape = MR_SCALAR, .name = "unfed");
    mr_node *const bad[] = {mr_queue_enqueue_v2(f.graph, f.queue, MR_OUTPUTS(fed))};
    mr_add_queue_runner(f.graph, f.queue, bad, 1);
    open_session(&f);
    CHECK_EQ(start(&f, nullptr), 1);
    int64_t value;
    CHECK_STATUS(dequeue(&f, &value, &error), MR_OUT_OF_RANGE); /* the stop closes the queue */
    CHECK(mr_coordinator_should_stop(f.coordinator));
    CHECK_STATUS(mr_coordinator_join(f.coordinator, -1, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "unfed");
    deinit(&f);
}

/* OUT_OF_RANGE is an error of this one. */
TEST(queue_runners_have_their_own_end)
{
    mr_error error = {0};
    fixture f = build(3);
    mr_add_queue_runner(f.graph, f.queue, &f.enqueue, 1, .closed_statuses = (mr_status[]){MR_ABORTED},
                        .closed_status_count = 1, .collection = "mine");
    open_session(&f);
    CHECK_EQ(start(&f, nullptr), 0);
    CHECK_EQ(start(&f, "mine"), 1);
    int64_t value, count = 0;
    while (dequeue(&f, &value, &error) == MR_OK) count++;
    CHECK(count <= 3);
    CHECK(mr_coordinator_wait_for_stop(f.coordinator, -1));
    CHECK_OK(mr_coordinator_join(f.coordinator, -1, &error)); /* a clean stop */
    deinit(&f);
}

TEST(queue_runners_are_exported)
{
    mr_error error = {0};
    fixture f = build(50), copy = {.graph = mr_graph_new()};
    mr_node *const both[] = {f.enqueue, f.enqueue};
    mr_tensor meta = {0};
    mr_add_queue_runner(f.graph, f.queue, both, 1);
    mr_add_queue_runner(f.graph, f.queue, both, 1, .collection = "other");
    CHECK_OK(mr_graph_export_meta(f.graph, &meta, &error));
    const mr_string bytes = mr_tensor_strings(&meta)[0];
    CHECK_OK(mr_graph_import_meta(copy.graph, bytes.data, bytes.size_bytes, &error));
    mr_tensor_deinit(&meta);
    /* A second queue runner after the import. */
    copy.queue = mr_graph_find_output(copy.graph, "queue");
    copy.next = mr_graph_find_output(copy.graph, "next");
    copy.init = mr_graph_find(copy.graph, "init");
    mr_node *again = mr_queue_enqueue_v2(copy.graph, copy.queue, MR_OUTPUTS(mr_constant_int64(copy.graph, 0)));
    mr_add_queue_runner(copy.graph, copy.queue, &again, 1);
    open_session(&copy);
    CHECK_EQ(start(&copy, "other"), 1);
    check_all_numbers(&copy, 50);
    CHECK_EQ(start(&copy, nullptr), 2);
    CHECK(mr_coordinator_wait_for_stop(copy.coordinator, -1)); /* the queue is closed: MR_CANCELLED */
    CHECK_OK(mr_coordinator_join(copy.coordinator, -1, &error));
    deinit(&copy);
    mr_graph_free(f.graph);
}

static void check_refused(fixture f, const char *message)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(f.graph, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, message);
    mr_graph_free(f.graph);
}

TEST(queue_runners_refuse_mistakes)
{
    mr_error error = {0};
    fixture f = build(1), other = build(1);
    mr_node *const nothing[] = {nullptr};
    mr_add_queue_runner(f.graph, f.queue, &f.enqueue, 0);
    check_refused(f, "there is no enqueue operation");
    f = build(1);
    mr_add_queue_runner(f.graph, f.queue, nothing, 1);
    check_refused(f, "enqueue_ops[0] does not belong to the graph");
    f = build(1);
    mr_add_queue_runner(f.graph, f.queue, &other.enqueue, 1);
    check_refused(f, "enqueue_ops[0] does not belong to the graph");
    f = build(1);
    mr_add_queue_runner(f.graph, other.queue, &f.enqueue, 1);
    check_refused(f, "the queue does not belong to the graph");
    f = build(1);
    mr_add_queue_runner(f.graph, f.queue, &f.enqueue, 1, .cancel_op = other.enqueue);
    check_refused(f, "cancel_op does not belong to the graph");
    f = build(1);
    mr_add_queue_runner(f.graph, f.queue, &f.enqueue, 1, .collection = MR_GLOBAL_VARIABLES);
    check_refused(f, "collection variables does not contain queue runners");
    f = build(1);
    mr_add_queue_runner(f.graph, f.queue, &f.enqueue, 1, .closed_statuses = (mr_status[]){MR_OK},
                        .closed_status_count = 1);
    check_refused(f, "closed_statuses[0] is MR_OK");
    f = build(1);
    mr_add_queue_runner(f.graph, f.queue, &f.enqueue, 1, .closed_statuses = (mr_status[]){MR_ABORTED, (mr_status)99},
                        .closed_status_count = 2);
    check_refused(f, "closed_statuses[1] is not a status");
    mr_add_queue_runner(nullptr, f.queue, &f.enqueue, 1);

    open_session(&other);
    CHECK_STATUS(mr_start_queue_runners(nullptr, other.coordinator, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_start_queue_runners(other.session, nullptr, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_start_queue_runners(other.session, other.coordinator, MR_GLOBAL_VARIABLES, nullptr, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_OK(mr_start_queue_runners(other.session, other.coordinator, "none", nullptr, &error));
    deinit(&other);
}
