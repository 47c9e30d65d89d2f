/* RunMetadata: the records of traced runs, the executed graph; and the reset of containers. */
#include "tests/test.h"

#include "graph/ir/graph.h"
#include "proto/proto.h"
#include "proto/run.pb-c.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static mr_error error;

static Mr__RunMetadata *unpack(const mr_tensor *bytes, mr_arena *arena)
{
    Mr__RunMetadata *metadata = nullptr;
    CHECK(bytes->dtype == MR_STRING && mr_tensor_count(bytes) == 1);
    CHECK_OK(mr_proto_unpack_as(run_metadata, mr_tensor_strings(bytes)[0], arena, &metadata, &error));
    return metadata;
}

/* The records whose label it is. */
static int count_label(const Mr__RunMetadata *metadata, const char *label)
{
    int count = 0;
    for (size_t i = 0; metadata->step_stats && i < metadata->step_stats->n_dev_stats; i++) {
        const Mr__DeviceStepStats *device = metadata->step_stats->dev_stats[i];
        CHECK(strcmp(device->device, "/job:localhost/replica:0/task:0/device:CPU:0") == 0);
        for (size_t j = 0; j < device->n_node_stats; j++) {
            const Mr__NodeExecStats *node = device->node_stats[j];
            CHECK(node->all_start_micros > 1500000000000000 && node->all_end_rel_micros >= node->op_end_rel_micros);
            count += strcmp(node->timeline_label, label) == 0;
        }
    }
    return count;
}

static const Mr__NodeDef *find_node(const Mr__GraphDef *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        if (strcmp(graph->node[i]->name, name) == 0) return graph->node[i];
    return nullptr;
}

typedef struct model {
    mr_graph *graph;
    mr_session *session;
    mr_output x, y;
} model;

/* y = (x + 2 · 3) · v */
static model make_model(void)
{
    model m = {.graph = mr_graph_new()};
    m.x = mr_placeholder(m.graph, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_output folded = mr_mul(m.graph, mr_constant_float(m.graph, 2), mr_constant_float(m.graph, 3), .name = "six");
    mr_output v = mr_variable_v2(m.graph, MR_FLOAT, .shape = MR_SHAPE(2), .name = "v");
    mr_output sum = mr_add_v2(m.graph, m.x, folded, .name = "sum");
    m.y = mr_mul(m.graph, sum, mr_identity(m.graph, v, .name = "read"), .name = "y");
    CHECK_OK(mr_session_new(m.graph, nullptr, &m.session, &error));
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(2), (float[]){1, 2}, &error));
    CHECK_OK(mr_session_write_variable(m.session, v, &value, &error));
    mr_tensor_deinit(&value);
    return m;
}

static void free_model(model *m)
{
    mr_session_free(m->session);
    mr_graph_free(m->graph);
}

static mr_status run_model(const model *m, mr_run_options options, float *first)
{
    mr_tensor fed = {0}, result = {0};
    mr_error own = {0}; /* other threads use the file's */
    CHECK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(2), (float[]){1, 1}, &own) == MR_OK);
    options.size = sizeof options;
    mr_status status =
        mr_session_run_with(m->session, &options, MR_FEEDS({m->x, fed}), MR_OUTPUTS(m->y), &result, nullptr, 0, &own);
    if (status == MR_OK) *first = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&fed);
    return status;
}

