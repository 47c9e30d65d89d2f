/* TFRecord files: write, read sequentially, scan with several threads, read by number, index.
 *
 * ```c
 * mr_error error = {0};
 * mr_record_reader *reader = nullptr;
 * if (mr_record_reader_open("train-00000-of-00004.tfrecord", nullptr, &reader, &error) != MR_OK) return 1;
 * mr_string record;
 * mr_status status;
 * while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) printf("%zu bytes\n", record.size_bytes);
 * if (status != MR_OUT_OF_RANGE) fprintf(stderr, "%s\n", error.message);
 * mr_record_reader_close(reader);
 * ```
 *
 * A record on disk: its length (8 bytes, little-endian), the masked CRC32C of the length (4), the data, the masked
 * CRC32C of the data (4). Files are plain, GZIP or ZLIB; readers detect the compression from the first bytes, not from
 * the name. */
#ifndef MILLRACE_RECORD_H
#define MILLRACE_RECORD_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compression of a complete record file. */
typedef enum mr_compression { MR_COMPRESSION_NONE = 0, MR_COMPRESSION_GZIP, MR_COMPRESSION_ZLIB } mr_compression;

/* Maximum size of a record. A reader treats a larger length as damage; a writer fails with MR_INVALID_ARGUMENT. */
#define MR_RECORD_SIZE_MAX ((uint64_t)2 << 30)
/* Bytes before and after a record's data. */
#define MR_RECORD_HEADER_BYTES 12
#define MR_RECORD_FOOTER_BYTES 4

/* CRC32C (Castagnoli) continued from crc (0 to start), and TensorFlow's masking. */
MR_API uint32_t mr_crc32c(uint32_t crc, const void *bytes, size_t size_bytes);
MR_API uint32_t mr_crc32c_mask(uint32_t crc);
MR_API uint32_t mr_crc32c_unmask(uint32_t masked);

/* ---- Write ---- */

typedef struct mr_record_writer_options {
    size_t size; /* of this struct (api.h) */
    mr_compression compression;
    int32_t level; /* of compression, 1 to 9; 0: 6. An error without compression */
    bool index;    /* write path + ".index" on close */
    bool atomic;   /* write to path + ".partial" and rename on close, so that the final name never refers to an
                      incomplete file */
    /* GZIP only: makes the file seekable. After every seek_bytes of records, at the next record boundary, the
     * compressor is reset, so that with the index the file can be read by number and by several threads. It remains one
     * ordinary GZIP stream. Memory: the records between two such points, for each thread. 0: not seekable */
    size_t seek_bytes;
    int32_t threads; /* that compress a seekable file, including the caller's; 0: 1. The output does not depend on it */
    bool no_lock;    /* the program has locked the file itself, with flock. Not with atomic */
} mr_record_writer_options;

/* Recommended value of seek_bytes. It increases the file size by about 1 %. */
#define MR_RECORD_SEEK_BYTES ((size_t)512 << 10)

typedef struct mr_record_writer mr_record_writer;
/* path    an existing file is replaced
 * errors  MR_ABORTED while another writer, of any process, has the file open: it is locked with flock, an atomic
 *         writer's file as path + ".partial" */
MR_API mr_status mr_record_writer_open(const char *path, const mr_record_writer_options *options,
                                       mr_record_writer **writer, mr_error *error);
/* Appends one record.
 *
 * bytes        borrowed for the call
 * size_bytes   0 to MR_RECORD_SIZE_MAX
 * errors       MR_INVALID_ARGUMENT: too large; MR_RESOURCE_EXHAUSTED: the disk is full; MR_UNAVAILABLE: not writable.
 *              Earlier records are complete; readers detect the partial record that follows them
 * threads      one caller at a time for each writer */
MR_API mr_status mr_record_writer_append(mr_record_writer *writer, const void *bytes, size_t size_bytes,
                                         mr_error *error);
/* Appends several records, whose bytes follow each other: one call for many small records.
 *
 * bytes, sizes  borrowed for the call; sizes has the length of each record
 * errors        as mr_record_writer_append. Records before the one that failed are appended: see
 *               mr_record_writer_count
 * threads       one caller at a time for each writer */
