/* See csv_number.h. */
#include "pipeline/sources/csv_number.h"
#include "base/status.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <threads.h>

/* Accepts numbers as TensorFlow does, in any locale: with surrounding white space; real numbers may have a plus sign,
 * or be nan, inf or a hexadecimal integer. */
static bool is_number(const char *text, bool is_real)
{
    if (*text == '-' || (is_real && *text == '+')) text++;
    if (is_real && (strcasecmp(text, "nan") == 0 || strcasecmp(text, "inf") == 0)) return true;
    if (is_real && text[0] == '0' && (text[1] | 0x20) == 'x')
        return text[2] != '\0' && text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0';
    size_t digits = strspn(text, "0123456789");
    text += digits;
    if (is_real && *text == '.') {
        size_t more = strspn(++text, "0123456789");
        digits += more;
        text += more;
    }
    if (is_real && digits > 0 && (*text | 0x20) == 'e') {
        text += 1 + (text[1] == '+' || text[1] == '-');
        digits = strspn(text, "0123456789");
        text += digits;
    }
    return digits > 0 && *text == '\0';
}

static locale_t plain_locale;
static once_flag plain_locale_once = ONCE_FLAG_INIT;
static void make_plain_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t) nullptr);
}

mr_status mr_csv_number(mr_string cell, mr_dtype dtype, mr_tensor *tensor, mr_error *error)
{
    static const char spaces[] = " \t\n\v\f\r";
    char text[64];
    while (cell.size_bytes > 0 && memchr(spaces, cell.data[0], sizeof spaces - 1) != nullptr)
        cell = (mr_string){cell.data + 1, cell.size_bytes - 1};
    while (cell.size_bytes > 0 && memchr(spaces, cell.data[cell.size_bytes - 1], sizeof spaces - 1) != nullptr)
        cell.size_bytes--;
    if (cell.size_bytes >= sizeof text) return mr_fail(error, MR_INVALID_ARGUMENT, "is not a number");
    memcpy(text, cell.data, cell.size_bytes);
    text[cell.size_bytes] = '\0';
    bool is_real = dtype == MR_FLOAT || dtype == MR_DOUBLE;
    if (!is_number(text, is_real))
        return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s\" is not a valid %s", text, mr_dtype_name(dtype));
    call_once(&plain_locale_once, make_plain_locale);
    if (plain_locale == (locale_t) nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a locale");
    errno = 0;
    union {
        float f;
        double d;
        int32_t i32;
        int64_t i64;
    } value = {0};
    bool fits = true;
    if (dtype == MR_FLOAT) {
        value.f = strtof_l(text, nullptr, plain_locale);
    } else if (dtype == MR_DOUBLE) {
        value.d = strtod_l(text, nullptr, plain_locale);
    } else {
        int64_t number = strtoll(text, nullptr, 10);
        fits = errno == 0 && (dtype == MR_INT64 || (number >= INT32_MIN && number <= INT32_MAX));
        if (dtype == MR_INT32)
            value.i32 = (int32_t)number;
        else
            value.i64 = number;
    }
    if (!fits) return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s\" is not a valid %s", text, mr_dtype_name(dtype));
    return mr_tensor_init_copy(tensor, dtype, MR_SCALAR, &value, error);
}
