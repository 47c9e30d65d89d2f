/* Lookup of attrs by name, and selection of a kernel by its types. */
#include "base/kernel.h"
#include "tests/test.h"

static mr_attr_value values[] = {{.integer = 7}, {.type = MR_FLOAT + MR_DTYPE_REF}, {.type = MR_INT64}};
static mr_attr items[] = {
    {"N", MR_ATTR_INT, false, 1, &values[0]},
    {"T", MR_ATTR_TYPE, false, 1, &values[1]},
    {"Tidx", MR_ATTR_TYPE, false, 1, &values[2]},
};
static const mr_attrs attrs = {3, items};

TEST(attr_readers_say_what_is_wrong)
{
    mr_error error = {0};
    int64_t n = 0;
    float number = 0;
    mr_dtype type = MR_DTYPE_INVALID;
    CHECK_OK(mr_attr_get_int(&attrs, "N", &n, &error));
    CHECK_EQ(n, 7);
    CHECK_OK(mr_attr_get_type(&attrs, "T", &type, &error));
    CHECK_EQ(type, MR_FLOAT);
    CHECK_STATUS(mr_attr_get_float(&attrs, "N", &number, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "attr N is an int, not a float");
    CHECK_STATUS(mr_attr_get_int(&attrs, "M", &n, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "attr M is missing");
    CHECK_EQ(mr_attr_int_or(&attrs, "M", 3), 3);
    CHECK_EQ(mr_attr_int_or(&attrs, "N", 3), 7);
    CHECK(mr_attr_bool_or(nullptr, "N", true));
}

TEST(kernel_is_found_by_its_types)
{
    static const mr_kernel kernels[] = {
        {"TestOp", MR_DEVICE_CPU, "T: half, double", nullptr},
        {"TestOp", MR_DEVICE_CPU, "T: float; Tidx: int32", nullptr},
        {"TestOp", MR_DEVICE_CPU, "T: double, float; Tidx: int32, int64", nullptr},
        {"TestAny", MR_DEVICE_CPU, nullptr, nullptr},
        {"TestOther", MR_DEVICE_CPU, "S: float", nullptr},
    };
    static const mr_kernel_table table = {kernels, sizeof kernels / sizeof *kernels};
    mr_kernel_table_register(&table);
    mr_kernel_table_register(&table);
    CHECK(mr_kernel_find("TestOp", MR_DEVICE_CPU, &attrs) == &kernels[2]);
    CHECK(mr_kernel_find("TestOp", MR_DEVICE_GPU, &attrs) == nullptr);
    CHECK(mr_kernel_find("TestAny", MR_DEVICE_CPU, &attrs) == &kernels[3]);
    CHECK(mr_kernel_find("TestOther", MR_DEVICE_CPU, &attrs) == nullptr);
}
