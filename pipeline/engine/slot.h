/* Slot: the memory of one batch, or of one block of single elements, and the rows in it.
 *
 * A component whose elements have a fixed size has a column: one buffer of rows, which workers write side by side and
 * which is the batch tensor as soon as it is full. The consumer gets a share of the buffer; when the slot's own share is
 * the only one again, the slot is used for another batch. So a loop of batches allocates nothing.
 * Scalar strings have a column too: their bytes wait row by row, in memory that stays with the row, and are put together
 * when the batch is full. Anything else is a tensor for each row, copied together at the end if the shapes agree. */
#ifndef MR_PIPELINE_SLOT_H
#define MR_PIPELINE_SLOT_H

#include "pipeline/pipeline.h"

typedef enum mr_column_kind { MR_COLUMN_FIXED, MR_COLUMN_STRINGS, MR_COLUMN_LOOSE } mr_column_kind;

typedef struct mr_column_plan {
    mr_column_kind kind;
    mr_dtype dtype;
    mr_shape shape; /* of a row */
    size_t row_bytes;
    const mr_pad *pad; /* rows may differ in size; null: they must not */
} mr_column_plan;

/* What all slots of an engine have in common. */
typedef struct mr_slot_plan {
    const mr_run *run;
    int32_t rows; /* in a full slot */
    bool is_batch;
    int32_t count;         /* of columns */
    bool drops;            /* rows may be dropped */
    bool has_payloads;     /* items come with their tensors, which are theirs until their row is worked on */
    mr_counters *counters; /* of the stage that holds the slots */
    size_t fixed_bytes;
    size_t head_bytes; /* what a slot has for each row beside the columns */
    mr_column_plan columns[MR_COMPONENTS_MAX];
} mr_slot_plan;

/* The columns of elements of that spec, joined as pads say when they are given. errors: MR_RESOURCE_EXHAUSTED when a slot is larger than memory can be */
mr_status mr_slot_plan_init(mr_slot_plan *plan, const mr_element_spec *spec, const mr_pad *pads, int32_t rows,
                            bool is_batch, const mr_run *run, mr_error *error);

typedef struct mr_text {
    char *bytes;
    size_t size_bytes, capacity_bytes;
} mr_text;

typedef struct mr_column {
    mr_buffer *buffer; /* fixed: the rows; strings: the finished elements and their bytes */
    mr_text *texts;    /* strings: of each row */
    mr_tensor *loose;  /* loose: of each row */
} mr_column;

/* Guarded by the engine's mutex but for what the worker of a row writes: that row's parts. */
typedef struct mr_slot mr_slot;
struct mr_slot {
    mr_slot *next; /* in the list that it is in */
    const mr_slot_plan *plan;
    uint64_t epoch, number; /* of the batch */
    int32_t rows;           /* in this batch */
    int32_t taken, done;    /* rows that a worker has begun, finished */
    bool is_complete;       /* the batch is put together */
    int32_t asked;          /* rows whose bytes the system was told to begin to read; -1: none is to be */
    uint64_t waits;         /* times that a worker slept in the work on its rows */
    size_t extra_bytes;     /* of the batch, beside its fixed columns */
    size_t held_bytes;      /* what the run counts as its memory */
    mr_item *items;         /* of each row */
    bool *is_row_done;      /* of each row */
    bool *is_row_dropped;   /* of each row; null when none ever is */
    mr_state place;         /* of the order before these rows, when a position is not enough */
    mr_error **failures;    /* of each row; null where there is none */
    mr_error *failure;      /* of the whole batch: a work after batch failed */
    mr_column columns[MR_COMPONENTS_MAX];
    int32_t result_count;
    mr_tensor results[MR_COMPONENTS_MAX]; /* the batch */
};

/* What holds of a slot whenever the engine's mutex is held; the results belong to the thread that assembles them. */
static inline bool mr_slot_is_consistent(const mr_slot *slot)
{
    return slot->rows >= 0 && slot->rows <= slot->plan->rows && slot->done >= 0 && slot->done <= slot->taken &&
           slot->taken <= slot->rows && slot->asked >= -1 && slot->asked <= slot->rows &&
           (!slot->is_complete || slot->done == slot->rows);
}

mr_status mr_slot_new(const mr_slot_plan *plan, mr_slot **slot, mr_error *error);
void mr_slot_free(mr_slot *slot); /* null is allowed */
/* Forgets what is in it; the memory stays, but for what a few unusually large rows took. */
void mr_slot_clear(mr_slot *slot);
/* Items, strings and loose rows [begin, end) as they are now: of rows that nobody works on, or the caller. */
size_t mr_slot_rows_bytes(const mr_slot *slot, int32_t begin, int32_t end);
/* Tells the run how much memory it holds, when nobody works on it; or that some rows took more bytes, or fewer. */
void mr_slot_account(mr_slot *slot);
void mr_slot_account_rows(mr_slot *slot, size_t bytes_before, size_t bytes_now);
/* True when nobody else holds its memory. */
bool mr_slot_is_free(const mr_slot *slot);
/* The lane's rows point into the slot's row. */
void mr_slot_aim(const mr_slot *slot, int32_t row, mr_lane *lane);
/* The lane's values into the row. */
mr_status mr_slot_place(mr_slot *slot, int32_t row, mr_lane *lane, mr_error *error);
/* Keeps a copy of the error as the row's; without memory a static one. */
void mr_slot_fail_row(mr_slot *slot, int32_t row, const mr_error *error);
void mr_slot_fail(mr_slot *slot, const mr_error *error);
/* The failure of the first row that has one, or of the batch; null without one. */
const mr_error *mr_slot_failure(const mr_slot *slot);
/* Puts the rows together as results. */
mr_status mr_slot_assemble(mr_slot *slot, mr_error *error);
/* Of rows that the column's pad joins: as many tensors as mr_pad_tensors says. results are empty on entry, and owned by the
 * caller also on error. */
mr_status mr_slot_assemble_pad(mr_slot *slot, int32_t component, mr_tensor *results, mr_error *error);
/* The elements of all rows, one behind the other, under a shape with as many. */
mr_status mr_slot_concatenate(const mr_tensor *rows, int32_t count, mr_dtype dtype, mr_shape shape, mr_tensor *result,
                              mr_error *error);
/* One row as tensors: a share of the columns. */
mr_status mr_slot_take_row(mr_slot *slot, int32_t row, mr_tensor *tensors, mr_error *error);

#endif
