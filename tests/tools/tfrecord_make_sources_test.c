/* The input formats of tfrecord-make: lists, tables, boxes, arrays and archives; ordinary, unusual and hostile. The
 * test reads the records back with tfrecord-cat; make_oracle.py reads them with TensorFlow. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/example.h>
#include <millrace/formats.h>
#include <millrace/image.h>

#include <stdarg.h>
#include <sys/stat.h>

/* Saves a small PNG of width x height whose pixels depend on number. */
static void make_png(const char *path, int number, int width, int height)
{
    mr_error error = {0};
    mr_tensor pixels = {0}, bytes = {0};
    CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(height, width, 3), &error));
    for (int64_t i = 0; i < mr_tensor_count(&pixels); i++) mr_tensor_uint8s(&pixels)[i] = (uint8_t)(i * (number + 3));
    CHECK_OK(mr_image_encode_png(&pixels, &bytes, &error));
    mr_string png = mr_tensor_strings(&bytes)[0];
    file_save(path, png.data, png.size_bytes);
    mr_tensor_deinit(&pixels);
    mr_tensor_deinit(&bytes);
}

static void make_pngs(int count)
{
    mkdir(test_path("p"), 0777);
    for (int i = 0; i < count; i++) make_png(test_path("p/%d.png", i), i, 20 + i, 10);
}

static void save_text(const char *name, const char *text)
{
    file_save(test_path("%s", name), text, strlen(text));
}

