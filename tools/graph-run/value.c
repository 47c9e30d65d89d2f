/* Text to tensors and back. The parser goes over the text twice: once for the shape, once for the elements. */
#include "tools/graph-run/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *at;
    mr_dtype dtype;
    mr_shape shape;
    int64_t found[MR_RANK_MAX]; /* elements of the list that is open at each depth */
    bool known[MR_RANK_MAX];    /* the size at that depth is known */
    int32_t rank;               /* -1 before the first element */
    int64_t count;
    void *elements;     /* null: count only */
    mr_string *strings; /* point into bytes */
    char *bytes;
    size_t used_bytes;
} parser;

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at)) p->at++;
}

static void put_number(parser *p, double number, int64_t whole)
{
    int64_t i = p->count;
    switch (p->dtype) {
    case MR_FLOAT:
        ((float *)p->elements)[i] = (float)number;
        break;
    case MR_DOUBLE:
        ((double *)p->elements)[i] = number;
        break;
    case MR_HALF:
        ((uint16_t *)p->elements)[i] = mr_float_to_half((float)number);
        break;
    case MR_BFLOAT16:
        ((uint16_t *)p->elements)[i] = mr_float_to_bfloat16((float)number);
        break;
    case MR_INT8:
    case MR_UINT8:
        ((uint8_t *)p->elements)[i] = (uint8_t)whole;
        break;
    case MR_INT16:
    case MR_UINT16:
        ((uint16_t *)p->elements)[i] = (uint16_t)whole;
        break;
    case MR_INT32:
    case MR_UINT32:
        ((uint32_t *)p->elements)[i] = (uint32_t)whole;
        break;
    case MR_INT64:
    case MR_UINT64:
        ((uint64_t *)p->elements)[i] = (uint64_t)whole;
        break;
    case MR_BOOL:
        ((bool *)p->elements)[i] = whole != 0;
        break;
    default:
        break;
    }
}

static mr_status parse_text(parser *p, mr_error *error)
{
    const char *begin = ++p->at;
    size_t length = 0;
    for (; *p->at && *p->at != '"'; p->at++, length++) {
        if (*p->at == '\\' && p->at[1]) p->at++;
        if (p->strings) p->bytes[p->used_bytes + length] = *p->at;
    }
    if (*p->at != '"') return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s has no closing quote", begin);
    p->at++;
    if (p->strings) p->strings[p->count] = (mr_string){p->bytes + p->used_bytes, length};
    p->used_bytes += length;
    return MR_OK;
}

static mr_status parse_number(parser *p, mr_error *error)
{
    char *end = nullptr, *whole_end = nullptr;
    double number;
    int64_t whole;
    if (p->dtype == MR_BOOL && (strncmp(p->at, "true", 4) == 0 || strncmp(p->at, "false", 5) == 0)) {
        whole = *p->at == 't';
        number = (double)whole;
        end = (char *)p->at + (whole ? 4 : 5);
    } else {
        number = strtod(p->at, &end);
        whole = strtoll(p->at, &whole_end, 10);
        bool is_whole = p->dtype != MR_FLOAT && p->dtype != MR_DOUBLE && p->dtype != MR_HALF && p->dtype != MR_BFLOAT16;
        if (is_whole && end != whole_end)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%.20s is not a whole number", p->at);
    }
    if (end == p->at) return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.20s\" is not a number", p->at);
    if (p->elements) put_number(p, number, whole);
    p->at = end;
    return MR_OK;
}

static mr_status parse_any(parser *p, int32_t depth, mr_error *error)
{
    skip_space(p);
    if (*p->at != '[') {
        if (p->rank >= 0 && p->rank != depth)
            return mr_fail(error, MR_INVALID_ARGUMENT, "the lists are not equally deep");
        p->rank = depth;
        MR_TRY(p->dtype == MR_STRING && *p->at == '"' ? parse_text(p, error) : parse_number(p, error));
        p->count++;
        return MR_OK;
    }
    if (depth == MR_RANK_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "lists deeper than %d", MR_RANK_MAX);
    p->at++;
    int64_t elements = 0;
    for (skip_space(p); *p->at != ']'; skip_space(p)) {
        MR_TRY(parse_any(p, depth + 1, error));
        elements++;
        skip_space(p);
        if (*p->at == ',')
            p->at++;
        else if (*p->at != ']')
            return mr_fail(error, MR_INVALID_ARGUMENT, "a , or ] is missing at \"%.20s\"", p->at);
    }
    p->at++;
    if (p->known[depth] && p->shape.dims[depth] != elements)
        return mr_fail(error, MR_INVALID_ARGUMENT, "lists beside each other have %" PRId64 " and %" PRId64 " elements",
                       p->shape.dims[depth], elements);
    p->known[depth] = true;
    p->shape.dims[depth] = elements;
    if (depth + 1 > p->shape.rank) p->shape.rank = depth + 1;
    return MR_OK;
}

