/* Gamma, zeta and beta functions. All are computed in double: series and continued fractions are summed until they no
 * longer change, and the number of terms is bounded for any arguments. */
#include "kernels/special.h"

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* The derivative of log_gamma: reflection for negative x, in terms of the distance to the nearest pole, which is exact;
 * recurrence up to 10, then the asymptotic series. */
static double digamma(double x)
{
    if (x <= 0) {
        double distance = x - round(x);
        if (!(fabs(distance) > 0)) return (double)NAN;
        return digamma(1.0 - x) - M_PI / tan(M_PI * distance);
    }
    double sum = 0;
    for (; x < 10.0; x += 1.0) sum -= 1.0 / x;
    double r = 1.0 / (x * x);
    double tail =
        1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760)))));
    return sum + log(x) - 0.5 / x - r * tail;
}

/* The sum of (q + n)^-s for s > 1 and q > 0: terms up to w, then the Euler-Maclaurin formula. */
static double zeta_of_positive(double s, double q)
{
    /* Bernoulli number 2j, divided by (2j)! */
    static const double factors[] = {1.0 / 12,
                                     -1.0 / 720,
                                     1.0 / 30240,
                                     -1.0 / 1209600,
                                     1.0 / 47900160,
                                     -691.0 / 1307674368000,
                                     1.0 / 74724249600,
                                     -3617.0 / 10670622842880000,
                                     43867.0 / 5109094217170944000,
                                     -174611.0 / 802857662698291200000.0};
    double sum = 0, w = q;
    for (; w < 10.0 || w < 0.5 * s; w += 1.0) {
        double term = pow(w, -s);
        sum += term;
        if (term <= 1e-17 * sum) return sum;
    }
    double power = pow(w, -s), rising = s;
    sum += power * w / (s - 1.0) + 0.5 * power;
    for (size_t j = 0; j < sizeof factors / sizeof factors[0]; j++) {
        power /= w;
        sum += factors[j] * rising * power;
        power /= w;
        rising *= (s + 2.0 * (double)j + 1.0) * (s + 2.0 * (double)j + 2.0);
    }
    return sum;
}

/* The sum for an integer s and a negative q. The terms whose base is near 0 are added in order, as TensorFlow does:
 * their bases are exact, and those of opposite sign cancel. The ones before them are a difference of two zeta functions
 * of positive arguments. */
static double zeta_of_negative(double s, double q, bool is_even)
{
    constexpr double NEAR = 16;
    double count = ceil(-q), near = fmin(count, NEAR), sum = 0;
    if (count > near) sum = zeta_of_positive(s, -q - count + near + 1.0) - zeta_of_positive(s, 1.0 - q);
    if (!is_even) sum = -sum;
    for (double n = count - near; n < count + NEAR; n += 1.0) sum += pow(q + n, -s);
    return sum + zeta_of_positive(s, q + count + NEAR);
}

/* The Hurwitz zeta function. A negative q needs an integer s. */
static double zeta(double s, double q)
{
    if (s == 1) return (double)INFINITY;
    if (!(s > 1) || isnan(q)) return (double)NAN;
    bool is_integer = s == floor(s), is_even = isinf(s) || fmod(s, 2.0) == 0;
    if (q <= 0 && q == floor(q)) return is_integer && is_even ? (double)INFINITY : (double)NAN;
    if (q <= 0 && !is_integer) return (double)NAN;
    if (isinf(s)) return q < 1 ? (double)INFINITY : q == 1;
    if (isinf(q)) return 0;
    return q > 0 ? zeta_of_positive(s, q) : zeta_of_negative(s, q, is_even);
}

static double polygamma(double n, double x)
{
    if (n == 0) return digamma(x);
    if (n != floor(n)) return (double)NAN;
    return pow(-1.0, n + 1.0) * tgamma(n + 1.0) * zeta(n + 1.0, x);
}

/* ---- Incomplete gamma functions, with their derivatives with respect to a ---- */

typedef struct dual {
    double value, slope;
} dual;

static dual plus(dual x, dual y)
{
    return (dual){x.value + y.value, x.slope + y.slope};
}

