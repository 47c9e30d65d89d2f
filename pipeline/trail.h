/* Trail: records which of its input's elements a stage holds, and retrieves them after a restore.
 *
 * An element is identified by its origin: the input's position before it. At intervals the trail saves the input's
 * state (a rung). The state of the stage consists of the last rung before its oldest element, and of the origins
 * relative to that rung: a few bytes for each element, whatever its size. To restore, the input continues from the
 * rung, and the elements with saved origins are stored again.
 *
 * Threads: one at a time. */
#ifndef MR_PIPELINE_TRAIL_H
#define MR_PIPELINE_TRAIL_H

#include "pipeline/pipeline.h"

typedef struct mr_rung {
    mr_state place;
    uint64_t position; /* of the input */
    uint64_t held;     /* number of elements held, from here to the next rung */
} mr_rung;

/* {.stage = …, .apart = …} is empty. */
typedef struct mr_trail {
    mr_stage *stage; /* the owner, which counts the trail's memory */
    uint64_t apart;  /* input elements between rungs; about the number held at a time */
    mr_rung *rungs;  /* owned */
    uint64_t count, capacity;
    size_t bytes, told_bytes; /* memory of the rungs; the part that the stage has counted */
} mr_trail;

void mr_trail_clear(mr_trail *trail);
void mr_trail_deinit(mr_trail *trail);
/* Call before taking each element from the input. */
mr_status mr_trail_step(mr_trail *trail, mr_stage *input, mr_error *error);
/* The element with this origin is now held; is no longer held. */
void mr_trail_retain(mr_trail *trail, uint64_t origin);
void mr_trail_drop(mr_trail *trail, uint64_t origin);

/* Saves the rung and the input's distance from it. base: origins must be saved relative to it. */
mr_status mr_trail_save(mr_trail *trail, mr_stage *input, mr_state *place, uint64_t *base, mr_error *error);
/* Restores the input to the rung, at position base. The caller must take elements up to end, with a step before
 * each. */
mr_status mr_trail_restore(mr_trail *trail, mr_stage *input, mr_state_reader *reader, uint64_t *base, uint64_t *end,
                           mr_error *error);

/* An element to retrieve. */
typedef struct mr_held {
    uint64_t origin;
    mr_item *item; /* destination; borrowed */
} mr_held;
/* Takes the input's elements from its position to end, and stores those with the given origins. Sorts held.
 * errors  MR_INVALID_ARGUMENT when one does not exist: the state belongs to other data */
mr_status mr_trail_refill(mr_trail *trail, mr_stage *input, uint64_t end, mr_held *held, uint64_t count,
                          mr_error *error);

#endif
