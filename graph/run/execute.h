/* The run of a plan, and its guard. */
#ifndef MR_GRAPH_RUN_EXECUTE_H
#define MR_GRAPH_RUN_EXECUTE_H

#include "graph/plan/plan.h"

/* One run. The caller holds the step's mutex. diverged: see mr_session_run_guarded. */
mr_status mr_plan_run(mr_step *step, const mr_tensor *values, mr_tensor *results, bool trace, bool *diverged,
                      mr_error *error);
/* Runs the calls from first to end - 1 on slots that earlier calls have filled. began_ns: start of the run if it is
 * traced; otherwise 0. */
mr_status mr_plan_run_calls(mr_plan *plan, int32_t first, int32_t end, uint64_t began_ns, mr_error *error);

/* ---- The guard of a step (guard.c) ---- */

/* The index of the first element that is not finite, or with nan_only of the first NaN; -1 if there is none. The tensor
 * must be in host memory; tensors of dtypes other than floating point are finite. */
int64_t mr_tensor_find_nonfinite(const mr_tensor *tensor, bool nan_only);
/* "nan", "inf" or "-inf", for the element at index. */
const char *mr_tensor_nonfinite_text(const mr_tensor *tensor, int64_t index);
/* Runs the calls up to the guard, keeping the outputs that an examination must not compute again; then checks the
 * guard. */
mr_status mr_guard_run(mr_step *step, uint64_t began_ns, bool *diverged, mr_error *error);
/* Called after a guard was not finite: runs the same calls again on the same data, and names in *error the first tensor
 * that is not finite. Returns MR_INVALID_ARGUMENT. */
mr_status mr_guard_examine(mr_step *step, const mr_tensor *values, mr_error *error);

#endif
