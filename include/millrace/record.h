/* TFRecord files: append, read in order, by several threads, by number; index.
 *
 * ```c
 * mr_error error = {0};
 * mr_record_reader *reader = nullptr;
 * if (mr_record_reader_open("train-00000-of-00004.tfrecord", nullptr, &reader, &error) != MR_OK) return 1;
 * mr_string record;
 * mr_status status;
 * while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) printf("%zu bytes\n", record.size_bytes);
 * if (status != MR_OUT_OF_RANGE) fprintf(stderr, "%s\n", error.message);
 * mr_record_reader_free(reader);
 * ```
 *
 * A record on disk: its length (8 bytes, little-endian), the length's masked CRC32C (4), the bytes, their masked CRC32C
 * (4). Files may be plain, GZIP or ZLIB; readers look at the first bytes, not at the name. */
#ifndef MILLRACE_RECORD_H
#define MILLRACE_RECORD_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_compression { MR_COMPRESSION_NONE = 0, MR_COMPRESSION_GZIP, MR_COMPRESSION_ZLIB } mr_compression;

/* A record is at most this long; a longer length is damage, or a writer's MR_INVALID_ARGUMENT. */
#define MR_RECORD_SIZE_MAX ((uint64_t)2 << 30)
/* Bytes around a record's own. */
#define MR_RECORD_HEADER_BYTES 12
#define MR_RECORD_FOOTER_BYTES 4

/* CRC32C (Castagnoli), continued from crc (0 begins), and TensorFlow's mask over it. */
uint32_t mr_crc32c(uint32_t crc, const void *bytes, size_t size_bytes);
uint32_t mr_crc32c_mask(uint32_t crc);
uint32_t mr_crc32c_unmask(uint32_t masked);

/* ---- Write ---- */

typedef struct mr_record_writer_options {
    mr_compression compression;
    int32_t level; /* of compression, 1…9; 0: 6 */
    bool index;    /* also write path + ".index" when the writer is closed */
    bool atomic;   /* write to path + ".partial" and rename on close, so that no half file has the final name. A second
                      writer of the same path, of any process, is MR_ABORTED meanwhile */
    /* GZIP only, seekable: behind each seek_bytes of records, at the next record's boundary, compression begins anew, so
     * that with the index the file is read by number and by many threads; still one ordinary GZIP stream. 0: it is not.
     * Holds the records between two such points in memory, threads times */
    size_t seek_bytes;
    int32_t
        threads; /* that compress a seekable file, the caller's included; 0: 1. The bytes are the same at any number */
} mr_record_writer_options;

/* A good seek_bytes: costs about 1 % in size. */
#define MR_RECORD_SEEK_BYTES ((size_t)512 << 10)

typedef struct mr_record_writer mr_record_writer;
/* path  is replaced when it exists */
mr_status mr_record_writer_open(const char *path, const mr_record_writer_options *options, mr_record_writer **writer,
                                mr_error *error);
/* Appends one record: length, its CRC, the bytes, their CRC.
 *
 * bytes        borrowed for the call
 * size_bytes   0 … MR_RECORD_SIZE_MAX
 * errors       MR_INVALID_ARGUMENT too long; MR_RESOURCE_EXHAUSTED the disk is full; MR_UNAVAILABLE not writable.
 *              What was appended before is whole; readers notice the partial record behind it
 * threads      one caller at a time for each writer */
mr_status mr_record_writer_append(mr_record_writer *writer, const void *bytes, size_t size_bytes, mr_error *error);
/* Everything appended so far is with the kernel; with sync true also on the disk. */
mr_status mr_record_writer_flush(mr_record_writer *writer, bool sync, mr_error *error);
uint64_t mr_record_writer_count(const mr_record_writer *writer);
uint64_t mr_record_writer_size(const mr_record_writer *writer); /* uncompressed bytes so far, headers included */
/* Flushes, writes the index, renames, frees. On an error a file under the final name is as it was. */
mr_status mr_record_writer_close(mr_record_writer *writer, mr_error *error);
/* Frees without finishing: an atomic writer's file is removed. Null is allowed. */
void mr_record_writer_abandon(mr_record_writer *writer);

/* ---- Read in order ---- */

typedef enum mr_damage_policy {
    MR_DAMAGE_STOP = 0, /* the first damage is an error */
    MR_DAMAGE_SKIP,     /* bad data under a good header loses that record; a bad header is searched past to the next
                           record whose both checksums hold */
} mr_damage_policy;

