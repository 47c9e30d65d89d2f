/* A shared library for LD_PRELOAD that makes one call of a program fail: the n-th allocation, write or read.
 *
 *     MILLRACE_FAIL=allocation:17   the call that fails: allocation, write or read, and its number; 0: none
 *     MILLRACE_FAIL_COUNT=FILE      8 bytes that are set to the number of such calls so far
 *
 * Writes through stdio are not intercepted; use a file size limit to make those fail. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORTED [[gnu::visibility("default")]]

enum { NOTHING, ALLOCATION, WRITE, READ };

static int failing_kind;
static uint64_t failing_number;
static _Atomic uint64_t *calls; /* null until the constructor has run */

void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t size_bytes);
void *__libc_realloc(void *bytes, size_t size_bytes);
void *__libc_memalign(size_t alignment, size_t size_bytes);

[[gnu::constructor]] static void begin(void)
{
    const char *what = getenv("MILLRACE_FAIL"), *path = getenv("MILLRACE_FAIL_COUNT");
    const char *colon = what ? strchr(what, ':') : nullptr;
    int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (!colon || descriptor < 0) return;
    failing_number = strtoull(colon + 1, nullptr, 10);
    failing_kind = *what == 'a' ? ALLOCATION : *what == 'w' ? WRITE : READ;
    void *shared = mmap(nullptr, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    (void)close(descriptor);
    if (shared != MAP_FAILED) calls = shared;
}

/* Counts a call. True if it is the one that must fail. */
static bool fails(int kind)
{
    return calls && kind == failing_kind && atomic_fetch_add(calls, 1) + 1 == failing_number;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return nullptr;
}

static ssize_t fail_with(int number)
{
    errno = number;
    return -1;
}

EXPORTED void *malloc(size_t size_bytes)
{
    return fails(ALLOCATION) ? no_memory() : __libc_malloc(size_bytes);
}

EXPORTED void *calloc(size_t count, size_t size_bytes)
{
    return fails(ALLOCATION) ? no_memory() : __libc_calloc(count, size_bytes);
}

EXPORTED void *realloc(void *bytes, size_t size_bytes)
{
    return fails(ALLOCATION) ? no_memory() : __libc_realloc(bytes, size_bytes);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size_bytes)
{
    return fails(ALLOCATION) ? no_memory() : __libc_memalign(alignment, size_bytes);
}

EXPORTED int posix_memalign(void **bytes, size_t alignment, size_t size_bytes)
{
    *bytes = fails(ALLOCATION) ? nullptr : __libc_memalign(alignment, size_bytes);
    return *bytes ? 0 : ENOMEM;
}

EXPORTED ssize_t write(int descriptor, const void *bytes, size_t size_bytes)
{
    return fails(WRITE) ? fail_with(ENOSPC) : syscall(SYS_write, descriptor, bytes, size_bytes);
}

EXPORTED ssize_t pwrite(int descriptor, const void *bytes, size_t size_bytes, off_t offset)
{
    return fails(WRITE) ? fail_with(ENOSPC) : syscall(SYS_pwrite64, descriptor, bytes, size_bytes, offset);
}

EXPORTED ssize_t writev(int descriptor, const struct iovec *pieces, int count)
{
    return fails(WRITE) ? fail_with(ENOSPC) : syscall(SYS_writev, descriptor, pieces, count);
}

EXPORTED ssize_t read(int descriptor, void *bytes, size_t size_bytes)
{
    return fails(READ) ? fail_with(EIO) : syscall(SYS_read, descriptor, bytes, size_bytes);
}

EXPORTED ssize_t pread(int descriptor, void *bytes, size_t size_bytes, off_t offset)
{
    return fails(READ) ? fail_with(EIO) : syscall(SYS_pread64, descriptor, bytes, size_bytes, offset);
}

EXPORTED ssize_t preadv2(int descriptor, const struct iovec *pieces, int count, off_t offset, int flags)
{
    return fails(READ) ? fail_with(EIO)
                       : syscall(SYS_preadv2, descriptor, pieces, (long)count, (long)offset, 0L, (long)flags);
}
