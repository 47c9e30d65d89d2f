/* Messages for damaged records, and the search for records inside a damaged one. */
#include "records/record/record_damage.h"

#include "records/record/record_format.h"

#include <assert.h>
#include <inttypes.h>

/* Limits the search in a record crafted to contain headers everywhere: at most this many headers are followed, plus one
 * for each 16 bytes. */
static constexpr uint64_t HEADERS_MAX = 1 << 20;

mr_status mr_damage_check_options(const char *path, mr_damage_policy damage, uint64_t damage_max,
                                  const mr_record_quarantine *quarantine, mr_error *error)
{
    if (damage != MR_DAMAGE_STOP && damage != MR_DAMAGE_SKIP)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: unknown damage policy %d", path, (int)damage);
    if (damage != MR_DAMAGE_SKIP && damage_max > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: damage_max has no effect without MR_DAMAGE_SKIP", path);
    if (damage != MR_DAMAGE_SKIP && quarantine != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: quarantine has no effect without MR_DAMAGE_SKIP", path);
    return MR_OK;
}

const char *mr_damage_kind_name(mr_damage_kind kind)
{
    switch (kind) {
    case MR_DAMAGE_NONE:
        return "none";
    case MR_DAMAGE_DATA:
        return "bad data";
    case MR_DAMAGE_HEADER:
        return "bad header";
    case MR_DAMAGE_TRUNCATED:
        return "truncated";
    case MR_DAMAGE_COMPRESSION:
        return "bad compression";
    }
    return "unknown";
}

mr_status mr_damage_report_data(const char *path, uint64_t record, uint64_t offset, uint32_t computed, uint32_t stored,
                                mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: record %" PRIu64 " at byte %" PRIu64 ": data checksum mismatch (computed %08x, stored %08x)",
                   path, record, offset, computed, stored);
}

mr_status mr_damage_report_header(const char *path, uint64_t record, uint64_t offset, const void *header,
                                  mr_error *error)
{
    uint32_t computed = mr_crc32c_mask(mr_crc32c(0, header, 8)), stored = mr_load_le32((const char *)header + 8);
    if (computed == stored)
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: record %" PRIu64 " at byte %" PRIu64 ": the header specifies %" PRIu64
                       " bytes, more than a record may have",
                       path, record, offset, mr_load_le64(header));
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: record %" PRIu64 " at byte %" PRIu64
                   ": length checksum mismatch (computed %08x, stored %08x)%s",
                   path, record, offset, computed, stored, offset == 0 ? "; is this a TFRecord file?" : "");
}

mr_status mr_damage_report_truncated(const char *path, uint64_t record, uint64_t offset, uint64_t length, uint64_t left,
                                     mr_error *error)
{
    if (left < MR_RECORD_HEADER_BYTES)
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: record %" PRIu64 " at byte %" PRIu64 ": truncated: %" PRIu64
                       " of 12 header bytes are present",
                       path, record, offset, left);
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: record %" PRIu64 " at byte %" PRIu64 ": truncated: the header specifies %" PRIu64
                   " bytes and a checksum, %" PRIu64 " bytes are present",
                   path, record, offset, length, left - MR_RECORD_HEADER_BYTES);
}

/* Whether a chain of records leads from `at` exactly to the end; each header followed decrements the credit. */
static bool leads_to_end(const char *bytes, size_t size_bytes, size_t at, uint64_t *credit)
{
    assert(at <= size_bytes);
    constexpr size_t AROUND = MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    while (size_bytes - at >= AROUND && *credit > 0) {
        uint64_t length;
        --*credit;
        if (!mr_record_header_is_valid(bytes + at, &length) || length > size_bytes - at - AROUND) return false;
        at += AROUND + (size_t)length;
    }
    return at == size_bytes;
}

size_t mr_damage_find_hidden(const char *bytes, size_t size_bytes)
{
    uint64_t credit = HEADERS_MAX + size_bytes / 16;
    for (size_t at = 1; at + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES <= size_bytes && credit > 0; at++) {
        if (mr_load_le32(bytes + at + 4) != 0) continue;
        if (!leads_to_end(bytes, size_bytes, at, &credit)) continue;
        const char *data = bytes + at + MR_RECORD_HEADER_BYTES;
        size_t length = (size_t)mr_load_le64(bytes + at);
        assert(length <= size_bytes - at - MR_RECORD_HEADER_BYTES - MR_RECORD_FOOTER_BYTES);
        if (mr_crc32c_mask(mr_crc32c(0, data, length)) == mr_load_le32(data + length)) return at;
    }
    return size_bytes;
}
