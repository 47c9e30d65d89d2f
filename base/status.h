/* Errors that most of the library reports. */
#ifndef MR_BASE_STATUS_H
#define MR_BASE_STATUS_H

#include <millrace/status.h>

/* Reports a failed allocation of size_bytes; always MR_RESOURCE_EXHAUSTED. */
mr_status mr_fail_memory(mr_error *error, size_t size_bytes);

#endif
