/* prefetch_to_device: the last stage, which copies elements to a device before they are requested.
 *
 * A dedicated thread takes an element from the engine below, allocates device memory, queues the copies on the device's
 * copy stream, records an event after them, and makes the element available at once. The consumer makes the device's
 * compute stream wait for the event; it does not wait itself. The source of the copies is retained until the event has
 * occurred. The thread waits for that event when it has received the next element, so a copy proceeds while the next
 * element is produced.
 *
 * Locking: one mutex, which is not held while an element is taken, copied or waited for. Elements are in a ring: a ring
 * entry belongs to the thread while it is filled, until the tail passes it, and then to the consumer until the head
 * passes it. copy_to_device has no thread: the consumer does all of it. */
#include "base/thread.h"
#include "pipeline/engine/engine.h"
#include "pipeline/to_device.h"

#include <assert.h>
#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>

constexpr int32_t DEPTH_MAX = 1024, DEPTH_TUNED = 2;

typedef struct settings {
    mr_prefetch_settings prefetch; /* first member, because on the CPU this is a prefetch */
    mr_device *device;             /* owned reference */
    bool has_thread;
} settings;

/* One element on the device. */
typedef struct ready {
    mr_tensor tensors[MR_COMPONENTS_MAX];
    uint32_t crcs[MR_COMPONENTS_MAX];
    mr_event *event;      /* recorded after its copies */
    bool has_copies;      /* the event has been recorded */
    bool is_last;         /* a failure that nothing follows */
    mr_error failure;     /* instead of the element; MR_OK if there is none */
    mr_state state;       /* state of the input before it, if a position is not enough */
    mr_error state_error; /* why the state could not be saved */
} ready;

/* The mutex guards everything from `mutex` on. */
typedef struct to_device {
    mr_stage stage;
    mr_device *device;
    int32_t count; /* number of components */
    int32_t size;  /* of the ring */
    ready *ring;
    mr_note note;
    uint32_t trace_number;
    pthread_t thread;
    /* Belong to the thread, or to the caller while there is none: the element being copied, and the event of its
     * copies. */
    mr_tensor source[MR_COMPONENTS_MAX];
    mr_event *source_event;
    mr_error late_error; /* failure of a copy after its element was delivered */

    pthread_mutex_t mutex;
    pthread_cond_t work, changed; /* for the thread; for the others */
    uint64_t head, tail;
    bool has_thread, is_active, is_state_saved, is_idle, has_ended, is_paused, is_stopping, is_cancelled;
} to_device;

static ready *slot_at(const to_device *t, uint64_t sequence)
{
    assert(t->size > 0);
    return &t->ring[sequence % (uint64_t)t->size];
}

static void drop(const to_device *t, mr_tensor *tensors)
{
    for (int32_t c = 0; c < t->count; c++) mr_tensor_deinit(&tensors[c]);
}

/* ---- Filling a ring entry: the thread, without the lock ---- */

static mr_status wait_for(const to_device *t, mr_event *event, mr_error *error)
{
    return t->device->functions->event_wait(t->device, event, error);
}

/* Waits for the previous element's copies, and returns their source memory to the pipeline. */
static void release_source(to_device *t)
{
    if (t->source_event == nullptr) return;
    mr_error error = {0};
    mr_status status = wait_for(t, t->source_event, &error);
    if (status != MR_OK) {
        t->late_error = error;
        t->late_error.status = status;
    }
    t->source_event = nullptr;
    drop(t, t->source);
    assert(t->late_error.status != MR_OK || status == MR_OK);
}

static mr_status copy_tensor(const to_device *t, const mr_tensor *host, mr_tensor *there, mr_error *error)
{
    mr_device *device = t->device;
    mr_buffer *buffer = nullptr;
    size_t size_bytes = mr_tensor_size_bytes(host);
    MR_TRY(device->functions->allocate_for_async_copy(device, size_bytes, &buffer, error));
    *there = (mr_tensor){host->dtype, host->shape, buffer, mr_buffer_data(buffer)};
    return device->functions->copy_async(device, there->data, host->data, size_bytes, error);
}

