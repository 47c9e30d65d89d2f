/* NumPy's .npz: a zip archive of .npy files, here stored without compression. */
#ifndef MR_TOOLS_GRAPH_RUN_NPZ_H
#define MR_TOOLS_GRAPH_RUN_NPZ_H

#include "common/out.h"

/* An archive that is built in memory. {0} is empty. */
typedef struct npz {
    out file, directory;
    uint32_t count;
} npz;

/* Limits of an archive without zip64. */
constexpr int64_t NPZ_ARRAYS_MAX = UINT16_MAX - 1;
constexpr int64_t NPZ_BYTES_MAX = UINT32_MAX - 1024;

/* Adds an array; after an error the archive is unchanged. Strings become NumPy's bytes ('S'), padded with zeros
 * to the longest.
 * name    of the array, as NumPy shows it
 * errors  MR_UNIMPLEMENTED for a dtype that NumPy does not have; MR_RESOURCE_EXHAUSTED, also for more than 4 GiB */
mr_status npz_add(npz *archive, const char *name, const mr_tensor *value, mr_error *error);
/* Writes the archive atomically. */
mr_status npz_write(npz *archive, const char *path, mr_error *error);
void npz_deinit(npz *archive);

#endif
