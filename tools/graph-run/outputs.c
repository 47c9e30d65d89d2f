#include "graph-run/outputs.h"

#include "common/file.h"
#include "graph-run/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <millrace/formats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file of a fetch: "DIR/NAME.npy", with / and : of the name replaced by _. Null without memory. */
static char *result_path(const char *directory, const char *name)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s.npy", directory, name) < 0) return nullptr;
    for (char *at = path + strlen(directory) + 1; *at; at++)
        if (*at == '/' || *at == ':') *at = '_';
    return path;
}

static mr_status check_names(const options *o, mr_error *error)
{
    mr_status status = MR_OK;
    for (int i = 0; i < o->fetch_count; i++)
        for (int j = 0; j < i && status == MR_OK; j++) {
            char *a = result_path(o->write, o->fetches[i]), *b = result_path(o->write, o->fetches[j]);
            if (!a || !b)
                status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
            else if (strcmp(a, b) == 0)
                status = mr_fail(error, MR_INVALID_ARGUMENT, "--fetch %s and --fetch %s would both be written to %s",
                                 o->fetches[j], o->fetches[i], a);
            free(a);
            free(b);
        }
    return status;
}

/* Whether a file can be created under a name, which is removed again. A file that exists can be written. */
static mr_status try_create(const char *created, const char *path, mr_error *error)
{
    int descriptor = open(created, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) return file_fail(error, errno, "create", path);
    if (descriptor < 0) return access(created, W_OK) == 0 ? MR_OK : file_fail(error, errno, "create", path);
    (void)close(descriptor);
    (void)unlink(created);
    return MR_OK;
}

static mr_status check_file(const char *path, mr_error *error)
{
    struct stat about;
    char *partial = nullptr;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return file_fail(error, EISDIR, "write", path);
    /* Devices and pipes are written directly. */
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return access(path, W_OK) == 0 ? MR_OK : file_fail(error, errno, "write", path);
    if (asprintf(&partial, "%s" FILE_PARTIAL, path) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = try_create(partial, path, error);
    free(partial);
    return status;
}

static mr_status check_results(const options *o, mr_error *error)
{
    MR_TRY(file_make_directories(o->write, error));
    mr_status status = MR_OK;
    for (int i = 0; i < o->fetch_count && status == MR_OK; i++) {
        char *path = result_path(o->write, o->fetches[i]);
        status = path ? check_file(path, error) : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        free(path);
    }
    return status;
}

static mr_status check_prefix(const char *prefix, mr_error *error)
{
    static const char *const endings[] = {".index", ".meta", ".data-00000-of-00001"};
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s does not end in the name of a checkpoint, such as model",
                       prefix);
    if (slash && slash != prefix) {
        char *directory = strndup(prefix, (size_t)(slash - prefix));
        mr_status status =
            directory ? file_make_directories(directory, error) : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        free(directory);
        MR_TRY(status);
    }
    mr_status status = MR_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && status == MR_OK; i++) {
        char *path = nullptr;
        if (asprintf(&path, "%s%s", prefix, endings[i]) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        status = check_file(path, error);
        free(path);
    }
    return status;
}

static mr_status with_option(const char *option, mr_status status, mr_error *error)
{
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "--%s", option);
}

mr_status outputs_check(const options *o, mr_error *error)
{
    if (o->write) MR_TRY(check_names(o, error));
    if (o->write) MR_TRY(with_option("write", check_results(o, error), error));
    if (o->out) MR_TRY(with_option("out", check_file(o->out, error), error));
    if (o->trace) MR_TRY(with_option("trace", check_file(o->trace, error), error));
    if (o->pprof) MR_TRY(with_option("pprof", check_file(o->pprof, error), error));
    return o->save ? with_option("save", check_prefix(o->save, error), error) : MR_OK;
}

/* The bytes of a step's fetches whose shapes are known; at most NPZ_BYTES_MAX + 1. */
static int64_t known_bytes(const options *o, const mr_output *fetches)
{
    int64_t sum = 0;
    for (int i = 0; i < o->fetch_count; i++) {
        mr_shape shape = mr_output_shape(fetches[i]);
        int64_t bytes = shape.rank < 0 ? 0 : (int64_t)mr_dtype_size(mr_output_dtype(fetches[i]));
        for (int32_t j = 0; j < shape.rank; j++)
            if (shape.dims[j] <= 0) bytes = 0;
        for (int32_t j = 0; j < shape.rank && bytes > 0; j++)
            if (__builtin_mul_overflow(bytes, shape.dims[j], &bytes)) bytes = NPZ_BYTES_MAX + 1;
        sum += bytes;
        if (sum > NPZ_BYTES_MAX) return NPZ_BYTES_MAX + 1;
    }
    return sum;
}

mr_status outputs_check_size(const options *o, const mr_output *fetches, int64_t steps, mr_error *error)
{
    int64_t bytes = known_bytes(o, fetches);
    if (steps > NPZ_ARRAYS_MAX / o->fetch_count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "--out: the fetches of %" PRId64 " steps exceed 65,534 arrays, the limit of a .npz", steps);
    if (bytes == 0 || steps <= NPZ_BYTES_MAX / bytes) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "--out: the fetches of %" PRId64 " steps exceed 4 GiB, the limit of a .npz", steps);
}

mr_status outputs_write(const char *directory, const char *name, const mr_tensor *value, mr_error *error)
{
    char *path = result_path(directory, name);
    if (!path) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = mr_npy_save(path, value, error);
    free(path);
    return status;
}
