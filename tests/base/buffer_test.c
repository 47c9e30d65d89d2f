/* Buffers: sizes near the alignment and larger than the available memory, references on many threads, and wrapped
 * memory that is released once. */
#include "base/buffer.h"
#include "tests/test.h"

#include <pthread.h>

TEST(a_buffer_is_aligned_and_has_its_size)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 1 << 20};
    mr_error error = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        mr_buffer *buffer = nullptr;
        CHECK_OK(mr_buffer_new(sizes[i], &buffer, &error));
        CHECK_EQ(mr_buffer_size(buffer), sizes[i]);
        CHECK_EQ((uintptr_t)mr_buffer_data(buffer) % 64, 0);
        memset(mr_buffer_data(buffer), 1, sizes[i]);
        CHECK(mr_buffer_is_unique(buffer));
        CHECK(mr_buffer_ref(buffer) == buffer && !mr_buffer_is_unique(buffer));
        mr_buffer_unref(buffer);
        CHECK(mr_buffer_is_unique(buffer));
        mr_buffer_unref(buffer);
    }
}

TEST(a_buffer_refuses_null_and_huge_arguments)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, PTRDIFF_MAX, PTRDIFF_MAX - 64};
    mr_error error = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        mr_buffer *buffer = nullptr;
        CHECK_EQ(mr_buffer_new(sizes[i], &buffer, &error), MR_RESOURCE_EXHAUSTED);
        CHECK(buffer == nullptr);
    }
    mr_buffer *none = nullptr;
    CHECK_EQ(mr_buffer_new(1, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_buffer_wrap(nullptr, 1, nullptr, nullptr, &none, &error), MR_INVALID_ARGUMENT);
    CHECK(mr_buffer_data(nullptr) == nullptr && mr_buffer_size(nullptr) == 0 && !mr_buffer_is_unique(nullptr));
    CHECK(mr_buffer_ref(nullptr) == nullptr);
    mr_buffer_unref(nullptr);
}

static void count_release(void *context, void *data)
{
    (void)data;
    ++*(int *)context;
}

constexpr int REFERENCES = 20000;

static void *take_references(void *buffer)
{
    for (int i = 0; i < REFERENCES; i++) mr_buffer_unref(mr_buffer_ref(buffer));
    mr_buffer_unref(buffer);
    return nullptr;
}

TEST(wrapped_bytes_are_released_once_by_the_last_of_many_threads)
{
    constexpr int THREADS = 4;
    mr_error error = {0};
    char bytes[8];
    int released = 0;
    mr_buffer *buffer = nullptr;
    pthread_t threads[THREADS];
    CHECK_OK(mr_buffer_wrap(bytes, sizeof bytes, count_release, &released, &buffer, &error));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], nullptr, take_references, mr_buffer_ref(buffer)) == 0);
    CHECK(mr_buffer_data(buffer) == bytes);
    mr_buffer_unref(buffer);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], nullptr) == 0);
    CHECK_EQ(released, 1);
    CHECK_OK(mr_buffer_wrap(nullptr, 0, nullptr, nullptr, &buffer, &error));
    mr_buffer_unref(buffer);
}

TEST(tensors_and_shapes_refuse_null_and_huge_arguments)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    char text[MR_SHAPE_TEXT_SIZE];
    mr_shape deep = {.rank = MR_RANK_MAX + 1};
    CHECK_EQ(mr_tensor_init(nullptr, MR_FLOAT, MR_SCALAR, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_tensor_init(&tensor, MR_FLOAT, deep, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_tensor_init_copy(&tensor, MR_FLOAT, MR_SHAPE(2), nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_tensor_init_copy(&tensor, MR_STRING, MR_SCALAR, "", &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_tensor_init_strings(&tensor, MR_SHAPE(1), nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_tensor_init_strings(nullptr, MR_SHAPE(1), nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_FLOAT, MR_SHAPE(0), nullptr, &error));
    CHECK_EQ(mr_tensor_rows(&tensor, 0, 0, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_tensor_reshape(nullptr, MR_SCALAR, &tensor, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&tensor);
    mr_tensor_deinit(nullptr);
    CHECK(!mr_shape_equal(deep, deep) && !mr_shape_compatible(deep, deep));
    CHECK_STR(mr_shape_text(deep, text, sizeof text), "<invalid>");
    CHECK_EQ(mr_shape_count(deep), -1);
    CHECK_EQ(mr_dtype_parse(nullptr), MR_DTYPE_INVALID);
    CHECK_EQ(mr_string_from(nullptr).size_bytes, 0);
}
