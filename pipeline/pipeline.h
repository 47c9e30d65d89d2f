/* The inside of a pipeline.
 *
 * A dataset is a node of a chain: a kind (one file under stages/) and its settings. An iterator turns the chain into
 * stages and engines:
 *
 *   order    Sources, shuffle, repeat, take, skip and shard pass on items. An item of a source with an index is two
 *            numbers, (epoch, number): which element in which pass, not its bytes. So the order is settled before any
 *            byte is read, and costs next to nothing to move about in.
 *   work     What is done for each element by itself: read it, parse, decode, the user's map. It gives one element for
 *            one and draws its random numbers from (seed, epoch, number, stage), so it does not matter whether an order
 *            stage stands before or after it, nor which thread does it.
 *   engine   Takes items off the order, does all the work of an element in one go on one of its threads, and writes the
 *            result into the element's row of a batch slot (engine.h).
 *
 *   stream   Stages that cannot know from a position alone what is there: what filter lets through, interleave, zip,
 *            windows, generators. Their inputs are pipelines of their own (each with an engine on top), whose elements
 *            they pull one by one.
 *
 * Sources and order stages are functions of their position: seek goes to any element of an iteration. The place of a
 * pipeline made of nothing else is one number, the elements delivered, and save and restore are that number and a seek.
 * Where a stream stage is part of it, the place is what each stage from there on up saves: positions of inputs and
 * references to elements, never the elements themselves, which are read again. */
#ifndef MR_PIPELINE_H
#define MR_PIPELINE_H

#include "base/arena.h"
#include "base/random.h"
#include "pipeline/digest.h"
#include "pipeline/engine/watch.h"
#include "pipeline/state.h"

#include <assert.h>
#include <millrace/dataset.h>
#include <stdatomic.h>

/* Longest chain of datasets; most elements of a batch. */
constexpr int32_t MR_STAGES_MAX = 64;
constexpr int32_t MR_BATCH_MAX = 1 << 24;

/* ---- Counting ---- */

/* Written by the threads of the stage, read by anybody. */
typedef struct mr_counters {
    const char *stage;
    _Atomic uint64_t elements, bytes, busy_ns, input_wait_ns, output_wait_ns;
    /* Slots; how many were ready behind one when it was, and how many could have been, added up. */
    _Atomic uint64_t delivered, ready, room;
    _Atomic int32_t threads, slots_max;
    _Atomic size_t held_bytes;
    /* The first warning: written by whoever sets warned to 1, read by anybody once it is 2. */
    _Atomic int32_t warned;
    char warning[MR_WARNING_SIZE];
} mr_counters;

uint64_t mr_now_ns(void);

static inline void mr_count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* ---- The budget ---- */

/* The bytes that the stages of one iterator may hold between calls, and do hold. Two kinds share them:
 *
 *   read ahead  Slots of engines, and what their threads keep. It becomes less when others need the room: another slot goes
 *               into flight only while there is room for it, and what is due goes on without.
 *   kept        Elements of a cache, a shuffle or a window, a set of values. It cannot become less, so nobody waits for it:
 *               a stage whose elements do not fit beside all else that is kept fails.
 *
 * So there is nothing to wait for in a circle: who waits for room is never what is due. */
typedef struct mr_budget {
    size_t limit_bytes;
    _Atomic size_t held_bytes;          /* both kinds */
    _Atomic size_t kept_bytes;          /* what is kept, and one slot for each engine */
    const struct mr_pipeline *pipeline; /* whose counters say who holds it; null: nobody is named */
} mr_budget;