typedef enum mr_damage_kind {
    MR_DAMAGE_NONE = 0,
    MR_DAMAGE_DATA,        /* the data's checksum does not hold, its header's does */
    MR_DAMAGE_HEADER,      /* the length's checksum does not hold, or no record is that long */
    MR_DAMAGE_CUT,         /* the file ends inside a header or a record */
    MR_DAMAGE_COMPRESSION, /* the compressed stream is damaged or cut short; nothing after it can be read */
} mr_damage_kind;
const char *mr_damage_kind_name(mr_damage_kind kind); /* "bad data", "bad header", …; static */

/* One damaged place. */
typedef struct mr_record_damage {
    mr_damage_kind kind;
    uint64_t record;     /* its number, counting every damaged place as one record */
    uint64_t offset;     /* where it begins in the (uncompressed) stream */
    uint64_t size_bytes; /* how far it goes: to the next record or to the end */
    const char *path;    /* borrowed from the reader */
} mr_record_damage;

/* A side file that damaged bytes are appended to: PATH is a record file itself, of Examples with the features "file",
 * "kind", "record", "offset", "message" and "bytes" (a long place is several of them, one behind the other); PATH.txt has
 * a line for each place. Both are appended to when they are there. A place that is reported again, by another epoch, is
 * written once. Several readers may share one.
 * threads  safe from any thread */
typedef struct mr_record_quarantine mr_record_quarantine;
mr_status mr_record_quarantine_open(const char *path, mr_record_quarantine **quarantine, mr_error *error);
/* Places and bytes written since it was opened. */
uint64_t mr_record_quarantine_count(const mr_record_quarantine *quarantine);
uint64_t mr_record_quarantine_size(const mr_record_quarantine *quarantine);
/* errors  what could not be written; null is allowed */
mr_status mr_record_quarantine_close(mr_record_quarantine *quarantine, mr_error *error);

typedef struct mr_record_reader_options {
    bool skip_checksums; /* of the data; headers are always checked */
    bool direct;         /* O_DIRECT, past the page cache, where the file system has it */
    mr_damage_policy damage;
    uint64_t damage_max;   /* MR_DAMAGE_SKIP: more losses than this are an error; 0: no limit */
    uint64_t first, count; /* only the records with the numbers first … first + count - 1; count 0: to the end. An index
                              beside the file is used when there is a fresh one; else headers are hopped over */
    size_t buffer_bytes;   /* of one read; 0: 1 MiB. A longer record gets memory of its own while it is read */
    int32_t buffer_count;             /* read ahead when the file is not in the page cache; 0: 4 */
    mr_record_quarantine *quarantine; /* MR_DAMAGE_SKIP: borrowed, may be null: where damaged bytes go */
    /* MR_DAMAGE_SKIP: called for each place that is skipped; may be null. error holds the sentence about it. */
    void (*damaged)(void *context, const mr_record_damage *damage, const mr_error *error);
    void *context;
} mr_record_reader_options;

typedef struct mr_record_reader mr_record_reader;
/* path  "-" is the standard input ("./-" a file of that name) */
mr_status mr_record_reader_open(const char *path, const mr_record_reader_options *options, mr_record_reader **reader,
                                mr_error *error);
/* The next record: a view into the read buffer, valid until the next call.
 * errors  MR_OUT_OF_RANGE at the end; MR_DATA_LOSS naming file, record, byte and reason. The reader has then moved on: the
 *         next call gives the record behind the damage, so that a caller who tries again is never kept at one place;
 *         MR_ABORTED once, at the end of a plain file that is shorter now than when it was opened */
mr_status mr_record_reader_next(mr_record_reader *reader, mr_string *record, mr_error *error);
uint64_t mr_record_reader_number(const mr_record_reader *reader); /* of the record returned last, from 0 */
uint64_t mr_record_reader_offset(const mr_record_reader *reader); /* its header's byte in the (uncompressed) stream */
uint64_t mr_record_reader_lost(const mr_record_reader *reader);   /* damaged places so far */
/* The last of them; kind MR_DAMAGE_NONE when there was none. */
mr_record_damage mr_record_reader_damage(const mr_record_reader *reader);
mr_compression mr_record_reader_compression(const mr_record_reader *reader);
void mr_record_reader_free(mr_record_reader *reader);

/* ---- All records of files, by several threads ---- */

