/* Digests of the stages with many options, parse_example and decode_image: the tests change each option separately. */
#include "pipeline/digest.h"
#include "tests/pipeline/pipelines.h"

static uint64_t digest_of(mr_dataset *dataset)
{
    mr_error error = {0};
    uint64_t digest = 0;
    CHECK_OK(mr_dataset_status(dataset, &error));
    CHECK_OK(mr_dataset_digest(dataset, &digest, &error));
    mr_dataset_free(dataset);
    return digest;
}

enum { VARIANTS_MAX = 80 };
typedef struct seen {
    uint64_t digests[VARIANTS_MAX];
    int count;
} seen;

static void add(seen *seen, mr_dataset *dataset)
{
    uint64_t digest = digest_of(dataset);
    for (int i = 0; i < seen->count; i++)
        if (seen->digests[i] == digest)
            test_fail(__FILE__, __LINE__, "variants %d and %d have one digest", i, seen->count);
    CHECK(seen->count < VARIANTS_MAX);
    seen->digests[seen->count++] = digest;
}

static mr_dataset *strings(void)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(
        mr_tensor_init_strings(&tensor, MR_SHAPE(2), (mr_string[]){mr_string_from("a"), mr_string_from("b")}, &error));
    mr_dataset *d = mr_dataset_from_slices((mr_tensor[]){tensor, tensor}, 1);
    mr_tensor_deinit(&tensor);
    return d;
}

/* ---- Features ---- */

static void add_feature(seen *seen, mr_feature feature)
{
    add(seen, mr_dataset_parse_example(strings(), &feature, 1));
}

TEST(digest_covers_features)
{
    mr_error error = {0};
    mr_tensor one = {0}, two = {0};
    CHECK_OK(mr_tensor_init_int64(&one, 1, &error));
    CHECK_OK(mr_tensor_init_int64(&two, 2, &error));
    seen seen = {0};
    const mr_feature fixed = {.name = "x", .dtype = MR_INT64};
    mr_feature f = fixed;
    add_feature(&seen, f);
    f.name = "y";
    add_feature(&seen, f);
    f = fixed, f.dtype = MR_FLOAT;
    add_feature(&seen, f);
    f = fixed, f.shape = MR_SHAPE(2);
    add_feature(&seen, f);
    f = fixed, f.default_value = &one;
    add_feature(&seen, f);
    f.default_value = &two;
    add_feature(&seen, f);
    f = fixed, f.form = MR_FIXED_LEN_SEQUENCE;
    add_feature(&seen, f);
    f.default_value = &one;
    add_feature(&seen, f);
    f = fixed, f.form = MR_VAR_LEN;
    add_feature(&seen, f);

    const mr_feature ragged = {.name = "x", .dtype = MR_INT64, .form = MR_RAGGED};
    mr_partition partition = {.kind = MR_ROW_SPLITS, .key = "p"};
    f = ragged;
    add_feature(&seen, f);
    f.value_key = "v";
    add_feature(&seen, f);
    f = ragged, f.splits_dtype = MR_INT32;
    add_feature(&seen, f);
    f = ragged, f.partitions = &partition, f.partition_count = 1;
    add_feature(&seen, f);
    partition.kind = MR_ROW_LENGTHS;
    add_feature(&seen, f);
    partition.key = "q";
    add_feature(&seen, f);
    partition = (mr_partition){.kind = MR_UNIFORM_ROW_LENGTH, .length = 2};
    add_feature(&seen, f);
    partition.length = 3;
    add_feature(&seen, f);

    const char *index_keys[] = {"i"};
    const mr_feature sparse = {.name = "x",
                               .dtype = MR_INT64,
                               .form = MR_SPARSE,
                               .shape = MR_SHAPE(9),
                               .value_key = "v",
                               .index_keys = index_keys};
    f = sparse;
    add_feature(&seen, f);
    f.shape = MR_SHAPE(10);
    add_feature(&seen, f);
    f = sparse, f.already_sorted = true;
    add_feature(&seen, f);
    index_keys[0] = "j";
    add_feature(&seen, sparse);

    /* The same feature twice, or in a SequenceExample. */
    const mr_feature both[] = {fixed, {.name = "y", .dtype = MR_INT64}};
    const mr_feature list = {.name = "x", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE};
    const mr_feature missing = {.name = "x", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .allow_missing = true};
    add(&seen, mr_dataset_parse_example(strings(), both, 2));
    add(&seen, mr_dataset_parse_example(strings(), (mr_feature[]){both[1], both[0]}, 2));
    add(&seen, mr_dataset_parse_sequence_example(strings(), both, 2, nullptr, 0));
    add(&seen, mr_dataset_parse_sequence_example(strings(), both, 1, nullptr, 0));
    add(&seen, mr_dataset_parse_sequence_example(strings(), both, 1, &list, 1));
    add(&seen, mr_dataset_parse_sequence_example(strings(), both, 1, &missing, 1));
    add(&seen, mr_dataset_parse_sequence_example(strings(), nullptr, 0, &list, 1));
    mr_tensor_deinit(&one);
    mr_tensor_deinit(&two);
}