/* What the stages of one iterator share. */
typedef struct mr_run {
    _Atomic uint64_t seed; /* changes when a place of another run is restored */
    int32_t threads;
    mr_budget *budget;
    /* Of the stage that runs this pipeline inside itself, which holds all of it; null: the iterator's. */
    mr_counters *holder;
    mr_status (*allocate)(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    void *allocate_context;
    mr_watch *watch;            /* null: nobody watches */
    struct mr_engines *engines; /* all of the iterator */
    bool has_digest;            /* of what is delivered */
    struct mr_tuning *tuning;   /* null: threads and depths stay as they are */
} mr_run;

/* For loops of unknown length: what they fail with, MR_CANCELLED, nobody sees. */
bool mr_run_is_cancelled(const mr_run *run);
/* The seed of one stage: another one for each iterator seed, stage seed and place in the chain. */
uint64_t mr_stage_seed(const mr_run *run, uint64_t seed, uint32_t purpose);

/* More is held, or, with a negative number, less; counters: of the stage that holds it. Any thread. */
void mr_budget_reserve(const mr_run *run, mr_counters *counters, ptrdiff_t more_bytes);
/* Whether there is room to read more ahead. */
bool mr_budget_has_room(const mr_run *run, size_t more_bytes);
/* Reserves what cannot become less. errors: MR_RESOURCE_EXHAUSTED when it does not fit; nothing is reserved then */
mr_status mr_budget_keep(const mr_run *run, const char *stage, size_t more_bytes, mr_error *error);
void mr_budget_let_go(const mr_run *run, size_t less_bytes);

/* ---- Items and order stages ---- */

/* Tensors on their way, where an element has no number by which it could be read again. */
typedef struct mr_payload {
    int32_t count;
    bool is_kept; /* by a stage that counts what the tensors hold */
    mr_tensor tensors[];
} mr_payload;

typedef struct mr_item {
    uint64_t epoch;  /* which pass over the source */
    uint64_t number; /* which of its elements */
    mr_payload *payload;
} mr_item;

mr_payload *mr_payload_new(int32_t count); /* null: no memory */
void mr_item_deinit(mr_item *item);
/* What a tensor, a payload takes in memory; of a share in something larger, its part. */
size_t mr_tensor_held_bytes(const mr_tensor *tensor);
size_t mr_payload_bytes(const mr_payload *payload);
/* For elements that stay for long: tensors that are a small part of a batch, or of a block of elements, become copies, so
 * that they do not keep all of it. */
mr_status mr_payload_settle(mr_payload *payload, mr_error *error);

typedef struct mr_stage mr_stage;

/* One caller at a time; cancel from any thread. */
typedef struct mr_stage_functions {
    /* Position 0 of another iteration. Shuffle draws another order in each, sources hand the number on as the epoch. */
    mr_status (*begin)(mr_stage *stage, uint64_t iteration, mr_error *error);
    /* The item at the position, which moves on, also over an element that failed: that is its error, once. One that
     * leaves the position where it is has failed permanently. errors: MR_OUT_OF_RANGE at the end of the iteration */
    mr_status (*next)(mr_stage *stage, mr_item *item, mr_error *error);
    /* Moves to a position of the iteration; past the end is the end. Cheap when it is the position already. */
    mr_status (*seek)(mr_stage *stage, uint64_t position, mr_error *error);
    void (*cancel)(mr_stage *stage); /* may be null */
    void (*deinit)(mr_stage *stage); /* of what is its own; may be null */
    /* Of stages that are not seekable: everything beside iteration and position, inputs included. Null: the inputs. */
    mr_status (*save)(mr_stage *stage, mr_state *place, mr_error *error);
    mr_status (*restore)(mr_stage *stage, mr_state_reader *reader, mr_error *error);
} mr_stage_functions;

/* Stages are embedded in larger structs of one malloc. The inputs are owned. */
struct mr_stage {
    const mr_stage_functions *functions;
    mr_stage *input;     /* of order stages */
    mr_stage **children; /* of stream stages: engines, one for each input */
    int32_t child_count;
    /* iteration and position are the whole of the place: the same item is there however one came to it. */
    bool is_seekable;
    bool is_lost; /* memory was short: it is not where its inputs are */
    const mr_dataset *dataset;
    const mr_run *run;
    mr_counters *counters;
    int64_t count; /* items in an iteration; MR_INFINITE; MR_CARDINALITY_UNKNOWN */
    uint64_t iteration;
    uint64_t position; /* of the next item */
    uint32_t purpose;  /* place in the chain */
    size_t kept_bytes; /* between calls; of it told_bytes are in the budget */
    size_t told_bytes;
    bool is_too_large; /* the budget does not hold what it has to keep: it has failed permanently */
};

/* What the stage worked around and the user should know; the first one is kept. Any thread. */
[[gnu::format(printf, 2, 3)]] void mr_stage_warn(const mr_stage *stage, const char *format, ...);

/* For stages that keep elements, or what they know of them, between calls: small changes are told the budget together.
 * errors: MR_RESOURCE_EXHAUSTED when all that is kept does not fit. size_bytes are not counted then, and the stage is too
 * large, until it begins again */
mr_status mr_stage_keep(mr_stage *stage, size_t size_bytes, mr_error *error);
void mr_stage_let_go(mr_stage *stage, size_t size_bytes);
/* The same of an element, which is gone after an error. */
mr_status mr_item_keep(mr_stage *stage, mr_item *item, mr_error *error);
void mr_item_let_go(mr_stage *stage, const mr_item *item);
/* Sets *counted_bytes of what is kept to now_bytes: what one element needs it gets. */
void mr_stage_must_keep(mr_stage *stage, size_t *counted_bytes, size_t now_bytes);
void mr_stage_forget(mr_stage *stage); /* nothing is kept any more */

void mr_stage_free(mr_stage *stage); /* and its input; null is allowed */
void mr_stage_cancel(mr_stage *stage);
/* The item at the position; counts it. Where memory was short, for what a stage does or for one of its input's elements,
 * what it would make of the elements behind is something else: it stays where it is, which is to fail for good. */
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
/* The place of the stage and all below it; and back there, from whatever state. */
mr_status mr_stage_save(mr_stage *stage, mr_state *place, mr_error *error);
mr_status mr_stage_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error);
/* save and restore of stages whose state is no more than what their inputs' elements so far made of it: they begin again
 * and go forward. */
