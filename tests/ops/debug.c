/* Samples of the operators of graph/ops/debug.c, and tests of their messages. */
#include "base/show.h"
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <math.h>

/* clang-format off */
SAMPLES(
    {"DebugGradientRefIdentity", "&float[2,3]", "", "cannot be fetched"},
    {"Copy", "float[2,3]", ""},
    {"CopyHost", "float[2,3]", ""},
    {"DebugIdentity", "float[2,3]", ""},
    {"DebugNanCount", "float[2,3]", ""},
    {"DebugNumericSummary", "float[2,3]", ""},
    {"CheckNumericsV2", "float[2,3]", "message=checked"},
    {"EnsureShape", "float[2,3]", "shape=[2,3]"},
    {"GuaranteeConst", "float[2,3]", ""},
    {"DebugGradientIdentity", "float[2,3]", ""},
    {"Timestamp", "", ""},
    {"PrintV2", "string[]=", "output_stream=stderr; end="})
/* clang-format on */

static void check_text(mr_tensor tensor, int64_t most, const char *expected)
{
    char *text = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK(file != nullptr);
    mr_tensor_show(&tensor, most, file);
    CHECK(fclose(file) == 0);
    CHECK_STR(text, expected);
    free(text);
}

TEST(show_tensors_as_tensorflow)
{
    mr_error error = {0};
    mr_tensor cube = {0}, words = {0};
    int32_t numbers[24];
    for (int32_t i = 0; i < 24; i++) numbers[i] = i;
    CHECK_OK(mr_tensor_init_copy(&cube, MR_INT32, MR_SHAPE(2, 3, 4), numbers, &error));
    cube = kept(cube);
    check_text(cube, 3, "[[0 1 2...]]...");
    check_text(cube, 5, "[[0 1 2 3][4...]]...");
    check_text(cube, -1, "[[0 1 2 3][4 5 6 7][8 9 10 11]][[12 13 14 15][16 17 18 19][20 21 22 23]]");
    check_text(cube, 0, "...");
    check_text(floats_of(MR_SHAPE(6), (float[]){0.1f, 1e10f, 16777216, 123456.789f, NAN, -INFINITY}), 10,
               "0.1 1e+10 16777216 123456.789 nan -inf");
    CHECK_OK(mr_tensor_init_strings(&words, MR_SHAPE(2), (mr_string[]){MR_STR("a\n"), MR_STR("\xff'")}, &error));
    check_text(kept(words), 3, "a\\n \\377\\'");
}

TEST(check_numerics_messages)
{
    mr_tensor x = floats_of(MR_SHAPE(3), (float[]){-INFINITY, INFINITY, NAN});
    op_attr message = {"message", 's', .text = "hey"};
    (void)run_op_one(&(op_run){.op = "CheckNumerics",
                               .inputs = {x},
                               .attrs = {message},
                               .expect_error = "hey : Tensor had Inf and NaN values"});
    (void)run_op_one(&(op_run){.op = "CheckNumericsV2",
                               .inputs = {x},
                               .attrs = {message},
                               .expect_error = "hey : Tensor had -Inf, +Inf, and NaN values"});
}
