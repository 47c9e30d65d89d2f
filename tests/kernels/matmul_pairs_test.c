/* Products of bfloat16 numbers compared with the definition, to the bit: all numbers are small integers, so every sum
 * is exact. They take the path of AVX512-BF16 if the processor has it. */
#include "kernels/matmul.h"
#include "tests/ops/run.h"

typedef struct shape_of_product {
    int64_t m, n, k, a_batch, b_batch; /* batches of 0: MatMul */
    bool a_transposed, b_transposed;
} shape_of_product;

static mr_tensor integers(mr_shape shape, mr_random *random)
{
    mr_error error = {0};
    mr_tensor tensor;
    CHECK_OK(mr_tensor_init(&tensor, MR_BFLOAT16, shape, &error));
    uint16_t *numbers = tensor.data;
    for (int64_t i = 0; i < mr_tensor_count(&tensor); i++)
        numbers[i] = mr_float_to_bfloat16((float)mr_random_below(random, 17) - 8);
    return kept(tensor);
}

static mr_shape matrix(int64_t batch, int64_t rows, int64_t columns, bool transposed)
{
    mr_shape shape = transposed ? MR_SHAPE(columns, rows) : MR_SHAPE(rows, columns);
    return batch == 0 ? shape : MR_SHAPE(batch, shape.dims[0], shape.dims[1]);
}

static float number_at(const mr_tensor *x, int64_t batch, int64_t row, int64_t column, int64_t rows, int64_t columns,
                       bool transposed)
{
    const int64_t place = transposed ? column * rows + row : row * columns + column;
    return mr_bfloat16_to_float(((const uint16_t *)x->data)[batch * rows * columns + place]);
}

/* Compares all elements of a small result, and some of a large one. */
static void check_numbers(const shape_of_product *s, const mr_tensor *a, const mr_tensor *b, const mr_tensor *c,
                          mr_random *random)
{
    const int64_t count = mr_tensor_count(c), size = s->m * s->n;
    for (int64_t i = 0; i < MR_MIN(count, 1500); i++) {
        const int64_t at = count <= 1500 ? i : i == 0 ? count - 1 : (int64_t)mr_random_below(random, (uint64_t)count);
        const int64_t batch = at / size, row = at % size / s->n, column = at % s->n;
        float sum = 0;
        for (int64_t k = 0; k < s->k; k++)
            sum += number_at(a, s->a_batch == 1 ? 0 : batch, row, k, s->m, s->k, s->a_transposed) *
                   number_at(b, s->b_batch == 1 ? 0 : batch, k, column, s->k, s->n, s->b_transposed);
        if (((const uint16_t *)c->data)[at] != mr_float_to_bfloat16(sum))
            test_fail(__FILE__, __LINE__, "[%lld, %lld, %lld]: element %lld", (long long)s->m, (long long)s->n,
                      (long long)s->k, (long long)at);
    }
}

static void check(const shape_of_product *s, mr_random *random)
{
    const mr_tensor a = integers(matrix(s->a_batch, s->m, s->k, s->a_transposed), random);
    const mr_tensor b = integers(matrix(s->b_batch, s->k, s->n, s->b_transposed), random);
    mr_tensor c[2];
    for (int i = 0; i < 2; i++) {
        op_run run = {.op = s->a_batch > 0 ? "BatchMatMulV2" : "MatMul", .inputs = {a, b}, .threads = 1 + 2 * i};
        run.attrs[0] = (op_attr){.name = s->a_batch ? "adj_x" : "transpose_a", .kind = 'b', .ints = {s->a_transposed}};
        run.attrs[1] = (op_attr){.name = s->a_batch ? "adj_y" : "transpose_b", .kind = 'b', .ints = {s->b_transposed}};
        c[i] = kept(run_op_one(&run));
    }
    check_same_bits(&c[0], &c[1]);
    check_numbers(s, &a, &b, &c[0], random);
}

