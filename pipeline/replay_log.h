/* Replay log: records which of its input's elements a stage holds, and retrieves them after a restore.
 *
 * An element is identified by its origin: the input's position before it. At intervals the log saves the input's
 * state (a checkpoint). The state of the stage consists of the last checkpoint before its oldest element, and of the
 * origins relative to that checkpoint: a few bytes for each element, whatever its size. To restore, the input continues
 * from the checkpoint, and the elements with saved origins are stored again.
 *
 * Threads: one at a time. */
#ifndef MR_PIPELINE_REPLAY_LOG_H
#define MR_PIPELINE_REPLAY_LOG_H

#include "pipeline/pipeline.h"

typedef struct mr_replay_checkpoint {
    mr_state state;
    uint64_t position; /* of the input */
    uint64_t retained; /* number of elements held, from here to the next checkpoint */
} mr_replay_checkpoint;

/* {.stage = …, .interval = …} is empty. */
typedef struct mr_replay_log {
    mr_stage *stage;                   /* the owner, which counts the log's memory */
    uint64_t interval;                 /* input elements between checkpoints; about the number held at a time */
    mr_replay_checkpoint *checkpoints; /* owned */
    uint64_t count, capacity;
    size_t bytes, budgeted_bytes; /* memory of the checkpoints; the part that the stage has counted */
} mr_replay_log;

void mr_replay_log_clear(mr_replay_log *replay);
void mr_replay_log_deinit(mr_replay_log *replay);
/* Call before taking each element from the input. */
mr_status mr_replay_log_step(mr_replay_log *replay, mr_stage *input, mr_error *error);
/* The element with this origin is now held (retain), or is no longer held (release). */
void mr_replay_log_retain(mr_replay_log *replay, uint64_t origin);
void mr_replay_log_release(mr_replay_log *replay, uint64_t origin);

/* Saves the checkpoint and the input's distance from it. base: origins must be saved relative to it. */
mr_status mr_replay_log_save(mr_replay_log *replay, mr_stage *input, mr_state *state, uint64_t *base, mr_error *error);
/* Restores the input to the checkpoint, at position base. The caller must take elements up to end, with a step before
 * each. */
mr_status mr_replay_log_restore(mr_replay_log *replay, mr_stage *input, mr_state_reader *reader, uint64_t *base,
                                uint64_t *end, mr_error *error);

/* An element to retrieve. */
typedef struct mr_replay_item {
    uint64_t origin;
    mr_item *item; /* destination; borrowed */
} mr_replay_item;
/* Takes the input's elements from its position to end, and stores those with the given origins. Sorts wanted.
 * errors  MR_INVALID_ARGUMENT when one does not exist: the state belongs to other data */
mr_status mr_replay_log_refill(mr_replay_log *replay, mr_stage *input, uint64_t end, mr_replay_item *wanted,
                               uint64_t count, mr_error *error);

#endif
