/* The fake driver. Thread-safe: calls are serialized. */
#include "tests/cuda/fake.h"
#include "builtin/builtin.h"

#include "tests/cuda/emulator.h"
#include "tests/cuda/fake_libraries.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

fake_gpu fake;

/* Recursive, because work runs inside a call and makes calls itself. */
static pthread_mutex_t turn = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int take_turn(void)
{
    return pthread_mutex_lock(&turn);
}

static void end_turn(const int *)
{
    pthread_mutex_unlock(&turn);
}

void fake_lock(void)
{
    pthread_mutex_lock(&turn);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&turn);
}

fake_gpu fake_state(void)
{
    fake_lock();
    fake_gpu state = fake;
    fake_unlock();
    return state;
}

/* Zeroed memory for the fake driver itself. If a test makes this allocation fail, it is retried. */
static void *own(size_t size_bytes)
{
    void *made = calloc(1, size_bytes + 1);
    if (!made) made = calloc(1, size_bytes + 1);
    assert(made);
    fake.own_allocations++;
    return made;
}

#define TURN [[gnu::cleanup(end_turn), maybe_unused]] int held = take_turn()

/* ---- Streams: work in queue order ---- */

typedef struct work {
    struct work *next;
    void (*run)(void *data);
    void *data; /* owned */
} work;

struct CUstream_st {
    work *first, **last;
    uint64_t queued, done;
    int number; /* 0: the device's queue; 1: its copy stream */
};

/* Logs a letter for the call and one for its stream. */
static void note(char call, const struct CUstream_st *stream)
{
    if (!fake.logs || fake.log_size + 3 > (int)sizeof fake.log) return;
    fake.log[fake.log_size++] = call;
    fake.log[fake.log_size++] = stream->number == 0 ? 'q' : 'c';
    fake.log[fake.log_size] = '\0';
}

struct CUevent_st {
    mr_cu_stream stream; /* null: never recorded */
    uint64_t at;         /* number of the stream's work items that must have run */
};

static void run_until(mr_cu_stream stream, uint64_t at)
{
    while (stream->done < at && stream->first) {
        work *next = stream->first;
        stream->first = next->next;
        if (!stream->first) stream->last = &stream->first;
        stream->done++;
        next->run(next->data);
        free(next->data);
        free(next);
    }
}

void fake_queue(mr_cu_stream stream, void (*run)(void *data), const void *data, size_t size_bytes)
{
    TURN;
    work *added = own(sizeof *added);
    added->data = own(size_bytes);
    memcpy(added->data, data, size_bytes);
    added->run = run;
    *stream->last = added;
    stream->last = &added->next;
    stream->queued++;
}

static mr_cu_result stream_new(mr_cu_stream *stream, unsigned)
{
    TURN;
    *stream = own(sizeof **stream);
    (*stream)->number = fake.streams++;
    (*stream)->last = &(*stream)->first;
    fake.live_streams++;
    return 0;
}

static mr_cu_result stream_wait(mr_cu_stream stream)
{
    TURN;
    fake.stream_waits++;
    note('S', stream);
    run_until(stream, stream->queued);
    return 0;
}

static mr_cu_result stream_free(mr_cu_stream stream)
{
    TURN;
    run_until(stream, stream->queued);
    free(stream);
    fake.live_streams--;
    return 0;
}

static mr_cu_result event_new(mr_cu_event *event, unsigned)
{
    TURN;
    fake.event_news++;
    *event = own(sizeof **event);
    fake.live_events++;
    return 0;
}

static mr_cu_result event_free(mr_cu_event event)
{
    TURN;
    free(event);
    fake.live_events--;
    return 0;
}

static mr_cu_result event_record(mr_cu_event event, mr_cu_stream stream)
{
    TURN;
    note('R', stream);
    *event = (struct CUevent_st){stream, stream->queued};
    return 0;
}

static mr_cu_result event_wait(mr_cu_event event)
{
    TURN;
    fake.event_waits++;
    if (fake.fail_event_wait != 0) return fake.fail_event_wait;
    if (event->stream) run_until(event->stream, event->at);
    return 0;
}

