/* See numbers.h. Values are collected in a chunk; a full chunk is processed while it is in the L1 cache: exact
 * statistics first, in loops that the compiler vectorizes, then samples. */
#include "common/stats/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sketch receives this many numbers completely; each doubling beyond halves the fraction it receives. */
static constexpr int WHOLE_BITS = 15;
static constexpr int LEVEL_MAX = 9;
/* Once the table is full, it receives one of at least 2^n values. */
static constexpr int TOP_LEVEL_MIN = 3;
static_assert(NUMBERS_CHUNK == 1 << LEVEL_MAX);

static uint64_t next_random(numbers *numbers)
{
    uint64_t word = numbers->random += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

/* The number of values that one sample represents, as a power of two. */
static int level_of(uint64_t count)
{
    if (count >> WHOLE_BITS == 0) return 0;
    int level = 64 - WHOLE_BITS - __builtin_clzll(count);
    return level < LEVEL_MAX ? level : LEVEL_MAX;
}

static bool add_to_top(numbers *numbers, const int64_t *keys, size_t count, int level)
{
    size_t i = 0;
    while (i < count) {
        size_t begin = i++;
        while (i < count && keys[i] == keys[begin]) i++;
        if (!top_add_number(&numbers->top, keys[begin], (uint64_t)(i - begin) << level)) return false;
    }
    return true;
}

/* Takes one random key of each group of 2^level; a short last group is divided into smaller groups. */
typedef bool take_keys(numbers *numbers, const int64_t *keys, size_t count, int level);
static bool sample(numbers *numbers, const int64_t *keys, size_t count, int level, take_keys *take)
{
    int64_t chosen[NUMBERS_CHUNK];
    if (level == 0) return take(numbers, keys, count, 0);
    for (; count > 0; level--) {
        size_t groups = count >> level;
        for (size_t i = 0; i < groups; i++)
            chosen[i] = keys[(i << level) + (next_random(numbers) & (((uint64_t)1 << level) - 1))];
        if (groups > 0 && !take(numbers, chosen, groups, level)) return false;
        keys += groups << level;
        count -= groups << level;
    }
    return true;
}

static bool add_to_sketch(numbers *numbers, const int64_t *keys, size_t count, int level)
{
    return sketch_add(&numbers->sketch, keys, count, level);
}

/* Takes the samples of a chunk that follows `before` numbers. */
static bool take_chunk(numbers *numbers, const int64_t *keys, size_t count, uint64_t before)
{
    int level = level_of(before);
    if (!sample(numbers, keys, count, level, add_to_sketch)) return false;
    if (numbers->has_no_top) return true;
    if (numbers->top.error == 0) return add_to_top(numbers, keys, count, 0);
    return sample(numbers, keys, count, level > TOP_LEVEL_MIN ? level : TOP_LEVEL_MIN, add_to_top);
}

/* Merges the mean and the squares of two sets (Chan, Golub, LeVeque). */
static void join(numbers *numbers, uint64_t count, double mean, double squares)
{
    double before = (double)numbers->count, more = (double)count, both = before + more, apart = mean - numbers->mean;
    numbers->mean += apart * (more / both);
    numbers->squares += squares + apart * apart * (before / both) * more;
}

static void take_extremes(numbers *numbers, uint64_t count, int64_t least, int64_t most)
{
    if (numbers->count == 0 || least < numbers->least) numbers->least = least;
    if (numbers->count == 0 || most > numbers->most) numbers->most = most;
    numbers->count += count;
}

static bool flush_integers(numbers *numbers)
{
    const int64_t *values = numbers->integers;
    uint32_t count = numbers->pending;
    int64_t least = values[0], most = values[0];
    uint64_t zeros = 0;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
        zeros += values[i] == 0;
        sum += (double)values[i];
    }
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++) {
        double apart = (double)values[i] - mean;
        squares += apart * apart;
    }
    numbers->zeros += zeros;
    uint64_t before = numbers->count;
    join(numbers, count, mean, squares);
    take_extremes(numbers, count, least, most);
    return take_chunk(numbers, values, count, before);
}

/* Counts values that are not finite and moves the others together; returns their number. */
static uint32_t keep_finite(numbers *numbers, double *values, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        double value = values[i];
        if (isfinite(value))
            values[kept++] = value;
        else if (isnan(value))
            numbers->nans++;
        else
            numbers->infinities[value > 0]++;
    }
    return kept;
}

