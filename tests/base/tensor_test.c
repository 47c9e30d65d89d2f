/* Dtypes (names, sizes, conversion of every half and bfloat16), shapes, reference counts of buffers, and tensors. */
#include "tests/test.h"
#include <millrace/tensor.h>

TEST(dtype_names_and_sizes)
{
    for (int i = 1; i < MR_DTYPE_COUNT; i++) CHECK_EQ(mr_dtype_parse(mr_dtype_name((mr_dtype)i)), i);
    CHECK_EQ(mr_dtype_parse("float32"), MR_FLOAT);
    CHECK_EQ(mr_dtype_parse("float64"), MR_DOUBLE);
    CHECK_EQ(mr_dtype_parse("DT_BFLOAT16"), MR_BFLOAT16);
    CHECK_EQ(mr_dtype_parse("DT_"), MR_DTYPE_INVALID);
    CHECK_EQ(mr_dtype_parse("floa"), MR_DTYPE_INVALID);
    CHECK_EQ(mr_dtype_parse("invalid"), MR_DTYPE_INVALID);
    CHECK_EQ(mr_dtype_size(MR_COMPLEX128), 16);
    CHECK_EQ(mr_dtype_size(MR_VARIANT), 0);
    CHECK_EQ(mr_dtype_size((mr_dtype)-5), 0);
    CHECK_STR(mr_dtype_name((mr_dtype)101), "invalid");
}

TEST(dtype_every_half_survives_a_round_trip)
{
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = mr_half_to_float((uint16_t)half);
        CHECK_EQ(isnan(value), (half & 0x7fff) > 0x7c00);
        if (!isnan(value)) CHECK_EQ(mr_float_to_half(value), half);
        if (half < 0x7c00 - 1) { /* halfway between two neighbors: rounds to even */
            float next = mr_half_to_float((uint16_t)(half + 1)), middle = (value + next) / 2;
            CHECK_EQ(mr_float_to_half(middle), half + (half & 1));
            CHECK_EQ(mr_float_to_half(nextafterf(middle, INFINITY)), half + 1);
            CHECK_EQ(mr_float_to_half(nextafterf(middle, 0)), half);
        }
    }
    CHECK_EQ(mr_float_to_half(65519.99f), 0x7bff);
    CHECK_EQ(mr_float_to_half(65520.0f), 0x7c00);
    CHECK_EQ(mr_float_to_half(-INFINITY), 0xfc00);
    CHECK(isnan(mr_half_to_float(mr_float_to_half(NAN))));
}

TEST(dtype_every_bfloat16_survives_a_round_trip)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = mr_bfloat16_to_float((uint16_t)bits);
        if (isnan(value)) {
            CHECK(isnan(mr_bfloat16_to_float(mr_float_to_bfloat16(value))));
            continue;
        }
        CHECK_EQ(mr_float_to_bfloat16(value), bits);
    }
    CHECK_EQ(mr_float_to_bfloat16(0x1.01p0f), 0x3f80); /* a tie, rounds down to even */
    CHECK_EQ(mr_float_to_bfloat16(0x1.03p0f), 0x3f82); /* a tie, rounds up to even */
    CHECK_EQ(mr_float_to_bfloat16(0x1.010002p0f), 0x3f81);
    CHECK_EQ(mr_float_to_bfloat16(0x1.fffffep127f), 0x7f80);
}

TEST(shape_counts_without_overflow)
{
    CHECK_EQ(mr_shape_count(MR_SCALAR), 1);
    CHECK_EQ(mr_shape_count(MR_SHAPE(2, 3, 4)), 24);
    CHECK_EQ(mr_shape_count(MR_SHAPE(-1, 3)), -1);
    CHECK_EQ(mr_shape_count(MR_SHAPE_UNKNOWN), -1);
    CHECK_EQ(mr_shape_count(MR_SHAPE(INT64_MAX, 2)), -1);
    CHECK_EQ(mr_shape_count(MR_SHAPE(INT64_MAX, INT64_MAX, 0)), 0);
    CHECK_EQ(mr_shape_count((mr_shape){.rank = 1000}), -1);
}

TEST(shape_text_and_comparison)
{
    char text[MR_SHAPE_TEXT_SIZE];
    CHECK_STR(mr_shape_text(MR_SHAPE(-1, 28, 28, 1), text, sizeof text), "[?,28,28,1]");
    CHECK_STR(mr_shape_text(MR_SCALAR, text, sizeof text), "[]");
    CHECK_STR(mr_shape_text(MR_SHAPE_UNKNOWN, text, sizeof text), "<unknown>");
    CHECK_STR(mr_shape_text(MR_SHAPE(12345, 6789), text, 6), "[1234");
    CHECK(mr_shape_compatible(MR_SHAPE(-1, 3), MR_SHAPE(5, 3)));
    CHECK(!mr_shape_compatible(MR_SHAPE(-1, 3), MR_SHAPE(5, 4)));
    CHECK(!mr_shape_compatible(MR_SHAPE(3), MR_SHAPE(3, 1)));
    CHECK(mr_shape_compatible(MR_SHAPE_UNKNOWN, MR_SHAPE(3)));
    CHECK(mr_shape_equal(MR_SHAPE(-1), MR_SHAPE(-1)));
    CHECK(!mr_shape_equal(MR_SHAPE(-1), MR_SHAPE(2)));
}

static void count_release(void *context, void *data)
{
    (*(int *)context)++;
    *(int *)data = 7;
}