/* Strings stay in host memory. */
static mr_status copy_element(to_device *t, mr_tensor *host, ready *r, mr_error *error)
{
    uint64_t bytes = 0;
    mr_status status = MR_OK;
    r->has_copies = false;
    for (int32_t c = 0; c < t->count && status == MR_OK; c++) {
        if (host[c].dtype == MR_STRING) {
            r->tensors[c] = host[c];
            host[c] = (mr_tensor){0};
            continue;
        }
        size_t size_bytes = mr_tensor_size_bytes(&host[c]);
        if (t->stage.run->has_digest) r->crcs[c] = mr_crc32c(0, host[c].data, size_bytes);
        r->has_copies = true;
        bytes += size_bytes;
        status = copy_tensor(t, &host[c], &r->tensors[c], error);
    }
    mr_status recorded = MR_OK;
    if (r->has_copies)
        recorded = t->device->functions->event_record(t->device, r->event, status == MR_OK ? error : nullptr);
    mr_count(&t->stage.counters->bytes, bytes);
    return status == MR_OK ? recorded : status;
}

static void start_copy(to_device *t, mr_tensor *host, ready *r)
{
    mr_status status = copy_element(t, host, r, &r->failure);
    if (status == MR_OK && r->has_copies) {
        assert(t->source_event == nullptr);
        memcpy(t->source, host, (size_t)t->count * sizeof *host);
        t->source_event = r->event;
        return;
    }
    if (status != MR_OK) {
        (void)mr_fail_prefix(&r->failure, status, "%s: element %llu", t->stage.dataset->kind->name,
                             (unsigned long long)(t->stage.input->position - 1));
        /* Some of its copies may be in progress. */
        if (r->has_copies) (void)wait_for(t, r->event, nullptr);
        drop(t, r->tensors);
    }
    drop(t, host);
}

/* Saves the input's state before the element is taken. A failure is only reported to a caller that saves. */
static void save_state(const to_device *t, ready *r)
{
    mr_stage *input = t->stage.input;
    if (input->is_seekable) return;
    mr_state_clear(&r->state);
    r->state_error.status = mr_stage_save(input, &r->state, &r->state_error);
}

static void fill(to_device *t, ready *r)
{
    mr_stage *input = t->stage.input;
    mr_counters *counters = t->stage.counters;
    mr_trace *trace = mr_watch_trace(t->stage.run->watch);
    mr_tensor host[MR_COMPONENTS_MAX] = {0};
    uint64_t before = input->position, start_ns = mr_now_ns();
    mr_note_element(&t->note, before, MR_NOTE_PULL);
    mr_note_since(&t->note, start_ns);
    mr_note_stage(&t->note, mr_dataset_without_options(t->stage.dataset->input)->kind->name);
    mr_status status = mr_engine_next(input, host, &r->failure);
    uint64_t pulled_ns = mr_now_ns();
    mr_count(&counters->input_wait_ns, pulled_ns - start_ns);
    mr_note_element(&t->note, before, MR_NOTE_BATCH);
    mr_note_since(&t->note, pulled_ns);
    mr_note_stage(&t->note, t->stage.dataset->kind->name);
    release_source(t);
    r->failure.status = status;
    r->is_last = status == MR_OUT_OF_RANGE || status == MR_CANCELLED || (status != MR_OK && input->position == before);
    if (status == MR_OK && t->late_error.status != MR_OK) {
        r->failure = t->late_error;
        (void)mr_fail_prefix(&r->failure, t->late_error.status, "%s: the previous element",
                             t->stage.dataset->kind->name);
        drop(t, host);
    } else if (status == MR_OK) {
        start_copy(t, host, r);
    }
    t->late_error = (mr_error){0};
    mr_note_stage(&t->note, nullptr);
    uint64_t end_ns = mr_now_ns();
    mr_count(&counters->busy_ns, end_ns - pulled_ns);
    if (trace != nullptr && status == MR_OK) mr_trace_slice(trace, t->stage.dataset->kind->name, pulled_ns, end_ns, 1);
}

/* ---- The thread ---- */

/* Lock held. */
static void trace_ring(const to_device *t)
{
    mr_trace *trace = mr_watch_trace(t->stage.run->watch);
    uint64_t count = t->tail - t->head;
    assert(count <= (uint64_t)t->size);
    if (trace != nullptr)
        mr_trace_slots(trace, t->stage.dataset->kind->name, t->trace_number, mr_now_ns(), count, count);
}

