/* --include and --exclude on every kind of input that has paths: what is selected, counted and warned about. */
#include "tests/tools/make_inputs.h"

/* Saves four images in two directories, as every kind of input. */
static void make_all(void)
{
    CHECK_EQ(
        program_run("cd '%s' && mkdir -p d/cat d/dog v/Annotations v/JPEGImages tars", test_directory())->exit_code, 0);
    for (int i = 0; i < 4; i++) {
        const char *class = i % 2 ? "cat" : "dog";
        char text[300];
        make_png(test_path("d/%s/%d.png", class, i), i, 8, 8);
        make_png(test_path("v/JPEGImages/%d.png", i), i, 8, 8);
        snprintf(text, sizeof text,
                 "<annotation><object><name>%s</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax>"
                 "</bndbox></object></annotation>",
                 class);
        file_save(test_path("v/Annotations/x%d.xml", i), text, strlen(text));
        CHECK_EQ(rename(test_path("v/JPEGImages/%d.png", i), test_path("v/JPEGImages/x%d.png", i)), 0);
        file_save(test_path("d/%s/%d.cls", class, i), class, 3);
    }
    save_text("l.csv", "path,label\nd/dog/0.png,dog\nd/cat/1.png,cat\nd/dog/2.png,dog\nd/cat/3.png,cat\n");
    save_text("c.json",
              "{\"images\": [{\"id\": 0, \"file_name\": \"dog/0.png\"}, {\"id\": 1, \"file_name\": \"cat/1.png\"}, "
              "{\"id\": 2, \"file_name\": \"dog/2.png\"}, {\"id\": 3, \"file_name\": \"cat/3.png\"}], "
              "\"categories\": [{\"id\": 1, \"name\": \"a\"}], \"annotations\": []}");
    CHECK_EQ(
        program_run("cd '%s/d' && tar --sort=name -cf ../x.tar cat dog && cd cat && tar -cf ../../tars/a.tar * && cd "
                    "../dog && tar -cf ../../tars/b.tar * && rm *.cls ../cat/*.cls",
                    test_directory())
            ->exit_code,
        0);
}

TEST(make_filters_select_matches_on_every_input)
{
    /* taken: the digits of the images; said: a line of the summary, "" for none */
    static const struct {
        const char *arguments, *taken, *said;
    } cases[] = {
        {"--exclude cat d", "02", "  1 directory left out by --exclude: cat\n"},
        {"--exclude cat/ d", "02", "  1 directory left out by --exclude: cat\n"},
        {"--exclude 'cat/*' d", "02", "  2 files left out by --include or --exclude: cat/1.png, …\n"},
        {"--include cat/ d", "13", "  2 files left out by --include or --exclude: dog/0.png, …\n"},
        {"--include '[!1].png' d", "023", "  1 file left out by --include or --exclude: cat/1.png\n"},
        {"--exclude 0.png/ d", "0123", "  warning: --exclude '0.png/' matches nothing\n"},
        {"--exclude '*.jpg' --exclude dog d", "13", "  warning: --exclude '*.jpg' matches nothing\n"},
        {"--exclude d/cat/ l.csv", "02", "l.csv: 2 images in 1 class, "},
        {"--exclude '*.jpg' l.csv", "0123", "  warning: --exclude '*.jpg' matches nothing\n"},
        {"--include '**/cat/' l.csv", "13", "  2 files left out by --include or --exclude: d/dog/0.png, …\n"},
        {"--exclude cat --images d c.json", "02", "c.json: 2 images in 1 class"},
        {"--include 'cat/*' --include dog/0.png --images d c.json", "013", "c.json: 3 images"},
        {"--exclude cat x.tar", "02", "x.tar: 2 samples in 1 class"},
        {"--exclude 'cat/1.cls' x.tar", "023", "  1 file left out by --include or --exclude: cat/1\n"},
        {"--include '*/?.png' x.tar", "0123", "x.tar: 4 samples"},
        {"--include 'dog/' x.tar", "02", "x.tar: 2 samples in 1 class"},
        {"--exclude '*.txt' x.tar", "0123", "  warning: --exclude '*.txt' matches nothing\n"},
        {"--exclude a.tar tars", "02", "  1 file left out by --include or --exclude: a.tar\n"},
        {"--include '[01].*' tars", "01", "tars: 2 samples"},
        {"--exclude x1.xml v", "023", "  1 file left out by --include or --exclude: JPEGImages/x1.png\n"},
        {"--exclude 'x[13].png' v", "02", "v: 2 images in 1 class"},
        {"--include 'JPEGImages/x0*' --include Annotations/x1.xml v", "01", "v: 2 images"},
        {"--exclude '*.jpg' v", "0123", "  warning: --exclude '*.jpg' matches nothing\n"},
    };
    make_all();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const program_result *result = make("--split all --shards 1 %s", cases[i].arguments);
        if (result->exit_code != 0 || !strstr(result->output, cases[i].said))
            test_fail(__FILE__, __LINE__, "%s: %s", cases[i].arguments, result->output);
        char taken[100], wanted[200];
        snprintf(taken, sizeof taken, "%s",
                 program_run("cd '%s' && tfrecord-cat --csv --features image/filename out | tail -n +2 | tr -dc "
                             "'0-9\\n' | sort | tr -d '\\n'",
                             test_directory())
                     ->output);
        if (strcmp(taken, cases[i].taken) != 0)
            test_fail(__FILE__, __LINE__, "%s: %s instead of %s", cases[i].arguments, taken, cases[i].taken);
        /* The summary in JSON has the same counts and warnings. */
        result = make("--split all --shards 1 --json %s", cases[i].arguments);
        snprintf(wanted, sizeof wanted, "\"rows\": %zu,", strlen(taken));
        CHECK_CONTAINS(result->output, wanted);
        if (strstr(cases[i].said, "warning")) CHECK_CONTAINS(result->output, "matches nothing\"");
        /* The survey accepts the options too. */
        CHECK_EQ(program_run("cd '%s' && tfrecord-make --survey %s", test_directory(), cases[i].arguments)->exit_code,
                 0);
    }
}

TEST(make_filters_that_match_nothing_are_errors)
{
    static const char *const inputs[] = {"d", "l.csv", "--images d c.json", "x.tar", "tars", "v"};
    make_all();
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        const program_result *result = make("--include '*.png' --include nosuch/ %s", inputs[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "--include 'nosuch/' matches nothing in ");
        result = make("--exclude '*.png' %s", inputs[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "--include and --exclude leave no ");
        result = make("--include nosuch %s", inputs[i]);
        CHECK_EQ(result->exit_code, 1);
        CHECK(access(test_path("out"), F_OK) != 0);
    }
}
