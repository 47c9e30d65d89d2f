/* Masks of COCO objects. The expected masks are those of pycocotools 2.0 (frPyObjects, decode, and the maximum over an
 * object's polygons), which TensorFlow's Object Detection API uses. */
#include "tests/kernels/images.h"
#include "tests/tools/make_inputs.h"

#include <millrace/example.h>
#include <millrace/record.h>

static const char polygons[] = "[[2.5, 1.2, 12.7, -3, 17.3, 6.4, 9, 9.9, 3.3, 7.5], [15, 8, 19.9, 8.2, 22, 12, 14.4, "
                               "10.6]]";
static const char polygons_mask[] = "....###########....."
                                    "...############....."
                                    "...#############...."
                                    "...#############...."
                                    "...##############..."
                                    "...##############..."
                                    "...##############..."
                                    "...############....."
                                    "......######...#####"
                                    "........##.....#####";
static const char text_runs[] = "{\"size\": [10, 20], \"counts\": \"P155000000000P1MSO0000000000000L\"}";
static const char list_runs[] =
    "{\"size\": [10, 20], \"counts\": [32, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 37, 2, 8, 2, 8, "
    "2, 8, 2, 8, 2, 8, 2, 8, 2, 8, 2, 4]}";
static const char runs_mask[] = "...................."
                                "...................."
                                "...######..........."
                                "...######..........."
                                "...######...########"
                                "...######...########"
                                "...######..........."
                                "...................."
                                "...................."
                                "....................";

/* Saves c.json: one image of 20 x 10 with an object for each segmentation. */
static void save_coco(const char *image, const char *const *segmentations, int count, const char *rest)
{
    FILE *file = fopen(test_path("c.json"), "w");
    fprintf(file,
            "{\"images\": [{\"id\": 1, \"file_name\": \"%s\"}], \"categories\": [{\"id\": 1, \"name\": \"x\"}], "
            "\"annotations\": [",
            image);
    for (int i = 0; i < count; i++)
        fprintf(file, "%s{\"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 1, 5, 6], \"segmentation\": %s%s}",
                i ? "," : "", segmentations[i], rest);
    fputs("]}", file);
    fclose(file);
}

/* The masks of the single record in out, as strings of '.' and '#'. */
typedef struct masks {
    char texts[4][1024];
    int64_t heights[4], widths[4];
    float areas[4];
    int count;
} masks;

static masks read_masks(void)
{
    masks masks = {0};
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record, pngs[4];
    size_t count = 0;
    CHECK_OK(mr_record_reader_open(test_path("out/c-all-00000-of-00001.tfrecord"), nullptr, &reader, &error));
    CHECK_OK(mr_record_reader_next(reader, &record, &error));
    mr_example_cursor walk = {.record = record};
    mr_feature_view view;
    while (mr_example_next_feature(&walk, &view, &error) == MR_OK) {
        if (mr_string_equal(view.name, MR_STR("image/object/area")))
            CHECK_OK(mr_feature_floats(&view, masks.areas, 4, &error));
        if (!mr_string_equal(view.name, MR_STR("image/object/mask"))) continue;
        CHECK_OK(mr_feature_count(&view, &count, &error));
        CHECK(count <= 4);
        CHECK_OK(mr_feature_bytes(&view, pngs, 4, &error));
    }
    for (size_t i = 0; i < count; i++) {
        mr_tensor image = {0};
        CHECK_OK(mr_image_decode(pngs[i].data, pngs[i].size_bytes, nullptr, &image, &error));
        CHECK_EQ(image.shape.rank, 3);
        CHECK_EQ(image.shape.dims[2], 1);
        masks.heights[i] = image.shape.dims[0];
        masks.widths[i] = image.shape.dims[1];
        CHECK(mr_tensor_count(&image) < (int64_t)sizeof masks.texts[i]);
        for (int64_t j = 0; j < mr_tensor_count(&image); j++) {
            CHECK(mr_tensor_uint8s(&image)[j] <= 1);
            masks.texts[i][j] = ".#"[mr_tensor_uint8s(&image)[j]];
        }
        mr_tensor_deinit(&image);
    }
    masks.count = (int)count;
    mr_record_reader_close(reader);
    return masks;
}

TEST(make_masks_are_those_of_coco)
{
    static const char *const segmentations[] = {polygons, text_runs, list_runs};
    make_pngs("p", 1);
    save_coco("0.png", segmentations, 3, "");
    CHECK_EQ(make("--split all --masks --images p c.json")->exit_code, 0);
    masks found = read_masks();
    CHECK_EQ(found.count, 3);
    CHECK_STR(found.texts[0], polygons_mask);
    CHECK_STR(found.texts[1], runs_mask);
    CHECK_STR(found.texts[2], runs_mask);
    /* Without an "area" in the annotation, the mask's area is used. */
    CHECK_EQ((int)found.areas[0], 121);
    CHECK_EQ((int)found.areas[1], 46);
    save_coco("0.png", segmentations, 2, ", \"area\": 7");
    CHECK_EQ(make("--split all --masks --images p c.json")->exit_code, 0);
    CHECK_EQ((int)read_masks().areas[1], 7);
    /* Without --masks, it is the area of the box. The records are written again when --masks is added or a mask
     * changes. */
    save_coco("0.png", segmentations, 2, "");
    CHECK_EQ(make("--split all --images p c.json")->exit_code, 0);
    CHECK_EQ((int)read_masks().areas[0], 30);
    CHECK_EQ(program_run("cd '%s' && tfrecord-make --out out --split all --masks --images p c.json", test_directory())
                 ->exit_code,
             0);
    CHECK_EQ(read_masks().count, 2);
    save_coco("0.png", segmentations + 1, 2, "");
    CHECK_EQ(program_run("cd '%s' && tfrecord-make --out out --split all --masks --images p c.json", test_directory())
                 ->exit_code,
             0);
    found = read_masks();
    CHECK_STR(found.texts[0], runs_mask);
}

