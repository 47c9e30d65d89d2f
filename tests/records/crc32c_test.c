/* CRC32C: known values, all variants compared with the plain one, and the folding constants computed by long
 * division. */
#include "records/io/crc32c.h"

#include "tests/test.h"

#include <millrace/record.h>

TEST(crc32c_equals_known_values)
{
    unsigned char bytes[32] = {0};
    CHECK_EQ(mr_crc32c(0, "123456789", 9), 0xe3069283);
    /* RFC 3720, B.4: 32 bytes of zeros, of ones, and ascending. */
    CHECK_EQ(mr_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    CHECK_EQ(mr_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    CHECK_EQ(mr_crc32c(0, bytes, 32), 0x46dd794e);
    CHECK_EQ(mr_crc32c(0, nullptr, 0), 0);
}

TEST(crc32c_unmask_inverts_mask)
{
    for (uint32_t i = 0, crc = 1; i < 1000; i++, crc = crc * 1664525 + 1013904223)
        CHECK_EQ(mr_crc32c_unmask(mr_crc32c_mask(crc)), crc);
    CHECK_EQ(mr_crc32c_mask(0), 0xa282ead8);
}

TEST(crc32c_variants_agree_at_every_length_and_offset)
{
    static unsigned char bytes[20'000];
    uint32_t state = (uint32_t)test_seed();
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
    for (size_t size = 0; size < sizeof bytes - 8; size += size < 1200 ? 1 : 997) {
        for (size_t offset = 0; offset < 8; offset += 3) {
            uint32_t begin = (uint32_t)(size * 2654435761u);
            uint32_t plain = mr_crc32c_variants[0].run(begin, bytes + offset, size);
            for (int i = 1; i < mr_crc32c_variant_count; i++) {
                if (!mr_crc32c_variants[i].is_supported()) continue;
                CHECK_EQ(mr_crc32c_variants[i].run(begin, bytes + offset, size), plain);
            }
        }
    }
}

TEST(crc32c_continues_where_it_stopped)
{
    unsigned char bytes[700];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7);
    uint32_t whole = mr_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        CHECK_EQ(mr_crc32c(mr_crc32c(0, bytes, cut), bytes + cut, sizeof bytes - cut), whole);
}