/* Lock held; released while filling. */
static void fill_next(to_device *t)
{
    ready *r = slot_at(t, t->tail);
    assert(!t->is_active && t->tail - t->head < (uint64_t)t->size);
    t->is_active = true;
    t->is_state_saved = false;
    pthread_mutex_unlock(&t->mutex);
    save_state(t, r);
    pthread_mutex_lock(&t->mutex);
    t->is_state_saved = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    fill(t, r);
    pthread_mutex_lock(&t->mutex);
    assert(t->is_active && t->is_state_saved);
    t->is_active = false;
    t->has_ended = r->is_last;
    t->tail++;
    trace_ring(t);
    pthread_cond_broadcast(&t->changed);
}

static bool has_work(const to_device *t)
{
    assert(t->head <= t->tail && t->tail - t->head <= (uint64_t)t->size);
    return !t->is_paused && !t->has_ended && !t->is_cancelled && t->tail - t->head < (uint64_t)t->size;
}

static void *thread_main(void *argument)
{
    to_device *t = argument;
    mr_trace *trace = mr_watch_trace(t->stage.run->watch);
    if (trace != nullptr) mr_trace_thread(trace, t->stage.dataset->kind->name, 0);
    pthread_mutex_lock(&t->mutex);
    while (!t->is_stopping) {
        if (has_work(t)) {
            fill_next(t);
            continue;
        }
        if (t->source_event != nullptr) {
            pthread_mutex_unlock(&t->mutex);
            release_source(t);
            pthread_mutex_lock(&t->mutex);
            continue;
        }
        uint64_t start_ns = mr_now_ns();
        mr_note_since(&t->note, start_ns);
        t->is_idle = true;
        pthread_cond_broadcast(&t->changed);
        pthread_cond_wait(&t->work, &t->mutex);
        t->is_idle = false;
        mr_count(&t->stage.counters->output_wait_ns, mr_now_ns() - start_ns);
    }
    pthread_mutex_unlock(&t->mutex);
    release_source(t);
    return nullptr;
}

/* Lock held. */
static mr_status start(to_device *t, mr_error *error)
{
    if (t->has_thread || !((const settings *)t->stage.dataset->settings)->has_thread) return MR_OK;
    if (mr_thread_create(&t->thread, thread_main, t) != 0)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: cannot start a thread", t->stage.dataset->kind->name);
    t->has_thread = true;
    return MR_OK;
}

/* ---- Delivery ---- */

static mr_status deliver(to_device *t, ready *r, mr_tensor *tensors, uint32_t *crcs, mr_error *error)
{
    mr_status status = r->failure.status;
    if (status != MR_OK) {
        if (error != nullptr) *error = r->failure;
        return status;
    }
    if (r->has_copies) status = t->device->functions->queue_wait(t->device, r->event, error);
    if (status != MR_OK) {
        drop(t, r->tensors);
        return status;
    }
    assert(t->count == t->stage.dataset->spec.count);
    memcpy(tensors, r->tensors, (size_t)t->count * sizeof *tensors);
    memset(r->tensors, 0, (size_t)t->count * sizeof *tensors);
    if (t->stage.run->has_digest) memcpy(crcs, r->crcs, (size_t)t->count * sizeof *crcs);
    mr_count(&t->stage.counters->elements, 1);
    return MR_OK;
}

/* Lock held; released while waiting. Waits for an entry that is ready, or for the end. */
static mr_status await_slot(to_device *t, mr_error *error)
{
    MR_TRY(start(t, error));
    while (t->head == t->tail && !t->is_cancelled) {
        if (t->has_thread)
            pthread_cond_wait(&t->changed, &t->mutex);
        else
            fill_next(t);
    }
    return t->is_cancelled ? mr_fail(error, MR_CANCELLED, "the pipeline was cancelled") : MR_OK;
}