/* Runs tfrecord-make in the test's directory, with one split, in out. */
[[gnu::format(printf, 1, 2)]] static const program_result *make(const char *format, ...)
{
    char arguments[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return program_run("cd '%s' && tfrecord-make --out out --split all %s", test_directory(), arguments);
}

/* The features of all records as sorted JSON Lines. */
static const char *records(const char *features)
{
    const program_result *result = program_run(
        "cd '%s' && tfrecord-cat --json --features '%s' out/*.tfrecord | sed 's/.*\"features\": //; s/}$//' | sort",
        test_directory(), features);
    CHECK_EQ(result->exit_code, 0);
    return result->output;
}

/* ---- Lists ---- */

TEST(make_list_columns_become_typed_features)
{
    make_pngs(3);
    save_text("list.csv", "\xef\xbb\xbfpath,label,age,code,score,note\r\n"
                          "p/0.png,rose,7,007,1.5,\"a \"\"b\"\"\"\r\n"
                          "p/1.png,\"daisy, white\",,12,2,\r\n"
                          "p/2.png,rose,-3,5,nan,\"\"\r\n");
    const program_result *result = make("list.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "3 images in 2 classes");
    CHECK_STR(
        records("age,code,score,note,image/class/*"),
        "{\"age\": {\"int64\": [-3]}, \"code\": {\"bytes\": [\"5\"]}, \"image/class/label\": {\"int64\": [1]}, "
        "\"image/class/text\": {\"bytes\": [\"rose\"]}, \"note\": {\"bytes\": [\"\"]}, \"score\": {\"float\": "
        "[\"NaN\"]}}\n"
        "{\"age\": {\"int64\": [7]}, \"code\": {\"bytes\": [\"007\"]}, \"image/class/label\": {\"int64\": [1]}, "
        "\"image/class/text\": {\"bytes\": [\"rose\"]}, \"note\": {\"bytes\": [\"a \\\"b\\\"\"]}, \"score\": "
        "{\"float\": "
        "[1.5]}}\n"
        "{\"code\": {\"bytes\": [\"12\"]}, \"image/class/label\": {\"int64\": [0]}, \"image/class/text\": {\"bytes\": "
        "[\"daisy, white\"]}, \"score\": {\"float\": [2]}}\n");
}

TEST(make_list_reports_faults_with_their_line)
{
    make_pngs(2);
    save_text(
        "list.csv",
        "path,label,n\np/0.png,a,1\n\n,a,1\np/1.png,,1\np/1.png,b\np/gone.png,b,2\np/1.png,b,99999999999999999999\n");
    const program_result *result = make("--on-error skip --types n=int64 --duplicates ignore list.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "list.csv: line 4: no image path");
    CHECK_CONTAINS(result->output, "list.csv: line 5: no label");
    CHECK_CONTAINS(result->output, "list.csv: line 6: the row has 2 cells, but 3 columns have names");
    CHECK_CONTAINS(result->output, "p/gone.png: no such file");
    CHECK_CONTAINS(result->output, "list.csv: line 8, column n: \"99999999999999999999\" is not an int64");
    CHECK_STR(records("image/filename"), "{\"image/filename\": {\"bytes\": [\"p/0.png\"]}}\n");
    result = make("--types n=int64 list.csv");
    CHECK_EQ(result->exit_code, 1);
}

TEST(make_list_labels_are_numbers_names_or_those_of_a_file)
{
    make_pngs(2);
    save_text("list.csv", "image,class\np/0.png,7\np/1.png,0\n");
    CHECK_EQ(make("list.csv")->exit_code, 0);
    CHECK_STR(records("image/class/*"),
              "{\"image/class/label\": {\"int64\": [0]}}\n{\"image/class/label\": {\"int64\": [7]}}\n");
    CHECK(access(test_path("out/labels.txt"), F_OK) != 0);

    save_text("names.txt", "ash\r\n\nbeech\noak");
    save_text("trees.csv", "image,class\np/0.png,oak\np/1.png,ash\n");
    CHECK_EQ(make("--name trees --labels names.txt trees.csv")->exit_code, 0);
    CHECK_CONTAINS(program_run("cat '%s/out/labels.txt'", test_directory())->output, "ash\n\nbeech\noak\n");
    save_text("numbers.csv", "image,class\np/0.png,3\np/1.png,0\n");
    CHECK_EQ(make("--name numbers --labels names.txt numbers.csv")->exit_code, 0);
    CHECK_CONTAINS(records("image/class/*"),
                   "{\"image/class/label\": {\"int64\": [3]}, \"image/class/text\": {\"bytes\": [\"oak\"]}}");
    save_text("elm.csv", "image,class\np/0.png,elm\n");
    CHECK_CONTAINS(make("--labels names.txt elm.csv")->output, "the class \"elm\" is not in names.txt");
    save_text("hole.csv", "image,class\np/0.png,1\n");
    CHECK_CONTAINS(make("--labels names.txt hole.csv")->output, "the label 1 has no line in names.txt");
}

TEST(make_list_targets_are_one_feature)
{
    make_pngs(3);
    save_text("list.tsv", "file\tx\ty\np/0.png\t1e3\t-.5\np/1.png\t2\t\np/2.png\tx\t1\n");
    const program_result *result = make("--on-error skip --target y,x list.tsv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "list.tsv: line 3, column y: the cell is empty");
    CHECK_CONTAINS(result->output, "list.tsv: line 4, column x: \"x\" is not a number");
    CHECK_STR(records("image/target,x,y"), "{\"image/target\": {\"float\": [-0.5, 1000]}}\n");
    save_text("r.csv", "path,value\np/0.png,3\n");
    CHECK_EQ(make("--name r --format regression --key image/target=label r.csv")->exit_code, 0);
    CHECK_CONTAINS(records("label"), "{\"label\": {\"float\": [3]}}");
}

TEST(make_list_headers_that_are_invalid_are_errors)
{
    static const struct {
        const char *text, *options, *reason;
    } cases[] = {
        {"p/0.png,3\np/1.png,4\n", "", "line 1 contains values, not column names"},
        {"path,label,label\nx,1,2\n", "", "the column \"label\" occurs twice"},
        {"", "", "contains no rows"},
        {"path,label\n", "", "contains no rows"},
        {"a,b\n\"x,1\n", "", "line 2: cell 1: unterminated quote"},
        {"path,label\nx,1\n", "--label-column kind", "has no column \"kind\""},
        {"path,label\nx,1\n", "--target kind", "has no column \"kind\""},
        {"path,label\nx,1\n", "--types kind=int64", "has no column \"kind\""},
        {"path,label\nx,1\n", "--types label=double", "\"double\" is not int64, float or bytes"},
        {"path,x\na,1\n", "--format regression", "the target column is unknown"},
        {"a,b\n1,2\n", "--format list", "the column of image paths is unknown"},
        {"\xff\xfe"
         "a",
         "", "UTF-16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        save_text("list.csv", cases[i].text);
        const program_result *result = make("%s list.csv", cases[i].options);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, cases[i].reason);
    }
    CHECK(access(test_path("out"), F_OK) != 0);
}

TEST(make_list_paths_outside_the_directory_are_read_and_reported)
{
    make_pngs(2);
    mkdir(test_path("lists"), 0777);
    save_text("lists/list.csv", "path,label\n../p/0.png,a\n");
    const program_result *result = make("lists/list.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 image is outside the image directory: ../p/0.png");
    save_text("bare.csv", "0.png;a\n1.png;b\n");
    CHECK_EQ(program_run("rm -r '%s/out'", test_directory())->exit_code, 0);
    CHECK_EQ(make("--name bare --columns path,label --separator ';' --images p bare.csv")->exit_code, 0);
    CHECK_CONTAINS(records("image/filename,image/class/text"), "\"b\"");
}

TEST(make_json_lines_are_flattened_and_widened)
{
    make_pngs(4);
    save_text("list.jsonl",
              "{\"path\": \"p/0.png\", \"label\": \"b\", \"n\": 1, \"size\": {\"w\": 3}, \"l\": [1, 2.5]}\n"
              "\r\n"
              "{\"path\": \"p/1.png\", \"label\": \"a\", \"n\": 1.5, \"l\": [], \"t\": true, \"m\": \"x\"}\r\n"
              "{\"path\": \"p/2.png\", \"label\": \"a\", \"l\": [[7], [8]], \"m\": 5, \"o\": [{\"k\": 1}]}\n"
              "{\"path\": \"p/3.png\", \"label\": \n"
              "[1]\n"
              "{\"path\": \"p/3.png\", \"path\": \"p/1.png\", \"label\": \"a\"}\n"
              "{\"path\": \"p/3.png\", \"label\": null, \"n\": null}");
    const program_result *result = make("--on-error skip list.jsonl");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "list.jsonl: line 5: not a JSON object");
    CHECK_CONTAINS(result->output, "list.jsonl: line 6: not a JSON object: it must start with {");
    CHECK_CONTAINS(result->output, "list.jsonl: line 7: not a JSON object: duplicate object key");
    CHECK_CONTAINS(result->output, "list.jsonl: line 8: no label");
    CHECK_STR(records("n,size/*,l,t,m,o,image/class/label"),
              "{\"image/class/label\": {\"int64\": [0]}, \"l\": {\"float\": [7, 8]}, \"m\": {\"bytes\": [\"5\"]}, "
              "\"o\": {\"bytes\": "
              "[\"{\\\"k\\\":1}\"]}}\n"
              "{\"image/class/label\": {\"int64\": [0]}, \"l\": {\"float\": []}, \"m\": {\"bytes\": [\"x\"]}, \"n\": "
              "{\"float\": [1.5]}, "
              "\"t\": {\"int64\": [1]}}\n"
              "{\"image/class/label\": {\"int64\": [1]}, \"l\": {\"float\": [1, 2.5]}, \"n\": {\"float\": [1]}, "
              "\"size/w\": {\"int64\": "
              "[3]}}\n");
}

/* ---- Tables ---- */

TEST(make_table_rows_are_split_by_content)
{
    FILE *file = fopen(test_path("table.csv"), "w");
    fputs("a,b\n", file);
    for (int i = 0; i < 400; i++) fprintf(file, "%d,%d\n", i, i % 7);
    fclose(file);
    CHECK_EQ(program_run("cd '%s' && tfrecord-make --out out table.csv", test_directory())->exit_code, 0);
    CHECK_EQ(program_run(
                 "cd '%s' && tfrecord-cat --json --features a out/*validation* | sed 's/.*features//' | sort > before",
                 test_directory())
                 ->exit_code,
             0);
    /* Adding and moving rows does not change the splits of the others. Equal rows are in one split. */
    file = fopen(test_path("table.csv"), "w");
    fputs("a,b\n", file);
    for (int i = 599; i >= 0; i--) fprintf(file, "%d,%d\n", i, i % 7);
    for (int i = 0; i < 20; i++) fputs("5,5\n", file);
    fclose(file);
    CHECK_EQ(program_run("cd '%s' && tfrecord-make --out out table.csv", test_directory())->exit_code, 0);
    CHECK_EQ(program_run(
                 "cd '%s' && tfrecord-cat --json --features a out/*validation* | sed 's/.*features//' | sort > after",
                 test_directory())
                 ->exit_code,
             0);
    CHECK_STR(program_run("cd '%s' && comm -23 before after", test_directory())->output, "");
    CHECK_STR(
        program_run(
            "cd '%s' && for f in out/*.tfrecord; do tfrecord-cat --json --where 'a == 5' $f | wc -l; done | sort -n",
            test_directory())
            ->output,
        "0\n21\n");
    CHECK_CONTAINS(program_run("cd '%s' && tfrecord-make --out out table.csv", test_directory())->output, "0 rows");
}

TEST(make_table_bytes_do_not_depend_on_the_jobs)
{
    FILE *file = fopen(test_path("table.csv"), "w");
    fputs("a,b,c\n", file);
    for (int i = 0; i < 3000; i++) fprintf(file, "%d,\"x\"\"%d\",%g\n", i, i, i / 7.0);
    fclose(file);
    CHECK_EQ(program_run("cd '%s' && tfrecord-make --out one -j 1 --shards 2 table.csv", test_directory())->exit_code,
             0);
    CHECK_EQ(program_run("cd '%s' && tfrecord-make --out six -j 6 --shards 2 table.csv", test_directory())->exit_code,
             0);
    CHECK_EQ(
        program_run("cd '%s' && for f in one/*.tfrecord; do cmp $f six/${f#one/} || exit 1; done", test_directory())
            ->exit_code,
        0);
}

TEST(make_table_keys_are_renamed_and_left_out)
{
    save_text("table.csv", "a,b,c,in/x,in/y\n1,2,3,4,5\n");
    CHECK_EQ(make("--key a=alpha --key b= --key 'in/*=out/*' --key in/y=why table.csv")->exit_code, 0);
    CHECK_STR(records("*"), "{\"alpha\": {\"int64\": [1]}, \"c\": {\"int64\": [3]}, \"out/x\": {\"int64\": [4]}, "
                            "\"why\": {\"int64\": [5]}}\n");
    CHECK_EQ(make("--key a table.csv")->exit_code, 2);
    CHECK_EQ(make("--key 'a/*=b' table.csv")->exit_code, 2);
    CHECK_EQ(make("--key a=b --key a=c table.csv")->exit_code, 2);
    /* A record cannot have two features of the same name. */
    const program_result *result = make("--name twice --key a=c table.csv");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "\"c\"");
}

/* ---- Boxes ---- */

TEST(make_coco_boxes_are_checked_and_cut)
{
    make_pngs(3);
    save_text("c.json", "{\"images\": [{\"id\": 5, \"file_name\": \"0.png\", \"width\": 20, \"height\": 10},"
                        "{\"id\": 6, \"file_name\": \"1.png\", \"width\": 99, \"height\": 10},"
                        "{\"id\": 7, \"file_name\": \"2.png\"}],"
                        "\"categories\": [{\"id\": 3, \"name\": \"dog\"}], \"annotations\": ["
                        "{\"image_id\": 5, \"category_id\": 3, \"bbox\": [-5, 5, 10, 10], \"area\": 4, \"iscrowd\": 1},"
                        "{\"image_id\": 5, \"category_id\": 3, \"bbox\": [5, 5, 0, 1]},"
                        "{\"image_id\": 5, \"category_id\": 3, \"bbox\": [25, 5, 3, 1]},"
                        "{\"image_id\": 8, \"category_id\": 3, \"bbox\": [1, 1, 3, 1]},"
                        "{\"image_id\": 5, \"caption\": \"a dog\"},"
                        "{\"image_id\": 7, \"category_id\": 3, \"bbox\": [11, 5, 11, 5]}]}");
    const program_result *result = make("--on-error skip --images p c.json");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 box cut at the edge of its image: annotations[0]");
    CHECK_CONTAINS(result->output, "2 boxes without area inside their image left out: annotations[1]");
    CHECK_CONTAINS(result->output, "1 box of an image that is not listed left out: annotations[3]");
    CHECK_CONTAINS(result->output, "1 annotation without a box left out");
    CHECK_CONTAINS(result->output, "p/1.png: its boxes refer to an image of 99 x 10 pixels, but the image has 21 x 10");
    CHECK_STR(records("image/object/*,image/source_id"),
              "{\"image/object/area\": {\"float\": [4]}, "
              "\"image/object/bbox/xmax\": {\"float\": [0.25]}, \"image/object/bbox/xmin\": {\"float\": [0]}, "
              "\"image/object/bbox/ymax\": {\"float\": [1]}, \"image/object/bbox/ymin\": {\"float\": [0.5]}, "
              "\"image/object/class/label\": {\"int64\": [3]}, \"image/object/class/text\": {\"bytes\": [\"dog\"]}, "
              "\"image/object/is_crowd\": {\"int64\": [1]}, \"image/source_id\": {\"bytes\": [\"5\"]}}\n"
              "{\"image/object/area\": {\"float\": [55]}, "
              "\"image/object/bbox/xmax\": {\"float\": [1]}, \"image/object/bbox/xmin\": {\"float\": [0.5]}, "
              "\"image/object/bbox/ymax\": {\"float\": [1]}, \"image/object/bbox/ymin\": {\"float\": [0.5]}, "
              "\"image/object/class/label\": {\"int64\": [3]}, \"image/object/class/text\": {\"bytes\": [\"dog\"]}, "
              "\"image/object/is_crowd\": {\"int64\": [0]}, \"image/source_id\": {\"bytes\": [\"7\"]}}\n");
}

TEST(make_coco_keypoints_are_parts_of_the_image)
{
    make_pngs(2);
    save_text("c.json",
              "{\"images\": [{\"id\": 5, \"file_name\": \"0.png\", \"width\": 20, \"height\": 10},"
              "{\"id\": 6, \"file_name\": \"1.png\"}], \"annotations\": ["
              "{\"image_id\": 5, \"category_id\": 1, \"bbox\": [0, 0, 10, 10], \"num_keypoints\": 2, "
              "\"keypoints\": [5, 2.5, 2, 0, 0, 0, 25, 10, 1]},"
              "{\"image_id\": 5, \"category_id\": 2, \"bbox\": [0, 0, 5, 5]}],"
              "\"categories\": [{\"id\": 1, \"name\": \"person\", \"keypoints\": [\"nose\", \"eye\", \"ear\"]},"
              "{\"id\": 2, \"name\": \"dog\"}]}");
    CHECK_EQ(make("--keypoints --images p c.json")->exit_code, 0);
    CHECK_STR(records("image/object/keypoint/*"),
              "{\"image/object/keypoint/num\": {\"int64\": [2, 0]}, "
              "\"image/object/keypoint/text\": {\"bytes\": [\"nose\", \"eye\", \"ear\", \"nose\", \"eye\", \"ear\"]}, "
              "\"image/object/keypoint/visibility\": {\"int64\": [2, 0, 1, 0, 0, 0]}, "
              "\"image/object/keypoint/x\": {\"float\": [0.25, 0, 1.25, 0, 0, 0]}, "
              "\"image/object/keypoint/y\": {\"float\": [0.25, 0, 1, 0, 0, 0]}}\n"
              "{\"image/object/keypoint/num\": {\"int64\": []}, \"image/object/keypoint/text\": {\"bytes\": []}, "
              "\"image/object/keypoint/visibility\": {\"int64\": []}, \"image/object/keypoint/x\": {\"float\": []}, "
              "\"image/object/keypoint/y\": {\"float\": []}}\n");
    /* Keypoints are written only with --keypoints; the option causes all images to be written again. */
    CHECK_CONTAINS(make("--images p c.json")->output, "2 images written");
    CHECK_STR(records("image/object/keypoint/*"), "{}\n{}\n");
    static const struct {
        const char *points, *names, *reason;
    } cases[] = {
        {"[1, 2]", "[\"a\"]", "annotations[0]: \"keypoints\" is not a list of at most 10,000 groups"},
        {"[1, 2, 3]", "[\"a\"]", "annotations[0]: \"keypoints\" is not a list of at most 10,000 groups"},
        {"[1, \"2\", 1]", "[\"a\"]", "annotations[0]: \"keypoints\" is not a list of at most 10,000 groups"},
        {"[1, 1e300, 1]", "[\"a\"]", "annotations[0]: \"keypoints\" is not a list of at most 10,000 groups"},
        {"[1, 2, 1]", "[\"a\", \"b\"]", "annotations[0]: 1 keypoints, but 2 keypoint names"},
        {"[1, 2, 1]", "[3]", "categories[0]: \"keypoints\" is not a string"},
        {"[]", "[]", "no category has \"keypoints\""},
        {"[]", "[\"a\"]}, {\"id\": 2, \"name\": \"x\", \"keypoints\": [\"b\"]", "category 2 has other keypoints"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1000];
        snprintf(
            text, sizeof text,
            "{\"images\": [{\"id\": 5, \"file_name\": \"0.png\"}], \"annotations\": [{\"image_id\": 5, "
            "\"category_id\": 1, \"bbox\": [0, 0, 1, 1], \"keypoints\": %s}], \"categories\": [{\"id\": 1, \"name\": "
            "\"dog\", \"keypoints\": %s}]}",
            cases[i].points, cases[i].names);
        save_text("c.json", text);
        const program_result *result = make("--keypoints --images p c.json");
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, cases[i].reason);
        CHECK_EQ(make("--images p c.json")->exit_code, 0);
    }
}

TEST(make_coco_reports_faults)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"[]", "byte 0: COCO's JSON must be an object"},
        {"{\"images\": [", "the file ends inside a value"},
        {"{\"images\": [{\"id\": 1}]}", "images[0]: \"file_name\" is not a string"},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"a\"},{\"id\": 1, \"file_name\": \"b\"}]}", "image 1 occurs twice"},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"a\"}], \"annotations\": [{\"image_id\": 1, \"category_id\": 2, "
         "\"bbox\": "
         "[1,1,1,1]}]}",
         "annotations[0]: category 2 is not in \"categories\""},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"a\"}], \"annotations\": [{\"image_id\": 1, \"category_id\": 2, "
         "\"bbox\": "
         "[1,1,\"1\",1]}]}",
         "annotations[0]: \"bbox\" is not a list of four numbers"},
        {"{\"images\": [{\"id\": 1, \"file_name\": \"a\", \"width\": -1, \"height\": 1}]}",
         "invalid image size -1 x 1"},
        {"{\"annotations\": []}", "lists no images"},
        {"{\"images\": [{\"id\" 1}]}", "images[0]: "},
        {"{\"images\" 1}", "a name must be followed by :"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        save_text("c.json", cases[i].text);
        const program_result *result = make("--images . c.json");
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "c.json: ");
        CHECK_CONTAINS(result->output, cases[i].reason);
    }
    CHECK_CONTAINS(make("c.json")->output, "specify it with --images DIR");
}

