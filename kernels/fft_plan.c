#include "kernels/fft_plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wpsabi"

constexpr int64_t RADIX_MAX = 31; /* a larger prime factor costs more than a convolution */

/* roots[i] = exp(±2πi · i / size). Bluestein's algorithm needs a transform of `wide` elements, a power of two. */
struct mr_fft_plan {
    int64_t size;
    bool inverse;
    mr_fft_number *roots;
    struct mr_fft_plan *wide;        /* null: mixed radices */
    mr_fft_number *chirp, *response; /* size; wide->size, transformed */
};

/* ---- Numbers ---- */

MR_INLINE mr_fft_lanes times(mr_fft_lanes a, mr_fft_number b)
{
    return (mr_fft_lanes){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

MR_INLINE mr_fft_lanes plus(mr_fft_lanes a, mr_fft_lanes b)
{
    return (mr_fft_lanes){a.re + b.re, a.im + b.im};
}

MR_INLINE mr_fft_lanes minus(mr_fft_lanes a, mr_fft_lanes b)
{
    return (mr_fft_lanes){a.re - b.re, a.im - b.im};
}

/* a · ±i: i for the inverse. */
MR_INLINE mr_fft_lanes turn(mr_fft_lanes a, bool inverse)
{
    return inverse ? (mr_fft_lanes){-a.im, a.re} : (mr_fft_lanes){a.im, -a.re};
}

mr_fft_number mr_fft_root(int64_t index, int64_t size, bool inverse)
{
    assert(index >= 0 && index < size);
    /* The angle is reduced to an eighth of the circle. */
    int64_t eighths = 8 * index, octant = eighths / size % 8;
    int64_t rest = eighths % size; /* eighths of size / 8 */
    if (octant % 2 != 0) rest = size - rest;
    const double angle = M_PI / 4 * (double)rest / (double)size;
    double re = cos(angle), im = sin(angle);
    if (octant == 1 || octant == 2 || octant == 5 || octant == 6) {
        const double swap = re;
        re = im;
        im = swap;
    }
    if (octant >= 2 && octant <= 5) re = -re;
    if (octant >= 4) im = -im;
    return (mr_fft_number){re, inverse ? im : -im};
}

/* ---- Mixed radices ---- */

/* The rows' parts of one butterfly: out[q · rows + k] for each q. */
MR_INLINE void butterfly_2(mr_fft_lanes *out, int64_t rows)
{
    const mr_fft_lanes a = out[0], b = out[rows];
    out[0] = plus(a, b);
    out[rows] = minus(a, b);
}

MR_INLINE void butterfly_4(mr_fft_lanes *out, int64_t rows, bool inverse)
{
    const mr_fft_lanes a = out[0], b = out[rows], c = out[2 * rows], d = out[3 * rows];
    const mr_fft_lanes even = plus(a, c), odd = minus(a, c), sum = plus(b, d), side = turn(minus(b, d), inverse);
    out[0] = plus(even, sum);
    out[rows] = plus(odd, side);
    out[2 * rows] = minus(even, sum);
    out[3 * rows] = minus(odd, side);
}

MR_INLINE void butterfly_3(mr_fft_lanes *out, int64_t rows, bool inverse)
{
    const mr_fft_lanes a = out[0], b = out[rows], c = out[2 * rows], sum = plus(b, c);
    const mr_fft_lanes middle = {a.re - 0.5 * sum.re, a.im - 0.5 * sum.im};
    mr_fft_lanes side = turn(minus(b, c), inverse);
    side.re *= 0.86602540378443864676;
    side.im *= 0.86602540378443864676;
    out[0] = plus(a, sum);
    out[rows] = plus(middle, side);
    out[2 * rows] = minus(middle, side);
}

MR_INLINE void butterfly_5(mr_fft_lanes *out, int64_t rows, bool inverse)
{
    constexpr double C1 = 0.30901699437494742410, C2 = -0.80901699437494742410;
    constexpr double S1 = 0.95105651629515357212, S2 = 0.58778525229247312917;
    const mr_fft_lanes a = out[0], p1 = plus(out[rows], out[4 * rows]), p2 = plus(out[2 * rows], out[3 * rows]);
    const mr_fft_lanes m1 = turn(minus(out[rows], out[4 * rows]), inverse);
    const mr_fft_lanes m2 = turn(minus(out[2 * rows], out[3 * rows]), inverse);
    const mr_fft_lanes r1 = {a.re + C1 * p1.re + C2 * p2.re, a.im + C1 * p1.im + C2 * p2.im};
    const mr_fft_lanes r2 = {a.re + C2 * p1.re + C1 * p2.re, a.im + C2 * p1.im + C1 * p2.im};
    const mr_fft_lanes t1 = {S1 * m1.re + S2 * m2.re, S1 * m1.im + S2 * m2.im};
    const mr_fft_lanes t2 = {S2 * m1.re - S1 * m2.re, S2 * m1.im - S1 * m2.im};
    out[0] = plus(a, plus(p1, p2));
    out[rows] = plus(r1, t1);
    out[4 * rows] = minus(r1, t1);
    out[2 * rows] = plus(r2, t2);
    out[3 * rows] = minus(r2, t2);
}

/* Any radix; step: through the roots, for 1 / radix of the circle. */
MR_INLINE void butterfly(const mr_fft_plan *p, mr_fft_lanes *out, int64_t rows, int64_t radix, int64_t step)
{
    mr_fft_lanes part[RADIX_MAX];
    for (int64_t r = 0; r < radix; r++) part[r] = out[r * rows];
    for (int64_t q = 0; q < radix; q++) {
        mr_fft_lanes sum = part[0];
        for (int64_t r = 1; r < radix; r++) sum = plus(sum, times(part[r], p->roots[r * q % radix * step]));
        out[q * rows] = sum;
    }
}

MR_INLINE void combine(const mr_fft_plan *p, mr_fft_lanes *out, int64_t rows, int64_t radix, int64_t root_step)
{
    for (int64_t k = 0; k < rows; k++, out++) {
        if (k > 0)
            for (int64_t r = 1; r < radix; r++) out[r * rows] = times(out[r * rows], p->roots[r * k * root_step]);
        if (radix == 4)
            butterfly_4(out, rows, p->inverse);
        else if (radix == 2)
            butterfly_2(out, rows);
        else if (radix == 3)
            butterfly_3(out, rows, p->inverse);
        else if (radix == 5)
            butterfly_5(out, rows, p->inverse);
        else
            butterfly(p, out, rows, radix, rows * root_step);
    }
}

static int64_t radix_of(int64_t n)
{
    int64_t radix = n % 4 == 0 ? 4 : 2;
    while (n % radix != 0) radix++;
    return radix;
}

/* out[0, n) = transform of in[0], in[step], …; root_step: the step through the roots. One function for each level of
 * the processor. */
#define MIXED(name, target)                                                                                            \
    target static void mixed_##name(const mr_fft_plan *p, int64_t n, const mr_fft_lanes *in, int64_t step,             \
                                    mr_fft_lanes *out, int64_t root_step)                                              \
    {                                                                                                                  \
        if (n == 1) {                                                                                                  \
            out[0] = in[0];                                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
        const int64_t radix = radix_of(n), rows = n / radix;                                                           \
        for (int64_t r = 0; r < radix; r++)                                                                            \
            mixed_##name(p, rows, in + r * step, step * radix, out + r * rows, root_step * radix);                     \
        if (radix == 4)                                                                                                \
            combine(p, out, rows, 4, root_step);                                                                       \
        else if (radix == 2)                                                                                           \
            combine(p, out, rows, 2, root_step);                                                                       \
        else                                                                                                           \
            combine(p, out, rows, radix, root_step);                                                                   \
    }
MIXED(plain, )
MIXED(avx2, MR_TARGET_AVX2)
MIXED(avx512, MR_TARGET_AVX512)
static void (*const mixed[3])(const mr_fft_plan *, int64_t, const mr_fft_lanes *, int64_t, mr_fft_lanes *,
                              int64_t) = {mixed_plain, mixed_avx2, mixed_avx512};

/* ---- Rows ---- */

int64_t mr_fft_scratch(const mr_fft_plan *p)
{
    return p->wide != nullptr ? p->wide->size + mr_fft_scratch(p->wide) : p->size;
}

void mr_fft_run(const mr_fft_plan *p, mr_fft_lanes *row, mr_fft_lanes *scratch)
{
    if (p->wide == nullptr) {
        mixed[mr_cpu()](p, p->size, row, 1, scratch, 1);
        memcpy(row, scratch, (size_t)p->size * sizeof *row);
        return;
    }
    const int64_t wide = p->wide->size;
    mr_fft_lanes *x = scratch, *rest = scratch + wide;
    memset(x, 0, (size_t)wide * sizeof *x);
    for (int64_t i = 0; i < p->size; i++) x[i] = times(row[i], p->chirp[i]);
    mr_fft_run(p->wide, x, rest);
    /* The inverse is the conjugate of the transform of the conjugate. */
    for (int64_t i = 0; i < wide; i++) {
        x[i] = times(x[i], p->response[i]);
        x[i].im = -x[i].im;
    }
    mr_fft_run(p->wide, x, rest);
    const double scale = 1 / (double)wide; /* a power of two */
    for (int64_t i = 0; i < p->size; i++)
        row[i] = times((mr_fft_lanes){x[i].re * scale, -x[i].im * scale}, p->chirp[i]);
}

/* ---- Plans ---- */

void mr_fft_plan_free(mr_fft_plan *p)
{
    if (p == nullptr) return;
    mr_fft_plan_free(p->wide);
    free(p->roots);
    free(p->chirp);
    free(p->response);
    free(p);
}

mr_fft_number mr_fft_chirp(int64_t index, int64_t size, bool inverse)
{
    /* index² modulo 2 · size, to keep the angle small */
    const __uint128_t square = (__uint128_t)index * (__uint128_t)index;
    return mr_fft_root((int64_t)(square % (__uint128_t)(2 * size)), 2 * size, inverse);
}

int64_t mr_fft_wide(int64_t size)
{
    int64_t rest = size, wide = 1;
    for (int64_t radix = 2; radix <= RADIX_MAX; radix++)
        while (rest % radix == 0) rest /= radix;
    if (rest == 1) return 0;
    while (wide < 2 * size) wide *= 2;
    return wide;
}

static bool add_convolution(mr_fft_plan *p, int64_t wide)
{
    const int64_t size = p->size;
    p->wide = mr_fft_plan_new(wide, false);
    if (p->wide == nullptr) return false;
    p->chirp = malloc((size_t)size * sizeof *p->chirp);
    p->response = malloc((size_t)wide * sizeof *p->response);
    mr_fft_lanes *work = aligned_alloc(64, (size_t)(wide + mr_fft_scratch(p->wide)) * sizeof *work);
    const bool fine = p->chirp != nullptr && p->response != nullptr && work != nullptr;
    if (fine) {
        memset(work, 0, (size_t)wide * sizeof *work);
        for (int64_t i = 0; i < size; i++) {
            p->chirp[i] = mr_fft_chirp(i, size, p->inverse);
            work[i].re[0] = p->chirp[i].re;
            work[i].im[0] = -p->chirp[i].im;
            if (i > 0) work[wide - i] = work[i];
        }
        mr_fft_run(p->wide, work, work + wide);
        for (int64_t i = 0; i < wide; i++) p->response[i] = (mr_fft_number){work[i].re[0], work[i].im[0]};
    }
    free(work);
    return fine;
}

mr_fft_plan *mr_fft_plan_new(int64_t size, bool inverse)
{
    assert(size >= 1);
    if (size > INT64_MAX / 4096) return nullptr;
    mr_fft_plan *p = calloc(1, sizeof *p);
    if (p == nullptr) return nullptr;
    p->size = size;
    p->inverse = inverse;
    const int64_t wide = mr_fft_wide(size);
    bool fine;
    if (wide > 0) {
        fine = add_convolution(p, wide);
    } else {
        p->roots = malloc((size_t)size * sizeof *p->roots);
        fine = p->roots != nullptr;
        for (int64_t i = 0; fine && i < size; i++) p->roots[i] = mr_fft_root(i, size, inverse);
    }
    if (fine) return p;
    mr_fft_plan_free(p);
    return nullptr;
}
