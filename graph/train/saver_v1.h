/* Writing of a Saver's V1 checkpoints. */
#ifndef MR_GRAPH_TRAIN_SAVER_V1_H
#define MR_GRAPH_TRAIN_SAVER_V1_H

#include "graph/train/saver_items.h"

/* Writes a V1 checkpoint of these values.
 * state  under MR_SESSION_STATE_KEY; null: none */
mr_status mr_saver_write_v1(const char *prefix, const mr_saver_item *items, const mr_tensor *values, int32_t count,
                            const mr_tensor *state, mr_error *error);

#endif
