/* Definitions for clang-tidy only, included before every file of the library: functions that report a failure return
 * the status passed to them, never MR_OK. The analyzer sees one file at a time. Without these definitions it follows
 * paths on which an error returns MR_OK and outputs are not set. */
#ifndef MR_TESTS_LINT_H
#define MR_TESTS_LINT_H

#include "base/arena.h"
#include "base/kernel.h"
#include "pipeline/pipeline.h"
#include "records/io/file.h"

#define mr_fail(error, status, ...) ((void)mr_fail((error), (status), __VA_ARGS__), (status))
#define mr_fail_prefix(error, status, ...) ((void)mr_fail_prefix((error), (status), __VA_ARGS__), (status))
#define mr_fail_memory(error, size_bytes) ((void)mr_fail_memory((error), (size_bytes)), MR_RESOURCE_EXHAUSTED)
#define mr_kernel_fail(node, error, status, ...)                                                                       \
    ((void)mr_kernel_fail((node), (error), (status), __VA_ARGS__), (status))
#define mr_file_fail(error, number, action, path)                                                                      \
    ((void)mr_file_fail((error), (number), (action), (path)), MR_UNAVAILABLE)
/* After the call the requirement is met, or the dataset has failed. */
#define mr_dataset_require(dataset, is_there, argument)                                                                \
    ((is_there) ? (dataset) : ((void)mr_dataset_require((dataset), false, (argument)), (mr_dataset *)nullptr))

#endif