static void run_event(void *data)
{
    struct CUevent_st *event = data;
    if (event->stream) run_until(event->stream, event->at);
}

/* Waits for the event's current recording; a later recording is independent. */
static mr_cu_result stream_wait_event(mr_cu_stream stream, mr_cu_event event, unsigned)
{
    TURN;
    note('W', stream);
    fake_queue(stream, run_event, event, sizeof *event);
    return 0;
}

/* ---- Memory ---- */

typedef struct header {
    size_t size_bytes;
    char rest[56];
} header;

static mr_cu_result take(void **pointer, size_t size_bytes)
{
    if (fake.fail_allocations > 0) {
        fake.fail_allocations--;
        return MR_CU_OUT_OF_MEMORY;
    }
    header *made = aligned_alloc(64, sizeof(header) + (size_bytes + 63) / 64 * 64);
    if (!made) return MR_CU_OUT_OF_MEMORY;
    made->size_bytes = size_bytes;
    memset(made + 1, 0xa5, size_bytes);
    *pointer = made + 1;
    return 0;
}

static void give(void *pointer)
{
    header *gone = (header *)pointer - 1;
    memset(pointer, 0x5a, gone->size_bytes);
    free(gone);
}

static mr_cu_result allocate(mr_cu_pointer *pointer, size_t size_bytes, mr_cu_stream)
{
    TURN;
    void *made = nullptr;
    mr_cu_result result = take(&made, size_bytes);
    *pointer = (mr_cu_pointer)(uintptr_t)made;
    if (result != 0) return result;
    fake.allocations++;
    fake.live_allocations++;
    return 0;
}

static void run_release(void *data)
{
    give(*(void **)data);
    fake.live_allocations--;
}

static mr_cu_result release(mr_cu_pointer pointer, mr_cu_stream stream)
{
    TURN;
    void *gone = (void *)(uintptr_t)pointer;
    fake_queue(stream, run_release, &gone, sizeof gone);
    return 0;
}

static mr_cu_result host_allocate(void **pointer, size_t size_bytes, unsigned)
{
    TURN;
    fake.host_allocations++;
    mr_cu_result result = take(pointer, size_bytes);
    fake.live_pinned += result == 0;
    return result;
}

static mr_cu_result host_release(void *pointer)
{
    TURN;
    give(pointer);
    fake.live_pinned--;
    return 0;
}

typedef struct move {
    void *target;
    const void *source;
    size_t size_bytes;
    void *owned; /* a copy of pageable memory */
} move;

static void run_move(void *data)
{
    move *m = data;
    memcpy(m->target, m->source, m->size_bytes);
    free(m->owned);
}

/* Treats all memory as pinned: the bytes are read when the stream reaches the copy. */
static mr_cu_result copy_in(mr_cu_pointer target, const void *source, size_t size_bytes, mr_cu_stream stream)
{
    TURN;
    if (fake.fail_copies > 0 && fake.fail_copies-- == 1) return 700;
    note('C', stream);
    move m = {(void *)(uintptr_t)target, source, size_bytes, nullptr};
    fake.copies_in++;
    fake.async_copies += stream->number == 1;
    fake_queue(stream, run_move, &m, sizeof m);
    return 0;
}

static mr_cu_result copy_out(void *target, mr_cu_pointer source, size_t size_bytes, mr_cu_stream stream)
{
    TURN;
    move m = {target, (const void *)(uintptr_t)source, size_bytes, nullptr};
    fake_queue(stream, run_move, &m, sizeof m);
    return 0;
}

static mr_cu_result copy(mr_cu_pointer target, mr_cu_pointer source, size_t size_bytes, mr_cu_stream stream)
{
    TURN;
    fake.staged_copies++;
    return copy_out((void *)(uintptr_t)target, source, size_bytes, stream);
}

typedef struct filling {
    void *target;
    size_t size_bytes;
    unsigned char value;
} filling;

static void run_fill(void *data)
{
    filling *f = data;
    memset(f->target, f->value, f->size_bytes);
}

