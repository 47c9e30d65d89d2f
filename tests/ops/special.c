/* Samples of the operators of graph/ops/special.c, and the accuracy of their kernels. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <math.h>

/* clang-format off */
SAMPLES(
    {"Digamma", "float[2,3]", ""},
    {"Polygamma", "float[2,3]=1,2,0; float[3]=1,2,3", ""},
    {"Zeta", "float[2,3]=2,3,1; float[3]=1,2,-1", ""},
    {"Igamma", "float[2,3]=1,2,30; float[3]=1,2,40", ""},
    {"Igammac", "float[2,3]=1,2,30; float[3]=1,2,40", ""},
    {"IgammaGradA", "float[2,3]=1,2,30; float[3]=1,2,40", ""},
    {"Betainc", "float[2,3]=1,2,30; float[]=2; float[2,3]=0,1,2", ""},
    {"Ndtri", "float[2,3]", ""},
    {"Dawsn", "float[2,3]=3,1,10,-1,0,100", ""},
    {"Expint", "float[2,3]=3,1,10,-1,0,100", ""},
    {"FresnelCos", "float[2,3]=3,1,10,-1,0,100", ""},
    {"FresnelSin", "float[2,3]=3,1,10,-1,0,100", ""},
    {"Spence", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselI0", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselI0e", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselI1", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselI1e", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselJ0", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselJ1", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselK0", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselK0e", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselK1", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselK1e", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselY0", "float[2,3]=3,1,10,-1,0,100", ""},
    {"BesselY1", "float[2,3]=3,1,10,-1,0,100", ""})
/* clang-format on */

static mr_tensor doubles(int64_t count, const double *values)
{
    mr_tensor tensor;
    mr_error error;
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_DOUBLE, MR_SHAPE(count), values, &error));
    return kept(tensor);
}

static double value_of(const char *op, double a, double b)
{
    bool is_binary = !isnan(b);
    mr_tensor x = doubles(1, &a), y = is_binary ? doubles(1, &b) : (mr_tensor){0};
    mr_tensor result = run_op_one(&(op_run){.op = op, .inputs = {x, y}, .output_dtypes = {MR_DOUBLE}});
    return mr_tensor_doubles(&result)[0];
}

/* Values with 15 digits, on both sides of each boundary between two methods. */
TEST(special_functions_are_accurate)
{
    static const struct {
        const char *op;
        double a, b, expected; /* b is NaN for functions of one number */
    } cases[] = {
        {"Digamma", 1, NAN, -0.577215664901532861},   {"Digamma", -0.5, NAN, 0.0364899739785765206},
        {"Zeta", 2, 1, 1.64493406684822644},          {"Zeta", 3, 100, 5.0502499916675e-05},
        {"Polygamma", 2, 1, -2.40411380631918857},    {"Igamma", 2, 1, 0.264241117657115356},
        {"Igammac", 2, 30, 2.9008631203404543e-12},   {"Ndtri", 0.975, NAN, 1.95996398454005424},
        {"Ndtri", 1e-10, NAN, -6.36134090240406},     {"Dawsn", 0.25, NAN, 0.2398391635628982},
        {"Dawsn", 2, NAN, 0.301340388923791966},      {"Expint", 1, NAN, 1.89511781635593676},
        {"Expint", 50, NAN, 1.05856368971316910e20},  {"FresnelCos", 1, NAN, 0.779893400376822829},
        {"FresnelSin", 2, NAN, 0.343415678363698242}, {"Spence", 2, NAN, -0.822467033424113218},
        {"Spence", 0.25, NAN, 0.978469392930306039},  {"BesselI0e", 1, NAN, 0.465759607593640436},
        {"BesselI0e", 100, NAN, 0.03994437929909669}, {"BesselI1e", 1, NAN, 0.207910415349708450},
        {"BesselK0e", 1, NAN, 1.14446307980689},      {"BesselK1e", 0.1, NAN, 10.8901826830497},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double got = value_of(cases[i].op, cases[i].a, cases[i].b);
        if (!(fabs(got - cases[i].expected) <= 2e-14 * fabs(cases[i].expected)))
            test_fail(__FILE__, __LINE__, "%s(%g, %g) is %.17g, expected %.17g", cases[i].op, cases[i].a, cases[i].b,
                      got, cases[i].expected);
    }
}

/* Huge and degenerate arguments end, with a value that is not outside of the function's range. */
TEST(special_functions_end_for_any_arguments)
{
    static const double arguments[] = {0,   1e-300, 1e-10, 0.5,      1,    30,   1e7,
                                       1e8, 1e15,   1e300, INFINITY, -0.5, -1e9, -1e300};
    constexpr int count = sizeof arguments / sizeof arguments[0];
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            double a = arguments[i], b = arguments[j], p = value_of("Igamma", a, b), q = value_of("Igammac", a, b);
            CHECK(isnan(p) || (p >= 0 && p <= 1 + 1e-12));
            CHECK(isnan(q) || (q >= -1e-12 && q <= 1 + 1e-12));
            (void)value_of("Zeta", a, b);
            (void)value_of("Polygamma", a, b);
            (void)value_of("IgammaGradA", a, b);
        }
}
