/* Options of a Saver and of one save: other files beside "checkpoint", graphs with other suffixes, savers that are
 * built later or are empty; the saver of an imported graph. */
#include "tests/train/refused.h"

#include <string.h>
#include <sys/stat.h>

typedef struct model {
    mr_graph *g;
    mr_variable w;
    mr_session *session;
    mr_saver *saver;
} model;

static model build(mr_saver *(*new_saver)(mr_graph *g))
{
    mr_error error = {0};
    model m = {.g = mr_graph_new()};
    m.w = mr_get_variable(m.g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    mr_node *init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, nullptr);
    m.saver = new_saver(m.g);
    CHECK_OK(mr_session_new(m.g, nullptr, &m.session, &error));
    CHECK_OK(mr_session_run(m.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    return m;
}

static mr_saver *keep_two(mr_graph *g)
{
    return mr_saver_new(g, .max_to_keep = 2);
}

static mr_saver *without_graph(mr_graph *g)
{
    return mr_saver_new(g, .write_meta_graph = false);
}

static void end(model m)
{
    mr_saver_free(m.saver);
    mr_session_free(m.session);
    mr_graph_free(m.g);
}

static bool exists(const char *path)
{
    struct stat about;
    return stat(test_path("%s", path), &about) == 0;
}

static mr_status save(model m, const char *name, int64_t step, const mr_saver_save_options *options, mr_error *error)
{
    return mr_saver_save_with(m.saver, m.session, test_path("%s", name), step, options, error);
}

TEST(savers_of_one_directory_have_a_file_each)
{
    mr_error error = {0};
    char path[4096];
    model m = build(keep_two);
    for (int step = 0; step < 3; step++) {
        CHECK_OK(save(m, "train", step, nullptr, &error));
        CHECK_OK(save(m, "best", step, MR_OPTIONS(mr_saver_save_options, .latest_filename = "best_latest"), &error));
    }
    CHECK_OK(mr_latest_checkpoint(test_directory(), path, sizeof path, &error));
    CHECK_STR(path, test_path("train-2"));
    CHECK_OK(mr_latest_checkpoint_in(test_directory(), "best_latest", path, sizeof path, &error));
    CHECK_STR(path, test_path("best-2"));
    CHECK_OK(mr_latest_checkpoint_in(test_directory(), nullptr, path, sizeof path, &error));
    CHECK_STR(path, test_path("train-2"));
    CHECK(!exists("train-0.index") && !exists("best-0.index") && exists("train-1.index") && exists("best-1.index"));
    CHECK_STATUS(mr_latest_checkpoint_in(test_directory(), "other", path, sizeof path, &error), MR_NOT_FOUND);
    const mr_names last = mr_saver_last_checkpoints(m.saver);
    CHECK_EQ(last.count, 2);
    CHECK_STR(last.items[0], test_path("best-1"));
    CHECK_STR(last.items[1], test_path("best-2"));
    end(m);
}

TEST(a_save_without_state_is_kept_and_not_named)
{
    mr_error error = {0};
    char path[4096];
    model m = build(keep_two);
    CHECK_EQ(mr_saver_last_checkpoints(m.saver).count, 0);
    CHECK_EQ(mr_saver_last_checkpoints(nullptr).count, 0);
    CHECK_OK(save(m, "m", 0, MR_OPTIONS(mr_saver_save_options, .no_state = true), &error));
    CHECK(!exists("checkpoint"));
    CHECK_STR(mr_saver_last_checkpoints(m.saver).items[0], test_path("m-0"));
    for (int step = 1; step < 5; step++) CHECK_OK(save(m, "m", step, nullptr, &error));
    CHECK(exists("m-0.index") && !exists("m-1.index") && !exists("m-2.index") && exists("m-3.index"));
    CHECK_OK(save(m, "m", 5, MR_OPTIONS(mr_saver_save_options, .no_state = true), &error));
    CHECK(exists("m-3.index")); /* nothing is removed */
    CHECK_OK(mr_latest_checkpoint(test_directory(), path, sizeof path, &error));
    CHECK_STR(path, test_path("m-4"));
    end(m);
}

TEST(graphs_have_another_suffix_or_are_left_out)
{
    mr_error error = {0};
    model m = build(keep_two);
    const mr_saver_save_options other = {.size = sizeof other, .meta_graph_suffix = "graph"};
    for (int step = 0; step < 3; step++) CHECK_OK(save(m, "m", step, &other, &error));
    CHECK(!exists("m-0.graph") && exists("m-1.graph") && exists("m-2.graph") && !exists("m-2.meta"));
    CHECK_OK(save(m, "m", 3, MR_OPTIONS(mr_saver_save_options, .no_meta_graph = true), &error));
    CHECK(!exists("m-3.meta") && exists("m-3.index"));
    end(m);
}

/* The attrs of a node of a written graph. */
static bool graph_has_attr(const char *path, const char *attr)
{
    mr_error error = {0};
    mr_tensor bytes = {0};
    CHECK_OK(mr_gfile_read(path, &bytes, &error));
    const mr_string text = mr_tensor_strings(&bytes)[0];
    const bool found = memmem(text.data, text.size_bytes, attr, strlen(attr)) != nullptr;
    mr_tensor_deinit(&bytes);
    return found;
}

TEST(default_attrs_are_stripped_from_graphs)
{
    mr_error error = {0};
    model m = build(keep_two);
    CHECK_OK(save(m, "all", 0, nullptr, &error));
    CHECK_OK(save(m, "less", 0, MR_OPTIONS(mr_saver_save_options, .strip_default_attrs = true), &error));
    struct stat all, less;
    CHECK(stat(test_path("all-0.meta"), &all) == 0 && stat(test_path("less-0.meta"), &less) == 0);
    CHECK(less.st_size < all.st_size);
    CHECK(graph_has_attr(test_path("less-0.meta"), "restore_all"));
    model again = {.g = mr_graph_new()};
    mr_tensor bytes = {0};
    CHECK_OK(mr_gfile_read(test_path("less-0.meta"), &bytes, &error));
    const mr_string text = mr_tensor_strings(&bytes)[0];
    CHECK_OK(mr_graph_import_meta(again.g, text.data, text.size_bytes, &error));
    mr_tensor_deinit(&bytes);
    mr_graph_free(again.g);
    end(m);
}

TEST(wrong_options_of_a_save_are_refused)
{
    mr_error error = {0};
    model m = build(keep_two), bare = build(without_graph);
#define REFUSE(part, saver_of, ...)                                                                                    \
    CHECK_STATUS(save(saver_of, "m", 1, MR_OPTIONS(mr_saver_save_options, __VA_ARGS__), &error), MR_INVALID_ARGUMENT); \
    CHECK_CONTAINS(error.message, part)
    REFUSE("latest_filename \"\" is not the name", m, .latest_filename = "");
    REFUSE("latest_filename \"a/b\" is not the name", m, .latest_filename = "a/b");
    REFUSE("latest_filename \"..\" is not the name", m, .latest_filename = "..");
    REFUSE("is the name of one of the checkpoint's own files", m, .latest_filename = "m-1.index");
    REFUSE("is the name of one of the checkpoint's own files", m, .latest_filename = "m-1");
    REFUSE("latest_filename has no effect with no_state", m, .latest_filename = "x", .no_state = true);
    REFUSE("meta_graph_suffix \"index\" is not valid", m, .meta_graph_suffix = "index");
    REFUSE("meta_graph_suffix \"data-00000-of-00001\" is not valid", m, .meta_graph_suffix = "data-00000-of-00001");
    REFUSE("meta_graph_suffix \"\" is not valid", m, .meta_graph_suffix = "");
    REFUSE("meta_graph_suffix \"a/b\" is not valid", m, .meta_graph_suffix = "a/b");
    REFUSE("meta_graph_suffix has no effect", m, .meta_graph_suffix = "x", .no_meta_graph = true);
    REFUSE("strip_default_attrs has no effect", m, .strip_default_attrs = true, .no_meta_graph = true);
    REFUSE("strip_default_attrs has no effect", bare, .strip_default_attrs = true);
#undef REFUSE
    CHECK(!exists("m-1.index"));
    CHECK_STATUS(mr_saver_save_with(nullptr, m.session, test_path("m"), 1, nullptr, &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_saver_save_with(m.saver, nullptr, test_path("m"), 1, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_saver_save_with(m.saver, m.session, nullptr, 1, nullptr, &error), MR_INVALID_ARGUMENT);
    end(m);
    end(bare);
}

TEST(savers_are_built_later)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_graph *g = mr_graph_new();
    char name[] = "later", key[] = "key";
    mr_variable first = mr_get_variable(g, "first", MR_SCALAR, .initializer = {.kind = MR_INIT_ONES});
    mr_saver *all = mr_saver_new(g, .defer_build = true, .name = name);
    const char *keys[] = {key};
    mr_saver *one = mr_saver_new(g, .defer_build = true, .variables = &first.ref, .variable_count = 1, .keys = keys);
    memset(name, 'x', 5); /* copied */
    memset(key, 'x', 3);
    keys[0] = nullptr;
    CHECK(mr_graph_find(g, "later/Const") == nullptr);
    mr_variable second = mr_get_variable(g, "second", MR_SCALAR, .initializer = {.kind = MR_INIT_ONES});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_STATUS(mr_saver_save(all, session, test_path("m"), 1, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "call mr_saver_build");
    CHECK_STATUS(mr_saver_restore(all, session, test_path("m"), &error), MR_FAILED_PRECONDITION);
    mr_saver_build(all);
    mr_saver_build(one);
    mr_saver_build(nullptr);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK(mr_graph_find(g, "later/Const") != nullptr && second.ref.node != nullptr);
    CHECK_OK(mr_saver_save(all, session, test_path("m"), 1, &error));
    CHECK_OK(mr_saver_save(one, session, test_path("one"), 1, &error));
    mr_checkpoint_reader *reader = nullptr;
    CHECK_OK(mr_checkpoint_reader_open(test_path("m-1"), &reader, &error));
    CHECK(mr_checkpoint_has(reader, "first") && mr_checkpoint_has(reader, "second"));
    mr_checkpoint_reader_close(reader);
    CHECK_OK(mr_checkpoint_reader_open(test_path("one-1"), &reader, &error));
    CHECK(mr_checkpoint_has(reader, "key") && !mr_checkpoint_has(reader, "second"));
    mr_checkpoint_reader_close(reader);
    mr_session_free(session);
    mr_saver_build(all);
    mr_saver_free(all);
    mr_saver_free(one);
    check_refused(g, "the saver has already been built");
}

TEST(savers_may_be_empty)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_graph *g = mr_graph_new();
    mr_saver *saver = mr_saver_new(g, .allow_empty = true);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_saver_save(saver, session, test_path("m"), 1, &error));
    CHECK(exists("m-1.meta") && !exists("m-1.index") && !exists("checkpoint"));
    CHECK_OK(mr_saver_restore(saver, session, test_path("m-1"), &error));
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(g);
    g = mr_graph_new();
    mr_saver_free(mr_saver_new(g));
    check_refused(g, "the saver has no variables to save");
}

/* A graph in a file, restored by its own saver, with a prefix or without. */
TEST(imported_graphs_have_their_saver)
{
    mr_error error = {0};
    model m = build(keep_two);
    CHECK_OK(mr_saver_save(m.saver, m.session, test_path("m"), 7, &error));
    for (int i = 0; i < 2; i++) {
        mr_tensor bytes = {0}, value = {0};
        mr_saver *saver = nullptr;
        mr_session *session = nullptr;
        mr_graph *g = mr_graph_new();
        CHECK_OK(mr_gfile_read(test_path("m-7.meta"), &bytes, &error));
        const mr_string text = mr_tensor_strings(&bytes)[0];
        CHECK_OK(mr_graph_import_meta_with(g, text.data, text.size_bytes,
                                           MR_OPTIONS(mr_meta_import_options, .prefix = i == 1 ? "a/b" : nullptr),
                                           &error));
        CHECK_OK(mr_saver_import(g, &saver, &error));
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_saver_restore(saver, session, test_path("m-7"), &error));
        const mr_output ref = mr_graph_find_output(g, i == 1 ? "a/b/w" : "w");
        CHECK_OK(mr_session_read_variable(session, ref, &value, &error));
        CHECK(mr_tensor_floats(&value)[1] == 1);
        for (int step = 8; step < 11; step++) CHECK_OK(mr_saver_save(saver, session, test_path("n"), step, &error));
        CHECK(!exists("n-8.index") && exists("n-9.index")); /* max_to_keep is that of the file */
        mr_tensor_deinit(&value);
        mr_tensor_deinit(&bytes);
        mr_session_free(session);
        mr_saver_free(saver);
        mr_graph_free(g);
    }
    mr_saver *saver = nullptr;
    mr_graph *bare = mr_graph_new();
    CHECK_STATUS(mr_saver_import(bare, &saver, &error), MR_NOT_FOUND);
    CHECK(saver == nullptr);
    CHECK_STATUS(mr_saver_import(nullptr, &saver, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_saver_import(bare, nullptr, &error), MR_INVALID_ARGUMENT);
    mr_graph_free(bare);
    end(m);
}

TEST(saver_refuses_empty_keys)
{
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2));
    const char *const keys[] = {""};
    mr_saver_free(mr_saver_new(g, .variables = &w.ref, .variable_count = 1, .keys = keys));
    check_refused(g, "the saver's key of the variable w is empty");
}

TEST(checkpoint_writer_needs_a_name)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer = nullptr;
    const char *const paths[] = {"", "/", test_path("directory/")};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        CHECK_STATUS(mr_checkpoint_writer_open(paths[i], &writer, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "a checkpoint needs a name");
        CHECK(writer == nullptr);
    }
    CHECK(!exists("directory"));
}

/* Savers of one directory and one file "checkpoint", whose paths begin with that of another one. */
TEST(savers_keep_checkpoints_of_longer_paths)
{
    mr_error error = {0};
    const char *const longer[] = {"model2", "model-b", "model-1-b"};
    model m = build(keep_two);
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        CHECK_OK(save(m, longer[i], 7, nullptr, &error));
        for (int64_t step = 0; step < 4; step++) CHECK_OK(save(m, "model", step, nullptr, &error));
        CHECK(!exists("model-1.index") && exists("model-2.index") && exists("model-3.index"));
        for (size_t j = 0; j <= i; j++) {
            char name[32];
            snprintf(name, sizeof name, "%s-7.index", longer[j]);
            CHECK(exists(name));
        }
    }
    end(m);
}
