/* Quantiles, frequent values and moments of long streams, compared with exact results on difficult distributions. */
#include "tests/test.h"
#include "tools/common/stats/numbers.h"

#include <inttypes.h>

static constexpr int COUNT = 200'000;

static uint64_t random_word(uint64_t *state)
{
    uint64_t word = *state += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

static double random_part(uint64_t *state)
{
    return (double)(random_word(state) >> 11) * 0x1p-53;
}

static const char *const shapes[] = {"rising",    "falling",          "sawtooth",   "uniform",   "pareto",
                                     "two heaps", "mostly one value", "few values", "all alike", "outward"};
static constexpr int SHAPES = sizeof shapes / sizeof *shapes;

static int64_t draw(int shape, int i, uint64_t *state)
{
    switch (shape) {
    case 0:
        return i;
    case 1:
        return -i;
    case 2:
        return i % 1000;
    case 3:
        return (int64_t)random_word(state);
    case 4:
        return (int64_t)fmin(pow(1 - random_part(state), -3), 1e18);
    case 5:
        return (random_word(state) & 1 ? 1'000'000'000 : -1'000'000'000) + (int64_t)(random_word(state) % 1000);
    case 6:
        return random_word(state) % 100 < 97 ? 7 : (int64_t)(random_word(state) % 1'000'000);
    case 7:
        return (int64_t)(random_word(state) % 5);
    case 8:
        return INT64_MIN;
    default:
        return i & 1 ? i : -i;
    }
}

static int compare_keys(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The distance of rank from the range of ranks that key has in sorted. */
static double rank_fault(const int64_t *sorted, int count, int64_t key, double rank)
{
    int begin = 0, end = count;
    while (begin < end) {
        int middle = (begin + end) / 2;
        if (sorted[middle] < key)
            begin = middle + 1;
        else
            end = middle;
    }
    CHECK(begin < count && sorted[begin] == key); /* the sketch returns only keys of its input */
    int last = begin;
    for (int step = 1 << 20; step > 0; step /= 2)
        if (last + step <= count && sorted[last + step - 1] <= key) last += step;
    double low = (double)begin / count, high = (double)last / count;
    return rank < low ? low - rank : rank > high ? rank - high : 0;
}

static void check_ranks(const sketch *sketch, const int64_t *sorted, int count, const char *name)
{
    for (int i = 0; i <= 100; i++) {
        double fault = rank_fault(sorted, count, sketch_quantile(sketch, i / 100.0), i / 100.0);
        if (fault > SKETCH_RANK_ERROR)
            test_fail(__FILE__, __LINE__, "%s: the key for rank %d %% is %.2f %% off", name, i, 100 * fault);
        int64_t key = sorted[(size_t)i * (size_t)(count - 1) / 100];
        double below = (double)sketch_below(sketch, key) / count;
        if (rank_fault(sorted, count, key, below) > SKETCH_RANK_ERROR)
            test_fail(__FILE__, __LINE__, "%s: %.4f lie below %" PRId64 ", it says", name, below, key);
    }
    CHECK_EQ(sketch->weight, count);
    CHECK(sketch_size_bytes(sketch) <= 24 << 10);
}

TEST(sketch_ranks_are_within_the_stated_error)
{
    static int64_t keys[COUNT];
    for (int shape = 0; shape < SHAPES; shape++) {
        uint64_t state = test_seed();
        sketch sketch = {0};
        for (int i = 0; i < COUNT; i++) keys[i] = draw(shape, i, &state);
        for (int i = 0, part; i < COUNT; i += part) {
            part = 1 + (int)(random_word(&state) % 700);
            if (part > COUNT - i) part = COUNT - i;
            CHECK(sketch_add(&sketch, keys + i, (size_t)part, 0));
        }
        qsort(keys, COUNT, sizeof *keys, compare_keys);
        check_ranks(&sketch, keys, COUNT, shapes[shape]);
        sketch_deinit(&sketch);
    }
}

TEST(sketch_is_exact_while_it_stores_everything)
{
    sketch sketch = {0};
    for (int64_t i = SKETCH_EXACT; i > 0; i--) CHECK(sketch_add(&sketch, &i, 1, 0));
    for (int i = 1; i <= SKETCH_EXACT; i++) {
        CHECK_EQ(sketch_quantile(&sketch, (double)i / SKETCH_EXACT), i);
        CHECK_EQ(sketch_below(&sketch, i), i - 1);
    }
    sketch_deinit(&sketch);
    CHECK_EQ(sketch_quantile(&sketch, 0.5), 0);
}

/* Parts of very different sizes, merged from the front, from the back, and as a tree. */
TEST(sketch_merges_in_any_order)
{
    static int64_t keys[COUNT];
    enum { PARTS = 37 };
    for (int shape = 0; shape < SHAPES; shape++) {
        uint64_t state = test_seed() + 1;
        int ends[PARTS];
        for (int i = 0; i < COUNT; i++) keys[i] = draw(shape, i, &state);
        for (int i = 0; i < PARTS; i++) ends[i] = (int)((double)COUNT * pow((i + 1.0) / PARTS, 3));
        for (int order = 0; order < 3; order++) {
            sketch parts[PARTS] = {0}, whole = {0};
            for (int i = 0; i < PARTS; i++)
                for (int at = i ? ends[i - 1] : 0; at < ends[i]; at += 100)
                    CHECK(sketch_add(&parts[i], keys + at, (size_t)(ends[i] - at < 100 ? ends[i] - at : 100), 0));
            for (int step = 1; order == 2 && step < PARTS; step *= 2)
                for (int i = 0; i + step < PARTS; i += 2 * step) CHECK(sketch_merge(&parts[i], &parts[i + step]));
            for (int i = 0; i < (order == 2 ? 1 : PARTS); i++)
                CHECK(sketch_merge(&whole, &parts[order == 1 ? PARTS - 1 - i : i]));
            static int64_t sorted[COUNT];
            memcpy(sorted, keys, sizeof keys);
            qsort(sorted, COUNT, sizeof *sorted, compare_keys);
            check_ranks(&whole, sorted, COUNT, shapes[shape]);
            for (int i = 0; i < PARTS; i++) sketch_deinit(&parts[i]);
            sketch_deinit(&whole);
        }
    }
}

TEST(sketch_keys_are_in_the_order_of_doubles)
{
    const double values[] = {-INFINITY, -1e300, -1.5, -1, -5e-324, 0, 5e-324, 1e-9, 1, 1.5, 1e300, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        CHECK(sketch_value(sketch_key(values[i])) == values[i]);
        CHECK(i == 0 || sketch_key(values[i - 1]) < sketch_key(values[i]));
    }
    CHECK_EQ(sketch_key(0), 0);
}

TEST(sketch_sort_is_a_sort)
{
    static int64_t keys[600], wanted[600], scratch[600];
    uint64_t state = test_seed();
    for (size_t count = 0; count < 600; count += 1 + count / 3) {
        for (int bits = 0; bits < 64; bits += 7) {
            for (size_t i = 0; i < count; i++) wanted[i] = keys[i] = (int64_t)random_word(&state) >> bits;
            sketch_sort(keys, count, scratch);
            qsort(wanted, count, sizeof *wanted, compare_keys);
            CHECK(memcmp(keys, wanted, sizeof *keys * count) == 0);
        }
    }
}

/* ---- Frequent values ---- */

TEST(top_counts_exactly_while_all_values_fit)
{
    top numbers = {0}, texts = {.is_text = true};
    for (int i = 0; i < 3 * TOP_LIMIT; i++) {
        char text[32];
        int value = i % TOP_LIMIT;
        snprintf(text, sizeof text, "value %d", value);
        CHECK(top_add_number(&numbers, -value, 2));
        CHECK(top_add_text(&texts, mr_string_from(text), 1));
    }
    CHECK(top_add_text(&texts, (mr_string){nullptr, 0}, 9));
    CHECK_EQ(numbers.error, 0);
    CHECK_EQ(numbers.count, TOP_LIMIT);
    CHECK_EQ(top_number_count(&numbers, 1 - TOP_LIMIT), 6);
    CHECK_EQ(top_number_count(&numbers, 1), 0);
    CHECK_EQ(top_text_count(&texts, MR_STR("")), 9);
    top_entry entries[4];
    CHECK_EQ(top_list(&numbers, entries, 4), 4);
    CHECK_EQ(entries[0].number, 1 - TOP_LIMIT);
    CHECK_EQ(entries[3].number, 4 - TOP_LIMIT);
    CHECK_EQ(top_list(&texts, entries, 1), 1);
    CHECK_EQ(entries[0].count, 9);
    top_deinit(&numbers);
    top_deinit(&texts);
}

/* Merged in both orders. No count is too large, none is too small by more than the error, and so every value above the
 * error is present. */
TEST(top_keeps_its_bound_through_merges)
{
    enum { VALUES = 60'000, PARTS = 8, LIMIT = 64 };
    static uint64_t exact[VALUES];
    for (int order = 0; order < 2; order++) {
        uint64_t state = test_seed();
        top parts[PARTS] = {0}, whole = {.limit = LIMIT};
        memset(exact, 0, sizeof exact);
        for (int i = 0; i < PARTS; i++) {
            parts[i].limit = LIMIT;
            for (int n = 0; n < 20'000; n++) {
                int64_t value = (int64_t)(VALUES * pow(random_part(&state), 20));
                uint64_t count = 1 + random_word(&state) % 3;
                exact[value] += count;
                CHECK(top_add_number(&parts[i], value, count));
            }
        }
        for (int i = 0; i < PARTS; i++) CHECK(top_merge(&whole, &parts[order ? i : PARTS - 1 - i]));
        CHECK(whole.error > 0 && whole.error <= 2 * whole.total / LIMIT);
        CHECK(whole.count <= LIMIT);
        uint64_t total = 0;
        for (int i = 0; i < VALUES; i++) {
            uint64_t count = top_number_count(&whole, i);
            total += exact[i];
            CHECK(count <= exact[i] && count + whole.error >= exact[i]);
        }
        CHECK_EQ(whole.total, total);
        CHECK(top_size_bytes(&whole) < 8192);
        top_entry first;
        CHECK_EQ(top_list(&whole, &first, 1), 1);
        CHECK_EQ(first.number, 0);
        for (int i = 0; i < PARTS; i++) top_deinit(&parts[i]);
        top_deinit(&whole);
    }
}

/* ---- Numbers ---- */

TEST(numbers_keep_their_precision)
{
    /* The mean is far from 0 and the first value far from both: a single pass with a sum of squares would lose all
     * digits. */
    numbers numbers = {.is_real = true};
    uint64_t state = test_seed();
    double first = 1e15, sum = 0, squares = 0;
    enum { N = 100'000 };
    static double values[N];
    for (int i = 0; i < N; i++) sum += (values[i] = 1e9 + random_part(&state)) - 1e9;
    for (int i = 0; i < N; i++) squares += pow(values[i] - 1e9 - sum / N, 2);
    for (int i = 0; i < N; i += 100) CHECK(numbers_add_doubles(&numbers, values + i, 100));
    CHECK(numbers_flush(&numbers));
    CHECK_NEAR(numbers_mean(&numbers) - 1e9, sum / N, 1e-6);
    CHECK_NEAR(numbers_std(&numbers), sqrt(squares / N), 1e-8);
    CHECK(numbers_add_doubles(&numbers, &first, 1) && numbers_flush(&numbers));
    CHECK_NEAR(numbers_most(&numbers), first, 0);
    CHECK_NEAR(numbers_std(&numbers) / (first / sqrt(N)), 1, 1e-4);
    numbers_deinit(&numbers);
}

TEST(numbers_ignore_what_is_not_finite)
{
    numbers numbers = {.is_real = true};
    const float values[] = {NAN, -INFINITY, 3, -0.0f, INFINITY, 0, 5, INFINITY};
    CHECK(numbers_add_floats(&numbers, values, 8) && numbers_flush(&numbers));
    CHECK_EQ(numbers_total(&numbers), 8);
    CHECK_EQ(numbers.count, 4);
    CHECK_EQ(numbers.nans, 1);
    CHECK_EQ(numbers.infinities[0], 1);
    CHECK_EQ(numbers.infinities[1], 2);
    CHECK_EQ(numbers.zeros, 2);
    CHECK_NEAR(numbers_least(&numbers), 0, 0);
    CHECK_NEAR(numbers_most(&numbers), 5, 0);
    CHECK_NEAR(numbers_mean(&numbers), 2, 1e-15);
    CHECK_NEAR(numbers_std(&numbers), sqrt(4.5), 1e-15);
    CHECK_EQ(top_number_count(&numbers.top, 0), 2);
    numbers_deinit(&numbers);
    numbers = (struct numbers){.is_real = true};
    CHECK(numbers_add_floats(&numbers, values, 1) && numbers_flush(&numbers));
    CHECK_NEAR(numbers_mean(&numbers), 0, 0);
    numbers_deinit(&numbers);
}

/* The stream is long enough that the sketch only sees a sample. The totals do not depend on how calls divide the
 * stream. */
TEST(numbers_sample_long_streams_within_the_error)
{
    enum { N = 1'000'000 };
    static int64_t values[N];
    for (int shape = 0; shape < SHAPES; shape++) {
        uint64_t state = test_seed() + 2;
        numbers a = {0}, b = {0}, halves[2] = {0};
        for (int i = 0; i < N; i++) values[i] = draw(shape, i, &state);
        CHECK(numbers_add_ints(&a, values, N) && numbers_flush(&a));
        for (int i = 0; i < N; i += 50) CHECK(numbers_add_ints(&b, values + i, 50));
        CHECK(numbers_flush(&b));
        for (int i = 0; i < 2; i++)
            CHECK(numbers_add_ints(&halves[i], values + i * (N / 2), N / 2) && numbers_flush(&halves[i]));
        CHECK(numbers_merge(&halves[0], &halves[1]));
        for (int i = 0; i <= 20; i++) CHECK(numbers_quantile(&a, i / 20.0) == numbers_quantile(&b, i / 20.0));
        CHECK(numbers_mean(&a) == numbers_mean(&b) && numbers_std(&a) == numbers_std(&b));
        CHECK_EQ(top_number_count(&a.top, 7), top_number_count(&b.top, 7));
        if (shape == 6) CHECK_NEAR((double)top_number_count(&a.top, 7) / N, 0.97, 0.01);
        if (shape == 7) CHECK_EQ(a.top.error, 0);
        qsort(values, N, sizeof *values, compare_keys);
        for (int i = 1; a.top.error == 0 && i <= 20; i++) {
            int64_t exact = values[(size_t)ceil(i / 20.0 * N) - 1];
            CHECK_EQ(numbers_quantile_key(&a, i / 20.0), exact);
            CHECK_EQ(numbers_quantile_key(&halves[0], i / 20.0), exact);
            int below = 0;
            while (below < N && values[below] < exact) below++;
            CHECK(numbers_below(&a, (double)exact) == below);
        }
        CHECK_EQ(a.least, values[0]);
        CHECK_EQ(a.most, values[N - 1]);
        check_ranks(&a.sketch, values, N, shapes[shape]);
        check_ranks(&halves[0].sketch, values, N, shapes[shape]);
        CHECK_NEAR(numbers_mean(&halves[0]), numbers_mean(&a), 1e-9 * (fabs(numbers_mean(&a)) + numbers_std(&a)));
        CHECK_NEAR(numbers_std(&halves[0]), numbers_std(&a), 1e-9 * numbers_std(&a));
        numbers_deinit(&a);
        numbers_deinit(&b);
        for (int i = 0; i < 2; i++) numbers_deinit(&halves[i]);
    }
}

TEST(numbers_add_a_value_many_times)
{
    numbers many = {0}, each = {0};
    const int64_t zero = 0;
    for (int64_t i = 0; i < 1000; i++) CHECK(numbers_add_ints(&each, i < 700 ? &zero : &i, 1));
    CHECK(numbers_add_repeated(&many, 0, 700));
    for (int64_t i = 700; i < 1000; i++) CHECK(numbers_add_ints(&many, &i, 1));
    CHECK(numbers_flush(&many) && numbers_flush(&each));
    CHECK_EQ(many.count, 1000);
    CHECK_EQ(many.zeros, 700);
    CHECK_EQ(top_number_count(&many.top, 0), 700);
    CHECK_NEAR(numbers_mean(&many), numbers_mean(&each), 1e-9);
    CHECK_NEAR(numbers_std(&many), numbers_std(&each), 1e-9);
    CHECK_NEAR(numbers_quantile(&many, 0.7), 0, 0);
    CHECK_NEAR(numbers_quantile(&many, 0.9), 899, 5);
    numbers_deinit(&many);
    numbers_deinit(&each);
}

TEST(numbers_count_texts)
{
    texts texts = {0}, more = {0};
    char name[100];
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 50'000; i++) {
        int length = snprintf(name, sizeof name, "image %d", i);
        name[length] = 'n';
        CHECK(texts_add(&texts, i % 10 == 0 ? MR_STR("again") : (mr_string){name, (size_t)length}));
    }
    CHECK(texts_add(&more, MR_STR("")) && texts_add(&more, (mr_string){name, TOP_TEXT_MAX + 1}));
    CHECK(texts_flush(&texts) && texts_flush(&more) && texts_merge(&texts, &more));
    CHECK_EQ(texts.lengths.count, 50'002);
    CHECK_EQ(texts.lengths.zeros, 1);
    CHECK_EQ(texts.lengths.most, TOP_TEXT_MAX + 1);
    CHECK_EQ(texts.long_count, 1);
    CHECK(texts.top.error > 0);
    top_entry first;
    CHECK_EQ(top_list(&texts.top, &first, 1), 1);
    CHECK(mr_string_equal(first.text, MR_STR("again")));
    CHECK_NEAR((double)first.count, 5000, 500);
    texts_deinit(&texts);
    texts_deinit(&more);
}
