/* Resizing: results computed by hand, identities, and rejected arguments. tests/oracle compares the numbers with
 * TensorFlow's. */
#include "kernels/image/resize.h"
#include "tests/kernels/images.h"
#include "tests/test.h"

static mr_tensor line(int count, const float *values)
{
    mr_error error = {0};
    mr_tensor images = {0};
    CHECK_OK(mr_tensor_init_copy(&images, MR_FLOAT, MR_SHAPE(1, count, 1), values, &error));
    return images;
}

static void check_line(const float *source, int source_count, mr_resize_options options, const float *expected,
                       int expected_count)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_tensor images = line(source_count, source), resized = {0};
    CHECK_OK(mr_image_resize(&images, 1, expected_count, &options, &resized, &error));
    for (int i = 0; i < expected_count; i++) CHECK_NEAR(mr_tensor_floats(&resized)[i], expected[i], 1e-5);
    mr_tensor_deinit(&images);
    mr_tensor_deinit(&resized);
}

TEST(resize_bilinear_has_three_rules)
{
    float source[] = {0, 10, 20, 30};
    check_line(source, 4, (mr_resize_options){0}, (float[]){0, 5, 10, 15, 20, 25, 30, 30}, 8);
    check_line(source, 4, (mr_resize_options){.align_corners = true}, (float[]){0, 5, 10, 15, 20, 25, 30}, 7);
    check_line(source, 4, (mr_resize_options){.half_pixel_centers = true},
               (float[]){0, 2.5f, 7.5f, 12.5f, 17.5f, 22.5f, 27.5f, 30}, 8);
    check_line(source, 4, (mr_resize_options){.half_pixel_centers = true}, (float[]){5, 25}, 2);
    check_line(source, 4, (mr_resize_options){.align_corners = true}, (float[]){0}, 1);
}

TEST(resize_nearest_and_area)
{
    float source[] = {0, 10, 20, 30};
    check_line(source, 4, (mr_resize_options){.method = MR_RESIZE_NEAREST}, (float[]){0, 20}, 2);
    check_line(source, 4, (mr_resize_options){.method = MR_RESIZE_NEAREST, .half_pixel_centers = true},
               (float[]){10, 30}, 2);
    check_line(source, 4, (mr_resize_options){.method = MR_RESIZE_AREA}, (float[]){5, 25}, 2);
    check_line(source, 4, (mr_resize_options){.method = MR_RESIZE_AREA}, (float[]){2.5f, 15, 27.5f}, 3);
}

TEST(resize_to_its_own_size_changes_nothing)
{
    mr_error error = {0};
    mr_tensor images = {0};
    CHECK_OK(mr_tensor_init(&images, MR_UINT8, MR_SHAPE(2, 7, 9, 3), &error));
    for (int64_t i = 0; i < mr_tensor_count(&images); i++) mr_tensor_uint8s(&images)[i] = (uint8_t)(i * 31);
    for (int method = 0; method < 4; method++)
        for (int half = 0; half < 2; half++) {
            mr_resize_options options = {
                .size = sizeof options, .method = (mr_resize_method)method, .half_pixel_centers = half != 0};
            mr_tensor resized = {0};
            CHECK_OK(mr_image_resize(&images, 7, 9, &options, &resized, &error));
            CHECK_EQ(resized.dtype, method == MR_RESIZE_NEAREST ? MR_UINT8 : MR_FLOAT);
            for (int64_t i = 0; i < mr_tensor_count(&images); i++)
                CHECK_NEAR(method == MR_RESIZE_NEAREST ? mr_tensor_uint8s(&resized)[i] : mr_tensor_floats(&resized)[i],
                           mr_tensor_uint8s(&images)[i], 1e-4);
            mr_tensor_deinit(&resized);
        }
    mr_tensor_deinit(&images);
}

/* The tables of taps: weights sum to 1; indices are inside the source and never decrease. */
TEST(resize_tables_are_sound)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 7);
    for (int i = 0; i < 2000; i++) {
        mr_resize_options options = {.size = sizeof options,
                                     .method = (mr_resize_method)(i % 4),
                                     .align_corners = i / 4 % 3 == 1,
                                     .half_pixel_centers = i / 4 % 3 == 2};
        int32_t first[300];
        mr_resize_axis axis = {.source_count = 1 + (int)mr_random_below(&random, i % 3 == 0 ? 5 : 2000),
                               .target_count = 1 + (int)mr_random_below(&random, 300),
                               .first = first};
        axis.taps = mr_resize_taps(&options, axis.source_count, axis.target_count);
        CHECK(axis.taps >= 1 && axis.taps <= axis.source_count);
        axis.weights = malloc((size_t)axis.target_count * (size_t)axis.taps * sizeof(float));
        mr_resize_axis_fill(&axis, &options);
        for (int32_t t = 0; t < axis.target_count; t++) {
            CHECK(first[t] >= 0 && first[t] + axis.taps <= axis.source_count);
            CHECK(t == 0 || first[t] >= first[t - 1]);
            float sum = 0;
            for (int32_t k = 0; k < axis.taps; k++) sum += axis.weights[t * axis.taps + k];
            CHECK_NEAR(sum, 1, 1e-3);
        }
        free(axis.weights);
    }
}

TEST(resize_refuses)
{
    mr_error error = {0};
    mr_tensor images = line(4, (float[]){1, 2, 3, 4}), resized = {0};
    mr_resize_options both = {.size = sizeof both, .align_corners = true, .half_pixel_centers = true};
    CHECK_STATUS(mr_image_resize(&images, 0, 4, nullptr, &resized, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_image_resize(&images, 4, -1, nullptr, &resized, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_image_resize(&images, 4, 4, &both, &resized, &error), MR_INVALID_ARGUMENT);
    images.shape = MR_SHAPE(4);
    CHECK_STATUS(mr_image_resize(&images, 4, 4, nullptr, &resized, &error), MR_INVALID_ARGUMENT);
    images.shape = MR_SHAPE(0, 4, 1);
    CHECK_STATUS(mr_image_resize(&images, 4, 4, nullptr, &resized, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&images);
}
