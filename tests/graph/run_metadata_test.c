/* RunMetadata: the records of traced runs, the executed graph; and the reset of containers. */
#include "tests/test.h"

#include "proto/proto.h"
#include "proto/run.pb-c.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>
#include <millrace/run.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

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
    mr_output v = mr_variable_v2(m.graph, MR_SHAPE(2), MR_FLOAT, .name = "v");
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
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(2), (float[]){1, 1}, nullptr));
    options.size = sizeof options;
    mr_status status = mr_session_run_with(m->session, &options, MR_FEEDS({m->x, fed}), MR_OUTPUTS(m->y), &result,
                                           nullptr, 0, &error);
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
    CHECK_OK(run_model(&m, (mr_run_options){.metadata = &bytes, .trace = true, .output_partition_graphs = true},
                       &first));
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

/* Each iteration of a loop is a call. */
TEST(run_metadata_of_a_loop)
{
    mr_graph *g = mr_graph_new();
    mr_output zero = mr_constant_int32(g, 0);
    mr_output enter = mr_enter(g, zero, "loop", .name = "enter");
    mr_node_builder merge = mr_node_begin(g, "Merge", "merge");
    (void)merge;
    (void)enter;
    mr_graph_free(g);
}

/* ---- Reset ---- */

typedef struct stateful {
    mr_graph *graph;
    mr_session *session;
    mr_output first, second; /* variables, the second in the container "c" */
    mr_output size;
    mr_node *init, *enqueue;
    mr_output dequeue;
} stateful;

static bool has_value(const stateful *s, mr_output variable)
{
    mr_tensor value = {0};
    mr_status status = mr_session_read_variable(s->session, variable, &value, &error);
    mr_tensor_deinit(&value);
    CHECK(status == MR_OK || status == MR_FAILED_PRECONDITION);
    return status == MR_OK;
}

static stateful make_stateful(void)
{
    stateful s = {.graph = mr_graph_new()};
    s.first = mr_variable_v2(s.graph, MR_SCALAR, MR_FLOAT, .name = "first");
    s.second = mr_var_handle_op(s.graph, MR_FLOAT, MR_SCALAR, .container = MR_STR("c"), .name = "second");
    mr_output one = mr_constant_float(s.graph, 1);
    mr_output queue = mr_fifo_queue_v2(s.graph, MR_DTYPES(MR_FLOAT), .name = "queue");
    s.enqueue = mr_queue_enqueue_v2(s.graph, queue, MR_OUTPUTS(one));
    s.size = mr_queue_size_v2(s.graph, queue);
    CHECK_OK(mr_session_new(s.graph, nullptr, &s.session, &error));
    return s;
}