static dual times(dual x, dual y)
{
    return (dual){x.value * y.value, x.slope * y.value + x.value * y.slope};
}

static dual inverse(dual x)
{
    if (fabs(x.value) < 1e-300) x.value = 1e-300;
    return (dual){1.0 / x.value, -x.slope / (x.value * x.value)};
}

constexpr int TERMS_MAX = 100000;
constexpr double LARGE_A = 1e7; /* above, the sums below need too many terms */

/* x^a e^-x / Gamma(a + 1) */
static dual gamma_factor(double a, double x)
{
    double value = exp(a * log(x) - x - log_gamma(a + 1.0));
    return (dual){value, value * (log(x) - digamma(a + 1.0))};
}

/* The lower function: the factor times the sum of x^n / ((a + 1) … (a + n)). */
static dual lower_gamma_sum(double a, double x)
{
    dual term = {1, 0}, sum = term;
    for (int n = 1; n < TERMS_MAX; n++) {
        double over = a + n;
        term = times(term, (dual){x / over, -x / (over * over)});
        sum = plus(sum, term);
        if (!(fabs(term.value) > 1e-17 * sum.value) && !(fabs(term.slope) > 1e-17 * fabs(sum.slope))) break;
    }
    return times(sum, gamma_factor(a, x));
}

/* The upper function: a times the factor, times a continued fraction (modified Lentz). */
static dual upper_gamma_fraction(double a, double x)
{
    dual b = {x + 1.0 - a, -1}, c = {1e300, 0}, d = inverse(b), h = d;
    for (int i = 1; i < TERMS_MAX; i++) {
        dual numerator = {-(double)i * ((double)i - a), i};
        b.value += 2.0;
        d = inverse(plus(times(numerator, d), b));
        c = plus(b, times(numerator, inverse(c)));
        dual step = times(c, d);
        h = times(h, step);
        if (fabs(step.value - 1.0) < 1e-16 && !(fabs(step.slope) > 1e-16)) break;
    }
    return times(times(h, (dual){a, 1}), gamma_factor(a, x));
}

/* The first two terms of Temme's uniform expansion; the relative error is about 1 / a. */
static dual lower_gamma_uniform(double a, double x)
{
    double excess = x / a - 1.0, eta = copysign(sqrt(2.0 * (excess - log1p(excess))), excess);
    double density = exp(-0.5 * a * eta * eta) / sqrt(2.0 * M_PI * a);
    double correction = fabs(excess) < 1e-3 ? -1.0 / 3 + excess / 12 : 1.0 / excess - 1.0 / eta;
    return (dual){0.5 * erfc(-eta * sqrt(0.5 * a)) - density * correction, -density};
}

/* The lower function, or the upper one: their sum is 1. */
static dual incomplete_gamma(double a, double x, bool upper)
{
    bool is_upper = false;
    dual result;
    if (a > LARGE_A) {
        result = lower_gamma_uniform(a, x);
    } else if (x < a + 1.0) {
        result = lower_gamma_sum(a, x);
    } else {
        result = upper_gamma_fraction(a, x);
        is_upper = true;
    }
    return is_upper == upper ? result : (dual){1.0 - result.value, -result.slope};
}

static double lower_gamma(double a, double x)
{
    if (x == 0) return 0;
    if (!(x > 0) || !(a > 0)) return (double)NAN;
    if (isinf(a)) return 0;
    return isinf(x) ? 1 : incomplete_gamma(a, x, false).value;
}

static double upper_gamma(double a, double x)
{
    if (!(x >= 0) || !(a > 0)) return (double)NAN;
    if (isinf(x)) return 0;
    return x == 0 || isinf(a) ? 1 : incomplete_gamma(a, x, true).value;
}

static double lower_gamma_slope(double a, double x)
{
    if (x == 0) return 0;
    if (!(x > 0) || !(a > 0)) return (double)NAN;
    return isinf(a) || isinf(x) ? 0 : incomplete_gamma(a, x, false).slope;
}

/* ---- The incomplete beta function ---- */

