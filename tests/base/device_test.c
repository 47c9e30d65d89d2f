/* The CPU device: it reuses returned blocks, its buffers outlive it, its names are TensorFlow's, and the process shares
 * one. */
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

TEST(device_cpu_blocks_have_their_size)
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

TEST(device_names_are_tensorflows)
{
    mr_error error = {0};
    static const struct {
        const char *name;
        mr_device_kind kind;
        int index;
    } good[] = {{"/gpu:1", MR_DEVICE_GPU, 1},
                {"/device:GPU:0", MR_DEVICE_GPU, 0},
                {"/job:localhost/replica:0/task:0/device:CPU:0", MR_DEVICE_CPU, 0},
                {"GPU", MR_DEVICE_GPU, 0},
                {"/device:gpu:*", MR_DEVICE_GPU, 0},
                {"cpu:3", MR_DEVICE_CPU, 3}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        mr_device_kind kind;
        int index;
        CHECK_OK(mr_device_parse(good[i].name, &kind, &index, &error));
        CHECK(kind == good[i].kind && index == good[i].index);
    }
    static const char *const bad[] = {"",
                                      "/",
                                      "/gpu:x",
                                      "/gpu:-1",
                                      "/gpus:0",
                                      "nonsense",
                                      "/device:",
                                      "/gpu:0:0",
                                      "/job:localhost",
                                      "/gpu:0/cpu:0",
                                      "/device:GPU:12345678901",
                                      "/device:TPU:0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mr_device *device;
        CHECK_STATUS(mr_device_open(bad[i], &device, &error), MR_INVALID_ARGUMENT);
        CHECK(device == nullptr);
        CHECK_CONTAINS(error.message, "not a device name");
    }
}

TEST(device_of_the_process_is_shared)
{
    mr_error error = {0};
    mr_device *first, *second, *none;
    CHECK_OK(mr_device_open("/cpu:0", &first, &error));
    CHECK_OK(mr_device_open("/device:CPU:0", &second, &error));
    CHECK(first == second);
    CHECK_STR(mr_device_name(first), "/device:CPU:0");
    CHECK_STATUS(mr_device_open("/cpu:1", &none, &error), MR_UNAVAILABLE);
    CHECK_STATUS(mr_device_open("/gpu:99", &none, &error), MR_UNAVAILABLE);
    mr_tensor tensor, same;
    CHECK_OK(mr_tensor_init_float(&tensor, 1.0f, &error));
    CHECK_OK(mr_tensor_to_device(&tensor, first, &same, &error));
    CHECK(same.buffer == tensor.buffer && mr_tensor_device(&same) == nullptr);
    mr_tensor_deinit(&tensor);
    mr_tensor_deinit(&same);
    /* On the CPU, which has no queue, copy_async is an ordinary copy. */
    const mr_device_functions *f = first->functions;
    mr_event *event;
    mr_buffer *there;
    CHECK_OK(f->event_new(first, &event, &error));
    CHECK_OK(f->allocate_for_async_copy(first, 3, &there, &error));
    CHECK_OK(f->copy_async(first, mr_buffer_data(there), "dog", 3, &error));
    CHECK_OK(f->event_record(first, event, &error));
    CHECK_OK(f->queue_wait(first, event, &error));
    CHECK_OK(f->event_wait(first, event, &error));
    CHECK(memcmp(mr_buffer_data(there), "dog", 3) == 0);
    mr_buffer_unref(there);
    f->event_free(first, event);
    mr_device_close(second);
    mr_device_close(first);
    mr_device_close(nullptr);
}