MR_API mr_status mr_record_writer_append_many(mr_record_writer *writer, const void *bytes, const uint64_t *sizes,
                                              size_t count, mr_error *error);
/* Passes everything appended so far to the kernel; if sync is true, waits until it is on the disk. */
MR_API mr_status mr_record_writer_flush(mr_record_writer *writer, bool sync, mr_error *error);
MR_API uint64_t mr_record_writer_count(const mr_record_writer *writer);
/* Uncompressed bytes so far, including headers. */
MR_API uint64_t mr_record_writer_size(const mr_record_writer *writer);
/* Flushes, writes the index, renames, frees. On an error an existing file of the final name is unchanged. */
MR_API mr_status mr_record_writer_close(mr_record_writer *writer, mr_error *error);
/* Frees without finishing; removes an atomic writer's partial file. Null is allowed. */
MR_API void mr_record_writer_discard(mr_record_writer *writer);

/* ---- Read sequentially ---- */

typedef enum mr_damage_policy {
    MR_DAMAGE_STOP = 0, /* damage is an error */
    MR_DAMAGE_SKIP, /* bad data after a good header: skip this record. A bad header: search for the next record whose
                           two checksums match */
} mr_damage_policy;

typedef enum mr_damage_kind {
    MR_DAMAGE_NONE = 0,
    MR_DAMAGE_DATA,        /* the header's checksum matches, the data's does not */
    MR_DAMAGE_HEADER,      /* the checksum of the length does not match, or the length exceeds MR_RECORD_SIZE_MAX */
    MR_DAMAGE_TRUNCATED,   /* the file ends inside a header or a record */
    MR_DAMAGE_COMPRESSION, /* the compressed stream is damaged or truncated; nothing after it can be read */
} mr_damage_kind;
MR_API const char *mr_damage_kind_name(mr_damage_kind kind); /* "bad data", "bad header", …; static */

/* One damaged range of a file. */
typedef struct mr_record_damage {
    mr_damage_kind kind;
    uint64_t record;     /* its number, counting every damaged range as one record */
    uint64_t offset;     /* in the (uncompressed) stream */
    uint64_t size_bytes; /* to the next record or to the end of the file */
    const char *path;    /* borrowed from the reader */
} mr_record_damage;

/* A file that collects damaged bytes. PATH is a record file of Examples with the features "file", "kind", "record",
 * "offset", "message" and "bytes" (a long range is split over consecutive Examples); PATH.txt has a line for each
 * damaged range. Existing files are appended to. A range that is reported again, in a later epoch, is written once.
 * Several readers may use the same quarantine.
 * threads  any */
typedef struct mr_record_quarantine mr_record_quarantine;
MR_API mr_status mr_record_quarantine_open(const char *path, mr_record_quarantine **quarantine, mr_error *error);
/* Damaged ranges, and their bytes, written since it was opened. */
MR_API uint64_t mr_record_quarantine_count(const mr_record_quarantine *quarantine);
MR_API uint64_t mr_record_quarantine_size(const mr_record_quarantine *quarantine);
/* errors  of writing. Null is allowed */
MR_API mr_status mr_record_quarantine_close(mr_record_quarantine *quarantine, mr_error *error);

typedef struct mr_record_reader_options {
    size_t size;         /* of this struct (api.h) */
    bool skip_checksums; /* of the data; headers are always checked */
    bool direct;         /* O_DIRECT: bypass the page cache, where the file system supports it */
    mr_damage_policy damage;
    uint64_t damage_max; /* MR_DAMAGE_SKIP: maximum number of skipped ranges; more are an error. 0: no limit */
    uint64_t first,
        count; /* read only the records first to first + count - 1; count 0: to the end. Uses the file's index
                              if it is valid, otherwise scans the headers */
    size_t
        buffer_bytes; /* size of one read, at most 1 GiB; 0: 1 MiB. A longer record temporarily gets its own memory */
    int32_t buffer_count;             /* buffers read ahead when the file is not in the page cache, at most 64; 0: 4 */
    mr_record_quarantine *quarantine; /* MR_DAMAGE_SKIP: receives the damaged bytes; borrowed, may be null */
    /* MR_DAMAGE_SKIP: called for each range that is skipped; may be null. error holds the message. */
    void (*damaged)(void *context, const mr_record_damage *damage, const mr_error *error);
    void *context;
} mr_record_reader_options;

