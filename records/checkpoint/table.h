/* Tables: sorted keys with values in one file, in the block format of LevelDB as TensorFlow writes it (the index file
 * of a checkpoint is one).
 *
 * A file is data blocks, a meta index (always empty here), an index block and a footer of 48 bytes. A block is a row of
 * entries — shared prefix length, rest's length, value's length as varints, the rest, the value — then the offsets of the
 * restarts (every 16th entry, whose key is whole), their count, a byte for the compression and a masked CRC32C. */
#ifndef MR_RECORDS_TABLE_H
#define MR_RECORDS_TABLE_H

#include "base/arena.h"
#include <millrace/tensor.h>

/* A longer key is damage. */
#define MR_TABLE_KEY_MAX 65536
/* A larger file is refused. */
#define MR_TABLE_SIZE_MAX ((size_t)1 << 30)

typedef struct mr_table_entry {
    mr_string key; /* a terminator follows the bytes */
    mr_string value;
} mr_table_entry;

/* A whole table in memory, sorted by key. {0} is empty. */
typedef struct mr_table {
    mr_arena arena;
    char *file; /* owned; null when the bytes are the caller's */
    mr_table_entry *entries;
    size_t count;
} mr_table;

/* Reads every entry; all checksums are checked.
 * errors  MR_DATA_LOSS naming file and byte, MR_UNIMPLEMENTED for compressed blocks; the table is then empty */
mr_status mr_table_read(const char *path, mr_table *table, mr_error *error);
/* The same from bytes, which must outlive the table. name is used in errors. */
mr_status mr_table_parse(mr_string bytes, const char *name, mr_table *table, mr_error *error);
void mr_table_deinit(mr_table *table);
/* The entry, or null. */
const mr_table_entry *mr_table_find(const mr_table *table, mr_string key);
/* Order of keys: by unsigned bytes, a prefix before what it begins. */
int mr_table_compare(mr_string a, mr_string b);

/* ---- Write ---- */

/* Bytes that grow. {0} is empty. */
typedef struct mr_table_bytes {
    char *data; /* owned: free() */
    size_t size_bytes;
    size_t capacity_bytes;
    bool failed; /* memory was exhausted; the bytes are then useless */
} mr_table_bytes;

typedef struct mr_table_block {
    mr_table_bytes bytes;
    mr_table_bytes restarts; /* uint32s, little-endian */
    int32_t restart_interval;
    int32_t since_restart;
    mr_table_bytes last_key;
} mr_table_block;

/* Builds a table in memory. {0} is an empty builder; failures of memory are kept and reported by finish. */
typedef struct mr_table_builder {
    mr_table_bytes file;
    mr_table_block data;
    mr_table_block index;
    bool index_is_due; /* the entry of the last flushed block waits for the next key */
    uint64_t due_offset, due_size_bytes;
    bool out_of_order;
} mr_table_builder;

/* Keys in increasing order, each once. */
void mr_table_add(mr_table_builder *builder, mr_string key, mr_string value);
/* *bytes is borrowed from the builder until deinit. */
mr_status mr_table_finish(mr_table_builder *builder, mr_string *bytes, mr_error *error);
void mr_table_builder_deinit(mr_table_builder *builder);

#endif
