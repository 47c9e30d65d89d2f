/* How sessions of training programs are made ready: initialized or restored, and checked. */
#ifndef MR_GRAPH_TRAIN_SCAFFOLD_H
#define MR_GRAPH_TRAIN_SCAFFOLD_H

#include "graph/train/train.h"
#include <millrace/monitored.h>

/* Nodes and outputs may be missing. */
typedef struct mr_ready_scaffold {
    mr_node *init_op, *local_init_op;
    mr_feed *init_feeds, *local_init_feeds; /* owned */
    int32_t init_feed_count, local_init_feed_count;
    mr_status (*init_fn)(void *context, mr_session *session, mr_error *error);
    void *init_context;
    mr_output ready_op, ready_for_local_init_op, summary;
    mr_saver *saver;
    bool owns_saver;
} mr_ready_scaffold;

/* What is neither to be found nor to be created. */
typedef struct mr_scaffold_omissions {
    bool init_op, local_init_op, ready_op, summary, saver;
    bool takes_first; /* of several items in a collection, as a supervisor does; otherwise they are an error */
} mr_scaffold_omissions;

/* Copies the given scaffold as it is, after its members have been checked. what: for messages, "scaffold" */
mr_status mr_scaffold_copy(mr_ready_scaffold *scaffold, const mr_graph *graph, const mr_scaffold *given,
                           const char *what, mr_error *error);
/* Finds what a scaffold lacks in the graph's collections (scaffold_collections.c).
 * owned_saver  receives a saver that the caller must free; null: none */
mr_status mr_scaffold_find_parts(mr_graph *graph, mr_scaffold *scaffold, mr_scaffold_omissions omissions,
                                 mr_saver **owned_saver, mr_error *error);
/* Stores what the scaffold has and `found` has not in the collections. */
mr_status mr_scaffold_store_parts(mr_graph *graph, const mr_ready_scaffold *scaffold, const mr_scaffold *found,
                                  mr_error *error);
/* Copies the given scaffold (nullable), takes what it lacks from the graph's collections, and creates and stores the
 * rest of what is not omitted. */
mr_status mr_scaffold_finalize(mr_ready_scaffold *scaffold, mr_graph *graph, const mr_scaffold *given,
                               mr_scaffold_omissions omissions, mr_error *error);
void mr_scaffold_deinit(mr_ready_scaffold *scaffold);

/* Runs the local initialization, restores the state of the session from the checkpoint (nullable), and checks that the
 * session is ready.
 * before    what was done before, for the reason: "init_op"; null: nothing
 * is_ready  false: it is not, for the reason in *reason */
mr_status mr_scaffold_complete(const mr_ready_scaffold *scaffold, mr_session *session, const char *checkpoint,
                               const char *before, bool *is_ready, mr_error *reason, mr_error *error);

/* Restores the checkpoint, or initializes if it is null; then completes the session.
 * errors  also MR_FAILED_PRECONDITION: not ready */
mr_status mr_scaffold_prepare(const mr_ready_scaffold *scaffold, mr_session *session, const char *checkpoint,
                              mr_error *error);

#endif
