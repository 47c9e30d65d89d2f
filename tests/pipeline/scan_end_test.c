/* Scans whose function ends the sequence, with saved states; and elements that are variants. */
#include "pipeline/scan.h"
#include "tests/test.h"

#include <millrace/dataset.h>

static mr_status below_four(void *, const mr_element *, const mr_element *input, mr_element *, mr_element *output,
                            mr_error *error)
{
    int64_t number = mr_tensor_int64s(&input->tensors[0])[0];
    if (number >= 4) return mr_fail(error, MR_OUT_OF_RANGE, "four");
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], 10 * number, error);
}

static const mr_element_spec number = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{0}}};

static void check_rest(mr_iterator *iterator, int64_t first)
{
    mr_error error = {0};
    mr_element element = {0};
    for (int64_t i = first; i < 4; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], 10 * i);
    }
    for (int i = 0; i < 2; i++) CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_element_deinit(&element);
}

TEST(scan_ends_with_its_function)
{
    mr_error error = {0};
    mr_element none = {0}, element = {0};
    mr_tensor states[5] = {0};
    mr_iterator *iterator = nullptr;
    mr_dataset *scan =
        mr_dataset_scan(mr_dataset_repeat(mr_dataset_range(0, 10, 1), -1), &none, below_four, nullptr, &number);
    scan = mr_dataset_scan_can_end(scan);
    CHECK_EQ(mr_dataset_cardinality(scan), -2);
    CHECK_OK(mr_iterator_new(scan, nullptr, &iterator, &error));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(mr_iterator_save(iterator, &states[i], &error));
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), i < 4 ? MR_OK : MR_OUT_OF_RANGE);
    }
    check_rest(iterator, 4);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(mr_iterator_restore(iterator, &states[i], &error));
        check_rest(iterator, i);
        mr_tensor_deinit(&states[i]);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(scan);
}

TEST(batches_contain_no_variants)
{
    mr_error error = {0};
    mr_element none = {0};
    const mr_element_spec variant = {.count = 1, .dtypes = {MR_VARIANT}, .shapes = {{0}}};
    mr_dataset *batch =
        mr_dataset_batch(mr_dataset_scan(mr_dataset_range(0, 10, 1), &none, below_four, nullptr, &variant), 2);
    CHECK_STATUS(mr_dataset_status(batch, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "component 0 is a variant");
    mr_dataset_free(batch);
}
