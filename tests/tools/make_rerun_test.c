/* A second run in the directory of the first. Files that it does not write are removed once it is complete. A run that
 * fails leaves either the old dataset or a directory without labels.txt. */
#include "tests/tools/make_inputs.h"

[[gnu::format(printf, 1, 2)]] static const program_result *rerun(const char *format, ...)
{
    char arguments[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return program_run("cd '%s' && tfrecord-make --out out %s", test_directory(), arguments);
}

/* Creates d/a, d/b and d/c with six images each. */
static void make_classes(void)
{
    make_pngs("p", 18);
    CHECK_EQ(program_run("cd '%s' && mkdir -p d/a d/b d/c && for i in 0 3 6 9 12 15; do cp p/$i.png d/a; "
                         "cp p/$((i+1)).png d/b; cp p/$((i+2)).png d/c; done",
                         test_directory())
                 ->exit_code,
             0);
}

/* The names of the record files and their indexes. */
static const char *shards(void)
{
    return program_run("cd '%s/out' && ls | grep -v -e labels.txt | tr '\\n' ' '", test_directory())->output;
}

/* ---- Files of earlier runs ---- */

TEST(make_rerun_removes_the_files_of_other_splits)
{
    make_classes();
    CHECK_EQ(rerun("d")->exit_code, 0);
    /* A partial file left by a killed run. */
    save_text("out/d-validation-00000-of-00001.tfrecord.partial", "half");
    save_text("out/d-other-00000-of-00001.tfrecord", "of somebody else");
    const program_result *result = rerun("--split train=0.8,test=0.2 d");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 file of an earlier run removed");
    CHECK_STR(shards(), "d-other-00000-of-00001.tfrecord d-test-00000-of-00001.tfrecord "
                        "d-test-00000-of-00001.tfrecord.index d-train-00000-of-00001.tfrecord "
                        "d-train-00000-of-00001.tfrecord.index ");
    CHECK_EQ(program_run("rm '%s'/out/d-other*", test_directory())->exit_code, 0);
    CHECK_EQ(count_records("*.tfrecord"), 18);
    /* Removed files are reported once. If somebody else later creates a file of that name, it is not removed. */
    CHECK(!strstr(rerun("--split train=0.8,test=0.2 d")->output, "removed"));
    save_text("out/d-validation-00000-of-00001.tfrecord", "of somebody else");
    CHECK_EQ(rerun("--split train=0.8,test=0.2 d")->exit_code, 0);
    CHECK_CONTAINS(shards(), "d-validation-00000-of-00001.tfrecord ");
    CHECK_CONTAINS(rerun("d")->output, "was not written for this dataset and would be replaced");
}

/* Files left by an older version, which did not remove them. The journal lists them, so they may be removed. */
TEST(make_rerun_repairs_a_directory_with_leftovers)
{
    make_classes();
    CHECK_EQ(rerun("--shards 2 d")->exit_code, 0);
    CHECK_EQ(program_run("cd '%s' && mkdir kept && cp -p out/d-validation* kept", test_directory())->exit_code, 0);
    CHECK_EQ(rerun("--split all d")->exit_code, 0);
    CHECK_EQ(
        program_run("cd '%s' && cp -p kept/* out && sed -i '/^removed/d' out/.d.journal", test_directory())->exit_code,
        0);
    CHECK(count_records("*.tfrecord") > 18);
    CHECK_CONTAINS(rerun("--split all d")->output, "2 files of an earlier run removed");
    CHECK_EQ(count_records("*.tfrecord"), 18);
    CHECK_STR(shards(), "d-all-00000-of-00001.tfrecord d-all-00000-of-00001.tfrecord.index ");
}

TEST(make_rerun_follows_a_split_column)
{
    make_pngs("p", 3);
    save_text("l.csv", "path,label,split\np/0.png,x,one\np/1.png,x,two\np/2.png,y,two\n");
    CHECK_EQ(rerun("l.csv")->exit_code, 0);
    CHECK_EQ(rerun("--dry-run --split all l.csv")->exit_code, 0);
    CHECK_EQ(count_records("l-one-*.tfrecord"), 1);
    save_text("l.csv", "path,label,split\np/0.png,x,three\np/1.png,x,two\np/2.png,y,two\n");
    CHECK_CONTAINS(rerun("l.csv")->output, "1 file of an earlier run removed");
    CHECK_EQ(count_records("*.tfrecord"), 3);
    CHECK_EQ(count_records("l-three-*.tfrecord"), 1);
    /* With workers, the process that joins the parts removes them. */
    CHECK_EQ(rerun("--split all --worker 1/2 l.csv")->exit_code, 0);
    CHECK_EQ(rerun("--split all --worker 2/2 l.csv")->exit_code, 0);
    CHECK_CONTAINS(rerun("--split all --finish l.csv")->output, "2 files of an earlier run removed");
    CHECK_EQ(count_records("*.tfrecord"), 3);
}

/* ---- Runs that fail ---- */

/* The names and checksums of everything in out except the journal. */
static void read_state(char *state, size_t size)
{
    const program_result *result = program_run(
        "cd '%s/out' && find . -type f ! -name '.*.journal' | sort | xargs -d '\\n' cksum", test_directory());
    snprintf(state, size, "%s", result->output);
}

TEST(make_rerun_without_a_usable_image_changes_nothing)
{
    static char before[1 << 14], after[1 << 14];
    static const char *const options[] = {"", "--shards 20", "--compress gzip", "-j 1"};
    make_classes();
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        CHECK_EQ(program_run("cd '%s' && rm -rf out e && cp -r d e", test_directory())->exit_code, 0);
        CHECK_EQ(rerun("%s e", options[i])->exit_code, 0);
        read_state(before, sizeof before);
        CHECK_EQ(program_run("cd '%s' && for f in e/*/*; do :>$f; done", test_directory())->exit_code, 0);
        const program_result *result = rerun("--on-error skip --duplicates ignore %s e", options[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "none of its images can be used; no files were written");
        read_state(after, sizeof after);
        CHECK_STR(after, before);
        /* With one usable image, the files that contain no records are written too. */
        CHECK_EQ(program_run("cd '%s' && cp p/0.png e/a/0.png", test_directory())->exit_code, 0);
        CHECK_EQ(rerun("--on-error skip --duplicates ignore --shards 2 %s e", i == 1 ? "" : options[i])->exit_code, 0);
        CHECK_EQ(count_records("*.tfrecord"), 1);
        CHECK_EQ(atoi(program_run("ls '%s'/out/*.tfrecord | wc -l", test_directory())->output), 4);
    }
}

TEST(make_rerun_that_stops_has_no_labels_of_the_old_numbering)
{
    static char before[1 << 14], after[1 << 14];
    static const char options[] = "--shards 2 --duplicates ignore d";
    make_classes();
    CHECK_EQ(rerun("%s", options)->exit_code, 0);
    CHECK_EQ(program_run("cd '%s' && cp -rp d d.old && rm -r d/a && head -c 70 p/0.png >d/c/zz.png", test_directory())
                 ->exit_code,
             0);
    /* With one thread, where the run stops depends only on the seed. */
    int stops = 0, complete = 0;
    for (int seed = 1; seed <= 8; seed++) {
        CHECK_EQ(
            program_run(
                "cd '%s' && rm -rf out && tfrecord-make --out out --shuffle-seed %d --shards 2 --duplicates ignore "
                "--name d d.old",
                test_directory(), seed)
                ->exit_code,
            0);
        read_state(before, sizeof before);
        const program_result *result = rerun("-j 1 --shuffle-seed %d %s", seed, options);
        CHECK_EQ(result->exit_code, 1);
        bool is_reported = strstr(result->output, "incomplete: out/labels.txt was removed") != nullptr;
        read_state(after, sizeof after);
        bool is_unchanged = strcmp(before, after) == 0, has_labels = access(test_path("out/labels.txt"), F_OK) == 0;
        CHECK_EQ(has_labels, is_unchanged);
        CHECK_EQ(is_reported, !is_unchanged);
        stops += !is_unchanged;
        /* The run that completes writes the labels with its own numbering. */
        CHECK_EQ(rerun("--shuffle-seed %d --on-error skip %s", seed, options)->exit_code, 0);
        complete += strcmp(program_run("cat '%s/out/labels.txt'", test_directory())->output, "b\nc\n") == 0;
        CHECK(!strstr(records("image/class/text,image/class/label"), "[2]"));
    }
    CHECK(stops > 0);
    CHECK_EQ(complete, 8);
}

TEST(make_rerun_keeps_a_file_of_labels_that_it_reads)
{
    make_classes();
    CHECK_EQ(rerun("--shards 2 d")->exit_code, 0);
    CHECK_EQ(program_run("cd '%s' && mkdir d/z && head -c 70 p/0.png >d/z/zz.png", test_directory())->exit_code, 0);
    CHECK_EQ(rerun("-j 1 --shards 2 --labels out/labels.txt --append-labels d")->exit_code, 1);
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "a\nb\nc\n");
    /* In a dataset without labels, labels.txt is one of the files that are no longer written. */
    save_text("t.csv", "x,y\n1,2\n3,4\n");
    CHECK_EQ(rerun("--name d t.csv")->exit_code, 0);
    CHECK(access(test_path("out/labels.txt"), F_OK) != 0);
}

