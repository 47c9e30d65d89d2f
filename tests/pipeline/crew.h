/* Crew: worker processes that implement the protocol of <millrace/processes.h> in C, from its text alone. They only
 * call functions that are allowed in a process that a thread has forked. They can also behave badly. */
#ifndef MR_TESTS_CREW_H
#define MR_TESTS_CREW_H

#include "tests/pipeline/pipelines.h"

#include <millrace/processes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CREW_MAX = 8, CREW_FIELD_WORDS = 15 };
/* What a process maps of an area. */
static constexpr size_t CREW_MAPPED_BYTES = (size_t)256 << 20;

/* EACH: every number x becomes 3 x + 1, and 1 is added to each byte of a string. NOISE: the same, with the row's random
 * seed added. SPREAD: x becomes numbers x, … [x mod 5], and the string of x mod 4 bytes. GROW: x becomes 1 MiB.
 * FIRST: the first number. */
typedef enum crew_task { CREW_EACH, CREW_NOISE, CREW_SPREAD, CREW_GROW, CREW_FIRST } crew_task;

/* What a process damages after it has mapped a block. */
typedef enum crew_target {
    CREW_NOTHING,
    CREW_FIELD,    /* word `at` of each result's variable component */
    CREW_ROW,      /* word `at` of each row */
    CREW_TEXT,     /* word `at` of the bytes of each variable result */
    CREW_PROGRESS, /* word `at` of the progress, and the process ends */
    CREW_ANSWER,   /* the end */
    CREW_SHORT,    /* an answer of `at` bytes */
    CREW_TWICE,    /* two answers */
    CREW_ALL,      /* `at` bytes from the beginning of the area */
} crew_target;

typedef struct crew {
    int32_t count;
    crew_task task;
    mr_element_spec input, output;
    bool is_random;
    crew_target target;
    uint64_t at, value;
    int64_t *die_at, *exit_at, *sleep_at, *fail_at; /* first component; null: never */
    int failing_starts;                             /* the next calls of start fail */
    atomic_int starts, ends, releases;
    atomic_int *mapped; /* rows, of all processes */
    int memory;
    pthread_mutex_t mutex; /* processes must not inherit the other end of another's socket */
    pid_t pids[CREW_MAX];
    int sockets[CREW_MAX];
} crew;

/* ---- In the process ---- */

static inline uint64_t crew_align(uint64_t offset)
{
    return (offset + 63) / 64 * 64;
}

static inline bool crew_is_fixed(const mr_element_spec *spec, int32_t i)
{
    return spec->dtypes[i] != MR_STRING && mr_shape_count(spec->shapes[i]) >= 0;
}

typedef struct crew_area {
    char *data;
    uint64_t end;
    uint64_t *progress, *rows, *inputs, *outputs;
    uint64_t input_arrays[MR_COMPONENTS_MAX], output_arrays[MR_COMPONENTS_MAX];
    uint64_t input_fields, output_fields; /* components of variable size */
} crew_area;

static inline uint64_t crew_place(const mr_element_spec *spec, uint64_t rows, uint64_t offset, uint64_t *arrays)
{
    for (int32_t i = 0; i < spec->count; i++) {
        arrays[i] = offset;
        if (crew_is_fixed(spec, i)) offset = crew_align(offset + rows * 8 * (uint64_t)mr_shape_count(spec->shapes[i]));
    }
    return offset;
}

static inline crew_area crew_layout(const crew *c, void *data, uint64_t rows_max, uint64_t end)
{
    crew_area a = {.data = data, .end = end};
    for (int32_t i = 0; i < c->input.count; i++) a.input_fields += !crew_is_fixed(&c->input, i);
    for (int32_t i = 0; i < c->output.count; i++) a.output_fields += !crew_is_fixed(&c->output, i);
    uint64_t inputs = crew_align(64 + 32 * rows_max);
    uint64_t outputs = crew_align(inputs + rows_max * a.input_fields * CREW_FIELD_WORDS * 8);
    uint64_t arrays = crew_align(outputs + rows_max * a.output_fields * CREW_FIELD_WORDS * 8);
    a.progress = data;
    a.rows = a.progress + 8;
    a.inputs = a.progress + inputs / 8;
    a.outputs = a.progress + outputs / 8;
    (void)crew_place(&c->output, rows_max, crew_place(&c->input, rows_max, arrays, a.input_arrays), a.output_arrays);
    return a;
}

static inline uint64_t *crew_append(crew_area *a, uint64_t *field, uint64_t size_bytes)
{
    field[0] = crew_align(a->end);
    field[1] = size_bytes;
    a->end = field[0] + size_bytes;
    a->progress[1] = a->end;
    return a->progress + field[0] / 8;
}