static bool flush_reals(numbers *numbers)
{
    double *values = numbers->reals, sum = 0, squares = 0;
    int64_t keys[NUMBERS_CHUNK];
    uint32_t count = keep_finite(numbers, values, numbers->pending);
    if (count == 0) return true;
    double least = values[0], most = values[0];
    uint64_t zeros = 0;
    for (uint32_t i = 0; i < count; i++) {
        double value = values[i] + 0.0; /* −0 is 0 */
        least = value < least ? value : least;
        most = value > most ? value : most;
        zeros += value == 0;
        sum += value;
        keys[i] = sketch_key(value);
    }
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    numbers->zeros += zeros;
    uint64_t before = numbers->count;
    join(numbers, count, mean, squares);
    take_extremes(numbers, count, sketch_key(least + 0.0), sketch_key(most + 0.0));
    return take_chunk(numbers, keys, count, before);
}

static bool flush_chunk(numbers *numbers)
{
    bool is_done = numbers->pending == 0 || (numbers->is_real ? flush_reals(numbers) : flush_integers(numbers));
    numbers->pending = 0;
    return is_done;
}

/* The free space in the chunk; 0 when there is no memory. */
static size_t room(numbers *numbers)
{
    static_assert(sizeof(*numbers->integers) == sizeof(*numbers->reals));
    if (!numbers->integers && !(numbers->integers = malloc(NUMBERS_CHUNK * sizeof(int64_t)))) return 0;
    if (numbers->pending == NUMBERS_CHUNK && !flush_chunk(numbers)) return 0;
    return NUMBERS_CHUNK - numbers->pending;
}

bool numbers_add_ints(numbers *numbers, const int64_t *values, size_t count)
{
    assert(!numbers->is_real);
    for (size_t part; count > 0; values += part, count -= part, numbers->pending += (uint32_t)part) {
        if ((part = room(numbers)) == 0) return false;
        if (part > count) part = count;
        memcpy(numbers->integers + numbers->pending, values, part * sizeof(*values));
    }
    return true;
}

bool numbers_add_floats(numbers *numbers, const float *values, size_t count)
{
    assert(numbers->is_real);
    for (size_t part; count > 0; values += part, count -= part, numbers->pending += (uint32_t)part) {
        if ((part = room(numbers)) == 0) return false;
        if (part > count) part = count;
        double *chunk = numbers->reals + numbers->pending;
        for (size_t i = 0; i < part; i++) chunk[i] = values[i];
    }
    return true;
}

bool numbers_add_doubles(numbers *numbers, const double *values, size_t count)
{
    assert(numbers->is_real);
    for (size_t part; count > 0; values += part, count -= part, numbers->pending += (uint32_t)part) {
        if ((part = room(numbers)) == 0) return false;
        if (part > count) part = count;
        memcpy(numbers->reals + numbers->pending, values, part * sizeof(*values));
    }
    return true;
}

bool numbers_add_repeated(numbers *numbers, int64_t value, uint64_t times)
{
    assert(!numbers->is_real);
    if (times == 0) return true;
    /* A chunk has one sampling level: flush pending values first. */
    if (!flush_chunk(numbers)) return false;
    join(numbers, times, (double)value, 0);
    take_extremes(numbers, times, value, value);
    numbers->zeros += value == 0 ? times : 0;
    for (int level = 0; level < SKETCH_LEVELS_MAX - 1 && times >> level > 0; level++)
        if (times >> level & 1 && !sketch_add(&numbers->sketch, &value, 1, level)) return false;
    return numbers->has_no_top || top_add_number(&numbers->top, value, times);
}

bool numbers_flush(numbers *numbers)
{
    if (!flush_chunk(numbers)) return false;
    free(numbers->integers);
    numbers->integers = nullptr;
    return true;
}

bool numbers_merge(numbers *numbers, const struct numbers *other)
{
    assert(numbers->pending == 0 && other->pending == 0 && numbers->is_real == other->is_real);
    numbers->zeros += other->zeros;
    numbers->nans += other->nans;
    for (int i = 0; i < 2; i++) numbers->infinities[i] += other->infinities[i];
    if (other->count == 0) return true;
    join(numbers, other->count, other->mean, other->squares);
    take_extremes(numbers, other->count, other->least, other->most);
    return sketch_merge(&numbers->sketch, &other->sketch) &&
           (numbers->has_no_top || top_merge(&numbers->top, &other->top));
}

