/* Compares softmax and its losses with double precision; labels out of range are rejected. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"L2Loss", "float[2,3]", ""},
    {"LogSoftmax", "float[2,3]", ""},
    {"Softmax", "float[2,3]", ""},
    {"InTopK", "float[2,5]; int32[2]=0,1", "k=2"},
    {"InTopKV2", "float[2,5]; int32[2]=0,1; int32[]=2", ""},
    {"TopKV2", "float[2,5]; int32[]=2", ""},
    {"SoftmaxCrossEntropyWithLogits", "float[2,3]; float[2,3]", ""},
    {"SparseSoftmaxCrossEntropyWithLogits", "float[2,3]; int64[2]=0,1", ""})
/* clang-format on */

TEST(softmax_is_close_to_double_precision)
{
    static const int64_t classes[] = {1, 6, 17, 1000};
    for (int i = 0; i < 4; i++) {
        int64_t n = classes[i];
        mr_tensor x = random_floats(MR_SHAPE(37, n), 1);
        for (int64_t e = 0; e < mr_tensor_count(&x); e++) mr_tensor_floats(&x)[e] *= 30;
        mr_tensor p = run_op_one(&(op_run){.op = "Softmax", .inputs = {x}, .threads = 2});
        mr_tensor reused_input = random_floats(MR_SHAPE(37, n), 1);
        memcpy(reused_input.data, x.data, mr_tensor_size_bytes(&x));
        mr_tensor reused = run_op_one(&(op_run){.op = "Softmax", .inputs = {reused_input}, .reuse = true});
        check_same_bits(&reused, &p);
        for (int64_t r = 0; r < 37; r++) {
            const float *row = mr_tensor_floats(&x) + r * n;
            double largest = -INFINITY, sum = 0;
            for (int64_t c = 0; c < n; c++) largest = fmax(largest, (double)row[c]);
            for (int64_t c = 0; c < n; c++) sum += exp((double)row[c] - largest);
            for (int64_t c = 0; c < n; c++)
                CHECK_NEAR((double)mr_tensor_floats(&p)[r * n + c], exp((double)row[c] - largest) / sum, 1e-6);
        }
    }
}

TEST(softmax_losses_agree_and_check_labels)
{
    mr_tensor x = random_floats(MR_SHAPE(3, 4), 1), labels = INT32S(2, 0, 3), sparse[2], dense[2];
    run_op(&(op_run){.op = "SparseSoftmaxCrossEntropyWithLogits", .inputs = {x, labels}, .output_count = 2}, sparse);
    mr_tensor hot = floats_of(MR_SHAPE(3, 4), (float[]){0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1});
    run_op(&(op_run){.op = "SoftmaxCrossEntropyWithLogits", .inputs = {x, hot}, .output_count = 2}, dense);
    check_close(&sparse[0], &dense[0], 1e-6);
    check_close(&sparse[1], &dense[1], 1e-6);
    (void)run_op_one(&(op_run){.op = "SparseSoftmaxCrossEntropyWithLogits",
                               .inputs = {x, INT32S(0, 4, 0)},
                               .output_count = 2,
                               .expect_error = "label value of 4"});
    (void)run_op_one(&(op_run){.op = "SparseSoftmaxCrossEntropyWithLogits",
                               .inputs = {x, INT32S(0, -1, 0)},
                               .output_count = 2,
                               .expect_error = "label value of -1"});
}
