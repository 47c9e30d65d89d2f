/* What a Saver saves: one item for each variable, or for each part of a partitioned one. */
#ifndef MR_GRAPH_TRAIN_SAVER_ITEMS_H
#define MR_GRAPH_TRAIN_SAVER_ITEMS_H

#include "graph/train/train.h"
#include "records/checkpoint/checkpoint.h"

typedef struct mr_saver_item {
    mr_output ref;   /* a reference, or the handle of a resource variable */
    const char *key; /* in the checkpoint; that of a part is the name of the whole variable */
    mr_dtype dtype;
    mr_shape shape;
    bool is_resource, is_trainable;
    bool reshapes; /* restores a value of another shape */
    bool is_slice; /* a part: with the fields below */
    mr_shape full; /* of the whole variable */
    mr_checkpoint_slice slice;
    mr_string spec; /* for SaveV2 and RestoreV2: "10 4 0,5:0,4", or "" */
    int32_t order;
} mr_saver_item;

/* The items of the options' variables, or of all, sorted by key; in the arena. Records an error and returns null if
 * there are none, or if two have one key. */
mr_saver_item *mr_saver_items_new(mr_graph *graph, mr_arena *arena, const mr_saver_options *options, int32_t *count);
mr_status mr_saver_item_write(const mr_saver_item *item, mr_checkpoint_writer *writer, const mr_tensor *value,
                              mr_error *error);
/* Reads the value and checks dtype and shape.
 * path  of the checkpoint, for errors */
mr_status mr_saver_item_read(const mr_saver_item *item, mr_checkpoint_reader *reader, const char *path,
                             mr_tensor *value, mr_error *error);
/* MR_NOT_FOUND, with the names that the checkpoint lacks and what it has that is near, unless it has all keys. */
mr_status mr_saver_items_check(const mr_saver_item *items, int32_t count, mr_checkpoint_reader *reader,
                               const char *path, mr_error *error);

#endif