mr_status mr_to_device_next(mr_stage *stage, mr_tensor *tensors, uint32_t *crcs, mr_error *error)
{
    to_device *t = (to_device *)stage;
    pthread_mutex_lock(&t->mutex);
    mr_status status = await_slot(t, error);
    ready *r = slot_at(t, t->head);
    pthread_mutex_unlock(&t->mutex);
    if (status != MR_OK) return status;
    status = deliver(t, r, tensors, crcs, error);
    if (r->is_last) return status;
    pthread_mutex_lock(&t->mutex);
    assert(t->head < t->tail);
    stage->position++;
    t->head++;
    mr_count(&stage->counters->delivered, 1);
    mr_count(&stage->counters->ready, t->tail - t->head);
    mr_count(&stage->counters->room, (uint64_t)t->size - 1);
    trace_ring(t);
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->mutex);
    return status;
}

/* ---- As a stage ---- */

/* On return the input belongs to the caller, and no element is ready or being copied. */
static void pause_thread(to_device *t)
{
    pthread_mutex_lock(&t->mutex);
    t->is_paused = true;
    pthread_cond_signal(&t->work);
    while (t->has_thread && !t->is_idle) pthread_cond_wait(&t->changed, &t->mutex);
    assert(!t->is_active);
    if (!t->has_thread) release_source(t);
    for (; t->head < t->tail; t->head++) drop(t, slot_at(t, t->head)->tensors);
    t->late_error = (mr_error){0};
    t->has_ended = false;
    pthread_mutex_unlock(&t->mutex);
}

static void resume_thread(to_device *t)
{
    pthread_mutex_lock(&t->mutex);
    t->is_paused = false;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->mutex);
}

static mr_status to_device_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    to_device *t = (to_device *)stage;
    pause_thread(t);
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    mr_status status = mr_stage_begin(stage->input, iteration, error);
    resume_thread(t);
    return status;
}

static mr_status to_device_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    to_device *t = (to_device *)stage;
    pause_thread(t);
    mr_status status = mr_stage_seek(stage->input, position, error);
    stage->position = stage->input->position;
    resume_thread(t);
    return status;
}

mr_status mr_to_device_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    to_device *t = (to_device *)stage;
    mr_status status = MR_OK;
    pthread_mutex_lock(&t->mutex);
    while (t->head == t->tail && t->is_active && !t->is_state_saved) pthread_cond_wait(&t->changed, &t->mutex);
    const ready *r = t->head < t->tail || t->is_active ? slot_at(t, t->head) : nullptr;
    if (t->is_cancelled)
        status = mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    else if (r == nullptr)
        status = mr_stage_save(stage->input, state, error);
    else if (r->state_error.status != MR_OK)
        status = mr_fail(error, r->state_error.status, "%s", r->state_error.message);
    else
        status = mr_state_append(state, &r->state, error);
    pthread_mutex_unlock(&t->mutex);
    return status;
}

mr_status mr_to_device_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    to_device *t = (to_device *)stage;
    pause_thread(t);
    mr_status status = mr_stage_restore(stage->input, reader, error);
    resume_thread(t);
    return status;
}

static void to_device_cancel(mr_stage *stage)
{
    to_device *t = (to_device *)stage;
    pthread_mutex_lock(&t->mutex);
    t->is_cancelled = true;
    pthread_cond_broadcast(&t->work);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static void to_device_deinit(mr_stage *stage)
{
    to_device *t = (to_device *)stage;
    mr_stage_cancel(stage);
    pthread_mutex_lock(&t->mutex);
    t->is_stopping = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->mutex);
    if (t->has_thread)
        pthread_join(t->thread, nullptr);
    else
        release_source(t);
    mr_watch_remove(stage->run->watch, &t->note);
    for (int32_t i = 0; t->ring != nullptr && i < t->size; i++) {
        drop(t, t->ring[i].tensors);
        mr_state_deinit(&t->ring[i].state);
        t->device->functions->event_free(t->device, t->ring[i].event);
    }
    free(t->ring);
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->changed);
}

const mr_stage_functions mr_to_device_functions = {
    .begin = to_device_begin, .seek = to_device_seek, .cancel = to_device_cancel, .deinit = to_device_deinit};

