/* Writing protobuf's text format, by descriptor. Fields that the .proto files do not declare have no name: protobuf
 * writes them by number, if at all, and its own parser refuses numbers. So they are an error, or are left out. */
#include "base/status.h"
#include "proto/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    char *text; /* owned */
    size_t size_bytes, capacity_bytes;
    int depth;
    bool declared_only; /* leave out what is not declared */
    mr_error *error;
} writer;

static mr_status put(writer *w, const char *text, size_t size_bytes)
{
    if (size_bytes > w->capacity_bytes - w->size_bytes) {
        const size_t capacity = 2 * w->capacity_bytes + size_bytes + 256;
        char *larger = realloc(w->text, capacity);
        if (larger == nullptr) return mr_fail_memory(w->error, capacity);
        w->text = larger;
        w->capacity_bytes = capacity;
    }
    memcpy(w->text + w->size_bytes, text, size_bytes);
    w->size_bytes += size_bytes;
    return MR_OK;
}

[[gnu::format(printf, 2, 3)]] static mr_status print(writer *w, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return put(w, text, length > 0 ? (size_t)length : 0);
}

static mr_status put_bytes(writer *w, const uint8_t *bytes, size_t size_bytes)
{
    MR_TRY(put(w, "\"", 1));
    for (size_t i = 0; i < size_bytes; i++) {
        const uint8_t c = bytes[i];
        if (c == '"' || c == '\\')
            MR_TRY(print(w, "\\%c", c));
        else if (c == '\n')
            MR_TRY(put(w, "\\n", 2));
        else if (c < 0x20 || c >= 0x7f)
            MR_TRY(print(w, "\\%03o", c));
        else
            MR_TRY(put(w, (const char *)&bytes[i], 1));
    }
    return put(w, "\"", 1);
}

/* With a decimal point in any locale. */
static mr_status put_real(writer *w, double value, int digits)
{
    char text[64];
    if (isnan(value)) return put(w, "nan", 3);
    if (isinf(value)) return print(w, "%s", value < 0 ? "-inf" : "inf");
    snprintf(text, sizeof text, "%.*g", digits, value);
    for (char *c = text; *c != '\0'; c++)
        if (*c == ',') *c = '.';
    return print(w, "%s", text);
}

static mr_status put_message(writer *w, const ProtobufCMessage *message);

static size_t element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static mr_status put_value(writer *w, ProtobufCType type, const void *value)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return print(w, ": %" PRId64 "\n", *(const int64_t *)value);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return print(w, ": %" PRIu64 "\n", *(const uint64_t *)value);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return print(w, ": %" PRIu32 "\n", *(const uint32_t *)value);
    case PROTOBUF_C_TYPE_BOOL:
        return print(w, ": %s\n", *(const protobuf_c_boolean *)value ? "true" : "false");
    case PROTOBUF_C_TYPE_FLOAT:
        MR_TRY(put(w, ": ", 2));
        MR_TRY(put_real(w, (double)*(const float *)value, 9));
        return put(w, "\n", 1);
    case PROTOBUF_C_TYPE_DOUBLE:
        MR_TRY(put(w, ": ", 2));
        MR_TRY(put_real(w, *(const double *)value, 17));
        return put(w, "\n", 1);
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)value;
        MR_TRY(put(w, ": ", 2));
        MR_TRY(put_bytes(w, (const uint8_t *)text, strlen(text)));
        return put(w, "\n", 1);
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = value;
        MR_TRY(put(w, ": ", 2));
        MR_TRY(put_bytes(w, bytes->data, bytes->len));
        return put(w, "\n", 1);
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        MR_TRY(put(w, " {\n", 3));
        w->depth++;
        MR_TRY(put_message(w, *(ProtobufCMessage *const *)value));
        w->depth--;
        return print(w, "%*s}\n", 2 * w->depth, "");
    default:
        return print(w, ": %" PRId32 "\n", *(const int32_t *)value);
    }
}

/* In proto3, a field without presence is not written if it is zero. */
static bool is_set(const ProtobufCFieldDescriptor *field, const uint8_t *at, const uint8_t *message)
{
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return *(const uint32_t *)(message + field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) return *(void *const *)at != nullptr;
    if (field->type == PROTOBUF_C_TYPE_STRING) return *(char *const *)at != nullptr && **(char *const *)at != '\0';
    if (field->type == PROTOBUF_C_TYPE_BYTES) return ((const ProtobufCBinaryData *)at)->len > 0;
    static const uint8_t zero[8];
    return memcmp(at, zero, element_size(field->type)) != 0;
}

static mr_status check_unknown(const writer *w, const ProtobufCMessage *message)
{
    if (w->declared_only || message->n_unknown_fields == 0) return MR_OK;
    return mr_fail(w->error, MR_FAILED_PRECONDITION,
                   "%s has the field %" PRIu32 ", which has no name in text form; only the binary form can keep it",
                   message->descriptor->short_name, message->unknown_fields[0].tag);
}

/* The value of the message's field "name"; null: it has none. */
static const char *name_of(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "name");
    bool is_text = field != nullptr && field->type == PROTOBUF_C_TYPE_STRING &&
                   field->label != PROTOBUF_C_LABEL_REPEATED && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0;
    const char *name = is_text ? *(char *const *)((const uint8_t *)message + field->offset) : nullptr;
    return name != nullptr && *name != '\0' ? name : nullptr;
}

static mr_status put_message(writer *w, const ProtobufCMessage *message)
{
    const uint8_t *bytes = (const uint8_t *)message;
    mr_status checked = check_unknown(w, message);
    if (checked != MR_OK && name_of(message) != nullptr)
        return mr_fail_prefix(w->error, checked, "%.200s", name_of(message));
    MR_TRY(checked);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const uint8_t *at = bytes + field->offset;
        const bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        const size_t count = is_list ? *(const size_t *)(bytes + field->quantifier_offset) : is_set(field, at, bytes);
        const uint8_t *items = is_list ? *(uint8_t *const *)at : at;
        for (size_t j = 0; j < count; j++) {
            MR_TRY(print(w, "%*s%s", 2 * w->depth, "", field->name));
            MR_TRY(put_value(w, field->type, items + j * element_size(field->type)));
        }
    }
    return MR_OK;
}

static mr_status write_text(const void *message, bool declared_only, mr_string *text, mr_error *error)
{
    writer w = {.declared_only = declared_only, .error = error};
    const mr_status status = put_message(&w, message);
    *text = (mr_string){w.text, w.size_bytes};
    if (status == MR_OK) return MR_OK;
    free(w.text);
    *text = (mr_string){0};
    return status;
}

mr_status mr_proto_text_write(const void *message, mr_string *text, mr_error *error)
{
    return write_text(message, false, text, error);
}

mr_status mr_proto_text_write_declared(const void *message, mr_string *text, mr_error *error)
{
    return write_text(message, true, text, error);
}
