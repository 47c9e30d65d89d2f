/* The trace file (watch.h). Events are collected in a buffer of complete lines, which is written when it is full, or
 * with an event that comes more than a second after the last write. Memory is therefore bounded, and the file of a
 * killed process can be opened. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

constexpr size_t BUFFER_BYTES = 65536, EVENT_BYTES_MAX = 1024;
constexpr uint64_t WRITE_NS = 1000000000u;

/* mutex guards everything except start_ns. */
struct mr_trace {
    pthread_mutex_t mutex;
    uint64_t start_ns, written_ns;
    int file; /* -1: stopped */
    int failure;
    bool has_events;
    size_t size_bytes;
    char buffer[BUFFER_BYTES];
};

/* Lock held. */
static void write_out(mr_trace *trace)
{
    assert(trace->size_bytes <= BUFFER_BYTES && trace->file >= 0);
    for (size_t at = 0; at < trace->size_bytes && trace->failure == 0;) {
        ssize_t written = write(trace->file, trace->buffer + at, trace->size_bytes - at);
        if (written > 0)
            at += (size_t)written;
        else if (written == 0 || errno != EINTR)
            trace->failure = written == 0 ? ENOSPC : errno;
    }
    trace->size_bytes = 0;
}

[[gnu::format(printf, 3, 4)]] static void put_event(mr_trace *trace, uint64_t now_ns, const char *format, ...)
{
    char event[EVENT_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(event, sizeof event, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof event) return;
    pthread_mutex_lock(&trace->mutex);
    if (trace->file >= 0 && trace->failure == 0) {
        if (trace->size_bytes + (size_t)size + 2 > BUFFER_BYTES) write_out(trace);
        if (trace->has_events) {
            memcpy(trace->buffer + trace->size_bytes, ",\n", 2);
            trace->size_bytes += 2;
        }
        assert(trace->size_bytes + (size_t)size <= BUFFER_BYTES);
        memcpy(trace->buffer + trace->size_bytes, event, (size_t)size);
        trace->size_bytes += (size_t)size;
        trace->has_events = true;
        if (now_ns > trace->written_ns && now_ns - trace->written_ns > WRITE_NS) {
            write_out(trace);
            trace->written_ns = now_ns;
        }
    }
    pthread_mutex_unlock(&trace->mutex);
}

/* Escapes a JSON string without its quotes; truncates it to the capacity. */
static const char *escape(const char *name, char *text, size_t capacity)
{
    size_t at = 0;
    for (; *name != '\0' && at + 7 < capacity; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\')
            at += (size_t)snprintf(text + at, capacity - at, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            at += (size_t)snprintf(text + at, capacity - at, "\\u%04x", c);
        else
            text[at++] = (char)c;
    }
    assert(at < capacity);
    text[at] = '\0';
    return text;
}

/* A JSON number, independent of the program's locale. */
typedef struct microseconds {
    char text[32];
} microseconds;

static microseconds microseconds_of(uint64_t ns)
{
    microseconds number;
    snprintf(number.text, sizeof number.text, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
    return number;
}

static microseconds since_start(const mr_trace *trace, uint64_t now_ns)
{
    return microseconds_of(now_ns > trace->start_ns ? now_ns - trace->start_ns : 0);
}

/* Opens and truncates the file under a lock, so that two traces do not overwrite each other. */
static mr_status open_file(const char *path, int *file, mr_error *error)
{
    *file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (*file < 0) return mr_fail(error, MR_UNAVAILABLE, "%s: cannot write the trace: %s", path, strerror(errno));
    /* A file system without locks is accepted. */
    bool is_taken = flock(*file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    /* Pipes cannot be truncated and need not be. */
    if (!is_taken && (ftruncate(*file, 0) == 0 || errno == EINVAL)) return MR_OK;
    int failure = errno;
    (void)close(*file);
    if (is_taken) return mr_fail(error, MR_ABORTED, "%s: another iterator is writing its trace to this file", path);
    return mr_fail(error, MR_UNAVAILABLE, "%s: cannot write the trace: %s", path, strerror(failure));
}

mr_status mr_trace_new(const char *path, mr_trace **trace, mr_error *error)
{
    *trace = nullptr;
    mr_trace *made = malloc(sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    uint64_t now_ns = mr_now_ns();
    made->start_ns = made->written_ns = now_ns;
    made->failure = 0;
    made->has_events = false;
    mr_status status = open_file(path, &made->file, error);
    if (status != MR_OK) {
        free(made);
        return status;
    }
    pthread_mutex_init(&made->mutex, nullptr);
    memcpy(made->buffer, "[\n", 2);
    made->size_bytes = 2;
    *trace = made;
    return MR_OK;
}

mr_status mr_trace_stop(mr_trace *trace, mr_error *error)
{
    pthread_mutex_lock(&trace->mutex);
    if (trace->file >= 0) {
        write_out(trace);
        memcpy(trace->buffer, "\n]\n", 3);
        trace->size_bytes = 3;
        write_out(trace);
        assert(trace->size_bytes == 0);
        if (close(trace->file) != 0 && trace->failure == 0) trace->failure = errno;
        trace->file = -1;
    }
    int failure = trace->failure;
    pthread_mutex_unlock(&trace->mutex);
    return failure == 0 ? MR_OK : mr_fail(error, MR_UNAVAILABLE, "the trace is incomplete: %s", strerror(failure));
}

void mr_trace_free(mr_trace *trace)
{
    if (trace == nullptr) return;
    (void)mr_trace_stop(trace, nullptr);
    pthread_mutex_destroy(&trace->mutex);
    free(trace);
}

/* gettid needs glibc 2.30; a wheel runs with 2.28. */
static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

void mr_trace_thread(mr_trace *trace, const char *name, int32_t number)
{
    char text[400];
    put_event(trace, 0, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s %d\"}}",
              (int)getpid(), thread_id(), escape(name, text, sizeof text), (int)number);
}

void mr_trace_slice(mr_trace *trace, const char *name, uint64_t start_ns, uint64_t end_ns, uint64_t rows)
{
    char text[400], rows_text[48] = "";
    if (rows > 0) snprintf(rows_text, sizeof rows_text, ",\"args\":{\"rows\":%llu}", (unsigned long long)rows);
    put_event(trace, end_ns, "{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"dur\":%s%s}",
              escape(name, text, sizeof text), (int)getpid(), thread_id(), since_start(trace, start_ns).text,
              microseconds_of(end_ns - start_ns).text, rows_text);
}

void mr_trace_slots(mr_trace *trace, const char *name, uint32_t engine, uint64_t now_ns, uint64_t in_flight,
                    uint64_t ready)
{
    char text[400];
    assert(ready <= in_flight);
    put_event(trace, now_ns,
              "{\"ph\":\"C\",\"name\":\"slots of %s %u\",\"pid\":%d,\"ts\":%s,\"args\":{\"working\":%llu,"
              "\"ready\":%llu}}",
              escape(name, text, sizeof text), engine, (int)getpid(), since_start(trace, now_ns).text,
              (unsigned long long)(in_flight - ready), (unsigned long long)ready);
}
