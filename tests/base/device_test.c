/* The CPU device reuses what comes back, and its buffers outlive it. */
#include "base/device.h"
#include "tests/test.h"

TEST(device_cpu_reuses_freed_blocks)
{
    mr_error error = {0};
    mr_device *device = nullptr;
    CHECK_OK(mr_device_cpu_new(nullptr, &device, &error));
    CHECK_STR(device->name, "/device:CPU:0");
    mr_tensor tensor;
    CHECK_OK(mr_tensor_init_on(&tensor, device, MR_FLOAT, MR_SHAPE(1000, 3), &error));
    void *data = tensor.data;
    CHECK_EQ((uintptr_t)data % 64, 0);
    mr_tensor_deinit(&tensor);
    CHECK_OK(mr_tensor_init_on(&tensor, device, MR_INT32, MR_SHAPE(2999), &error));
    CHECK(tensor.data == data);
    mr_tensor other;
    CHECK_OK(mr_tensor_init_on(&other, device, MR_INT32, MR_SHAPE(2999), &error));
    CHECK(other.data != data);
    mr_device_free(device);
    memset(tensor.data, 1, mr_tensor_size_bytes(&tensor));
    mr_tensor_deinit(&tensor);
    mr_tensor_deinit(&other);
}

TEST(device_cpu_blocks_hold_their_size)
{
    mr_error error = {0};
    mr_device *device = nullptr;
    CHECK_OK(mr_device_cpu_new(nullptr, &device, &error));
    mr_tensor tensors[2];
    for (int64_t size = 0; size < 3000000; size += 1 + size / 3)
        for (int64_t near = size > 0 ? size - 1 : 0; near <= size + 1; near++) {
            for (int i = 0; i < 2; i++) {
                CHECK_OK(mr_tensor_init_on(&tensors[i], device, MR_UINT8, MR_SHAPE(near), &error));
                memset(tensors[i].data, 'a' + i, (size_t)near);
            }
            for (int64_t i = 0; i < near; i += 1 + near / 100) CHECK_EQ(mr_tensor_uint8s(&tensors[0])[i], 'a');
            if (near > 0) CHECK_EQ(mr_tensor_uint8s(&tensors[0])[near - 1], 'a');
            mr_tensor_deinit(&tensors[0]);
            mr_tensor_deinit(&tensors[1]);
        }
    CHECK_OK(mr_tensor_init_on(&tensors[0], device, MR_STRING, MR_SHAPE(4), &error));
    CHECK_EQ(mr_tensor_strings(&tensors[0])[3].size_bytes, 0);
    mr_tensor_deinit(&tensors[0]);
    CHECK_STATUS(mr_tensor_init_on(&tensors[0], device, MR_FLOAT, MR_SHAPE((int64_t)1 << 58), &error),
                 MR_RESOURCE_EXHAUSTED);
    CHECK_STATUS(mr_tensor_init_on(&tensors[0], device, MR_FLOAT, MR_SHAPE(-1), &error), MR_INVALID_ARGUMENT);
    mr_device_free(device);
    mr_device_free(nullptr);
}
