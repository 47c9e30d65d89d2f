/* Inner: a pipeline that a stage runs inside itself, of a dataset that a function of the user made. And the dataset that
 * such functions are given: elements that lie in memory. */
#ifndef MR_PIPELINE_INNER_H
#define MR_PIPELINE_INNER_H

#include "pipeline/pipeline.h"

/* {0} is closed. */
typedef struct mr_inner {
    mr_dataset *dataset; /* a hold */
    mr_pipeline pipeline;
    bool is_open;
} mr_inner;

/* What pipelines inside the stage have in common. Not threaded: everything is done on the caller's thread. */
void mr_inner_run_init(mr_run *run, const mr_stage *stage, bool is_threaded);
/* The error of a function that returned MR_OK and no dataset. */
mr_status mr_inner_fail_absent(mr_error *error);
/* Begins a pipeline of the dataset, which is taken over, also on error.
 * run        belongs to the stage; its seed is taken from outer
 * spec       what its elements have to look like
 * purpose    the stage's own
 * iteration  another one for each dataset that is made, so that random numbers inside differ */
mr_status mr_inner_open(mr_inner *inner, mr_dataset *dataset, mr_run *run, const mr_run *outer,
                        const mr_element_spec *spec, uint32_t purpose, uint64_t iteration, mr_error *error);
void mr_inner_close(mr_inner *inner);
/* The next element as an item of that stage, whose position and count of elements move on. */
mr_status mr_inner_next(mr_inner *inner, mr_stage *stage, mr_item *item, mr_error *error);

/* A dataset of count elements, which it takes a share of. Null items are not allowed. */
mr_dataset *mr_dataset_of_items(const mr_element_spec *spec, const mr_item *items, int64_t count);

#endif
