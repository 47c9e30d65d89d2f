/* Saver: the files that are written and kept, the files that a killed process leaves, and errors of restore. */
#include "records/checkpoint/checkpoint.h"
#include "tests/test.h"
#include <fcntl.h>
#include <millrace/millrace.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct saved {
    mr_graph *graph;
    mr_variable w, b;
    mr_node *init;
    mr_saver *saver;
    mr_session *session;
} saved;

static saved begin(mr_shape shape, int32_t max_to_keep)
{
    mr_error error = {0};
    saved s = {.graph = mr_graph_new()};
    s.w = mr_get_variable(s.graph, "layer/w", shape, (mr_initializer){.kind = MR_INIT_CONSTANT, .scale = 1.5f});
    s.b = mr_get_variable(s.graph, "b", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ZEROS});
    s.init = mr_initialize_variables(s.graph, MR_GLOBAL_VARIABLES, nullptr);
    s.saver = mr_saver_new(s.graph, .max_to_keep = max_to_keep);
    CHECK_OK(mr_session_new(s.graph, nullptr, &s.session, &error));
    return s;
}

static void initialize(saved *s)
{
    mr_error error = {0};
    CHECK_OK(mr_session_run(s->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &s->init, 1, &error));
}

static void end(saved *s)
{
    mr_saver_free(s->saver);
    mr_session_free(s->session);
    mr_graph_free(s->graph);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(saver_restores_what_it_saved)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(2, 2), 5);
    initialize(&s);
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(2, 2), (float[]){1, 2, 3, 4}, &error));
    CHECK_OK(mr_session_write_variable(s.session, s.w.ref, &value, &error));
    mr_tensor_deinit(&value);
    CHECK_OK(mr_saver_save(s.saver, s.session, test_path("run/model.ckpt"), 7, &error));
    end(&s);

    saved t = begin(MR_SHAPE(2, 2), 5);
    char latest[4096];
    CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
    CHECK_CONTAINS(latest, "model.ckpt-7");
    CHECK_OK(mr_saver_restore(t.saver, t.session, latest, &error));
    CHECK_OK(mr_session_read_variable(t.session, t.w.ref, &value, &error));
    for (int i = 0; i < 4; i++) CHECK_NEAR(mr_tensor_floats(&value)[i], i + 1, 0);
    mr_tensor_deinit(&value);
    CHECK(exists(test_path("run/model.ckpt-7.meta")));
    CHECK(mr_graph_find(t.graph, "save/restore_all") != nullptr);
    CHECK_STR(mr_node_op(mr_graph_find(t.graph, "save/SaveV2")), "SaveV2");
    end(&t);
}

TEST(saver_keeps_the_last_ones)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(3), 2);
    initialize(&s);
    for (int step = 0; step < 3; step++) CHECK_OK(mr_saver_save(s.saver, s.session, test_path("m.ckpt"), step, &error));
    end(&s);
    CHECK(!exists(test_path("m.ckpt-0.index")) && !exists(test_path("m.ckpt-0.meta")));
    CHECK(exists(test_path("m.ckpt-1.index")) && exists(test_path("m.ckpt-2.index")));
    /* Another process continues the same list of checkpoints. */
    saved t = begin(MR_SHAPE(3), 2);
    CHECK_OK(mr_saver_restore(t.saver, t.session, test_path("m.ckpt-2"), &error));
    CHECK_OK(mr_saver_save(t.saver, t.session, test_path("m.ckpt"), 3, &error));
    CHECK(!exists(test_path("m.ckpt-1.index")) && !exists(test_path("m.ckpt-1.data-00000-of-00001")));
    CHECK(exists(test_path("m.ckpt-2.index")) && exists(test_path("m.ckpt-3.index")));
    end(&t);
}

static void touch(const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file != nullptr);
    fclose(file);
}

TEST(saver_without_meta_graph_writes_the_values_alone)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(2), 5);
    mr_saver *saver = mr_saver_new(s.graph, .write_meta_graph = false);
    initialize(&s);
    CHECK_OK(mr_saver_save(saver, s.session, test_path("m.ckpt"), 3, &error));
    CHECK(exists(test_path("m.ckpt-3.index")) && !exists(test_path("m.ckpt-3.meta")));
    mr_saver_free(saver);
    end(&s);
}

