/* Synchronous replicas: what the optimizer keeps for its hook. */
#ifndef MR_GRAPH_TRAIN_OPTIMIZER_SYNC_H
#define MR_GRAPH_TRAIN_OPTIMIZER_SYNC_H

#include "graph/train/optimizer_wrapper.h"

typedef struct sync_replicas {
    mr_optimizer_wrapper base;
    int32_t replicas_to_aggregate, total_num_replicas;
    const char *name;
    const struct sync_replicas *chief; /* null: this is the chief */
    mr_variables averaged;             /* count 0: none */
    mr_moving_average_options averages;
    bool is_applied;
    mr_variable local_step;
    mr_output global_step;
    mr_sync_replicas_nodes nodes;
} sync_replicas;

#endif
