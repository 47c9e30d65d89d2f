/* Samples of the operators of graph/ops/quantize.c, and errors of their kernels. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"QuantizeV2", "float[2,3]; float[]=-1; float[]=2", "T=quint8"},
    {"QuantizeV2", "float[2,3]; float[3]=-1; float[3]=2", "T=qint8; mode=SCALED; axis=1"},
    {"Dequantize", "qint8[2,3]; float[]=-1; float[]=2", ""},
    {"Dequantize", "quint16[2,3]; float[3]=-1; float[3]=2", "mode=SCALED; axis=1"},
    {"QuantizeAndDequantize", "float[2,3]", ""},
    {"QuantizeAndDequantizeV2", "float[2,3]; float[]=-1; float[]=2", "range_given=true"},
    {"QuantizeAndDequantizeV3", "float[2,3]; float[3]=-1; float[3]=2; int32[]=5", "axis=1"},
    {"QuantizeAndDequantizeV4", "float[2,3]; float[]=-1; float[]=2", ""},
    {"QuantizeAndDequantizeV4Grad", "float[2,3]; float[2,3]; float[]=-1; float[]=2", ""},
    {"FakeQuantWithMinMaxArgs", "float[2,3]", ""},
    {"FakeQuantWithMinMaxArgsGradient", "float[2,3]; float[2,3]", ""},
    {"FakeQuantWithMinMaxVars", "float[2,3]; float[]=-1; float[]=2", ""},
    {"FakeQuantWithMinMaxVarsGradient", "float[2,3]; float[2,3]; float[]=-1; float[]=2", ""},
    {"FakeQuantWithMinMaxVarsPerChannel", "float[2,3]; float[3]=-1; float[3]=2", ""},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", "float[2,3]; float[2,3]; float[3]=-1; float[3]=2", ""})
/* clang-format on */

TEST(quantize_settings_are_checked)
{
    mr_tensor x = random_floats(MR_SHAPE(3), 1), low = floats_of(MR_SCALAR, (float[]){2}),
              high = floats_of(MR_SCALAR, (float[]){1});
    (void)run_op_one(&(op_run){.op = "QuantizeAndDequantizeV2",
                               .inputs = {x, low, high},
                               .attrs = {{"range_given", 'b', .ints = {1}}},
                               .expect_error = "Invalid range: input_min 2 > input_max 1"});
    (void)run_op_one(&(op_run){.op = "QuantizeAndDequantizeV2",
                               .inputs = {x, low, high},
                               .attrs = {{"num_bits", 'i', .ints = {63}}},
                               .expect_error = "num_bits is out of range: 63"});
    (void)run_op_one(&(op_run){.op = "FakeQuantWithMinMaxArgs",
                               .inputs = {x},
                               .attrs = {{"num_bits", 'i', .ints = {17}}},
                               .expect_error = "num_bits must be between 2 and 16, inclusive"});
}
