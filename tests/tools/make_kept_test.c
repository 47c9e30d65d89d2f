/* No silent loss of input in tfrecord-make: everything in the input is counted, and is either written or reported. */
#include "tests/tools/make_inputs.h"

#include <dirent.h>

/* ---- Class directories ---- */

TEST(make_kept_class_directories_use_the_numbers_of_a_file)
{
    make_pngs("p", 4);
    save_text("old.txt", "rose\ndaisy\n");
    CHECK_EQ(
        program_run("cd '%s' && mkdir -p d/daisy d/rose && cp p/0.png d/daisy && cp p/1.png d/rose", test_directory())
            ->exit_code,
        0);
    CHECK_EQ(make("--split all --labels old.txt d")->exit_code, 0);
    CHECK_STR(records("image/class/*"),
              "{\"image/class/label\": {\"int64\": [0]}, \"image/class/text\": {\"bytes\": [\"rose\"]}}\n"
              "{\"image/class/label\": {\"int64\": [1]}, \"image/class/text\": {\"bytes\": [\"daisy\"]}}\n");
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "rose\ndaisy\n");

    /* A class that the labels file does not contain is an error; with --append-labels it gets the next number. */
    CHECK_EQ(program_run("cd '%s' && mkdir d/aster d/lily && cp p/2.png d/aster && cp p/3.png d/lily", test_directory())
                 ->exit_code,
             0);
    const program_result *result = make("--split all --labels old.txt d");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "d: the class \"aster\" is not in old.txt (nor are 1 more); append it there as a "
                                   "new line, or number it with --append-labels");
    CHECK_EQ(make("--split all --labels old.txt --append-labels d")->exit_code, 0);
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "rose\ndaisy\naster\nlily\n");
    CHECK_CONTAINS(records("image/class/*"), "[2]}, \"image/class/text\": {\"bytes\": [\"aster\"]}");
    CHECK_CONTAINS(records("image/class/*"), "[1]}, \"image/class/text\": {\"bytes\": [\"daisy\"]}");
    /* The labels file may be that of the previous run, which is updated in place. */
    CHECK_EQ(program_run("cd '%s' && mkdir d/ash && cp p/3.png d/ash/4.png && tfrecord-make --out out --split all "
                         "--labels out/labels.txt --append-labels d",
                         test_directory())
                 ->exit_code,
             0);
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "rose\ndaisy\naster\nlily\nash\n");
}

TEST(make_kept_names_in_directories_are_used_or_noted)
{
    make_pngs("p", 3);
    CHECK_EQ(
        program_run("cd '%s' && mkdir -p d/a/deep d/.b d/empty && cp p/0.png d/a/one.PNG && cp p/1.png d/a/deep && "
                    "cp p/2.png d/.b && cp p/2.png d/a/.c.png && cp p/2.png d/loose.png && touch d/a/notes.txt "
                    "d/.DS_Store d/a/._x.png d/a/Thumbs.db",
                    test_directory())
            ->exit_code,
        0);
    const program_result *result = make("--split all d");
    CHECK_EQ(result->exit_code, 0);
    CHECK_EQ(count_noted(result->output, " hidden files and directories left out"), 2);
    CHECK_EQ(count_noted(result->output, " file left out, not an image by name"), 1);
    CHECK_EQ(count_noted(result->output, " image outside class directories left out"), 1);
    CHECK_EQ(count_noted(result->output, " directory contains no images"), 1);
    CHECK_EQ(count_records("*.tfrecord"), 2);
}

/* ---- VOC ---- */

static void save_voc(const char *path, const char *rest)
{
    char text[2048];
    snprintf(text, sizeof text, "<annotation>%s</annotation>", rest);
    file_save(test_path("%s", path), text, strlen(text));
}

/* Creates v/Annotations/0.xml … and v/JPEGImages/0.png … */
static void make_voc(int annotations, int images)
{
    CHECK_EQ(
        program_run("cd '%s' && mkdir -p v/Annotations v/JPEGImages v/ImageSets/Main", test_directory())->exit_code, 0);
    make_pngs("v/JPEGImages", images);
    for (int i = 0; i < annotations; i++) {
        char path[64];
        snprintf(path, sizeof path, "v/Annotations/%d.xml", i);
        save_voc(path, "");
    }
}

