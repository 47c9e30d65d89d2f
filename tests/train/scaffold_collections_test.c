/* Scaffolds find their parts in the collections of a graph, also of an imported one, and store those that they
 * create. */
#include "tests/train/monitored.h"

#include "graph/ir/graph.h"

static mr_monitored_session *open_session(mr_graph *g, const char *directory)
{
    mr_error error = {0};
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_training_session_new(
        g, MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = directory, .save_checkpoint_steps = 1),
        &session, &error));
    return session;
}

static void close_session(mr_monitored_session *session)
{
    mr_error error = {0};
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
}

static mr_graph *import(mr_graph *from)
{
    mr_error error = {0};
    mr_tensor meta = {0};
    CHECK_OK(mr_graph_export_meta(from, &meta, &error));
    mr_graph *g = mr_graph_new();
    const mr_string bytes = mr_tensor_strings(&meta)[0];
    CHECK_OK(mr_graph_import_meta(g, bytes.data, bytes.size_bytes, &error));
    mr_tensor_deinit(&meta);
    return g;
}

static const char *const parts[] = {"init_op", "local_init_op", "ready_op", "ready_for_local_init_op", "summary_op"};

TEST(scaffolds_store_their_parts_and_use_them_again)
{
    mr_error error = {0};
    model m = build();
    const char *directory = test_path("run");
    mr_monitored_session *session = open_session(m.graph, directory);
    const int32_t count = mr_graph_node_count(m.graph);
    CHECK_OK(run(session, &m, &error));
    close_session(session);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) CHECK_EQ(mr_graph_collection_count(m.graph, parts[i]), 1);
    session = open_session(m.graph, directory); /* of the same graph */
    CHECK_OK(run(session, &m, &error));
    CHECK(value_of(session, m.w) == 2.5f); /* 1 + 1 / 1 + 1 / 2 */
    close_session(session);
    CHECK_EQ(mr_graph_node_count(m.graph), count);
    mr_graph *copy = import(m.graph); /* of an imported graph */
    const mr_variable w = mr_graph_variable(copy, MR_TRAINABLE_VARIABLES, 0);
    mr_node *train = mr_graph_find(copy, mr_node_name(m.train));
    session = open_session(copy, directory);
    CHECK_OK(mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
    CHECK_NEAR((double)value_of(session, w), 2.5 + 1 / 3.0, 1e-6);
    close_session(session);
    CHECK_EQ(mr_graph_node_count(copy), count);
    mr_graph_free(copy);
    mr_graph_free(m.graph);
}

/* A node that sets w, in the collection. */
static void add_init(const model *m, float value)
{
    mr_node *all[] = {m->step.initializer, mr_variable_assign(m->graph, m->w, mr_constant_float(m->graph, value)).node};
    mr_graph_add_to_collection(m->graph, "init_op", (mr_output){mr_group(m->graph, all, 2, "my_init"), 0});
}

TEST(scaffolds_refuse_several_items_and_supervisors_take_the_first)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    mr_supervisor *supervisor = nullptr;
    mr_session *supervised = nullptr;
    mr_tensor value = {0};
    add_init(&m, 7);
    CHECK_OK(mr_monitored_session_new(m.graph, nullptr, &session, &error));
    CHECK(value_of(session, m.w) == 7);
    close_session(session);
    add_init(&m, 8);
    CHECK_STATUS(mr_monitored_session_new(m.graph, nullptr, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "scaffold: the collection init_op has 2 items; pass one of them as init_op");
    CHECK_OK(mr_supervisor_new(m.graph, nullptr, &supervisor, &error));
    CHECK_OK(mr_supervisor_open_session(supervisor, nullptr, &supervised, &error));
    CHECK_OK(mr_session_read_variable(supervised, m.w.ref, &value, &error));
    CHECK(mr_tensor_floats(&value)[0] == 7);
    mr_tensor_deinit(&value);
    mr_supervisor_free(supervisor);
    const int32_t count = mr_graph_node_count(m.graph); /* finalized, and complete for another supervisor */
    CHECK_OK(mr_supervisor_new(m.graph, nullptr, &supervisor, &error));
    mr_supervisor_free(supervisor);
    CHECK_EQ(mr_graph_node_count(m.graph), count);
    mr_graph_free(m.graph);
}

TEST(scaffolds_check_what_they_find)
{
    mr_error error = {0};
    mr_monitored_session *session = nullptr;
    for (int i = 0; i < 3; i++) {
        static const char *const messages[] = {"scaffold: ready_op is float, not a vector of strings",
                                               "scaffold: ready_for_local_init_op is float, not a vector of strings",
                                               "scaffold: summary is float, not a serialized summary"};
        model m = build();
        mr_graph_add_to_collection(m.graph, parts[i + 2], m.loss);
        CHECK_STATUS(mr_monitored_session_new(m.graph, nullptr, &session, &error), MR_INVALID_ARGUMENT);
        CHECK_STR(error.message, messages[i]);
        mr_graph_free(m.graph);
    }
}

/* What "savers" has: bytes that are no CollectionDef, no SaverDef, a SaverDef of other nodes, an empty list. */
TEST(scaffolds_survive_savers_that_are_damaged)
{
    static const struct {
        const char *bytes;
        size_t size_bytes;
        mr_status status;
    } cases[] = {
        {"\xff\xff\xff", 3, MR_DATA_LOSS},
        {"\x12\x05\x0a\x03\xff\xff\xff", 7, MR_DATA_LOSS},
        {"\x12\x02\x0a\x00", 4, MR_OK},            /* a SaverDef without nodes */
        {"\x12\x07\x0a\x05\x12\x03w:0", 9, MR_OK}, /* one that saves nothing */
        {"\x12\x07\x0a\x05\x12\x03z:0", 9, MR_OK},
        {"\x12\x00", 2, MR_OK},
        {"\x0a\x03\x0a\x01w", 5, MR_OK}, /* nodes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_error error = {0};
        model m = build();
        mr_monitored_session *session = nullptr;
        mr_collection *savers = mr_graph_make_collection(m.graph, "savers", MR_COLLECTION_RAW);
        savers->raw = (const uint8_t *)cases[i].bytes;
        savers->raw_size_bytes = cases[i].size_bytes;
        const mr_status status = mr_monitored_session_new(m.graph, nullptr, &session, &error);
        if (status != cases[i].status)
            test_fail(__FILE__, __LINE__, "case %zu: %s: %s", i, mr_status_name(status), error.message);
        if (session != nullptr) close_session(session);
        mr_graph_free(m.graph);
    }
}
