/* Restores into new models, freezes, transforms and saves models for deploy_oracle.py.
 *
 *     deploy_graphs init CHECKPOINT PARTS FROM TO [FROM TO …]   init_from_checkpoint; prints initializers and elements
 *     deploy_graphs warm CHECKPOINT PARTS PATTERN [NAME PREVIOUS …]
 *     deploy_graphs vocab CHECKPOINT PARTS NEW SIZE OOV OLD SIZE AXIS BACKUP
 *     deploy_graphs freeze MODEL CHECKPOINT OUTPUTS RESULT [BLACKLIST]
 *     deploy_graphs extract MODEL OUTPUTS RESULT
 *     deploy_graphs training MODEL PROTECTED RESULT             remove_training_nodes
 *     deploy_graphs transform MODEL INPUTS OUTPUTS RESULT TRANSFORM …
 *     deploy_graphs save DIRECTORY ASSET pb|pbtxt               a SavedModel with two graphs
 *     deploy_graphs resave MODEL CHECKPOINT DIRECTORY           strip_default_attrs and clear_devices
 *
 * Lists of names have commas. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 16 };

typedef struct names {
    const char *items[NAMES_MAX];
    int32_t count;
} names;

static names split(char *list)
{
    names n = {0};
    for (char *name = strtok(list, ","); name != nullptr && n.count < NAMES_MAX; name = strtok(nullptr, ","))
        n.items[n.count++] = name;
    return n;
}

static mr_names list_of(const names *n)
{
    return (mr_names){n->items, n->count};
}

static mr_status write_result(const mr_tensor *graph_def, const char *path, mr_error *error)
{
    const mr_string bytes = mr_tensor_strings(graph_def)[0];
    FILE *file = fopen(path, "wb");
    if (file == nullptr || fwrite(bytes.data, 1, bytes.size_bytes, file) != bytes.size_bytes)
        return mr_fail(error, MR_UNKNOWN, "cannot write %s", path);
    fclose(file);
    return MR_OK;
}

/* ---- Initial values ---- */

static mr_graph *new_model(int32_t parts)
{
    mr_graph *g = mr_graph_new();
    const mr_partitioner partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                        .parts_max = parts > 1 ? parts : 0};
    const mr_initializer zeros = {.kind = MR_INIT_ZEROS};
    mr_graph_push_variable_scope(g, "new");
    (void)mr_get_variable(g, "table", MR_SHAPE(7, 2), .initializer = zeros, .partitioner = partitioner);
    mr_graph_push_variable_scope(g, "layer");
    (void)mr_get_variable(g, "w", MR_SHAPE(2, 3), .initializer = zeros, .use_resource = true);
    (void)mr_get_variable(g, "b", MR_SHAPE(3), .initializer = zeros, .trainable = false);
    mr_graph_pop_variable_scope(g);
    mr_graph_pop_variable_scope(g);
    return g;
}

static mr_status print_variables(mr_graph *g, mr_error *error)
{
    mr_session *session = nullptr;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    for (int32_t i = 0; i < mr_graph_variable_count(g, MR_GLOBAL_VARIABLES); i++) {
        const mr_variable v = mr_graph_variable(g, MR_GLOBAL_VARIABLES, i);
        mr_tensor value = {0};
        MR_TRY(mr_session_read_variable(session, v.ref, &value, error));
        printf("%s %s %s", mr_node_name(v.ref.node), mr_node_name(v.initializer), mr_node_name(v.initial_value.node));
        for (int64_t j = 0; j < mr_tensor_count(&value); j++) printf(" %.9g", (double)mr_tensor_floats(&value)[j]);
        printf("\n");
        mr_tensor_deinit(&value);
    }
    mr_session_free(session);
    return MR_OK;
}

static mr_status initialize(int argc, char **argv, bool is_warm, mr_error *error)
{
    mr_graph *g = new_model(atoi(argv[3]));
    mr_assignment assignments[NAMES_MAX] = {0};
    mr_previous_name previous[NAMES_MAX] = {0};
    int32_t count = 0;
    for (int i = is_warm ? 5 : 4; i + 1 < argc && count < NAMES_MAX; i += 2, count++) {
        assignments[count] = (mr_assignment){.from = argv[i], .to = argv[i + 1]};
        previous[count] = (mr_previous_name){argv[i], argv[i + 1]};
    }
    if (is_warm)
        MR_TRY(mr_warm_start(g, argv[2],
                             MR_OPTIONS(mr_warm_start_options, .pattern = argv[4], .previous_names = {previous, count}),
                             error));
    else
        MR_TRY(mr_init_from_checkpoint(g, argv[2], (mr_assignments){assignments, count}, error));
    mr_status status = print_variables(g, error);
    mr_graph_free(g);
    return status;
}