TEST(run_metadata_of_a_run)
{
    model m = make_model();
    mr_tensor bytes = {0};
    mr_arena arena = {0};
    float first = 0;
    CHECK_OK(run_model(&m, (mr_run_options){.metadata = &bytes}, &first));
    CHECK_EQ((int64_t)mr_tensor_strings(&bytes)[0].size_bytes, 0);
    mr_tensor_deinit(&bytes);
    CHECK_OK(
        run_model(&m, (mr_run_options){.metadata = &bytes, .trace = true, .output_partition_graphs = true}, &first));
    CHECK(first == 7);
    const Mr__RunMetadata *metadata = unpack(&bytes, &arena);
    CHECK_EQ((int)metadata->step_stats->n_dev_stats, 1);
    CHECK_EQ(count_label(metadata, "sum = AddV2(_arg_x_0_0, six)"), 1);
    CHECK_EQ(count_label(metadata, "y = Mul(sum, read)"), 1);
    const Mr__DeviceStepStats *device = metadata->step_stats->dev_stats[0];
    const Mr__NodeExecStats *last = device->node_stats[device->n_node_stats - 1];
    CHECK(strcmp(last->node_name, "y") == 0 && last->n_output == 1);
    CHECK_EQ(last->output[0]->tensor_description->allocation_description->requested_bytes, 8);
    CHECK_EQ(last->output[0]->tensor_description->shape->dim[0]->size, 2);

    CHECK_EQ((int)metadata->n_partition_graphs, 1);
    const Mr__GraphDef *graph = metadata->partition_graphs[0];
    CHECK(strcmp(find_node(graph, "six")->op, "Const") == 0 && strcmp(find_node(graph, "v")->op, "VariableV2") == 0);
    CHECK(strcmp(find_node(graph, "_arg_x_0_0")->op, "_Arg") == 0 && !find_node(graph, "x"));
    CHECK(strcmp(find_node(graph, "_retval_y_0_0")->input[0], "y") == 0);
    CHECK(strcmp(find_node(graph, "sum")->input[0], "_arg_x_0_0") == 0);
    CHECK(strcmp(find_node(graph, "y")->input[0], "sum") == 0);
    mr_arena_deinit(&arena);
    mr_tensor_deinit(&bytes);
    free_model(&m);
}

/* A run that fails reports nothing, and the flags do nothing without a tensor. */
TEST(run_metadata_of_a_failed_run)
{
    model m = make_model();
    mr_tensor bytes = {.dtype = MR_FLOAT}, result = {0};
    float first = 0;
    mr_run_options options = {.size = sizeof options, .metadata = &bytes, .trace = true};
    CHECK_EQ((int)mr_session_run_with(m.session, &options, MR_NO_FEEDS, MR_OUTPUTS(m.y), &result, nullptr, 0, &error),
             (int)MR_INVALID_ARGUMENT);
    CHECK(bytes.dtype == MR_DTYPE_INVALID && !bytes.buffer);
    CHECK_OK(run_model(&m, (mr_run_options){.trace = true, .output_partition_graphs = true}, &first));
    free_model(&m);
}

typedef struct worker {
    const model *model;
    mr_tensor bytes;
    mr_status status;
} worker;

static void *run_worker(void *context)
{
    worker *w = context;
    float first = 0;
    for (int i = 0; i < 20 && w->status == MR_OK; i++) {
        mr_tensor_deinit(&w->bytes);
        w->status = run_model(w->model, (mr_run_options){.metadata = &w->bytes, .trace = true}, &first);
    }
    return nullptr;
}

TEST(run_metadata_of_concurrent_runs)
{
    model m = make_model();
    worker workers[4] = {0};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i].model = &m;
        CHECK(pthread_create(&threads[i], nullptr, run_worker, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        mr_arena arena = {0};
        CHECK(pthread_join(threads[i], nullptr) == 0);
        CHECK_EQ((int)workers[i].status, (int)MR_OK);
        CHECK_EQ(count_label(unpack(&workers[i].bytes, &arena), "y = Mul(sum, read)"), 1);
        mr_arena_deinit(&arena);
        mr_tensor_deinit(&workers[i].bytes);
    }
    free_model(&m);
}

/* Makes an edge back to a merge, which a builder cannot. */
static void close_loop(mr_output merge, mr_output next)
{
    merge.node->inputs[1] = next;
    merge.node->graph->version++;
}

static mr_output enter(mr_graph *g, mr_output value, const char *name, bool is_constant)
{
    return mr_enter(g, value, .frame_name = "loop", .is_constant = is_constant, .name = name);
}

