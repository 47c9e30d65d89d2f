/* Tables: every added entry is found; damage is detected or does not affect the entries. */
#include "records/checkpoint/table.h"
#include "tests/test.h"

#include <millrace/record.h>

/* A table of count keys "key-000000" …, whose values are their numbers. */
static mr_string build(mr_table_builder *builder, int count)
{
    mr_error error = {0};
    mr_string bytes;
    for (int i = 0; i < count; i++) {
        char key[32], value[32];
        snprintf(key, sizeof key, "key-%06d", i);
        snprintf(value, sizeof value, "value %d", i);
        mr_table_add(builder, mr_string_from(key), mr_string_from(value));
    }
    CHECK_OK(mr_table_finish(builder, &bytes, &error));
    return bytes;
}

TEST(table_finds_every_key_over_many_blocks)
{
    mr_error error = {0};
    mr_table_builder builder = {0};
    mr_table table;
    mr_string bytes = build(&builder, 60000);
    CHECK(bytes.size_bytes > 2 * 262144); /* the size at which a block ends */
    CHECK_OK(mr_table_parse(bytes, "memory", &table, &error));
    CHECK_EQ(table.count, 60000);
    for (int i = 0; i < 60000; i += 7) {
        char key[32], value[32];
        snprintf(key, sizeof key, "key-%06d", i);
        snprintf(value, sizeof value, "value %d", i);
        const mr_table_entry *entry = mr_table_find(&table, mr_string_from(key));
        CHECK(entry != nullptr && mr_string_equal(entry->value, mr_string_from(value)));
    }
    CHECK(mr_table_find(&table, MR_STR("key-0000001")) == nullptr);
    CHECK(mr_table_find(&table, MR_STR("")) == nullptr);
    mr_table_deinit(&table);
    mr_table_builder_deinit(&builder);
}

TEST(table_empty)
{
    mr_error error = {0};
    mr_table_builder builder = {0};
    mr_table table;
    CHECK_OK(mr_table_parse(build(&builder, 0), "memory", &table, &error));
    CHECK_EQ(table.count, 0);
    mr_table_deinit(&table);
    mr_table_builder_deinit(&builder);
}

TEST(table_refuses_keys_out_of_order)
{
    mr_error error = {0};
    mr_table_builder builder = {0};
    mr_string bytes;
    mr_table_add(&builder, MR_STR("b"), MR_STR(""));
    mr_table_add(&builder, MR_STR("a"), MR_STR(""));
    CHECK_STATUS(mr_table_finish(&builder, &bytes, &error), MR_INTERNAL);
    mr_table_builder_deinit(&builder);
}

TEST(table_notices_every_flipped_byte_and_cut)
{
    mr_error error = {0};
    mr_table_builder builder = {0};
    mr_table table;
    mr_string bytes = build(&builder, 40);
    char *copy = malloc(bytes.size_bytes);
    CHECK(copy != nullptr);
    memcpy(copy, bytes.data, bytes.size_bytes);
    /* The meta index (13 bytes before the index block) and the zeros of the footer contain nothing that is read. */
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        copy[i] ^= 0x10;
        mr_status status = mr_table_parse((mr_string){copy, bytes.size_bytes}, "memory", &table, &error);
        copy[i] ^= 0x10;
        if (status == MR_OK) {
            CHECK_EQ(table.count, 40);
            CHECK(mr_string_equal(table.entries[39].value, MR_STR("value 39")));
            mr_table_deinit(&table);
        } else {
            CHECK_CONTAINS(error.message, "memory: ");
        }
    }
    for (size_t i = 0; i < bytes.size_bytes; i++)
        CHECK(mr_table_parse((mr_string){copy, i}, "memory", &table, &error) != MR_OK);
    free(copy);
    mr_table_builder_deinit(&builder);
}

TEST(table_reports_bad_snappy)
{
    mr_error error = {0};
    mr_table_builder builder = {0};
    mr_table table;
    mr_string bytes = build(&builder, 1);
    char *copy = malloc(bytes.size_bytes);
    CHECK(copy != nullptr);
    memcpy(copy, bytes.data, bytes.size_bytes);
    /* One entry: 3 + 10 + 7 bytes, one restart and the count: 28 bytes, then the compression. */
    size_t size_bytes = 28;
    copy[size_bytes] = 1;
    uint32_t checksum = mr_crc32c_mask(mr_crc32c(0, copy, size_bytes + 1));
    memcpy(copy + size_bytes + 1, &checksum, 4);
    CHECK_STATUS(mr_table_parse((mr_string){copy, bytes.size_bytes}, "memory", &table, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "memory");
    free(copy);
    mr_table_builder_deinit(&builder);
}
