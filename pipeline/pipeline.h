/* Pipeline: the internal interfaces of datasets, stages, work and the budget.
 *
 * A dataset is a node of a chain or tree: a kind (one file under sources/ or stages/) and its settings. An iterator
 * turns this tree into stages and engines (build.c):
 *
 * order    Sources, shuffle, repeat, take, skip and shard pass on items. An item of a source with an index is two
 *          numbers, (epoch, number): which element in which pass, without its bytes. The order is therefore known
 *          before any byte is read, and seeking in it is cheap.
 * work     What is done for each element independently: read, parse, decode, the user's map. Work maps one element to
 *          one element and takes its random numbers from (seed, epoch, number, stage), so the result does not depend on
 *          whether an order stage comes before or after it, or on the thread that does it.
 * engine   Takes items from the order, does all the work of an element in one step on one of its threads, and writes
 *          the result to the element's row of a batch slot (engine/engine.h).
 * stream   Stages whose elements are not a function of a position: filter, interleave, zip, windows, generators. Each
 *          input is a pipeline of its own, with an engine on top, whose elements the stage takes one by one.
 *
 * Sources and order stages are functions of their position: seek goes to any element of an iteration. The state of a
 * pipeline that consists only of these is one number, the elements delivered; restore is a seek. If the pipeline has a
 * stream stage, the state is what each stage from there upwards saves: positions of inputs and references to elements.
 * The elements themselves are never saved; they are read again.
 *
 * Threads: a stage has one caller at a time: the worker of an engine that is pulling, or the caller of the top engine.
 * Only cancel may be called from any thread. Order: the mutex of mr_engines before that of an engine, an engine before
 * the engines below it, an engine before the watch and the trace. Budgets and counters are atomics. */
#ifndef MR_PIPELINE_H
#define MR_PIPELINE_H

#include "base/arena.h"
#include "base/random.h"
#include "pipeline/digest.h"
#include "pipeline/engine/watch.h"
#include "pipeline/state.h"

#include <assert.h>
#include <millrace/dataset.h>
#include <pthread.h>
#include <stdatomic.h>

/* MR_STAGES_MAX: longest chain of datasets. MR_DATASETS_MAX: datasets in a tree; one that is used twice counts twice,
 * because it becomes two stages. MR_BATCH_MAX: maximum elements of a batch. */
constexpr int32_t MR_STAGES_MAX = 64;
constexpr int32_t MR_DATASETS_MAX = 10000;
constexpr int32_t MR_BATCH_MAX = 1 << 24;

/* ---- Counting ---- */

/* Counters of one stage: written by its threads, read by any thread. */
typedef struct mr_counters {
    const char *stage;
    _Atomic uint64_t elements, bytes, busy_ns, input_wait_ns, output_wait_ns;
    /* Slots delivered; summed over them: how many other slots were complete at that moment, and how many could have
     * been. */
    _Atomic uint64_t delivered, ready, room;
    _Atomic int32_t threads, slots_max;
    _Atomic size_t held_bytes;
    /* The first warning. Written by the thread that sets warned from 0 to 1; readable once warned is 2. */
    _Atomic int32_t warned;
    char warning[MR_WARNING_SIZE];
} mr_counters;

uint64_t mr_now_ns(void);

static inline void mr_count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* ---- The budget ---- */

/* The memory limit of one iterator: bytes that its stages hold between calls. Two kinds of memory share it:
 *
 * read ahead  Slots of engines, and what their threads keep. It shrinks when others need the room: another slot is
 *             started only while it fits, and the next slot to deliver is processed in any case.
 * kept        Elements of a cache, a shuffle or a window, and sets of values. It cannot shrink, so no thread waits for
 *             it: a stage whose elements do not fit next to everything else that is kept fails.
 *
 * There is no deadlock, because the next slot to deliver never waits for room. */
typedef struct mr_budget {
    size_t limit_bytes;
    size_t read_ahead_bytes;            /* limit of what is read ahead; 0: no other */
    _Atomic size_t held_bytes;          /* both kinds */
    _Atomic size_t kept_bytes;          /* kept memory, and one slot for each engine */
    const struct mr_pipeline *pipeline; /* whose counters name the largest holders in errors; null: none are named */
} mr_budget;

