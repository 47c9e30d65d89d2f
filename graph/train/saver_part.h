/* A saver, as the files that build it, save and restore see it. */
#ifndef MR_TRAIN_SAVER_PART_H
#define MR_TRAIN_SAVER_PART_H

#include "base/arena.h"
#include "graph/train/saver_nodes.h"

struct mr_saver {
    mr_arena arena;
    mr_arena scratch; /* for one save */
    mr_graph *graph;
    int32_t count;
    mr_saver_item *items;             /* sorted by key */
    mr_saver_options options;         /* what is still needed; with copies of lists and names */
    bool is_built, with_nodes;        /* items and nodes exist */
    mr_arena names;                   /* of `last` */
    mr_names last;                    /* mr_saver_last_checkpoints */
    const mr_saver_save_options *how; /* of the save in progress; null: the defaults */
    int32_t max_to_keep;              /* 0: all */
    double keep_every_s;              /* 0: none is kept beyond max_to_keep */
    double next_kept;                 /* time of the next one that is kept, since 1970 */
    bool saves_state;
    bool saves_meta_graph;
    bool is_v1;
    bool pads_step;
    bool requires_finite;  /* see mr_saver_require_finite */
    char *clean_directory; /* the directory that has been cleaned of the files of killed processes */
};

/* Fails unless the saver can save to and restore from the path. */
mr_status mr_saver_check_ready(const mr_saver *saver, const char *path, mr_error *error);

#endif
