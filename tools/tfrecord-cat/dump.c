/* The values of a dump (graph-run --dump, tfdbg): a line for each, cut to the width of the terminal.
 *
 *        0.000 ms  layer/kernel/read:0  float [2,3]  0.5 -1.25 2 0 …
 *        0.412 ms  Log:0                float [4]    2 NaN or infinite  -inf 0.1 -inf 3 */
#include "common/progress.h"
#include "common/query/patterns.h"
#include "tfrecord-cat/cat.h"

#include <inttypes.h>
#include <math.h>
#include <millrace/debug.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr int COLUMNS_PLAIN = 120;
static constexpr int NAME_COLUMNS_MAX = 48;
static constexpr int TYPE_COLUMNS = 14;

/* One element as a number; strings and complex numbers are printed otherwise. */
static double number_at(const mr_tensor *value, int64_t i)
{
    switch (value->dtype) {
    case MR_FLOAT:
        return (double)((const float *)value->data)[i];
    case MR_DOUBLE:
        return ((const double *)value->data)[i];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)value->data)[i]);
    case MR_BFLOAT16:
        return (double)mr_bfloat16_to_float(((const uint16_t *)value->data)[i]);
    case MR_COMPLEX64:
        return (double)((const float *)value->data)[i];
    case MR_COMPLEX128:
        return ((const double *)value->data)[i];
    default:
        return 0;
    }
}

/* Numbers that are compared with infinity: two for each complex element. */
static int64_t number_count(const mr_tensor *value)
{
    switch (value->dtype) {
    case MR_FLOAT:
    case MR_DOUBLE:
    case MR_HALF:
    case MR_BFLOAT16:
        return mr_tensor_count(value);
    case MR_COMPLEX64:
    case MR_COMPLEX128:
        return 2 * mr_tensor_count(value);
    default:
        return 0;
    }
}

static int64_t nonfinite_count(const mr_tensor *value)
{
    int64_t count = 0;
    for (int64_t i = 0, end = number_count(value); i < end; i++) count += !isfinite(number_at(value, i));
    return count;
}

static void put_number(out *o, const mr_tensor *value, double number)
{
    char text[64];
    if (value->dtype == MR_DOUBLE || value->dtype == MR_COMPLEX128) {
        snprintf(text, sizeof text, "%.17g", number);
        for (int digits = 1; digits < 17; digits++) {
            char shorter[64];
            snprintf(shorter, sizeof shorter, "%.*g", digits, number);
            if (strtod(shorter, nullptr) == number) return out_text(o, shorter);
        }
        return out_text(o, text);
    }
    out_float(o, (float)number);
}

static void put_integer(out *o, const mr_tensor *value, int64_t i)
{
    const void *data = value->data;
    char text[32];
    switch (value->dtype) {
    case MR_INT8:
    case MR_QINT8:
        return out_integer(o, ((const int8_t *)data)[i]);
    case MR_UINT8:
    case MR_QUINT8:
        return out_integer(o, ((const uint8_t *)data)[i]);
    case MR_INT16:
    case MR_QINT16:
        return out_integer(o, ((const int16_t *)data)[i]);
    case MR_UINT16:
    case MR_QUINT16:
        return out_integer(o, ((const uint16_t *)data)[i]);
    case MR_INT32:
    case MR_QINT32:
        return out_integer(o, ((const int32_t *)data)[i]);
    case MR_UINT32:
        return out_integer(o, ((const uint32_t *)data)[i]);
    case MR_INT64:
        return out_integer(o, ((const int64_t *)data)[i]);
    case MR_UINT64:
        snprintf(text, sizeof text, "%" PRIu64, ((const uint64_t *)data)[i]);
        return out_text(o, text);
    case MR_BOOL:
        return out_text(o, ((const bool *)data)[i] ? "true" : "false");
    default:
        return out_text(o, "?");
    }
}

/* An element that is not a string. */
static void put_element(out *o, const mr_tensor *value, int64_t i)
{
    if (value->dtype == MR_COMPLEX64 || value->dtype == MR_COMPLEX128) {
        double imaginary = number_at(value, 2 * i + 1);
        put_number(o, value, number_at(value, 2 * i));
        if (!signbit(imaginary)) out_char(o, '+');
        put_number(o, value, imaginary);
        return out_char(o, 'j');
    }
    if (number_count(value) > 0) return put_number(o, value, number_at(value, i));
    put_integer(o, value, i);
}

