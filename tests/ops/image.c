/* The image operators: decoding and resizing. The functions that they call are compared with TensorFlow by the
 * oracle. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <millrace/image.h>

/* clang-format off */
SAMPLES(
    {"DecodeJpeg", "string[]=$JPEG", ""},
    {"DecodePng", "string[]=$PNG", ""},
    {"ResizeBilinear", "float[2,5,4,3]; int32[2]=3,7", ""},
    {"ResizeBilinear", "uint8[2,5,4,3]; int32[2]=3,7", "half_pixel_centers=true"},
    {"ResizeBilinearGrad", "float[2,3,7,3]; float[2,5,4,3]", ""},
    {"ResizeNearestNeighbor", "float[2,5,4,3]; int32[2]=3,7", "align_corners=true"})
/* clang-format on */

static mr_tensor random_image(int height, int width)
{
    mr_error error = {0};
    mr_tensor image = {0};
    CHECK_OK(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(height, width, 3), &error));
    for (int64_t i = 0; i < mr_tensor_count(&image); i++) mr_tensor_uint8s(&image)[i] = (uint8_t)(i * 7);
    return kept(image);
}

TEST(image_ops_decode_what_was_encoded)
{
    mr_error error = {0};
    mr_tensor image = random_image(9, 13), png = {0}, jpeg = {0};
    CHECK_OK(mr_image_encode_png(&image, &png, &error));
    CHECK_OK(mr_image_encode_jpeg(&image, 90, &jpeg, &error));
    (void)kept(png);
    (void)kept(jpeg);
    mr_tensor decoded = run_op_one(&(op_run){
        .op = "DecodePng", .inputs = {png}, .output_dtypes = {MR_UINT8}, .attrs = {{"channels", 'i', .ints = {3}}}});
    check_same_bits(&decoded, &image);
    mr_tensor gray = run_op_one(&(op_run){
        .op = "DecodeJpeg", .inputs = {jpeg}, .output_dtypes = {MR_UINT8}, .attrs = {{"channels", 'i', .ints = {1}}}});
    CHECK(mr_shape_equal(gray.shape, MR_SHAPE(9, 13, 1)));
    (void)run_op_one(&(op_run){.op = "DecodeJpeg",
                               .inputs = {jpeg},
                               .attrs = {{"channels", 'i', .ints = {2}}},
                               .expect_error = "channels is 2"});
    mr_tensor text = {0};
    CHECK_OK(mr_tensor_init_string(&text, MR_STR("not an image"), &error));
    (void)kept(text);
    (void)run_op_one(&(op_run){.op = "DecodeJpeg", .inputs = {text}, .expect_error = "DecodeJpeg"});
}

TEST(image_ops_resize)
{
    mr_error error = {0};
    mr_tensor image = random_image(4, 6), images = {0};
    CHECK_OK(mr_tensor_reshape(&image, MR_SHAPE(1, 4, 6, 3), &images, &error));
    mr_tensor same = run_op_one(
        &(op_run){.op = "ResizeNearestNeighbor", .inputs = {images, INT32S(4, 6)}, .output_dtypes = {MR_UINT8}});
    check_same_bits(&same, &images);
    mr_tensor half =
        run_op_one(&(op_run){.op = "ResizeBilinear", .inputs = {images, INT32S(2, 3)}, .output_dtypes = {MR_FLOAT}});
    CHECK(mr_shape_equal(half.shape, MR_SHAPE(1, 2, 3, 3)));
    /* TensorFlow 1's rule: source = i * scale, so every second pixel is unchanged. */
    CHECK_EQ(mr_tensor_floats(&half)[3], mr_tensor_uint8s(&image)[6]);
    (void)run_op_one(&(op_run){.op = "ResizeBilinear", .inputs = {images, INT32S(2)}, .expect_error = "two numbers"});
}