/* All engines of one iterator, including those of pipelines inside stages, which are created and freed while it runs.
 * It exists so that cancel reaches every engine. Its mutex is acquired before an engine's. */
typedef struct mr_engines {
    pthread_mutex_t mutex;
    struct mr_engine *first;
    _Atomic bool is_cancelled; /* engines created later are cancelled from the start */
} mr_engines;

/* What the stages of one iterator have in common. */
typedef struct mr_run {
    _Atomic uint64_t seed; /* changes when a state of another run is restored */
    int32_t threads;
    int32_t nesting; /* of calls, for its threads (base/thread.h) */
    mr_budget *budget;
    /* The counters of the stage that runs this pipeline internally, which are charged for all of it; null: the
     * iterator's. */
    mr_counters *holder;
    mr_status (*allocate)(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    void *allocate_context;
    mr_watch *watch;          /* null: not watched */
    mr_engines *engines;      /* all engines of the iterator */
    bool has_digest;          /* a digest of the delivered elements is computed */
    struct mr_tuning *tuning; /* null: threads and depths do not change */
} mr_run;

/* For loops of unknown length. The MR_CANCELLED that they return is never delivered. */
bool mr_run_is_cancelled(const mr_run *run);
/* The seed of one stage: a function of the iterator's seed, the stage's seed and its number in the chain. */
uint64_t mr_stage_seed(const mr_run *run, uint64_t seed, uint32_t purpose);

/* Adds to the memory held; negative: subtracts. Never fails.
 * counters  of the stage that holds it; ignored if run->holder is set
 * threads   any */
void mr_budget_add(const mr_run *run, mr_counters *counters, ptrdiff_t more_bytes);
/* Whether more_bytes of read-ahead fit. */
bool mr_budget_has_room(const mr_run *run, size_t more_bytes);
/* Reserves memory that cannot shrink. mr_budget_release releases it.
 * errors  MR_RESOURCE_EXHAUSTED when it does not fit; nothing is reserved then */
mr_status mr_budget_keep(const mr_run *run, const char *stage, size_t more_bytes, mr_error *error);
void mr_budget_release(const mr_run *run, size_t less_bytes);

/* ---- Items and order stages ---- */

/* The tensors of an item, for elements that have no number by which they could be read again. */
typedef struct mr_payload {
    int32_t count;
    bool is_kept; /* a stage has reserved budget for what the tensors hold */
    mr_tensor tensors[];
} mr_payload;

typedef struct mr_item {
    uint64_t epoch;  /* pass over the source */
    uint64_t number; /* of the element in the source */
    mr_payload *payload;
} mr_item;

mr_payload *mr_payload_new(int32_t count); /* null: out of memory */
void mr_item_deinit(mr_item *item);
/* Memory held by a tensor or a payload; of a reference to part of a larger buffer, only that part. */
size_t mr_tensor_held_bytes(const mr_tensor *tensor);
size_t mr_payload_bytes(const mr_payload *payload);
/* For elements that are held for long: replaces tensors that are a small part of a larger buffer (a batch or a block)
 * by copies, so that they do not keep all of it. */
mr_status mr_payload_settle(mr_payload *payload, mr_error *error);

typedef struct mr_stage mr_stage;

/* The functions of a stage. One caller at a time, except cancel, which any thread may call. */
typedef struct mr_stage_functions {
    /* Goes to position 0 of an iteration. Each iteration has its own shuffle order; sources use its number as the
     * epoch. */
    mr_status (*begin)(mr_stage *stage, uint64_t iteration, mr_error *error);
    /* Returns the item at the position and advances. An element that fails is skipped: its error is returned once. An
     * error that leaves the position unchanged is permanent.
     * errors  MR_OUT_OF_RANGE at the end of the iteration */
    mr_status (*next)(mr_stage *stage, mr_item *item, mr_error *error);
    /* Moves to a position of the iteration, or to the end if it is past the end. Cheap if the position is unchanged. */
    mr_status (*seek)(mr_stage *stage, uint64_t position, mr_error *error);
    void (*cancel)(mr_stage *stage); /* may be null */
    void (*deinit)(mr_stage *stage); /* frees only what the stage's own struct owns; may be null */
    /* Stages that are not seekable: everything except iteration and position, inputs included. Null: the inputs'
     * states. */
    mr_status (*save)(mr_stage *stage, mr_state *state, mr_error *error);
    mr_status (*restore)(mr_stage *stage, mr_state_reader *reader, mr_error *error);
} mr_stage_functions;

/* A stage. Embedded as the first member of a larger struct, in one malloc. Inputs are owned. */
struct mr_stage {
    const mr_stage_functions *functions;
    mr_stage *input;     /* order stages */
    mr_stage **children; /* stream stages: engines, one for each input; owned */
    int32_t child_count;
    /* The state is (iteration, position) alone: the item there does not depend on how the position was reached. */
    bool is_seekable;
    bool is_lost; /* out of memory: its inputs are not at the positions that belong to its own */
    const mr_dataset *dataset;
    const mr_run *run;
    mr_counters *counters;
    int64_t count; /* items of an iteration; MR_INFINITE; MR_CARDINALITY_UNKNOWN */
    uint64_t iteration;
    uint64_t position; /* of the next item */
    uint32_t purpose;  /* number in the chain */
    size_t kept_bytes; /* memory held between calls; of it, budgeted_bytes are in the budget */
    size_t budgeted_bytes;
    bool is_too_large; /* what it must keep does not fit into the budget: a permanent failure */
};

/* Reports a problem that the stage has handled but the user should know of; only the first one is stored. Any
 * thread. */
[[gnu::format(printf, 2, 3)]] void mr_stage_warn(const mr_stage *stage, const char *format, ...);

/* Counts memory that a stage keeps between calls. Small changes are collected and added to the budget together.
 * errors  MR_RESOURCE_EXHAUSTED when all kept memory does not fit: size_bytes are not counted, and the stage stays
 *         failed (is_too_large) until it begins again */
mr_status mr_stage_keep(mr_stage *stage, size_t size_bytes, mr_error *error);
void mr_stage_release(mr_stage *stage, size_t size_bytes);
/* The same for an item, which is deinitialized on an error. */
mr_status mr_item_keep(mr_stage *stage, mr_item *item, mr_error *error);
void mr_item_release(mr_stage *stage, const mr_item *item);
/* Changes *counted_bytes, which are part of what is kept, to now_bytes without a limit: for what one element needs. */
void mr_stage_keep_unlimited(mr_stage *stage, size_t *counted_bytes, size_t now_bytes);
void mr_stage_release_all(mr_stage *stage); /* nothing is kept any more */

void mr_stage_free(mr_stage *stage); /* and its inputs; null is allowed */
void mr_stage_cancel(mr_stage *stage);
/* The item at the position; counts it. When memory runs out, for the stage itself or for one of its input's elements,
 * later elements could be built from the wrong inputs. The stage therefore stays at its position: a permanent
 * failure. */
static inline mr_status mr_stage_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    uint64_t before = stage->position;
    mr_status status = stage->functions->next(stage, item, error);
    assert(stage->position <= before + 1);
    if (status == MR_RESOURCE_EXHAUSTED && (stage->input != nullptr || stage->child_count > 0)) {
        stage->position = before;
        stage->is_lost = true;
    }
    return status;
}
static inline mr_status mr_stage_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    stage->is_lost = false;
    return stage->functions->begin(stage, iteration, error);
}
static inline mr_status mr_stage_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    if (stage->is_lost) MR_TRY(mr_stage_begin(stage, stage->iteration, error));
    return stage->position == position ? MR_OK : stage->functions->seek(stage, position, error);
}
/* True when position is at or past the end of an iteration whose length is known. */
static inline bool mr_stage_ended(const mr_stage *stage)
{
    return stage->count >= 0 && stage->position >= (uint64_t)stage->count;
}
/* Saves the state of the stage and everything below it; restores it, whatever the stage has done before. */
mr_status mr_stage_save(mr_stage *stage, mr_state *state, mr_error *error);
mr_status mr_stage_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error);
/* save and restore for stages whose state is a function of the elements so far: they save nothing, and restore begins
 * again and goes forward. */
