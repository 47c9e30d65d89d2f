#include "graph-run/npz.h"

#include "common/file.h"

#include <inttypes.h>
#include <string.h>

static uint32_t crc32_of(const char *bytes, size_t size)
{
    static uint32_t table[256];
    uint32_t crc = ~0u;
    for (uint32_t i = 0; i < 256 && table[255] == 0; i++) {
        uint32_t word = i;
        for (int bit = 0; bit < 8; bit++) word = word & 1 ? 0xedb88320u ^ word >> 1 : word >> 1;
        table[i] = word;
    }
    for (size_t i = 0; i < size; i++) crc = table[(crc ^ (uint8_t)bytes[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static void put(out *o, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) out_char(o, (char)(value >> (8 * i)));
}

/* The descriptor of a dtype: "<f4". False if NumPy has none. */
static bool descriptor(const mr_tensor *value, size_t string_bytes, char text[32])
{
    static const struct {
        mr_dtype dtype;
        const char *text;
    } known[] = {{MR_FLOAT, "<f4"},     {MR_DOUBLE, "<f8"},     {MR_HALF, "<f2"},   {MR_INT8, "|i1"},
                 {MR_INT16, "<i2"},     {MR_INT32, "<i4"},      {MR_INT64, "<i8"},  {MR_UINT8, "|u1"},
                 {MR_UINT16, "<u2"},    {MR_UINT32, "<u4"},     {MR_UINT64, "<u8"}, {MR_BOOL, "|b1"},
                 {MR_COMPLEX64, "<c8"}, {MR_COMPLEX128, "<c16"}};
    if (value->dtype == MR_STRING) {
        snprintf(text, 32, "|S%zu", string_bytes);
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].dtype == value->dtype) {
            snprintf(text, 32, "%s", known[i].text);
            return true;
        }
    return false;
}

/* The contents of the .npy file. */
static mr_status put_array(out *o, const mr_tensor *value, mr_error *error)
{
    char type[32], header[512];
    int64_t count = mr_tensor_count(value);
    size_t longest = 1;
    for (int64_t i = 0; value->dtype == MR_STRING && i < count; i++)
        if (mr_tensor_strings(value)[i].size_bytes > longest) longest = mr_tensor_strings(value)[i].size_bytes;
    if (!descriptor(value, longest, type))
        return mr_fail(error, MR_UNIMPLEMENTED, "NumPy has no dtype %s", mr_dtype_name(value->dtype));
    int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int32_t i = 0; i < value->shape.rank; i++)
        used += snprintf(header + used, sizeof header - (size_t)used, "%" PRId64 ",", value->shape.dims[i]);
    used += snprintf(header + used, sizeof header - (size_t)used, "), }");
    while ((10 + used + 1) % 64 != 0) header[used++] = ' ';
    header[used++] = '\n';
    out_bytes(o, "\x93NUMPY\x01\0", 8);
    put(o, (uint64_t)used, 2);
    out_bytes(o, header, (size_t)used);
    if (value->dtype != MR_STRING) {
        out_bytes(o, value->data, (size_t)count * mr_dtype_size(value->dtype));
        return MR_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        mr_string text = mr_tensor_strings(value)[i];
        char *room = out_room(o, longest);
        if (!room) break;
        memset(room, 0, longest);
        if (text.size_bytes > 0) memcpy(room, text.data, text.size_bytes);
        o->size += longest;
    }
    return MR_OK;
}

/* The fields that a local header and an entry of the directory share. */
static void put_fields(out *o, uint32_t crc, size_t size, size_t name_size)
{
    put(o, 20, 2);    /* version */
    put(o, 0x800, 2); /* names are UTF-8 */
    put(o, 0, 2);     /* stored */
    put(o, 0, 2);     /* time */
    put(o, 0x21, 2);  /* 1980-01-01: files are the same for the same results */
    put(o, crc, 4);
    put(o, size, 4);
    put(o, size, 4);
    put(o, name_size, 2);
    put(o, 0, 2); /* no extra field */
}

mr_status npz_add(npz *archive, const char *name, const mr_tensor *value, mr_error *error)
{
    out array = {0};
    size_t name_size = strlen(name) + 4, offset = archive->file.size, entry = archive->directory.size;
    mr_status status = put_array(&array, value, error);
    if (status == MR_OK && (array.size > NPZ_BYTES_MAX || offset + entry > NPZ_BYTES_MAX - array.size))
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "a .npz has at most 4 GiB");
    if (status == MR_OK && archive->count == NPZ_ARRAYS_MAX)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "a .npz has at most 65,534 arrays");
    if (status == MR_OK && name_size > UINT16_MAX) status = mr_fail(error, MR_INVALID_ARGUMENT, "the name is too long");
    if (status == MR_OK) {
        uint32_t crc = crc32_of(array.bytes ? array.bytes : "", array.size);
        out_bytes(&archive->file, "PK\3\4", 4);
        put_fields(&archive->file, crc, array.size, name_size);
        out_text(&archive->file, name);
        out_text(&archive->file, ".npy");
        out_bytes(&archive->file, array.bytes, array.size);
        out_bytes(&archive->directory, "PK\1\2", 4);
        put(&archive->directory, 20, 2);
        put_fields(&archive->directory, crc, array.size, name_size);
        put(&archive->directory, 0, 2 + 2 + 2); /* comment, disk, internal attributes */
        put(&archive->directory, 0, 4);
        put(&archive->directory, offset, 4);
        out_text(&archive->directory, name);
        out_text(&archive->directory, ".npy");
    }
    if (array.has_failed || archive->file.has_failed || archive->directory.has_failed) {
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        archive->file.size = offset;
        archive->directory.size = entry;
        archive->file.has_failed = archive->directory.has_failed = false;
    }
    out_deinit(&array);
    if (status == MR_OK) archive->count++;
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "--out: %s", name);
}

mr_status npz_write(npz *archive, const char *path, mr_error *error)
{
    size_t offset = archive->file.size, size = archive->directory.size;
    out_bytes(&archive->file, archive->directory.bytes, size);
    out_bytes(&archive->file, "PK\5\6", 4);
    put(&archive->file, 0, 4);
    put(&archive->file, archive->count, 2);
    put(&archive->file, archive->count, 2);
    put(&archive->file, size, 4);
    put(&archive->file, offset, 4);
    put(&archive->file, 0, 2);
    if (archive->file.has_failed) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "--out: no memory");
    return file_write_all(path, archive->file.bytes, archive->file.size, error);
}

void npz_deinit(npz *archive)
{
    out_deinit(&archive->file);
    out_deinit(&archive->directory);
}