TEST(make_kept_voc_lists_are_the_parts)
{
    make_voc(8, 9);
    save_text("v/ImageSets/Main/train.txt", "0\n1\r\n 2.png \n3\n9\n");
    save_text("v/ImageSets/Main/val.txt", "4\n\nJPEGImages/5.png\n");
    save_text("v/ImageSets/Main/trainval.txt", "0\n1\n2\n3\n4\n5\n9\n");
    save_text("v/ImageSets/Main/dog_train.txt", "0  1\n1 -1\n2  0\n");
    save_text("v/ImageSets/Main/test.txt", "");
    const program_result *result = make("v");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "v/Annotations/9.xml: no such file");
    result = make("--on-error skip v");
    CHECK_EQ(result->exit_code, 0);
    CHECK_EQ(count_noted(result->output, " annotations in no list of ImageSets/Main left out"), 2);
    CHECK_EQ(count_noted(result->output, " image without an .xml left out"), 1);
    CHECK_EQ(count_skipped(result->output), 1);
    CHECK_EQ(count_records("v-train-*.tfrecord"), 4);
    CHECK_EQ(count_records("v-val-*.tfrecord"), 2);
    CHECK_EQ(count_records("*.tfrecord"), 6);
    /* --split makes its own splits of all annotations, and the report says that the lists are ignored. */
    result = make("--split all v");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "the lists in ImageSets/Main are ignored: --split is given");
    CHECK_EQ(count_records("v-all-*.tfrecord"), 8);
    save_text("v/ImageSets/Main/val.txt", "4\n5\n3\n");
    CHECK_CONTAINS(make("v")->output,
                   "ImageSets/Main/val.txt: \"3\" is also in train.txt, but an image belongs to one split");
}

TEST(make_kept_reports_files_that_are_not_voc)
{
    make_voc(2, 2);
    CHECK_EQ(
        program_run("cd '%s' && rmdir v/ImageSets/Main && mkdir v/Annotations/more && touch v/Annotations/notes.txt && "
                    "cp v/JPEGImages/1.png v/JPEGImages/extra.png",
                    test_directory())
            ->exit_code,
        0);
    const program_result *result = make("--split all v");
    CHECK_EQ(result->exit_code, 0);
    CHECK_EQ(count_noted(result->output, " files and directories left out, not .xml by name: more"), 2);
    CHECK_EQ(count_noted(result->output, " image without an .xml left out: extra.png"), 1);
    CHECK_EQ(count_records("*.tfrecord"), 2);
}

TEST(make_kept_voc_words_and_other_encodings_are_read)
{
    static const char *const flags[][2] = {{"True", "1"}, {"false", "0"}, {"YES", "1"}, {"no", "0"},
                                           {"", "0"},     {" 1 ", "1"},   {"0", "0"},   {"Unspecified", "0"}};
    char text[1000];
    mkdir(test_path("v"), 0777);
    make_png(test_path("v/a.png"), 1, 20, 10);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        snprintf(text, sizeof text,
                 "<object><name>dog</name><difficult>%s</difficult><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax>"
                 "<ymax>5</ymax></bndbox></object>",
                 flags[i][0]);
        save_voc("v/a.xml", text);
        CHECK_EQ(make("--split all v")->exit_code, 0);
        snprintf(text, sizeof text, "{\"image/object/difficult\": {\"int64\": [%s]}}\n", flags[i][1]);
        CHECK_STR(records("image/object/difficult"), text);
    }
    save_voc("v/a.xml", "<object><name>dog</name><difficult>maybe</difficult></object>");
    CHECK_CONTAINS(make("v")->output, "annotation/object/difficult is not a number: \"maybe\"");

    static const struct {
        const char *begin, *name, *wanted;
        int noted;
    } encodings[] = {
        {"", "caf\xe9", "café", 1},
        {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "caf\xe9", "café", 1},
        {"<?xml version=\"1.0\"?>", "caf\xc3\xa9", "café", 0},
        {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>", "caf\xe9", "café", 0},
        {"<?xml version=\"1.0\" encoding=\"latin1\"?>", "caf\xe9", "café", 0},
        {"<?xml version=\"1.0\" encoding=\"windows-1252\"?>", "\x80 caf\xe9", "€ café", 0},
    };
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        snprintf(text, sizeof text,
                 "%s<annotation><object><name>%s</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax>"
                 "</bndbox></object></annotation>",
                 encodings[i].begin, encodings[i].name);
        save_text("v/a.xml", text);
        const program_result *result = make("--split all v");
        CHECK_EQ(result->exit_code, 0);
        CHECK_EQ(count_noted(result->output, " annotation is not UTF-8 and was read as Latin-1"), encodings[i].noted);
        CHECK_CONTAINS(records("image/object/class/text"), encodings[i].wanted);
    }
}

/* ---- Archives ---- */

/* Creates directory t with 0.png, 0.cls, … */
static void make_members(int count)
{
    make_pngs("t", count);
    for (int i = 0; i < count; i++) file_save(test_path("t/%d.cls", i), i % 2 ? "cat" : "dog", 3);
}

TEST(make_kept_archives_that_were_concatenated)
{
    make_members(17);
    CHECK_EQ(
        program_run("cd '%s/t' && tar -cf ../a.tar [0-6].* && tar -cf ../b.tar [7-9].* 1?.* && cat ../a.tar ../b.tar "
                    ">../x.tar && cat ../a.tar ../b.tar ../a.tar >../y.tar && cd .. && gzip -c x.tar >z.tar.gz",
                    test_directory())
            ->exit_code,
        0);
    CHECK_CONTAINS(make("--split all x.tar")->output, "x.tar: 17 samples in 2 classes");
    CHECK_EQ(count_records("*.tfrecord"), 17);
    /* Members of the same name in another archive are other samples. */
    CHECK_EQ(make("--split all --duplicates ignore y.tar")->exit_code, 0);
    CHECK_EQ(count_records("*.tfrecord"), 24);
    CHECK_EQ(make("--split all z.tar.gz")->exit_code, 0);
    CHECK_EQ(count_records("*.tfrecord"), 17);
    CHECK_EQ(program_run("cd '%s' && printf more >>x.tar", test_directory())->exit_code, 0);
    CHECK_CONTAINS(make("x.tar")->output, "x.tar: the tar header at byte ");
}