mr_status mr_stage_save_nothing(mr_stage *stage, mr_state *state, mr_error *error);
mr_status mr_stage_restore_forward(mr_stage *stage, mr_state_reader *reader, mr_error *error);
/* begin and seek for stages without state of their own. */
mr_status mr_stage_begin_simple(mr_stage *stage, uint64_t iteration, mr_error *error);
mr_status mr_stage_seek_simple(mr_stage *stage, uint64_t position, mr_error *error);
/* Skips the next element, also one that fails.
 * errors  MR_OUT_OF_RANGE; permanent failures, and those that might not occur again */
mr_status mr_stage_skip(mr_stage *stage, mr_error *error);
/* seek for stages that can only go forward: begins again and skips. */
mr_status mr_stage_seek_forward(mr_stage *stage, uint64_t position, mr_error *error);

/* Order stages: returns the input's next item, or its failure, as the stage's own next item, counted. */
mr_status mr_order_pull(mr_stage *stage, mr_item *item, mr_error *error);

/* Stream stages with one input: */
mr_status mr_stream_begin(mr_stage *stage, uint64_t iteration, mr_error *error);
/* The input's next element. An element that fails also takes a position of this stage. */
mr_status mr_stream_pull(mr_stage *stage, mr_item *item, mr_error *error);
/* Makes the item the stage's own next: numbers and counts it. */
void mr_stream_number(mr_stage *stage, mr_item *item);