TEST(saver_clears_what_a_killed_process_left)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(3), 5);
    initialize(&s);
    touch(test_path("m.ckpt-9.data-00000-of-00001.partial"));
    touch(test_path("m.ckpt-8.data-00000-of-00001"));
    touch(test_path("checkpoint.partial"));
    touch(test_path("other.partial"));
    CHECK_OK(mr_saver_save(s.saver, s.session, test_path("m.ckpt"), 10, &error));
    CHECK(!exists(test_path("m.ckpt-9.data-00000-of-00001.partial")));
    CHECK(!exists(test_path("m.ckpt-8.data-00000-of-00001")));
    CHECK(!exists(test_path("checkpoint.partial")));
    CHECK(exists(test_path("other.partial")));
    end(&s);
}

TEST(saver_restore_names_what_does_not_match)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(3), 5);
    initialize(&s);
    CHECK_OK(mr_saver_save(s.saver, s.session, test_path("m.ckpt"), -1, &error));
    end(&s);
    saved t = begin(MR_SHAPE(4), 5);
    CHECK_STATUS(mr_saver_restore(t.saver, t.session, test_path("m.ckpt"), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "layer/w is float [4] in the graph but float [3] in the checkpoint");
    CHECK_STATUS(mr_saver_restore(t.saver, t.session, test_path("none.ckpt"), &error), MR_NOT_FOUND);
    end(&t);
    saved u = {.graph = mr_graph_new()};
    mr_get_variable(u.graph, "extra", MR_SHAPE(1), (mr_initializer){0});
    u.saver = mr_saver_new(u.graph);
    CHECK_OK(mr_session_new(u.graph, nullptr, &u.session, &error));
    CHECK_STATUS(mr_saver_restore(u.saver, u.session, test_path("m.ckpt"), &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "extra");
    end(&u);
    char latest[64];
    CHECK_STATUS(mr_latest_checkpoint(test_path("nowhere"), latest, sizeof latest, &error), MR_NOT_FOUND);
}

TEST(saver_without_values_leaves_nothing)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(3), 5);
    CHECK_STATUS(mr_saver_save(s.saver, s.session, test_path("m.ckpt"), 1, &error), MR_FAILED_PRECONDITION);
    CHECK(!exists(test_path("m.ckpt-1.index")) && !exists(test_path("m.ckpt-1.data-00000-of-00001")));
    CHECK(!exists(test_path("m.ckpt-1.data-00000-of-00001.partial")) && !exists(test_path("checkpoint")));
    end(&s);
}

/* Saves rows first to end of "w", whose elements are 0 to 5, as a part of a checkpoint. */
static void save_rows(const char *path, int64_t first, int64_t end_row)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer = nullptr;
    mr_tensor rows = {0};
    float elements[] = {0, 1, 2, 3, 4, 5};
    mr_checkpoint_slice slice = {.rank = 2, .starts = {first, 0}, .lengths = {end_row - first, -1}};
    CHECK_OK(mr_tensor_init_copy(&rows, MR_FLOAT, MR_SHAPE(end_row - first, 2), elements + first * 2, &error));
    CHECK_OK(mr_checkpoint_writer_open(path, &writer, &error));
    CHECK_OK(mr_checkpoint_write_slice(writer, "w", MR_SHAPE(3, 2), &slice, &rows, &error));
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    mr_tensor_deinit(&rows);
}

static mr_status merge_parts(mr_ints present, bool allows_missing, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_output parts[3];
    for (int32_t i = 0; i < present.count; i++)
        parts[i] = mr_constant_string(g, test_path("temporary/part-%d", (int)present.items[i]));
    mr_node_builder b = mr_node_begin(g, "MergeV2Checkpoints", "merge");
    mr_node_add_input(&b, mr_pack(g, MR_OUTPUTS_OF(parts, present.count)));
    mr_node_add_input(&b, mr_constant_string(g, test_path("merged")));
    mr_node_set_bool(&b, "allow_missing_files", allows_missing);
    mr_node *merge = mr_node_finish(&b).node;
    mr_session *session = nullptr;
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    mr_status status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &merge, 1, error);
    mr_session_free(session);
    mr_graph_free(g);
    return status;
}