TEST(make_masks_follow_their_image)
{
    static const char *const corner[] = {"[[0, 0, 8, 0, 8, 4, 0, 4]]"};
    make_pngs("p", 1);
    save_coco("0.png", corner, 1, "");
    CHECK_EQ(make("--split all --masks --shorter-side 5 --images p c.json")->exit_code, 0);
    masks found = read_masks();
    CHECK_EQ(found.heights[0], 5);
    CHECK_EQ(found.widths[0], 10);
    CHECK_STR(found.texts[0], "####......"
                              "####......"
                              ".........."
                              ".........."
                              "..........");
}

/* The position of the upper left quarter of a 24 x 16 image under each EXIF orientation. */
TEST(make_masks_rotate_with_their_image)
{
    static const unsigned char segment[36] = "\xff\xe1\0\x22"
                                             "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    static const bool is_right[] = {false, true, true, false, false, true, true, false};
    static const bool is_low[] = {false, false, true, true, false, false, true, true};
    static const char *const corner[] = {"[[0, 0, 12, 0, 12, 8, 0, 8]]"};
    mkdir(test_path("p"), 0777);
    for (int orientation = 1; orientation <= 8; orientation++) {
        test_bytes file = test_jpeg(24, 16, (test_jpeg_options){.horizontal = 1, .vertical = 1});
        unsigned char *bytes = malloc(file.size_bytes + sizeof segment);
        memcpy(bytes, file.bytes, 2);
        memcpy(bytes + 2, segment, sizeof segment);
        bytes[30] = (unsigned char)orientation;
        memcpy(bytes + 2 + sizeof segment, file.bytes + 2, file.size_bytes - 2);
        file_save(test_path("p/a.jpg"), bytes, file.size_bytes + sizeof segment);
        free(bytes);
        free(file.bytes);
        save_coco("a.jpg", corner, 1, "");
        CHECK_EQ(make("--split all --masks --upright --images p c.json")->exit_code, 0);
        masks found = read_masks();
        int64_t height = found.heights[0], width = found.widths[0];
        CHECK_EQ(width, orientation >= 5 ? 16 : 24);
        CHECK_EQ(height, orientation >= 5 ? 24 : 16);
        for (int64_t i = 0; i < width * height; i++) {
            bool inside = (i % width >= width / 2) == is_right[orientation - 1] &&
                          (i / width >= height / 2) == is_low[orientation - 1];
            if (found.texts[0][i] != ".#"[inside])
                test_fail(__FILE__, __LINE__, "orientation %d, pixel %d", orientation, (int)i);
        }
    }
}

TEST(make_masks_that_are_invalid_are_errors)
{
    static const char *const cases[][2] = {
        {"null", "has no \"segmentation\", which --masks requires"},
        {"[]", "has no \"segmentation\", which --masks requires"},
        {"3", "has no \"segmentation\", which --masks requires"},
        {"[[1, 2, 3, 4]]", "has a polygon that is not a list of at least three pairs of x, y"},
        {"[[1, 2, 3, 4, 5, 6, 7]]", "has a polygon that is not a list"},
        {"[[1, 2, 3, 4, 5, \"6\"]]", "has a polygon that is not a list"},
        {"[[1, 2, 3, 4, 5, 1e300]]", "has a polygon that is not a list"},
        {"[1, 2, 3, 4, 5, 6]", "has a polygon that is not a list"},
        {"{}", "has no \"size\" with height and width"},
        {"{\"size\": [20, 10], \"counts\": [200]}", "has 10 x 20 pixels, but the image has 20 x 10"},
        {"{\"size\": [10, 20]}", "the \"counts\" of \"segmentation\" do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": [199]}", "the \"counts\" of \"segmentation\" do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": [201]}", "the \"counts\" of \"segmentation\" do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": [-1, 201]}", "the \"counts\" of \"segmentation\" do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": \"P155000000000P1MSO0000000000000\"}", "do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": \"PPPPPPPPPPPPP\"}", "do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": \"P\"}", "do not add up to its size"},
        {"{\"size\": [10, 20], \"counts\": \"~~\"}", "do not add up to its size"},
    };
    make_pngs("p", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        save_coco("0.png", &cases[i][0], 1, "");
        const program_result *result = make("--masks --images p c.json");
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "p/0.png: annotations[0]: ");
        CHECK_CONTAINS(result->output, cases[i][1]);
    }
}