mr_status mr_stage_save_nothing(mr_stage *stage, mr_state *place, mr_error *error);
mr_status mr_stage_restore_forward(mr_stage *stage, mr_state_reader *reader, mr_error *error);
/* For begin and seek of stages without state of their own. */
mr_status mr_stage_begin_simple(mr_stage *stage, uint64_t iteration, mr_error *error);
mr_status mr_stage_seek_simple(mr_stage *stage, uint64_t position, mr_error *error);
/* Goes by the next element, also by one that fails. errors: MR_OUT_OF_RANGE; what may not fail the next time */
mr_status mr_stage_pass(mr_stage *stage, mr_error *error);
/* seek by beginning again and passing, for what can only go forward. */
mr_status mr_stage_seek_forward(mr_stage *stage, uint64_t position, mr_error *error);

/* Of order stages: the input's item at its position as the stage's own next, counted; or its failure. */
mr_status mr_order_pull(mr_stage *stage, mr_item *item, mr_error *error);

/* Of stream stages with one input: */
mr_status mr_stream_begin(mr_stage *stage, uint64_t iteration, mr_error *error);
/* The input's next element. One that failed takes a position of this stage too. */
mr_status mr_stream_pull(mr_stage *stage, mr_item *item, mr_error *error);
/* The item as the stage's own next: numbered, counted. */
void mr_stream_number(mr_stage *stage, mr_item *item);

/* Positions above this are nobody's. A state that holds one above MR_POSITION_SAVED_MAX is damaged: so there is room for
 * what follows. */
constexpr uint64_t MR_POSITION_MAX = (uint64_t)1 << 62, MR_POSITION_SAVED_MAX = MR_POSITION_MAX / 2;

/* ---- Work ---- */

/* One component of the element that is worked on. */
typedef struct mr_value {
    mr_dtype dtype;
    mr_shape shape;
    const void *data; /* the elements, borrowed: from the source, the lane's scratch, tensor or the row */
    mr_string string; /* room for the one element of a string scalar */
    int64_t integer;  /* room for the one element of an int64 scalar */
    mr_tensor tensor; /* owned when it has a buffer; data then lies in it */
    bool is_placed;   /* the bytes already lie in the row of the slot */
} mr_value;

/* What one thread keeps between elements. */
typedef struct mr_lane mr_lane;
struct mr_lane {
    int32_t count;
    mr_value values[MR_COMPONENTS_MAX];
    void *rows[MR_COMPONENTS_MAX]; /* the element's rows in the slot; null where it has none of fixed size */
    mr_tensor keep;                /* what values borrow from: given back when the element is done */
    mr_arena scratch;              /* good until the element is done */
    bool is_dropped;               /* set by work that lets the element fall */
    char *bytes;                   /* the record */
    size_t capacity_bytes;
    bool is_mapped; /* bytes are pages of their own, not malloc's */
    mr_image_scratch *image;
    /* Work that is about to take much memory for its result says so, and waits until the budget has it. */
    void (*reserve)(mr_lane *lane, size_t size_bytes);
    const _Atomic bool *stop; /* true: nobody wants the element any more; work that takes long looks */
    mr_element made;          /* what a function of the user makes; empty between elements */
    mr_error error;
};

