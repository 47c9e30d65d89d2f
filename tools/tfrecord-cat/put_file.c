/* A file that has its name when it is whole. */
#include "records/file.h"
#include "tools/tfrecord-cat/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

mr_status put_file(const char *path, mr_string bytes, mr_error *error)
{
    mr_file_output output = {0};
    char *partial = nullptr;
    if (asprintf(&partial, "%s" MR_FILE_PARTIAL, path) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = mr_file_output_open(&output, partial, false, error);
    if (status == MR_OK) {
        status = mr_file_output_write(&output, bytes.data, bytes.size_bytes, error);
        if (status == MR_OK)
            status = mr_file_output_commit(&output, error);
        else
            mr_file_output_abandon(&output);
        if (status == MR_OK && rename(partial, path) != 0) status = mr_file_fail(error, errno, "rename to", path);
        if (status != MR_OK) (void)unlink(partial);
    }
    free(partial);
    return status;
}
