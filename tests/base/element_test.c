/* Elements: who owns tensors and array, reuse of the array, and lack of memory. */
#include "base/element.h"
#include "tests/test.h"

static _Atomic int live;

static void count_release(void *context, void *data)
{
    (void)context, (void)data;
    live--;
}

/* A tensor of no elements whose release is counted. */
static mr_tensor counted(void)
{
    mr_error error = {0};
    static int64_t number;
    mr_tensor tensor = {.dtype = MR_INT64, .shape = MR_SCALAR, .data = &number};
    CHECK_OK(mr_buffer_wrap(&number, sizeof number, count_release, nullptr, &tensor.buffer, &error));
    live++;
    return tensor;
}

static void fill(mr_element *element, int32_t count)
{
    for (int32_t i = 0; i < count; i++) element->tensors[i] = counted();
    element->count = count;
}

TEST(element_owns_its_tensors_and_array)
{
    mr_error error = {0};
    for (int32_t count = 0; count <= MR_COMPONENTS_MAX; count++) {
        mr_element element;
        CHECK_OK(mr_element_init(&element, count, &error));
        CHECK_EQ(element.count, count);
        for (int32_t i = 0; i < count; i++) CHECK_EQ(mr_tensor_dtype(mr_element_tensor(&element, i)), MR_DTYPE_INVALID);
        CHECK(mr_element_tensor(&element, count) == nullptr && mr_element_tensor(&element, -1) == nullptr);
        fill(&element, count);
        for (int32_t i = 0; i < count; i++) CHECK(mr_element_tensor(&element, i) == &element.tensors[i]);
        mr_element moved = element;
        mr_element_deinit(&moved);
        CHECK_EQ(live, 0);
        CHECK(moved.count == 0 && moved.capacity == 0 && moved.tensors == nullptr);
        mr_element_deinit(&moved);
    }
}

TEST(element_that_borrows_releases_nothing)
{
    mr_tensor pair[2] = {counted(), counted()};
    mr_element view = {.count = 2, .tensors = pair};
    mr_element_deinit(&view);
    CHECK_EQ(live, 2);
    CHECK(view.tensors == nullptr && view.count == 0);
    /* It is replaced, not written to. */
    mr_error error = {0};
    view = (mr_element){.count = 2, .tensors = pair};
    CHECK_OK(mr_element_reserve(&view, 2, &error));
    CHECK(view.tensors != pair && view.capacity == 2 && view.count == 0);
    mr_element_deinit(&view);
    CHECK_EQ(live, 2);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&pair[i]);
    CHECK_EQ(live, 0);
}

TEST(element_keeps_its_array_while_it_is_large_enough)
{
    mr_error error = {0};
    mr_element element = {0};
    int32_t capacity = 0;
    for (int32_t i = 0; i < 200; i++) {
        int32_t wanted = (i * 7 + i / 3) % 12;
        const mr_tensor *before = element.tensors;
        CHECK_OK(mr_element_reserve(&element, wanted, &error));
        CHECK_EQ(live, 0);
        if (wanted <= capacity) CHECK(element.tensors == before);
        if (wanted > capacity) capacity = wanted;
        CHECK_EQ(element.capacity, capacity);
        CHECK_EQ(element.count, 0);
        fill(&element, wanted);
    }
    mr_element_deinit(&element);
    CHECK_EQ(live, 0);
}

TEST(element_of_a_function_that_fails_is_emptied)
{
    mr_error error = {0};
    static const int32_t counts[] = {0, 1, 3, -1, INT32_MIN, INT32_MAX};
    mr_element element = {0};
    for (int i = 0; i < 6; i++) {
        CHECK_OK(mr_element_offer(&element, &error));
        CHECK_EQ(element.capacity, MR_COMPONENTS_MAX);
        for (int32_t c = 0; c < MR_COMPONENTS_MAX; c++) CHECK(element.tensors[c].buffer == nullptr);
        fill(&element, 3);
        element.count = counts[i];
        mr_element_clear_all(&element);
        CHECK_EQ(live, 0);
    }
    mr_element_deinit(&element);
}

TEST(element_arguments_are_checked)
{
    mr_error error = {0};
    mr_element element = {.count = 7};
    static const int32_t counts[] = {-1, INT32_MIN, MR_COMPONENTS_MAX + 1, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        CHECK_STATUS(mr_element_init(&element, counts[i], &error), MR_INVALID_ARGUMENT);
        CHECK(element.count == 0 && element.tensors == nullptr);
    }
    CHECK_STATUS(mr_element_init(nullptr, 1, &error), MR_INVALID_ARGUMENT);
    mr_element_deinit(nullptr);
    CHECK(mr_element_tensor(nullptr, 0) == nullptr);
}

TEST(element_without_memory_is_empty)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_element element = {0};
    test_fail_allocation(test_allocations() + 1);
    CHECK_STATUS(mr_element_init(&element, 3, &error), MR_RESOURCE_EXHAUSTED);
    CHECK(element.count == 0 && element.capacity == 0 && element.tensors == nullptr);
    CHECK_OK(mr_element_init(&element, 3, &error));
    fill(&element, 3);
    test_fail_allocation(test_allocations() + 1);
    CHECK_STATUS(mr_element_reserve(&element, 4, &error), MR_RESOURCE_EXHAUSTED);
    CHECK_EQ(live, 0);
    CHECK(element.count == 0 && element.capacity == 0 && element.tensors == nullptr);
}
