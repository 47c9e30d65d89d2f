/* Statistics of a long stream of numbers or texts in bounded memory: count, minimum, maximum, mean and standard
 * deviation exactly; quantiles and the most frequent values from a sketch and a table (sketch.h, top.h).
 *
 * ```c
 * numbers numbers = {.is_real = true};
 * const float values[] = {1, 2, 4, NAN};
 * if (!numbers_add_floats(&numbers, values, 4) || !numbers_flush(&numbers)) return 1;
 * printf("%g ± %g\n", numbers_mean(&numbers), numbers_std(&numbers));
 * numbers_deinit(&numbers);
 * ```
 *
 * NaN and infinities are counted and otherwise ignored: all statistics are those of the finite numbers. Mean and
 * standard deviation are computed in chunks, each around its own mean, so they stay accurate whatever the magnitude and
 * order of the numbers.
 *
 * Beyond 32,768 numbers the sketch, and beyond TOP_LIMIT distinct values the table, are fed one number out of 2, 4, 8,
 * … 512, chosen at random from each group. The choice depends only on the stream, so the same stream gives the same
 * results on any machine. Quantiles are exact up to SKETCH_EXACT numbers, and with a table up to TOP_LIMIT distinct
 * values.
 * Memory: at most 130 KiB for numbers, 400 KiB for texts (with the table's usual limit). */
#ifndef MR_TOOLS_COMMON_NUMBERS_H
#define MR_TOOLS_COMMON_NUMBERS_H

#include "common/stats/sketch.h"
#include "common/stats/top.h"

#define NUMBERS_CHUNK 512

/* {0} accepts int64s, {.is_real = true} floats; {.top = {.limit = …}} as in top.h; {.has_no_top = true} omits the
 * table. One thread at a time. */
typedef struct numbers {
    bool is_real, has_no_top;
    uint64_t count;                      /* finite numbers, flushed */
    uint64_t zeros, nans, infinities[2]; /* −∞, +∞ */
    int64_t least, most;                 /* keys (sketch.h) if is_real; valid if count > 0 */
    double mean, squares;                /* squares: the sum of (value − mean)² */
    sketch sketch;
    top top;
    uint64_t random;
    uint32_t pending;
    union {
        int64_t *integers;
        double *reals;
    }; /* owned; up to NUMBERS_CHUNK values not yet flushed */
} numbers;

/* The add functions return false when there is no memory. */
[[nodiscard]] bool numbers_add_ints(numbers *numbers, const int64_t *values, size_t count);
[[nodiscard]] bool numbers_add_floats(numbers *numbers, const float *values, size_t count);
[[nodiscard]] bool numbers_add_doubles(numbers *numbers, const double *values, size_t count);
/* Adds one value many times, at the cost of a few additions. */
[[nodiscard]] bool numbers_add_repeated(numbers *numbers, int64_t value, uint64_t times);
/* Call after the last add, before any query or merge. */
[[nodiscard]] bool numbers_flush(numbers *numbers);
/* Adds the contents of other; both must be flushed. The same merges in the same order give the same bits. */
[[nodiscard]] bool numbers_merge(numbers *numbers, const struct numbers *other);
void numbers_deinit(numbers *numbers);

/* All values that were added, including infinities and NaN. */
uint64_t numbers_total(const numbers *numbers);
/* 0 when there is no finite number. */
double numbers_least(const numbers *numbers);
double numbers_most(const numbers *numbers);
double numbers_mean(const numbers *numbers);
double numbers_std(const numbers *numbers); /* of the population */
/* Whether quantiles and numbers_below are exact: few numbers, or few distinct ones. */
bool numbers_is_exact(const numbers *numbers);
/* rank  0 … 1; minimum and maximum at 0 and 1 */
double numbers_quantile(const numbers *numbers, double rank);
int64_t numbers_quantile_key(const numbers *numbers, double rank);
/* The number of finite numbers below a value. */
double numbers_below(const numbers *numbers, double value);
/* The value that a top_entry's number or a key represents. */
double numbers_value(const numbers *numbers, int64_t key);

/* ---- Texts ---- */

/* {0} is empty; the first add sets {.top = {.is_text = true}}. */
typedef struct texts {
    numbers lengths;     /* of all texts, in bytes; its zeros are the empty texts */
    uint64_t long_count; /* texts longer than TOP_TEXT_MAX, not counted by value */
    top top;
} texts;

[[nodiscard]] bool texts_add(texts *texts, mr_string text);
[[nodiscard]] bool texts_flush(texts *texts);
[[nodiscard]] bool texts_merge(texts *texts, const struct texts *other);
void texts_deinit(texts *texts);

#endif
