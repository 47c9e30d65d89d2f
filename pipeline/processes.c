/* Worker processes: which of them run and are idle, and the areas of the shared memory. A block has an area of its own,
 * so that it is filled and read while the processes work on others. */
#include "pipeline/processes.h"

#include "base/options.h"
#include "base/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* How often a thread that waits looks whether it is stopped. */
constexpr long STOP_NS = 20000000;
/* The memory of a larger area is returned to the system after each block (MR_PROCESSES_KEPT_BYTES). */
constexpr size_t KEPT_BYTES = MR_PROCESSES_KEPT_BYTES;

typedef struct process {
    int32_t socket;
    bool is_started, is_busy;
} process;

struct mr_processes {
    mr_processes_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a process has become idle */
    process *list;
    mr_area *areas; /* a list: those created first are used first */
    int32_t area_count;
};

mr_status mr_processes_new(const mr_processes_options *given, mr_processes **processes, mr_error *error)
{
    mr_processes_options o;
    if (processes == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "processes: processes is null");
    *processes = nullptr;
    MR_TRY(MR_OPTIONS_READ(mr_processes_options, &o, given, error));
    if (o.count < 1 || o.count > MR_PROCESSES_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "processes: count is %d, expected 1 to %d", o.count,
                       MR_PROCESSES_MAX);
    if (o.start == nullptr || o.ended == nullptr || o.failed == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "processes: start, ended or failed is null");
    if (ftruncate(o.memory, (off_t)MR_PROCESSES_AREA_BYTES) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "processes: memory (file descriptor %d): %s", o.memory,
                       strerror(errno));
    /* Best effort: a process that shortened the file would end this one. */
    (void)fcntl(o.memory, F_ADD_SEALS, F_SEAL_SHRINK);
    mr_processes *p = calloc(1, sizeof *p);
    process *list = calloc((size_t)o.count, sizeof *list);
    if (p == nullptr || list == nullptr) {
        free(p);
        free(list);
        return mr_fail_memory(error, sizeof *p);
    }
    p->options = o;
    p->list = list;
    pthread_mutex_init(&p->mutex, nullptr);
    pthread_cond_init(&p->changed, nullptr);
    *processes = p;
    return MR_OK;
}

bool mr_processes_are_random(const mr_processes *processes)
{
    return processes->options.is_random;
}

mr_status mr_processes_failure(mr_processes *processes, const void *bytes, size_t size_bytes, mr_error *error)
{
    /* A copy, because processes may change what is in shared memory. */
    void *copy = malloc(size_bytes + 1);
    if (copy == nullptr) return mr_fail_memory(error, size_bytes);
    memcpy(copy, bytes, size_bytes);
    mr_status status = processes->options.failed(processes->options.context, copy, size_bytes, error);
    free(copy);
    if (status == MR_OK) return mr_fail(error, MR_INTERNAL, "a worker process has described no failure");
    return status;
}

/* ---- Areas ---- */

static void unmap(mr_area *area)
{
    if (area->data == nullptr) return;
    uint64_t begin = (uint64_t)area->index * MR_PROCESSES_AREA_BYTES;
    munmap(area->data, area->capacity_bytes);
    /* Best effort: without it the pages stay until the file is closed. */
    (void)fallocate(area->processes->options.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin,
                    (off_t)MR_PROCESSES_AREA_BYTES);
    area->data = nullptr;
    area->capacity_bytes = 0;
}

/* Lock held. Waits for a change, for STOP_NS at most. */
static void wait_for_change(mr_processes *p)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += STOP_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&p->changed, &p->mutex, &until);
}

static bool is_stopped(const _Atomic bool *stop)
{
    return stop != nullptr && atomic_load_explicit(stop, memory_order_relaxed);
}

static mr_status fail_stopped(mr_error *error)
{
    return mr_fail(error, MR_CANCELLED, "the iterator is cancelled");
}

