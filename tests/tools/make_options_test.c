/* Every option of tfrecord-make on every kind of input: the option either changes the output, or is an error that names
 * it. */
#include "tools/tfrecord-make/options_table.h"

#include "tests/tools/make_inputs.h"

/* How an option is tested. */
typedef struct trial {
    const char *name, *argument;
    const char *with;   /* options that it needs; the run without it has them too */
    const char *before; /* shell commands before the run */
    bool is_invisible;  /* it changes neither the records nor the report */
} trial;

static const trial trials[] = {
    {"append-labels", "", "--labels one.txt"},
    {"columns", "path,q,w,e"},
    {"compress", "gzip"},
    {"crop", "7", "--survey"},
    {"crop-ready", "", .is_invisible = true}, /* affects JPEGs only */
    {"dry-run", ""},
    {"duplicates", "ignore"},
    {"encode", "jpeg"},
    {"exclude", "*"},
    {"finish", "", .before = "tfrecord-make --out out $input >before;", .is_invisible = true},
    {"format", "", .is_invisible = true},
    {"group-by", "*", "--split a=0.5,b=0.5"},
    {"images", "other"},
    {"include", "*"},
    {"json", ""},
    {"jobs", "2", .is_invisible = true},
    {"key", "*"},
    {"keypoints", ""},
    {"label-column", "kind"},
    {"labels", "names.txt"},
    {"masks", ""},
    {"missing", "p"},
    {"name", "other"},
    {"no-check", "", .is_invisible = true},
    {"on-error", "skip", .is_invisible = true},
    {"out", "out", .is_invisible = true},
    {"path-column", "again"},
    {"image", "n"},
    {"quality", "5", "--encode jpeg"},
    {"raw", "n"},
    {"separator", "\\;"},
    {"shard-size", "10"},
    {"shards", "3"},
    {"shorter-side", "4"},
    {"shuffle-seed", "9"},
    {"skip-rows", "1"},
    {"split", "a=0.5,b=0.5"},
    {"split-column", "kind"},
    {"stratify", "", "--split a=0.5,b=0.5"},
    {"survey", ""},
    {"svg", "out.svg", "--survey", .is_invisible = true},
    {"target", "n"},
    {"types", "n=bytes"},
    {"upright", "", .is_invisible = true},
    {"wait", "1", .before = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", .is_invisible = true},
    {"worker", "1/2"},
};

static const struct {
    input_kind kind;
    const char *input, *options; /* options that the kind always needs */
    const char *key, *format;    /* for --key and --format */
    const char *group, *glob;    /* for --group-by, --include and --exclude */
    bool has_images;
} kinds[] = {
    {INPUT_DIRECTORY, "d", "", "image/class/text=", "directory", "'(.).png'", "'[0-3].png'", true},
    {INPUT_LIST_CSV, "l.csv", "", "n=", "list", "kind", "'[0-3].png'", true},
    {INPUT_LIST_JSON, "l.jsonl", "", "n=", "list", "kind", "'[0-3].png'", true},
    {INPUT_TABLE_CSV, "t.csv", "--format table", "n=", "table", "kind", "x", false},
    {INPUT_TABLE_JSON, "t.jsonl", "--format table", "n=", "table", "kind", "x", false},
    {INPUT_COCO, "c.json", "--images p", "image/source_id=", "coco", "'(.).png'", "'[0-3].png'", true},
    {INPUT_VOC, "v", "", "image/source_id=", "voc", "'(.).'", "'[0-3].*'", true},
    {INPUT_NUMPY, "n.npy", "", "n=m", "numpy", "n", "x", false},
    {INPUT_TAR, "x.tar", "", "json/n=", "tar", "'(.)'", "'[0-3]*'", true},
};

static void make_lists(void)
{
    static const char *const kinds_of[] = {"p", "q", "q", "p", "q", "p", "p", "q"};
    FILE *list = fopen(test_path("l.csv"), "w"), *list_json = fopen(test_path("l.jsonl"), "w"),
         *table = fopen(test_path("t.csv"), "w"), *table_json = fopen(test_path("t.jsonl"), "w");
    fputs("path,kind,n,label,again\n", list);
    fputs("kind,n,m\n", table);
    for (int i = 0; i < 8; i++) {
        const char *kind = kinds_of[i], *label = i % 2 ? "cat" : "dog";
        fprintf(list, "p/%d.png,%s,%d,%s,./p/%d.png\n", i, kind, i, label, i);
        fprintf(table, "%s,%d,x\n", kind, i);
        fprintf(list_json, "{\"path\": \"p/%d.png\", \"kind\": \"%s\", \"n\": %d, \"label\": \"%s\", ", i, kind, i,
                label);
        fprintf(list_json, "\"again\": \"./p/%d.png\"}\n", i);
        fprintf(table_json, "{\"kind\": \"%s\", \"n\": %d, \"m\": \"x\"}\n", kind, i);
    }
    fclose(list);
    fclose(list_json);
    fclose(table);
    fclose(table_json);
}

static void make_boxes(void)
{
    FILE *json = fopen(test_path("c.json"), "w");
    fputs(
        "{\"categories\": [{\"id\": 1, \"name\": \"dog\", \"keypoints\": [\"nose\"]}, {\"id\": 2, \"name\": \"cat\"}], "
        "\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}",
        json);
    for (int i = 1; i < 8; i++) fprintf(json, ",{\"id\": %d, \"file_name\": \"%d.png\"}", i, i);
    fputs("], \"annotations\": [", json);
    for (int i = 0; i < 8; i++) {
        fprintf(json, "%s{\"image_id\": %d, \"category_id\": %d, \"bbox\": [1, 1, 5, 5], ", i ? "," : "", i, 1 + i % 2);
        fprintf(json, "\"segmentation\": [[1, 1, 6, 1, 6, 6]]}");
    }
    fputs("]}", json);
    fclose(json);
    mkdir(test_path("v"), 0777);
    for (int i = 0; i < 8; i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "<annotation><filename>%d.png</filename><object><name>%s</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
                 "<xmax>5</xmax><ymax>5</ymax></bndbox></object></annotation>",
                 i, i % 2 ? "cat" : "dog");
        file_save(test_path("v/%d.xml", i), text, strlen(text));
    }
    CHECK_EQ(program_run("cd '%s' && cp p/*.png v", test_directory())->exit_code, 0);
}

