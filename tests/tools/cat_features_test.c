/* --features and --rename when records are copied from file to file, and --features with "!". */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

static const program_result *run(const char *command)
{
    return program_run("cd '%s' && %s", test_directory(), command);
}

static void check(int exit_code, const char *command, const char *part)
{
    const program_result *result = run(command);
    if (result->exit_code != exit_code || !strstr(result->output, part))
        test_fail(__FILE__, __LINE__, "%s: %d: %s", command, result->exit_code, result->output);
}

TEST(cat_rewrites_drop_and_rename_features)
{
    static const char *const rewrites[] = {"--merge --out o", "--split 1 --out o", "--shuffle --out o"};
    examples_write(test_path("a"), 20, (mr_record_writer_options){0});
    for (int i = 0; i < 3; i++) {
        char command[300];
        const char *result = i == 1 ? "o-00000-of-00001" : "o";
        snprintf(command, sizeof command, "tfrecord-cat %s --force --features 'label,b*,!boy' a", rewrites[i]);
        check(1, command, "no record has a feature that matches \"!boy\"");
        snprintf(command, sizeof command, "rm -f o*; tfrecord-cat %s --features 'l*,text,!t*' a", rewrites[i]);
        check(0, command, "20 records, ");
        snprintf(command, sizeof command,
                 "tfrecord-cat --json %s | grep -c '\"features\": {\"label\": {\"int64\": \\[[0-9]*\\]}}'", result);
        check(0, command, "20\n");
        /* All features but two are kept, one of them renamed. The kept features are unchanged byte for byte. */
        snprintf(command, sizeof command,
                 "rm -f o*; tfrecord-cat %s --features '!ids,!maybe' --rename 'label=class\\,label,raw=a\\=b' a",
                 rewrites[i]);
        check(0, command, "20 records, ");
        snprintf(command, sizeof command, "tfrecord-cat --record 3 --json %s", result);
        if (i < 2)
            check(0, command,
                  "\"features\": {\"box\": {\"float\": [0.5, 0.25, 3, 1e-9]}, \"class,label\": {\"int64\": [3]}, "
                  "\"a=b\": "
                  "{\"base64\": [\"AAH/\"]}, \"text\": {\"bytes\": [\"gr\xc3\xbc\xc3\x9f dich, \\\"Welt\\\"\\n\"]}}");
        snprintf(command, sizeof command, "tfrecord-cat --csv --features 'class\\,label' %s | sort -n | tail -1",
                 result);
        check(0, command, "19\n");
    }
    /* Input from a pipe is copied and renamed once, not once for each pass. */
    check(0,
          "rm -f o*; cat a | tfrecord-cat --shuffle --out o --rename label=ids,ids=label - && tfrecord-cat --schema o",
          "ids      int64  1             all");
    check(
        0,
        "tfrecord-cat --merge --out back --rename label=ids,ids=label o > said; tfrecord-cat --diff --unordered a back",
        "");
    /* Keeping every feature does not change the records. */
    check(0, "tfrecord-cat --merge --out same --features '*' a > said && tfrecord-cat --diff a same",
          "the same 20 records");
}

TEST(cat_rewrites_features_of_sequence_examples)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record;
    mr_example_add_int64(&encoder.context, "length", 2);
    mr_example_add_int64(&encoder.context, "tokens", 1);
    mr_sequence_add_int64_list(&encoder, "tokens", (int64_t[]){1, 2}, 2);
    mr_sequence_add_int64_list(&encoder, "other", (int64_t[]){3}, 1);
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    examples_write_one(test_path("s"), record);
    mr_sequence_encoder_deinit(&encoder);
    check(0, "tfrecord-cat --merge --out o --features 't*' --rename tokens=words s && tfrecord-cat --json o",
          "\"context\": {\"words\": {\"int64\": [1]}}, \"feature_lists\": {\"words\": [{\"int64\": [1, 2]}]}}");
    /* The list that is kept is unchanged; the context loses all of its features. */
    check(0, "tfrecord-cat --merge --out p --features other s && tfrecord-cat --json p",
          "\"context\": {}, \"feature_lists\": {\"other\": [{\"int64\": [3]}]}}");
    check(1, "tfrecord-cat --merge --out q --rename tokens=other s",
          "s: record 0 at byte 0: --rename: feature \"other\" already exists");
    CHECK(access(test_path("q"), F_OK) != 0);
}

TEST(cat_rewriting_features_refuses_mistakes)
{
    examples_write(test_path("a"), 3, (mr_record_writer_options){0});
    record_write(test_path("bytes"), 3, 100, (mr_record_writer_options){0});
    static const struct {
        int exit_code;
        const char *options, *part;
    } rows[] = {
        {1, "--rename label=text a", "a: record 0 at byte 0: --rename: feature \"text\" already exists"},
        {1, "--rename no=such a", "--rename: no record has a feature \"no\""},
        {1, "--features nothing a", "--features: no record has a feature that matches \"nothing\""},
        {1, "--features '*,!lable' a", "that matches \"!lable\""},
        {2, "--rename label a", "--rename: \"label\" is not OLD=NEW"},
        {2, "--rename =x a", "is not OLD=NEW"},
        {2, "--rename label= a", "is not OLD=NEW"},
        {2, "--rename a=x,b=x a", "--rename: \"b=x\" repeats a name"},
        {2, "--rename a=x,a=y a", "repeats a name"},
        {2, "--features text --rename label=x a", "--rename: --features excludes \"label\""},
        {1, "--features label bytes", "bytes: record 1 at byte 16: not an Example, as --features and --rename require"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const char *const commands[] = {"--merge", "--split 2", "--shuffle"};
        for (int j = 0; j < 3; j++) {
            char command[300];
            snprintf(command, sizeof command, "tfrecord-cat %s --out o %s; e=$?; ls | grep -c '^o'; exit $e",
                     commands[j], rows[i].options);
            check(rows[i].exit_code, command, rows[i].part);
            CHECK_CONTAINS(run(command)->output, "\n0\n");
        }
    }
    /* A feature may be renamed to the name of an excluded feature. */
    check(0, "tfrecord-cat --merge --out o --features '!text' --rename label=text a", "3 records");
}

TEST(cat_features_excludes)
{
    examples_write(test_path("a"), 2, (mr_record_writer_options){0});
    check(0, "tfrecord-cat --json --head 1 --features '!box,!text,!raw,!ids' a",
          "\"features\": {\"label\": {\"int64\": [0]}}}");
    check(0, "tfrecord-cat --csv --features 'label,t*,!t*' a", "label\n0\n1\n");
}
