/* Generators that run pipelines and keep elements: they need the stage that calls them, for its budget and its
 * cancellation. */
#ifndef MR_PIPELINE_GENERATOR_H
#define MR_PIPELINE_GENERATOR_H

#include "pipeline/pipeline.h"

/* mr_generator.open with the stage, which outlives the state; its iteration is the one that starts. next may call
 * mr_stage_keep; after it has failed, each next must fail, until close releases what is kept (mr_stage_release_all). */
typedef mr_status (*mr_open_in_stage)(void *context, mr_stage *stage, void **state, mr_error *error);
/* Sets the function of a generator, which must be new. Returns the generator. */
mr_dataset *mr_dataset_generator_open_in_stage(mr_dataset *generator, mr_open_in_stage open);

#endif
