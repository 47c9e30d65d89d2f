/* The identity of a record file: its size and samples of its bytes. Unlike the modification time, this does not change
 * when the file is copied, and is the same for two builds of the same data. */
#include "records/record/record_index.h"

#include "records/record/record_format.h"

#include <assert.h>
#include <string.h>

/* Small files are read completely; for others the first, the last and evenly spaced windows are read. */
static constexpr uint64_t WINDOWS = 8;
static constexpr uint64_t WINDOW_BYTES = 512;
/* Number of evenly spaced records, including the first and the last, whose headers are compared with an index. */
static constexpr uint64_t HEADERS = 8;

mr_status mr_index_sample(const mr_index_source *file, uint32_t *checksum, mr_error *error)
{
    static_assert(WINDOWS > 1);
    unsigned char window[WINDOW_BYTES];
    *checksum = 0;
    uint64_t span = file->size_bytes > WINDOW_BYTES ? file->size_bytes - WINDOW_BYTES : 0;
    bool is_small = file->size_bytes <= WINDOWS * WINDOW_BYTES;
    for (uint64_t i = 0; i < WINDOWS; i++) {
        uint64_t offset =
            is_small ? i * WINDOW_BYTES : span / (WINDOWS - 1) * i + span % (WINDOWS - 1) * i / (WINDOWS - 1);
        if (offset >= file->size_bytes) break;
        assert(is_small || offset + WINDOW_BYTES <= file->size_bytes);
        size_t read_bytes = 0;
        MR_TRY(mr_file_read_at(file->descriptor, file->path, offset, window, sizeof window, &read_bytes, error));
        *checksum = mr_crc32c(*checksum, window, read_bytes);
    }
    return MR_OK;
}

mr_status mr_index_agrees(const mr_index_source *file, const mr_record_index *index)
{
    if (index->compression != MR_COMPRESSION_NONE) return MR_OK;
    uint64_t count = index->count < HEADERS ? index->count : HEADERS;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = count == index->count ? i : (index->count - 1) / (HEADERS - 1) * i;
        if (i + 1 == count) number = index->count - 1;
        assert(number < index->count);
        unsigned char header[MR_RECORD_HEADER_BYTES];
        size_t read_bytes = 0;
        uint64_t offset = index->offsets[number], length = 0;
        MR_TRY(mr_file_read_at(file->descriptor, file->path, offset, header, sizeof header, &read_bytes, nullptr));
        if (read_bytes < sizeof header || !mr_record_header_is_valid(header, &length)) return MR_DATA_LOSS;
        if (length + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES != index->offsets[number + 1] - offset)
            return MR_DATA_LOSS;
    }
    return MR_OK;
}