/* Saves a JPEG of 96 x 64 with an EXIF orientation. */
static void save_rotated(const char *name, int orientation)
{
    static const unsigned char segment[36] = "\xff\xe1\0\x22"
                                             "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    test_bytes file = test_jpeg(96, 64, (test_jpeg_options){.horizontal = 1, .vertical = 1});
    unsigned char *bytes = malloc(file.size_bytes + 36);
    memcpy(bytes, file.bytes, 2);
    memcpy(bytes + 2, segment, 36);
    bytes[30] = (unsigned char)orientation;
    memcpy(bytes + 38, file.bytes + 2, file.size_bytes - 2);
    file_save(test_path("%s", name), bytes, file.size_bytes + 36);
    free(bytes);
    free(file.bytes);
}

/* The positions of the box [24, 16, 48, 16] and the point (24, 16) of the stored image after rotation. */
TEST(make_boxes_rotate_with_their_image)
{
    static const char *const xmin[] = {"0.25", "0.25", "0.25", "0.25", "0.25", "0.5", "0.5", "0.25"};
    static const char *const ymin[] = {"0.25", "0.25", "0.5", "0.5", "0.25", "0.25", "0.25", "0.25"};
    static const char *const x[] = {"0.25", "0.75", "0.75", "0.25", "0.25", "0.75", "0.75", "0.25"};
    static const char *const y[] = {"0.25", "0.25", "0.75", "0.75", "0.25", "0.25", "0.75", "0.75"};
    mkdir(test_path("p"), 0777);
    for (int orientation = 1; orientation <= 8; orientation++) {
        save_rotated("p/a.jpg", orientation);
        save_text(
            "c.json",
            "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\", \"width\": 96, \"height\": 64}],"
            "\"categories\": [{\"id\": 1, \"name\": \"x\", \"keypoints\": [\"a\", \"b\"]}], \"annotations\": ["
            "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [24, 16, 48, 16], \"keypoints\": [24, 16, 2, 0, 0, 0]}]}");
        CHECK_EQ(make("--keypoints --upright --images p c.json")->exit_code, 0);
        char wanted[200];
        snprintf(wanted, sizeof wanted,
                 "{\"image/object/bbox/xmin\": {\"float\": [%s]}, \"image/object/bbox/ymin\": {\"float\": [%s]}}\n",
                 xmin[orientation - 1], ymin[orientation - 1]);
        CHECK_STR(records("*min"), wanted);
        snprintf(
            wanted, sizeof wanted,
            "{\"image/object/keypoint/x\": {\"float\": [%s, 0]}, \"image/object/keypoint/y\": {\"float\": [%s, 0]}}\n",
            x[orientation - 1], y[orientation - 1]);
        CHECK_STR(records("image/object/keypoint/x,image/object/keypoint/y"), wanted);
    }
    /* Boxes that refer to the upright image need --upright. */
    save_rotated("p/a.jpg", 6);
    save_text("c.json", "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\", \"width\": 64, \"height\": 96}],"
                        "\"categories\": [{\"id\": 1, \"name\": \"x\"}], \"annotations\": ["
                        "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [16, 24, 16, 24]}]}");
    CHECK_CONTAINS(make("--images p c.json")->output, "--upright rotates the pixels");
    CHECK_EQ(make("--upright --images p c.json")->exit_code, 0);
    CHECK_CONTAINS(records("*min"), "xmin\": {\"float\": [0.25]}, \"image/object/bbox/ymin\": {\"float\": [0.25]}");
}