TEST(buffer_release_is_called_once)
{
    mr_error error = {0};
    int released = 0, bytes = 0;
    mr_buffer *buffer = nullptr;
    CHECK_OK(mr_buffer_wrap(&bytes, sizeof bytes, count_release, &released, &buffer, &error));
    CHECK(mr_buffer_is_unique(buffer));
    mr_buffer *second = mr_buffer_ref(buffer);
    CHECK(!mr_buffer_is_unique(buffer));
    mr_buffer_unref(buffer);
    CHECK_EQ(released, 0);
    mr_buffer_unref(second);
    CHECK_EQ(released, 1);
    CHECK_EQ(bytes, 7);
    mr_buffer_unref(nullptr);
    CHECK(mr_buffer_ref(nullptr) == nullptr);
}

TEST(buffer_is_aligned_and_bounded)
{
    mr_error error = {0};
    for (size_t size = 0; size < 300; size += 13) {
        mr_buffer *buffer = nullptr;
        CHECK_OK(mr_buffer_new(size, &buffer, &error));
        CHECK_EQ((uintptr_t)mr_buffer_data(buffer) % 64, 0);
        CHECK_EQ(mr_buffer_size(buffer), size);
        memset(mr_buffer_data(buffer), 1, size);
        mr_buffer_unref(buffer);
    }
    mr_buffer *none = nullptr;
    CHECK_STATUS(mr_buffer_new(SIZE_MAX, &none, &error), MR_RESOURCE_EXHAUSTED);
    CHECK_STATUS(mr_buffer_new(PTRDIFF_MAX - 200, &none, &error), MR_RESOURCE_EXHAUSTED);
    CHECK(none == nullptr);
}

TEST(tensor_rows_share_bytes)
{
    mr_error error = {0};
    mr_tensor tensor, rows, flat;
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_FLOAT, MR_SHAPE(3, 2), (float[]){1, 2, 3, 4, 5, 6}, &error));
    CHECK_OK(mr_tensor_rows(&tensor, 1, 3, &rows, &error));
    CHECK_EQ(mr_tensor_count(&rows), 4);
    CHECK_NEAR(mr_tensor_floats(&rows)[0], 3, 0);
    CHECK_OK(mr_tensor_reshape(&tensor, MR_SHAPE(6), &flat, &error));
    mr_tensor_floats(&flat)[2] = 9;
    CHECK_NEAR(mr_tensor_floats(&rows)[0], 9, 0);
    mr_tensor bad;
    CHECK_STATUS(mr_tensor_rows(&tensor, 2, 4, &bad, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_reshape(&tensor, MR_SHAPE(4), &bad, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "a tensor of shape [3,2] cannot be reshaped to [4]");
    mr_tensor_deinit(&tensor);
    CHECK_NEAR(mr_tensor_floats(&rows)[3], 6, 0);
    mr_tensor_deinit(&rows);
    mr_tensor_deinit(&flat);
    mr_tensor_deinit(&flat);
}

TEST(tensor_strings_are_copied)
{
    mr_error error = {0};
    char first[] = "one";
    mr_tensor tensor;
    CHECK_OK(
        mr_tensor_init_strings(&tensor, MR_SHAPE(3), (mr_string[]){{first, 3}, {nullptr, 0}, MR_STR("three")}, &error));
    memset(first, 'x', 3);
    CHECK(mr_string_equal(mr_tensor_strings(&tensor)[0], MR_STR("one")));
    CHECK_EQ(mr_tensor_strings(&tensor)[1].size_bytes, 0);
    CHECK(mr_string_equal(mr_tensor_strings(&tensor)[2], mr_string_from("three")));
    mr_tensor_deinit(&tensor);
    CHECK_OK(mr_tensor_init(&tensor, MR_STRING, MR_SHAPE(2), &error));
    CHECK_EQ(mr_tensor_strings(&tensor)[1].size_bytes, 0);
    mr_tensor_deinit(&tensor);
}

TEST(tensor_rejects_shapes_over_its_limits)
{
    mr_error error = {0};
    mr_tensor tensor;
    CHECK_STATUS(mr_tensor_init(&tensor, MR_FLOAT, MR_SHAPE(-1), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_init(&tensor, MR_DOUBLE, MR_SHAPE(INT64_MAX / 4), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_init(&tensor, MR_VARIANT, MR_SHAPE(1), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_init(&tensor, MR_FLOAT, (mr_shape){.rank = MR_RANK_MAX + 1}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_init(&tensor, MR_FLOAT, MR_SHAPE((int64_t)1 << 59), &error), MR_RESOURCE_EXHAUSTED);
    CHECK(tensor.buffer == nullptr);
    mr_tensor_deinit(&tensor);
    CHECK_OK(mr_tensor_init(&tensor, MR_FLOAT, MR_SHAPE(0, 5), &error));
    CHECK_EQ(mr_tensor_size_bytes(&tensor), 0);
    mr_tensor_deinit(&tensor);
    CHECK_EQ(mr_tensor_count(&tensor), 0);
}

TEST(tensor_fields_have_accessors)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_EQ(mr_tensor_dtype(&tensor), MR_DTYPE_INVALID);
    CHECK_OK(mr_tensor_init(&tensor, MR_FLOAT, MR_SHAPE(3, 5), &error));
    CHECK_EQ(mr_tensor_dtype(&tensor), MR_FLOAT);
    CHECK_EQ(mr_tensor_rank(&tensor), 2);
    CHECK_EQ(mr_tensor_dim(&tensor, 0), 3);
    CHECK_EQ(mr_tensor_dim(&tensor, 1), 5);
    CHECK_EQ(mr_tensor_dim(&tensor, 2), -1);
    CHECK_EQ(mr_tensor_dim(&tensor, -1), -1);
    CHECK(mr_tensor_data(&tensor) == mr_tensor_floats(&tensor));
    mr_tensor_deinit(&tensor);
}
