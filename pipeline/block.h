/* Block: several elements that work maps together, in another process (stages/process_map.c). One thread at a time. */
#ifndef MR_PIPELINE_BLOCK_H
#define MR_PIPELINE_BLOCK_H

#include "pipeline/pipeline.h"

/* Maximum rows of a block; a block is run as soon as it has MR_BLOCK_BYTES of inputs. */
constexpr int32_t MR_BLOCK_ROWS_MAX = 1024;
constexpr size_t MR_BLOCK_BYTES = (size_t)4 << 20;

/* Where the parts of a block's area begin, in bytes. */
typedef struct mr_block_layout {
    uint64_t rows, inputs, outputs, heap;
    uint64_t input_fields_bytes, output_fields_bytes; /* of the components of variable size of one row */
    uint64_t input_arrays[MR_COMPONENTS_MAX], output_arrays[MR_COMPONENTS_MAX];
} mr_block_layout;

typedef struct mr_block {
    const mr_work *work;
    struct mr_area *area; /* null: not begun */
    mr_block_layout layout;
    int32_t rows, rows_max;
    uint64_t end_bytes;                /* of the area that are in use */
    struct mr_block_failure *failures; /* rows in which a process has ended; owned */
} mr_block;

/* Whether the work maps blocks. Otherwise there is no mr_block of it. */
bool mr_work_maps_blocks(const mr_work *work);
/* How many rows a block has at most, from 1 to rows_max, so that those of fixed size do not need much memory. */
int32_t mr_block_rows(const mr_work *work, int32_t rows_max);
/* Shared memory of a block without the elements of variable size. */
size_t mr_block_fixed_bytes(const mr_work *work, int32_t rows_max);
mr_status mr_block_begin(mr_block *block, const mr_work *work, int32_t rows_max, mr_error *error);
/* Copies the workspace's element to the block. On an error the block is unchanged. */
mr_status mr_block_add(mr_block *block, uint64_t epoch, uint64_t number, mr_workspace *workspace, mr_error *error);
bool mr_block_is_full(const mr_block *block);
/* Maps all rows.
 * stop    true: the block is no longer wanted, and MR_CANCELLED is returned
 * errors  those that are of all rows */
mr_status mr_block_run(mr_block *block, const _Atomic bool *stop, mr_error *error);
/* Sets the workspace's values to a row's results.
 * copies  false: they are borrowed from the block, where a process may change them at any time
 * errors  the row's failure */
mr_status mr_block_take(mr_block *block, int32_t row, bool copies, mr_workspace *workspace, mr_error *error);
void mr_block_end(mr_block *block);
/* num_parallel_calls; 0 if tuned, or for another kind of dataset. */
int32_t mr_process_map_threads(const mr_dataset *dataset);

#endif
