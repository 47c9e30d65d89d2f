/* Lookup tables. See table.c. */
#ifndef MR_GRAPH_STATE_TABLE_H
#define MR_GRAPH_STATE_TABLE_H

#include "graph/state/state.h"

typedef enum mr_table_kind {
    MR_TABLE_HASH,    /* HashTable: filled once */
    MR_TABLE_MUTABLE, /* MutableHashTable */
    MR_TABLE_TENSORS, /* MutableHashTableOfTensors */
    MR_TABLE_DENSE,   /* MutableDenseHashTable */
} mr_table_kind;

typedef struct mr_table_state {
    mr_resource resource;
    pthread_mutex_t mutex; /* guards everything below `is_initialized` */
    mr_table_kind kind;
    mr_dtype key_dtype, value_dtype;
    mr_shape key_shape, value_shape;  /* of one key and one value */
    int64_t key_size, value_size;     /* their numbers of elements */
    mr_tensor empty_key, deleted_key; /* of a dense table; the latter may be missing */
    bool is_initialized;              /* of a HashTable */
    int64_t entry_count, live_count, capacity;
    char *keys, *values; /* of `capacity` entries */
    uint64_t *hashes;
    bool *removed;
    int64_t *slots;    /* entry + 1; 0: none */
    size_t slot_count; /* a power of two, or 0 */
} mr_table_state;

extern const mr_resource_class mr_table_class;

/* The tensors' dtypes and shapes are those of the table: the caller has checked them.
 * clears  remove all entries first, and skip keys that a dense table may not have
 * errors  MR_FAILED_PRECONDITION for a key of a HashTable with another value */
mr_status mr_table_insert(mr_table_state *table, const mr_tensor *keys, const mr_tensor *values, bool clears,
                          mr_error *error);
/* Inserts into a HashTable that is not initialized. If it is, only the number of keys is compared.
 * errors  also MR_FAILED_PRECONDITION: it was initialized with another number of keys */
mr_status mr_table_initialize(mr_table_state *table, const mr_tensor *keys, const mr_tensor *values, mr_error *error);
bool mr_table_is_ready(mr_table_state *table); /* false for a HashTable that is not initialized */
mr_status mr_table_remove(mr_table_state *table, const mr_tensor *keys, mr_error *error);
/* Writes the value of each key to target; strings are copied to the arena.
 * has_default_for_each  defaults has a value for each key, not one for all */
mr_status mr_table_find_values(mr_table_state *table, const mr_tensor *keys, const mr_tensor *defaults,
                               bool has_default_for_each, char *target, mr_arena *arena, mr_error *error);
/* Writes all keys to output 0 and all values to output 1. Dimension 0 of the shapes is set to their number. */
mr_status mr_table_export(mr_table_state *table, mr_kernel_call *call, mr_shape key_shape, mr_shape value_shape,
                          mr_error *error);
int64_t mr_table_count(mr_table_state *table);

/* Fills a HashTable from a text file, as InitializeTableFromTextFile does (table_file.c). */
typedef struct mr_table_file {
    const char *path;
    int64_t key_index, value_index, vocab_size, offset;
    char delimiter;
} mr_table_file;
mr_status mr_table_read_file(mr_table_state *table, const mr_table_file *file, mr_error *error);

#endif
