/* Trail: which of its input's elements a stage holds back, and how it gets them again after a restore.
 *
 * An element is known by its origin, the input's position before it. Now and then the trail keeps the input's place (a
 * rung). The stage's own place is then the last rung before the oldest element that it holds, and origins relative to that
 * rung: a few bytes an element, whatever the elements hold. To come back, the input goes on from the rung, and the
 * elements whose origins were saved are held again. One thread at a time. */
#ifndef MR_PIPELINE_TRAIL_H
#define MR_PIPELINE_TRAIL_H

#include "pipeline/pipeline.h"

typedef struct mr_rung {
    mr_state place;
    uint64_t position; /* of the input */
    uint64_t held;     /* elements that are held, from here to the next rung */
} mr_rung;

/* {.stage = …, .apart = …} is empty. */
typedef struct mr_trail {
    mr_stage *stage; /* whose it is, which keeps what the trail takes */
    uint64_t apart;  /* input elements between rungs; about as many as are held at once */
    mr_rung *rungs;  /* owned */
    uint64_t count, capacity;
    size_t bytes, told_bytes; /* of the rungs; as the stage has them */
} mr_trail;

void mr_trail_clear(mr_trail *trail);
void mr_trail_deinit(mr_trail *trail);
/* Before every element that is taken off the input. */
mr_status mr_trail_step(mr_trail *trail, mr_stage *input, mr_error *error);
/* The element of that origin is held; and no more. */
void mr_trail_retain(mr_trail *trail, uint64_t origin);
void mr_trail_drop(mr_trail *trail, uint64_t origin);

/* The rung, and how far the input is from it; base is what origins are saved relative to. */
mr_status mr_trail_save(mr_trail *trail, mr_stage *input, mr_state *place, uint64_t *base, mr_error *error);
/* The input stands at the rung then: at base. It has to be taken to end, with steps. */
mr_status mr_trail_restore(mr_trail *trail, mr_stage *input, mr_state_reader *reader, uint64_t *base, uint64_t *end,
                           mr_error *error);

/* An element that is to be held again. */
typedef struct mr_held {
    uint64_t origin;
    mr_item *item; /* where it goes */
} mr_held;
/* Takes the input from where it stands to end and puts the elements of these origins where they go; sorts held.
 * errors  MR_INVALID_ARGUMENT when one is not there: the place is of other data */
mr_status mr_trail_refill(mr_trail *trail, mr_stage *input, uint64_t end, mr_held *held, uint64_t count,
                          mr_error *error);

#endif