/* Each iteration of a loop has records; the graph has each node once, with the inputs that close the loop. */
TEST(run_metadata_of_a_loop)
{
    mr_graph *g = mr_graph_new();
    mr_output first = enter(g, mr_constant_int32(g, 0), "first", false);
    mr_output limit = enter(g, mr_placeholder(g, MR_INT32, .shape = MR_SCALAR, .name = "n"), "limit", true);
    mr_output one = enter(g, mr_constant_int32(g, 1), "one", true);
    mr_output i = mr_merge(g, MR_OUTPUTS(first, first), .name = "i").output;
    mr_output goes_on = mr_loop_cond(g, mr_less(g, i, limit, .name = "less"), .name = "goes_on");
    mr_switch_outputs ways = mr_switch(g, i, goes_on, .name = "ways");
    close_loop(i, mr_next_iteration(g, mr_add(g, ways.output_true, one, .name = "add"), .name = "next"));
    mr_output last = mr_exit(g, ways.output_false, .name = "last");
    mr_session *session = nullptr;
    mr_tensor count = {0}, result = {0}, bytes = {0};
    mr_arena arena = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_tensor_init_int32(&count, 1000, &error));
    mr_run_options options = {
        .size = sizeof options, .metadata = &bytes, .trace = true, .output_partition_graphs = true};
    mr_output n = mr_graph_find_output(g, "n");
    CHECK_OK(
        mr_session_run_with(session, &options, MR_FEEDS({n, count}), MR_OUTPUTS(last), &result, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_int32s(&result)[0], 1000);
    const Mr__RunMetadata *metadata = unpack(&bytes, &arena);
    CHECK_EQ(count_label(metadata, "less = Less(i, limit)"), 1001);
    int adds = 0;
    for (size_t j = 0; j < metadata->step_stats->dev_stats[0]->n_node_stats; j++)
        adds += strcmp(metadata->step_stats->dev_stats[0]->node_stats[j]->node_name, "add") == 0;
    CHECK_EQ(adds, 1000);
    const Mr__GraphDef *graph = metadata->partition_graphs[0];
    CHECK(strcmp(find_node(graph, "add")->input[0], "ways:1") == 0);
    CHECK(strcmp(find_node(graph, "i")->input[1], "next") == 0);
    CHECK(strcmp(find_node(graph, "last")->input[0], "ways") == 0);
    mr_arena_deinit(&arena);
    mr_tensor_deinit(&bytes);
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&count);
    mr_session_free(session);
    mr_graph_free(g);
}

/* ---- Reset ---- */

typedef struct stateful {
    mr_graph *graph;
    mr_session *session;
    mr_output first, second; /* variables, the second in the container "c" */
    mr_output size, dequeue;
    mr_node *enqueue, *close;
} stateful;

static bool has_value(const stateful *s, mr_output variable)
{
    mr_tensor value = {0};
    mr_status status = mr_session_read_variable(s->session, variable, &value, &error);
    mr_tensor_deinit(&value);
    CHECK(status == MR_OK || status == MR_FAILED_PRECONDITION);
    return status == MR_OK;
}

static mr_status fetch(const stateful *s, mr_output output, int32_t *value)
{
    mr_tensor result = {0};
    mr_status status = mr_session_run(s->session, MR_NO_FEEDS, MR_OUTPUTS(output), &result, nullptr, 0, nullptr);
    if (status == MR_OK) *value = mr_tensor_int32s(&result)[0];
    mr_tensor_deinit(&result);
    return status;
}

static mr_status run_node(const stateful *s, mr_node *node)
{
    return mr_session_run(s->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &node, 1, &error);
}

static void set_variables(const stateful *s)
{
    mr_tensor one = {0};
    CHECK_OK(mr_tensor_init_float(&one, 1, &error));
    CHECK_OK(mr_session_write_variable(s->session, s->first, &one, &error));
    CHECK_OK(mr_session_write_variable(s->session, s->second, &one, &error));
    mr_tensor_deinit(&one);
}

static stateful make_stateful(void)
{
    stateful s = {.graph = mr_graph_new()};
    s.first = mr_variable_v2(s.graph, MR_FLOAT, .shape = MR_SCALAR, .name = "first");
    s.second = mr_var_handle_op(s.graph, MR_FLOAT, .shape = MR_SCALAR, .container = "c", .name = "second");
    mr_output queue = mr_fifo_queue_v2(s.graph, .component_types = MR_DTYPES(MR_INT32), .name = "queue");
    s.enqueue = mr_queue_enqueue_v2(s.graph, queue, MR_OUTPUTS(mr_constant_int32(s.graph, 5)));
    s.close = mr_queue_close_v2(s.graph, queue);
    s.size = mr_queue_size_v2(s.graph, queue);
    (void)mr_queue_dequeue_v2(s.graph, queue, .component_types = MR_DTYPES(MR_INT32), .name = "dequeue");
    s.dequeue = mr_graph_find_output(s.graph, "dequeue");
    CHECK_OK(mr_session_new(s.graph, nullptr, &s.session, &error));
    set_variables(&s);
    CHECK_OK(run_node(&s, s.enqueue));
    CHECK_OK(run_node(&s, s.close));
    return s;
}

static void free_stateful(stateful *s)
{
    mr_session_free(s->session);
    mr_graph_free(s->graph);
}

