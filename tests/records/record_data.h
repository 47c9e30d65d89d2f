/* Record files for the tests: created by the writer, damaged by hand. */
#ifndef MR_TESTS_RECORD_DATA_H
#define MR_TESTS_RECORD_DATA_H

#include "tests/test.h"

#include <millrace/record.h>

/* Record `number` of every test file: a length from 0 to size_max, and bytes that depend on the number. */
static inline size_t record_size(int number, size_t size_max)
{
    return number % 7 == 3 ? 0 : (size_t)number * 2654435761u % (size_max + 1);
}

static inline void record_fill(int number, unsigned char *bytes, size_t size_bytes)
{
    uint32_t state = (uint32_t)number * 747796405u + 1;
    for (size_t i = 0; i < size_bytes; i++) bytes[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
}

static inline void record_write(const char *path, int count, size_t size_max, mr_record_writer_options options)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    unsigned char *bytes = malloc(size_max + 1);
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    for (int i = 0; i < count; i++) {
        size_t size = record_size(i, size_max);
        record_fill(i, bytes, size);
        CHECK_OK(mr_record_writer_append(writer, bytes, size, &error));
    }
    CHECK_EQ(mr_record_writer_count(writer), count);
    CHECK_OK(mr_record_writer_close(writer, &error));
    free(bytes);
}

static inline void record_check(mr_string record, int number, size_t size_max)
{
    CHECK_EQ(record.size_bytes, record_size(number, size_max));
    unsigned char *bytes = malloc(size_max + 1);
    record_fill(number, bytes, record.size_bytes);
    CHECK(record.size_bytes == 0 || memcmp(bytes, record.data, record.size_bytes) == 0);
    free(bytes);
}

/* A complete file, followed by a null byte; owned. */
static inline unsigned char *file_load(const char *path, size_t *size_bytes)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != nullptr);
    fseek(file, 0, SEEK_END);
    *size_bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size_bytes + 1);
    CHECK_EQ(fread(bytes, 1, *size_bytes, file), *size_bytes);
    fclose(file);
    bytes[*size_bytes] = 0;
    return bytes;
}

static inline void file_save(const char *path, const void *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr);
    CHECK_EQ(fwrite(bytes, 1, size_bytes, file), size_bytes);
    CHECK_EQ(fclose(file), 0);
}

/* The offset of record `number` in a plain file. */
static inline size_t record_begin(int number, size_t size_max)
{
    size_t offset = 0;
    for (int i = 0; i < number; i++) offset += 16 + record_size(i, size_max);
    return offset;
}

#endif