/* The bytes of a component that is changed in place after it was copied: numbers, or strings after their sizes. */
static inline void crew_change(mr_dtype dtype, uint64_t *words, uint64_t size_bytes, uint64_t count, uint64_t seed)
{
    for (uint64_t k = 0; dtype != MR_STRING && k < size_bytes / 8; k++) words[k] = 3 * words[k] + 1 + seed;
    char *bytes = (char *)(words + count);
    for (uint64_t k = 0; dtype == MR_STRING && k < size_bytes - 8 * count; k++) bytes[k] = (char)(bytes[k] + 1);
}

static inline void crew_each(const crew *c, crew_area *a, uint64_t row)
{
    uint64_t *from = a->inputs + row * a->input_fields * CREW_FIELD_WORDS;
    uint64_t *to = a->outputs + row * a->output_fields * CREW_FIELD_WORDS;
    uint64_t seed = c->task == CREW_NOISE ? a->rows[4 * row + 2] ^ a->rows[4 * row + 3] : 0;
    for (int32_t i = 0; i < c->input.count; i++) {
        if (crew_is_fixed(&c->input, i)) {
            uint64_t size_bytes = 8 * (uint64_t)mr_shape_count(c->input.shapes[i]);
            uint64_t *target = (uint64_t *)(void *)(a->data + a->output_arrays[i] + row * size_bytes);
            memcpy(target, a->data + a->input_arrays[i] + row * size_bytes, size_bytes);
            crew_change(MR_INT64, target, size_bytes, 0, seed);
            continue;
        }
        uint64_t count = 1;
        for (uint64_t d = 0; d < from[2]; d++) count *= from[3 + d];
        uint64_t *target = crew_append(a, to, from[1]);
        memcpy(target, a->data + from[0], from[1]);
        memcpy(to + 2, from + 2, (CREW_FIELD_WORDS - 2) * sizeof *to);
        crew_change(c->input.dtypes[i], target, from[1], count, seed);
        from += CREW_FIELD_WORDS;
        to += CREW_FIELD_WORDS;
    }
}

static inline int64_t crew_first(const crew *c, const crew_area *a, uint64_t row)
{
    if (c->input.dtypes[0] != MR_INT64 || !crew_is_fixed(&c->input, 0) || mr_shape_count(c->input.shapes[0]) < 1)
        return INT64_MIN;
    uint64_t size_bytes = 8 * (uint64_t)mr_shape_count(c->input.shapes[0]);
    return *(int64_t *)(void *)(a->data + a->input_arrays[0] + row * size_bytes);
}

static inline void crew_spread(const crew *c, crew_area *a, uint64_t row)
{
    uint64_t x = (uint64_t)crew_first(c, a, row), *field = a->outputs + row * a->output_fields * CREW_FIELD_WORDS;
    uint64_t count = c->task == CREW_GROW ? 131072 : x % 5;
    uint64_t *numbers = crew_append(a, field, 8 * count);
    for (uint64_t k = 0; k < count; k++) numbers[k] = x + k;
    field[2] = 1;
    field[3] = count;
    if (c->task == CREW_GROW) return;
    field += CREW_FIELD_WORDS;
    uint64_t *text = crew_append(a, field, 8 + x % 4);
    text[0] = x % 4;
    memset(text + 1, 'a', x % 4);
    field[2] = 0;
}

static inline void crew_map(const crew *c, crew_area *a, uint64_t row)
{
    int64_t x = crew_first(c, a, row);
    a->progress[0] = row;
    if (c->mapped != nullptr) atomic_fetch_add(c->mapped, 1);
    if (c->die_at != nullptr && x == *c->die_at) (void)kill(getpid(), SIGKILL);
    if (c->exit_at != nullptr && x == *c->exit_at) _exit(3);
    while (c->sleep_at != nullptr && x >= *c->sleep_at) (void)pause();
    if (c->fail_at != nullptr && x == *c->fail_at) {
        uint64_t described[2];
        uint64_t *text = crew_append(a, described, 8 + 3);
        text[0] = 3;
        memcpy(text + 1, "bad", 3);
        a->rows[4 * row] = 1;
        a->rows[4 * row + 1] = described[0];
    } else if (c->task == CREW_FIRST) {
        memcpy(a->data + a->output_arrays[0] + row * sizeof x, &x, sizeof x);
    } else if (c->task == CREW_EACH || c->task == CREW_NOISE) {
        crew_each(c, a, row);
    } else {
        crew_spread(c, a, row);
    }
}

static inline void crew_damage(const crew *c, crew_area *a, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t *field = a->outputs + row * a->output_fields * CREW_FIELD_WORDS;
        if (c->target == CREW_ROW) a->rows[4 * row + c->at] = c->value;
        for (uint64_t k = 0; k < a->output_fields; k++, field += CREW_FIELD_WORDS) {
            if (c->target == CREW_TEXT) (a->progress + field[0] / 8)[c->at] = c->value;
            if (c->target == CREW_FIELD) field[c->at] = c->value;
        }
    }
    if (c->target == CREW_ALL) memset(a->data, (int)c->value, c->at);
    if (c->target != CREW_PROGRESS) return;
    a->progress[c->at] = c->value;
    _exit(4);
}

