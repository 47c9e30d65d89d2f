/* Reads and edits the first directory of EXIF and TIFF data: see exif.h. */
#include "kernels/image/exif.h"

#include <string.h>

constexpr size_t entry_bytes = 12;
constexpr uint32_t tag_width = 0x100, tag_height = 0x101, tag_orientation = 0x112;
constexpr uint32_t type_short = 3, type_long = 4;

static uint32_t number(const unsigned char *bytes, size_t size_bytes, bool little)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size_bytes; i++) value = value << 8 | bytes[little ? size_bytes - 1 - i : i];
    return value;
}

/* The entries of a directory that are completely inside the data. */
typedef struct directory {
    size_t offset; /* of the first entry */
    uint32_t count;
    bool little;
} directory;

static bool find_directory(const unsigned char *bytes, size_t size_bytes, directory *directory)
{
    if (size_bytes < 8 + 2 + entry_bytes) return false;
    directory->little = bytes[0] == 'I';
    if (memcmp(bytes, directory->little ? "II*\0" : "MM\0*", 4) != 0) return false;
    size_t offset = number(bytes + 4, 4, directory->little);
    if (offset < 8 || offset > size_bytes - 2) return false;
    directory->offset = offset + 2;
    directory->count = number(bytes + offset, 2, directory->little);
    size_t room = (size_bytes - directory->offset) / entry_bytes;
    if (directory->count > room) directory->count = (uint32_t)room;
    return true;
}

/* Finds the value of an entry with this tag. */
static bool find_number(const unsigned char *bytes, const directory *directory, uint32_t tag, uint32_t *value)
{
    for (uint32_t i = 0; i < directory->count; i++) {
        const unsigned char *entry = bytes + directory->offset + i * entry_bytes;
        if (number(entry, 2, directory->little) != tag) continue;
        uint32_t type = number(entry + 2, 2, directory->little);
        if (type != type_short && type != type_long) continue;
        *value = number(entry + 8, type == type_short ? 2 : 4, directory->little);
        return true;
    }
    return false;
}

int32_t mr_exif_orientation(const unsigned char *bytes, size_t size_bytes)
{
    directory directory;
    uint32_t value;
    if (!find_directory(bytes, size_bytes, &directory) || !find_number(bytes, &directory, tag_orientation, &value))
        return 0;
    return value >= 1 && value <= 8 ? (int32_t)value : 0;
}

void mr_exif_remove_orientation(unsigned char *bytes, size_t size_bytes)
{
    directory directory;
    if (!find_directory(bytes, size_bytes, &directory)) return;
    unsigned char *count = bytes + directory.offset - 2, *entry = bytes + directory.offset;
    for (uint32_t left = directory.count; left > 0; left--) {
        if (number(entry, 2, directory.little) != tag_orientation) {
            entry += entry_bytes;
            continue;
        }
        /* The later entries, and the offset of the next directory if it is present. */
        size_t behind = (left - 1) * entry_bytes, after = size_bytes - (size_t)(entry - bytes) - entry_bytes - behind;
        size_t moved = behind + (after < 4 ? 0 : 4);
        memmove(entry, entry + entry_bytes, moved);
        memset(entry + moved, 0, entry_bytes);
        uint32_t fewer = number(count, 2, directory.little) - 1;
        count[directory.little ? 0 : 1] = (unsigned char)fewer;
        count[directory.little ? 1 : 0] = (unsigned char)(fewer >> 8);
    }
}

bool mr_tiff_size(const unsigned char *bytes, size_t size_bytes, int32_t *width, int32_t *height)
{
    directory directory;
    uint32_t w, h;
    if (!find_directory(bytes, size_bytes, &directory) || !find_number(bytes, &directory, tag_width, &w) ||
        !find_number(bytes, &directory, tag_height, &h) || w - 1 >= INT32_MAX || h - 1 >= INT32_MAX)
        return false;
    *width = (int32_t)w;
    *height = (int32_t)h;
    return true;
}
