/* What the calls of a run may do outside the session: the seam through which kernels of every layer ask. */
#ifndef MR_BASE_RIGHTS_H
#define MR_BASE_RIGHTS_H

#include "base/kernel.h"

/* The first member of mr_run_context (graph/state/run.h). */
typedef struct mr_run_rights {
    bool read_only; /* mr_session_options.read_only */
} mr_run_rights;

/* Every operator that creates, changes or removes a file calls this before.
 * path    for the message; null: none
 * errors  MR_PERMISSION_DENIED in a session that is read-only */
mr_status mr_kernel_check_write(const mr_kernel_call *call, const char *path, mr_error *error);

#endif
