/* Fuzz target: protobuf's text format. What the parser accepts is a valid message of the type. */
#include "proto/meta_graph.pb-c.h"
#include "proto/text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes == 0) return 0;
    const ProtobufCMessageDescriptor *types[] = {&mr__graph_def__descriptor, &mr__meta_graph_def__descriptor,
                                                 &mr__saved_model__descriptor};
    const ProtobufCMessageDescriptor *type = types[bytes[0] % 3];
    mr_string text = {(const char *)bytes + 1, size_bytes - 1}, result;
    mr_error error = {0};
    const char *name;
    (void)mr_proto_text_first_name(text, &name);
    if (mr_proto_text_parse(type, text, &result, &error) != MR_OK) {
        if (error.message[0] == '\0') abort();
        return 0;
    }
    if (mr_proto_check(type, result, &error) != MR_OK) abort();
    mr_arena arena = {0};
    ProtobufCMessage *message;
    if (mr_proto_unpack(type, result, &arena, &message, &error) == MR_DATA_LOSS) abort();
    mr_arena_deinit(&arena);
    free((void *)result.data);
    return 0;
}
