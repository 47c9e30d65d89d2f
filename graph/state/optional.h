/* Optionals: variants that have a tuple of tensors, or no value. */
#ifndef MR_GRAPH_STATE_OPTIONAL_H
#define MR_GRAPH_STATE_OPTIONAL_H

#include "graph/state/members.h"

typedef struct mr_optional {
    mr_variant variant;
    bool has_value;
    int32_t count;
    mr_tensor *components;
} mr_optional;

extern const mr_resource_class mr_optional_class;

/* Sets *output to a new optional with references to the components; without a value if components is null. */
mr_status mr_optional_new(const mr_kernel_call *call, const mr_tensor *components, int32_t count, mr_tensor *output,
                          mr_error *error);

#endif
