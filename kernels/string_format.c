/* Numbers and tensors as text: AsString, StringFormat; and StringToNumber. */
#include "kernels/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- AsString ---- */

typedef struct as_string {
    char format[96]; /* of one number; of a complex one twice, in parentheses */
} as_string;

static mr_status check_settings(const mr_kernel_node *node, mr_dtype dtype, bool scientific, bool shortest,
                                int64_t precision, mr_error *error)
{
    bool is_real = dtype == MR_HALF || dtype == MR_BFLOAT16 || dtype == MR_FLOAT || dtype == MR_DOUBLE ||
                   dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128;
    if (!is_real && dtype != MR_STRING && (scientific || shortest))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "scientific and shortest format not supported for datatype %s", mr_dtype_name(dtype));
    if (!is_real && dtype != MR_STRING && precision >= 0)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "precision not supported for datatype %s",
                              mr_dtype_name(dtype));
    if (scientific && shortest)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Cannot select both scientific and shortest notation");
    return MR_OK;
}

static mr_status prepare_as_string(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    as_string *p = prepared;
    mr_dtype dtype = node->input_dtypes[0];
    bool scientific = mr_attr_bool_or(node->attrs, "scientific", false);
    bool shortest = mr_attr_bool_or(node->attrs, "shortest", false);
    int64_t width = mr_attr_int_or(node->attrs, "width", -1), precision = mr_attr_int_or(node->attrs, "precision", -1);
    mr_string fill = mr_attr_string_or(node->attrs, "fill", "");
    MR_TRY(check_settings(node, dtype, scientific, shortest, precision, error));
    if (fill.size_bytes > 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Fill string must be one or fewer characters");
    if (fill.size_bytes == 1 && !memchr(" +-0#", fill.data[0], 5))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Fill argument not supported: \"%c\"", fill.data[0]);
    if (width > MR_TEXT_WIDTH_MAX || precision > MR_TEXT_WIDTH_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "width or precision is more than %d",
                              MR_TEXT_WIDTH_MAX);
    char one[40], width_text[16] = "", precision_text[16] = "",
                  letter[2] = {shortest     ? 'g'
                               : scientific ? 'e'
                                            : 'f',
                               0};
    if (width > -1) snprintf(width_text, sizeof width_text, "%d", (int)width);
    if (precision > -1) snprintf(precision_text, sizeof precision_text, ".%d", (int)precision);
    bool is_signed = dtype == MR_INT8 || dtype == MR_INT16 || dtype == MR_INT32 || dtype == MR_INT64;
    bool is_unsigned = dtype == MR_UINT8 || dtype == MR_UINT16 || dtype == MR_UINT32 || dtype == MR_UINT64;
    snprintf(one, sizeof one, "%%%.*s%s%s%s", (int)fill.size_bytes, fill.size_bytes ? fill.data : "", width_text,
             precision_text,
             is_signed            ? PRId64
             : is_unsigned        ? PRIu64
             : dtype == MR_STRING ? "s"
                                  : letter);
    if (dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128)
        snprintf(p->format, sizeof p->format, "(%s,%s)", one, one);
    else
        snprintf(p->format, sizeof p->format, "%s", one);
    return MR_OK;
}

/* The format was composed by prepare from checked parts. */
static mr_status print_to(mr_text_output *output, int64_t index, mr_error *error, const char *format, ...)
{
    char small[512];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    char *copy = size < 0 ? nullptr : mr_arena_alloc(&output->arena, (size_t)size + 1);
    if (copy != nullptr && (size_t)size < sizeof small)
        memcpy(copy, small, (size_t)size);
    else if (copy != nullptr)
        vsnprintf(copy, (size_t)size + 1, format, again);
    va_end(again);
    if (copy == nullptr) return mr_fail_memory(error, size < 0 ? 0 : (size_t)size + 1);
    output->items[index] = (mr_string){copy, (size_t)size};
    return MR_OK;
}

