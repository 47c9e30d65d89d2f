/* One run of a program, and its guard. */
#ifndef MR_GRAPH_RUN_EXECUTE_H
#define MR_GRAPH_RUN_EXECUTE_H

#include "graph/run/frame.h"

/* Sets the feeds in the frame, runs the calls and takes the results. The frame is empty again afterwards. values[i]
 * feeds feed i.
 * diverged  see mr_session_run_guarded
 * threads   any, each with a frame of its own; one run at a time of a program with a guard */
mr_status mr_frame_run(mr_frame *frame, const mr_tensor *values, mr_tensor *results, bool *diverged, mr_error *error);
/* Checks a tensor that the program made: its dtype and shape are those of a value, and it has data for its elements.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_run_check_value(const mr_tensor *value, mr_error *error);
/* Runs the calls from first to end - 1 on slots that earlier calls have filled. began_ns: start of the run if it is
 * traced; otherwise 0. */
mr_status mr_frame_run_calls(mr_frame *frame, int32_t first, int32_t end, uint64_t began_ns, mr_error *error);

/* Computes the outputs of one call. A call that may not wait, but would have to, sets frame->would_wait. */
mr_status mr_frame_compute_call(mr_frame *frame, const mr_call *call, mr_error *error);
/* Computes one call and, unless it would have to wait, ends it. outer: the frame of region 0, which has the results and
 * the times. */
mr_status mr_frame_run_call(mr_frame *frame, const mr_call *call, mr_frame *outer, uint64_t began_ns, mr_error *error);
/* True if nothing else will read the slot of an input. A slot that several segments read belongs to the last one that
 * has not run. */
static inline bool mr_frame_is_last_use(const mr_frame *frame, const mr_call_input *input)
{
    return input->last_use || (input->last_in_segment && frame->uses[input->slot] == 1);
}
/* After a call: takes the fetched outputs that must be copied now, and releases what is no longer needed. */
mr_status mr_frame_end_call(mr_frame *frame, const mr_call *call, mr_frame *outer, mr_error *error);

/* A reference to the value of the variable whose handle is that input. */
mr_status mr_frame_read_variable(const mr_frame *frame, const mr_call *call, int32_t input, mr_tensor *value,
                                 mr_error *error);

/* ---- The guard (guard.c) ---- */

/* The index of the first element that is not finite, or with nan_only of the first NaN; -1 if there is none. The tensor
 * must be in host memory; tensors of dtypes other than floating point are finite. */
int64_t mr_tensor_find_nonfinite(const mr_tensor *tensor, bool nan_only);
/* "nan", "inf" or "-inf", for the element at index. */
const char *mr_tensor_nonfinite_text(const mr_tensor *tensor, int64_t index);
/* Runs the calls up to the guard, keeping the outputs that an examination must not compute again; then checks the
 * guard. */
mr_status mr_guard_run(mr_frame *frame, uint64_t began_ns, bool *diverged, mr_error *error);
/* Checks the guard, whose value has been computed. */
mr_status mr_guard_check(mr_frame *frame, bool *diverged, mr_error *error);
/* Called after a guard was not finite: runs the same calls again on the same data, and names in *error the first tensor
 * that is not finite. Returns MR_INVALID_ARGUMENT. */
mr_status mr_guard_examine(mr_frame *frame, const mr_tensor *values, mr_error *error);

#endif