static mr_status prepare(mr_stage *stage, mr_error *error)
{
    to_device *t = (to_device *)stage;
    const settings *s = stage->dataset->settings;
    pthread_mutex_init(&t->mutex, nullptr);
    pthread_cond_init(&t->work, nullptr);
    pthread_cond_init(&t->changed, nullptr);
    t->device = s->device;
    t->count = stage->dataset->spec.count;
    t->size = !s->has_thread ? 1 : s->prefetch.depth > 0 ? s->prefetch.depth : DEPTH_TUNED;
    t->note.is_thread = s->has_thread;
    t->trace_number = mr_watch_engine(stage->run->watch);
    mr_watch_add(stage->run->watch, &t->note);
    stage->counters->threads = s->has_thread;
    stage->counters->slots_max = t->size;
    t->ring = calloc((size_t)t->size, sizeof *t->ring);
    if (t->ring == nullptr) return mr_fail_memory(error, (size_t)t->size * sizeof *t->ring);
    for (int32_t i = 0; i < t->size; i++) MR_TRY(t->device->functions->event_new(t->device, &t->ring[i].event, error));
    return MR_OK;
}

/* ---- Datasets ---- */

static void to_device_free(mr_dataset *dataset)
{
    mr_device_close(((settings *)dataset->settings)->device);
}

#define TO_DEVICE(text)                                                                                                \
    {.name = (text),                                                                                                   \
     .role = MR_ROLE_TO_DEVICE,                                                                                        \
     .is_final = true,                                                                                                 \
     .stage_size_bytes = sizeof(to_device),                                                                            \
     .functions = &mr_to_device_functions,                                                                             \
     .prepare = prepare,                                                                                               \
     .deinit = to_device_free}
static const mr_dataset_kind prefetch_kind = TO_DEVICE("prefetch_to_device");
static const mr_dataset_kind copy_kind = TO_DEVICE("copy_to_device");
/* On the CPU the elements are already on the device. */
static const mr_dataset_kind prefetch_on_cpu_kind = {
    .name = "prefetch_to_device", .role = MR_ROLE_PREFETCH, .is_final = true, .deinit = to_device_free};
static const mr_dataset_kind copy_on_cpu_kind = {
    .name = "copy_to_device", .role = MR_ROLE_OPTIONS, .is_final = true, .deinit = to_device_free};

mr_dataset *mr_dataset_to_device(mr_dataset *input, const char *name, bool has_thread, int32_t depth)
{
    mr_error error = {0};
    mr_device *device = nullptr;
    mr_status status = name == nullptr ? mr_fail(&error, MR_INVALID_ARGUMENT, "device is null")
                                       : mr_device_retain_named(name, &device, &error);
    bool is_on_cpu = device == nullptr || device->kind == MR_DEVICE_CPU;
    const mr_dataset_kind *kind = has_thread ? (is_on_cpu ? &prefetch_on_cpu_kind : &prefetch_kind)
                                             : (is_on_cpu ? &copy_on_cpu_kind : &copy_kind);
    mr_dataset *dataset = mr_dataset_new(kind, input, sizeof(settings));
    if (mr_dataset_is_unallocated(dataset)) {
        mr_device_close(device);
        return dataset;
    }
    *(settings *)dataset->settings = (settings){{depth}, device, has_thread};
    if (status != MR_OK) return mr_dataset_fail(dataset, status, "%s: %s", kind->name, error.message);
    if (depth < 0 || depth > DEPTH_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: depth is %d, expected 0 to %d", kind->name, depth,
                               DEPTH_MAX);
    dataset->is_heavy |= has_thread;
    return dataset;
}

mr_device *mr_dataset_device(const mr_dataset *dataset)
{
    const mr_dataset *found = mr_dataset_final(dataset);
    return found == nullptr || found->kind->role != MR_ROLE_TO_DEVICE ? nullptr
                                                                      : ((const settings *)found->settings)->device;
}

mr_dataset *mr_dataset_to_device_deeper(mr_dataset *input, int32_t depth)
{
    const mr_dataset *found = mr_dataset_final(input);
    const settings *s = found->settings;
    mr_dataset *dataset = mr_dataset_to_device(mr_dataset_ref(found->input), mr_device_name(s->device), true, depth);
    if (dataset != nullptr) mr_dataset_options_merge(&dataset->options, &input->options);
    mr_dataset_free(input);
    return dataset;
}
