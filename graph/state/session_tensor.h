/* Tensors that a session keeps under a handle. */
#ifndef MR_GRAPH_STATE_SESSION_TENSOR_H
#define MR_GRAPH_STATE_SESSION_TENSOR_H

#include <millrace/session.h>

/* References the tensor that GetSessionHandle stored under a handle.
 * errors   MR_INVALID_ARGUMENT: there is none
 * threads  any */
mr_status mr_session_tensor(mr_session *session, mr_string handle, mr_tensor *tensor, mr_error *error);

#endif
