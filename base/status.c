/* Status and errors: one-sentence messages, formatted once, safe to print.
 *
 * The text is formatted into a local buffer first, so that an argument may be the error's own message. */
#include "base/status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

const char *mr_status_name(mr_status status)
{
    size_t index = (size_t)status;
    return index < sizeof names / sizeof *names ? names[index] : "UNKNOWN";
}

/* Shortens `length` so that no UTF-8 character is split: trailing continuation bytes are removed together with their
 * lead byte, unless the character is complete. */
static size_t complete_characters(const char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80) start--;
    if (start == 0) return length;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t wanted = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    return length - start < wanted ? start - 1 : length;
}

static void set_message(mr_error *error, mr_status status, const char *text)
{
    assert(error != nullptr && text != nullptr);
    size_t length = strlen(text);
    if (length >= MR_ERROR_SIZE) length = complete_characters(text, MR_ERROR_SIZE - 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        error->message[i] = byte < 0x20 || byte == 0x7f ? '?' : (char)byte;
    }
    assert(length < MR_ERROR_SIZE);
    error->message[length] = '\0';
    error->status = status;
}

mr_status mr_fail_va(mr_error *error, mr_status status, const char *format, va_list args)
{
    if (error == nullptr) return status;
    char text[MR_ERROR_SIZE + 8];
    if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
    set_message(error, status, text);
    return status;
}

mr_status mr_fail(mr_error *error, mr_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mr_status result = mr_fail_va(error, status, format, args);
    va_end(args);
    return result;
}

mr_status mr_fail_prefix(mr_error *error, mr_status status, const char *format, ...)
{
    if (error == nullptr) return status;
    char text[2 * MR_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text, MR_ERROR_SIZE, format, args);
    va_end(args);
    size_t length = written < 0 ? 0 : (size_t)written < MR_ERROR_SIZE ? (size_t)written : MR_ERROR_SIZE - 1;
    snprintf(text + length, sizeof text - length, ": %s", error->message);
    set_message(error, status, text);
    return status;
}

mr_status mr_fail_memory(mr_error *error, size_t size_bytes)
{
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory (%zu bytes)", size_bytes);
}
