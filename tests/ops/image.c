/* The image operators. The functions that they call are compared with TensorFlow by the
 * oracle. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <millrace/image.h>

/* clang-format off */
SAMPLES(
    {"AdjustContrast", "uint8[2,3,4,3]; float[]=2; float[]=0; float[]=255", ""},
    {"AdjustContrastv2", "float[2,3,4,3]; float[]=2", ""},
    {"AdjustHue", "float[2,5,3]; float[]=1", ""},
    {"AdjustSaturation", "float[2,5,3]; float[]=2", ""},
    {"CombinedNonMaxSuppression", "float[2,5,1,4]; float[2,5,3]; int32[]=2; int32[]=4; float[]=1; float[]=0", ""},
    {"CropAndResize", "float[2,5,4,3]; float[3,4]=0,0,1,1; int32[3]=0,1,0; int32[2]=6,7", ""},
    {"CropAndResizeGradBoxes", "float[3,6,7,2]; float[2,5,4,2]; float[3,4]=0,0,1,1; int32[3]=0,1,0", ""},
    {"CropAndResizeGradImage", "float[3,6,7,2]; float[3,4]=0,0,1,1; int32[3]=0,1,0; int32[4]=2,5,4,2", "T=float"},
    {"DecodeAndCropJpeg", "string[]=$JPEG; int32[4]=0,0,1,1", ""},
    {"DecodeBmp", "string[]=$BMP", ""},
    {"DecodeGif", "string[]=$GIF", ""},
    {"DecodeImage", "string[]=$PNG", ""},
    {"DecodeImage", "string[]=$GIF", "dtype=float"},
    {"DecodeImage", "string[]=$BMP", "dtype=uint16; channels=4"},
    {"DecodeJpeg", "string[]=$JPEG", ""},
    {"DecodePng", "string[]=$PNG", ""},
    {"ExtractGlimpse", "float[2,5,6,3]; int32[2]=3,4; float[2,2]=0,-1", ""},
    {"ExtractGlimpseV2", "float[2,5,6,3]; int32[2]=3,7; float[2,2]=0,-1", "uniform_noise=false; noise=gaussian"},
    {"ImageProjectiveTransform", "uint8[2,5,6,3]; float[1,8]=1,0,1,0,1,2,0,0", "interpolation=NEAREST"},
    {"ImageProjectiveTransformV2", "float[2,5,6,3]; float[2,8]=1,1,1,0,1,2,0,0; int32[2]=4,7",
     "interpolation=BILINEAR; fill_mode=REFLECT"},
    {"ImageProjectiveTransformV3", "half[2,5,6,3]; float[2,8]=1,1,1,0,1,2,0,0; int32[2]=4,7; float[]=3",
     "interpolation=BILINEAR; fill_mode=WRAP"},
    {"Resampler", "float[2,5,6,3]; float[2,4,2]=1,2,-1,3", ""},
    {"ResamplerGrad", "double[2,5,6,3]; double[2,4,2]=1,2,-1,3; double[2,4,3]", ""},
    {"ScaleAndTranslate", "int16[2,5,6,3]; int32[2]=3,7; float[2]=1,2; float[2]=0,1", ""},
    {"ScaleAndTranslateGrad", "float[2,3,7,3]; float[2,5,6,3]; float[2]=1,2; float[2]=0,1",
     "kernel_type=triangle"},
    {"DrawBoundingBoxes", "float[2,5,6,3]; float[2,7,4]=0,0,1,1", ""},
    {"DrawBoundingBoxesV2", "float[2,5,6,3]; float[2,7,4]=0,0,1,1; float[8,3]", ""},
    {"EncodeJpeg", "uint8[5,4,3]", ""},
    {"EncodeJpegVariableQuality", "uint8[5,4,3]; int32[]=80", ""},
    {"EncodePng", "uint16[2,5,4,3]", ""},
    {"ExtractJpegShape", "string[]=$JPEG", ""},
    {"HSVToRGB", "float[2,5,3]", ""},
    {"NonMaxSuppression", "float[5,4]; float[5]; int32[]=3", ""},
    {"NonMaxSuppressionV2", "half[5,4]; half[5]; int32[]=3; float[]=1", ""},
    {"NonMaxSuppressionV3", "float[5,4]; float[5]; int32[]=3; float[]=1; float[]=0", ""},
    {"NonMaxSuppressionV4", "float[5,4]; float[5]; int32[]=3; float[]=1; float[]=0", "pad_to_max_output_size=true"},
    {"NonMaxSuppressionV5", "float[5,4]; float[5]; int32[]=3; float[]=1; float[]=0; float[]=1", ""},
    {"NonMaxSuppressionWithOverlaps", "float[5,5]; float[5]; int32[]=3; float[]=1; float[]=0", ""},
    {"RGBToHSV", "float[2,5,3]", ""},
    {"ResizeArea", "int16[2,5,4,3]; int32[2]=3,7", ""},
    {"ResizeBicubic", "float[2,5,4,3]; int32[2]=3,7", "half_pixel_centers=true"},
    {"ResizeBicubicGrad", "float[2,3,7,3]; double[2,5,4,3]", ""},
    {"ResizeBilinear", "float[2,5,4,3]; int32[2]=3,7", ""},
    {"ResizeBilinear", "uint8[2,5,4,3]; int32[2]=3,7", "half_pixel_centers=true"},
    {"ResizeBilinearGrad", "float[2,3,7,3]; float[2,5,4,3]", ""},
    {"ResizeNearestNeighbor", "float[2,5,4,3]; int32[2]=3,7", "align_corners=true"},
    {"ResizeNearestNeighborGrad", "float[2,3,7,3]; int32[2]=5,4", ""},
    {"SampleDistortedBoundingBox", "int32[3]=5,4,3; float[1,2,4]=0,0,1,1", ""},
    {"SampleDistortedBoundingBoxV2", "int64[3]=5,4,3; float[1,2,4]=0,0,1,1; float[]=1", ""})
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
                               .expect_error = "`channels` must be 0, 1, 3 or 4 but got 2"});
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
    CHECK(mr_tensor_floats(&half)[3] == mr_tensor_uint8s(&image)[6]);
    (void)run_op_one(&(op_run){.op = "ResizeBilinear", .inputs = {images, INT32S(2)}, .expect_error = "two elements"});
}