static mr_status print_element(mr_text_output *output, const char *format, const mr_tensor *x, int64_t i,
                               mr_error *error)
{
    switch (x->dtype) {
    case MR_FLOAT:
        return print_to(output, i, error, format, (double)((const float *)x->data)[i]);
    case MR_DOUBLE:
        return print_to(output, i, error, format, ((const double *)x->data)[i]);
    case MR_HALF:
        return print_to(output, i, error, format, (double)mr_half_to_float(((const uint16_t *)x->data)[i]));
    case MR_BFLOAT16:
        return print_to(output, i, error, format, (double)mr_bfloat16_to_float(((const uint16_t *)x->data)[i]));
    case MR_COMPLEX64:
        return print_to(output, i, error, format, (double)((const float *)x->data)[2 * i],
                        (double)((const float *)x->data)[2 * i + 1]);
    case MR_COMPLEX128:
        return print_to(output, i, error, format, ((const double *)x->data)[2 * i],
                        ((const double *)x->data)[2 * i + 1]);
    case MR_INT8:
        return print_to(output, i, error, format, (int64_t)((const int8_t *)x->data)[i]);
    case MR_INT16:
        return print_to(output, i, error, format, (int64_t)((const int16_t *)x->data)[i]);
    case MR_INT32:
        return print_to(output, i, error, format, (int64_t)((const int32_t *)x->data)[i]);
    case MR_INT64:
        return print_to(output, i, error, format, ((const int64_t *)x->data)[i]);
    case MR_UINT8:
        return print_to(output, i, error, format, (uint64_t)((const uint8_t *)x->data)[i]);
    case MR_UINT16:
        return print_to(output, i, error, format, (uint64_t)((const uint16_t *)x->data)[i]);
    case MR_UINT32:
        return print_to(output, i, error, format, (uint64_t)((const uint32_t *)x->data)[i]);
    case MR_UINT64:
        return print_to(output, i, error, format, ((const uint64_t *)x->data)[i]);
    case MR_BOOL:
        output->items[i] = ((const bool *)x->data)[i] ? MR_STR("true") : MR_STR("false");
        return MR_OK;
    default: {
        /* As in TensorFlow, up to the first zero byte. */
        mr_string value = mr_tensor_strings(x)[i];
        char *text = mr_arena_strndup(&output->arena, value.data, value.size_bytes);
        if (text == nullptr) return mr_fail_memory(error, value.size_bytes);
        return print_to(output, i, error, format, text);
    }
    }
}