/* ---- Files that tfrecord-make did not write ---- */

TEST(make_rerun_does_not_replace_indexes_and_journals_of_others)
{
    static const struct {
        const char *name, *reason;
    } cases[] = {
        {"d-train-00000-of-00001.tfrecord.index", "was not written for this dataset and would be replaced"},
        {".d.journal", "out/.d.journal: is not a journal of this version of tfrecord-make"},
        {".d.worker-1-of-2.journal", "out/.d.worker-1-of-2.journal: is not a journal of this version"},
    };
    make_classes();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(program_run("cd '%s' && rm -rf out && mkdir out", test_directory())->exit_code, 0);
        file_save(test_path("out/%s", cases[i].name), "mine\n", 5);
        for (int j = 0; j < 3; j++) {
            static const char *const modes[] = {"--dry-run", "", "--worker 1/2"};
            const program_result *result = rerun("%s d", modes[j]);
            CHECK_EQ(result->exit_code, 1);
            CHECK_CONTAINS(result->output, cases[i].reason);
            char state[100];
            snprintf(state, sizeof state, "%s\nmine\n", cases[i].name);
            CHECK_STR(program_run("cd '%s/out' && ls -A && cat %s", test_directory(), cases[i].name)->output, state);
        }
    }
    /* The beginning of the journal's first line, left by a killed run. */
    CHECK_EQ(program_run("cd '%s' && rm -rf out && mkdir out && printf 'millrace tf' >out/.d.journal", test_directory())
                 ->exit_code,
             0);
    CHECK_EQ(rerun("d")->exit_code, 0);
}