static mr_initializer backup_named(const char *name)
{
    if (strcmp(name, "ones") == 0) return (mr_initializer){.kind = MR_INIT_ONES};
    if (strcmp(name, "constant") == 0) return (mr_initializer){.kind = MR_INIT_CONSTANT, .scale = 2.5f};
    if (strcmp(name, "uniform") == 0) return (mr_initializer){.kind = MR_INIT_UNIFORM, .min = -3, .max = 5, .seed = 4};
    if (strcmp(name, "normal") == 0) return (mr_initializer){.kind = MR_INIT_NORMAL, .mean = 1, .scale = 2, .seed = 5};
    if (strcmp(name, "truncated") == 0)
        return (mr_initializer){.kind = MR_INIT_TRUNCATED_NORMAL, .mean = -1, .scale = 0.5f, .seed = 6};
    return (mr_initializer){0};
}

static mr_status vocabulary(char **argv, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 7);
    const int32_t parts = atoi(argv[3]);
    const mr_partitioner partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                        .parts_max = parts > 1 ? parts : 0};
    const mr_vocab_info info = {.name = "table",
                                .new_vocab = argv[4],
                                .new_vocab_size = atoi(argv[5]),
                                .num_oov_buckets = atoi(argv[6]),
                                .old_vocab = argv[7],
                                .old_vocab_size = atoi(argv[8]),
                                .axis = atoi(argv[9]),
                                .backup_initializer = backup_named(argv[10])};
    const int64_t size = info.new_vocab_size + info.num_oov_buckets;
    (void)mr_get_variable(g, "table", info.axis == 0 ? MR_SHAPE(size, 2) : MR_SHAPE(7, size),
                          .partitioner = partitioner);
    MR_TRY(mr_warm_start(g, argv[2],
                         MR_OPTIONS(mr_warm_start_options, .previous_names = MR_PREVIOUS_NAMES({"table", "old/table"}),
                                    .vocab_infos = {&info, 1}),
                         error));
    mr_status status = print_variables(g, error);
    mr_graph_free(g);
    return status;
}

/* ---- Freezing and transforms ---- */

static mr_status freeze(int argc, char **argv, mr_error *error)
{
    mr_model *model = nullptr;
    mr_session *session = nullptr;
    mr_tensor result = {0};
    names outputs = split(argv[4]), black = argc > 6 ? split(argv[6]) : (names){0};
    MR_TRY(mr_model_open(argv[2], nullptr, &model, error));
    MR_TRY(mr_session_new(mr_model_graph(model), nullptr, &session, error));
    MR_TRY(mr_model_restore(model, session, argv[3], error));
    MR_TRY(mr_graph_freeze(mr_model_graph(model), session, list_of(&outputs),
                           MR_OPTIONS(mr_freeze_options, .blacklist = list_of(&black)), &result, error));
    mr_status status = write_result(&result, argv[5], error);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_model_free(model);
    return status;
}

static mr_status cut(char **argv, bool is_training, mr_error *error)
{
    mr_model *model = nullptr;
    mr_tensor result = {0};
    names list = split(argv[3]);
    MR_TRY(mr_model_open(argv[2], nullptr, &model, error));
    MR_TRY(is_training ? mr_graph_remove_training_nodes(mr_model_graph(model), list_of(&list), &result, error)
                       : mr_graph_extract(mr_model_graph(model), list_of(&list), &result, error));
    mr_status status = write_result(&result, argv[4], error);
    mr_tensor_deinit(&result);
    mr_model_free(model);
    return status;
}

static mr_status transform(int argc, char **argv, mr_error *error)
{
    static const char *const kinds[] = {"",
                                        "strip_unused_nodes",
                                        "fold_constants",
                                        "fold_batch_norms",
                                        "fold_old_batch_norms",
                                        "quantize_weights",
                                        "remove_nodes"};
    mr_model *model = nullptr;
    mr_tensor result = {0};
    names inputs = split(argv[3]), outputs = split(argv[4]);
    mr_transform list[NAMES_MAX] = {0};
    int32_t count = 0;
    for (int i = 6; i < argc && count < NAMES_MAX; i++, count++) {
        for (int j = 1; j < 7; j++)
            if (strcmp(argv[i], kinds[j]) == 0) list[count].kind = (mr_transform_kind)j;
        if (list[count].kind == MR_TRANSFORM_REMOVE_NODES) list[count].ops = MR_NAMES("Identity");
        if (list[count].kind == MR_TRANSFORM_QUANTIZE_WEIGHTS) list[count].minimum_size = 16;
    }
    MR_TRY(mr_model_open(argv[2], nullptr, &model, error));
    MR_TRY(mr_graph_transform(mr_model_graph(model), list_of(&inputs), list_of(&outputs), (mr_transforms){list, count},
                              &result, error));
    mr_status status = write_result(&result, argv[5], error);
    mr_tensor_deinit(&result);
    mr_model_free(model);
    return status;
}

