#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Reads a number from a file; SIZE_MAX if the file does not contain one. */
static size_t read_number(const char *path)
{
    unsigned long long number = 0;
    FILE *file = fopen(path, "re");
    if (file == nullptr) return SIZE_MAX;
    bool is_number = fscanf(file, "%llu", &number) == 1; /* not "max" */
    fclose(file);
    return is_number && number < SIZE_MAX ? (size_t)number : SIZE_MAX;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Libraries and the stacks of threads are mapped already, much of it without ever being touched. */
static size_t address_space_left(size_t limit_bytes)
{
    size_t pages = read_number("/proc/self/statm"), page_bytes = (size_t)sysconf(_SC_PAGESIZE), mapped_bytes;
    if (pages == SIZE_MAX || __builtin_mul_overflow(pages, page_bytes, &mapped_bytes)) return limit_bytes;
    return mapped_bytes < limit_bytes ? limit_bytes - mapped_bytes : 1;
}

static size_t find_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    size_t size_bytes = SIZE_MAX;
    if (pages <= 0 || page_bytes <= 0 || __builtin_mul_overflow((size_t)pages, (size_t)page_bytes, &size_bytes))
        size_bytes = SIZE_MAX;
    size_bytes = smaller(size_bytes, read_number("/sys/fs/cgroup/memory.max"));
    size_bytes = smaller(size_bytes, read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        size_bytes = smaller(size_bytes, address_space_left((size_t)limit.rlim_cur));
    return size_bytes == SIZE_MAX ? 0 : size_bytes;
}

size_t mr_memory_bytes(void)
{
    static atomic_size_t found; /* several threads may determine it at once, with the same result */
    size_t size_bytes = atomic_load_explicit(&found, memory_order_relaxed);
    if (size_bytes == 0) {
        size_bytes = find_bytes();
        atomic_store_explicit(&found, size_bytes, memory_order_relaxed);
    }
    return size_bytes;
}
