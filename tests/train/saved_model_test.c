/* SavedModels that are written: read back with their values, assets, signatures and tags, and what is refused. */
#include "tests/test.h"
#include <millrace/millrace.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct model {
    mr_graph *g;
    mr_output x, y, path, line;
    mr_variable w, local;
    mr_node *main_op;
    mr_session *session;
} model;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != nullptr && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* y = x · w + local, where the main operation sets local to 5; line: the contents of an asset. */
static model build(const char *asset, bool is_resource)
{
    mr_error error = {0};
    model m = {.g = mr_graph_new()};
    m.x = mr_placeholder(m.g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x");
    m.w = mr_get_variable(m.g, "w", MR_SHAPE(2, 1), .initializer = {.kind = MR_INIT_CONSTANT, .scale = 3},
                          .use_resource = is_resource);
    m.local = mr_get_local_variable(m.g, "local", MR_SCALAR, .initializer = {.kind = MR_INIT_CONSTANT, .scale = 5});
    mr_graph_push_device(m.g, "/device:CPU:0");
    m.y = mr_add(m.g, mr_mat_mul(m.g, m.x, m.w.value), m.local.value, .name = "y");
    mr_graph_pop_device(m.g);
    m.path = mr_constant_string(m.g, asset);
    m.line = mr_read_file(m.g, m.path, .name = "line");
    m.main_op = mr_group(m.g, &m.local.initializer, 1, "main");
    mr_node *init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(m.g, nullptr, &m.session, &error));
    CHECK_OK(mr_session_run(m.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    return m;
}

static void end(model m)
{
    mr_session_free(m.session);
    mr_graph_free(m.g);
}

/* Opens the directory, initializes, and checks y of [1, 2]. Returns the model. */
static mr_model *check_loads(const char *directory, const char *tags, float expected)
{
    mr_error error = {0};
    mr_model *loaded = nullptr;
    mr_session *session = nullptr;
    mr_tensor x = {0}, y = {0};
    CHECK_OK(mr_model_open(directory, tags, &loaded, &error));
    CHECK_OK(mr_session_new(mr_model_graph(loaded), nullptr, &session, &error));
    CHECK_OK(mr_model_initialize(loaded, session, &error));
    CHECK_OK(mr_tensor_init(&x, MR_FLOAT, MR_SHAPE(1, 2), &error));
    mr_tensor_floats(&x)[0] = 1;
    mr_tensor_floats(&x)[1] = 2;
    CHECK_OK(mr_session_run(session, MR_FEEDS({mr_graph_find_output(mr_model_graph(loaded), "x"), x}),
                            MR_OUTPUTS(mr_graph_find_output(mr_model_graph(loaded), "y")), &y, nullptr, 0, &error));
    CHECK_NEAR((double)mr_tensor_floats(&y)[0], (double)expected, 1e-6);
    mr_tensor_deinit(&x);
    mr_tensor_deinit(&y);
    mr_session_free(session);
    return loaded;
}

TEST(saved_model_is_read_back)
{
    for (int round = 0; round < 4; round++) {
        mr_error error = {0};
        const bool as_text = round % 2 == 1;
        const char *directory = test_path("saved-%d", round), *vocabulary = test_path("vocabulary.txt");
        write_file(vocabulary, "first\nsecond\n");
        model m = build(vocabulary, round >= 2);
        mr_saved_model *saved = nullptr;
        const mr_signature_def signature = {.key = MR_DEFAULT_SERVING_SIGNATURE,
                                            .method = MR_PREDICT_METHOD,
                                            .inputs = MR_NAMED_OUTPUTS({"points", m.x}),
                                            .outputs = MR_NAMED_OUTPUTS({"values", m.y}, {"line", m.line})};
        const mr_saved_graph serve = {.size = sizeof serve,
                                      .tags = MR_NAMES(MR_SERVING),
                                      .signatures = &signature,
                                      .signature_count = 1,
                                      .assets = &(mr_asset){m.path, vocabulary},
                                      .asset_count = 1,
                                      .main_op = m.main_op,
                                      .clear_devices = true,
                                      .strip_default_attrs = round == 0};
        CHECK_OK(mr_saved_model_new(directory, &saved, &error));
        CHECK_STATUS(mr_saved_model_save(saved, false, &error), MR_FAILED_PRECONDITION);
        CHECK_OK(mr_saved_model_add(saved, m.g, m.session, &serve, &error));
        CHECK_STATUS(mr_saved_model_add(saved, m.g, nullptr, &serve, &error), MR_ALREADY_EXISTS);
        mr_saved_graph train = {.size = sizeof train, .tags = MR_NAMES("train", "gpu"), .legacy_init_op = m.main_op};
        CHECK_OK(mr_saved_model_add(saved, m.g, nullptr, &train, &error));
        CHECK_OK(mr_saved_model_save(saved, as_text, &error));
        mr_saved_model_free(saved);
        end(m);
        CHECK(unlink(vocabulary) == 0);
        mr_model *loaded = check_loads(directory, nullptr, 14);
        const mr_model_about *about = mr_model_info(loaded);
        CHECK_EQ(about->is_text, as_text);
        CHECK_STR(about->tags, "serve");
        CHECK_EQ(about->signature_count, 1);
        CHECK_STR(about->signatures[0].method, MR_PREDICT_METHOD);
        CHECK_STR(about->signatures[0].inputs[0].key, "points");
        CHECK_STR(about->signatures[0].outputs[1].name, "y:0");
        CHECK_EQ(about->signatures[0].inputs[0].shape.dims[1], 2);
        CHECK_STR(mr_node_device(mr_graph_find(mr_model_graph(loaded), "y")), "");
        mr_model_free(loaded);
        loaded = check_loads(directory, "gpu,train", 14);
        CHECK_STR(mr_node_device(mr_graph_find(mr_model_graph(loaded), "y")), "/device:CPU:0");
        mr_model_free(loaded);
        struct stat about_file;
        CHECK(stat(test_path("saved-%d/assets/vocabulary.txt", round), &about_file) == 0);
        CHECK(stat(test_path("saved-%d/variables/checkpoint", round), &about_file) != 0);
    }
}

TEST(saved_model_assets_of_equal_names)
{
    mr_error error = {0};
    CHECK(mkdir(test_path("a"), 0700) == 0 && mkdir(test_path("b"), 0700) == 0);
    write_file(test_path("a/names"), "A");
    write_file(test_path("b/names"), "B");
    model m = build("unused", false);
    mr_output second = mr_constant_string(m.g, "unused");
    const mr_asset assets[] = {{m.path, test_path("a/names")}, {second, test_path("b/names")}};
    mr_saved_model *saved = nullptr;
    CHECK_OK(mr_saved_model_new(test_path("saved"), &saved, &error));
    CHECK_OK(mr_saved_model_add(
        saved, m.g, m.session,
        MR_OPTIONS(mr_saved_graph, .tags = MR_NAMES("serve"), .assets = assets, .asset_count = 2), &error));
    CHECK_OK(mr_saved_model_save(saved, false, &error));
    mr_saved_model_free(saved);
    char text[2] = "";
    FILE *file = fopen(test_path("saved/assets/names_1"), "r");
    CHECK(file != nullptr && fread(text, 1, 1, file) == 1 && text[0] == 'B');
    fclose(file);
    end(m);
}

TEST(saved_model_refuses_mistakes)
{
    mr_error error = {0};
    model m = build("none", false), other = build("none", false);
    mr_saved_model *saved = nullptr;
    const mr_signature_def no_key = {.method = "m"}, foreign = {.key = "s", .inputs = MR_NAMED_OUTPUTS({"x", other.x})};
    const mr_signature_def same[] = {{.key = "s"}, {.key = "s"}};
    const mr_signature_def twice = {.key = "s", .outputs = MR_NAMED_OUTPUTS({"x", m.x}, {"x", m.y})};
    const mr_names serve = MR_NAMES("serve");
    const struct {
        mr_saved_graph options;
        const char *message;
    } cases[] = {
        {{0}, "the graph has no tags"},
        {{.tags = MR_NAMES("a,b")}, "tag 0 is not one word"},
        {{.tags = MR_NAMES("a", "a")}, "the tag a is given twice"},
        {{.tags = serve, .signatures = &no_key, .signature_count = 1}, "signature 0 has no key"},
        {{.tags = serve, .signatures = same, .signature_count = 2}, "two signatures have the key s"},
        {{.tags = serve, .signatures = &foreign, .signature_count = 1},
         "x of the inputs is not an output of the graph"},
        {{.tags = serve, .signatures = &twice, .signature_count = 1}, "two of the outputs have the key x"},
        {{.tags = serve, .assets = &(mr_asset){m.path, "/none/at/all"}, .asset_count = 1}, "no such file"},
        {{.tags = serve, .assets = &(mr_asset){m.x, "x"}, .asset_count = 1}, "is not for a string output"},
        {{.tags = serve, .main_op = other.main_op}, "main_op is a node of another graph"},
        {{.tags = serve, .main_op = m.main_op, .legacy_init_op = m.main_op}, "both main_op and legacy_init_op"},
        {{.tags = serve, .signature_count = -1}, "-1 signatures at null"},
    };
    CHECK_OK(mr_saved_model_new(test_path("saved"), &saved, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_saved_graph options = cases[i].options;
        options.size = sizeof options;
        CHECK(mr_saved_model_add(saved, m.g, m.session, &options, &error) != MR_OK);
        if (strstr(error.message, cases[i].message) == nullptr)
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, error.message);
    }
    const mr_saved_graph good = {.size = sizeof good, .tags = serve};
    CHECK_STATUS(mr_saved_model_add(saved, m.g, nullptr, &good, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_saved_model_add(nullptr, m.g, m.session, &good, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_saved_model_add(saved, m.g, m.session, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_saved_model_add(saved, m.g, m.session, &good, &error));
    CHECK_STATUS(
        mr_saved_model_add(saved, m.g, m.session, MR_OPTIONS(mr_saved_graph, .tags = MR_NAMES("other")), &error),
        MR_INVALID_ARGUMENT);
    CHECK_OK(mr_saved_model_save(saved, false, &error));
    mr_saved_model_free(saved);
    CHECK_STATUS(mr_saved_model_new(test_path("saved"), &saved, &error), MR_ALREADY_EXISTS);
    CHECK_STATUS(mr_saved_model_new(nullptr, &saved, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_saved_model_simple_save(m.g, m.session, test_path("saved"), (mr_named_outputs){0},
                                            (mr_named_outputs){0}, nullptr, &error),
                 MR_ALREADY_EXISTS);
    mr_saved_model_free(nullptr);
    end(m);
    end(other);
}
