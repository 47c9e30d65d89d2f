/* The GPU device: opening, memory, copies and events. The fake driver works in host memory and defers all work as long
 * as possible. */
#include "base/buffer.h"
#include "base/dlpack.h"
#include "builtin/builtin.h"
#include "tests/cuda/fake.h"
#include "tests/test.h"

static mr_device *open_fake(void)
{
    mr_error error = {0};
    mr_device *gpu;
    CHECK_OK(mr_cuda_device_new(fake_system(), 0, &gpu, &error));
    return gpu;
}

TEST(cuda_absence_is_one_sentence)
{
    mr_error error = {0};
    mr_device *gpu;
    const mr_cuda_system *system = fake_system();
    fake.device_count = 0;
    CHECK_STATUS(mr_cuda_device_new(system, 0, &gpu, &error), MR_UNAVAILABLE);
    CHECK_CONTAINS(error.message, "there is no GPU 0: the driver reports 0");
    CHECK(gpu == nullptr);
    fake.device_count = 1;
    CHECK_STATUS(mr_cuda_device_new(system, 1, &gpu, &error), MR_UNAVAILABLE);
    fake.capability_major = 6;
    CHECK_STATUS(mr_cuda_device_new(system, 0, &gpu, &error), MR_UNAVAILABLE);
    CHECK_CONTAINS(error.message, "Paper 100");
    CHECK_CONTAINS(error.message, "too old");
    CHECK_EQ(fake.contexts, 0);
}

TEST(cuda_entry_is_registered)
{
    mr_error error = {0};
    mr_device *gpu = nullptr;
    mr_builtin_register();
    const mr_device_entry *entry = mr_device_entry_find(MR_DEVICE_GPU);
    CHECK(entry != nullptr);
    CHECK_STR(entry->kind_name, "GPU");
    /* With a GPU, open returns a device; without one, an error with the reason. */
    mr_status status = entry->open(0, &gpu, &error);
    CHECK(status == MR_OK || (status == MR_UNAVAILABLE && strlen(error.message) > 10));
    mr_device_free(gpu);
}

TEST(cuda_copies_keep_their_order)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    const mr_device_functions *f = gpu->functions;
    mr_buffer *there;
    uint32_t first = 1, second = 2, seen[2] = {0};
    CHECK_OK(f->allocate(gpu, 4, &there, &error));
    CHECK_OK(f->copy_in(gpu, mr_buffer_data(there), &first, 4, &error));
    CHECK_OK(f->copy_out(gpu, &seen[0], mr_buffer_data(there), 4, &error));
    CHECK_OK(f->copy_in(gpu, mr_buffer_data(there), &second, 4, &error));
    CHECK_OK(f->copy_out(gpu, &seen[1], mr_buffer_data(there), 4, &error));
    CHECK_EQ(seen[1], 0);
    CHECK_OK(f->wait(gpu, &error));
    CHECK_EQ(seen[0], 1);
    CHECK_EQ(seen[1], 2);
    mr_buffer_unref(there);
    mr_device_free(gpu);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_EQ(fake.live_streams, 0);
    CHECK_EQ(fake.contexts, 0);
}

/* Large copies from pinned memory run concurrently with queued work and still complete in order, even if there are more
 * copies than staging buffers. */
TEST(cuda_pinned_copies_arrive_in_order)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    const mr_device_functions *f = gpu->functions;
    constexpr size_t count = 100000, rounds = 7;
    mr_buffer *slots[rounds], *there[rounds], *host;
    CHECK_OK(f->allocate_host(gpu, count * 4, &host, &error));
    for (size_t i = 0; i < rounds; i++) {
        CHECK_OK(f->allocate_host(gpu, count * 4, &slots[i], &error));
        CHECK_OK(f->allocate(gpu, count * 4, &there[i], &error));
        uint32_t *values = mr_buffer_data(slots[i]);
        for (size_t j = 0; j < count; j++) values[j] = (uint32_t)(i * count + j);
        CHECK_OK(f->copy_in(gpu, mr_buffer_data(there[i]), values, count * 4, &error));
    }
    CHECK_EQ(fake.staged_copies, rounds);
    for (size_t i = 0; i < rounds; i++) {
        uint32_t *values = mr_buffer_data(host);
        CHECK_OK(f->copy_out(gpu, values, mr_buffer_data(there[i]), count * 4, &error));
        CHECK_OK(f->wait(gpu, &error));
        CHECK_EQ(values[0], i * count);
        CHECK_EQ(values[count - 1], i * count + count - 1);
        mr_buffer_unref(slots[i]);
        mr_buffer_unref(there[i]);
    }
    mr_buffer_unref(host);
    mr_device_free(gpu);
    CHECK_EQ(fake.live_pinned, 0);
    CHECK_EQ(fake.live_events, 0);
}