/* No position exceeds MR_POSITION_MAX. A saved state with a position above MR_POSITION_SAVED_MAX is damaged; the rest
 * is room to continue. */
constexpr uint64_t MR_POSITION_MAX = (uint64_t)1 << 62, MR_POSITION_SAVED_MAX = MR_POSITION_MAX / 2;

/* ---- Work ---- */

/* One component of the element being processed. */
typedef struct mr_value {
    mr_dtype dtype;
    mr_shape shape;
    const void *data; /* the elements; borrowed from the source, the workspace's scratch, tensor, or the row */
    mr_string string; /* storage for a string scalar */
    int64_t integer;  /* storage for an int64 scalar */
    mr_tensor tensor; /* owned if it has a buffer; data then points into it */
    bool is_in_row;   /* the bytes are already in the row of the slot */
} mr_value;

/* Workspace: the memory that one worker keeps between elements, and the components of the element it is processing.
 * Used by one thread at a time. */
typedef struct mr_workspace mr_workspace;
struct mr_workspace {
    int32_t count;
    mr_value values[MR_COMPONENTS_MAX];
    void *rows[MR_COMPONENTS_MAX]; /* the element's rows in the slot; null if not of fixed size */
    mr_tensor keep;                /* what values borrow from; released when the element is done */
    mr_arena scratch;              /* valid until the element is done */
    bool is_dropped;               /* set by work that drops the element */
    char *bytes;                   /* the record; owned */
    size_t capacity_bytes;
    bool is_mapped; /* bytes is an mmap, not from malloc */
    mr_image_scratch *image;
    /* Called by work before it allocates much memory: waits until the budget has room, and reserves it. */
    void (*reserve)(mr_workspace *workspace, size_t size_bytes);
    const _Atomic bool *stop;           /* true: the element is no longer wanted; long work polls it */
    mr_tensor input[MR_COMPONENTS_MAX]; /* what a user function borrows during its call */
    mr_element output;                  /* the result of a user function; empty between elements */
    mr_error error;
};

/* One stage of work in an engine. */
typedef struct mr_work {
    const mr_dataset *dataset;
    mr_counters *counters;
    uint64_t seed;
    uint32_t purpose;
    bool is_last; /* no later work moves components: results may be written to workspace->rows */
} mr_work;

void mr_value_deinit(mr_value *value);
void mr_workspace_clear(mr_workspace *workspace); /* releases the element */
void mr_workspace_deinit(mr_workspace *workspace);
/* Replaces the workspace's record buffer by bytes, which must come from malloc; null is allowed. */
void mr_workspace_take_bytes(mr_workspace *workspace, char *bytes, size_t size_bytes);
/* Makes room for a record in the workspace. */
mr_status mr_workspace_reserve(mr_workspace *workspace, size_t size_bytes, mr_error *error);
/* Frees what an unusually large element needed; returns the bytes that the workspace keeps. */
size_t mr_workspace_trim(mr_workspace *workspace);
/* The workspace's values as an element that borrows them, for the duration of a user function's call. */
mr_element mr_workspace_view(mr_workspace *workspace);
/* The same for a payload. */
mr_element mr_payload_view(mr_payload *payload);
/* Replaces MR_OUT_OF_RANGE of a user function, which must not end a sequence, by MR_INVALID_ARGUMENT with its
 * message. */
