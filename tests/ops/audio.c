/* Samples of the operators of graph/ops/audio.c. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"DecodeWav", "string[]=x", "", "Data too short"},
    {"EncodeWav", "float[5,2]; int32[]=8000", ""},
    {"AudioSpectrogram", "float[50,2]", "window_size=10; stride=5"},
    {"Mfcc", "float[1,4,9]; int32[]=8000", "filterbank_channel_count=6; dct_coefficient_count=4"})
/* clang-format on */

TEST(audio_decodes_what_was_encoded)
{
    mr_error error = {0};
    mr_tensor rate = {0};
    CHECK_OK(mr_tensor_init_copy(&rate, MR_INT32, MR_SCALAR, &(int32_t){8000}, &error));
    (void)kept(rate);
    float samples[6] = {0, 0.5f, -1, 1, 0.25f, -0.125f};
    mr_tensor wav = run_op_one(&(op_run){
        .op = "EncodeWav", .inputs = {floats_of(MR_SHAPE(3, 2), samples), rate}, .output_dtypes = {MR_STRING}});
    CHECK_EQ(mr_tensor_strings(&wav)[0].size_bytes, (size_t)44 + 12);
    mr_tensor outputs[2];
    run_op(&(op_run){.op = "DecodeWav",
                     .inputs = {wav},
                     .attrs = {{"desired_channels", 'i', .ints = {-1}}, {"desired_samples", 'i', .ints = {4}}},
                     .output_count = 2,
                     .output_dtypes = {MR_FLOAT, MR_INT32}},
           outputs);
    CHECK(mr_shape_equal(outputs[0].shape, MR_SHAPE(4, 2)));
    samples[3] = 32767.0f / 32768; /* clipped */
    for (int i = 0; i < 8; i++) CHECK(mr_tensor_floats(&outputs[0])[i] == (i < 6 ? samples[i] : 0));
    CHECK_EQ(mr_tensor_int32s(&outputs[1])[0], 8000);
}
