/* Invalid COCO annotations: an image is written with all of its boxes, or it is skipped and counted. */
#include "tests/tools/make_inputs.h"
#include "tools/tfrecord-make/coco.c"

/* Saves three images and their annotations; `annotation` is the second one of image 1. */
static void save_coco(const char *annotation)
{
    char text[2048];
    make_pngs("p", 3);
    snprintf(text, sizeof text,
             "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}, {\"id\": 1, \"file_name\": \"1.png\"}, "
             "{\"id\": 2, \"file_name\": \"2.png\"}], \"categories\": [{\"id\": 1, \"name\": \"dog\"}], "
             "\"annotations\": [{\"image_id\": 0, \"category_id\": 1, \"bbox\": [1, 1, 3, 3]}, "
             "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 1, 2, 2]}, {%s}, "
             "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [1, 1, 4, 4], \"area\": 5, \"iscrowd\": 1}]}",
             annotation);
    save_text("c.json", text);
}

/* Invalid annotations of image 1, for which the image is skipped. */
TEST(make_coco_bad_annotations_cost_their_image)
{
    static const char *const rests[] = {
        "\"area\": NaN",
        "\"area\": -Infinity",
        "\"area\": Infinity",
        "\"area\": 1e999",
        "\"area\": 1e300",
        "\"area\": -9223372036854775809",
        "\"area\": 9223372036854775808",
        "\"area\": \"9\"",
        "\"area\": [9]",
        "\"area\": true",
        "\"iscrowd\": \"1\"",
        "\"iscrowd\": [0]",
        "\"caption\": \"\\ud800\"",
        "\"caption\": \"\\uDFFF \\\\\"",
        "\"caption\": \"\xff\"",
        "\"segmentation\": [[1, NaN, 3, 4, 5, 6]]",
        "\"\\ud800\": 1",
    };
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        char text[500];
        snprintf(text, sizeof text, "\"image_id\": 1, \"category_id\": 1, \"bbox\": [2, 2, 3, 3], %s", rests[i]);
        save_coco(text);
        const program_result *result = make("--images p c.json");
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "c.json: annotations[2]: ");
        CHECK(access(test_path("out"), F_OK) != 0);
        result = make("--split all --on-error skip --images p c.json");
        if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s: %s", rests[i], result->output);
        CHECK_CONTAINS(result->output, "annotations[2]: ");
        CHECK_CONTAINS(result->output, "1 image could not be used and was left out:\n  1 row has values");
        CHECK_CONTAINS(result->output, "2 records");
        CHECK_STR(records_of("*.tfrecord", "image/source_id,image/object/area"),
                  "{\"image/object/area\": {\"float\": [5]}, \"image/source_id\": {\"bytes\": [\"2\"]}}\n"
                  "{\"image/object/area\": {\"float\": [9]}, \"image/source_id\": {\"bytes\": [\"0\"]}}\n");
    }
}

/* The image of the annotation is unknown, so any image may lack a box: the run fails and nothing is written. */
TEST(make_coco_annotations_of_no_known_image_end_the_run)
{
    static const struct {
        const char *annotation, *reason;
    } cases[] = {
        {"\"image_id\": \"1\", \"category_id\": 1, \"bbox\": [2, 2, 3, 3]", "\"image_id\" is not a whole number (an "},
        {"\"image_id\": NaN, \"category_id\": 1, \"bbox\": [2, 2, 3, 3]", "annotations[2]: "},
        {"\"image_id\": 9223372036854775808, \"category_id\": 1, \"bbox\": [2, 2, 3, 3]", "annotations[2]: "},
        {"\"image_id\": 1.5, \"category_id\": 1, \"bbox\": [2, 2, 3, 3]", "\"image_id\" is not a whole number"},
        {"\"category_id\": 1, \"bbox\": [2, 2, 3, 3]", "\"image_id\" is not a whole number"},
        {"\"image_id\": 1,, \"category_id\": 1, \"bbox\": [2, 2, 3, 3]", "annotations[2]: "},
        {"\"image_id\": 1, \"category_id\": nan, \"bbox\": [2, 2, 3, 3]", "annotations[2]: "},
        {"\"image_id\": 1, \"category_id\": 1 \"bbox\": [2, 2, 3, 3]", "annotations[2]: "},
        {"\"image_id\": 1, \"category_id\": 01, \"bbox\": [2, 2, 3, 3]", "annotations[2]: "},
        /* Because of the missing quote, the string includes the next annotation. */
        {"\"image_id\": 1, \"category_id\": 1, \"bbox\": [2, 2, 3, 3], \"a\": \"b", "c.json: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        save_coco(cases[i].annotation);
        const program_result *result = make("--on-error skip --images p c.json");
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "c.json: ");
        CHECK_CONTAINS(result->output, cases[i].reason);
        CHECK(access(test_path("out"), F_OK) != 0);
    }
}

