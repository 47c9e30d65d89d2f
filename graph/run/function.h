/* The functions of a session: bodies with given attrs, each planned when it is first called.
 *
 * Functions belong to the session and are never freed before it, so calls keep pointers to them. */
#ifndef MR_GRAPH_RUN_FUNCTION_H
#define MR_GRAPH_RUN_FUNCTION_H

#include "graph/ir/function.h"
#include "graph/run/session.h"

typedef struct mr_function mr_function;

/* The function of that name for these attrs. gradient: instead, the function that maps its arguments and the gradients
 * of its results to the gradients of its arguments.
 * errors   MR_NOT_FOUND; those of its definition
 * threads  any */
mr_status mr_session_function(mr_session *session, const char *name, const mr_attrs *attrs, bool gradient,
                              mr_function **function, mr_error *error);
/* The same, with random numbers of its own that start anew. Owned by the caller. */
mr_status mr_session_own_function(mr_session *session, const char *name, const mr_attrs *attrs, mr_function **function,
                                  mr_error *error);
void mr_function_free(mr_function *function); /* null is allowed */
/* Frees all functions of a session. */
void mr_session_free_functions(mr_session *session);

int32_t mr_function_input_count(const mr_function *function);
int32_t mr_function_output_count(const mr_function *function);
/* Whether a call may have side effects or draw random numbers. */
bool mr_function_is_stateful(const mr_function *function);
mr_dtype mr_function_input_dtype(const mr_function *function, int32_t index);
mr_dtype mr_function_output_dtype(const mr_function *function, int32_t index);

/* Calls the function.
 * depth    nesting of the call (base/thread.h): that of the caller plus 1
 * inputs   mr_function_input_count; they are consumed: empty afterwards, also on failure
 * outputs  mr_function_output_count; empty on entry, owned by the caller
 * threads  any */
mr_status mr_function_call(mr_function *function, mr_run_context *run, int32_t depth, mr_tensor *inputs,
                           mr_tensor *outputs, mr_error *error);

#endif