/* A slot that is returned during a copy from it is not reused before the copy has completed. */
TEST(cuda_pinned_slot_is_not_reused_too_soon)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    const mr_device_functions *f = gpu->functions;
    constexpr size_t size_bytes = 1 << 20;
    mr_buffer *slot, *again, *there;
    CHECK_OK(f->allocate(gpu, size_bytes, &there, &error));
    CHECK_OK(f->allocate_host(gpu, size_bytes, &slot, &error));
    memset(mr_buffer_data(slot), 1, size_bytes);
    void *address = mr_buffer_data(slot);
    CHECK_OK(f->copy_in(gpu, mr_buffer_data(there), address, size_bytes, &error));
    mr_buffer_unref(slot);
    CHECK_OK(f->allocate_host(gpu, size_bytes, &again, &error));
    CHECK(mr_buffer_data(again) == address);
    memset(mr_buffer_data(again), 2, size_bytes);
    char seen = 0;
    CHECK_OK(f->copy_out(gpu, &seen, mr_buffer_data(there), 1, &error));
    CHECK_OK(f->wait(gpu, &error));
    CHECK_EQ(seen, 1);
    mr_buffer_unref(again);
    mr_buffer_unref(there);
    mr_device_free(gpu);
}

TEST(cuda_equal_steps_query_the_driver_once)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    for (int step = 0; step < 10; step++) {
        mr_tensor a, b;
        CHECK_OK(mr_tensor_init_on(&a, gpu, MR_FLOAT, MR_SHAPE(100, 30), &error));
        CHECK_OK(mr_tensor_init_on(&b, gpu, MR_FLOAT, MR_SHAPE(100, 31), &error));
        mr_tensor_deinit(&a);
        mr_tensor_deinit(&b);
    }
    CHECK_EQ(fake.allocations, 2);
    mr_device_free(gpu);
}

TEST(cuda_out_of_memory_releases_cached_blocks)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    const mr_device_functions *f = gpu->functions;
    mr_buffer *buffer;
    CHECK_OK(f->allocate(gpu, 1 << 20, &buffer, &error));
    mr_buffer_unref(buffer);
    fake.fail_allocations = 1;
    CHECK_OK(f->allocate(gpu, 2 << 20, &buffer, &error));
    CHECK_EQ(fake.live_allocations, 1);
    mr_buffer_unref(buffer);
    fake.fail_allocations = 2;
    CHECK_STATUS(f->allocate(gpu, 3 << 20, &buffer, &error), MR_RESOURCE_EXHAUSTED);
    CHECK_CONTAINS(error.message, "/device:GPU:0: no GPU memory for");
    CHECK(buffer == nullptr);
    mr_device_free(gpu);
}

TEST(cuda_buffers_outlive_their_device)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    mr_buffer *there, *slot;
    CHECK_OK(gpu->functions->allocate(gpu, 5000, &there, &error));
    CHECK_OK(gpu->functions->allocate_host(gpu, 5000, &slot, &error));
    mr_device_free(gpu);
    CHECK_EQ(fake.contexts, 1);
    memset(mr_buffer_data(slot), 1, 5000);
    mr_buffer_unref(slot);
    mr_buffer_unref(there);
    CHECK_EQ(fake.contexts, 0);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_EQ(fake.live_pinned, 0);
}

/* A concurrent copy neither waits for queued work nor delays it; work queued after its event sees the copied data. */
TEST(cuda_async_copies_are_ordered_by_events)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    const mr_device_functions *f = gpu->functions;
    mr_event *event;
    mr_buffer *there;
    uint32_t value = 7, before = 0, after = 0;
    CHECK_OK(f->event_new(gpu, &event, &error));
    CHECK_OK(f->allocate_for_async_copy(gpu, 4, &there, &error));
    CHECK(there->device == gpu);
    fake.logs = true;
    CHECK_OK(f->copy_async(gpu, mr_buffer_data(there), &value, 4, &error));
    CHECK_OK(f->event_record(gpu, event, &error));
    CHECK_OK(f->copy_out(gpu, &before, mr_buffer_data(there), 4, &error));
    CHECK_OK(f->queue_wait(gpu, event, &error));
    CHECK_OK(f->copy_out(gpu, &after, mr_buffer_data(there), 4, &error));
    CHECK_STR(fake.log, "CcRcWq");
    CHECK_OK(f->wait(gpu, &error));
    CHECK(before != 7);
    CHECK_EQ(after, 7);
    CHECK_EQ(fake.stream_waits, 1);
    f->event_free(gpu, event);
    mr_buffer_unref(there);
    mr_device_free(gpu);
    CHECK_EQ(fake.live_events, 0);
    CHECK_EQ(fake.live_allocations, 0);
}