/* ---- Boxes that are left out ---- */

TEST(make_rerun_help_names_the_annotations_that_are_left_out)
{
    make_pngs("p", 2);
    save_text("c.json", "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\", \"width\": 20, \"height\": 10}], "
                        "\"categories\": [{\"id\": 1, \"name\": \"dog\"}], \"annotations\": ["
                        "{\"image_id\": 0, \"category_id\": 1, \"bbox\": [1, 1, 3, 3]}, "
                        "{\"image_id\": 0, \"category_id\": 1, \"bbox\": [5, 5, 0, 3]}, "
                        "{\"image_id\": 0, \"category_id\": 1, \"bbox\": [500, 5, 10, 3]}, "
                        "{\"image_id\": 0, \"category_id\": 1}, "
                        "{\"image_id\": 7, \"category_id\": 1, \"bbox\": [1, 1, 3, 3]}]}");
    const program_result *result = make("--split all --images p c.json");
    CHECK_EQ(result->exit_code, 0);
    CHECK_EQ(count_noted(result->output, " boxes without area inside their image left out"), 2);
    CHECK_EQ(count_noted(result->output, " annotation without a box left out"), 1);
    CHECK_EQ(count_noted(result->output, " box of an image that is not listed left out"), 1);
    CHECK_CONTAINS(records("image/object/area"), "[9]");
    result = program_run("tfrecord-make --help on-error | tr -s ' \\n' ' '");
    CHECK_CONTAINS(result->output, "always left out without their image, and are counted: boxes without area or "
                                   "completely outside their image, COCO annotations without a box, and those whose "
                                   "image_id is not in \"images\"");
}
