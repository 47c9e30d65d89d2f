/* Maps elements with functions that run in worker processes, for languages whose functions cannot run in several
 * threads of one process. The caller starts the processes; the library exchanges elements with them.
 *
 * ```c
 * mr_error error = {0};
 * mr_processes *processes = nullptr;
 * mr_processes_options options = {.size = sizeof options, .count = 2};
 * options.memory = -1; // here: memfd_create, and the functions start, ended and failed
 * if (mr_processes_new(&options, &processes, &error) != MR_OK) return 1;
 * mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}};
 * mr_dataset *d = mr_dataset_map_in_processes(mr_dataset_range(0, 100, 1), processes, &spec, .seed = 7);
 * mr_dataset_free(d);
 * ```
 *
 * Elements are exchanged in blocks. A thread of the pipeline copies the elements of a block to its area of the shared
 * memory, sends a message of MR_PROCESSES_MESSAGE_WORDS int64 numbers {area, rows_max, rows, first row, end in bytes}
 * to an idle process, and waits for its answer {end in bytes}. Areas start at multiples of MR_PROCESSES_AREA_BYTES in
 * the shared memory. An area consists of, each aligned to 64 bytes:
 *
 * progress  uint64 [8]: the row that the process works on, which it writes before each row; the end in bytes of what it
 *           has appended to the heap, or 0; unused
 * rows      uint64 [rows_max, 4]: status of the row, written by the process (0: OK); offset of the description of its
 *           failure, a multiple of 8: uint64 size in bytes, then the bytes; two numbers from 0 to 2^63 - 1, the row's
 *           random seed
 * inputs    of the components of variable size: uint64 [rows_max, components, 15]: offset, size in bytes, rank, sizes
 * outputs   of the components of variable size: the same, written by the process
 * arrays    of the input's, then of the output's components of fixed size: [rows_max] + the component's shape
 * heap      the elements of components of variable size. The process appends its own
 *
 * A component has a fixed size if its spec's shape is known and it is not a string. Strings are the uint64 size of
 * each, followed by the bytes of all. Offsets are relative to the area, and multiples of 64 unless specified.
 *
 * A process that ends, or that sends anything else, is replaced. Invalid numbers in its area fail the element.
 *
 * The areas in use are in the iterator's budget, as memory for reading ahead. There is one for each thread that maps,
 * with up to 16 MiB of components of fixed size and 4 MiB of the input's others, or one element if it is larger, and
 * what the process appends for these rows. An idle area keeps up to MR_PROCESSES_KEPT_BYTES outside the budget until
 * mr_processes_stop. */
#ifndef MILLRACE_PROCESSES_H
#define MILLRACE_PROCESSES_H

#include <millrace/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of processes. */
#define MR_PROCESSES_MAX 1024
/* int64 numbers in a message to a process. */
#define MR_PROCESSES_MESSAGE_WORDS 5
/* From one area of the shared memory to the next. */
#define MR_PROCESSES_AREA_BYTES ((uint64_t)1 << 36)
/* Maximum size of the memory that an idle area keeps. */
#define MR_PROCESSES_KEPT_BYTES ((size_t)32 << 20)

/* The processes that run one function. */
typedef struct mr_processes mr_processes;

/* Functions are called by any thread, those for one process (`index`, 0 to count - 1) one at a time. */
typedef struct mr_processes_options {
    size_t size;    /* of this struct (api.h) */
    int32_t count;  /* of processes, 1 to MR_PROCESSES_MAX */
    int32_t memory; /* file descriptor of the shared memory, a sparse file; open until release. Sealed against
                       shrinking if the file allows it */
    bool is_random; /* rows have seeds */
    /* Starts a process. socket: its file descriptor, of type SOCK_SEQPACKET; open until ended or mr_processes_stop */
    mr_status (*start)(void *context, int32_t index, int32_t *socket, mr_error *error);
    /* The process has ended or must end: kills it, waits for it and closes the socket.
     * error  set to the reason if the process has ended without a request; its status is returned */
    mr_status (*ended)(void *context, int32_t index, mr_error *error);
    /* Sets error to the failure that a process has described, and returns its status. bytes: a copy */
    mr_status (*failed)(void *context, const void *bytes, size_t size_bytes, mr_error *error);
    void (*release)(void *context); /* called when the processes are freed; may be null */
    void *context;
} mr_processes_options;
/* No process is started before it is needed.
 * errors  MR_INVALID_ARGUMENT; MR_RESOURCE_EXHAUSTED. On an error release is not called */
MR_API mr_status mr_processes_new(const mr_processes_options *options, mr_processes **processes, mr_error *error);
/* Starts the processes that do not run. errors: those of `start` */
MR_API mr_status mr_processes_start(mr_processes *processes, mr_error *error);
/* Forgets the processes, whose sockets the caller closes afterwards, and returns the shared memory. No iterator may be
 * running. They are started again when they are needed. */
MR_API void mr_processes_stop(mr_processes *processes);
/* Ends the processes, and calls release. Only if no dataset has taken ownership; null is allowed. */
MR_API void mr_processes_free(mr_processes *processes);

typedef struct mr_process_map_options {
    size_t size;                /* of this struct (api.h) */
    int32_t num_parallel_calls; /* blocks in flight; 0: tuned */
    uint64_t seed;
} mr_process_map_options;
/* As mr_dataset_map, with the same order, random numbers, digests and states. An element whose process ends is an
 * error; the process is replaced.
 * processes  owned by the dataset, also on error
 * spec       the structure of the results; copied */
MR_API mr_dataset *mr_dataset_map_in_processes_(mr_dataset *input, mr_processes *processes, const mr_element_spec *spec,
                                                const mr_process_map_options *options);
#define mr_dataset_map_in_processes(input, processes, spec, ...)                                                       \
    MR_WITH_SIZE_(mr_dataset_map_in_processes_((input), (processes), (spec), &options_), mr_process_map_options,       \
                  __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
