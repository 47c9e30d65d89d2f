/* Numbers in text, as TensorFlow reads and writes them. */
#include "kernels/text.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The locale of C, so that a program's own one changes nothing. */
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static void use_c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
}

static mr_string strip(mr_string text)
{
    while (text.size_bytes > 0 && mr_text_is_space(text.data[0]))
        text = (mr_string){text.data + 1, text.size_bytes - 1};
    while (text.size_bytes > 0 && mr_text_is_space(text.data[text.size_bytes - 1])) text.size_bytes--;
    return text;
}

bool mr_text_to_int64(mr_string text, int64_t *value)
{
    mr_string digits = strip(text);
    bool is_negative = digits.size_bytes > 0 && digits.data[0] == '-';
    int64_t result = 0;
    size_t at = is_negative ? 1 : 0;
    if (at == digits.size_bytes) return false;
    for (; at < digits.size_bytes; at++) {
        int digit = digits.data[at] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(result, (int64_t)10, &result)) return false;
        if (__builtin_add_overflow(result, (int64_t)(is_negative ? -digit : digit), &result)) return false;
    }
    *value = result;
    return true;
}

bool mr_text_to_int32(mr_string text, int32_t *value)
{
    int64_t wide;
    if (!mr_text_to_int64(text, &wide) || wide < INT32_MIN || wide > INT32_MAX) return false;
    *value = (int32_t)wide;
    return true;
}

static size_t skip_digits(const char *text, size_t at, size_t size)
{
    while (at < size && text[at] >= '0' && text[at] <= '9') at++;
    return at;
}

static bool is_hexadecimal(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || ((text[i] | 32) >= 'a' && (text[i] | 32) <= 'f'))) return false;
    return size > 0;
}

/* "12", "1.", ".5", "1.5e-3", without a sign. */
static bool is_decimal(const char *text, size_t size)
{
    size_t integer = skip_digits(text, 0, size), at = integer, digits = integer;
    if (at < size && text[at] == '.') {
        at = skip_digits(text, integer + 1, size);
        digits += at - integer - 1;
    }
    if (digits == 0) return false;
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        size_t start = at + 1;
        if (start < size && (text[start] == '+' || text[start] == '-')) start++;
        at = skip_digits(text, start, size);
        if (at == start) return false;
    }
    return at == size;
}

/* Checks the text, and copies it without white space for the C library. */
static bool check_number(mr_string text, char number[32])
{
    if (text.size_bytes == 0 || text.size_bytes >= 32) return false;
    mr_string stripped = strip(text);
    memcpy(number, "0", 2);
    if (stripped.size_bytes == 0) return true;
    memcpy(number, stripped.data, stripped.size_bytes);
    number[stripped.size_bytes] = '\0';
    size_t sign = number[0] == '-' || number[0] == '+';
    const char *body = number + sign;
    size_t size = stripped.size_bytes - sign;
    if (size == 3 && (strcasecmp(body, "inf") == 0 || strcasecmp(body, "nan") == 0)) return true;
    if (size > 2 && body[0] == '0' && (body[1] | 32) == 'x') return is_hexadecimal(body + 2, size - 2);
    return is_decimal(body, size);
}

bool mr_text_to_float(mr_string text, float *value)
{
    char number[32];
    use_c_locale();
    if (!check_number(text, number)) return false;
    *value = c_locale ? strtof_l(number, nullptr, c_locale) : strtof(number, nullptr);
    return true;
}

bool mr_text_to_double(mr_string text, double *value)
{
    char number[32];
    use_c_locale();
    if (!check_number(text, number)) return false;
    *value = c_locale ? strtod_l(number, nullptr, c_locale) : strtod(number, nullptr);
    return true;
}

int mr_text_from_float(float value, char text[MR_NUMBER_TEXT_SIZE])
{
    float parsed;
    int size = snprintf(text, MR_NUMBER_TEXT_SIZE, "%.6g", (double)value);
    if (!mr_text_to_float((mr_string){text, (size_t)size}, &parsed) || parsed != value)
        size = snprintf(text, MR_NUMBER_TEXT_SIZE, "%.9g", (double)value);
    return size;
}

int mr_text_from_double(double value, char text[MR_NUMBER_TEXT_SIZE])
{
    double parsed;
    int size = snprintf(text, MR_NUMBER_TEXT_SIZE, "%.15g", value);
    if (!mr_text_to_double((mr_string){text, (size_t)size}, &parsed) || parsed != value)
        size = snprintf(text, MR_NUMBER_TEXT_SIZE, "%.17g", value);
    return size;
}
