/* Random image augmentation: the same for any number of threads and after a restore, different in each epoch. */
#include "tests/kernels/images.h"
#include "tests/pipeline/pipelines.h"

constexpr int image_count = 24, batch_size = 5;

static mr_dataset *images(mr_image_options image)
{
    image.size = sizeof image;
    mr_error error = {0};
    mr_string strings[image_count];
    mr_tensor encoded = {0};
    for (int i = 0; i < image_count; i++) {
        test_bytes file = i % 4 == 3 ? test_png(20 + i, 44 - i, test_png_kinds[i % test_png_kind_count])
                                     : test_jpeg(20 + i, 44 - i, test_jpeg_kinds[i % test_jpeg_kind_count]);
        strings[i] = (mr_string){(char *)file.bytes, file.size_bytes};
    }
    CHECK_OK(mr_tensor_init_strings(&encoded, MR_SHAPE(image_count), strings, &error));
    for (int i = 0; i < image_count; i++) free((void *)strings[i].data);
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_from_slices(&encoded, 1), .seed = 3);
    mr_tensor_deinit(&encoded);
    d = mr_dataset_decode_image(mr_dataset_repeat(d, 2), .seed = 4, .image = &image);
    return mr_dataset_prefetch(mr_dataset_batch(d, batch_size), 2);
}

/* Compares all batches at 1, 2 and 7 threads, and each of them with the batch read from a state saved before it. */
static void check_repeatable(mr_image_options image)
{
    mr_error error = {0};
    constexpr int count = (2 * image_count + batch_size - 1) / batch_size;
    uint64_t expected[count + 1], found[count + 1];
    mr_dataset *d = images(image);
    mr_iterator *iterator = nullptr;
    for (int threads = 1; threads < 8; threads += threads == 1 ? 1 : 5) {
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
        CHECK_EQ(digests_of(iterator, threads == 1 ? expected : found, count + 1), count);
        if (threads > 1) CHECK(memcmp(expected, found, count * sizeof(*found)) == 0);
        mr_iterator_free(iterator);
    }
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    for (int at = 0; at < count; at += 3) {
        mr_iterator *later = nullptr;
        mr_tensor state = {0};
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1), &later, &error));
        CHECK_OK(mr_iterator_restore(later, &state, &error));
        CHECK_EQ(digests_of(later, found, count + 1), count - at);
        CHECK(memcmp(expected + at, found, (size_t)(count - at) * sizeof(*found)) == 0);
        mr_iterator_free(later);
        mr_tensor_deinit(&state);
        CHECK_EQ(digests_of(iterator, found, 3), count - at < 3 ? count - at : 3);
    }
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_windows_are_repeatable)
{
    static const mr_dtype dtypes[] = {MR_UINT8, MR_HALF, MR_BFLOAT16};
    for (int i = 0; i < 3; i++)
        check_repeatable((mr_image_options){.height = 26,
                                            .width = 26,
                                            .crop = MR_CROP_RANDOM_WINDOW,
                                            .padding = 4,
                                            .padding_mode = i == 1 ? MR_IMAGE_PAD_REFLECT : MR_IMAGE_PAD_ZERO,
                                            .random_flip_left_right = true,
                                            .layout = i == 2 ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC,
                                            .dtype = dtypes[i]});
}

TEST(pipeline_colors_are_repeatable)
{
    static const mr_dtype dtypes[] = {MR_FLOAT, MR_UINT8, MR_HALF};
    for (int i = 0; i < 3; i++)
        check_repeatable((mr_image_options){
            .height = 17,
            .width = 21,
            .crop = MR_CROP_RANDOM_RESIZED,
            .random_flip_left_right = true,
            .dtype = dtypes[i],
            .layout = i == 0 ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC,
            .color = {.brightness = 0.125f,
                      .contrast_min = 0.5f,
                      .contrast_max = i < 2 ? 1.5f : 0.5f,
                      .saturation_min = 0.5f,
                      .saturation_max = 1.5f,
                      .hue = 0.2f,
                      .order = {i == 0 ? MR_COLOR_DEFAULT : MR_COLOR_HUE, i == 0 ? MR_COLOR_DEFAULT : MR_COLOR_CONTRAST,
                                i == 0 ? MR_COLOR_DEFAULT : MR_COLOR_SATURATION,
                                i == 0 ? MR_COLOR_DEFAULT : MR_COLOR_BRIGHTNESS}}});
}

TEST(pipeline_images_refuse_options)
{
    mr_error error = {0};
    static const mr_image_options cases[] = {
        {.height = 8, .width = 8, .crop = MR_CROP_RANDOM_WINDOW, .padding = -4},
        {.height = 8, .width = 8, .mean = {NAN}},
        {.height = 8, .width = 8, .color = {.saturation_max = -2}},
        {.crop = MR_CROP_RANDOM_WINDOW, .padding = 4},
        {.height = 100'000, .width = 100'000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mr_dataset *d = images(cases[i]);
        CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "decode_image: ");
        mr_dataset_free(d);
    }
}
