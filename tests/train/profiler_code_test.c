/* The code view of profiles, and the OpLogProtos that it needs: gradients, long names, damage. */
#include "tests/train/profiles.h"

#include "proto/profile.pb-c.h"

typedef struct logged {
    const char *node;
    int64_t float_ops;
    const char *type;
    struct {
        int64_t file, function; /* ids */
        int32_t line;
    } traces[3]; /* file 0: the end */
} logged;

static const char *const texts[] = {"none", "/home/model.py", "main", "layer", "a_function_with_a_long_name"};

static mr_string make_log(mr_arena *arena, const logged *entries, int count)
{
    Mr__OpLogProto log = MR__OP_LOG_PROTO__INIT;
    log.log_entries = MR_ARENA_NEW(arena, Mr__OpLogEntry *, (size_t)count + 1);
    log.id_to_string = MR_ARENA_NEW(arena, Mr__OpLogString *, 5);
    for (int i = 4; i >= 0; i--) { /* in any order */
        Mr__OpLogString *string = log.id_to_string[log.n_id_to_string++] = MR_ARENA_NEW(arena, Mr__OpLogString, 1);
        mr__op_log_string__init(string);
        string->key = i;
        string->value = (char *)texts[i];
    }
    for (int i = 0; i < count; i++) {
        Mr__OpLogEntry *entry = log.log_entries[log.n_log_entries++] = MR_ARENA_NEW(arena, Mr__OpLogEntry, 1);
        mr__op_log_entry__init(entry);
        entry->name = (char *)entries[i].node;
        entry->float_ops = entries[i].float_ops;
        if (entries[i].type != nullptr) {
            entry->types = MR_ARENA_NEW(arena, char *, 1);
            entry->types[entry->n_types++] = (char *)entries[i].type;
        }
        entry->code_def = MR_ARENA_NEW(arena, Mr__CodeDef, 1);
        mr__code_def__init(entry->code_def);
        entry->code_def->traces = MR_ARENA_NEW(arena, Mr__CodeTrace *, 3);
        for (int j = 0; j < 3 && entries[i].traces[j].file != 0; j++) {
            Mr__CodeTrace *trace = entry->code_def->traces[entry->code_def->n_traces++] =
                MR_ARENA_NEW(arena, Mr__CodeTrace, 1);
            mr__code_trace__init(trace);
            trace->file_id = entries[i].traces[j].file;
            trace->function_id = entries[i].traces[j].function;
            trace->lineno = entries[i].traces[j].line;
        }
    }
    mr_error error = {0};
    mr_string bytes = {0};
    CHECK_OK(mr_proto_pack(&log, arena, &bytes, &error));
    return bytes;
}

static const logged usual[] = {
    {"net/w", 0, "_trainable_variables", {{1, 2, 9}, {1, 3, 5}}},
    {"net/product", 40, nullptr, {{1, 2, 9}, {1, 3, 6}}},
    {"net/sum", 0, "mine", {{1, 2, 10}, {1, 4, 7}}},
    {"out", 7, nullptr, {{1, 2, 11}}},
    {"other", 3, nullptr, {{1, 2, 9}}}, /* not in the graph */
    {"x", 0, nullptr, {{0}}},
};
constexpr int USUAL_COUNT = sizeof usual / sizeof *usual;

static mr_profile *make_profile(void)
{
    mr_error error = {0};
    mr_profile *profile = nullptr;
    mr_graph *g = small_graph(4);
    /* Its name is that of a gradient of net/product. */
    const mr_output s = mr_graph_find_output(g, "s:0");
    (void)mr_square(g, s, .name = "gradients/net/product_grad/Square");
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    return profile;
}

static void check_view(const mr_profile *profile, const mr_profile_options *options, const char *expected)
{
    mr_error error = {0};
    mr_profile_view *view = nullptr;
    CHECK_OK(mr_profile_view_new(profile, MR_PROFILE_CODE, options, &view, &error));
    CHECK_STR(mr_profile_view_text(view), expected);
    mr_profile_view_free(view);
}