typedef struct mr_record_reader mr_record_reader;
/* path    "-": standard input ("./-" is a file of that name)
 * errors  MR_INVALID_ARGUMENT: options out of range or without effect; MR_NOT_FOUND and the other errors of opening */
MR_API mr_status mr_record_reader_open(const char *path, const mr_record_reader_options *options,
                                       mr_record_reader **reader, mr_error *error);
/* The next record: a view into the read buffer, valid until the next call.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS, naming file, record, offset and reason: the next call continues
 *         after the damage; MR_ABORTED, once, at the end of a plain file that has been truncated since it was opened */
MR_API mr_status mr_record_reader_next(mr_record_reader *reader, mr_string *record, mr_error *error);
/* Waits until the next record of a pipe has arrived, for a program that must do something else meanwhile.
 *
 * timeout_ms  maximum; 0: do not wait. Any signal that the calling thread handles ends the wait
 * is_ready    false: a call of next would wait, or the time is over. True: it would not, except in damaged data. Always
 *             true for files
 * errors      of reading, as mr_record_reader_next. The record that was returned last becomes invalid */
MR_API mr_status mr_record_reader_wait(mr_record_reader *reader, int32_t timeout_ms, bool *is_ready, mr_error *error);
MR_API uint64_t mr_record_reader_number(const mr_record_reader *reader); /* of the last record returned, from 0 */
/* Offset of its header in the (uncompressed) stream. */
MR_API uint64_t mr_record_reader_offset(const mr_record_reader *reader);
MR_API uint64_t mr_record_reader_lost(const mr_record_reader *reader); /* damaged ranges so far */
/* The last damaged range; its kind is MR_DAMAGE_NONE if there was none. */
MR_API mr_record_damage mr_record_reader_damage(const mr_record_reader *reader);
MR_API mr_compression mr_record_reader_compression(const mr_record_reader *reader);
MR_API void mr_record_reader_close(mr_record_reader *reader);

/* ---- Scan all records of files with several threads ---- */

/* Consecutive records: views into a block of the file that is in the cache of the processor that processes it. */
typedef struct mr_record_batch {
    int32_t file;             /* index in paths */
    int32_t thread;           /* 0 to threads - 1: which thread calls work, for per-thread state; unspecified in take */
    const char *path;         /* paths[file] */
    uint64_t first;           /* number of records[0] in its file; records[i] is first + i */
    size_t count;             /* at least 1 */
    const mr_string *records; /* borrowed for the call */
    void *result;             /* the caller's: null before work, which may set it for take */
    const char *bytes;        /* for mr_record_batch_offset */
    uint64_t offset;
} mr_record_batch;

/* Offset of the header of records[i] in the (uncompressed) stream. */
static inline uint64_t mr_record_batch_offset(const mr_record_batch *batch, size_t i)
{
    return batch->offset + (uint64_t)(batch->records[i].data - batch->bytes) - MR_RECORD_HEADER_BYTES;
}

/* Totals of one file or of all files. */
typedef struct mr_record_totals {
    uint64_t records, size_bytes; /* valid records and the bytes of their data */
    uint64_t lost, lost_bytes;    /* damaged ranges and their bytes */
} mr_record_totals;

