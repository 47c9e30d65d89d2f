#include "base/rights.h"

mr_status mr_kernel_check_write(const mr_kernel_call *call, const char *path, mr_error *error)
{
    const mr_run_rights *rights = (const mr_run_rights *)call->run;
    if (rights == nullptr || !rights->read_only) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_PERMISSION_DENIED, "the session is read-only: %.200s is not written",
                          path != nullptr ? path : "a file");
}