/* ---- SavedModels ---- */

static mr_status save(char **argv, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x");
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2, 2), .initializer = {.kind = MR_INIT_CONSTANT, .scale = 3},
                                    .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 2});
    mr_variable r = mr_get_variable(g, "r", MR_SCALAR, .initializer = {.kind = MR_INIT_CONSTANT, .scale = 0.5f},
                                    .use_resource = true);
    mr_variable local =
        mr_get_local_variable(g, "local", MR_SCALAR, .initializer = {.kind = MR_INIT_CONSTANT, .scale = 5});
    mr_graph_push_device(g, "/device:CPU:0");
    mr_output y = mr_add(g, mr_add(g, mr_mat_mul(g, x, w.value), r.value), local.value, .name = "y");
    mr_graph_pop_device(g);
    /* The main operation reads the asset. */
    mr_output path = mr_constant_string(g, argv[3]);
    mr_variable text = mr_variable_new(g, "text", mr_read_file(g, path), .local = true);
    mr_output line = mr_identity(g, text.value, .name = "line");
    mr_node *main_op = mr_group(g, (mr_node *[]){local.initializer, text.initializer}, 2, "main");
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    mr_session *session = nullptr;
    mr_saved_model *saved = nullptr;
    const mr_signature_def signature = {.key = MR_DEFAULT_SERVING_SIGNATURE,
                                        .method = MR_PREDICT_METHOD,
                                        .inputs = MR_NAMED_OUTPUTS({"points", x}),
                                        .outputs = MR_NAMED_OUTPUTS({"values", y}, {"line", line})};
    const mr_saved_graph serve = {.size = sizeof serve,
                                  .tags = MR_NAMES(MR_SERVING),
                                  .signatures = &signature,
                                  .signature_count = 1,
                                  .assets = &(mr_asset){path, argv[3]},
                                  .asset_count = 1,
                                  .main_op = main_op,
                                  .clear_devices = true};
    const mr_saved_graph train = {.size = sizeof train, .tags = MR_NAMES("train", "gpu"), .legacy_init_op = main_op};
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    MR_TRY(mr_saved_model_new(argv[2], &saved, error));
    MR_TRY(mr_saved_model_add(saved, g, session, &serve, error));
    MR_TRY(mr_saved_model_add(saved, g, nullptr, &train, error));
    MR_TRY(mr_saved_model_save(saved, strcmp(argv[4], "pbtxt") == 0, error));
    mr_saved_model_free(saved);
    mr_session_free(session);
    mr_graph_free(g);
    return MR_OK;
}

static mr_status resave(char **argv, mr_error *error)
{
    mr_model *model = nullptr;
    mr_session *session = nullptr;
    mr_saved_model *saved = nullptr;
    const mr_saved_graph graph = {
        .size = sizeof graph, .tags = MR_NAMES("serve"), .clear_devices = true, .strip_default_attrs = true};
    MR_TRY(mr_model_open(argv[2], nullptr, &model, error));
    MR_TRY(mr_session_new(mr_model_graph(model), nullptr, &session, error));
    MR_TRY(mr_model_restore(model, session, argv[3], error));
    MR_TRY(mr_saved_model_new(argv[4], &saved, error));
    MR_TRY(mr_saved_model_add(saved, mr_model_graph(model), session, &graph, error));
    MR_TRY(mr_saved_model_save(saved, false, error));
    mr_saved_model_free(saved);
    mr_session_free(session);
    mr_model_free(model);
    return MR_OK;
}

static mr_status work(int argc, char **argv, mr_error *error)
{
    const char *what = argv[1];
    if (strcmp(what, "init") == 0 && argc > 5) return initialize(argc, argv, false, error);
    if (strcmp(what, "vocab") == 0 && argc == 11) return vocabulary(argv, error);
    if (strcmp(what, "warm") == 0 && argc > 4) return initialize(argc, argv, true, error);
    if (strcmp(what, "freeze") == 0 && argc > 5) return freeze(argc, argv, error);
    if (strcmp(what, "extract") == 0 && argc > 4) return cut(argv, false, error);
    if (strcmp(what, "training") == 0 && argc > 4) return cut(argv, true, error);
    if (strcmp(what, "transform") == 0 && argc > 6) return transform(argc, argv, error);
    if (strcmp(what, "save") == 0 && argc > 4) return save(argv, error);
    if (strcmp(what, "resave") == 0 && argc > 4) return resave(argv, error);
    return mr_fail(error, MR_INVALID_ARGUMENT, "unknown work");
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc < 2) return 2;
    if (work(argc, argv, &error) == MR_OK) return 0;
    printf("error %s\n", error.message);
    return 1;
}