/* Callbacks may be null. Calls of all but work are serialized, in the order of files and records. */
typedef struct mr_record_scan_options {
    size_t size;     /* of this struct (api.h) */
    int32_t threads; /* 0: one for each available processor */
    bool skip_checksums;
    bool direct;
    mr_damage_policy damage; /* as for a reader; damage_max applies to all files together */
    uint64_t damage_max;
    size_t block_bytes; /* 0: 1 MiB */
    mr_record_quarantine *quarantine;
    void *context;
    /* Called concurrently on any thread, in any order; also for records after an undetected error. */
    mr_status (*work)(void *context, mr_record_batch *batch, mr_error *error);
    mr_status (*take)(void *context, const mr_record_batch *batch, mr_error *error);
    bool takes_results; /* call take only for batches whose result work has set: faster when those are few */
    /* Frees a result that is not passed to take because the scan ends early. */
    void (*discard)(void *context, void *result);
    void (*damaged)(void *context, const mr_record_damage *damage, const mr_error *error);
    /* Called when the last record of a file has been taken, or when the file cannot be read further: error->status is
     * then not MR_OK. If it returns MR_OK, the scan continues with the next file. Null: the first failure ends the
     * scan. */
    mr_status (*file_done)(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error);
} mr_record_scan_options;

/* Reads and checks all records of files and passes them to callbacks in batches. Plain files, and seekable GZIP files
 * with a valid index, are read by all threads concurrently. Pipes and other compressed files are read by one thread;
 * only work is concurrent.
 *
 * totals  of all files; may be null
 * memory  for each thread, two blocks and twice the longest record
 * errors  the first in the order of files and records: of a file (MR_ABORTED if it has been truncated since it was
 *         opened), of the damage policy, or of a callback; MR_INVALID_ARGUMENT for a negative count and for
 *         options out of range or without effect */
MR_API mr_status mr_record_scan(const char *const *paths, int32_t count, const mr_record_scan_options *options,
                                mr_record_totals *totals, mr_error *error);

/* ---- By number ---- */

/* The offset of each record, stored as path + ".index". The index has a checksum of its own, and the size and a
 * checksum of samples of the record file, so that it remains valid when both are copied and is ignored when it is
 * stale. Two files of the same size that differ only between the samples cannot be distinguished.
 *
 * An index holds the offsets of records, not their contents: it stays valid when a record is overwritten by one of the
 * same length. An index that is as new as its file or newer, by modification time, is trusted if the size, the samples
 * and the headers of eight records match. If a plain file was modified after its index, every header is compared with
 * the index when it is opened, which costs as much as building it; an index that does not match is stale, one that does
 * is used and is not rewritten. For a compressed file the time has no effect: size and samples decide.
 *
 * So a wrong index is not detected as stale only if the file was rewritten with records of other lengths, but with the
 * same size, samples and eight headers, and is compressed or has a modification time that is not later than the
 * index's. A read by number then fails with MR_DATA_LOSS if no record of the indexed length starts at the offset, and
 * otherwise returns a complete record of the file, which may have another number. `tfrecord-cat --repair-index`
 * compares every header of every file. */
typedef enum mr_index_origin {
    MR_INDEX_LOADED = 0, /* loaded from path + ".index" */
    MR_INDEX_BUILT,      /* there is no index file: built from the record file */
    MR_INDEX_STALE,      /* it belongs to another version of the file or the format: built from the record file */
    MR_INDEX_DAMAGED,    /* its checksum does not match: built from the record file */
} mr_index_origin;

/* A point where decompression can start: from byte `offset` of the file, the deflate stream can be decompressed without
 * the bytes before, and yields the records from `record` on. */
typedef struct mr_record_point {
    uint64_t record;
    uint64_t offset;
} mr_record_point;

typedef struct mr_record_index {
    uint64_t count;
    uint64_t
        *offsets; /* owned; count + 1 offsets in the uncompressed stream: of each record's header, and of the end */
    uint64_t file_size_bytes;
    int64_t file_modified_ns; /* at the time the index was loaded or built; not stored */
    uint32_t file_checksum;   /* CRC32C of samples of the file */
    mr_index_origin origin;
    mr_compression compression;
    uint64_t point_count;    /* 0: the file can only be read from its beginning */
    mr_record_point *points; /* owned; of seekable GZIP, ascending, the first one for record 0 */
} mr_record_index;