mr_status mr_fail_out_of_range(mr_error *error);
/* The failure of a user function, or of a dataset that it created, in a stream stage. Prefixes the stage's name and
 * what it was called for: "scan: element 17: …". */
mr_status mr_stage_fail_prefix(const mr_stage *stage, const char *what, uint64_t number, mr_status status,
                               mr_error *error);
/* Moves the tensor into the value. */
void mr_value_take(mr_value *value, mr_tensor *tensor);
/* Moves the tensor out of the value, or copies the elements if the value only borrows them. */
mr_status mr_value_to_tensor(mr_value *value, mr_tensor *tensor, mr_error *error);

/* ---- Datasets ---- */

typedef enum mr_role {
    MR_ROLE_SOURCE,
    MR_ROLE_ORDER,
    MR_ROLE_WORK,
    MR_ROLE_BATCH,
    MR_ROLE_PREFETCH,
    MR_ROLE_STREAM,
    MR_ROLE_OPTIONS,   /* no stage */
    MR_ROLE_IGNORE,    /* settings of the engine below: which failures it skips */
    MR_ROLE_TO_DEVICE, /* a stage on top of the last engine */
} mr_role;

typedef struct mr_dataset_kind {
    const char *name;
    mr_role role;
    /* Hashes every setting that changes the elements, except the spec; null: there is none. See digest.h. */
    uint64_t (*digest)(const mr_dataset *dataset);
    /* Sources: hashes the content of tensors and files. Called when a digest is first needed, on any thread. May be
     * null. */
    mr_status (*digest_content)(const mr_dataset *dataset, uint64_t *content, mr_error *error);
    /* Sources and order stages: mr_stage_new allocates stage_size_bytes, sets input, dataset and run, and calls
     * prepare. */
    size_t stage_size_bytes;
    const mr_stage_functions *functions;
    mr_status (*prepare)(mr_stage *stage, mr_error *error); /* may be null */
    /* Sources with numbers: reads the element's values into the workspace. */
    mr_status (*read)(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error);
    /* Sources in memory: prefetches the cache lines of an element that will be read soon. May be null. */
    void (*prefetch)(const mr_dataset *dataset, uint64_t number);
    /* Sources in files: starts reading an element that will be needed soon, without waiting. Any thread. May be
     * null. */
    void (*read_ahead)(const mr_dataset *dataset, uint64_t number);
    /* Sources whose elements have fixed sizes and cannot fail: copies `count` elements, component c to consecutive rows
     * from rows[c] on. Used instead of read when no work follows. May be null. */
    void (*copy)(const mr_dataset *dataset, const mr_item *items, int32_t count, void *const *rows);
    /* Sources: "flowers-00001.tfrecord: record 17", for errors. */
    void (*describe)(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes);
    /* Work: maps the workspace's values in place. */
    mr_status (*work)(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace, mr_error *error);
    bool drops;                          /* work that may drop elements */
    bool reserves;                       /* work that may need much memory for an element */
    bool is_final;                       /* only options may follow */
    void (*deinit)(mr_dataset *dataset); /* may be null */
} mr_dataset_kind;

struct mr_dataset {
    const mr_dataset_kind *kind;
    _Atomic int32_t references;
    mr_dataset *input; /* a reference; null for sources */
    mr_dataset **more; /* further inputs of stream kinds: references; the array is in the arena */
    int32_t more_count;
    mr_arena arena; /* settings, names, spec */
    void *settings;
    mr_error *failure; /* the first error; null without one */
    mr_element_spec spec;
    int64_t count;              /* cardinality */
    int32_t depth;              /* number of datasets below, on the longest path */
    int32_t total;              /* datasets in the tree, this one included; too many fail */
    uint64_t seed;              /* for random work */
    bool is_heavy;              /* work that is worth threads */
    uint64_t share;             /* digest of which worker's part of each batch it delivers; 0: complete batches */
    _Atomic uint64_t *content;  /* result of digest_content; 0: not computed yet. In the arena; null without one */
    uint64_t function_settings; /* digest of its user function's settings; 0: none */
    uint64_t version;           /* mr_dataset_options.version, of this dataset alone */
    mr_dataset_options options;
};

