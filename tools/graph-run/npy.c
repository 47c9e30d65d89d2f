/* NumPy's .npy, format 1.0: "\x93NUMPY", version, a Python dict as text padded to 64 bytes, then the elements. */
#include "tools/graph-run/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *code;
    mr_dtype dtype;
} codes[] = {{"<f4", MR_FLOAT},  {"<f8", MR_DOUBLE}, {"<f2", MR_HALF},   {"|i1", MR_INT8},
             {"|u1", MR_UINT8},  {"<i2", MR_INT16},  {"<u2", MR_UINT16}, {"<i4", MR_INT32},
             {"<u4", MR_UINT32}, {"<i8", MR_INT64},  {"<u8", MR_UINT64}, {"|b1", MR_BOOL}};
constexpr size_t CODE_COUNT = sizeof codes / sizeof codes[0];

static mr_status refuse(const char *path, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s", path, reason);
}

/* Reads "(3, 4)". */
static bool parse_shape(const char *text, mr_shape *shape)
{
    *shape = MR_SCALAR;
    while (*text == ' ') text++;
    if (*text++ != '(') return false;
    for (;;) {
        while (*text == ' ' || *text == ',') text++;
        if (*text == ')') return true;
        char *end;
        long long size = strtoll(text, &end, 10);
        if (end == text || size < 0 || shape->rank == MR_RANK_MAX) return false;
        shape->dims[shape->rank++] = size;
        text = end;
    }
}

static mr_status parse_header(const char *path, const char *header, mr_dtype *dtype, mr_shape *shape, mr_error *error)
{
    const char *descr = strstr(header, "'descr':"), *order = strstr(header, "'fortran_order':");
    const char *dims = strstr(header, "'shape':");
    if (!descr || !order || !dims) return refuse(path, "the header has no descr, fortran_order or shape", error);
    if (strncmp(order + 16, " True", 5) == 0) return refuse(path, "elements in Fortran's order are not read", error);
    descr = strchr(descr + 8, '\'');
    *dtype = MR_DTYPE_INVALID;
    for (size_t i = 0; descr && i < CODE_COUNT; i++)
        if (strncmp(descr + 1, codes[i].code, 3) == 0) *dtype = codes[i].dtype;
    if (*dtype == MR_DTYPE_INVALID) return refuse(path, "elements of this type are not read", error);
    return parse_shape(dims + 8, shape) ? MR_OK : refuse(path, "the shape in the header cannot be read", error);
}

static mr_status read_open(FILE *file, const char *path, mr_tensor *value, mr_error *error)
{
    unsigned char start[10];
    if (fread(start, 1, sizeof start, file) != sizeof start || memcmp(start, "\x93NUMPY\x01", 7) != 0)
        return refuse(path, "this is not a .npy file of format 1.0", error);
    size_t length = (size_t)start[8] | (size_t)start[9] << 8;
    char header[65536];
    if (fread(header, 1, length, file) != length) return refuse(path, "the header is cut short", error);
    header[length] = '\0';
    mr_dtype dtype;
    mr_shape shape;
    MR_TRY(parse_header(path, header, &dtype, &shape, error));
    long begin = ftell(file);
    if (begin < 0 || fseek(file, 0, SEEK_END) != 0) return refuse(path, "the file cannot be measured", error);
    int64_t there = (int64_t)ftell(file) - begin, count = mr_shape_count(shape);
    if (count < 0 || count > there / (int64_t)mr_dtype_size(dtype)) return refuse(path, "the file is cut short", error);
    MR_TRY(mr_tensor_init(value, dtype, shape, error));
    size_t size = mr_tensor_size_bytes(value);
    if (fseek(file, begin, SEEK_SET) == 0 && (size == 0 || fread(value->data, 1, size, file) == size)) return MR_OK;
    mr_tensor_deinit(value);
    return refuse(path, "the file cannot be read", error);
}

mr_status value_read(const char *path, mr_tensor *value, mr_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) return mr_fail(error, MR_NOT_FOUND, "%s: %s", path, strerror(errno));
    mr_status status = read_open(file, path, value, error);
    fclose(file);
    return status;
}

mr_status value_write(const char *path, const mr_tensor *value, mr_error *error)
{
    const char *code = nullptr;
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (codes[i].dtype == value->dtype) code = codes[i].code;
    if (!code)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: elements of dtype %s cannot be written", path,
                       mr_dtype_name(value->dtype));
    char header[512];
    int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", code);
    for (int32_t i = 0; i < value->shape.rank; i++)
        used += snprintf(header + used, sizeof header - (size_t)used, "%" PRId64 ", ", value->shape.dims[i]);
    used += snprintf(header + used, sizeof header - (size_t)used, "), }");
    while ((used + 11) % 64 != 0) header[used++] = ' ';
    header[used++] = '\n';
    FILE *file = fopen(path, "wb");
    if (!file) return mr_fail(error, MR_UNAVAILABLE, "%s: %s", path, strerror(errno));
    const unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)used, (unsigned char)(used >> 8)};
    size_t size = mr_tensor_size_bytes(value);
    bool written = fwrite(start, 1, sizeof start, file) == sizeof start &&
                   fwrite(header, 1, (size_t)used, file) == (size_t)used &&
                   (size == 0 || fwrite(value->data, 1, size, file) == size);
    if (fclose(file) != 0) written = false;
    return written ? MR_OK : mr_fail(error, MR_UNAVAILABLE, "%s: %s", path, strerror(errno));
}