mr_status value_parse(const char *text, mr_dtype dtype, mr_tensor *value, mr_error *error)
{
    if (text[0] == '@') {
        MR_TRY(mr_npy_load(text + 1, value, error));
        if (value->dtype == dtype) return MR_OK;
        mr_status status = mr_fail(error, MR_INVALID_ARGUMENT, "%s holds %s, asked for is %s", text + 1,
                                   mr_dtype_name(value->dtype), mr_dtype_name(dtype));
        mr_tensor_deinit(value);
        return status;
    }
    if (dtype == MR_STRING && text[0] != '"' && text[0] != '[')
        return mr_tensor_init_string(value, mr_string_from(text), error);
    parser measure = {.at = text, .dtype = dtype, .rank = -1};
    MR_TRY(parse_any(&measure, 0, error));
    skip_space(&measure);
    if (*measure.at) return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.20s\" is too much", measure.at);
    parser fill = {.at = text, .dtype = dtype, .rank = -1};
    if (dtype != MR_STRING) {
        MR_TRY(mr_tensor_init(value, dtype, measure.shape, error));
        fill.elements = value->data;
        return parse_any(&fill, 0, error);
    }
    fill.strings = calloc((size_t)measure.count + 1, sizeof *fill.strings);
    fill.bytes = malloc(measure.used_bytes + 1);
    mr_status status =
        fill.strings && fill.bytes ? parse_any(&fill, 0, error) : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    if (status == MR_OK) status = mr_tensor_init_strings(value, measure.shape, fill.strings, error);
    free(fill.strings);
    free(fill.bytes);
    return status;
}

/* ---- Printing ---- */

static void print_element(FILE *file, const mr_tensor *value, int64_t i)
{
    const void *data = value->data;
    switch (value->dtype) {
    case MR_FLOAT:
        fprintf(file, "%.9g", (double)((const float *)data)[i]);
        break;
    case MR_DOUBLE:
        fprintf(file, "%.17g", ((const double *)data)[i]);
        break;
    case MR_HALF:
        fprintf(file, "%.5g", (double)mr_half_to_float(((const uint16_t *)data)[i]));
        break;
    case MR_BFLOAT16:
        fprintf(file, "%.4g", (double)mr_bfloat16_to_float(((const uint16_t *)data)[i]));
        break;
    case MR_INT8:
        fprintf(file, "%d", ((const int8_t *)data)[i]);
        break;
    case MR_UINT8:
        fprintf(file, "%u", ((const uint8_t *)data)[i]);
        break;
    case MR_INT16:
        fprintf(file, "%d", ((const int16_t *)data)[i]);
        break;
    case MR_UINT16:
        fprintf(file, "%u", ((const uint16_t *)data)[i]);
        break;
    case MR_INT32:
        fprintf(file, "%" PRId32, ((const int32_t *)data)[i]);
        break;
    case MR_UINT32:
        fprintf(file, "%" PRIu32, ((const uint32_t *)data)[i]);
        break;
    case MR_INT64:
        fprintf(file, "%" PRId64, ((const int64_t *)data)[i]);
        break;
    case MR_UINT64:
        fprintf(file, "%" PRIu64, ((const uint64_t *)data)[i]);
        break;
    case MR_BOOL:
        fputs(((const bool *)data)[i] ? "true" : "false", file);
        break;
    case MR_STRING: {
        mr_string s = mr_tensor_strings(value)[i];
        fputc('"', file);
        for (size_t j = 0; j < s.size_bytes && j < 200; j++) {
            unsigned char c = (unsigned char)s.data[j];
            if (c == '"' || c == '\\')
                fprintf(file, "\\%c", c);
            else if (c < 0x20 || c == 0x7f)
                fprintf(file, "\\x%02x", c);
            else
                fputc(c, file);
        }
        fputs(s.size_bytes > 200 ? "…\"" : "\"", file);
        break;
    }
    default:
        fputc('?', file);
        break;
    }
}

static void print_list(FILE *file, const mr_tensor *value, int32_t depth, int64_t at, int64_t most)
{
    if (depth == value->shape.rank) {
        print_element(file, value, at);
        return;
    }
    int64_t count = value->shape.dims[depth], step = 1;
    for (int32_t i = depth + 1; i < value->shape.rank; i++) step *= value->shape.dims[i];
    bool is_innermost = depth + 1 == value->shape.rank;
    fputc('[', file);
    for (int64_t i = 0; i < count; i++) {
        if (count > most && i == most / 2) {
            fputs(is_innermost ? ", …" : ",\n…", file);
            i = count - most / 2;
        }
        if (i > 0) fputs(is_innermost ? ", " : ",\n", file);
        if (i > 0 && !is_innermost) fprintf(file, "%*s", (int)depth + 1, "");
        print_list(file, value, depth + 1, at + i * step, most);
    }
    fputc(']', file);
}

void value_print(FILE *file, const mr_tensor *value, int64_t elements_max)
{
    print_list(file, value, 0, 0, elements_max);
    fputc('\n', file);
}