/* Loads path's index if it is valid, otherwise builds it by scanning the headers (their checksums are verified, data is
 * not read), of large files with all processors. The index of a plain file that was modified after it is compared with
 * the headers in the same way. A compressed file without a valid index is MR_UNIMPLEMENTED:
 * mr_record_index_build would have to read it completely. */
MR_API mr_status mr_record_index_open(const char *path, mr_record_index *index, mr_error *error);
/* Builds the index from the record file, ignoring an existing index. A compressed file is read completely, and its
 * entry points are found.
 * threads  maximum; 0: one for each processor
 * errors   MR_DATA_LOSS for a bad header, or if the file ends inside a record */
MR_API mr_status mr_record_index_build(const char *path, int32_t threads, mr_record_index *index, mr_error *error);
/* Writes path + ".index", atomically. */
MR_API mr_status mr_record_index_write(const char *path, const mr_record_index *index, mr_error *error);
MR_API void mr_record_index_deinit(mr_record_index *index);
/* The number of records, from a valid index that is not older than its plain file, otherwise as mr_record_index_build
 * but in constant memory. Accepts "-" and
 * pipes. */
MR_API mr_status mr_record_count(const char *path, int32_t threads, uint64_t *count, mr_error *error);

/* DALI's index (tfrecord2idx), for plain files only: a line "OFFSET SIZE" for each record, where SIZE includes the 16
 * bytes around the data. The format does not identify the record file: check it with mr_record_index_check before use.
 * read: errors  MR_DATA_LOSS naming the line, also if the records are not contiguous from byte 0 */
MR_API mr_status mr_dali_index_write(const char *index_path, const mr_record_index *index, mr_error *error);
MR_API mr_status mr_dali_index_read(const char *index_path, mr_record_index *index, mr_error *error);
/* Checks that every header of a plain file is valid and at its offset in the index; stores the file's size and time in
 * the index.
 * errors  MR_DATA_LOSS naming the first record that does not match */
MR_API mr_status mr_record_index_check(const char *path, int32_t threads, mr_record_index *index, mr_error *error);

/* A file for random access by record number: plain, or seekable GZIP with a valid index.
 * errors   open: as mr_record_index_open; MR_UNIMPLEMENTED also for compressed files that are not seekable
 * threads  read may be called concurrently */
typedef struct mr_record_file mr_record_file;
MR_API mr_status mr_record_file_open(const char *path, mr_record_file **file, mr_error *error);
MR_API uint64_t mr_record_file_count(const mr_record_file *file);
MR_API const char *mr_record_file_path(const mr_record_file *file);
MR_API mr_compression mr_record_file_compression(const mr_record_file *file);
/* The offset of the header in the (uncompressed) stream; number ≥ count: the end. */
MR_API uint64_t mr_record_file_offset(const mr_record_file *file, uint64_t number);
MR_API uint64_t mr_record_file_record_size(const mr_record_file *file,
                                           uint64_t number); /* of its data; 0 if out of range */
/* Starts reading record `number` into the page cache, without waiting. No effect for a number out of range, or for a
 * compressed file. */
MR_API void mr_record_file_prefetch(const mr_record_file *file, uint64_t number);
/* Reads and checks record `number` into bytes, which must hold mr_record_file_record_size plus
 * MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES. record is a view into bytes.
 * errors  MR_DATA_LOSS naming file, record and offset */
MR_API mr_status mr_record_file_read(const mr_record_file *file, uint64_t number, void *bytes, mr_string *record,
                                     mr_error *error);
MR_API void mr_record_file_close(mr_record_file *file);

/* The sorted paths that a pattern matches: a path, a glob, or "name@16" and "name@16.tfrecord" for sharded names. An
 * existing file whose name equals the pattern takes precedence. A glob does not match ".index", ".idx" and ".partial"
 * files unless it ends with that suffix.
 * paths   owned; released by mr_paths_free
 * errors  MR_NOT_FOUND when nothing matches, or a shard is missing */
MR_API mr_status mr_paths_match(const char *pattern, char ***paths, int32_t *count, mr_error *error);
MR_API void mr_paths_free(char **paths, int32_t count);

#ifdef __cplusplus
}
#endif
#endif
