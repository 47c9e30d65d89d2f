/* Indices and strings of the operators that update a variable. */
#include "graph/state/change.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_change_strings(mr_kernel_call *call, mr_variable_state *variable, const mr_tensor *updates,
                            const int64_t *offsets, int64_t count, int64_t width, int64_t step, mr_error *error)
{
    mr_tensor before = {0}, after = {0};
    MR_TRY(mr_variable_read(variable, MR_VARIABLE_CHANGE, &before, error));
    const mr_string *from = mr_tensor_strings(updates);
    int64_t total = mr_tensor_count(&before);
    mr_string *strings = malloc((size_t)MR_MAX(total, 1) * sizeof *strings);
    mr_status status = MR_OK;
    if (!strings) {
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    } else {
        if (total > 0) memcpy(strings, mr_tensor_strings(&before), (size_t)total * sizeof *strings);
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < width; j++) strings[offsets[i] * width + j] = from[step * (i * width + j)];
        status = mr_tensor_init_strings(&after, before.shape, strings, error);
    }
    if (status == MR_OK) status = mr_variable_write(variable, &after, true, true, error);
    free(strings);
    mr_tensor_deinit(&after);
    mr_tensor_deinit(&before);
    return status;
}