/* MergeV2Checkpoints, which a sharded Saver of TensorFlow runs: slices in several parts become one tensor. */
TEST(saver_merges_parts)
{
    mr_error error = {0};
    save_rows(test_path("temporary/part-0"), 0, 1);
    save_rows(test_path("temporary/part-1"), 1, 3);
    CHECK_STATUS(merge_parts(MR_INTS(0, 1, 2), false, &error), MR_NOT_FOUND);
    CHECK(!exists(test_path("merged.index")) && exists(test_path("temporary/part-1.index")));
    CHECK_OK(merge_parts(MR_INTS(0, 1, 2), true, &error));
    mr_checkpoint_reader *reader = nullptr;
    mr_tensor w = {0};
    CHECK_OK(mr_checkpoint_reader_open(test_path("merged"), &reader, &error));
    CHECK_OK(mr_checkpoint_read(reader, "w", &w, &error));
    for (int i = 0; i < 6; i++) CHECK_NEAR(mr_tensor_floats(&w)[i], i, 0);
    mr_tensor_deinit(&w);
    mr_checkpoint_reader_close(reader);
    CHECK(!exists(test_path("temporary")));
}

/* A checkpoint of each period stays, although max_to_keep would remove it. The periods begin with the saver, and a
 * checkpoint is as old as its index. */
TEST(saver_keeps_one_of_every_period)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(2), 5);
    mr_saver *saver = mr_saver_new(s.graph, .max_to_keep = 1, .keep_checkpoint_every_n_hours = 1);
    mr_session_free(s.session);
    CHECK_OK(mr_session_new(s.graph, nullptr, &s.session, &error));
    initialize(&s);
    const time_t now = time(nullptr);
    for (int step = 0; step < 5; step++) {
        char name[64], path[4096];
        CHECK_OK(mr_saver_save(saver, s.session, test_path("run/m"), step, &error));
        snprintf(name, sizeof name, "run/m-%d.index", step);
        snprintf(path, sizeof path, "%s", test_path("%s", name));
        /* Hours after the beginning: 0.5, 1.5, 1.7, 2.5, 2.6 */
        const double hours[] = {0.5, 1.5, 1.7, 2.5, 2.6};
        const struct timespec at = {.tv_sec = now + (time_t)(hours[step] * 3600)};
        CHECK(utimensat(AT_FDCWD, path, (const struct timespec[2]){at, at}, 0) == 0);
    }
    CHECK(!exists(test_path("run/m-0.index")));
    CHECK(exists(test_path("run/m-1.index")));
    CHECK(!exists(test_path("run/m-2.index")));
    CHECK(exists(test_path("run/m-3.index")) && exists(test_path("run/m-4.index")));
    mr_saver_free(saver);
    end(&s);
}