static mr_cu_result fill_bytes(mr_cu_pointer target, unsigned char value, size_t size_bytes, mr_cu_stream stream)
{
    TURN;
    filling f = {(void *)(uintptr_t)target, size_bytes, value};
    fake_queue(stream, run_fill, &f, sizeof f);
    return 0;
}

/* ---- Devices ---- */

static mr_cu_result init(unsigned)
{
    return 0;
}

static mr_cu_result error_string(mr_cu_result error, const char **text)
{
    *text = error == MR_CU_OUT_OF_MEMORY ? "out of memory" : "an illegal memory access was encountered";
    return 0;
}

static mr_cu_result device_count(int *count)
{
    *count = fake.device_count;
    return fake.device_count > 0 ? 0 : MR_CU_NO_DEVICE;
}

static mr_cu_result device_get(mr_cu_device *device, int index)
{
    *device = index;
    return 0;
}

static mr_cu_result device_name(char *name, int size_bytes, mr_cu_device)
{
    strncpy(name, "Paper 100", (size_t)size_bytes);
    return 0;
}

static mr_cu_result device_attribute(int *value, unsigned attribute, mr_cu_device)
{
    *value = attribute == MR_CU_ATTRIBUTE_MAJOR ? fake.capability_major : attribute == MR_CU_ATTRIBUTE_MINOR ? 0 : 2;
    return 0;
}

static mr_cu_result device_pool(mr_cu_pool *pool, mr_cu_device)
{
    *pool = (mr_cu_pool)&fake;
    return 0;
}

static mr_cu_result context_retain(mr_cu_context *context, mr_cu_device)
{
    TURN;
    fake.contexts++;
    *context = (mr_cu_context)&fake;
    return 0;
}

static mr_cu_result context_release(mr_cu_device)
{
    TURN;
    fake.contexts--;
    return 0;
}

static mr_cu_result context_set(mr_cu_context context)
{
    return context == (mr_cu_context)&fake ? 0 : 201;
}

static mr_cu_result pool_set(mr_cu_pool, unsigned, void *)
{
    return 0;
}

/* ---- Kernels ---- */

static mr_cu_result module_load(mr_cu_module *module, const void *image)
{
    *module = (mr_cu_module)image;
    return 0;
}

static mr_cu_result module_free(mr_cu_module)
{
    return 0;
}

static mr_cu_result module_function(mr_cu_function *function, mr_cu_module, const char *name)
{
    *function = (mr_cu_function)emulator_find(name);
    return *function ? 0 : 500;
}

typedef struct launching {
    const emulated_kernel *kernel;
    emulator_index grid, block;
    max_align_t arguments[64];
} launching;

static void run_launch(void *data)
{
    launching *l = data;
    emulator_launch(l->kernel, l->grid, l->block, l->arguments);
}

static mr_cu_result launch(mr_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned, mr_cu_stream stream, void **parameters,
                           void **)
{
    TURN;
    if (fake.fail_launch != 0) return fake.fail_launch;
    launching l = {(const emulated_kernel *)function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {{0}}};
    assert(l.kernel->arguments_bytes <= sizeof l.arguments);
    memcpy(l.arguments, parameters[0], l.kernel->arguments_bytes);
    fake.launches++;
    fake_queue(stream, run_launch, &l, sizeof l);
    return 0;
}

/* ---- The system ---- */

static const void *image(mr_cuda_module)
{
    return &fake;
}

const mr_cuda_system *fake_system(void)
{
#define FIELD(field, symbol, result, arguments) .field = field,
    static const mr_cuda_driver driver = {MR_CUDA_DRIVER_FUNCTIONS(FIELD)};
    static const mr_cuda_system system = {&driver, fake_open_blas, fake_open_dnn, image};
    fake = (fake_gpu){.device_count = 1, .capability_major = 9};
    return &system;
}

static const mr_cuda_system *registered;

static mr_status open_registered(int index, mr_device **device, mr_error *error)
{
    return mr_cuda_device_new(registered, index, device, error);
}

void fake_register(void)
{
    static const mr_device_entry entry = {"GPU", MR_DEVICE_GPU, open_registered};
    registered = fake_system();
    mr_builtin_register();
    mr_device_register(&entry);
}
