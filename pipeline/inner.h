/* Inner pipelines: a stage runs a dataset that a user function has created. And datasets of elements in memory, which
 * such functions receive. */
#ifndef MR_PIPELINE_INNER_H
#define MR_PIPELINE_INNER_H

#include "pipeline/pipeline.h"

/* {0} is closed. */
typedef struct mr_inner {
    mr_dataset *dataset; /* owned reference */
    mr_pipeline pipeline;
    bool is_open;
} mr_inner;

/* Initializes the run that the inner pipelines of a stage share. Not threaded: all work is done by the caller. */
void mr_inner_run_init(mr_run *run, const mr_stage *stage, bool is_threaded);
/* The error for a function that returned MR_OK without a dataset. */
mr_status mr_inner_fail_absent(mr_error *error);
/* Starts a pipeline of the dataset. Takes ownership of the dataset, also on error.
 * run        owned by the stage; its seed is copied from outer
 * spec       the expected structure of the elements
 * purpose    the stage's own
 * iteration  a different number for each dataset, so that random numbers differ */
mr_status mr_inner_open(mr_inner *inner, mr_dataset *dataset, mr_run *run, const mr_run *outer,
                        const mr_element_spec *spec, uint32_t purpose, uint64_t iteration, mr_error *error);
void mr_inner_close(mr_inner *inner);
/* The next element as an item of the stage, whose position and element count advance. */
mr_status mr_inner_next(mr_inner *inner, mr_stage *stage, mr_item *item, mr_error *error);

/* A dataset of count elements, whose tensors it references. Items without payload are not allowed. */
mr_dataset *mr_dataset_of_items(const mr_element_spec *spec, const mr_item *items, int64_t count);

#endif