/* Saves eight images, two of which are equal, as every kind of input. */
static void make_all(void)
{
    mr_error error = {0};
    mr_tensor array = {0};
    make_pngs("p", 7);
    make_png(test_path("p/7.png"), 0, 20, 10); /* same as 0.png */
    /* Other images with the same names. */
    mkdir(test_path("other"), 0777);
    for (int i = 0; i < 8; i++) make_png(test_path("other/%d.png", i), 100 + i, 20 + i, 10);
    CHECK_EQ(program_run("cd '%s' && cp -r other q && mv q other/p", test_directory())->exit_code, 0);
    make_lists();
    make_boxes();
    CHECK_OK(mr_tensor_init(&array, MR_UINT8, MR_SHAPE(8, 4, 5), &error));
    for (int i = 0; i < 8 * 20; i++) mr_tensor_uint8s(&array)[i] = (uint8_t)i;
    CHECK_OK(mr_npy_save(test_path("n.npy"), &array, &error));
    mr_tensor_deinit(&array);
    save_text("one.txt", "dog\n");
    save_text("names.txt", "zebra\ndog\ncat\n");
    CHECK_EQ(program_run(
                 "cd '%s' && mkdir -p d/cat d/dog t && for i in 0 2 4 6; do cp p/$i.png d/dog; printf dog > t/$i.cls; "
                 "done && for i in 1 3 5 7; do cp p/$i.png d/cat; printf cat > t/$i.cls; done && cp p/* t && "
                 "for i in 0 1 2 3 4 5 6 7; do printf '{\"n\": %%d}' $i > t/$i.json; done && "
                 "cd t && tar --sort=name -cf ../x.tar *",
                 test_directory())
                 ->exit_code,
             0);
}

/* The exit code, the report, and checksums of the output. */
static const char *run_state(const char *before, const char *with, size_t kind, const char *option, char *state,
                             size_t size)
{
    bool is_survey = strstr(with, "--survey") || strstr(option, "--survey");
    const program_result *result = program_run(
        "cd '%s' && rm -rf out && input='%s %s'; %s tfrecord-make %s $input %s %s >said 2>&1; "
        "echo \"exit $?\"; grep -v 'written in' said; cksum out/*.tfrecord out/*.txt 2>/dev/null; true",
        test_directory(), kinds[kind].options, kinds[kind].input, before, is_survey ? "" : "--out out", with, option);
    snprintf(state, size, "%s", result->output);
    return state;
}

static void try_option(const trial *trial, const option_row *row, size_t kind)
{
    static char without[1 << 15], state[1 << 15];
    char option[100], refusal[100];
    const char *argument = trial->argument;
    if (strcmp(row->name, "key") == 0) argument = kinds[kind].key;
    if (strcmp(row->name, "format") == 0) argument = kinds[kind].format;
    if (strcmp(row->name, "group-by") == 0) argument = kinds[kind].group;
    if (strcmp(row->name, "include") == 0 || strcmp(row->name, "exclude") == 0) argument = kinds[kind].glob;
    snprintf(option, sizeof option, "--%s %s", row->name, argument);
    snprintf(refusal, sizeof refusal, "--%s applies to ", row->name);
    bool applies = (row->inputs & kinds[kind].kind) && (kinds[kind].has_images || !row->is_for_images);
    const char *before = trial->before ? trial->before : "", *with = applies || row->needs ? trial->with : "";
    if (!with) with = "";
    run_state(before, with, kind, option, state, sizeof state);
    if (!applies) {
        /* The message may name the option that this one needs. */
        if (row->needs && !strstr(state, refusal)) snprintf(refusal, sizeof refusal, "--%s applies to ", row->needs);
        CHECK_CONTAINS(state, "exit 1");
        CHECK_CONTAINS(state, refusal);
        return;
    }
    CHECK(!strstr(state, refusal));
    if (!trial->is_invisible && strcmp(state, run_state(before, with, kind, "", without, sizeof without)) == 0)
        test_fail(__FILE__, __LINE__, "%s has no effect on %s, and is no error: %s", option, kinds[kind].input, state);
    if (trial->is_invisible) CHECK_CONTAINS(state, "exit 0");
}

