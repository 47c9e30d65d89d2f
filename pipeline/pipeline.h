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
 * Every stage is a function of its position: seek goes to any element of an iteration. Therefore the place of a whole
 * pipeline is one number, the elements delivered, and save and restore are that number and a seek. */
#ifndef MR_PIPELINE_H
#define MR_PIPELINE_H

#include "base/arena.h"
#include "base/random.h"

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
    int32_t threads;
} mr_counters;

uint64_t mr_now_ns(void);

static inline void mr_count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* What the stages of one iterator share. */
typedef struct mr_run {
    _Atomic uint64_t seed; /* changes when a place of another run is restored */
    int32_t threads;
    size_t budget_bytes;
    mr_status (*allocate)(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    void *allocate_context;
} mr_run;

/* The seed of one stage: another one for each iterator seed, stage seed and place in the chain. */
uint64_t mr_stage_seed(const mr_run *run, uint64_t seed, uint32_t purpose);

/* ---- Items and order stages ---- */

/* Tensors on their way, where an element has no number by which it could be read again. */
typedef struct mr_payload {
    int32_t count;
    mr_tensor tensors[];
} mr_payload;

typedef struct mr_item {
    uint64_t epoch;  /* which pass over the source */
    uint64_t number; /* which of its elements */
    mr_payload *payload;
} mr_item;

mr_payload *mr_payload_new(int32_t count); /* null: no memory */
void mr_item_deinit(mr_item *item);

typedef struct mr_stage mr_stage;

/* One caller at a time; cancel from any thread. */
typedef struct mr_stage_functions {
    /* Position 0 of another iteration. Shuffle draws another order in each, sources hand the number on as the epoch. */
    mr_status (*begin)(mr_stage *stage, uint64_t iteration, mr_error *error);
    /* The item at the position, which moves on. errors: MR_OUT_OF_RANGE at the end of the iteration */
    mr_status (*next)(mr_stage *stage, mr_item *item, mr_error *error);
    /* Moves to a position of the iteration; past the end is the end. Cheap when it is the position already. */
    mr_status (*seek)(mr_stage *stage, uint64_t position, mr_error *error);
    void (*cancel)(mr_stage *stage); /* may be null */
    void (*deinit)(mr_stage *stage); /* of what is its own; may be null */
} mr_stage_functions;

/* Stages are embedded in larger structs of one malloc. The input is owned. */
struct mr_stage {
    const mr_stage_functions *functions;
    mr_stage *input;
    const mr_dataset *dataset;
    const mr_run *run;
    mr_counters *counters;
    int64_t count; /* items in an iteration; MR_FOREVER; MR_CARDINALITY_UNKNOWN */
    uint64_t iteration;
    uint64_t position; /* of the next item */
    uint32_t purpose;  /* place in the chain */
};

void mr_stage_free(mr_stage *stage); /* and its input; null is allowed */
void mr_stage_cancel(mr_stage *stage);
/* The item at the position; counts it. */
static inline mr_status mr_stage_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    return stage->functions->next(stage, item, error);
}
static inline mr_status mr_stage_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    return stage->position == position ? MR_OK : stage->functions->seek(stage, position, error);
}
static inline mr_status mr_stage_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    return stage->functions->begin(stage, iteration, error);
}
/* True when position is at or past the end of an iteration whose length is known. */
static inline bool mr_stage_ended(const mr_stage *stage)
{
    return stage->count >= 0 && stage->position >= (uint64_t)stage->count;
}
/* For begin and seek of stages without state of their own. */
mr_status mr_stage_begin_simple(mr_stage *stage, uint64_t iteration, mr_error *error);
mr_status mr_stage_seek_simple(mr_stage *stage, uint64_t position, mr_error *error);
/* seek by beginning again and dropping, for what can only go forward. */
mr_status mr_stage_seek_forward(mr_stage *stage, uint64_t position, mr_error *error);

/* Positions above this are nobody's; a place that holds one is damaged. */
constexpr uint64_t MR_POSITION_MAX = (uint64_t)1 << 62;

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
typedef struct mr_lane {
    int32_t count;
    mr_value values[MR_COMPONENTS_MAX];
    void *rows[MR_COMPONENTS_MAX]; /* the element's rows in the slot; null where it has none of fixed size */
    mr_tensor keep;                /* what values borrow from: given back when the element is done */
    mr_arena scratch;              /* good until the element is done */
    char *bytes;                   /* the record */
    size_t capacity_bytes;
    mr_image_scratch *image;
    mr_error error;
} mr_lane;

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
/* Room for a record in the lane. */
mr_status mr_lane_reserve(mr_lane *lane, size_t size_bytes, mr_error *error);
/* The value takes the tensor over. */
void mr_value_take(mr_value *value, mr_tensor *tensor);
/* The value as a tensor of its own: moved where it is one, else copied. The value is empty then. */
mr_status mr_value_to_tensor(mr_value *value, mr_tensor *tensor, mr_error *error);