/* Records that follow each other: views into a block of the file that is in the cache of the processor that works on it. */
typedef struct mr_record_batch {
    int32_t file;             /* of the list */
    int32_t thread;           /* 0 … threads - 1: who works on it, for state of one's own; not meant in take */
    const char *path;         /* paths[file] */
    uint64_t first;           /* number of records[0] in its file; records[i] is first + i */
    size_t count;             /* at least 1 */
    const mr_string *records; /* borrowed for the call */
    void *result;             /* yours: null before work, which may set it; take finds it */
    const char *bytes;        /* for mr_record_batch_offset */
    uint64_t offset;
} mr_record_batch;

/* The header's byte of records[i] in the (uncompressed) stream. */
static inline uint64_t mr_record_batch_offset(const mr_record_batch *batch, size_t i)
{
    return batch->offset + (uint64_t)(batch->records[i].data - batch->bytes) - MR_RECORD_HEADER_BYTES;
}

/* What was read, of a file or of all. */
typedef struct mr_record_totals {
    uint64_t records, size_bytes; /* good ones, and their data */
    uint64_t lost, lost_bytes;    /* damaged places */
} mr_record_totals;

/* Callbacks may be null. All but work are called by one thread at a time, in the order of files and records. */
typedef struct mr_record_scan_options {
    int32_t threads; /* 0: one for each usable processor */
    bool skip_checksums;
    bool direct;
    mr_damage_policy damage; /* as for a reader; the budget is for all files */
    uint64_t damage_max;
    size_t block_bytes; /* 0: 1 MiB */
    mr_record_quarantine *quarantine;
    void *context;
    /* Called on any thread, in any order, several at a time; also for records behind an error that is not yet known. */
    mr_status (*work)(void *context, mr_record_batch *batch, mr_error *error);
    mr_status (*take)(void *context, const mr_record_batch *batch, mr_error *error);
    bool takes_results; /* take is called only for batches that work gave a result: cheaper when those are few */
    /* A result that no take will see, because the scan ends early. */
    void (*discard)(void *context, void *result);
    void (*damaged)(void *context, const mr_record_damage *damage, const mr_error *error);
    /* The file's last record was taken, or it cannot be read (on): error->status is then not MR_OK. The scan goes on with
     * the next file when this returns MR_OK. Without it the first failure ends the scan. */
    mr_status (*file_done)(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error);
} mr_record_scan_options;

/* Reads all records of files, checks them, and hands them out in batches. A plain file, and seekable GZIP with a fresh
 * index, is read by all threads at once; of a pipe and any other compressed file only work is.
 *
 * totals  of all files; may be null
 * memory  2 blocks and the longest record for each thread, twice
 * errors  the first in the order of files and records: of a file (MR_ABORTED when it is shorter now than when it was opened),
 *         of the damage policy, of a callback; MR_INVALID_ARGUMENT for a negative count */
mr_status mr_record_scan(const char *const *paths, int32_t count, const mr_record_scan_options *options,
                         mr_record_totals *totals, mr_error *error);

/* ---- By number ---- */

/* Where each record is. Stored beside the file as path + ".index", with a checksum of its own and with the size and a
 * checksum of samples of the record file, so that it stays valid when both are copied and a stale one is ignored. Samples
 * cannot tell apart two files of one size that differ only between them.
 *
 * An index says where records begin, not what is in them: it stays right when a record is overwritten with one of the same
 * length. A file that was rewritten in place with records of other lengths, but with the same size, the same bytes in all
 * samples and the same lengths of the eight records that are compared, has an index that is wrong and is not ignored.
 * Then a read by number fails with MR_DATA_LOSS where no record of the indexed length begins, and otherwise returns a
 * complete record of the file, which may have another number. `tfrecord-cat --repair-index` compares every header, and
 * `--index` does so for a file that is newer than its index. */
typedef enum mr_index_origin {
    MR_INDEX_LOADED = 0, /* from path + ".index" */
    MR_INDEX_MADE,       /* there is none: made from the file */
    MR_INDEX_STALE,      /* there is one of another version of the file or of the format: made from the file */
    MR_INDEX_DAMAGED,    /* there is one, but its checksum does not hold: made from the file */
} mr_index_origin;

/* Where a compressed file can be entered: from byte `offset` of the file its deflate stream is read without what is
 * before, and gives record `record` and what follows. */
typedef struct mr_record_point {
    uint64_t record;
    uint64_t offset;
} mr_record_point;

