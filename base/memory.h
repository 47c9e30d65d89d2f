/* The memory of the machine. */
#ifndef MR_BASE_MEMORY_H
#define MR_BASE_MEMORY_H

#include <stddef.h>

/* Bytes of memory that this process may use: the machine's physical memory, or the limit of its cgroup, or what the
 * limit of its address space left at the first call, whichever is smallest. Determined by the first call.
 * 0: unknown. */
size_t mr_memory_bytes(void);

#endif
