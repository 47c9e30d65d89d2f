/* Prints a view of a graph for profiler_oracle.py: `profiler_views GRAPH KIND [OPTION=VALUE …]`. First its text, then a
 * line "== DEPTH NAME figures" for each entry. run=STEP:FILE adds a RunMetadata, op_log=FILE an OpLogProto, pprof=FILE
 * writes a profile for pprof; lists have one value for each option. */
#include <millrace/millrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 8, LISTS = 5, NUMBERS = 11 };

typedef struct arguments {
    mr_profile_options options;
    int64_t step;
    mr_name lists[LISTS][LIST_MAX];
    const char *pprof;
} arguments;

static mr_status add_run(mr_profile *profile, const char *value, mr_error *error)
{
    char *end;
    const int64_t step = strtoll(value, &end, 10);
    FILE *file = fopen(end + 1, "rb");
    if (file == NULL) return mr_fail(error, MR_NOT_FOUND, "%s cannot be opened", end + 1);
    static char bytes[1 << 22];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return mr_profile_add_run(profile, step, MR_VALUE_(mr_string, bytes, size), error);
}

static mr_status add_op_log(mr_profile *profile, const char *path, mr_error *error)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return mr_fail(error, MR_NOT_FOUND, "%s cannot be opened", path);
    static char bytes[1 << 22];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return mr_profile_add_op_log(profile, MR_VALUE_(mr_string, bytes, size), error);
}

static mr_status parse(arguments *a, mr_profile *profile, const char *text, mr_error *error)
{
    mr_profile_options *o = &a->options;
    const struct {
        const char *name;
        int64_t *value;
    } numbers[] = {{"min_bytes", &o->min_bytes},
                   {"min_peak_bytes", &o->min_peak_bytes},
                   {"min_residual_bytes", &o->min_residual_bytes},
                   {"min_output_bytes", &o->min_output_bytes},
                   {"min_micros", &o->min_micros},
                   {"min_accelerator_micros", &o->min_accelerator_micros},
                   {"min_cpu_micros", &o->min_cpu_micros},
                   {"min_params", &o->min_params},
                   {"min_float_ops", &o->min_float_ops},
                   {"min_occurrence", &o->min_occurrence},
                   {"step", &a->step}};
    const struct {
        const char *name;
        mr_names *list;
    } lists[] = {{"account_type_regexes", &o->account_type_regexes},
                 {"start_name_regexes", &o->start_name_regexes},
                 {"trim_name_regexes", &o->trim_name_regexes},
                 {"show_name_regexes", &o->show_name_regexes},
                 {"hide_name_regexes", &o->hide_name_regexes}};
    const char *value = strchr(text, '=') + 1;
    const size_t length = (size_t)(value - text) - 1;
#define IS(option) (strlen(option) == length && strncmp(option, text, length) == 0)
    for (int i = 0; i < NUMBERS; i++)
        if (IS(numbers[i].name)) *numbers[i].value = strtoll(value, NULL, 10);
    for (int i = 0; i < LISTS; i++) {
        if (!IS(lists[i].name)) continue;
        a->lists[i][lists[i].list->count] = value;
        *lists[i].list = MR_VALUE_(mr_names, a->lists[i], lists[i].list->count + 1);
    }
    if (IS("pprof")) a->pprof = value;
    if (IS("step")) o->step = &a->step;
    if (IS("select")) o->select = (int32_t)strtol(value, NULL, 10);
    if (IS("order_by")) o->order_by = (mr_profile_column)strtol(value, NULL, 10);
    if (IS("max_depth")) o->max_depth = (int32_t)strtol(value, NULL, 10);
    if (IS("account_displayed_op_only")) o->account_displayed_op_only = strcmp(value, "1") == 0;
    if (IS("op_log")) return add_op_log(profile, value, error);
    return IS("run") ? add_run(profile, value, error) : MR_OK;
#undef IS
}

static void print_figures(const mr_profile_figures *f)
{
    const int64_t values[] = {f->parameters,     f->float_ops,    f->requested_bytes, f->peak_bytes,
                              f->residual_bytes, f->output_bytes, f->micros,          f->accelerator_micros,
                              f->cpu_micros,     f->run_count,    f->definition_count};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) printf(" %lld", (long long)values[i]);
}

static void print_entry(const mr_profile_entry *entry, int depth)
{
    printf("== %d %s", depth, entry->name);
    print_figures(&entry->own);
    print_figures(&entry->total);
    printf(" %d\n", entry->node_count);
    for (int32_t i = 0; i < entry->child_count; i++) print_entry(entry->children[i], depth + 1);
}

static mr_status run(int argc, char **argv, mr_error *error)
{
    static const char *const kinds[] = {"scope", "graph", "op", "code"};
    arguments a = {.options = {.size = sizeof a.options}};
    mr_model *model = NULL;
    mr_profile *profile = NULL;
    mr_profile_view *view = NULL;
    int kind = 0;
    while (kind < 3 && strcmp(kinds[kind], argv[2]) != 0) kind++;
    MR_TRY(mr_model_open(argv[1], NULL, &model, error));
    MR_TRY(mr_profile_new(mr_model_graph(model), &profile, error));
    mr_model_free(model);
    for (int i = 3; i < argc; i++) MR_TRY(parse(&a, profile, argv[i], error));
    MR_TRY(mr_profile_view_new(profile, (mr_profile_kind)kind, &a.options, &view, error));
    mr_profile_free(profile);
    printf("%s", mr_profile_view_text(view));
    print_entry(mr_profile_view_root(view), 0);
    if (a.pprof != NULL) MR_TRY(mr_profile_view_write_pprof(view, a.pprof, error));
    mr_profile_view_free(view);
    return MR_OK;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc < 3) return 2;
    const mr_status status = run(argc, argv, &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    return status != MR_OK;
}