static void save_voc(const char *name, const char *file_name, const char *rest)
{
    char text[2048];
    snprintf(text, sizeof text,
             "<annotation><filename>%s</filename><size><width>20</width><height>10</height></size>%s</annotation>",
             file_name, rest);
    save_text(name, text);
}

TEST(make_voc_reads_what_object_detection_reads)
{
    static const char dog[] =
        "<object><name>dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>"
        "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"
        "<bndbox><xmin>5</xmin><ymin>5</ymin><xmax>30</xmax><ymax>10</ymax></bndbox></object>";
    make_pngs(1);
    mkdir(test_path("v"), 0777);
    make_png(test_path("v/a.png"), 1, 20, 10);
    make_png(test_path("v/b.png"), 2, 20, 10);
    /* Paths of another machine are reduced to their file names. Paths that lead out of the directory are
     * not followed. */
    save_voc("v/a.xml", "C:\\images\\a.png", dog);
    save_voc("v/b.xml", "../p/0.png", "");
    save_voc("v/gone.xml", "gone.png", "");
    save_voc("v/type.xml", "a.png", "");
    save_text("v/type.xml", "<!DOCTYPE a [<!ENTITY x \"y\">]><annotation/>");
    save_voc("v/nan.xml", "a.png", "<object><name>x</name><bndbox><xmin>nan</xmin></bndbox></object>");
    save_voc("v/half.xml", "a.png", "<object><name>x</name><bndbox><xmin>1</xmin></bndbox></object>");
    save_text("v/cut.xml", "<annotation><object>");
    const program_result *result = make("--on-error skip v");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "v/gone.xml: its image \"gone.png\" does not exist");
    CHECK_CONTAINS(result->output, "v/type.xml: line 1: a document type (<!DOCTYPE) is not supported");
    CHECK_CONTAINS(result->output, "v/nan.xml: line 1: annotation/object/bndbox/xmin is not a number: \"nan\"");
    CHECK_CONTAINS(result->output, "v/half.xml: object 1 (x) has no complete bndbox");
    CHECK_CONTAINS(result->output, "v/cut.xml: line 1: not well-formed XML");
    CHECK_CONTAINS(result->output, "1 box cut at the edge of its image: a.xml");
    CHECK_STR(records("image/object/*,image/filename,image/source_id"),
              "{\"image/filename\": {\"bytes\": [\"a.png\"]}, \"image/object/bbox/xmax\": {\"float\": [1]}, "
              "\"image/object/bbox/xmin\": {\"float\": [0.25]}, \"image/object/bbox/ymax\": {\"float\": [1]}, "
              "\"image/object/bbox/ymin\": {\"float\": [0.5]}, \"image/object/class/label\": {\"int64\": [1]}, "
              "\"image/object/class/text\": {\"bytes\": [\"dog\"]}, \"image/object/difficult\": {\"int64\": [0]}, "
              "\"image/object/truncated\": {\"int64\": [1]}, \"image/object/view\": {\"bytes\": [\"Left\"]}, "
              "\"image/source_id\": {\"bytes\": [\"a.png\"]}}\n"
              "{\"image/filename\": {\"bytes\": [\"b.png\"]}, \"image/object/bbox/xmax\": {\"float\": []}, "
              "\"image/object/bbox/xmin\": {\"float\": []}, \"image/object/bbox/ymax\": {\"float\": []}, "
              "\"image/object/bbox/ymin\": {\"float\": []}, \"image/object/class/label\": {\"int64\": []}, "
              "\"image/object/class/text\": {\"bytes\": []}, \"image/object/difficult\": {\"int64\": []}, "
              "\"image/object/truncated\": {\"int64\": []}, \"image/object/view\": {\"bytes\": []}, "
              "\"image/source_id\": {\"bytes\": [\"b.png\"]}}\n");
    CHECK_CONTAINS(program_run("cat '%s/out/label_map.pbtxt'", test_directory())->output,
                   "item {\n  id: 1\n  name: \"dog\"\n}\n");
    CHECK_STR(program_run("cat '%s/out/labels.txt'", test_directory())->output, "\ndog\n");
}