/* One stage of work of an engine. */
typedef struct mr_work {
    const mr_dataset *dataset;
    mr_counters *counters;
    uint64_t seed;
    uint32_t purpose;
    bool is_last; /* components are where they stay: results may be written to lane->rows */
} mr_work;

void mr_value_deinit(mr_value *value);
void mr_lane_clear(mr_lane *lane); /* forgets the element */
void mr_lane_deinit(mr_lane *lane);
/* From malloc, in the place of what the lane has; null is allowed. */
void mr_lane_take_bytes(mr_lane *lane, char *bytes, size_t size_bytes);
/* Room for a record in the lane. */
mr_status mr_lane_reserve(mr_lane *lane, size_t size_bytes, mr_error *error);
/* Gives back what an unusually large element took, and returns what the lane keeps. */
size_t mr_lane_trim(mr_lane *lane);
/* The lane's values as an element that borrows them: for the call of a function, no longer. */
mr_status mr_lane_view(mr_lane *lane, mr_element *element, mr_error *error);
/* The same of a payload. */
void mr_payload_view(const mr_payload *payload, mr_element *element);
/* Functions of the user may not end a sequence: MR_INVALID_ARGUMENT with what they said. */
mr_status mr_fail_out_of_range(mr_error *error);
/* What a function of the user, or a dataset that it made, said in a stream stage: its failure with the stage's name and
 * what it was for: "scan: element 17: …". */
mr_status mr_stage_said(const mr_stage *stage, const char *what, uint64_t number, mr_status status, mr_error *error);
/* The value takes the tensor over. */
void mr_value_take(mr_value *value, mr_tensor *tensor);
/* The value as a tensor of its own: moved where it is one, else copied. The value is empty then. */
mr_status mr_value_to_tensor(mr_value *value, mr_tensor *tensor, mr_error *error);

/* ---- Datasets ---- */

typedef enum mr_role {
    MR_ROLE_SOURCE,
    MR_ROLE_ORDER,
    MR_ROLE_WORK,
    MR_ROLE_BATCH,
    MR_ROLE_PREFETCH,
    MR_ROLE_STREAM,
    MR_ROLE_OPTIONS,   /* no stage at all */
    MR_ROLE_IGNORE,    /* settings of the engine below: what fails there is left out */
    MR_ROLE_TO_DEVICE, /* a stage on top of the last engine */
} mr_role;

typedef struct mr_dataset_kind {
    const char *name;
    mr_role role;
    /* Every setting that changes the elements, beside the spec; null: there is none. See digest.h. */
    uint64_t (*digest)(const mr_dataset *dataset);
    /* Sources: the content of tensors and files. Called when a digest is first wanted, on any thread. May be null. */
    mr_status (*digest_content)(const mr_dataset *dataset, uint64_t *content, mr_error *error);
    /* Sources and order stages: an empty stage of size_bytes, which new_stage fills (input, dataset and run are set). */
    size_t stage_size_bytes;
    const mr_stage_functions *functions;
    mr_status (*prepare)(mr_stage *stage, mr_error *error); /* may be null */
    /* Sources with numbers: the element's values into the lane. */
    mr_status (*read)(const mr_dataset *dataset, uint64_t number, mr_lane *lane, mr_error *error);
    /* Sources in memory: asks for the lines of an element that is soon read. May be null. */
    void (*prefetch)(const mr_dataset *dataset, uint64_t number);
    /* Sources in files: lets the system begin to read an element that is soon wanted. Any thread. May be null. */
    void (*ask)(const mr_dataset *dataset, uint64_t number);
    /* Sources whose elements have fixed sizes and cannot fail: `count` of them, component c one behind the other from
     * rows[c] on. Where nothing else is to be done for an element, instead of read. May be null. */
    void (*copy)(const mr_dataset *dataset, const mr_item *items, int32_t count, void *const *rows);
    /* Sources: "flowers-00001.tfrecord: record 17", for errors. */
    void (*describe)(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes);
    /* Work: from the lane's values to the lane's values. */
    mr_status (*work)(const mr_work *work, uint64_t epoch, uint64_t number, mr_lane *lane, mr_error *error);
    bool drops;                          /* work that may let elements fall */
    bool reserves;                       /* work that may take much memory for an element */
    bool is_final;                       /* only options may follow */
    void (*deinit)(mr_dataset *dataset); /* may be null */
} mr_dataset_kind;

