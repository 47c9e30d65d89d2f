/* Elements of any real dtype as numbers. */
#ifndef MR_GRAPH_STATE_NUMBER_H
#define MR_GRAPH_STATE_NUMBER_H

#include <millrace/tensor.h>

/* Element `at`; 0 for a dtype that is not real. */
double mr_number_at(const mr_tensor *tensor, int64_t at);

#endif