TEST(profiles_show_the_lines_of_python_that_created_nodes)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_profile *profile = make_profile();
    mr_profile_view *view = nullptr;
    CHECK_STATUS(mr_profile_view_new(profile, MR_PROFILE_CODE, nullptr, &view, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "no node has code traces; mr_profile_add_op_log adds those");
    CHECK_OK(mr_profile_add_op_log(profile, make_log(&arena, usual, USUAL_COUNT), &error));
    const logged gradient = {"gradients/net/product_grad/Square", 2, nullptr, {{1, 2, 12}}};
    CHECK_OK(mr_profile_add_op_log(profile, make_log(&arena, &gradient, 1), &error));
    check_view(profile, MR_OPTIONS(mr_profile_options, .select = MR_PROFILE_PARAMS | MR_PROFILE_FLOAT_OPS),
               "node name | # parameters | # float_ops\n"
               "_TFProfRoot (--/6 params, --/57 flops)\n"
               "  model.py:10:main (0/0 params, 0/8 flops)\n"
               "    model.py:7:a_function_with_a... (0/0 params, 8/8 flops)\n"
               "  model.py:11:main (0/0 params, 7/7 flops)\n"
               "  model.py:9:main (0/6 params, 0/40 flops)\n"
               "    model.py:5:layer (6/6 params, 0/0 flops)\n"
               "    model.py:6:layer (0/0 params, 40/40 flops)\n"
               "  model.py:9:main (gradient) (0/0 params, 0/2 flops)\n"
               "    model.py:6:layer (gradient) (0/0 params, 2/2 flops)\n");
    check_view(profile, MR_OPTIONS(mr_profile_options, MR_PROFILE_TRAINABLE_PARAMETERS),
               "node name | # parameters\n"
               "_TFProfRoot (--/6 params)\n"
               "  model.py:9:main (--/6 params)\n"
               "    model.py:5:layer (6/6 params)\n");
    check_view(profile,
               MR_OPTIONS(mr_profile_options, .select = MR_PROFILE_OP_TYPES | MR_PROFILE_OCCURRENCE,
                          .trim_name_regexes = MR_NAMES(".*:layer.*"), .show_name_regexes = MR_NAMES(".*:1[01]:.*")),
               "node name | op types | op occurrence (run|defined)\n"
               "_TFProfRoot (, occurrence N/A in code view)\n"
               "  model.py:10:main (, occurrence N/A in code view)\n"
               "  model.py:11:main (Mul, occurrence N/A in code view)\n");
    CHECK_STATUS(mr_profile_view_new(profile, MR_PROFILE_CODE, MR_OPTIONS(mr_profile_options, .min_occurrence = 1),
                                     &view, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "min_occurrence has no effect in the code view");
    CHECK_OK(mr_profile_view_new(profile, MR_PROFILE_CODE, nullptr, &view, &error));
    const mr_profile_entry *first = mr_profile_view_root(view)->children[2];
    CHECK_EQ(first->node_count, 0);
    CHECK_EQ(first->children[1]->node_count, 1);
    CHECK_STR(first->children[1]->nodes[0]->name, "net/product");
    mr_profile_view_free(view);
    mr_profile_free(profile);
    mr_arena_deinit(&arena);
}

TEST(profiles_refuse_op_logs_that_are_wrong)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_profile *profile = make_profile();
    const logged negative = {"x", -1, nullptr, {{0}}}, missing = {"x", 0, nullptr, {{1, 99, 3}}};
    CHECK_STATUS(mr_profile_add_op_log(profile, make_log(&arena, &negative, 1), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "x has -1 float operations");
    CHECK_STATUS(mr_profile_add_op_log(profile, make_log(&arena, &missing, 1), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "a trace of x refers to the string 99, which does not exist");
    CHECK_STATUS(mr_profile_add_op_log(profile, MR_STR("\xff"), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_add_op_log(profile, (mr_string){nullptr, 1}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_profile_add_op_log(nullptr, MR_STR(""), &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_profile_add_op_log(profile, (mr_string){0}, &error));
    mr_profile_free(profile);
    mr_arena_deinit(&arena);
}

TEST(profiles_survive_damaged_op_logs)
{
    mr_error error = {0};
    mr_arena arena = {0};
    const mr_string bytes = make_log(&arena, usual, USUAL_COUNT);
    uint64_t random = test_seed() * 0x9e3779b97f4a7c15u + 1;
    int accepted = 0;
    for (int i = 0; i < 1000; i++) {
        mr_profile *profile = make_profile();
        char *changed = mr_arena_copy(&arena, bytes.data, bytes.size_bytes);
        for (int j = 0; j <= i % 3; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            changed[(random >> 33) % bytes.size_bytes] = (char)(random >> 56);
        }
        mr_status status =
            mr_profile_add_op_log(profile, (mr_string){changed, bytes.size_bytes - (size_t)(i % 7 == 0)}, &error);
        CHECK(status == MR_OK || status == MR_INVALID_ARGUMENT);
        accepted += status == MR_OK;
        mr_profile_view *view = nullptr;
        status = mr_profile_view_new(profile, MR_PROFILE_CODE, MR_OPTIONS(mr_profile_options, .select = 0xfff), &view,
                                     &error);
        CHECK(status == MR_OK || status == MR_NOT_FOUND);
        mr_profile_view_free(view);
        mr_profile_free(profile);
    }
    CHECK(accepted > 50 && accepted < 1000);
    mr_arena_deinit(&arena);
}
