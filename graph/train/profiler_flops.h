/* Float operations of a node, by its operator. */
#ifndef MR_GRAPH_TRAIN_PROFILER_FLOPS_H
#define MR_GRAPH_TRAIN_PROFILER_FLOPS_H

#include "graph/train/profiler_node.h"

/* Reads what the operator's formula needs. */
void mr_flops_rule_init(mr_flops_rule *rule, const mr_node *node);
/* Counts the operations of one call; 0 if the operator has no formula or a shape is unknown. */
int64_t mr_profile_count_float_ops(const mr_profile *profile, const mr_profile_node *node);

#endif