/* Between four pixels; at a pixel; half outside; outside. */
TEST(image_ops_resample_points)
{
    float pixels[6] = {1, 2, 3, 4, 5, 6}, at[8] = {0.5f, 0.5f, 2, 1, -0.5f, 0, 3, 0};
    static const float expected[4] = {3, 6, 0.5f, 0};
    mr_tensor result = run_op_one(&(op_run){
        .op = "Resampler", .inputs = {floats_of(MR_SHAPE(1, 2, 3, 1), pixels), floats_of(MR_SHAPE(1, 4, 2), at)}});
    CHECK(mr_shape_equal(result.shape, MR_SHAPE(1, 4, 1)));
    for (int i = 0; i < 4; i++) CHECK(mr_tensor_floats(&result)[i] == expected[i]);
}

/* Noise is in the range of the image, and the same in the same run. */
TEST(image_ops_glimpse_noise)
{
    static const char *const kinds[] = {"uniform", "gaussian"};
    float at[2] = {0.9f, 0.9f};
    mr_tensor image = random_floats(MR_SHAPE(1, 6, 6, 2), 1);
    float low = INFINITY, high = -INFINITY;
    for (int i = 0; i < 72; i++) {
        low = fminf(low, mr_tensor_floats(&image)[i]);
        high = fmaxf(high, mr_tensor_floats(&image)[i]);
    }
    for (int kind = 0; kind < 2; kind++) {
        op_run run = {.op = "ExtractGlimpseV2",
                      .inputs = {image, INT32S(4, 5), floats_of(MR_SHAPE(1, 2), at)},
                      .attrs = {{"noise", 's', .text = kinds[kind]}, {"uniform_noise", 'b', .ints = {0}}}};
        mr_tensor glimpse = run_op_one(&run), again = run_op_one(&run);
        check_same_bits(&glimpse, &again);
        for (int i = 0; i < 40; i++)
            CHECK(mr_tensor_floats(&glimpse)[i] >= low && mr_tensor_floats(&glimpse)[i] <= high);
    }
}

TEST(image_ops_name_what_is_wrong_in_a_gif)
{
    static const char gif[] = "GIF89a\2\0\1\0\x80\0\0\xff\0\0\0\xff\0,\0\0\0\0\2\0\1\0\0\2\2\x44\x0a\0;";
    static const struct {
        size_t size;
        const char *op, *error;
    } cases[] = {
        {12, "DecodeGif", "Invalid GIF data (size 12), failed to open gif file: No screen descriptor detected"},
        {30, "DecodeGif", "failed to slurp gif file: Failed to read from given file"},
        {sizeof gif - 1, "DecodeBmp", "Trying to decode GIF format using DecodeBmp op"},
        {0, "DecodeGif", "Input is empty."}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mr_error error = {0};
        mr_tensor text = {0};
        CHECK_OK(mr_tensor_init_string(&text, (mr_string){gif, cases[i].size}, &error));
        (void)run_op_one(&(op_run){.op = cases[i].op, .inputs = {kept(text)}, .expect_error = cases[i].error});
    }
}