/* ---- Arrays ---- */

static void save_array(const char *name, mr_dtype dtype, mr_shape shape)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init(&tensor, dtype, shape, &error));
    memset(tensor.data, 0, mr_tensor_size_bytes(&tensor));
    for (int64_t i = 0; dtype != MR_COMPLEX64 && i < mr_tensor_count(&tensor); i++)
        if (dtype == MR_FLOAT)
            mr_tensor_floats(&tensor)[i] = (float)i / 2;
        else
            ((uint8_t *)tensor.data)[i * (int64_t)mr_dtype_size(dtype)] = (uint8_t)i;
    CHECK_OK(mr_npy_save(test_path("%s", name), &tensor, &error));
    mr_tensor_deinit(&tensor);
}

TEST(make_arrays_become_features_by_row)
{
    save_array("x.npy", MR_FLOAT, MR_SHAPE(3, 2));
    CHECK_EQ(make("x.npy")->exit_code, 0);
    CHECK_STR(records("*"),
              "{\"x\": {\"float\": [0, 0.5]}}\n{\"x\": {\"float\": [1, 1.5]}}\n{\"x\": {\"float\": [2, 2.5]}}\n");
    save_array("n.npy", MR_UINT32, MR_SHAPE(2));
    CHECK_EQ(make("--name n --key n=label n.npy")->exit_code, 0);
    CHECK_CONTAINS(records("label"), "{\"label\": {\"int64\": [0]}}\n{\"label\": {\"int64\": [1]}}\n");
    save_array("i.npy", MR_UINT8, MR_SHAPE(2, 4, 5));
    const program_result *result = make("--name i --image i i.npy");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(records("image/height,image/width,image/format"),
                   "{\"image/format\": {\"bytes\": [\"png\"]}, \"image/height\": {\"int64\": [4]}, \"image/width\": "
                   "{\"int64\": [5]}}");
    CHECK_CONTAINS(make("--image x x.npy")->output, "the array x[3,2] does not contain images");
    CHECK_CONTAINS(make("--image y x.npy")->output, "--image: x.npy has no array \"y\"");
    CHECK_CONTAINS(make("--raw y x.npy")->output, "--raw: x.npy has no array \"y\"");
    save_array("c.npy", MR_COMPLEX64, MR_SHAPE(2));
    CHECK_CONTAINS(make("c.npy")->output, "the array c[2] is complex; use --raw to store its bytes");
    CHECK_EQ(make("--name c --raw c c.npy")->exit_code, 0);
    save_array("s.npy", MR_FLOAT, MR_SCALAR);
    result = make("s.npy");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "s.npy: contains no rows");
    save_text("text.npy", "path,label\n");
    CHECK_CONTAINS(make("text.npy")->output, "text.npy: not a NumPy array");
}