typedef struct mr_record_index {
    uint64_t count;
    uint64_t *offsets; /* owned; count + 1, in the uncompressed stream: offsets[i] is record i's header, offsets[count]
                          the end */
    uint64_t file_size_bytes;
    int64_t file_modified_ns; /* when the index was loaded or computed; not stored */
    uint32_t file_checksum;   /* CRC32C of samples of the file */
    mr_index_origin origin;
    mr_compression compression;
    uint64_t point_count;    /* 0 where the file can be read from its beginning only */
    mr_record_point *points; /* owned; of seekable GZIP, rising, the first for record 0 */
} mr_record_index;

/* Reads path's index if there is a fresh one, else makes it by hopping over the headers (checksums of headers are
 * checked, data is not read), for large files with all processors. A compressed file without a fresh index is
 * MR_UNIMPLEMENTED: mr_record_index_make would have to read all of it. */
mr_status mr_record_index_open(const char *path, mr_record_index *index, mr_error *error);
/* Makes the index from the file, whatever lies beside it. A compressed file is read to its end, and its points are found.
 * threads  the most to use; 0: one for each processor
 * errors   MR_DATA_LOSS where a header does not hold or the file ends inside a record */
mr_status mr_record_index_make(const char *path, int32_t threads, mr_record_index *index, mr_error *error);
/* Writes path + ".index", atomically. */
mr_status mr_record_index_write(const char *path, const mr_record_index *index, mr_error *error);
void mr_record_index_deinit(mr_record_index *index);
/* How many records, from a fresh index or else as mr_record_index_make, but in constant memory. "-" and pipes too. */
mr_status mr_record_count(const char *path, int32_t threads, uint64_t *count, mr_error *error);

/* DALI's index (tfrecord2idx), of plain files only: a line "OFFSET SIZE" for each record, its 16 bytes of frame counted.
 * Nothing in it says which file or version it is of: check it before it is believed.
 * read: errors  MR_DATA_LOSS naming the line, also when the records do not follow one another from byte 0 */
mr_status mr_dali_index_write(const char *index_path, const mr_record_index *index, mr_error *error);
mr_status mr_dali_index_read(const char *index_path, mr_record_index *index, mr_error *error);
/* Whether every header of a plain file holds and lies where the index says; takes the file's size and time into it.
 * errors  MR_DATA_LOSS naming the first record that does not */
mr_status mr_record_index_check(const char *path, int32_t threads, mr_record_index *index, mr_error *error);

/* A file for reading at any record number: plain, or seekable GZIP with a fresh index.
 * errors   open: as mr_record_index_open; MR_UNIMPLEMENTED also for compressed files that are not seekable
 * threads  read is safe from any thread */
typedef struct mr_record_file mr_record_file;
mr_status mr_record_file_open(const char *path, mr_record_file **file, mr_error *error);
uint64_t mr_record_file_count(const mr_record_file *file);
const char *mr_record_file_path(const mr_record_file *file);
mr_compression mr_record_file_compression(const mr_record_file *file);
/* The header's byte in the (uncompressed) stream; of number = count and above: the end. */
uint64_t mr_record_file_offset(const mr_record_file *file, uint64_t number);
/* Bytes of the record's data; 0 when there is no such record. */
uint64_t mr_record_file_record_size(const mr_record_file *file, uint64_t number);
/* Lets the system begin to read record `number`, which is soon wanted; does not wait. A number that is not there, or a
 * compressed file: nothing. */
void mr_record_file_ask(const mr_record_file *file, uint64_t number);
/* Reads and checks record `number` into bytes, which must hold mr_record_file_record_size plus
 * MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES; record is then a view into them.
 * errors  MR_DATA_LOSS naming file, record and byte */
mr_status mr_record_file_read(const mr_record_file *file, uint64_t number, void *bytes, mr_string *record,
                              mr_error *error);
void mr_record_file_free(mr_record_file *file);

/* Paths of a pattern: a path, a glob, or "name@16" and "name@16.tfrecord" for sharded names; sorted.
 * A file that is there under the very name is meant before any pattern.
 * A glob leaves out ".index", ".idx" and ".partial" files unless it names them.
 * paths   owned: mr_paths_free frees all
 * errors  MR_NOT_FOUND when nothing matches, or a shard is missing */
mr_status mr_paths_match(const char *pattern, char ***paths, int32_t *count, mr_error *error);
void mr_paths_free(char **paths, int32_t count);

#ifdef __cplusplus
}
#endif
#endif
