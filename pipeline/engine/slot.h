/* Slot: the memory of one batch, or of one block of single elements.
 *
 * A component whose elements have a fixed size has a column: one buffer of rows, which workers write concurrently and
 * which is the batch tensor when it is full. The consumer receives a reference to the buffer. When the slot's own
 * reference is the only one again, the slot is reused for another batch, so a loop over batches allocates nothing.
 * Scalar strings have a column too: their bytes are stored in memory that belongs to the row, and are copied together
 * when the batch is full. Any other component has one tensor for each row; these are copied together at the end if
 * their shapes agree, or joined as a pad specifies (slot_forms.c).
 *
 * Threads: the engine's mutex guards a slot, except for the parts of a row, which the worker that has taken the row
 * writes without a lock, and the results, which the thread that assembles the batch writes. */
#ifndef MR_PIPELINE_SLOT_H
#define MR_PIPELINE_SLOT_H

#include "pipeline/pipeline.h"

typedef enum mr_column_kind { MR_COLUMN_FIXED, MR_COLUMN_STRINGS, MR_COLUMN_LOOSE } mr_column_kind;

typedef struct mr_column_plan {
    mr_column_kind kind;
    mr_dtype dtype;
    mr_shape shape; /* of a row */
    size_t row_bytes;
    const mr_pad *pad; /* how rows of different sizes are joined; null: sizes must be equal */
} mr_column_plan;

/* What all slots of an engine have in common. */
typedef struct mr_slot_plan {
    const mr_run *run;
    int32_t rows; /* of a full slot */
    bool is_batch;
    int32_t count;         /* of columns */
    bool drops;            /* rows may be dropped */
    bool has_payloads;     /* items come with tensors, which belong to the item until its row is processed */
    mr_counters *counters; /* of the stage that holds the slots */
    size_t fixed_bytes;
    size_t head_bytes; /* memory for each row outside the columns, and the slot itself */
    mr_column_plan columns[MR_COMPONENTS_MAX];
} mr_slot_plan;

/* Plans the columns for elements of the spec, joined as pads specify (null: shapes must be equal).
 * errors  MR_RESOURCE_EXHAUSTED when a slot would exceed the address space */
mr_status mr_slot_plan_init(mr_slot_plan *plan, const mr_element_spec *spec, const mr_pad *pads, int32_t rows,
                            bool is_batch, const mr_run *run, mr_error *error);

typedef struct mr_text {
    char *bytes;
    size_t size_bytes, capacity_bytes;
} mr_text;

typedef struct mr_column {
    mr_buffer *buffer; /* fixed: the rows; strings: the finished elements and their bytes */
    mr_text *texts;    /* strings: one for each row */
    mr_tensor *loose;  /* loose: one for each row */
} mr_column;

/* Guarded by the engine's mutex, except for what the worker of a row writes: that row's parts. */
typedef struct mr_slot mr_slot;
struct mr_slot {
    mr_slot *next; /* in the engine's list of spare or delivered slots */
    const mr_slot_plan *plan;
    uint64_t epoch, number; /* of the batch */
    int32_t rows;           /* of this batch */
    int32_t taken, done;    /* rows that workers have begun; finished */
    bool is_complete;       /* the batch is assembled */
    int32_t requested;      /* rows requested from the system; -1: the slot is not requested */
    uint64_t waits;         /* times that a worker slept while it processed the rows */
    size_t extra_bytes;     /* of the batch, beyond its fixed columns */
    size_t held_bytes;      /* counted in the budget */
    mr_item *items;         /* one for each row */
    bool *is_row_done;      /* one for each row */
    bool *is_row_dropped;   /* one for each row; null if rows are never dropped */
    mr_state state;         /* of the orders before these rows, if a position is not enough */
    mr_error **failures;    /* one for each row; null where the row has not failed */
    mr_error *failure;      /* of the batch: work after batch has failed */
    mr_column columns[MR_COMPONENTS_MAX];
    int32_t result_count;
    mr_tensor results[MR_COMPONENTS_MAX]; /* the batch */
};

/* What must hold whenever the engine's mutex is held. The results are left out: they belong to the assembling
 * thread. */
static inline bool mr_slot_is_consistent(const mr_slot *slot)
{
    return slot->rows >= 0 && slot->rows <= slot->plan->rows && slot->done >= 0 && slot->done <= slot->taken &&
           slot->taken <= slot->rows && slot->requested >= -1 && slot->requested <= slot->rows &&
           (!slot->is_complete || slot->done == slot->rows);
}

mr_status mr_slot_new(const mr_slot_plan *plan, mr_slot **slot, mr_error *error);
void mr_slot_free(mr_slot *slot); /* null is allowed */
/* Releases the contents. Keeps the memory, except what a few unusually large rows needed. */
void mr_slot_clear(mr_slot *slot);
/* Memory of the items, strings and loose rows [begin, end). The caller must own these rows. */
size_t mr_slot_rows_bytes(const mr_slot *slot, int32_t begin, int32_t end);
/* Updates the slot's memory in the budget: all of it, when no worker is active on it; or the change of some rows. */
void mr_slot_account(mr_slot *slot);
void mr_slot_account_rows(mr_slot *slot, size_t bytes_before, size_t bytes_now);
/* Whether nobody else references its buffers. */
bool mr_slot_is_free(const mr_slot *slot);
/* Points the workspace's rows to the slot's row. */
void mr_slot_set_rows(const mr_slot *slot, int32_t row, mr_workspace *workspace);
/* Stores the workspace's values in the row. */
mr_status mr_slot_store(mr_slot *slot, int32_t row, mr_workspace *workspace, mr_error *error);
/* Stores a copy of the error for the row, or for the batch; without memory a static error. */
void mr_slot_fail_row(mr_slot *slot, int32_t row, const mr_error *error);
void mr_slot_fail(mr_slot *slot, const mr_error *error);
/* The first row's failure, or the batch's; null without one. Borrowed. */
const mr_error *mr_slot_failure(const mr_slot *slot);
/* Assembles the rows into results. */
mr_status mr_slot_assemble(mr_slot *slot, mr_error *error);
/* Joins the rows of a column with a pad: as many tensors as mr_pad_tensors returns. results are empty on entry, and
 * owned by the caller also on error. */
mr_status mr_slot_assemble_pad(mr_slot *slot, int32_t component, mr_tensor *results, mr_error *error);
/* The elements of all rows in sequence, with a shape of as many elements. */
mr_status mr_slot_concatenate(const mr_tensor *rows, int32_t count, mr_dtype dtype, mr_shape shape, mr_tensor *result,
                              mr_error *error);
/* One row as tensors: references to the columns. */
mr_status mr_slot_take_row(mr_slot *slot, int32_t row, mr_tensor *tensors, mr_error *error);

#endif
