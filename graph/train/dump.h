/* What the writer and the reader of dumps have in common: the names of their files. */
#ifndef MR_GRAPH_TRAIN_DUMP_H
#define MR_GRAPH_TRAIN_DUMP_H

#include <millrace/debug.h>

#define MR_DUMP_PREFIX "_tfdbg_"
#define MR_DUMP_DEVICE MR_DUMP_PREFIX "device_"
#define MR_DUMP_GRAPH MR_DUMP_PREFIX "graph_"
#define MR_DUMP_DEBUG_OP "DebugIdentity"

/* The largest file of a value that is read or written. */
constexpr uint64_t MR_DUMP_FILE_BYTES_MAX = (uint64_t)1 << 31;

/* Whether the tensor, in host memory, has a NaN or an infinity; of complex numbers in one of their parts. */
bool mr_dump_is_nonfinite(const mr_tensor *value);

#endif