/* ---- Archives ---- */

TEST(make_archives_yield_one_record_for_each_sample)
{
    make_pngs(2);
    CHECK_EQ(
        program_run(
            "cd '%s' && mkdir -p t/in && cp p/0.png t/in/a.png && cp p/1.png t/in/b.x.PNG && printf ' cat\\n' > "
            "t/in/a.cls && printf dog > t/in/b.cls && printf '{\"n\": 1}' > t/in/a.json && printf '{\"n\": 0.5}' > "
            "t/in/b.json && printf hello > t/in/b.TXT && printf none > t/in/README && cd t && tar -cf 1.tar in/a.png "
            "in/a.cls in/a.json in/README && tar -cf 2.tar in/b.TXT in/b.cls in/b.x.PNG in/b.json && gzip 2.tar && rm "
            "-r in",
            test_directory())
            ->exit_code,
        0);
    const program_result *result = make("t");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "2 samples in 2 classes");
    CHECK_CONTAINS(result->output, "1 member without a name or extension left out: in/README");
    CHECK_STR(records("__key__,image/class/*,image/filename,json/*,txt"),
              "{\"__key__\": {\"bytes\": [\"in/a\"]}, \"image/class/label\": {\"int64\": [0]}, \"image/class/text\": "
              "{\"bytes\": "
              "[\"cat\"]}, \"image/filename\": {\"bytes\": [\"in/a.png\"]}, \"json/n\": {\"float\": [1]}}\n"
              "{\"__key__\": {\"bytes\": [\"in/b\"]}, \"image/class/label\": {\"int64\": [1]}, \"image/class/text\": "
              "{\"bytes\": "
              "[\"dog\"]}, \"json/n\": {\"float\": [0.5]}, \"txt\": {\"bytes\": [\"hello\"]}}\n");
}

