/* See output.h. */
#include "common/output.h"

#include <millrace/millrace.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static constexpr size_t BUFFER_BYTES = (size_t)64 << 10;

static int first_error;

static ssize_t write_all(void *cookie, const char *bytes, size_t size_bytes)
{
    (void)cookie;
    for (size_t done = 0; done < size_bytes;) {
        ssize_t written = first_error ? -1 : write(STDOUT_FILENO, bytes + done, size_bytes - done);
        if (written > 0) {
            done += (size_t)written;
        } else if (first_error || errno != EINTR) {
            if (!first_error) first_error = written < 0 ? errno : EIO;
            errno = first_error;
            return 0; /* fopencookie treats 0 as an error */
        }
    }
    return (ssize_t)size_bytes;
}

void output_open(void)
{
    /* A file that exceeds the size limit (ulimit -f) is then a write error, EFBIG. */
    (void)signal(SIGXFSZ, SIG_IGN);
    FILE *file = fopencookie(nullptr, "w", (cookie_io_functions_t){.write = write_all});
    if (!file) return;
    (void)setvbuf(file, nullptr, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFFER_BYTES);
    stdout = file;
}

int output_error(void)
{
    return first_error;
}

void output_lose(int number)
{
    if (!first_error) first_error = number;
}

int output_close(const char *program, int exit_code)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    int number = first_error ? first_error : failed && errno ? errno : EIO;
    if (!failed && !first_error) return exit_code;
    if (number != EPIPE) fprintf(stderr, "%s: cannot write the output: %s\n", program, strerror(number));
    return 1;
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

mr_status output_check(const char *path, bool is_forced, mr_error *error)
{
    struct stat about;
    /* A dangling symbolic link counts as existing. */
    if (lstat(path, &about) != 0) return MR_OK;
    bool is_dangling = stat(path, &about) != 0;
    if (!is_dangling && !S_ISREG(about.st_mode))
        return mr_fail(error, MR_ALREADY_EXISTS, "%s: already exists as %s, which is never replaced", path,
                       kind_of(about.st_mode));
    return is_forced ? MR_OK : mr_fail(error, MR_ALREADY_EXISTS, "%s: already exists; --force replaces it", path);
}

void output_version(const char *program)
{
    printf("%s (millrace) %s\n", program, MR_VERSION);
}