TEST(make_coco_errors_have_line_numbers)
{
    /* A caption has no box, but it counts in the numbers of annotations. */
    save_coco("\"image_id\": 1, \"caption\": \"a dog\"}, {\"image_id\": 1, \"category_id\": 7, \"bbox\": [1, 1, 2, 2]");
    CHECK_CONTAINS(make("--images p c.json")->output, "annotations[3]: category 7 is not in");
    save_coco("\"image_id\": 1, \"caption\": \"a dog\"}, {\"image_id\": 9, \"category_id\": 1, \"bbox\": [1, 1, 2, 2]");
    CHECK_CONTAINS(make("--images p c.json")->output, "1 box of an image that is not listed left out: annotations[3]");
    save_coco("\"image_id\": 1, \"caption\": \"a dog\"}, {\"image_id\": 9, \"category_id\": 1, \"bbox\": [1, 1, 2, "
              "\"2\"]");
    const program_result *result = make("--on-error skip --images p c.json");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "c.json: 3 images");
    CHECK_CONTAINS(result->output, "1 box of an image that is not listed left out: c.json: annotations[3]: ");
    save_coco("\"image_id\": 1, \"caption\": 1}, {\"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 1, 2, 2], "
              "\"segmentation\": 8");
    CHECK_CONTAINS(make("--masks --images p c.json")->output, "p/2.png: annotations[4]: has no \"segmentation\"");
    /* Text after the object, and a list that occurs twice, are errors. */
    save_text("c.json", "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}]}\n{\"images\": []}");
    CHECK_CONTAINS(make("--images p c.json")->output, "byte 46: the file continues after the end of its object");
    save_text("c.json", "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}], \"images\": []}");
    CHECK_CONTAINS(make("--images p c.json")->output, "a list occurs twice");
}

/* Boxes are clipped to their image, even if the file does not contain its size. */
TEST(make_coco_boxes_of_images_without_a_size_are_cut)
{
    make_pngs("p", 3);
    save_text("c.json", "{\"images\": [{\"id\": 0, \"file_name\": \"0.png\"}, {\"id\": 1, \"file_name\": \"1.png\"}, "
                        "{\"id\": 2, \"file_name\": \"2.png\"}], \"categories\": [{\"id\": 1, \"name\": \"dog\"}], "
                        "\"annotations\": [{\"image_id\": 0, \"category_id\": 1, \"bbox\": [10, 5, 1000, 1000]}, "
                        "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [900, 1, 5, 5]}, "
                        "{\"image_id\": 1, \"category_id\": 1, \"bbox\": [1e308, 1, 1e308, 1e308]}, "
                        "{\"image_id\": 2, \"category_id\": 1, \"bbox\": [11, 0, 11, 10]}]}");
    const program_result *result = make("--split all --images p c.json");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output,
                   "2 images have boxes that were cut at their edge or left out because they are outside (");
    CHECK_STR(records_of("*.tfrecord", "image/object/bbox/xm*"),
              "{\"image/object/bbox/xmax\": {\"float\": [1]}, \"image/object/bbox/xmin\": {\"float\": [0.5]}}\n"
              "{\"image/object/bbox/xmax\": {\"float\": [1]}, \"image/object/bbox/xmin\": {\"float\": [0.5]}}\n"
              "{\"image/object/bbox/xmax\": {\"float\": []}, \"image/object/bbox/xmin\": {\"float\": []}}\n");
}