TEST(make_archives_report_faults)
{
    make_pngs(1);
    CHECK_EQ(program_run("cd '%s/p' && cp 0.png b.png && printf '' > a.cls && printf 1 > b.cls && printf '{' > c.json "
                         "&& printf x > d.txt && "
                         "printf y > d.TXT && tar -cf ../x.tar a.cls b.cls b.png c.json d.txt d.TXT",
                         test_directory())
                 ->exit_code,
             0);
    const program_result *result = make("--on-error skip x.tar");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "x.tar/a: its .cls contains no label");
    CHECK_CONTAINS(result->output, "x.tar: c.json: not a JSON object");
    CHECK_CONTAINS(result->output, "\"txt\"");
    CHECK_STR(records("__key__,image/class/*"),
              "{\"__key__\": {\"bytes\": [\"b\"]}, \"image/class/label\": {\"int64\": [1]}}\n");
    size_t size;
    unsigned char *bytes = file_load(test_path("x.tar"), &size);
    bytes[512] ^= 1;
    file_save(test_path("x.tar"), bytes, size);
    free(bytes);
    result = make("x.tar");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "x.tar: the tar header at byte ");
    save_text("no.tar", "this is text that is longer than a name");
    CHECK_CONTAINS(make("no.tar")->output, "no.tar: the tar header at byte 0 is truncated");
    save_text("what.bin", "x");
    CHECK_CONTAINS(make("what.bin")->output, "what.bin: unknown form");
}