static void check_sizes(void)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 14, 15, 16, 17, 31, 33, 64, 100};
    constexpr int count = sizeof sizes / sizeof *sizes;
    mr_random random = mr_random_at(test_seed(), 3, 0, 0);
    for (int i = 0; i < 120; i++) {
        shape_of_product s = {.a_transposed = i & 1, .b_transposed = i & 2};
        s.m = sizes[mr_random_below(&random, count)];
        s.n = sizes[mr_random_below(&random, count)];
        s.k = sizes[mr_random_below(&random, count)];
        if (i % 3 == 0) {
            s.a_batch = i % 2 ? 1 : 3;
            s.b_batch = i % 4 ? 3 : 1;
            if (s.a_batch == 1 && s.b_batch == 1) s.b_batch = 3;
        }
        check(&s, &random);
    }
    for (int i = 0; i < 40; i++) { /* matrices and vectors, which have no pairs */
        shape_of_product s = {.m = 1, .n = 1, .a_transposed = i & 1, .b_transposed = i & 2};
        *(i & 4 ? &s.m : &s.n) = sizes[mr_random_below(&random, count)];
        s.k = sizes[mr_random_below(&random, count)];
        check(&s, &random);
    }
    check(&(shape_of_product){.m = 1100, .n = 1, .k = 500}, &random);
    check(&(shape_of_product){.m = 1, .n = 1100, .k = 500, .b_transposed = true}, &random);
    for (int form = 0; form < 4; form++) { /* several blocks in every direction, and rows at bad distances */
        const bool a = form & 1, b = form & 2;
        check(&(shape_of_product){.m = 70, .n = 300, .k = 1101, .a_transposed = a, .b_transposed = b}, &random);
        check(&(shape_of_product){.m = 1024, .n = 140, .k = 2048, .a_transposed = a, .b_transposed = b}, &random);
    }
}

TEST(matmul_pairs_have_the_bits_of_the_definition)
{
    const mr_product large = {.m = 64, .n = 64, .k = 64}, row = {.m = 1, .n = 1000, .k = 1000};
    CHECK_EQ(mr_product_is_pairs(&large), mr_cpu_has_bf16());
    CHECK(!mr_product_is_pairs(&row));
    check_sizes();
}

TEST(matmul_pairs_of_a_named_level)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    CHECK(!mr_cpu_has_bf16());
    check_sizes();
}

/* Infinity, NaN and signed zero pass; the last number of an odd inner dimension meets a zero, not memory. */
TEST(matmul_pairs_special_numbers)
{
    mr_error error = {0};
    mr_tensor a, b;
    CHECK_OK(mr_tensor_init(&a, MR_BFLOAT16, MR_SHAPE(32, 33), &error));
    CHECK_OK(mr_tensor_init(&b, MR_BFLOAT16, MR_SHAPE(33, 32), &error));
    for (int64_t i = 0; i < 32 * 33; i++) ((uint16_t *)a.data)[i] = ((uint16_t *)b.data)[i] = mr_float_to_bfloat16(1);
    ((uint16_t *)a.data)[0] = mr_float_to_bfloat16(__builtin_inff());
    ((uint16_t *)a.data)[33 + 32] = mr_float_to_bfloat16(__builtin_nanf(""));
    const op_run run = {.op = "MatMul", .inputs = {kept(a), kept(b)}};
    mr_tensor c = kept(run_op_one(&run));
    for (int64_t j = 0; j < 32; j++) {
        const uint16_t *numbers = c.data;
        CHECK(mr_bfloat16_to_float(numbers[j]) == __builtin_inff());
        CHECK(mr_bfloat16_to_float(numbers[32 + j]) != mr_bfloat16_to_float(numbers[32 + j]));
        for (int64_t i = 2; i < 32; i++) CHECK(mr_bfloat16_to_float(numbers[i * 32 + j]) == 33);
    }
}

/* An empty batch may have matrices whose number of elements is larger than any integer. */
TEST(matmul_pairs_of_no_matrices)
{
    mr_error error = {0};
    mr_tensor a, b;
    const int64_t huge = (int64_t)1 << 40;
    CHECK_OK(mr_tensor_init(&a, MR_BFLOAT16, MR_SHAPE(0, huge, huge), &error));
    CHECK_OK(mr_tensor_init(&b, MR_BFLOAT16, MR_SHAPE(0, huge, huge), &error));
    const op_run run = {.op = "BatchMatMulV2", .inputs = {kept(a), kept(b)}};
    const mr_tensor c = kept(run_op_one(&run));
    CHECK(mr_shape_equal(c.shape, MR_SHAPE(0, huge, huge)));
}
