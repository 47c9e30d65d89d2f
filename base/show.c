/* The text form of show.h. */
#include "base/show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

[[gnu::format(printf, 2, 3)]] static void put(FILE *file, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs(text, file);
}

/* The shorter of two precisions that reads back as the same number. */
static void show_float(float value, FILE *file)
{
    char text[32];
    if (value != value) {
        fputs("nan", file);
        return;
    }
    snprintf(text, sizeof text, "%.6g", (double)value);
    if (strtof(text, nullptr) != value) snprintf(text, sizeof text, "%.9g", (double)value);
    fputs(text, file);
}

static void show_double(double value, FILE *file)
{
    char text[40];
    if (value != value) {
        fputs("nan", file);
        return;
    }
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, nullptr) != value) snprintf(text, sizeof text, "%.17g", value);
    fputs(text, file);
}

/* C escapes: octal numbers for bytes that are not printable ASCII. */
static void show_string(mr_string string, FILE *file)
{
    for (size_t i = 0; i < string.size_bytes; i++) {
        unsigned char byte = (unsigned char)string.data[i];
        switch (byte) {
        case '\n':
            fputs("\\n", file);
            break;
        case '\r':
            fputs("\\r", file);
            break;
        case '\t':
            fputs("\\t", file);
            break;
        case '"':
        case '\'':
        case '\\':
            put(file, "\\%c", byte);
            break;
        default:
            if (byte >= 0x20 && byte < 0x7f)
                fputc(byte, file);
            else
                put(file, "\\%03o", byte);
            break;
        }
    }
}

static void show_element(const mr_tensor *tensor, int64_t i, FILE *file)
{
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case MR_FLOAT:
        show_float(((const float *)data)[i], file);
        break;
    case MR_DOUBLE:
        show_double(((const double *)data)[i], file);
        break;
    case MR_HALF:
        show_float(mr_half_to_float(((const uint16_t *)data)[i]), file);
        break;
    case MR_BFLOAT16:
        show_float(mr_bfloat16_to_float(((const uint16_t *)data)[i]), file);
        break;
    case MR_INT8:
    case MR_QINT8:
        put(file, "%d", ((const int8_t *)data)[i]);
        break;
    case MR_UINT8:
    case MR_QUINT8:
        put(file, "%d", ((const uint8_t *)data)[i]);
        break;
    case MR_INT16:
    case MR_QINT16:
        put(file, "%d", ((const int16_t *)data)[i]);
        break;
    case MR_UINT16:
    case MR_QUINT16:
        put(file, "%d", ((const uint16_t *)data)[i]);
        break;
    case MR_INT32:
    case MR_QINT32:
        put(file, "%" PRId32, ((const int32_t *)data)[i]);
        break;
    case MR_UINT32:
        put(file, "%" PRIu32, ((const uint32_t *)data)[i]);
        break;
    case MR_INT64:
        put(file, "%" PRId64, ((const int64_t *)data)[i]);
        break;
    case MR_UINT64:
        put(file, "%" PRIu64, ((const uint64_t *)data)[i]);
        break;
    case MR_BOOL:
        put(file, "%d", ((const bool *)data)[i]);
        break;
    case MR_STRING:
        show_string(((const mr_string *)data)[i], file);
        break;
    default:
        fputc('?', file);
        break;
    }
}

/* Writes one dimension from element *next on; nothing after `limit` elements. */
static void show_dimension(const mr_tensor *tensor, int dimension, int64_t limit, int64_t *next, FILE *file)
{
    int64_t size = tensor->shape.dims[dimension];
    bool is_last = dimension == tensor->shape.rank - 1;
    for (int64_t i = 0; i < size; i++) {
        if (*next >= limit) {
            if (is_last && dimension > 0) fputs("...", file);
            return;
        }
        if (is_last) {
            if (i > 0) fputc(' ', file);
            show_element(tensor, (*next)++, file);
        } else {
            fputc('[', file);
            show_dimension(tensor, dimension + 1, limit, next, file);
            fputc(']', file);
        }
    }
}

void mr_tensor_show(const mr_tensor *tensor, int64_t most, FILE *file)
{
    int64_t count = mr_tensor_count(tensor), next = 0;
    int64_t limit = most < 0 || most > count ? count : most;
    if (tensor->shape.rank == 0 && limit > 0)
        show_element(tensor, 0, file);
    else if (limit > 0)
        show_dimension(tensor, 0, limit, &next, file);
    if (count > limit) fputs("...", file);
}
