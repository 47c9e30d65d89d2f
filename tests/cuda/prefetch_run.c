/* A step's work consists of copies within device memory, because every device supports them. */
#include "tests/cuda/prefetch_run.h"

#include "base/device.h"

#include <time.h>

typedef struct run {
    mr_device *device;
    mr_iterator *iterator;
    mr_element element;
    mr_tensor scratch, seen;
} run;

static void run_deinit(run *r)
{
    mr_element_deinit(&r->element);
    mr_iterator_free(r->iterator);
    mr_tensor_deinit(&r->scratch);
    mr_tensor_deinit(&r->seen);
    mr_device_close(r->device);
}

/* Batches of different rows, repeated indefinitely. */
static mr_dataset *dataset_of(prefetch_size size, mr_error *error)
{
    mr_tensor rows;
    if (mr_tensor_init(&rows, MR_FLOAT, MR_SHAPE(size.rows, size.side, size.side, 3), error) != MR_OK) return nullptr;
    for (int64_t i = 0; i < mr_tensor_count(&rows); i++) mr_tensor_floats(&rows)[i] = (float)(i % 1000003);
    mr_dataset *d = mr_dataset_repeat(mr_dataset_from_slices(&rows, 1), MR_INFINITE);
    mr_tensor_deinit(&rows);
    return mr_dataset_batch(d, size.batch, .drop_remainder = true);
}

static mr_status allocate_pinned(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    mr_device *device = context;
    return device->functions->allocate_host(device, size_bytes, buffer, error);
}

static mr_status open_run(run *r, const char *device, bool is_there, prefetch_size size, mr_error *error)
{
    mr_iterator_options options = {.size = sizeof options};
    mr_dataset *d = dataset_of(size, error);
    if (!d) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for rows");
    d = is_there ? mr_dataset_prefetch_to_device(d, device, 3) : mr_dataset_prefetch(d, 3);
    mr_status status = mr_device_open(device, &r->device, error);
    if (status == MR_OK && !is_there) {
        options.allocate = allocate_pinned;
        options.allocate_context = r->device;
    }
    if (status == MR_OK) status = mr_iterator_new(d, &options, &r->iterator, error);
    mr_dataset_free(d);
    mr_shape shape = MR_SHAPE(size.batch, size.side, size.side, 3);
    if (status == MR_OK) status = mr_tensor_init_on(&r->scratch, r->device, MR_FLOAT, shape, error);
    return status;
}

static mr_status compare(run *r, prefetch_size size, mr_error *error)
{
    size_t batch_bytes = mr_tensor_size_bytes(&r->scratch);
    mr_shape shape = MR_SHAPE(size.steps, size.batch, size.side, size.side, 3);
    MR_TRY(mr_tensor_init_on(&r->seen, r->device, MR_FLOAT, shape, error));
    for (int32_t i = 0; i < size.steps; i++) {
        MR_TRY(mr_iterator_next(r->iterator, &r->element, error));
        if (mr_tensor_device(&r->element.tensors[0]) != r->device)
            return mr_fail(error, MR_INTERNAL, "a batch is not on the device");
        MR_TRY(r->device->functions->copy(r->device, (char *)r->seen.data + (size_t)i * batch_bytes,
                                          r->element.tensors[0].data, batch_bytes, error));
        mr_element_deinit(&r->element);
    }
    mr_tensor host;
    MR_TRY(mr_tensor_to_host(&r->seen, &host, error));
    mr_status status = MR_OK;
    int64_t row = (int64_t)size.side * size.side * 3, period = size.rows * row;
    for (int64_t i = 0; i < mr_tensor_count(&host) && status == MR_OK; i++)
        if (mr_tensor_floats(&host)[i] != (float)(i % period % 1000003))
            status = mr_fail(error, MR_DATA_LOSS, "prefetch_to_device: element %lld of %lld is wrong", (long long)i,
                             (long long)mr_tensor_count(&host));
    mr_tensor_deinit(&host);
    return status;
}

mr_status prefetch_compare(const char *device, mr_error *error)
{
    run r = {0};
    prefetch_size size = {.batch = 8, .side = 64, .rows = 56, .steps = 100};
    mr_status status = open_run(&r, device, true, size, error);
    if (status == MR_OK) status = compare(&r, size, error);
    run_deinit(&r);
    return status;
}

/* ---- Times ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Queues a step's work on a batch. */
static mr_status work(const run *r, const mr_tensor *batch, mr_error *error)
{
    constexpr int COPIES = 60;
    for (int i = 0; i < COPIES; i++)
        MR_TRY(r->device->functions->copy(r->device, r->scratch.data, batch->data, mr_tensor_size_bytes(batch), error));
    return MR_OK;
}

typedef enum kind { ALONE, STEP, BESIDE, INSIDE } kind;

static mr_status one_step(run *r, kind kind, mr_tensor *batch, mr_error *error)
{
    const mr_device_functions *f = r->device->functions;
    if (kind != STEP) MR_TRY(mr_iterator_next(r->iterator, &r->element, error));
    if (kind == ALONE) return MR_OK;
    if (kind == INSIDE)
        MR_TRY(f->copy_in(r->device, batch->data, r->element.tensors[0].data, mr_tensor_size_bytes(batch), error));
    MR_TRY(work(r, kind == BESIDE ? &r->element.tensors[0] : batch, error));
    return f->wait(r->device, error);
}

static mr_status time_steps(const char *device, kind kind, prefetch_size size, double *seconds, mr_error *error)
{
    constexpr int WARM = 5;
    run r = {0};
    mr_tensor batch = {0};
    double begin = 0;
    mr_status status = open_run(&r, device, kind != INSIDE, size, error);
    if (status == MR_OK) status = mr_tensor_init_on(&batch, r.device, MR_FLOAT, r.scratch.shape, error);
    for (int32_t i = 0; i < size.steps + WARM && status == MR_OK; i++) {
        if (i == WARM) begin = now();
        status = one_step(&r, kind, &batch, error);
    }
    if (status == MR_OK) status = r.device->functions->wait(r.device, error);
    *seconds = (now() - begin) / size.steps;
    mr_tensor_deinit(&batch);
    run_deinit(&r);
    return status;
}

mr_status prefetch_time(const char *device, prefetch_size size, prefetch_times *times, mr_error *error)
{
    *times = (prefetch_times){.batch_bytes = (size_t)size.batch * (size_t)size.side * (size_t)size.side * 3 * 4};
    MR_TRY(time_steps(device, ALONE, size, &times->alone_s, error));
    MR_TRY(time_steps(device, STEP, size, &times->step_s, error));
    MR_TRY(time_steps(device, BESIDE, size, &times->beside_s, error));
    return time_steps(device, INSIDE, size, &times->inside_s, error);
}