/* ---- Images ---- */

/* The options of the stage and of its images. */
typedef struct both_options {
    mr_decode_options decode;
    mr_image_options image;
} both_options;

static void add_options(seen *seen, both_options options)
{
    options.decode.image = &options.image;
    add(seen, mr_dataset_decode_image_(strings(), &options.decode));
}

TEST(digest_covers_image_options)
{
    const both_options plain = {
        .decode = {.size = sizeof plain.decode},
        .image = {.size = sizeof plain.image, .height = 8, .width = 8, .crop = MR_CROP_RANDOM_RESIZED}};
    seen seen = {0};
    both_options o = plain;
    add_options(&seen, o);
#define ONE(field, value)                                                                                              \
    do {                                                                                                               \
        o = plain;                                                                                                     \
        o.field = (value);                                                                                             \
        add_options(&seen, o);                                                                                         \
    } while (0)
    ONE(decode.seed, 1);
    ONE(image.height, 9);
    ONE(image.width, 9);
    ONE(image.channels, 1);
    ONE(image.crop, MR_CROP_CENTER);
    ONE(image.crop, MR_CROP_NONE);
    ONE(image.fraction, 0.5f);
    ONE(image.area_min, 0.3f);
    ONE(image.area_max, 0.5f);
    ONE(image.aspect_min, 0.8f);
    ONE(image.aspect_max, 1.2f);
    ONE(image.random_flip_left_right, true);
    ONE(image.method, MR_RESIZE_NEAREST);
    ONE(image.method, MR_RESIZE_BICUBIC);
    ONE(image.dtype, MR_UINT8);
    ONE(image.dtype, MR_HALF);
    ONE(image.layout, MR_LAYOUT_NCHW);
    ONE(image.accurate_dct, true);
    ONE(image.accept_truncated, true);
    ONE(image.accept_damaged, true);
    ONE(image.pixels_max, 1000);
    ONE(image.approximate_scale, true);
    for (int c = 0; c < 3; c++) {
        ONE(image.mean[c], 1.0f);
        ONE(image.std[c], 2.0f);
    }
    ONE(image.color.brightness, 0.1f);
    ONE(image.color.hue, 0.1f);
    o = plain, o.image.color.contrast_max = 2;
    add_options(&seen, o);
    o.image.color.contrast_min = 1;
    add_options(&seen, o);
    o = plain, o.image.color.saturation_max = 2;
    add_options(&seen, o);
    o.image.color.saturation_min = 1;
    add_options(&seen, o);
    const mr_color_step order[] = {MR_COLOR_HUE, MR_COLOR_SATURATION, MR_COLOR_CONTRAST, MR_COLOR_BRIGHTNESS};
    o = plain;
    memcpy(o.image.color.order, order, sizeof order);
    add_options(&seen, o);
    o = plain, o.image.crop = MR_CROP_RANDOM_WINDOW;
    add_options(&seen, o);
    o.image.padding = 2;
    add_options(&seen, o);
    o.image.padding_mode = MR_IMAGE_PAD_REFLECT;
    add_options(&seen, o);
    /* The number of threads does not affect elements. */
    o = plain, o.decode.num_parallel_calls = 3, o.decode.image = &o.image;
    CHECK_EQ(digest_of(mr_dataset_decode_image_(strings(), &o.decode)), seen.digests[0]);
}