/* ---- Every byte of a file ---- */

typedef struct counts {
    int boxes[3], faults[3], others;
} counts;

static mr_status count_image(void *context, const coco_image *image, mr_error *error)
{
    return MR_OK;
}

static mr_status count_box(void *context, const coco_box *box, mr_error *error)
{
    counts *counts = context;
    *(box->image >= 0 && box->image < 3 ? &counts->boxes[box->image] : &counts->others) += 1;
    return MR_OK;
}

static mr_status count_nothing(void *context, mr_error *error)
{
    counts *counts = context;
    counts->others++;
    return MR_OK;
}

static mr_status count_category(void *context, const coco_category *category, mr_error *error)
{
    return MR_OK;
}

static mr_status count_fault(void *context, const coco_fault *fault, mr_error *error)
{
    counts *counts = context;
    if (fault->is_annotation)
        *(fault->image >= 0 && fault->image < 3 ? &counts->faults[fault->image] : &counts->others) += 1;
    return MR_OK;
}

static mr_status count(const char *text, counts *counts)
{
    static const coco_functions functions = {count_image, count_box, count_nothing, count_category, count_fault};
    mr_input_file *file = nullptr;
    mr_error error = {0};
    *counts = (struct counts){0};
    CHECK_OK(mr_input_file_from(mr_string_from(text), "c.json", &file, &error));
    mr_status status = coco_read(file, &functions, counts, &error);
    mr_input_file_close(file);
    return status;
}

/* Each byte is changed, removed or doubled in turn. If the file can be read, every annotation is counted: as a box, as
 * a fault, or as an annotation without a box. */
TEST(make_coco_no_byte_loses_a_box)
{
    static const char text[] =
        "{\"images\": [{\"id\": 0, \"file_name\": \"a\"}, {\"id\": 1, \"file_name\": \"b\"}], \"annotations\": ["
        "{\"image_id\": 0, \"category_id\": 1, \"bbox\": [1, 1, 3, 3.5e1], \"area\": -10.5, \"x\": "
        "\"\\ud83d\\ude00\"}, "
        "{\"image_id\": 1, \"x\": \"a\\\\\\\"}\", \"category_id\": 1, \"bbox\": [1, 1, 2, 2], \"area\": NaN}, "
        "{\"image_id\": 1, \"category_id\": 1, \"iscrowd\": 0, \"bbox\": [1, 1, 2, 2], \"y\": {\"image_id\": 2}}], "
        "\"categories\": [{\"id\": 1, \"name\": \"dog\"}]}";
    static const char bytes[] = "\"\\,:[]{}0a-.N \xff";
    counts counts;
    CHECK_EQ(count(text, &counts), MR_OK);
    CHECK(counts.boxes[0] == 1 && counts.boxes[1] == 1 && counts.faults[1] == 1);
    int good = 0;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        /* Skips the name of the list; without it there are no annotations. */
        if (strncmp(text + i, "annotations\"", 12) == 0) i += 12;
        for (size_t j = 0; j < sizeof bytes + 1; j++) {
            char changed[sizeof text + 1];
            bool is_removed = j == sizeof bytes - 1, is_doubled = j == sizeof bytes;
            snprintf(changed, sizeof changed, "%.*s%c%s", (int)i, text, is_doubled ? text[i] : bytes[j],
                     text + i + !is_doubled);
            if (is_removed) snprintf(changed, sizeof changed, "%.*s%s", (int)i, text, text + i + 1);
            if (count(changed, &counts) != MR_OK) continue;
            good++;
            int sum = counts.others;
            for (int k = 0; k < 3; k++) sum += counts.boxes[k] + counts.faults[k];
            if (sum != 3) test_fail(__FILE__, __LINE__, "byte %zu: %s", i, changed);
        }
    }
    CHECK(good > 1000);
}
