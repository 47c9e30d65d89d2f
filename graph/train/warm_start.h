/* Warm starts: what init_from_checkpoint.c, warm_start.c and warm_start_vocab.c share. */
#ifndef MR_GRAPH_TRAIN_WARM_START_H
#define MR_GRAPH_TRAIN_WARM_START_H

#include "graph/train/saver_items.h"
#include <millrace/warm_start.h>

/* Opens a checkpoint; of a directory, the latest one.
 * path  receives its prefix */
mr_status mr_warm_start_open(const char *checkpoint, char *path, size_t size, mr_checkpoint_reader **reader,
                             mr_error *error);
/* Replaces the initializer of the variable by one that assigns the value. */
void mr_warm_start_assign(mr_graph *graph, const mr_saver_item *item, mr_output value);

/* Checks a vocabulary against the variable, or the part of one, and the checkpoint.
 * key  the variable's name in the checkpoint */
mr_status mr_warm_start_vocab_check(const mr_vocab_info *info, const mr_saver_item *item, const char *key,
                                    mr_checkpoint_reader *reader, const char *path, mr_error *error);
/* Replaces the initializer of the variable; errors are recorded in the graph. */
void mr_warm_start_vocab(mr_graph *graph, const mr_vocab_info *info, const mr_saver_item *item, const char *key,
                         const char *path);

#endif
