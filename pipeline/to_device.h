/* Delivery on a device, as the iterator sees it (stages/prefetch_to_device.c): a stage above the last engine that
 * begins, seeks and is cancelled like any other. Its state is the engine's for the next element to deliver, so states
 * are interchangeable between a pipeline with this stage and one without. */
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
 * crcs  MR_COMPONENTS_MAX checksums, one for each component's bytes, if the run has a digest: the host can no longer
 *       read them */
mr_status mr_to_device_next(mr_stage *stage, mr_tensor *tensors, uint32_t *crcs, mr_error *error);
/* For pipelines that are not seekable. */
mr_status mr_to_device_save(mr_stage *stage, mr_state *state, mr_error *error);
mr_status mr_to_device_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error);

/* mr_dataset_prefetch_to_device (has_thread) and mr_dataset_copy_to_device, for devices that are registered already. */
mr_dataset *mr_dataset_to_device(mr_dataset *input, const char *device, bool has_thread, int32_t depth);
/* The device that receives the dataset's elements, if it is not the CPU; null: host memory. Borrowed from the
 * dataset. */
mr_device *mr_dataset_device(const mr_dataset *dataset);
/* Merges a prefetch that follows copy_to_device or prefetch_to_device with it. Takes ownership of the input. */
mr_dataset *mr_dataset_to_device_deeper(mr_dataset *input, int32_t depth);

#endif
