/* Fuzz target: checkpoints. Bit 0 of the first byte selects what the rest is. 0: an index file. 1: a list of keys and
 * values, from which a table with valid checksums is built, so that the code that runs after the checksums match is
 * tested too. The data file has the same bytes. */
#include "records/checkpoint/checkpoint.h"
#include "records/checkpoint/table.h"
#include "records/io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static const char *const names[] = {"c.index", "c.data-00000-of-00001"};
static char path_of_directory[] = "/tmp/checkpoint-fuzz-XXXXXX";

/* Removes the files and the directory at exit. After a crash they remain for inspection. */
static void remove_directory(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", path_of_directory, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(path_of_directory);
}

static const char *directory(void)
{
    static bool made;
    if (made) return path_of_directory;
    if (mkdtemp(path_of_directory) == nullptr) abort();
    made = true;
    (void)atexit(remove_directory);
    return path_of_directory;
}

static void put(const char *name, const void *bytes, size_t size_bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory(), name);
    FILE *file = fopen(path, "wb");
    if (file == nullptr || fwrite(bytes, 1, size_bytes, file) != size_bytes) abort();
    fclose(file);
}

static int compare(const void *a, const void *b)
{
    return mr_table_compare(((const mr_table_entry *)a)->key, ((const mr_table_entry *)b)->key);
}

/* The bytes are a key length, a key, a value length, a value, and so on. */
static void build(const uint8_t *bytes, size_t size_bytes)
{
    mr_table_entry entries[64];
    size_t count = 0, offset = 0;
    mr_table_builder builder = {0};
    mr_string file;
    while (count < 64 && offset < size_bytes) {
        mr_string parts[2];
        for (int i = 0; i < 2; i++) {
            size_t length = offset < size_bytes ? bytes[offset++] : 0;
            if (length > size_bytes - offset) length = size_bytes - offset;
            parts[i] = (mr_string){(const char *)bytes + offset, length};
            offset += length;
        }
        entries[count++] = (mr_table_entry){parts[0], parts[1]};
    }
    qsort(entries, count, sizeof *entries, compare);
    for (size_t i = 0; i < count; i++) mr_table_add(&builder, entries[i].key, entries[i].value);
    if (mr_table_finish(&builder, &file, nullptr) == MR_OK) put("c.index", file.data, file.size_bytes);
    mr_table_builder_deinit(&builder);
}

static void read_all(const char *path)
{
    mr_checkpoint_reader *reader;
    mr_error error = {0};
    if (mr_checkpoint_reader_open(path, &reader, &error) != MR_OK) return;
    for (int32_t i = 0; i < mr_checkpoint_count(reader); i++) {
        mr_tensor value;
        const char *key = mr_checkpoint_key(reader, i, nullptr, nullptr);
        if (mr_checkpoint_read(reader, key, &value, &error) == MR_OK) mr_tensor_deinit(&value);
    }
    mr_checkpoint_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes == 0) return 0;
    char path[256];
    snprintf(path, sizeof path, "%s/c", directory());
    if (bytes[0] & 1)
        build(bytes + 1, size_bytes - 1);
    else
        put("c.index", bytes + 1, size_bytes - 1);
    put("c.data-00000-of-00001", bytes + 1, size_bytes - 1);
    read_all(path);
    return 0;
}
