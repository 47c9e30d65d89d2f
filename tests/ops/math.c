/* Element-wise functions: accuracy of the vectorized ones, broadcasting compared with index arithmetic, outputs that
 * reuse inputs. */
#include "kernels/vector_math.h"
#include "tests/ops/run.h"

/* Units in the last place between a float and the exact value. */
static double ulps(float value, double exact)
{
    float nearest = (float)exact;
    if (value == nearest || (isnan(value) && isnan(nearest))) return 0;
    if (!isfinite(value) || !isfinite(nearest)) return INFINITY;
    int exponent;
    (void)frexp(fmax(fabs(exact), 1.2e-38), &exponent);
    return fabs((double)value - exact) / ldexp(1, exponent - 24);
}

static void check_function(const char *op, double (*exact)(double), double low, double high, double most)
{
    constexpr int COUNT = 20001;
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = (float)(low + (high - low) * i / (COUNT - 1));
    mr_tensor x = floats_of(MR_SHAPE(COUNT), values), y = run_op_one(&(op_run){.op = op, .inputs = {x}, .threads = 2});
    for (int i = 0; i < COUNT; i++) {
        double off = ulps(mr_tensor_floats(&y)[i], exact((double)values[i]));
        if (!(off <= most))
            test_fail(__FILE__, __LINE__, "%s(%.9g) is %.9g, off by %.2f ulp", op, (double)values[i],
                      (double)mr_tensor_floats(&y)[i], off);
    }
}

static void check_functions(void)
{
    check_function("Exp", exp, -104, 89, 2);
    check_function("Exp", exp, -1, 1, 2);
    check_function("Log", log, 1e-30, 10, 2);
    check_function("Log", log, 0.5, 2, 2);
    check_function("Log1p", log1p, -0.9, 10, 3);
    check_function("Expm1", expm1, -20, 80, 4);
    check_function("Tanh", tanh, -10, 10, 3);
    check_function("Tanh", tanh, -0.01, 0.01, 2);
}

TEST(math_functions_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_functions();
}

TEST(math_functions_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_functions();
}

TEST(math_functions_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_functions();
}

TEST(math_functions_at_their_ends)
{
    CHECK(mr_expf(INFINITY) == INFINITY && mr_expf(-INFINITY) == 0 && isnan(mr_expf(NAN)));
    CHECK(mr_logf(0) == -INFINITY && isnan(mr_logf(-1)) && mr_logf(INFINITY) == INFINITY && mr_logf(1) == 0);
    CHECK(mr_tanhf(INFINITY) == 1 && mr_tanhf(-INFINITY) == -1 && isnan(mr_tanhf(NAN)));
    CHECK(mr_sigmoidf(-INFINITY) == 0 && mr_sigmoidf(INFINITY) == 1);
    CHECK(mr_softplusf(100) == 100 && mr_softplusf(-100) > 0);
}

/* y is within 2 ulp of erfinv(x) if x is between the values of erf at y's neighbors; above 1/2 those of erfc are
 * compared, because erf hardly changes there. The last factor allows for the C library's rounding. */
TEST(math_inverse_error_function)
{
    constexpr int COUNT = 20'000;
    static float floats[COUNT];
    static double doubles[COUNT];
    for (int i = 0; i < COUNT; i++) {
        double t = (double)i / COUNT;
        doubles[i] = i % 2 ? exp(-30 * t) : 1 - exp(-36 * t);
        floats[i] = (float)(i % 2 ? exp(-30 * t) : 1 - exp(-16 * t));
    }
    mr_error error = {0};
    mr_tensor x = {0};
    CHECK_OK(mr_tensor_init(&x, MR_DOUBLE, MR_SHAPE(COUNT), &error));
    memcpy(x.data, doubles, sizeof doubles);
    mr_tensor y = run_op_one(&(op_run){.op = "Erfinv", .inputs = {x}, .threads = 2});
    for (int i = 0; i < COUNT; i++) {
        double value = mr_tensor_doubles(&y)[i], ulp = nextafter(value, INFINITY) - value;
        double low = value - 2 * ulp, high = value + 2 * ulp, eps = doubles[i] * 2.3e-16, rest = 1 - doubles[i];
        if (doubles[i] <= 0.5 ? !(erf(low) - eps <= doubles[i] && doubles[i] <= erf(high) + eps)
                              : !(erfc(high) * (1 - 2.3e-16) <= rest && rest <= erfc(low) * (1 + 2.3e-16)))
            test_fail(__FILE__, __LINE__, "Erfinv(%.17g) is %.17g", doubles[i], value);
    }
    mr_tensor_deinit(&x);
    y = run_op_one(&(op_run){.op = "Erfinv", .inputs = {floats_of(MR_SHAPE(COUNT), floats)}, .threads = 2});
    for (int i = 0; i < COUNT; i++) {
        double value = (double)mr_tensor_floats(&y)[i], exact = (double)floats[i];
        double low = value * (1 - 2.4e-7), high = value * (1 + 2.4e-7);
        if (!(erfc(high) <= 1 - exact && 1 - exact <= erfc(low)) && !(erf(low) <= exact && exact <= erf(high)))
            test_fail(__FILE__, __LINE__, "Erfinv(%.9g) is %.9g", exact, value);
    }
    static const float inputs[] = {0, -0.0f, 1, -1, 1.5f, NAN, -0.5f};
    y = run_op_one(&(op_run){.op = "Erfinv", .inputs = {floats_of(MR_SHAPE(7), inputs)}});
    const float *ends = mr_tensor_floats(&y);
    CHECK(ends[0] == 0 && !signbit(ends[0]) && ends[1] == 0 && signbit(ends[1]) && ends[2] == INFINITY &&
          ends[3] == -INFINITY && isnan(ends[4]) && isnan(ends[5]) && ends[6] == -0.476936276f);
}

