/* Bessel functions of orders 0 and 1. J and Y are those of the C library; the modified functions are scaled by
 * exp(±x), so that they do not overflow, and unscaled afterwards. */
#include "kernels/special.h"

/* exp(-|x|) I(order, |x|): the power series, whose terms are all positive, or the asymptotic series. */
static double scaled_i(int order, double x)
{
    x = fabs(x);
    if (x < 30.0) {
        double square = 0.25 * x * x, term = order == 0 ? 1.0 : 0.5 * x, sum = term;
        for (int k = 1; k < 200 && term > 1e-17 * sum; k++) {
            term *= square / ((double)k * (double)(k + order));
            sum += term;
        }
        return sum * exp(-x);
    }
    double factor = 4.0 * order * order, term = 1, sum = 1;
    for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) {
        double odd = 2.0 * k - 1.0;
        term *= (odd * odd - factor) / (8.0 * k * x);
        sum += term;
    }
    return sum / sqrt(2.0 * M_PI * x);
}

/* exp(x) K(order, x), the integral of exp(-x (cosh t - 1)) cosh(order t) over t > 0, by the trapezoidal rule, whose
 * error decreases exponentially with the number of steps. */
static double scaled_k(int order, double x)
{
    constexpr double EULER = 0.57721566490153286;
    if (x <= 0) return (double)INFINITY;
    if (isnan(x)) return x;
    if (x < 1e-10) return order == 0 ? -log(0.5 * x) - EULER : 1.0 / x;
    double step = fmin(0.25, 0.6 / sqrt(x)), sum = 0.5;
    for (int k = 1; k < 1000; k++) {
        double t = k * step, half_sine = sinh(0.5 * t), exponent = 2.0 * x * half_sine * half_sine;
        if (exponent - t > 45.0) break;
        sum += exp(-exponent) * (order == 0 ? 1.0 : cosh(t));
    }
    return isinf(x) ? 0 : sum * step;
}

static double signed_i1(double x)
{
    return copysign(scaled_i(1, x), x);
}

static double finite_or_nan(double x, double value)
{
    return isinf(x) ? (double)NAN : value;
}

static double y0_or_infinity(double x)
{
    return x <= 0 ? -(double)INFINITY : finite_or_nan(x, y0(x));
}

static double y1_or_infinity(double x)
{
    return x <= 0 ? -(double)INFINITY : finite_or_nan(x, y1(x));
}

MR_SPECIAL_UNARY(i0, exp(fabs(x)) * scaled_i(0, x))
MR_SPECIAL_UNARY(i0e, scaled_i(0, x))
MR_SPECIAL_UNARY(i1, exp(fabs(x)) * signed_i1(x))
MR_SPECIAL_UNARY(i1e, signed_i1(x))
MR_SPECIAL_UNARY(k0, x <= 0 ? (double)INFINITY : exp(-x) * scaled_k(0, x))
MR_SPECIAL_UNARY(k0e, scaled_k(0, x))
MR_SPECIAL_UNARY(k1, x <= 0 ? (double)INFINITY : exp(-x) * scaled_k(1, x))
MR_SPECIAL_UNARY(k1e, scaled_k(1, x))
MR_SPECIAL_UNARY(bessel_j0, finite_or_nan(x, j0(x)))
MR_SPECIAL_UNARY(bessel_j1, finite_or_nan(x, j1(x)))
MR_SPECIAL_UNARY(bessel_y0, y0_or_infinity(x))
MR_SPECIAL_UNARY(bessel_y1, y1_or_infinity(x))

static const mr_kernel kernels[] = {
    {.op = "BesselI0", .run = i0},        {.op = "BesselI0e", .run = i0e},      {.op = "BesselI1", .run = i1},
    {.op = "BesselI1e", .run = i1e},      {.op = "BesselK0", .run = k0},        {.op = "BesselK0e", .run = k0e},
    {.op = "BesselK1", .run = k1},        {.op = "BesselK1e", .run = k1e},      {.op = "BesselJ0", .run = bessel_j0},
    {.op = "BesselJ1", .run = bessel_j1}, {.op = "BesselY0", .run = bessel_y0}, {.op = "BesselY1", .run = bessel_y1},
};
MR_KERNEL_FAMILY(special_bessel);
