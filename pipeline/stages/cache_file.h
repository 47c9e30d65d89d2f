/* Cache file: the elements of a dataset as a record file, for cache and snapshot.
 *
 *   record 0      "millrace cache 2", the digest of the input, the number of components
 *   record 1 … n  an element each: its tensors, as in a state
 *   record n + 1  "millrace cache end", n
 *
 * It is written under a name of its own by one writer at a time, and renamed when it is complete (records/io/file.h). */
#ifndef MR_PIPELINE_STAGES_CACHE_FILE_H
#define MR_PIPELINE_STAGES_CACHE_FILE_H

#include "pipeline/pipeline.h"

#include <millrace/record.h>

typedef struct mr_cache_file {
    const char *path; /* borrowed */
    uint64_t digest;  /* of the input */
    int32_t components;
    bool is_ours;             /* the name is one that nobody else gives a file: whatever it is, it may be replaced */
    mr_record_file *file;     /* that is read; null: none */
    uint64_t count;           /* its elements */
    mr_record_writer *writer; /* that is written; null: none */
    mr_state record;          /* that is written */
    char *bytes;              /* of the record that is read; owned */
    size_t capacity_bytes;    /* of bytes */
} mr_cache_file;

void mr_cache_file_deinit(mr_cache_file *cache);
/* What the two buffers take. */
size_t mr_cache_file_bytes(const mr_cache_file *cache);
/* errors  MR_NOT_FOUND: there is no file. MR_DATA_LOSS: it is damaged or the cache of another input, and may be replaced.
 *         MR_ABORTED: it is being replaced. Anything else is permanent: a file that is not a cache is MR_INVALID_ARGUMENT */
mr_status mr_cache_file_open(mr_cache_file *cache, mr_error *error);
/* The element's tensors, of these dtypes and shapes.
 * errors  MR_OUT_OF_RANGE behind the last one; MR_DATA_LOSS */
mr_status mr_cache_file_read(mr_cache_file *cache, uint64_t number, const mr_element_spec *spec, mr_payload **payload,
                             mr_error *error);
void mr_cache_file_close(mr_cache_file *cache);

/* errors  MR_ABORTED: another writer is at it */
mr_status mr_cache_file_begin(mr_cache_file *cache, bool gzip, mr_error *error);
mr_status mr_cache_file_append(mr_cache_file *cache, const mr_payload *payload, mr_error *error);
/* The file gets its name. Nothing is being written afterwards, also on an error. */
mr_status mr_cache_file_finish(mr_cache_file *cache, mr_error *error);
void mr_cache_file_abandon(mr_cache_file *cache);

#endif
