/* Saves and restores variables of all kinds for saver_oracle.py.
 *
 *     saver_graphs write PREFIX        a table in 3 parts, a resource variable and a reference: PREFIX-0 and its .meta
 *     saver_graphs write1 PREFIX       the same as a V1 checkpoint
 *     saver_graphs shards PREFIX       the same with a sharded Saver, and the table on another device
 *     saver_graphs read PATH PARTS     restores them, with the table in PARTS parts, and prints their elements
 *     saver_graphs renamed PATH KEY    restores the reference from another key
 *     saver_graphs reshape PATH PREFIX restores to other shapes, and writes PREFIX-0 and its .meta
 *     saver_graphs options PREFIX      writes PREFIX-00000000 to -00000006, of which it keeps 5, named in
 *                                      "best_latest", with the suffix "graph" and without default attrs
 *     saver_graphs list DIRECTORY FILE prints the latest checkpoint that FILE names, and all of them
 *     saver_graphs import PATH         restores PATH by the saver of PATH.meta */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct model {
    mr_graph *g;
    mr_variable table, r, w;
} model;

static mr_variable variable(mr_graph *g, const char *name, mr_shape shape, float first, int32_t parts, bool is_resource)
{
    mr_error error = {0};
    mr_tensor values = {0};
    if (mr_tensor_init(&values, MR_FLOAT, shape, &error) != MR_OK) exit(1);
    for (int64_t i = 0; i < mr_tensor_count(&values); i++) mr_tensor_floats(&values)[i] = first + (float)i;
    mr_partitioner partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                  .parts_max = parts > 1 ? parts : 0};
    return mr_get_variable(g, name, shape, .initializer = {.kind = MR_INIT_CONSTANT, .values = &values},
                           .partitioner = partitioner, .use_resource = is_resource);
}

static model build(int32_t parts, float first, bool sharded, bool reshapes)
{
    model m = {.g = mr_graph_new()};
    if (sharded) mr_graph_push_device(m.g, "/device:CPU:0");
    m.table = variable(m.g, "scope/table", MR_SHAPE(11, 3), first, parts, false);
    if (sharded) mr_graph_pop_device(m.g);
    m.r = variable(m.g, "r", reshapes ? MR_SHAPE(1, 2, 2) : MR_SHAPE(4), first + 100, 1, true);
    m.w = variable(m.g, "w", reshapes ? MR_SHAPE(4) : MR_SHAPE(2, 2), first + 200, 1, false);
    return m;
}

static void print(const char *name, const mr_tensor *value)
{
    printf("%s", name);
    for (int64_t i = 0; i < mr_tensor_count(value); i++) printf(" %g", (double)mr_tensor_floats(value)[i]);
    printf("\n");
}

static mr_status save_with_options(const char *prefix, mr_error *error)
{
    model m = build(3, 0, false, false);
    mr_session *session = nullptr;
    mr_saver *saver = mr_saver_new(m.g, .pad_step_number = true, .defer_build = true);
    mr_node *init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, "init");
    mr_saver_build(saver);
    MR_TRY(mr_session_new(m.g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    const mr_saver_save_options options = {.size = sizeof options,
                                           .latest_filename = "best_latest",
                                           .meta_graph_suffix = "graph",
                                           .strip_default_attrs = true};
    for (int step = 0; step < 7; step++) MR_TRY(mr_saver_save_with(saver, session, prefix, step, &options, error));
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(m.g);
    return MR_OK;
}

static mr_status list(const char *directory, const char *file, mr_error *error)
{
    mr_checkpoint_list *found = nullptr;
    MR_TRY(mr_checkpoint_list_read(directory, file, &found, error));
    printf("%s\n", found->latest);
    for (int32_t i = 0; i < found->paths.count; i++) printf("%s\n", found->paths.items[i]);
    mr_checkpoint_list_free(found);
    return MR_OK;
}

static mr_status import(const char *path, mr_error *error)
{
    char file[4096];
    mr_tensor bytes = {0}, values[2] = {0};
    mr_graph *g = mr_graph_new();
    mr_saver *saver = nullptr;
    mr_session *session = nullptr;
    snprintf(file, sizeof file, "%s.meta", path);
    MR_TRY(mr_gfile_read(file, &bytes, error));
    const mr_string text = mr_tensor_strings(&bytes)[0];
    MR_TRY(mr_graph_import_meta(g, text.data, text.size_bytes, error));
    MR_TRY(mr_saver_import(g, &saver, error));
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_saver_restore(saver, session, path, error));
    MR_TRY(mr_session_read_variable(session, mr_graph_find_output(g, "r"), &values[0], error));
    MR_TRY(mr_session_read_variable(session, mr_graph_find_output(g, "w"), &values[1], error));
    print("r", &values[0]);
    print("w", &values[1]);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&values[i]);
    mr_tensor_deinit(&bytes);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(g);
    return MR_OK;
}

static mr_status work(int argc, char **argv, mr_error *error)
{
    if (strcmp(argv[1], "options") == 0) return save_with_options(argv[2], error);
    if (strcmp(argv[1], "list") == 0) return list(argv[2], argv[3], error);
    if (strcmp(argv[1], "import") == 0) return import(argv[2], error);
    const bool is_v1 = strcmp(argv[1], "write1") == 0, sharded = strcmp(argv[1], "shards") == 0;
    const bool writes = is_v1 || sharded || strcmp(argv[1], "write") == 0, renames = strcmp(argv[1], "renamed") == 0;
    const bool reshapes = strcmp(argv[1], "reshape") == 0;
    model m = build(writes || renames || reshapes ? 3 : atoi(argv[3]), writes ? 0 : -1000, sharded, reshapes);
    mr_session *session = nullptr;
    mr_saver *saver =
        renames ? mr_saver_new(m.g, .variables = &m.w.ref, .variable_count = 1, .keys = (const char *const[]){argv[3]})
                : mr_saver_new(m.g, .write_version = is_v1 ? MR_CHECKPOINT_V1 : MR_CHECKPOINT_V2, .sharded = sharded,
                               .reshape = reshapes);
    mr_node *init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, "init");
    MR_TRY(mr_session_new(m.g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    if (writes) MR_TRY(mr_saver_save(saver, session, argv[2], 0, error));
    if (!writes) MR_TRY(mr_saver_restore(saver, session, argv[2], error));
    if (reshapes) MR_TRY(mr_saver_save(saver, session, argv[3], 0, error));
    mr_tensor values[3] = {0};
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m.table.value, m.r.value, m.w.value), values, nullptr, 0,
                          error));
    print("table", &values[0]);
    print("r", &values[1]);
    print("w", &values[2]);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&values[i]);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(m.g);
    return MR_OK;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc < 3) return 2;
    if (work(argc, argv, &error) == MR_OK) return 0;
    printf("error %s\n", error.message);
    return 1;
}
