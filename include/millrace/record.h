/* TFRecord files: append, read in order, read by number, index.
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
    bool index;    /* also write path + ".index" (plain files only), when the writer is closed */
    bool atomic;   /* write to path + ".partial" and rename on close, so that no half file has the final name */
} mr_record_writer_options;

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
} mr_record_damage;

typedef struct mr_record_reader_options {
    bool skip_checksums; /* of the data; headers are always checked */
    mr_damage_policy damage;
    uint64_t damage_max; /* MR_DAMAGE_SKIP: more losses than this are an error; 0: no limit */
    size_t buffer_bytes; /* read-ahead; 0: 1 MiB. A longer record grows it for itself */
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
 *         next call gives the record behind the damage, so that a caller who tries again is never kept at one place */
mr_status mr_record_reader_next(mr_record_reader *reader, mr_string *record, mr_error *error);
uint64_t mr_record_reader_number(const mr_record_reader *reader); /* of the record returned last, from 0 */
uint64_t mr_record_reader_offset(const mr_record_reader *reader); /* its header's byte in the (uncompressed) stream */
uint64_t mr_record_reader_lost(const mr_record_reader *reader);   /* damaged places so far */
/* The last of them; kind MR_DAMAGE_NONE when there was none. */
mr_record_damage mr_record_reader_damage(const mr_record_reader *reader);
mr_compression mr_record_reader_compression(const mr_record_reader *reader);
void mr_record_reader_free(mr_record_reader *reader);

/* ---- By number ---- */

/* Where each record lies. Written beside the file as path + ".index": itself checksummed, with the size and time of what
 * it indexes, so that a stale one is noticed and never trusted. */
typedef enum mr_index_origin {
    MR_INDEX_LOADED = 0, /* from path + ".index" */
    MR_INDEX_MADE,       /* there is none: made from the headers */
    MR_INDEX_STALE,      /* there is one of another version of the file: made from the headers */
    MR_INDEX_DAMAGED,    /* there is one, but its checksum does not hold: made from the headers */
} mr_index_origin;

typedef struct mr_record_index {
    uint64_t count;
    uint64_t *offsets; /* owned; count + 1: offsets[i] is record i's header, offsets[count] the end */
    uint64_t file_size_bytes;
    int64_t file_modified_ns;
    mr_index_origin origin;
} mr_record_index;

/* Reads path's index if there is a fresh one, else makes it by hopping over the headers (checksums of headers are
 * checked, data is not read). A file that cannot be indexed (compressed) is MR_UNIMPLEMENTED. */
mr_status mr_record_index_open(const char *path, mr_record_index *index, mr_error *error);
/* Writes path + ".index", atomically. */
mr_status mr_record_index_write(const char *path, const mr_record_index *index, mr_error *error);
void mr_record_index_deinit(mr_record_index *index);

/* A file for reading at any record number.
 * threads  read is safe from any thread */
typedef struct mr_record_file mr_record_file;
mr_status mr_record_file_open(const char *path, mr_record_file **file, mr_error *error);
uint64_t mr_record_file_count(const mr_record_file *file);
const char *mr_record_file_path(const mr_record_file *file);
uint64_t mr_record_file_record_size(const mr_record_file *file, uint64_t number); /* its data's bytes */
/* Reads and checks record `number` into bytes, which must hold mr_record_file_record_size plus
 * MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES; record is then a view into them.
 * errors  MR_DATA_LOSS naming file, record and byte */
mr_status mr_record_file_read(const mr_record_file *file, uint64_t number, void *bytes, mr_string *record,
                              mr_error *error);
void mr_record_file_free(mr_record_file *file);

/* Paths of a pattern: a path, a glob, or "name@16" and "name@16.tfrecord" for sharded names; sorted.
 * A file that is there under the very name is meant before any pattern.
 * A glob leaves out ".index" and ".partial" files unless it names them.
 * paths   owned: mr_paths_free frees all
 * errors  MR_NOT_FOUND when nothing matches, or a shard is missing */
mr_status mr_paths_match(const char *pattern, char ***paths, int32_t *count, mr_error *error);
void mr_paths_free(char **paths, int32_t count);

#ifdef __cplusplus
}
#endif
#endif