static int64_t broadcast_index(mr_shape shape, mr_shape wide, int64_t index)
{
    int64_t result = 0, stride = 1;
    for (int d = 0; d < wide.rank; d++) {
        int w = wide.rank - 1 - d, s = shape.rank - 1 - d;
        int64_t at = index % wide.dims[w];
        index /= wide.dims[w];
        if (s < 0) continue;
        result += (shape.dims[s] == 1 ? 0 : at) * stride;
        stride *= shape.dims[s];
    }
    return result;
}

TEST(math_broadcasting_equals_index_arithmetic)
{
    static const struct {
        mr_shape a, b, wide;
    } cases[] = {
        {{2, {6, 7}}, {2, {6, 7}}, {2, {6, 7}}},
        {{2, {600, 70}}, {1, {70}}, {2, {600, 70}}},
        {{1, {70}}, {2, {600, 70}}, {2, {600, 70}}},
        {{2, {6, 1}}, {2, {1, 7}}, {2, {6, 7}}},
        {{4, {2, 3, 4, 5}}, {3, {3, 1, 5}}, {4, {2, 3, 4, 5}}},
        {{3, {5, 1, 3}}, {3, {1, 4, 1}}, {3, {5, 4, 3}}},
        {{2, {2, 40000}}, {1, {40000}}, {2, {2, 40000}}},
        {{2, {2, 40000}}, {2, {2, 1}}, {2, {2, 40000}}},
        {{0, {0}}, {2, {3, 3}}, {2, {3, 3}}},
        {{2, {0, 3}}, {1, {3}}, {2, {0, 3}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mr_tensor a = random_floats(cases[i].a, 1), b = random_floats(cases[i].b, 2);
        mr_tensor y = run_op_one(&(op_run){.op = "Sub", .inputs = {a, b}, .threads = 2});
        CHECK(mr_shape_equal(y.shape, cases[i].wide));
        for (int64_t e = 0; e < mr_tensor_count(&y); e++)
            CHECK(mr_tensor_floats(&y)[e] == mr_tensor_floats(&a)[broadcast_index(cases[i].a, cases[i].wide, e)] -
                                                 mr_tensor_floats(&b)[broadcast_index(cases[i].b, cases[i].wide, e)]);
        mr_tensor reused = run_op_one(&(op_run){.op = "Sub", .inputs = {a, b}, .reuse = true});
        check_same_bits(&reused, &y);
    }
    mr_tensor a = random_floats(MR_SHAPE(2, 3), 1), b = random_floats(MR_SHAPE(4), 2);
    (void)run_op_one(&(op_run){.op = "Mul", .inputs = {a, b}, .expect_error = "Incompatible shapes: [2,3] vs. [4]"});
}

TEST(math_integer_division)
{
    mr_tensor a = INT32S(7, -7, 7, -7, INT32_MIN), b = INT32S(2, 2, -2, -2, -1);
    mr_tensor floor = run_op_one(&(op_run){.op = "FloorDiv", .inputs = {a, b}});
    mr_tensor rest = run_op_one(&(op_run){.op = "FloorMod", .inputs = {a, b}});
    static const int32_t floors[] = {3, -4, -4, 3, INT32_MIN}, rests[] = {1, 1, -1, -1, 0};
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(mr_tensor_int32s(&floor)[i], floors[i]);
        CHECK_EQ(mr_tensor_int32s(&rest)[i], rests[i]);
    }
    mr_tensor zero = INT32S(0);
    (void)run_op_one(&(op_run){.op = "FloorDiv", .inputs = {a, zero}, .expect_error = "Integer division by zero"});
    static const char *const ops[] = {"FloorDiv", "FloorMod", "Div", "TruncateMod", "Pow"};
    for (int i = 0; i < 5; i++) { /* nothing is divided, or raised to a negative power */
        const mr_tensor none = int32s_of(0, (int32_t[]){0}), divisor = i == 4 ? INT32S(-1) : zero;
        const mr_tensor result = run_op_one(&(op_run){.op = ops[i], .inputs = {none, divisor}});
        CHECK_EQ(mr_tensor_count(&result), 0);
    }
}