/* Lock held. Another area, at the end of the list. */
static mr_status add_area(mr_processes *p, mr_area **end, mr_error *error)
{
    mr_area *area = calloc(1, sizeof *area);
    if (area == nullptr) return mr_fail_memory(error, sizeof *area);
    off_t size_bytes = (off_t)((uint64_t)(p->area_count + 1) * MR_PROCESSES_AREA_BYTES);
    if (ftruncate(p->options.memory, size_bytes) != 0) {
        free(area);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the shared memory of worker processes cannot grow: %s",
                       strerror(errno));
    }
    *area = (mr_area){.processes = p, .index = p->area_count++};
    *end = area;
    return MR_OK;
}

mr_status mr_area_acquire(mr_processes *p, mr_area **area, mr_error *error)
{
    mr_status status = MR_OK;
    pthread_mutex_lock(&p->mutex);
    mr_area **at = &p->areas;
    while (*at != nullptr && (*at)->is_busy) at = &(*at)->next;
    if (*at == nullptr) status = add_area(p, at, error);
    *area = *at;
    if (*area != nullptr) (*area)->is_busy = true;
    pthread_mutex_unlock(&p->mutex);
    return status;
}

void mr_area_release(mr_area *area)
{
    mr_processes *p = area->processes;
    if (area->capacity_bytes > KEPT_BYTES) unmap(area);
    pthread_mutex_lock(&p->mutex);
    assert(area->is_busy);
    area->is_busy = false;
    pthread_mutex_unlock(&p->mutex);
}

mr_status mr_area_reserve(mr_area *area, size_t size_bytes, mr_error *error)
{
    if (size_bytes <= area->capacity_bytes) return MR_OK;
    if (size_bytes > MR_PROCESSES_AREA_BYTES)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "a block for a worker process has %zu bytes, at most %llu fit",
                       size_bytes, (unsigned long long)MR_PROCESSES_AREA_BYTES);
    size_t capacity_bytes = (size_t)64 << 10;
    while (capacity_bytes < size_bytes) capacity_bytes *= 2;
    off_t begin = (off_t)((uint64_t)area->index * MR_PROCESSES_AREA_BYTES);
    /* The same pages, of which the file has kept the contents. */
    char *data =
        mmap(nullptr, capacity_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->processes->options.memory, begin);
    if (data == MAP_FAILED) return mr_fail_memory(error, capacity_bytes);
    if (area->data != nullptr) munmap(area->data, area->capacity_bytes);
    area->data = data;
    area->capacity_bytes = capacity_bytes;
    return MR_OK;
}

/* ---- Processes ---- */

/* Marks an idle process busy, one that runs if possible. Null: stopped. */
static process *acquire(mr_processes *p, const _Atomic bool *stop)
{
    process *found = nullptr;
    pthread_mutex_lock(&p->mutex);
    while (found == nullptr && !is_stopped(stop)) {
        for (int32_t i = 0; i < p->options.count; i++) {
            process *candidate = &p->list[i];
            if (candidate->is_busy || (found != nullptr && !candidate->is_started)) continue;
            found = candidate;
            if (found->is_started) break;
        }
        if (found == nullptr) wait_for_change(p);
    }
    if (found != nullptr) found->is_busy = true;
    pthread_mutex_unlock(&p->mutex);
    return found;
}