static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1.0 - (a + b) * x / (a + 1.0), h;
    d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
    h = d;
    for (int i = 1; i < TERMS_MAX / 10; i++) {
        double m = i, step = 1;
        double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for (int part = 0; part < 2; part++) {
            double numerator = part == 0 ? even : odd;
            d = 1.0 + numerator * d;
            d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
            c = 1.0 + numerator / c;
            if (fabs(c) < 1e-300) c = 1e-300;
            step = c * d;
            h *= step;
        }
        if (!(fabs(step - 1.0) > 1e-16)) break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x)
{
    if (a <= 0 || b <= 0) return (double)NAN;
    if (x == 0 || x == 1) return x;
    if (!(x > 0 && x < 1) || !isfinite(a) || !isfinite(b)) return (double)NAN;
    double logarithm = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x);
    if (x < (a + 1.0) / (a + b + 2.0)) return exp(logarithm) * beta_fraction(a, b, x) / a;
    return 1.0 - exp(logarithm) * beta_fraction(b, a, 1.0 - x) / b;
}

typedef struct beta_job {
    const void *inputs[3];
    int64_t steps[3]; /* 0 for a scalar */
    void *target;
    bool is_float;
} beta_job;

static void beta_piece(void *context, int64_t begin, int64_t end)
{
    const beta_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        double v[3];
        for (int k = 0; k < 3; k++) {
            int64_t at = i * job->steps[k];
            v[k] = job->is_float ? (double)((const float *)job->inputs[k])[at] : ((const double *)job->inputs[k])[at];
        }
        double result = incomplete_beta(v[0], v[1], v[2]);
        if (job->is_float)
            ((float *)job->target)[i] = (float)result;
        else
            ((double *)job->target)[i] = result;
    }
}

/* Scalars broadcast; all other inputs have the same shape. */
static mr_status beta_incomplete(mr_kernel_call *call, mr_error *error)
{
    static const char *const names[] = {"a", "b", "x"};
    beta_job job = {.is_float = call->inputs[0].dtype == MR_FLOAT};
    int shaped = -1;
    for (int i = 0; i < 3; i++) {
        const mr_tensor *input = &call->inputs[i];
        job.inputs[i] = input->data;
        job.steps[i] = input->shape.rank > 0;
        if (input->shape.rank == 0) continue;
        if (shaped >= 0 && !mr_shape_equal(input->shape, call->inputs[shaped].shape)) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Shapes of %s and %s are inconsistent: %s vs. %s", names[shaped], names[i],
                                  mr_shape_text(call->inputs[shaped].shape, a, sizeof a),
                                  mr_shape_text(input->shape, b, sizeof b));
        }
        if (shaped < 0) shaped = i;
    }
    mr_shape shape = shaped < 0 ? MR_SCALAR : call->inputs[shaped].shape;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, mr_shape_count(shape), MR_GRAIN / 64, beta_piece, &job);
    return MR_OK;
}

MR_SPECIAL_UNARY(lgamma_kernel, log_gamma(x))
MR_SPECIAL_UNARY(digamma_kernel, digamma(x))
MR_SPECIAL_BINARY(zeta_kernel, zeta(a, b))
MR_SPECIAL_BINARY(polygamma_kernel, polygamma(a, b))
MR_SPECIAL_BINARY(igamma_kernel, lower_gamma(a, b))
MR_SPECIAL_BINARY(igammac_kernel, upper_gamma(a, b))
MR_SPECIAL_BINARY(igamma_grad_a_kernel, lower_gamma_slope(a, b))

static const mr_kernel kernels[] = {
    {.op = "Lgamma", .run = lgamma_kernel},
    {.op = "Digamma", .run = digamma_kernel},
    {.op = "Zeta", .run = zeta_kernel},
    {.op = "Polygamma", .run = polygamma_kernel},
    {.op = "Igamma", .run = igamma_kernel},
    {.op = "Igammac", .run = igammac_kernel},
    {.op = "IgammaGradA", .run = igamma_grad_a_kernel},
    {.op = "Betainc", .run = beta_incomplete},
};
MR_KERNEL_FAMILY(special_gamma);
