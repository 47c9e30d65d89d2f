/* Tables: sorted keys with values in one file, in LevelDB's block format as TensorFlow writes it. The index file of a
 * checkpoint is a table.
 *
 * A file consists of data blocks, a meta index (always empty here), an index block and a footer of 48 bytes. A block is
 * a sequence of entries, then the offsets of the restarts (every 16th entry, whose key is stored in full), their count,
 * a byte for the compression and a masked CRC32C. An entry is the length of the prefix shared with the previous key,
 * the length of the rest of the key and the length of the value, as varints, then the rest of the key and the value. */
#ifndef MR_RECORDS_TABLE_H
#define MR_RECORDS_TABLE_H

#include "base/arena.h"
#include <millrace/tensor.h>

/* Maximum key length; a longer key is MR_DATA_LOSS. */
#define MR_TABLE_KEY_MAX 65536
/* Maximum file size; a larger file is an error. */
#define MR_TABLE_SIZE_MAX ((size_t)1 << 30)

typedef struct mr_table_entry {
    mr_string key; /* a terminator follows the bytes */
    mr_string value;
} mr_table_entry;

/* A complete table in memory, sorted by key. {0} is empty. */
typedef struct mr_table {
    mr_arena arena;
    char *file; /* owned; null if the bytes are borrowed from the caller */
    mr_table_entry *entries;
    size_t count;
} mr_table;

/* Reads every entry and verifies all checksums.
 * errors  MR_DATA_LOSS naming file and byte; MR_UNIMPLEMENTED for a compression other than Snappy. The table is then
 *         empty */
mr_status mr_table_read(const char *path, mr_table *table, mr_error *error);
/* Reads a table from bytes, which must outlive it. name is used in errors. */
mr_status mr_table_parse(mr_string bytes, const char *name, mr_table *table, mr_error *error);
void mr_table_deinit(mr_table *table);
/* The entry of a key, or null. */
const mr_table_entry *mr_table_find(const mr_table *table, mr_string key);
/* The order of keys: by unsigned bytes; a prefix sorts before longer keys. */
int mr_table_compare(mr_string a, mr_string b);

/* ---- Write ---- */

/* A growable byte buffer. {0} is empty. */
typedef struct mr_table_bytes {
    char *data; /* owned: free() */
    size_t size_bytes;
    size_t capacity_bytes;
    bool failed; /* memory was exhausted; the contents are invalid */
} mr_table_bytes;

typedef struct mr_table_block {
    mr_table_bytes bytes;
    mr_table_bytes restarts; /* uint32s, little-endian */
    int32_t restart_interval;
    int32_t since_restart;
    mr_table_bytes last_key;
} mr_table_block;

/* Builds a table in memory. {0} is an empty builder. Allocation failures are remembered and reported by finish. */
typedef struct mr_table_builder {
    mr_table_bytes file;
    mr_table_block data;
    mr_table_block index;
    bool index_is_pending; /* the last flushed block's entry is added when the next key is known */
    uint64_t pending_offset, pending_size_bytes;
    bool out_of_order;
} mr_table_builder;

/* Adds an entry. Keys must be added in increasing order, each once. */
void mr_table_add(mr_table_builder *builder, mr_string key, mr_string value);
/* *bytes is borrowed from the builder until deinit. */
mr_status mr_table_finish(mr_table_builder *builder, mr_string *bytes, mr_error *error);
void mr_table_builder_deinit(mr_table_builder *builder);

#endif