static void release(mr_processes *p, process *idle)
{
    pthread_mutex_lock(&p->mutex);
    idle->is_busy = false;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

/* The process has died, or is killed. */
static mr_status end(mr_processes *p, process *ended, mr_error *error)
{
    ended->is_started = false;
    mr_status status = p->options.ended(p->options.context, (int32_t)(ended - p->list), error);
    if (status == MR_OK && error != nullptr) return mr_fail(error, MR_INTERNAL, "a worker process has ended");
    return status;
}

static mr_status start(mr_processes *p, process *idle, mr_error *error)
{
    if (idle->is_started) return MR_OK;
    mr_status status = p->options.start(p->options.context, (int32_t)(idle - p->list), &idle->socket, error);
    if (status != MR_OK) return status;
    int type = 0;
    socklen_t type_bytes = sizeof type;
    if (getsockopt(idle->socket, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 || type != SOCK_SEQPACKET) {
        (void)end(p, idle, nullptr);
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "processes: file descriptor %d is not a socket of type SOCK_SEQPACKET", idle->socket);
    }
    struct timeval timeout = {.tv_usec = STOP_NS / 1000};
    (void)setsockopt(idle->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    idle->is_started = true;
    return MR_OK;
}

/* An idle process that has ended, or has answered without a request, is replaced. */
static mr_status prepare(mr_processes *p, process *worker, mr_error *error)
{
    MR_TRY(start(p, worker, error));
    char byte;
    ssize_t received = recv(worker->socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return MR_OK;
    (void)end(p, worker, nullptr);
    return start(p, worker, error);
}

static mr_status exchange(mr_processes *p, process *worker, const uint64_t *message, uint64_t *end_bytes,
                          const _Atomic bool *stop, mr_error *error)
{
    MR_TRY(prepare(p, worker, error));
    constexpr size_t MESSAGE_BYTES = MR_PROCESSES_MESSAGE_WORDS * sizeof *message;
    ssize_t sent;
    do sent = send(worker->socket, message, MESSAGE_BYTES, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)MESSAGE_BYTES) return end(p, worker, error);
    for (;;) {
        /* MSG_TRUNC: the size of a longer message, too. */
        ssize_t received = recv(worker->socket, end_bytes, sizeof *end_bytes, MSG_TRUNC);
        if (received == (ssize_t)sizeof *end_bytes) return MR_OK;
        bool is_late = received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
        if (!is_late) return end(p, worker, error);
        if (!is_stopped(stop)) continue;
        /* It may still write to the area, which is used again. */
        (void)end(p, worker, nullptr);
        return fail_stopped(error);
    }
}

mr_status mr_area_exchange(mr_area *area, int32_t rows_max, int32_t rows, int32_t first, uint64_t *end_bytes,
                           const _Atomic bool *stop, mr_error *error)
{
    mr_processes *p = area->processes;
    assert(area->is_busy && first >= 0 && first < rows && rows <= rows_max);
    process *worker = acquire(p, stop);
    if (worker == nullptr) return fail_stopped(error);
    uint64_t message[MR_PROCESSES_MESSAGE_WORDS] = {(uint64_t)area->index, (uint64_t)rows_max, (uint64_t)rows,
                                                    (uint64_t)first, *end_bytes};
    mr_status status = exchange(p, worker, message, end_bytes, stop, error);
    release(p, worker);
    return status;
}

mr_status mr_processes_start(mr_processes *p, mr_error *error)
{
    if (p == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "processes: processes is null");
    mr_status status = MR_OK;
    for (int32_t i = 0; i < p->options.count && status == MR_OK; i++) {
        process *candidate = &p->list[i];
        pthread_mutex_lock(&p->mutex);
        bool is_busy = candidate->is_busy;
        candidate->is_busy = true;
        pthread_mutex_unlock(&p->mutex);
        if (is_busy) continue;
        status = start(p, candidate, error);
        release(p, candidate);
    }
    return status;
}

void mr_processes_stop(mr_processes *p)
{
    if (p == nullptr) return;
    pthread_mutex_lock(&p->mutex);
    for (int32_t i = 0; i < p->options.count; i++) {
        assert(!p->list[i].is_busy);
        p->list[i].is_started = false;
    }
    for (mr_area *area = p->areas; area != nullptr; area = area->next) unmap(area);
    pthread_mutex_unlock(&p->mutex);
}

void mr_processes_free(mr_processes *p)
{
    if (p == nullptr) return;
    for (int32_t i = 0; i < p->options.count; i++)
        if (p->list[i].is_started) (void)end(p, &p->list[i], nullptr);
    for (mr_area *area = p->areas, *next; area != nullptr; area = next) {
        next = area->next;
        unmap(area);
        free(area);
    }
    if (p->options.release != nullptr) p->options.release(p->options.context);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->changed);
    free(p->list);
    free(p);
}