void numbers_deinit(numbers *numbers)
{
    free(numbers->integers);
    numbers->integers = nullptr;
    sketch_deinit(&numbers->sketch);
    top_deinit(&numbers->top);
}

uint64_t numbers_total(const numbers *numbers)
{
    return numbers->count + numbers->nans + numbers->infinities[0] + numbers->infinities[1];
}

double numbers_value(const numbers *numbers, int64_t key)
{
    return numbers->is_real ? sketch_value(key) : (double)key;
}

double numbers_least(const numbers *numbers)
{
    return numbers->count > 0 ? numbers_value(numbers, numbers->least) : 0;
}

double numbers_most(const numbers *numbers)
{
    return numbers->count > 0 ? numbers_value(numbers, numbers->most) : 0;
}

double numbers_mean(const numbers *numbers)
{
    return numbers->count > 0 ? numbers->mean : 0;
}

double numbers_std(const numbers *numbers)
{
    return numbers->count > 0 ? sqrt(numbers->squares / (double)numbers->count) : 0;
}

/* Whether the table has everything that the sketch has, exactly. */
static bool has_table(const numbers *numbers)
{
    return !numbers->has_no_top && numbers->top.error == 0;
}

bool numbers_is_exact(const numbers *numbers)
{
    return numbers->count <= SKETCH_EXACT || has_table(numbers);
}

int64_t numbers_quantile_key(const numbers *numbers, double rank)
{
    if (rank <= 0) return numbers->least;
    if (rank >= 1) return numbers->most;
    return has_table(numbers) ? top_quantile(&numbers->top, rank) : sketch_quantile(&numbers->sketch, rank);
}

double numbers_quantile(const numbers *numbers, double rank)
{
    return numbers->count > 0 ? numbers_value(numbers, numbers_quantile_key(numbers, rank)) : 0;
}

double numbers_below(const numbers *numbers, double value)
{
    if (numbers->count == 0 || value <= numbers_least(numbers)) return 0;
    if (value > numbers_most(numbers) || (!numbers->is_real && value >= 0x1p63)) return (double)numbers->count;
    int64_t key = numbers->is_real ? sketch_key(value + 0.0) : (int64_t)ceil(value);
    if (has_table(numbers)) return (double)top_below(&numbers->top, key);
    uint64_t below = sketch_below(&numbers->sketch, key);
    /* The sketch may have lost the extremes; at least one number is below, and one is not. */
    return below == 0 ? 1 : below >= numbers->count ? (double)(numbers->count - 1) : (double)below;
}

/* ---- Texts ---- */

bool texts_add(texts *texts, mr_string text)
{
    int64_t length = (int64_t)text.size_bytes;
    top *top = &texts->top;
    texts->lengths.has_no_top = true;
    top->is_text = true;
    uint64_t number = texts->lengths.count + texts->lengths.pending;
    if (!numbers_add_ints(&texts->lengths, &length, 1)) return false;
    if (text.size_bytes > TOP_TEXT_MAX) {
        texts->long_count++;
        return true;
    }
    if (top->error == 0) return top_add_text(top, text, 1);
    int level = level_of(number);
    if (level < TOP_LEVEL_MIN) level = TOP_LEVEL_MIN;
    if ((next_random(&texts->lengths) & (((uint64_t)1 << level) - 1)) != 0) return true;
    return top_add_text(top, text, (uint64_t)1 << level);
}

bool texts_flush(texts *texts)
{
    return numbers_flush(&texts->lengths);
}

bool texts_merge(texts *texts, const struct texts *other)
{
    texts->lengths.has_no_top = true;
    texts->top.is_text = true;
    texts->long_count += other->long_count;
    if (!numbers_merge(&texts->lengths, &other->lengths)) return false;
    return other->top.count == 0 || top_merge(&texts->top, &other->top);
}

void texts_deinit(texts *texts)
{
    numbers_deinit(&texts->lengths);
    top_deinit(&texts->top);
}