TEST(saver_refuses_wrong_paths_and_steps)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(3), 5);
    CHECK_STATUS(mr_saver_save(s.saver, s.session, test_path("m"), -2, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the step is -2, but must be at least -1");
    CHECK_STATUS(mr_saver_save(s.saver, s.session, test_path("m/"), 1, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "a checkpoint needs a name");
    CHECK_STATUS(mr_saver_save(s.saver, s.session, "", 1, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"\": a checkpoint needs a name");
    end(&s);
}

TEST(saver_refuses_wrong_options)
{
    static const char *const texts[] = {"keys has no effect without variables",
                                        "two variables with the key same",
                                        "keep_checkpoint_every_n_hours is -1",
                                        "variable 1 of the saver does not exist",
                                        "variable_count has no effect without variables",
                                        "every_n_hours has no effect if max_to_keep is 0"};
    for (int i = 0; i < 6; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_variable a = mr_get_variable(g, "a", MR_SHAPE(2)), b = mr_get_variable(g, "b", MR_SHAPE(2));
        const mr_output refs[] = {a.ref, i == 3 ? (mr_output){0} : b.ref};
        const char *const keys[] = {"same", "same"};
        mr_saver *saver = i == 0   ? mr_saver_new(g, .keys = keys)
                          : i == 1 ? mr_saver_new(g, .variables = refs, .variable_count = 2, .keys = keys)
                          : i == 2 ? mr_saver_new(g, .keep_checkpoint_every_n_hours = -1)
                          : i == 3 ? mr_saver_new(g, .variables = refs, .variable_count = 2)
                          : i == 4 ? mr_saver_new(g, .variable_count = 2)
                                   : mr_saver_new(g, .max_to_keep = 0, .keep_checkpoint_every_n_hours = 1);
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, texts[i]);
        mr_saver_free(saver);
        mr_graph_free(g);
    }
}

/* ---- Names of files and nodes, and other shapes ---- */

TEST(saver_pads_the_step)
{
    mr_error error = {0};
    saved s = begin(MR_SHAPE(2), 5);
    mr_saver *saver = mr_saver_new(s.graph, .max_to_keep = 2, .pad_step_number = true, .name = "other");
    CHECK_OK(mr_graph_status(s.graph, &error));
    CHECK(mr_graph_find(s.graph, "other/restore_all") != nullptr);
    mr_session_free(s.session);
    CHECK_OK(mr_session_new(s.graph, nullptr, &s.session, &error));
    initialize(&s);
    const int64_t steps[] = {0, 42, 1234567890};
    for (int i = 0; i < 3; i++) CHECK_OK(mr_saver_save(saver, s.session, test_path("m"), steps[i], &error));
    CHECK(!exists(test_path("m-00000000.index"))); /* max_to_keep */
    CHECK(exists(test_path("m-00000042.index")) && exists(test_path("m-1234567890.meta")));
    CHECK_OK(mr_saver_save(saver, s.session, test_path("m"), -1, &error));
    CHECK(exists(test_path("m.index")) && !exists(test_path("m-00000042.index")));
    mr_saver_free(saver);
    end(&s);
}

TEST(saver_reshapes)
{
    mr_error error = {0};
    for (int kind = 0; kind < 4; kind++) {
        saved s = begin(MR_SHAPE(6), 5);
        initialize(&s);
        CHECK_OK(mr_saver_save(s.saver, s.session, test_path("m"), 1, &error));
        end(&s);
        mr_graph *g = mr_graph_new();
        mr_variable w =
            mr_get_variable(g, "layer/w", kind == 3 ? MR_SHAPE(2, 4) : MR_SHAPE(2, 3), .use_resource = kind == 1);
        mr_saver *saver = mr_saver_new(g, .reshape = kind != 2);
        mr_session *session = nullptr;
        mr_tensor value = {0};
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        mr_status status = mr_saver_restore(saver, session, test_path("m-1"), &error);
        CHECK_EQ(status, kind < 2 ? MR_OK : MR_INVALID_ARGUMENT);
        if (status != MR_OK) CHECK_CONTAINS(error.message, "but float [6] in the checkpoint");
        if (status == MR_OK) {
            CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(w.value), &value, nullptr, 0, &error));
            CHECK_EQ(value.shape.rank, 2);
            mr_tensor_deinit(&value);
            mr_node *restore = mr_graph_find(g, "save/restore_all"); /* the nodes do the same */
            mr_tensor path = {0};
            CHECK_OK(mr_tensor_init_string(&path, mr_string_from(test_path("m-1")), &error));
            CHECK_OK(mr_session_run(session, MR_FEEDS({mr_graph_find_output(g, "save/Const"), path}), (mr_outputs){0},
                                    nullptr, &restore, 1, &error));
            mr_tensor_deinit(&path);
        }
        mr_saver_free(saver);
        mr_session_free(session);
        mr_graph_free(g);
    }
    mr_graph *g = mr_graph_new();
    mr_output any = mr_placeholder(g, MR_FLOAT);
    (void)mr_variable_new(g, "any", any, .any_shape = true);
    mr_saver_free(mr_saver_new(g, .reshape = true));
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "reshape needs the shape of the variable any");
    mr_graph_free(g);
}
