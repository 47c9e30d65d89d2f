/* Status and error: how every function of millrace reports failure.
 *
 * ```c
 * mr_error error = {0};
 * if (mr_fail(&error, MR_NOT_FOUND, "%s: no such class directory", "photos/cat") != MR_OK)
 *     fprintf(stderr, "%s: %s\n", mr_status_name(error.status), error.message);
 * ```
 *
 * A function that can fail returns mr_status and takes an mr_error as its last parameter, which may be null. The error
 * holds one sentence with the names and numbers that the user needs: file, position, reason. A function that returns
 * MR_OK leaves the error unchanged, so one error serves a chain of calls. The library never prints, exits or aborts
 * because of its input. */
#ifndef MILLRACE_STATUS_H
#define MILLRACE_STATUS_H

#include <millrace/api.h>

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's canonical codes, with the same numbers (tensorflow/core/protobuf/error_codes.proto). */
typedef enum MR_NODISCARD_ mr_status {
    MR_OK = 0,
    MR_CANCELLED = 1,
    MR_UNKNOWN = 2,
    MR_INVALID_ARGUMENT = 3,
    MR_DEADLINE_EXCEEDED = 4,
    MR_NOT_FOUND = 5,
    MR_ALREADY_EXISTS = 6,
    MR_PERMISSION_DENIED = 7,
    MR_RESOURCE_EXHAUSTED = 8,
    MR_FAILED_PRECONDITION = 9,
    MR_ABORTED = 10,
    MR_OUT_OF_RANGE = 11, /* also: the end of a sequence */
    MR_UNIMPLEMENTED = 12,
    MR_INTERNAL = 13,
    MR_UNAVAILABLE = 14,
    MR_DATA_LOSS = 15,
    MR_UNAUTHENTICATED = 16,
} mr_status;

/* MR_ERROR_SIZE bytes hold any message of the library. A longer message is truncated at a UTF-8 character boundary. */
#define MR_ERROR_SIZE 1024

typedef struct mr_error {
    mr_status status;
    char message[MR_ERROR_SIZE]; /* one sentence, no newline, no period at the end; empty if status is MR_OK */
} mr_error;

/* The code's canonical name, "DATA_LOSS"; "UNKNOWN" for an invalid code. Static. */
MR_API const char *mr_status_name(mr_status status);

/* Stores status and the formatted message in *error, if error is not null, and returns status. Control characters
 * (below 0x20, and 0x7f) in the formatted text become '?', so that a hostile name cannot control a terminal. */
MR_API MR_PRINTF_(3, 4) mr_status mr_fail(mr_error *error, mr_status status, const char *format, ...);
MR_API MR_PRINTF_(3, 0) mr_status mr_fail_va(mr_error *error, mr_status status, const char *format, va_list args);

/* Inserts the formatted text and ": " before the message in *error, and returns status: mr_fail_prefix(error, status,
 * "stage %s", name) turns "file x: truncated" into "stage map: file x: truncated". */
MR_API MR_PRINTF_(3, 4) mr_status mr_fail_prefix(mr_error *error, mr_status status, const char *format, ...);

/* Returns from the calling function with the status of call, unless it is MR_OK. */
#define MR_TRY(call)                                                                                                   \
    do {                                                                                                               \
        mr_status mr_try_status_ = (call);                                                                             \
        if (mr_try_status_ != MR_OK) return mr_try_status_;                                                            \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
