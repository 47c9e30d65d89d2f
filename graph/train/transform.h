/* The transforms of <millrace/transform.h>, one function each. */
#ifndef MR_GRAPH_TRAIN_TRANSFORM_H
#define MR_GRAPH_TRAIN_TRANSFORM_H

#include "graph/train/rewrite.h"
#include <millrace/transform.h>

typedef struct mr_transforming {
    mr_rewrite r;
    const mr_graph *graph; /* as given */
    mr_names inputs, outputs;
    const mr_transform *transform;
} mr_transforming;

/* Marks of the nodes in a list of names: an array with an element for each node, in the arena. */
mr_status mr_transform_marks(mr_transforming *t, const char *role, mr_names names, bool **marks, mr_error *error);
/* Removes what the outputs do not need, except the inputs. */
mr_status mr_transform_prune(mr_transforming *t, mr_error *error);

mr_status mr_transform_fold_constants(mr_transforming *t, mr_error *error); /* transform_fold.c */
mr_status mr_transform_fold_products(mr_transforming *t, mr_error *error);  /* transform_norm.c */
mr_status mr_transform_fold_norms(mr_transforming *t, mr_error *error);     /* transform_norm.c */
mr_status mr_transform_quantize(mr_transforming *t, mr_error *error);       /* transform_quantize.c */

#endif