struct mr_dataset {
    const mr_dataset_kind *kind;
    _Atomic int32_t references;
    mr_dataset *input; /* a hold */
    mr_dataset **more; /* further inputs of stream kinds: holds; the array is in the arena */
    int32_t more_count;
    mr_arena arena; /* settings, names */
    void *settings;
    mr_error *failure; /* the first error; null without one */
    mr_element_spec spec;
    int64_t count;              /* cardinality */
    int32_t depth;              /* datasets below */
    uint64_t seed;              /* of random work */
    bool is_heavy;              /* work that wants threads */
    uint64_t share;             /* digest of which worker's part of batches it delivers; 0: all of them */
    _Atomic uint64_t *content;  /* what digest_content found; 0: not called yet. In the arena; null without one */
    uint64_t function_settings; /* digest of the settings that its function has; 0: none */
    uint64_t version;           /* of mr_dataset_options; of this dataset alone */
    mr_dataset_options options;
};

/* A dataset over input (taken over, null for sources) with settings_size_bytes of cleared settings. The spec and count
 * are the input's. Never null. When the input is null or has failed, the result has failed too: builders return it then as
 * it is. Without memory the result is unallocated: it has failed, has no settings and is shared. */
mr_dataset *mr_dataset_new(const mr_dataset_kind *kind, mr_dataset *input, size_t settings_size_bytes);
/* The same over several inputs, which are taken over; spec and count are the first's. count ≥ 1. */
mr_dataset *mr_dataset_new_of(const mr_dataset_kind *kind, mr_dataset *const *inputs, int32_t count,
                              size_t settings_size_bytes);
/* Those that say something take the place of what is there. */
void mr_dataset_options_merge(mr_dataset_options *options, const mr_dataset_options *later);
/* The dataset below that is a stage. */
const mr_dataset *mr_dataset_without_options(const mr_dataset *dataset);
constexpr int32_t MR_THREADS_MAX = 1024;
/* Records the dataset's first error and returns the dataset. */
[[gnu::format(printf, 3, 4)]] mr_dataset *mr_dataset_fail(mr_dataset *dataset, mr_status status, const char *format,
                                                          ...);
mr_dataset *mr_dataset_fail_with(mr_dataset *dataset, const mr_error *error);
/* Fails the dataset when an argument is null that must not be: "map: function is null". Returns the dataset. */
mr_dataset *mr_dataset_require(mr_dataset *dataset, bool is_there, const char *argument);
/* Fails the dataset when an option is set that has no effect: "scan: threads has no effect: REASON". */
mr_dataset *mr_dataset_refuse(mr_dataset *dataset, bool is_set, const char *option, const char *reason);
/* The same for a number of threads, of which 0 is tuned. */
mr_dataset *mr_dataset_check_threads(mr_dataset *dataset, int32_t threads);
bool mr_dataset_is_unallocated(const mr_dataset *dataset);
/* A dataset that only has this error, where there is no input to build one over. */
[[gnu::format(printf, 1, 2)]] mr_dataset *mr_dataset_new_failed(const char *format, ...);
/* True when the tensor has a dtype, a known shape, and as many elements in host memory. */
bool mr_tensor_is_complete(const mr_tensor *tensor);
static inline bool mr_dataset_failed(const mr_dataset *dataset)
{
    return dataset == nullptr || dataset->failure != nullptr;
}
/* Takes over a copy of what the elements look like, names included; fails the dataset when it cannot be. */
mr_dataset *mr_dataset_take_spec(mr_dataset *dataset, const mr_element_spec *spec);
/* What elements of either spec look like: equal dtypes, sizes where they agree. errors: MR_INVALID_ARGUMENT */
mr_status mr_spec_join(mr_element_spec *spec, const mr_element_spec *other, mr_error *error);
/* What batches of such elements look like. size: -1 when it is not always the same. errors: too many dimensions */
mr_status mr_spec_batch(mr_element_spec *spec, int64_t size, mr_error *error);
/* Another component before the others, which must be fewer than MR_COMPONENTS_MAX. */
void mr_spec_put_first(mr_element_spec *spec, mr_dtype dtype, mr_shape shape);
/* Whether what a function of the user made is an element of the spec: count, dtypes, shapes, and elements in memory.
 * errors  MR_INVALID_ARGUMENT in one sentence */