TEST(session_reset_clears_containers)
{
    stateful s = make_stateful();
    int32_t value = 0;
    const char *const none[] = {"", "nosuch"}, *const c[] = {"c", "c"}, *const both[] = {"localhost", "c"};
    CHECK_OK(mr_session_reset(s.session, none, 2, &error));
    CHECK(has_value(&s, s.first) && has_value(&s, s.second));
    CHECK_OK(mr_session_reset(s.session, c, 2, &error));
    CHECK(has_value(&s, s.first) && !has_value(&s, s.second));
    CHECK_OK(fetch(&s, s.size, &value));
    CHECK_EQ(value, 1);
    set_variables(&s);
    CHECK_OK(mr_session_reset(s.session, nullptr, 0, &error)); /* as in TensorFlow, the default container */
    CHECK(!has_value(&s, s.first) && has_value(&s, s.second));
    CHECK_OK(fetch(&s, s.size, &value));
    CHECK_EQ(value, 0);
    CHECK_OK(run_node(&s, s.enqueue)); /* the queue is open again */
    CHECK_OK(fetch(&s, s.dequeue, &value));
    CHECK_EQ(value, 5);
    set_variables(&s);
    CHECK_OK(mr_session_reset(s.session, both, 2, &error));
    CHECK(!has_value(&s, s.first) && !has_value(&s, s.second));
    CHECK_EQ((int)mr_session_reset(nullptr, nullptr, 0, &error), (int)MR_INVALID_ARGUMENT);
    CHECK_EQ((int)mr_session_reset(s.session, nullptr, 1, &error), (int)MR_INVALID_ARGUMENT);
    CHECK_EQ((int)mr_session_reset(s.session, none, -1, &error), (int)MR_INVALID_ARGUMENT);
    free_stateful(&s);
}

/* A map of sparse tensors begins again; a mutex, and what GetSessionHandle keeps, are not contents of a container. */
TEST(session_reset_of_other_resources)
{
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_output shape = mr_pack(g, MR_OUTPUTS(mr_constant_int64(g, 2)));
    mr_output index = mr_pack(g, MR_OUTPUTS(mr_constant_int64(g, 0))), indices = mr_pack(g, MR_OUTPUTS(index));
    mr_output values = mr_constant_floats(g, MR_SHAPE(1), (float[]){1}, nullptr);
    mr_output handle = mr_add_sparse_to_tensors_map(g, indices, values, shape, .shared_name = "map");
    mr_output kept = mr_get_session_handle(g, values), lock = mr_mutex_lock(g, mr_mutex_v2(g));
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    for (int64_t i = 0; i < 6; i++) {
        mr_tensor results[3] = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(handle, kept, lock), results, nullptr, 0, &error));
        CHECK_EQ(mr_tensor_int64s(&results[0])[0], i % 2);
        for (int j = 0; j < 3; j++) mr_tensor_deinit(&results[j]);
        if (i % 2 == 1) CHECK_OK(mr_session_reset(session, nullptr, 0, &error));
    }
    mr_session_free(session);
    mr_graph_free(g);
}

static atomic_bool is_ending;

/* A run that begins during a reset is cancelled too: it begins again. */
static void *run_dequeue(void *context)
{
    int32_t value = 0;
    mr_status status;
    do status = fetch(context, ((stateful *)context)->dequeue, &value);
    while (status == MR_CANCELLED && !is_ending);
    return status == MR_CANCELLED ? context : nullptr;
}

/* A run that waits is a run in progress. */
TEST(session_reset_is_refused_during_a_run)
{
    stateful s = make_stateful();
    pthread_t thread;
    void *cancelled = nullptr;
    CHECK_OK(mr_session_reset(s.session, nullptr, 0, &error));
    set_variables(&s);
    CHECK(pthread_create(&thread, nullptr, run_dequeue, &s) == 0);
    mr_error reason = {0};
    while (mr_session_reset(s.session, nullptr, 0, &reason) == MR_OK) usleep(1000);
    CHECK_CONTAINS(reason.message, "while a run is in progress");
    is_ending = true;
    while (true) {
        mr_session_cancel(s.session);
        if (mr_session_reset(s.session, nullptr, 0, &reason) == MR_OK) break;
        usleep(1000);
    }
    CHECK(pthread_join(thread, &cancelled) == 0);
    CHECK(cancelled == &s);
    CHECK(!has_value(&s, s.first));
    free_stateful(&s);
}