TEST(make_kept_members_that_do_not_follow_one_another)
{
    make_members(10);
    CHECK_EQ(
        program_run("cd '%s/t' && tar -cf ../x.tar *.png *.cls && tar --sort=name -cf ../y.tar .", test_directory())
            ->exit_code,
        0);
    const program_result *result = make("--split all x.tar");
    CHECK_EQ(result->exit_code, 0);
    CHECK_EQ(count_noted(result->output, " samples have members that are not consecutive; they were combined"), 10);
    char gathered[1 << 14];
    snprintf(gathered, sizeof gathered, "%s", records("image/class/*,image/filename,image/width"));
    CHECK_EQ(count_records("*.tfrecord"), 10);
    CHECK_EQ(program_run("cd '%s/t' && tar --sort=name -cf ../x.tar *", test_directory())->exit_code, 0);
    CHECK_EQ(make("--split all x.tar")->exit_code, 0);
    CHECK_STR(records("image/class/*,image/filename,image/width"), gathered);
    /* If a sample has two members of the same extension, one of them would be lost. */
    CHECK_EQ(program_run("cd '%s/t' && tar -cf ../x.tar 0.png 1.png 0.cls 1.cls && tar -rf ../x.tar 0.cls 1.png",
                         test_directory())
                 ->exit_code,
             0);
    result = make("--split all --on-error skip x.tar");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "x.tar: 0.cls: its sample already has a member with the extension \"cls\"");
    CHECK_CONTAINS(result->output, "x.tar: 1.png: its sample already has a member with the extension \"png\"");
}

TEST(make_kept_members_of_archives_name_their_shard)
{
    mr_error error = {0};
    mr_tensor array = {0};
    make_members(2);
    CHECK_OK(mr_tensor_init(&array, MR_INT8, MR_SHAPE(3), &error));
    memcpy(array.data, "\1\2\3", 3);
    CHECK_OK(mr_npy_save(test_path("t/0.x.i8.npy"), &array, &error));
    mr_tensor_deinit(&array);
    save_text("t/1.json", "{\"a\": 1");
    CHECK_EQ(program_run("cd '%s/t' && mkdir ../s && tar --sort=name -cf ../s/first.tar 0.* && tar --sort=name -cf "
                         "../s/second.tar 1.* && touch ../s/readme.txt",
                         test_directory())
                 ->exit_code,
             0);
    const program_result *result = make("--split all --on-error skip s");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "s/second.tar: 1.json: not a JSON object");
    CHECK_EQ(count_noted(result->output, " file or directory left out, not .tar by name: readme.txt"), 1);
    CHECK_EQ(count_skipped(result->output), 1);
    CHECK_STR(records("x.i8.npy"), "{\"x.i8.npy\": {\"int64\": [1, 2, 3]}}\n");
}

/* ---- Boxes ---- */

TEST(make_kept_coco_faults_cost_their_image_alone)
{
    make_pngs("p", 6);
    save_text(
        "c.json",
        "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}, {\"id\": 1, \"file_name\": \"1.png\"}, {\"id\": 2, "
        "\"file_name\": \"2.png\"}, {\"id\": 3, \"file_name\": \"3.png\"}, {\"id\": 3, \"file_name\": \"4.png\"}, "
        "{\"id\": 5}, {\"id\": 6, \"file_name\": \"5.png\"}, 7], \"categories\": [{\"id\": 1, \"name\": \"dog\"}], "
        "\"annotations\": ["
        "{\"image_id\": 0, \"category_id\": 1, \"bbox\": [1, 1, 3, 3]}, "
        "{\"image_id\": 1, \"category_id\": 9, \"bbox\": [1, 1, 3, 3]}, "
        "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 1, 3, 3]}, "
        "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [1, 1, \"3\", 3]}, "
        "{\"image_id\": 0, \"category_id\": 1, \"bbox\": [1, 1, 2, 3]}]}");
    CHECK_EQ(make("--images p c.json")->exit_code, 1);
    const program_result *result = make("--split all --on-error skip --images p c.json");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "annotations[1]: category 9 is not in \"categories\" (1.png)");
    CHECK_CONTAINS(result->output, "annotations[3]: \"bbox\" is not a list of four numbers (2.png)");
    CHECK_CONTAINS(result->output, "images[5]: \"file_name\" is not a string");
    CHECK_CONTAINS(result->output, "images[7]: is not an object");
    CHECK_CONTAINS(result->output, "image 3 occurs twice (3.png)");
    CHECK_CONTAINS(result->output, "image 3 occurs twice (4.png)");
    CHECK_EQ(count_skipped(result->output), 6);
    CHECK_EQ(count_records("*.tfrecord"), 2);
    CHECK_CONTAINS(records("image/object/area"), "[9, 6]");
}