/* The first elements that fit. False: there is no memory. */
static bool print_elements(const mr_tensor *value, int room)
{
    int64_t count = mr_tensor_count(value);
    for (int64_t i = 0; i < count; i++) {
        out text = {0};
        if (i > 0) room -= printf(" ");
        if (value->dtype == MR_STRING) {
            room -= printf("\"") + text_print(stdout, mr_tensor_strings(value)[i], room > 6 ? room - 4 : 4);
            room -= printf("\"");
        } else {
            put_element(&text, value, i);
            bool fits = !text.has_failed && ((int)text.size + (i + 1 < count ? 2 : 0) <= room || i == 0);
            if (text.has_failed) return out_write(&text, stdout);
            if (fits) {
                room -= (int)text.size;
                (void)out_write(&text, stdout);
            }
            out_deinit(&text);
            if (!fits) room = 0;
        }
        if (room <= 2 && (i + 1 < count || room <= 0)) {
            fputs("…", stdout);
            return true;
        }
    }
    return true;
}

static bool print_value(const mr_dump_item *item, int64_t first_us, const mr_tensor *value, int name_columns,
                        int columns)
{
    char shape[MR_SHAPE_TEXT_SIZE], type[MR_SHAPE_TEXT_SIZE + 32];
    char name[4096];
    snprintf(name, sizeof name, "%s:%d", item->node, (int)item->output);
    int room = columns - printf("%10.3f ms  ", (double)(item->time_us - first_us) / 1e3);
    int used = text_print(stdout, mr_string_from(name), name_columns);
    room -= used + printf("%*s  ", name_columns - used, "");
    if (value->dtype == MR_DTYPE_INVALID) {
        puts("no value: not initialized, or a handle");
        return true;
    }
    snprintf(type, sizeof type, "%s %s", mr_dtype_name(value->dtype), mr_shape_text(value->shape, shape, sizeof shape));
    room -= printf("%-*s  ", TYPE_COLUMNS, type);
    int64_t bad = nonfinite_count(value);
    if (bad > 0) room -= printf("%" PRId64 " NaN or infinite  ", bad);
    bool has_memory = print_elements(value, room > 8 ? room : 8);
    putchar('\n');
    return has_memory;
}

/* The columns of the names. */
static int measure_names(const mr_dump *dump, const options *options, int columns)
{
    int most = columns / 2 < NAME_COLUMNS_MAX ? columns / 2 : NAME_COLUMNS_MAX, longest = 4;
    for (int32_t i = 0; i < mr_dump_count(dump); i++) {
        mr_string name = mr_string_from(mr_dump_item_at(dump, i)->node);
        if (!patterns_select(options->features, name)) continue;
        int used = text_columns(name) + 2;
        if (used > longest) longest = used < most ? used : most;
    }
    return longest;
}

static mr_status print_dump(const mr_dump *dump, const options *options, mr_error *error)
{
    int columns = progress_columns(STDOUT_FILENO, COLUMNS_PLAIN);
    int name_columns = measure_names(dump, options, columns);
    uint64_t left = options->head;
    for (int32_t i = 0; i < mr_dump_count(dump) && left > 0; i++) {
        const mr_dump_item *item = mr_dump_item_at(dump, i);
        mr_tensor value = {0};
        if (!patterns_select(options->features, mr_string_from(item->node))) continue;
        MR_TRY(mr_dump_read(dump, i, &value, error));
        bool has_memory = print_value(item, mr_dump_item_at(dump, 0)->time_us, &value, name_columns, columns);
        mr_tensor_deinit(&value);
        if (!has_memory) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        left--;
    }
    return MR_OK;
}

int dump_run(const options *options)
{
    int exit_code = 0;
    for (int32_t i = 0; i < options->path_count; i++) {
        mr_dump *dump = nullptr;
        mr_error error = {0};
        mr_status status = mr_dump_open(options->paths[i], &dump, &error);
        if (options->path_count > 1) printf("%s%s\n", i > 0 ? "\n" : "", text_path(options->paths[i]));
        if (status == MR_OK) status = print_dump(dump, options, &error);
        if (status != MR_OK) exit_code = print_error(&error);
        mr_dump_close(dump);
    }
    return exit_code;
}
