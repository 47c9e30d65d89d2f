/* The end of a pipeline on a device (stages/prefetch_to_device.c), as the iterator sees it: a stage on top of the last
 * engine, which begins, seeks and is cancelled like any other. Its place is the engine's for the element that is handed
 * out next, so a pipeline with it and one without restore each other's places. */
#ifndef MR_PIPELINE_TO_DEVICE_H
#define MR_PIPELINE_TO_DEVICE_H

#include "base/device.h"
#include "pipeline/pipeline.h"

extern const mr_stage_functions mr_to_device_functions;

static inline bool mr_is_to_device(const mr_stage *stage)
{
    return stage->functions == &mr_to_device_functions;
}
/* As mr_engine_next.
 * crcs  of each component's bytes, when the run has a digest: the processor cannot read them any more. MR_COMPONENTS_MAX */
mr_status mr_to_device_next(mr_stage *stage, mr_tensor *tensors, uint32_t *crcs, mr_error *error);
/* Of stages that are not seekable. */
mr_status mr_to_device_save(mr_stage *stage, mr_state *place, mr_error *error);
mr_status mr_to_device_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error);

/* The device, not the CPU, on which the dataset's elements come out; null: in host memory. Borrowed from the dataset. */
mr_device *mr_dataset_device(const mr_dataset *dataset);
/* Nothing may follow it: the name of that dataset, options or not; null when there is none. */
const char *mr_dataset_final(const mr_dataset *dataset);
/* prefetch behind copy_to_device or prefetch_to_device: those two as one. The input is taken over. */
mr_dataset *mr_dataset_to_device_deeper(mr_dataset *input, int32_t depth);

#endif
