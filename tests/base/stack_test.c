/* Stacking of rows, checked element by element: padding, numbers and strings, empty rows and no rows. */
#include "base/random.h"
#include "base/stack.h"
#include "tests/test.h"

constexpr int ROWS_MAX = 6;

static mr_string string_of(int64_t number, char *text, size_t size_bytes)
{
    int length = snprintf(text, size_bytes, "%lld", (long long)number);
    return (mr_string){text, (size_t)length};
}

/* A row with the elements first, first + 1, … */
static void make_row(mr_tensor *row, mr_dtype dtype, mr_shape shape, int64_t first)
{
    mr_error error = {0};
    int64_t count = mr_shape_count(shape);
    mr_string strings[4 * 4 * 4 * 4];
    static char texts[4 * 4 * 4 * 4][24];
    if (dtype == MR_STRING) {
        for (int64_t i = 0; i < count; i++) strings[i] = string_of(first + i, texts[i], sizeof texts[i]);
        CHECK_OK(mr_tensor_init_strings(row, shape, strings, &error));
        return;
    }
    CHECK_OK(mr_tensor_init(row, dtype, shape, &error));
    for (int64_t i = 0; i < count; i++) {
        if (dtype == MR_INT64)
            mr_tensor_int64s(row)[i] = first + i;
        else
            mr_tensor_uint8s(row)[i] = (uint8_t)(first + i);
    }
}

static void check_element(const mr_tensor *stacked, int64_t at, bool is_filled, int64_t number, int64_t fill)
{
    char text[24];
    int64_t expected = is_filled ? number : fill;
    if (stacked->dtype == MR_INT64) {
        CHECK_EQ(mr_tensor_int64s(stacked)[at], expected);
    } else if (stacked->dtype == MR_UINT8) {
        CHECK_EQ(mr_tensor_uint8s(stacked)[at], (uint8_t)expected);
    } else {
        mr_string wanted = !is_filled && fill == 0 ? (mr_string){0} : string_of(expected, text, sizeof text);
        CHECK(mr_string_equal(mr_tensor_strings(stacked)[at], wanted));
    }
}

static void check_stacked(const mr_tensor *stacked, const mr_tensor *rows, int64_t count, mr_shape shape, int64_t fill)
{
    int64_t row_count = mr_shape_count(shape);
    CHECK_EQ(stacked->shape.rank, shape.rank + 1);
    CHECK_EQ(mr_tensor_count(stacked), row_count * count);
    for (int64_t at = 0; at < row_count * count; at++) {
        const mr_shape *of_row = &rows[at / row_count].shape;
        int64_t index = at % row_count, inside = 0, step = 1;
        bool is_filled = true;
        for (int32_t d = shape.rank - 1; d >= 0; d--) {
            int64_t i = index % shape.dims[d];
            index /= shape.dims[d];
            is_filled &= i < of_row->dims[d];
            inside += i * step;
            step *= of_row->dims[d];
        }
        check_element(stacked, at, is_filled, 1 + 1000 * (at / row_count) + inside, fill);
    }
}

static void run_case(uint64_t number)
{
    static const mr_dtype dtypes[] = {MR_INT64, MR_UINT8, MR_STRING};
    mr_random random = mr_random_at(test_seed(), number, 0, 0x737461636b);
    mr_error error = {0};
    mr_tensor rows[ROWS_MAX] = {0}, stacked = {0};
    mr_dtype dtype = dtypes[mr_random_below(&random, 3)];
    int64_t count = (int64_t)mr_random_below(&random, ROWS_MAX + 1), fill = (int64_t)mr_random_below(&random, 3);
    mr_shape shape = {.rank = (int32_t)mr_random_below(&random, 5)};
    bool is_equal = mr_random_below(&random, 2) == 0;
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = is_equal ? (int64_t)mr_random_below(&random, 5) : (int64_t)mr_random_below(&random, 2) - 1;
    for (int64_t r = 0; r < count; r++) {
        mr_shape of_row = shape;
        for (int32_t d = 0; d < shape.rank && !is_equal; d++) of_row.dims[d] = (int64_t)mr_random_below(&random, 5);
        make_row(&rows[r], dtype, of_row, 1 + 1000 * r);
    }
    char text[24];
    uint8_t small = (uint8_t)fill;
    mr_string string = string_of(fill, text, sizeof text);
    const void *element = dtype == MR_INT64 ? (const void *)&fill : dtype == MR_UINT8 ? &small : (const void *)&string;
    shape = mr_stack_shape(rows, count, shape);
    CHECK_OK(mr_stack(rows, count, dtype, shape, fill == 0 ? nullptr : element, &stacked, &error));
    check_stacked(&stacked, rows, count, shape, fill);
    mr_tensor_deinit(&stacked);
    for (int64_t r = 0; r < count; r++) mr_tensor_deinit(&rows[r]);
}

TEST(stacked_rows_are_as_their_model)
{
    for (uint64_t number = 0; number < 3000; number++) run_case(number);
}

TEST(rows_that_fit_no_tensor_are_refused)
{
    mr_error error = {0};
    mr_tensor stacked = {0};
    mr_shape deep = {.rank = MR_RANK_MAX};
    CHECK_EQ(mr_stack(nullptr, 0, MR_INT64, deep, nullptr, &stacked, &error), MR_INVALID_ARGUMENT);
    mr_shape huge = MR_SHAPE((int64_t)1 << 40, (int64_t)1 << 40);
    CHECK_EQ(mr_stack(nullptr, 0, MR_INT64, huge, nullptr, &stacked, &error), MR_RESOURCE_EXHAUSTED);
    CHECK(stacked.buffer == nullptr);
}