static mr_status run_as_string(mr_kernel_call *call, mr_error *error)
{
    const as_string *p = call->prepared;
    const mr_tensor *x = &call->inputs[0];
    mr_text_output output;
    MR_TRY(mr_text_begin(call, 0, x->shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++)
        status = print_element(&output, p->format, x, i, error);
    return mr_text_end(call, &output, status, error);
}

/* ---- StringFormat ---- */

/* Escapes as in C, except bytes of UTF-8. */
static void add_escaped(mr_text_builder *text, mr_string value)
{
    mr_text_add(text, "\"", 1);
    for (size_t i = 0; i < value.size_bytes; i++) {
        unsigned char c = (unsigned char)value.data[i];
        char escaped[5];
        if (c == '\n' || c == '\r' || c == '\t' || c == '"' || c == '\'' || c == '\\') {
            escaped[0] = '\\';
            escaped[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (char)c;
            mr_text_add(text, escaped, 2);
        } else if ((c >= 0x20 && c < 0x7f) || c >= 0x80) {
            mr_text_add(text, &c, 1);
        } else {
            mr_text_add(text, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\%03o", c));
        }
    }
    mr_text_add(text, "\"", 1);
}

static void add_element(mr_text_builder *text, const mr_tensor *x, int64_t i)
{
    char number[MR_NUMBER_TEXT_SIZE];
    int size = 0;
    switch (x->dtype) {
    case MR_FLOAT:
        size = mr_text_from_float(((const float *)x->data)[i], number);
        break;
    case MR_HALF:
        size = mr_text_from_float(mr_half_to_float(((const uint16_t *)x->data)[i]), number);
        break;
    case MR_BFLOAT16:
        size = mr_text_from_float(mr_bfloat16_to_float(((const uint16_t *)x->data)[i]), number);
        break;
    case MR_DOUBLE:
        size = mr_text_from_double(((const double *)x->data)[i], number);
        break;
#define INTEGER(dtype, type, format)                                                                                   \
    case dtype:                                                                                                        \
        size = snprintf(number, sizeof number, format, ((const type *)x->data)[i]);                                    \
        break;
        INTEGER(MR_INT8, int8_t, "%d")
        INTEGER(MR_INT16, int16_t, "%d")
        INTEGER(MR_INT32, int32_t, "%" PRId32)
        INTEGER(MR_INT64, int64_t, "%" PRId64)
        INTEGER(MR_UINT8, uint8_t, "%u")
        INTEGER(MR_UINT16, uint16_t, "%u")
        INTEGER(MR_UINT32, uint32_t, "%" PRIu32)
        INTEGER(MR_UINT64, uint64_t, "%" PRIu64)
        INTEGER(MR_BOOL, bool, "%d")
    case MR_STRING:
        add_escaped(text, mr_tensor_strings(x)[i]);
        return;
    default:
        number[size++] = '?';
        break;
    }
    mr_text_add(text, number, (size_t)size);
}

static void add_spacing(mr_text_builder *text, int dimension, int rank)
{
    if (dimension == rank - 1) {
        mr_text_add(text, " ", 1);
        return;
    }
    for (int i = 0; i < rank - dimension - 1; i++) mr_text_add(text, "\n", 1);
    for (int i = 0; i <= dimension; i++) mr_text_add(text, " ", 1);
}

/* The first and last `ends` elements of each dimension. */
static void add_dimension(mr_text_builder *text, const mr_tensor *x, int dimension, int64_t index, int64_t ends)
{
    int rank = x->shape.rank;
    if (dimension == rank) {
        add_element(text, x, index);
        return;
    }
    int64_t count = x->shape.dims[dimension], stride = mr_dims_product(&x->shape, dimension + 1, rank);
    mr_text_add(text, "[", 1);
    for (int64_t i = 0; i < ends && i < count && !text->failed; i++) {
        if (i > 0) add_spacing(text, dimension, rank);
        add_dimension(text, x, dimension + 1, index + i * stride, ends);
    }
    if ((uint64_t)count > 2 * (uint64_t)ends) {
        add_spacing(text, dimension, rank);
        mr_text_add(text, "...", 3);
    }
    for (int64_t i = MR_MAX(ends, count - ends); i < count && !text->failed; i++) {
        add_spacing(text, dimension, rank);
        add_dimension(text, x, dimension + 1, index + i * stride, ends);
    }
    mr_text_add(text, "]", 1);
}

static void add_summary(mr_text_builder *text, const mr_tensor *x, int64_t summarize)
{
    int64_t count = mr_tensor_count(x), ends = summarize < 0 || summarize > count ? count : summarize;
    if (ends == 0 && x->dtype == MR_BOOL) return; /* as in TensorFlow */
    if (x->shape.rank > 0)
        add_dimension(text, x, 0, 0, ends);
    else if (ends > 0)
        add_element(text, x, 0);
    else
        mr_text_add(text, "...", 3);
}

/* The end of the next placeholder's text, and where the text after it starts. An empty placeholder is between any two
 * characters. */
static bool next_placeholder(mr_string text, mr_string placeholder, size_t at, size_t *end, size_t *next)
{
    *end = text.size_bytes;
    if (placeholder.size_bytes == 0) {
        if (at + 1 >= text.size_bytes) return false;
        *end = *next = at + 1;
        return true;
    }
    const char *found = at >= text.size_bytes
                            ? nullptr
                            : memmem(text.data + at, text.size_bytes - at, placeholder.data, placeholder.size_bytes);
    if (found == nullptr) return false;
    *end = (size_t)(found - text.data);
    *next = *end + placeholder.size_bytes;
    return true;
}

static mr_status prepare_format(const mr_kernel_node *node, void *, mr_error *error)
{
    mr_string text = mr_attr_string_or(node->attrs, "template", "%s");
    mr_string placeholder = mr_attr_string_or(node->attrs, "placeholder", "%s");
    int64_t count = 0;
    for (size_t at = 0, end; next_placeholder(text, placeholder, at, &end, &at);) count++;
    if (count == node->input_count) return MR_OK;
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                          "num placeholders in template and num inputs must match: %" PRId64 " vs. %d", count,
                          node->input_count);
}

static mr_status run_format(mr_kernel_call *call, mr_error *error)
{
    mr_string text = mr_attr_string_or(call->node->attrs, "template", "%s");
    mr_string placeholder = mr_attr_string_or(call->node->attrs, "placeholder", "%s");
    int64_t summarize = mr_attr_int_or(call->node->attrs, "summarize", 3);
    mr_text_builder result = {0};
    size_t at = 0, end;
    for (int i = 0; i <= call->node->input_count; i++) {
        size_t start = at;
        bool found = next_placeholder(text, placeholder, at, &end, &at);
        mr_text_add(&result, text.data + start, end - start);
        if (found && i < call->node->input_count) add_summary(&result, &call->inputs[i], summarize);
    }
    mr_status status =
        result.failed ? mr_fail_memory(error, result.size_bytes)
                      : mr_tensor_init_string(&call->outputs[0], (mr_string){result.data, result.size_bytes}, error);
    mr_text_deinit(&result);
    return status;
}

/* ---- StringToNumber ---- */

static mr_status to_number(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *x = &call->inputs[0];
    MR_TRY(mr_kernel_output(call, 0, x->shape, error));
    mr_tensor *output = &call->outputs[0];
    const mr_string *texts = mr_tensor_strings(x);
    for (int64_t i = 0, count = mr_tensor_count(x); i < count; i++) {
        bool is_number = output->dtype == MR_FLOAT    ? mr_text_to_float(texts[i], &((float *)output->data)[i])
                         : output->dtype == MR_DOUBLE ? mr_text_to_double(texts[i], &((double *)output->data)[i])
                         : output->dtype == MR_INT32  ? mr_text_to_int32(texts[i], &((int32_t *)output->data)[i])
                                                      : mr_text_to_int64(texts[i], &((int64_t *)output->data)[i]);
        if (!is_number)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "StringToNumberOp could not correctly convert string: %.*s",
                                  (int)MR_MIN(texts[i].size_bytes, (size_t)200), texts[i].data);
    }
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "AsString",
     .types = "T: float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
              "complex128, bool, string",
     .run = run_as_string,
     .prepared_size_bytes = sizeof(as_string),
     .prepare = prepare_as_string},
    {.op = "StringFormat", .run = run_format, .prepared_size_bytes = 1, .prepare = prepare_format},
    {.op = "StringToNumber", .run = to_number},
};
MR_KERNEL_FAMILY(string_format);