/* ---- Datasets ---- */

typedef enum mr_role { MR_ROLE_SOURCE, MR_ROLE_ORDER, MR_ROLE_WORK, MR_ROLE_BATCH, MR_ROLE_PREFETCH } mr_role;

typedef struct mr_dataset_kind {
    const char *name;
    mr_role role;
    /* Settings that change the elements, for telling places of different pipelines apart. */
    uint64_t (*digest)(const mr_dataset *dataset);
    /* Sources and order stages: an empty stage of size_bytes, which new_stage fills (input, dataset and run are set). */
    size_t stage_size_bytes;
    const mr_stage_functions *functions;
    mr_status (*prepare)(mr_stage *stage, mr_error *error); /* may be null */
    /* Sources with numbers: the element's values into the lane. */
    mr_status (*read)(const mr_dataset *dataset, uint64_t number, mr_lane *lane, mr_error *error);
    /* Sources: "flowers-00001.tfrecord: record 17", for errors. */
    void (*describe)(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes);
    /* Work: from the lane's values to the lane's values. */
    mr_status (*work)(const mr_work *work, uint64_t epoch, uint64_t number, mr_lane *lane, mr_error *error);
    void (*deinit)(mr_dataset *dataset); /* may be null */
} mr_dataset_kind;

struct mr_dataset {
    const mr_dataset_kind *kind;
    _Atomic int32_t references;
    mr_dataset *input; /* a hold */
    mr_arena arena;    /* settings, names */
    void *settings;
    mr_error *failure; /* the first error; null without one */
    mr_element_spec spec;
    int64_t count; /* cardinality */
    int32_t depth; /* datasets below */
    uint64_t seed; /* of random work */
    bool is_heavy; /* work that wants threads */
};

/* A dataset over input (taken over, null for sources) with settings_size_bytes of cleared settings. The spec and count
 * are the input's. Null when there is no memory. When the input has failed the result has too: builders return it then
 * as it is. */
mr_dataset *mr_dataset_new(const mr_dataset_kind *kind, mr_dataset *input, size_t settings_size_bytes);
/* Records the dataset's first error and returns the dataset. */
[[gnu::format(printf, 3, 4)]] mr_dataset *mr_dataset_fail(mr_dataset *dataset, mr_status status, const char *format,
                                                          ...);
mr_dataset *mr_dataset_fail_with(mr_dataset *dataset, const mr_error *error);
static inline bool mr_dataset_failed(const mr_dataset *dataset)
{
    return dataset == nullptr || dataset->failure != nullptr;
}
/* Bytes of one element of the spec's component; 0 when not known or strings. */
size_t mr_spec_row_bytes(const mr_element_spec *spec, int32_t component);

uint64_t mr_digest(uint64_t digest, uint64_t value);
uint64_t mr_digest_bytes(uint64_t digest, const void *bytes, size_t size_bytes);

/* The stage of a source or order dataset. input is taken over, also on error. */
mr_status mr_stage_new(const mr_dataset *dataset, mr_stage *input, const mr_run *run, mr_counters *counters,
                       uint32_t purpose, mr_stage **stage, mr_error *error);
/* 0, 1, 2 … count - 1 as items: batches by number. */
mr_status mr_stage_numbers(int64_t count, const mr_run *run, mr_counters *counters, mr_stage **stage, mr_error *error);

/* The functions of that stage, for sources whose elements have numbers. */
extern const mr_stage_functions mr_numbers_functions;

/* ---- Settings that engine and iterator look at ---- */

typedef struct mr_batch_settings {
    int64_t size;
    bool drop_remainder;
} mr_batch_settings;
typedef struct mr_prefetch_settings {
    int32_t depth;
} mr_prefetch_settings;
/* Threads that the user asked for; 0 when this is another kind of stage, or tuned. */
int32_t mr_map_threads(const mr_dataset *dataset);
int32_t mr_decode_threads(const mr_dataset *dataset);
/* True of work that leaves all components where they are. */
bool mr_decode_keeps(const mr_dataset *dataset);

#endif
