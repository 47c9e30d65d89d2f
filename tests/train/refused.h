/* Graphs that must be refused. */
#ifndef MR_TESTS_TRAIN_REFUSED_H
#define MR_TESTS_TRAIN_REFUSED_H

#include "tests/test.h"

#include <millrace/millrace.h>

/* Checks that the graph has an error whose message contains the part, and frees it. */
static inline void check_refused(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK(mr_graph_status(g, &error) != MR_OK);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

static inline mr_output floats(mr_graph *g, mr_shape shape)
{
    return mr_placeholder(g, MR_FLOAT, .shape = shape);
}

#endif
