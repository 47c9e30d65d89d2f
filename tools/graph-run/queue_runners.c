#include "graph-run/queue_runners.h"

mr_status queue_runners_start(mr_model *model, mr_session *session, mr_coordinator **coordinator, mr_error *error)
{
    int32_t threads = 0;
    MR_TRY(mr_coordinator_new(coordinator, error));
    mr_status status = mr_start_queue_runners(session, *coordinator, nullptr, &threads, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "--queue-runners");
    if (threads > 0) return MR_OK;
    return mr_fail(error, MR_FAILED_PRECONDITION, "--queue-runners: the file has no queue runners%s",
                   *mr_model_info(model)->format == 'G' ? " (a GraphDef never has; use its .meta)" : "");
}

mr_status queue_runners_stop(mr_coordinator *coordinator, mr_error *error)
{
    if (!coordinator) return MR_OK;
    mr_coordinator_request_stop(coordinator, nullptr);
    mr_status status = mr_coordinator_join(coordinator, -1, error);
    mr_coordinator_free(coordinator);
    return status;
}
