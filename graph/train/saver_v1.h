/* Files of a Saver's checkpoints in either version, and writing of V1. */
#ifndef MR_GRAPH_TRAIN_SAVER_V1_H
#define MR_GRAPH_TRAIN_SAVER_V1_H

#include "graph/train/saver_items.h"

/* Writes a V1 checkpoint of these values.
 * state  under MR_SESSION_STATE_KEY; null: none */
mr_status mr_saver_write_v1(const char *prefix, const mr_saver_item *items, const mr_tensor *values, int32_t count,
                            const mr_tensor *state, mr_error *error);
/* Whether a checkpoint exists: the index of V2, or a file of V1. */
bool mr_saver_files_exist(const char *prefix);
/* Removes a checkpoint of either version, without its .meta. */
mr_status mr_saver_remove_files(const char *prefix, mr_error *error);

#endif
