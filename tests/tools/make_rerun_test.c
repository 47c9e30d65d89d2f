/* A second run in the directory of the first: files that it does not write are removed when it is complete, and a run
 * that fails leaves either the old dataset or a directory without labels.txt. */
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

/* d/a, d/b, d/c with six images each. */
static void make_classes(void)
{
    make_pngs("p", 18);
    CHECK_EQ(program_run("cd '%s' && mkdir -p d/a d/b d/c && for i in 0 3 6 9 12 15; do cp p/$i.png d/a; "
                         "cp p/$((i+1)).png d/b; cp p/$((i+2)).png d/c; done",
                         test_directory())
                 ->exit_code,
             0);
}

/* The names of the record files and of their indexes. */
static const char *shards(void)
{
    return program_run("cd '%s/out' && ls | grep -v -e labels.txt | tr '\\n' ' '", test_directory())->output;
}

/* ---- Files of earlier runs ---- */

TEST(make_rerun_removes_the_files_of_other_splits)
{
    make_classes();
    CHECK_EQ(rerun("d")->exit_code, 0);
    /* A partial file that a killed run left. */
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
    /* It was reported once, and a file that takes the name later is not ours. */
    CHECK(!strstr(rerun("--split train=0.8,test=0.2 d")->output, "removed"));
    save_text("out/d-validation-00000-of-00001.tfrecord", "of somebody else");
    CHECK_EQ(rerun("--split train=0.8,test=0.2 d")->exit_code, 0);
    CHECK_CONTAINS(shards(), "d-validation-00000-of-00001.tfrecord ");
    CHECK_CONTAINS(rerun("d")->output, "was not written for this dataset and would be replaced");
}

/* Leftovers of a version that did not remove them: the journal names them, and so they are ours. */
TEST(make_rerun_repairs_a_directory_with_leftovers)
{
    make_classes();
    CHECK_EQ(rerun("--shards 2 d")->exit_code, 0);
    CHECK_EQ(program_run("cd '%s' && mkdir kept && cp -p out/d-validation* kept", test_directory())->exit_code, 0);
    CHECK_EQ(rerun("--split all d")->exit_code, 0);
    CHECK_EQ(program_run("cd '%s' && cp -p kept/* out && sed -i '/^removed/d' out/.d.journal", test_directory())
                 ->exit_code,
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
    /* Workers: the process that joins the parts removes them. */
    CHECK_EQ(rerun("--split all --worker 1/2 l.csv")->exit_code, 0);
    CHECK_EQ(rerun("--split all --worker 2/2 l.csv")->exit_code, 0);
    CHECK_CONTAINS(rerun("--split all --finish l.csv")->output, "2 files of an earlier run removed");
    CHECK_EQ(count_records("*.tfrecord"), 3);
}