/* Returned memory that queued work still reads is refilled only after that work. */
TEST(cuda_async_copy_waits_for_readers)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    const mr_device_functions *f = gpu->functions;
    mr_event *event;
    mr_buffer *there, *again;
    uint32_t values[2] = {1, 2}, seen = 0;
    CHECK_OK(f->event_new(gpu, &event, &error));
    CHECK_OK(f->allocate_for_async_copy(gpu, 4, &there, &error));
    CHECK_OK(f->copy_async(gpu, mr_buffer_data(there), &values[0], 4, &error));
    CHECK_OK(f->event_record(gpu, event, &error));
    CHECK_OK(f->queue_wait(gpu, event, &error));
    CHECK_OK(f->copy_out(gpu, &seen, mr_buffer_data(there), 4, &error));
    mr_buffer_unref(there);
    CHECK_OK(f->allocate_for_async_copy(gpu, 4, &again, &error));
    CHECK(again == there);
    CHECK_EQ(fake.stream_waits + fake.event_waits, 0);
    CHECK_OK(f->copy_async(gpu, mr_buffer_data(again), &values[1], 4, &error));
    CHECK_OK(f->event_record(gpu, event, &error));
    CHECK_OK(f->event_wait(gpu, event, &error));
    CHECK_EQ(seen, 1);
    f->event_free(gpu, event);
    mr_buffer_unref(again);
    mr_device_free(gpu);
}

TEST(cuda_tensors_say_where_they_lie)
{
    mr_error error = {0};
    mr_device *gpu, *same;
    fake_register();
    CHECK_OK(mr_device_open("/gpu:0", &gpu, &error));
    CHECK_OK(mr_device_open("/job:localhost/replica:0/task:0/device:GPU:0", &same, &error));
    CHECK(same == gpu);
    CHECK_STR(mr_device_name(gpu), "/device:GPU:0");
    mr_tensor host, there, share, back;
    CHECK_OK(mr_tensor_init_copy(&host, MR_FLOAT, MR_SHAPE(3), (float[]){1, 2, 3}, &error));
    CHECK(mr_tensor_device(&host) == nullptr);
    CHECK_OK(mr_tensor_to_device(&host, gpu, &there, &error));
    CHECK(mr_tensor_device(&there) == gpu);
    CHECK_OK(mr_tensor_to_device(&there, gpu, &share, &error));
    CHECK(share.buffer == there.buffer);
    /* Memory of a device that has been closed can still be read. */
    mr_device_close(gpu);
    mr_device_close(same);
    CHECK_EQ(fake.contexts, 1);
    CHECK_OK(mr_tensor_to_host(&there, &back, &error));
    CHECK(mr_tensor_floats(&back)[2] == 3);
    mr_tensor_deinit(&host);
    mr_tensor_deinit(&there);
    mr_tensor_deinit(&share);
    mr_tensor_deinit(&back);
    CHECK_EQ(fake.contexts, 0);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_OK(mr_tensor_init_string(&host, MR_STR("dog"), &error));
    CHECK_OK(mr_device_open("/gpu:0", &gpu, &error));
    CHECK_OK(mr_tensor_to_device(&host, gpu, &there, &error));
    CHECK(mr_tensor_device(&there) == nullptr && there.buffer == host.buffer);
    mr_tensor_deinit(&host);
    mr_tensor_deinit(&there);
    mr_device_close(gpu);
}

static mr_tensor numbers_on(mr_device *gpu)
{
    mr_error error = {0};
    mr_tensor host, there;
    CHECK_OK(mr_tensor_init_copy(&host, MR_FLOAT, MR_SHAPE(3), (float[]){1, 2, 3}, &error));
    CHECK_OK(mr_tensor_to_device(&host, gpu, &there, &error));
    mr_tensor_deinit(&host);
    return there;
}

TEST(cuda_tensors_are_exchanged_by_dlpack)
{
    fake_register();
    mr_error error = {0};
    mr_device *gpu = nullptr;
    CHECK_OK(mr_device_open("/gpu:0", &gpu, &error));
    mr_tensor there = numbers_on(gpu), same, back;
    struct DLManagedTensorVersioned *managed = nullptr;
    struct DLManagedTensor *unversioned = nullptr;
    CHECK_OK(mr_tensor_to_dlpack(&there, &managed, &error));
    CHECK_EQ(managed->tensor.device_type, MR_DLPACK_CUDA);
    CHECK_EQ(managed->tensor.device_id, 0);
    CHECK_STATUS(mr_tensor_to_dlpack_unversioned(&there, &unversioned, &error), MR_FAILED_PRECONDITION);
    /* Only contiguous elements, because nothing on the host can copy them. */
    int64_t *stride = managed->tensor.strides;
    *stride = 2;
    CHECK_STATUS(mr_tensor_from_dlpack(managed, &same, &error), MR_UNIMPLEMENTED);
    *stride = 1;
    managed->tensor.device_id = 7;
    CHECK_STATUS(mr_tensor_from_dlpack(managed, &same, &error), MR_UNAVAILABLE);
    managed->tensor.device_id = 0;
    CHECK_OK(mr_tensor_from_dlpack(managed, &same, &error));
    mr_tensor_deinit(&there);
    mr_device_close(gpu);
    CHECK(mr_tensor_device(&same) == gpu);
    CHECK_OK(mr_tensor_to_host(&same, &back, &error));
    CHECK(mr_tensor_floats(&back)[2] == 3);
    mr_tensor_deinit(&back);
    CHECK_EQ(fake.contexts, 1);
    mr_tensor_deinit(&same);
    CHECK_EQ(fake.contexts, 0);
    CHECK_EQ(fake.live_allocations, 0);
}