mr_status mr_element_check(const mr_element_spec *spec, const mr_element *element, mr_error *error);
/* Frees all tensors of an element that was empty before a function of the user filled it, whatever its count says. */
void mr_element_deinit_made(mr_element *element);
/* Bytes of one element of the spec's component; 0 when not known or strings. */
size_t mr_spec_row_bytes(const mr_element_spec *spec, int32_t component);

/* The stage of a source, order or stream dataset. input, or children, are taken over, also on error. */
mr_status mr_stage_new(const mr_dataset *dataset, mr_stage *input, const mr_run *run, mr_counters *counters,
                       uint32_t purpose, mr_stage **stage, mr_error *error);
mr_status mr_stage_new_stream(const mr_dataset *dataset, mr_stage *const *children, int32_t count, const mr_run *run,
                              mr_counters *counters, uint32_t purpose, mr_stage **stage, mr_error *error);
/* 0, 1, 2 … count - 1 as items: batches by number. */
mr_status mr_stage_numbers(int64_t count, const mr_run *run, mr_counters *counters, mr_stage **stage, mr_error *error);

/* The functions of that stage, for sources whose elements have numbers. */
extern const mr_stage_functions mr_numbers_functions;
/* Of sources whose elements have no better name: "element 17". */
void mr_describe_element(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes);

/* ---- Pipelines ---- */

/* What a tree of datasets became: stages and, on top, an engine. */
typedef struct mr_pipeline {
    mr_stage *top;
    mr_counters *counters; /* owned; of each dataset, inputs before what they go into */
    int32_t counter_count;
} mr_pipeline;

/* run      borrowed until deinit. Its threads may be 0: everything is done on the caller's
 * purpose  tells random numbers of pipelines in one iterator apart; 0 for the iterator's own */
mr_status mr_pipeline_init(mr_pipeline *pipeline, const mr_dataset *dataset, const mr_run *run, uint32_t purpose,
                           mr_error *error);
void mr_pipeline_deinit(mr_pipeline *pipeline);

/* ---- Settings that engine and iterator look at ---- */

typedef struct mr_batch_settings {
    int64_t size;
    bool drop_remainder;
    const struct mr_pad *pads; /* of each component, in the dataset's arena; null: elements have equal shapes */
    int32_t pad_count;
} mr_batch_settings;
/* What becomes of a component whose elements may differ in size. */
typedef enum mr_join { MR_JOIN_EQUAL, MR_JOIN_PADDED, MR_JOIN_RAGGED, MR_JOIN_SPARSE } mr_join;
typedef struct mr_pad {
    mr_join join;    /* equal: they must not differ */
    mr_shape shape;  /* padded and sparse: to which, sizes of -1 are the longest of the batch; ragged: of an element */
    mr_tensor value; /* padded with: owned; a scalar, or empty: 0 and "" */
    int32_t ragged_rank;   /* ragged: the row splits of a batch, at least 1 */
    mr_dtype splits_dtype; /* MR_INT64 or MR_INT32 */
} mr_pad;
/* Tensors that a component comes to in a batch. null: 1 */
int32_t mr_pad_tensors(const mr_pad *pad);
typedef struct mr_ignore_settings {
    int64_t budget; /* failures that are left out; -1: any number */
    mr_ignore_function ignores;
    void *context;
} mr_ignore_settings;
typedef struct mr_prefetch_settings {
    int32_t depth;
} mr_prefetch_settings;
/* Threads that the user asked for; 0 when this is another kind of stage, or tuned. */
int32_t mr_map_threads(const mr_dataset *dataset);
int32_t mr_filter_threads(const mr_dataset *dataset);
int32_t mr_decode_threads(const mr_dataset *dataset);
/* True of work that leaves all components where they are. */
bool mr_decode_keeps(const mr_dataset *dataset);

#endif
