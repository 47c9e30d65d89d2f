/* The order of map fields, which serialized messages do not define: TensorFlow writes the same function differently
 * each time. */
#include "graph/ir/function_def.h"

#include <stdlib.h>
#include <string.h>

static const void *member(const ProtobufCMessage *message, size_t offset)
{
    return (const char *)message + offset;
}

/* Entries have a key of type string or uint32 as their first field. */
static int compare_keys(const void *left, const void *right)
{
    const ProtobufCMessage *a = *(ProtobufCMessage *const *)left, *b = *(ProtobufCMessage *const *)right;
    const ProtobufCFieldDescriptor *key = &a->descriptor->fields[0];
    if (key->type == PROTOBUF_C_TYPE_STRING) {
        const char *first = *(char *const *)member(a, key->offset), *second = *(char *const *)member(b, key->offset);
        return strcmp(first != nullptr ? first : "", second != nullptr ? second : "");
    }
    uint32_t first = *(const uint32_t *)member(a, key->offset), second = *(const uint32_t *)member(b, key->offset);
    return (first > second) - (first < second);
}

static bool is_entry(const ProtobufCMessageDescriptor *descriptor)
{
    size_t length = strlen(descriptor->short_name);
    return length > 5 && strcmp(descriptor->short_name + length - 5, "Entry") == 0 && descriptor->n_fields > 0 &&
           descriptor->fields[0].id == 1 &&
           (descriptor->fields[0].type == PROTOBUF_C_TYPE_STRING ||
            descriptor->fields[0].type == PROTOBUF_C_TYPE_UINT32);
}

void mr_function_sort_maps(ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        bool is_in_use = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0 ||
                         *(const uint32_t *)member(message, field->quantifier_offset) == field->id;
        if (!is_in_use) continue;
        bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = is_list ? *(const size_t *)member(message, field->quantifier_offset) : 1;
        ProtobufCMessage **items = is_list ? *(ProtobufCMessage * *const *)member(message, field->offset)
                                           : (ProtobufCMessage **)member(message, field->offset);
        for (size_t k = 0; k < count; k++)
            if (items[k] != nullptr) mr_function_sort_maps(items[k]);
        if (count > 1 && is_entry(field->descriptor)) qsort(items, count, sizeof *items, compare_keys);
    }
}
