/* How a monitored session is made ready. */
#ifndef MR_GRAPH_TRAIN_SCAFFOLD_H
#define MR_GRAPH_TRAIN_SCAFFOLD_H

#include "graph/train/train.h"
#include <millrace/monitored.h>

typedef struct mr_ready_scaffold {
    mr_node *init_op, *local_init_op;
    mr_feed *init_feeds; /* owned */
    int32_t init_feed_count;
    mr_status (*init_fn)(void *context, mr_session *session, mr_error *error);
    void *init_context;
    mr_output ready_op, summary;
    mr_saver *saver;
    bool owns_saver;
} mr_ready_scaffold;

/* Adds the nodes that the given scaffold (nullable) lacks. */
mr_status mr_scaffold_finalize(mr_ready_scaffold *scaffold, mr_graph *graph, const mr_scaffold *given, mr_error *error);
/* Restores the checkpoint, or initializes if it is null; then checks that the session is ready. */
mr_status mr_scaffold_prepare(const mr_ready_scaffold *scaffold, mr_session *session, const char *checkpoint,
                              mr_error *error);
void mr_scaffold_deinit(mr_ready_scaffold *scaffold);

#endif
