/* What a long stream of numbers or of texts is like, in bounded memory: counts, extremes, mean and deviation exactly;
 * quantiles and the most frequent values from a sketch and a table (sketch.h, top.h).
 *
 * ```c
 * numbers numbers = {.is_real = true};
 * const float values[] = {1, 2, 4, NAN};
 * if (!numbers_add_floats(&numbers, values, 4) || !numbers_flush(&numbers)) return 1;
 * printf("%g ± %g\n", numbers_mean(&numbers), numbers_std(&numbers));
 * numbers_deinit(&numbers);
 * ```
 *
 * NaN and infinities are counted and otherwise left out: extremes, mean, deviation, quantiles and frequent values are
 * those of the finite numbers. Mean and deviation are computed in chunks, each around its own mean, so that they hold
 * their digits whatever the numbers' size and order.
 *
 * Past 32,768 numbers the sketch, and past TOP_LIMIT different values the table, see one of 2, 4, 8, … 512, taken at
 * random from each group; this follows from the stream alone, so the same stream gives the same figures anywhere.
 * Quantiles are exact up to SKETCH_EXACT numbers, and with a table up to TOP_LIMIT different ones.
 * Memory: at most 130 KiB for numbers, 400 KiB for texts (with the table's usual limit). */
#ifndef MR_TOOLS_NUMBERS_H
#define MR_TOOLS_NUMBERS_H

#include "tools/common/sketch.h"
#include "tools/common/top.h"

#define NUMBERS_CHUNK 512

/* {0} takes int64s, {.is_real = true} floats; {.top = {.limit = …}} as in top.h; {.has_no_top = true} leaves the table
 * out. One thread at a time. */
typedef struct numbers {
    bool is_real, has_no_top;
    uint64_t count;                      /* finite ones, flushed */
    uint64_t zeros, nans, infinities[2]; /* −∞, +∞ */
    int64_t least, most;                 /* keys (sketch.h) when is_real; where count > 0 */
    double mean, squares;                /* squares: the sum of (value − mean)² */
    sketch sketch;
    top top;
    uint64_t random;
    uint32_t pending;
    union {
        int64_t *integers;
        double *reals;
    }; /* owned; NUMBERS_CHUNK, not yet flushed */
} numbers;

/* False when there is no memory. */
[[nodiscard]] bool numbers_add_ints(numbers *numbers, const int64_t *values, size_t count);
[[nodiscard]] bool numbers_add_floats(numbers *numbers, const float *values, size_t count);
[[nodiscard]] bool numbers_add_doubles(numbers *numbers, const double *values, size_t count);
/* One value many times, at the cost of a few. */
[[nodiscard]] bool numbers_add_repeated(numbers *numbers, int64_t value, uint64_t times);
/* To be called after the last add, before anything is asked or merged. */
[[nodiscard]] bool numbers_flush(numbers *numbers);
/* Adds what other holds; both are flushed. The same merges in the same order give the same bits. */
[[nodiscard]] bool numbers_merge(numbers *numbers, const struct numbers *other);
void numbers_deinit(numbers *numbers);

/* All values that were added, the infinite ones and NaN with them. */
uint64_t numbers_total(const numbers *numbers);
/* 0 when there is no finite number. */
double numbers_least(const numbers *numbers);
double numbers_most(const numbers *numbers);
double numbers_mean(const numbers *numbers);
double numbers_std(const numbers *numbers); /* of the population */
/* Whether quantiles and numbers_below are exact: of few numbers, or few different ones. */
bool numbers_is_exact(const numbers *numbers);
/* rank 0 … 1; the extremes at 0 and 1. */
double numbers_quantile(const numbers *numbers, double rank);
int64_t numbers_quantile_key(const numbers *numbers, double rank);
/* Finite numbers below a value. */
double numbers_below(const numbers *numbers, double value);
/* What a top_entry's number or a key stands for. */
double numbers_value(const numbers *numbers, int64_t key);

/* ---- Texts ---- */

/* {0} is empty; {.top = {.is_text = true}} is set by the first add. */
typedef struct texts {
    numbers lengths;     /* of all, in bytes; its zeros are the empty texts */
    uint64_t long_count; /* longer than TOP_TEXT_MAX: not counted by value */
    top top;
} texts;

[[nodiscard]] bool texts_add(texts *texts, mr_string text);
[[nodiscard]] bool texts_flush(texts *texts);
[[nodiscard]] bool texts_merge(texts *texts, const struct texts *other);
void texts_deinit(texts *texts);

#endif
