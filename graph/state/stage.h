/* What staging areas have in common. An operator names its area, which the first of them in a session creates. */
#ifndef MR_GRAPH_STATE_STAGE_H
#define MR_GRAPH_STATE_STAGE_H

#include "graph/state/condition.h"
#include "graph/state/members.h"

typedef struct mr_staging_area {
    mr_resource resource;
    mr_condition condition;      /* its mutex guards what follows */
    uint64_t capacity;           /* tuples; 0: any number */
    uint64_t memory_limit_bytes; /* 0: any number */
    uint64_t size_bytes;         /* of the tuples */
} mr_staging_area;

/* The area of that class that the node names, by shared_name or by its own name. */
mr_status mr_stage_named(const mr_kernel_call *call, const mr_resource_class *class, mr_staging_area **stage,
                         mr_error *error);
/* The size of a tensor, as memory_limit counts it. */
uint64_t mr_stage_tensor_bytes(const mr_tensor *tensor);
/* errors  MR_RESOURCE_EXHAUSTED if the tuple alone exceeds the limit */
mr_status mr_stage_check_size(const mr_kernel_call *call, const mr_staging_area *stage, uint64_t size_bytes,
                              mr_error *error);
/* Whether there is memory for a tuple of that size. */
bool mr_stage_has_memory(const mr_staging_area *stage, uint64_t size_bytes);

#endif
