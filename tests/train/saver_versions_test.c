/* V1 checkpoints of a Saver, and sharded savers: what is written, kept, removed and restored. */
#include "tests/test.h"
#include <millrace/millrace.h>
#include <sys/stat.h>

typedef struct model {
    mr_graph *g;
    mr_variable w, table, r;
    mr_node *init;
    mr_session *session;
    mr_saver *saver;
} model;

static model build(float first, mr_checkpoint_version version, int32_t sharded)
{
    mr_error error = {0};
    model m = {.g = mr_graph_new()};
    const mr_initializer initial = {.kind = MR_INIT_CONSTANT, .scale = first};
    m.w = mr_get_variable(m.g, "w", MR_SHAPE(2, 3), .initializer = initial);
    mr_graph_push_device(m.g, "/device:CPU:0");
    m.table = mr_get_variable(m.g, "table", MR_SHAPE(5, 2), .initializer = initial,
                              .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 2});
    mr_graph_pop_device(m.g);
    m.r = mr_get_variable(m.g, "r", MR_SHAPE(4), .initializer = initial, .use_resource = true);
    m.init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, nullptr);
    m.saver = mr_saver_new(m.g, .max_to_keep = 2, .write_version = version, .sharded = sharded);
    CHECK_OK(mr_session_new(m.g, nullptr, &m.session, &error));
    CHECK_OK(mr_session_run(m.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, &error));
    return m;
}

static void end(model m)
{
    mr_saver_free(m.saver);
    mr_session_free(m.session);
    mr_graph_free(m.g);
}

static void check_all(model m, float expected)
{
    mr_error error = {0};
    mr_tensor values[3] = {0};
    CHECK_OK(mr_session_run(m.session, MR_NO_FEEDS, MR_OUTPUTS(m.w.value, m.table.value, m.r.value), values, nullptr, 0,
                            &error));
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < mr_tensor_count(&values[i]); j++)
            CHECK_NEAR((double)mr_tensor_floats(&values[i])[j], (double)expected, 0);
        mr_tensor_deinit(&values[i]);
    }
}

static bool exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

TEST(saver_writes_version_1)
{
    mr_error error = {0};
    char latest[4096];
    model m = build(2.5f, MR_CHECKPOINT_V1, 0), other = build(7, MR_CHECKPOINT_V2, 0);
    for (int step = 0; step < 4; step++) CHECK_OK(mr_saver_save(m.saver, m.session, test_path("model"), step, &error));
    CHECK(!exists(test_path("model-1")) && !exists(test_path("model-1.meta")));
    CHECK(exists(test_path("model-2")) && exists(test_path("model-2.meta")) && exists(test_path("model-3.meta")));
    CHECK(!exists(test_path("model-3.index")));
    CHECK_OK(mr_latest_checkpoint(test_directory(), latest, sizeof latest, &error));
    CHECK_STR(latest, test_path("model-3"));
    check_all(other, 7);
    CHECK_OK(mr_saver_restore(other.saver, other.session, latest, &error));
    check_all(other, 2.5f);
    /* Another Saver cleans the directory and continues the list, of both versions. */
    CHECK_OK(mr_saver_save(other.saver, other.session, test_path("model"), 4, &error));
    CHECK(exists(test_path("model-3")) && exists(test_path("model-3.meta")) && exists(test_path("model-4.index")));
    CHECK(!exists(test_path("model-2")));
    CHECK_OK(mr_saver_restore(m.saver, m.session, test_path("model-4"), &error));
    end(m);
    end(other);
}

TEST(saver_nodes_save_and_restore)
{
    for (int round = 0; round < 3; round++) {
        mr_error error = {0};
        const mr_checkpoint_version version = round == 2 ? MR_CHECKPOINT_V1 : MR_CHECKPOINT_V2;
        model m = build(3, version, round == 1), other = build(9, MR_CHECKPOINT_V2, round == 1);
        mr_feed feed = {.output = mr_graph_find_output(m.g, "save/Const")};
        mr_node *save = mr_graph_find(m.g, round == 1 ? "save/Identity" : "save/control_dependency");
        mr_node *restore = mr_graph_find(other.g, "save/restore_all");
        CHECK_OK(mr_tensor_init_string(&feed.value, mr_string_from(test_path("nodes-%d", round)), &error));
        CHECK_OK(mr_session_run(m.session, (mr_feeds){&feed, 1}, (mr_outputs){0}, nullptr, &save, 1, &error));
        feed.output = mr_graph_find_output(other.g, "save/Const");
        CHECK_OK(mr_session_run(other.session, (mr_feeds){&feed, 1}, (mr_outputs){0}, nullptr, &restore, 1, &error));
        check_all(other, 3);
        mr_tensor_deinit(&feed.value);
        if (round == 1) {
            CHECK(mr_graph_find(m.g, "save/SaveV2_1") != nullptr && mr_graph_find(m.g, "save/SaveV2_2") == nullptr);
            CHECK(mr_graph_find(m.g, "save/restore_shard_1") != nullptr);
            CHECK_STR(mr_node_device(mr_graph_find(m.g, "save/SaveV2")), "/device:CPU:0");
        }
        end(m);
        end(other);
    }
}

TEST(saver_refuses_versions)
{
    const struct {
        int32_t version, sharded;
        const char *message;
    } cases[] = {
        {2, 0, "write_version is 2"}, {0, 2, "sharded is 2"}, {1, 1, "V1 checkpoints are written as one file"}};
    for (size_t i = 0; i < 3; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        (void)mr_get_variable(g, "w", MR_SHAPE(2));
        mr_saver *saver =
            mr_saver_new(g, .write_version = (mr_checkpoint_version)cases[i].version, .sharded = cases[i].sharded);
        CHECK(mr_graph_status(g, &error) != MR_OK);
        CHECK_CONTAINS(error.message, cases[i].message);
        mr_saver_free(saver);
        mr_graph_free(g);
    }
}