/* Creates a dataset over input, with settings_size_bytes of zeroed settings. Takes ownership of the input (null for
 * sources). Spec and count are copied from the input. Never null: if the input is null or has failed, the result has
 * failed too, and builders return it unchanged. Without memory the result is the static unallocated dataset, which has
 * failed and has no settings. */
mr_dataset *mr_dataset_new(const mr_dataset_kind *kind, mr_dataset *input, size_t settings_size_bytes);
/* The same over several inputs, of which it takes ownership; spec and count are those of the first. count ≥ 1. */
mr_dataset *mr_dataset_new_of(const mr_dataset_kind *kind, mr_dataset *const *inputs, int32_t count,
                              size_t settings_size_bytes);
/* Options that are set in later replace those in options. */
void mr_dataset_options_merge(mr_dataset_options *options, const mr_dataset_options *later);
/* The nearest dataset, this one included, that is not just options. */
const mr_dataset *mr_dataset_without_options(const mr_dataset *dataset);
/* The dataset, below any options, that must be the last one; null if there is none. */
const mr_dataset *mr_dataset_final(const mr_dataset *dataset);
constexpr int32_t MR_THREADS_MAX = 1024;
/* Copies the options that a builder was given (base/options.h). Returns input, or, if the options are invalid, a
 * dataset that has failed instead of it. */