[[noreturn]] static inline void crew_work(const crew *c, int socket)
{
    (void)alarm(120);
    uint64_t message[MR_PROCESSES_MESSAGE_WORDS];
    while (recv(socket, message, sizeof message, 0) == sizeof message) {
        void *data = mmap(nullptr, CREW_MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->memory,
                          (off_t)(message[0] * MR_PROCESSES_AREA_BYTES));
        if (data == MAP_FAILED) _exit(5);
        crew_area area = crew_layout(c, data, message[1], message[4]);
        for (uint64_t row = message[3]; row < message[2]; row++) crew_map(c, &area, row);
        crew_damage(c, &area, message[2]);
        uint64_t answer[3] = {c->target == CREW_ANSWER ? c->value : area.end};
        size_t size_bytes = c->target == CREW_SHORT ? (size_t)c->at : sizeof answer[0];
        for (int i = 0; i <= (c->target == CREW_TWICE); i++)
            if (send(socket, answer, size_bytes, MSG_NOSIGNAL) != (ssize_t)size_bytes) _exit(6);
        (void)munmap(data, CREW_MAPPED_BYTES);
    }
    _exit(0);
}

/* ---- In the library's process ---- */

static mr_status crew_start(void *context, int32_t index, int32_t *socket, mr_error *error)
{
    crew *c = context;
    int pair[2];
    pthread_mutex_lock(&c->mutex);
    bool fails = c->failing_starts > 0;
    c->failing_starts -= fails;
    pid_t pid = -1;
    if (!fails && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0) {
        pid = fork();
        if (pid == 0) crew_work(c, pair[1]);
        close(pair[1]);
        c->pids[index] = pid;
        c->sockets[index] = *socket = pair[0];
        atomic_fetch_add(&c->starts, 1);
    }
    pthread_mutex_unlock(&c->mutex);
    return pid > 0 ? MR_OK : mr_fail(error, MR_UNAVAILABLE, "no process can be started");
}

static mr_status crew_ended(void *context, int32_t index, mr_error *error)
{
    crew *c = context;
    int status = 0;
    (void)kill(c->pids[index], SIGKILL);
    (void)waitpid(c->pids[index], &status, 0);
    (void)close(c->sockets[index]);
    c->pids[index] = 0;
    atomic_fetch_add(&c->ends, 1);
    if (error == nullptr) return MR_OK;
    return mr_fail(error, MR_ABORTED, "the process has ended with status %d", status);
}

static mr_status crew_failed(void *context, const void *bytes, size_t size_bytes, mr_error *error)
{
    (void)context;
    return mr_fail(error, MR_DATA_LOSS, "described: %.*s", size_bytes < 100 ? (int)size_bytes : 100,
                   (const char *)bytes);
}

static void crew_release(void *context)
{
    crew *c = context;
    atomic_fetch_add(&c->releases, 1);
    (void)close(c->memory);
    pthread_mutex_destroy(&c->mutex);
}

static inline mr_processes_options crew_options(crew *c)
{
    return (mr_processes_options){.size = sizeof(mr_processes_options),
                                  .count = c->count,
                                  .memory = c->memory,
                                  .is_random = c->is_random,
                                  .start = crew_start,
                                  .ended = crew_ended,
                                  .failed = crew_failed,
                                  .release = crew_release,
                                  .context = c};
}

static inline mr_processes *crew_new(crew *c)
{
    mr_error error = {0};
    mr_processes *processes = nullptr;
    c->memory = memfd_create("crew", MFD_ALLOW_SEALING);
    CHECK(c->memory >= 0 && pthread_mutex_init(&c->mutex, nullptr) == 0);
    if (c->count == 0) c->count = 2;
    mr_processes_options options = crew_options(c);
    CHECK_OK(mr_processes_new(&options, &processes, &error));
    return processes;
}

/* Maps the dataset in the crew. EACH and NOISE keep the spec. */
static inline mr_dataset *crew_map_dataset(mr_dataset *d, crew *c)
{
    c->input = *mr_dataset_spec(d);
    if (c->task == CREW_EACH || c->task == CREW_NOISE) c->output = c->input;
    return mr_dataset_map_in_processes(d, crew_new(c), &c->output, .seed = 9);
}

static const mr_element_spec crew_spread_spec = {
    .count = 2, .dtypes = {MR_INT64, MR_STRING}, .shapes = {{.rank = 1, .dims = {-1}}, {.rank = 0}}};
static const mr_element_spec crew_grow_spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};

#endif