static const trial *find_trial(const char *name)
{
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        if (strcmp(trials[i].name, name) == 0) return &trials[i];
    test_fail(__FILE__, __LINE__, "--%s is in option_rows and not tried here", name);
}

static void try_rows(int begin, int end)
{
    make_all();
    for (int i = begin; i < end; i++)
        for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
            if (option_rows[i].inputs) try_option(find_trial(option_rows[i].name), &option_rows[i], kind);
}

TEST(make_options_have_an_effect_or_are_errors_1)
{
    try_rows(0, OPTION_ROW_COUNT / 2);
}

TEST(make_options_have_an_effect_or_are_errors_2)
{
    try_rows(OPTION_ROW_COUNT / 2, OPTION_ROW_COUNT);
}

TEST(make_options_that_conflict_are_errors)
{
    make_all();
    for (int i = 0; i < OPTION_ROW_COUNT; i++) {
        const option_row *row = &option_rows[i];
        if (!row->inputs) continue; /* --help, --version */
        const trial *trial = find_trial(row->name);
        char command[200], wanted[200];
        snprintf(command, sizeof command, "--%s %s", row->name,
                 strcmp(trial->argument, "*") == 0 ? "a=b" : trial->argument);
        if (row->is_for_making) {
            const program_result *result =
                program_run("cd '%s' && tfrecord-make --survey %s %s d", test_directory(),
                            row->is_for_ranks ? "" : command, row->is_for_ranks ? command : "");
            snprintf(wanted, sizeof wanted, "--%s has no effect with --survey", row->name);
            CHECK_EQ(result->exit_code, 2);
            CHECK_CONTAINS(result->output, wanted);
        }
        if (row->needs) {
            const program_result *result = make("%s d", command);
            snprintf(wanted, sizeof wanted, "--%s has no effect without --%s", row->name, row->needs);
            CHECK_EQ(result->exit_code, 2);
            CHECK_CONTAINS(result->output, wanted);
        }
        for (int j = 0; j < 2 && row->conflicts[j]; j++) {
            const char *argument = find_trial(row->conflicts[j])->argument;
            const program_result *result =
                make("%s --%s %s d", command, row->conflicts[j], strcmp(argument, "*") == 0 ? "a=b" : argument);
            snprintf(wanted, sizeof wanted, "--%s has no effect with --%s", row->name, row->conflicts[j]);
            CHECK_EQ(result->exit_code, 2);
            CHECK_CONTAINS(result->output, wanted);
        }
        if (row->is_for_ranks)
            CHECK_CONTAINS(make("%s d", command)->output, "applies only to processes started by mpirun");
    }
}

/* An option that refers to something that the input does not have is an error too. */
TEST(make_options_that_match_nothing_are_errors)
{
    static const struct {
        const char *options, *reason;
    } cases[] = {
        {"--key nosuch=x d", "--key: d has no feature \"nosuch\"; it has image/filename"},
        {"--key 'nosuch/*=x/*' t.csv", "--key: t.csv has no feature \"nosuch/*\"; it has kind, n, m"},
        {"--key image/class/text= n.npy", "--key: n.npy has no feature \"image/class/text\"; it has n"},
        {"--key path=x l.csv", "--key: l.csv has no feature \"path\""},
        {"--key txt= x.tar", "--key: x.tar has no feature \"txt\"; it has "},
        {"--label-column nosuch l.csv", "--label-column: l.csv has no column \"nosuch\""},
        {"--label-column nosuch l.jsonl", "--label-column: l.jsonl has no column \"nosuch\""},
        {"--path-column nosuch l.jsonl", "--path-column: l.jsonl has no column \"nosuch\""},
        {"--split-column nosuch t.csv", "--split-column: t.csv has no column \"nosuch\""},
        {"--split-column nosuch t.jsonl", "--split-column: t.jsonl has no column \"nosuch\""},
        {"--target nosuch l.jsonl", "--target: l.jsonl has no column \"nosuch\""},
        {"--types nosuch=float x.tar", "--types: x.tar has no column \"nosuch\""},
        {"--labels names.txt --target n l.csv", "--labels: l.csv has no column \"label\" or \"class\""},
        {"--labels nosuch.txt d", "nosuch.txt: no such file"},
        {"--image n --raw n n.npy", "is given for --image, so --raw has no effect on it"},
        {"--image n --upright n.npy", "--upright applies to"},
    };
    make_all();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const program_result *result = make("%s", cases[i].options);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, cases[i].reason);
        CHECK(access(test_path("out"), F_OK) != 0);
    }
}