mr_dataset *mr_dataset_read_options(mr_dataset *input, void *options, size_t size, const void *given, const char *type);
#define MR_DATASET_READ(type, options, input, given)                                                                   \
    mr_dataset_read_options((input), (options), sizeof(type), (given), #type)
/* Records the dataset's first error and returns the dataset. */
[[gnu::format(printf, 3, 4)]] mr_dataset *mr_dataset_fail(mr_dataset *dataset, mr_status status, const char *format,
                                                          ...);
mr_dataset *mr_dataset_fail_with(mr_dataset *dataset, const mr_error *error);
/* Fails the dataset if a required argument is null: "map: function is null". Returns the dataset. */
mr_dataset *mr_dataset_require(mr_dataset *dataset, bool is_present, const char *argument);
/* Fails the dataset if an option is set that has no effect: "scan: threads has no effect: REASON". */
mr_dataset *mr_dataset_refuse(mr_dataset *dataset, bool is_set, const char *option, const char *reason);
/* Checks a number of threads (0: tuned) in the same way. */
mr_dataset *mr_dataset_check_threads(mr_dataset *dataset, int32_t threads);
bool mr_dataset_is_unallocated(const mr_dataset *dataset);
/* A failed dataset, for builders that have no input. */
[[gnu::format(printf, 1, 2)]] mr_dataset *mr_dataset_new_failed(const char *format, ...);
/* Whether the tensor has a dtype, a known shape, and all its elements in host memory. */
bool mr_tensor_is_complete(const mr_tensor *tensor);
static inline bool mr_dataset_failed(const mr_dataset *dataset)
{
    return dataset == nullptr || dataset->failure != nullptr;
}
/* As mr_dataset_record_files, but the files are only read when it is their turn: the records in front of damage are
 * delivered, then the error, then the next file. */
mr_dataset *mr_dataset_record_stream(const char *const *paths, int32_t count);
/* Copies the spec, including names, to the dataset; fails the dataset if it is invalid. */
mr_dataset *mr_dataset_take_spec(mr_dataset *dataset, const mr_element_spec *spec);
/* Joins two specs: dtypes must be equal; sizes that differ become unknown. errors: MR_INVALID_ARGUMENT */
mr_status mr_spec_join(mr_element_spec *spec, const mr_element_spec *other, mr_error *error);
/* Whether elements of spec `given` are valid where spec `wanted` is expected: equal dtypes, compatible shapes.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_spec_check(const mr_element_spec *given, const mr_element_spec *wanted, mr_error *error);
/* Changes a spec to that of batches. size: -1 if it varies. errors: too many dimensions */
mr_status mr_spec_batch(mr_element_spec *spec, int64_t size, mr_error *error);
/* Inserts component 0. There must be fewer than MR_COMPONENTS_MAX components. */
void mr_spec_put_first(mr_element_spec *spec, mr_dtype dtype, mr_shape shape);
/* Checks the result of a user function against the spec: count, dtypes, shapes, and elements in memory.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_element_check(const mr_element_spec *spec, const mr_element *element, mr_error *error);
/* Bytes of one element of the component; 0 if unknown or strings. */
size_t mr_spec_row_bytes(const mr_element_spec *spec, int32_t component);

/* Creates the stage of a source, order or stream dataset. Takes ownership of input or children, also on error. */
mr_status mr_stage_new(const mr_dataset *dataset, mr_stage *input, const mr_run *run, mr_counters *counters,
                       uint32_t purpose, mr_stage **stage, mr_error *error);
mr_status mr_stage_new_stream(const mr_dataset *dataset, mr_stage *const *children, int32_t count, const mr_run *run,
                              mr_counters *counters, uint32_t purpose, mr_stage **stage, mr_error *error);
/* The items 0, 1, …, count - 1: the numbers of batches. */
mr_status mr_stage_numbers(int64_t count, const mr_run *run, mr_counters *counters, mr_stage **stage, mr_error *error);

/* The functions of that stage, also for sources whose elements have numbers. */
extern const mr_stage_functions mr_numbers_functions;
/* "element 17": describe for sources without better names. */
void mr_describe_element(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes);

/* ---- Pipelines ---- */

/* The stages of a tree of datasets; the top one is an engine, or prefetch_to_device above an engine. */
typedef struct mr_pipeline {
    mr_stage *top;
    mr_counters *counters; /* owned; one for each dataset, inputs before their consumers */
    int32_t counter_count;
} mr_pipeline;

/* run      borrowed until deinit. With 0 threads all work is done by the caller
 * purpose  distinguishes the random numbers of several pipelines in one iterator; 0: the iterator's own */
mr_status mr_pipeline_init(mr_pipeline *pipeline, const mr_dataset *dataset, const mr_run *run, uint32_t purpose,
                           mr_error *error);
void mr_pipeline_deinit(mr_pipeline *pipeline);

/* ---- Settings that the engine and the iterator read ---- */

typedef struct mr_batch_settings {
    int64_t size;
    bool drop_remainder;
    const struct mr_pad *pads; /* one for each component, in the dataset's arena; null: elements have equal shapes */
    int32_t pad_count;
} mr_batch_settings;
/* How a batch is built from a component whose elements may differ in size. */
typedef enum mr_join { MR_JOIN_EQUAL, MR_JOIN_PADDED, MR_JOIN_RAGGED, MR_JOIN_SPARSE } mr_join;
typedef struct mr_pad {
    mr_join join;          /* MR_JOIN_EQUAL: shapes must be equal */
    mr_shape shape;        /* padded, sparse: the target, -1: the longest of the batch; ragged: an element's shape */
    mr_tensor value;       /* padding value: owned; a scalar, or empty: 0 and "" */
    int32_t ragged_rank;   /* ragged: number of row splits tensors, at least 1 */
    mr_dtype splits_dtype; /* MR_INT64 or MR_INT32 */
} mr_pad;
/* Number of tensors that the component becomes in a batch. null: 1 */
int32_t mr_pad_tensors(const mr_pad *pad);
typedef struct mr_ignore_settings {
    int64_t budget; /* failures to skip; -1: no limit */
    mr_ignore_function ignores;
    void *context;
} mr_ignore_settings;
typedef struct mr_prefetch_settings {
    int32_t depth;
} mr_prefetch_settings;
/* num_parallel_calls; 0 if tuned, or for another kind of dataset. */
int32_t mr_map_threads(const mr_dataset *dataset);
int32_t mr_filter_threads(const mr_dataset *dataset);
int32_t mr_decode_threads(const mr_dataset *dataset);
/* Whether the work leaves the other components where they are. */
bool mr_decode_keeps(const mr_dataset *dataset);

#endif
