/* Protobuf messages: parsed from untrusted bytes into arenas, and serialized.
 *
 * protoc-c compiles the .proto files of this directory; NAME.pb-c.h declares their messages as Mr__GraphDef and so on.
 * The unpack functions of protobuf-c limit neither their recursion nor their memory, so files are read with
 * mr_proto_unpack. It first checks every length and the nesting depth, in constant memory, and then calls protobuf-c
 * with an arena that has a limit. Messages are allocated from the arena and cannot be freed one by one. */
#ifndef MR_PROTO_PROTO_H
#define MR_PROTO_PROTO_H

#include "base/arena.h"
#include <millrace/tensor.h>
#include <protobuf-c/protobuf-c.h>

/* Maximum nesting depth of messages, the same as TensorFlow's. */
#define MR_PROTO_DEPTH_MAX 100

/* Checks that the bytes are a message of the descriptor's type: tags, lengths, wire types, nesting depth. Unknown
 * fields are allowed.
 * errors  MR_DATA_LOSS with the name of the message and the offset of the fault */
mr_status mr_proto_check(const ProtobufCMessageDescriptor *descriptor, mr_string bytes, mr_error *error);

/* Checks the bytes, then unpacks them into the arena; strings and bytes are copied. Unknown fields are preserved:
 * mr_proto_pack writes them back. Allocates at most 64 times the size of the bytes plus 1 MiB, and no more than
 * arena->limit_bytes allows.
 * *message  of the descriptor's type, in the arena
 * errors    MR_DATA_LOSS, MR_RESOURCE_EXHAUSTED */
mr_status mr_proto_unpack(const ProtobufCMessageDescriptor *descriptor, mr_string bytes, mr_arena *arena,
                          ProtobufCMessage **message, mr_error *error);
/* The typed form: mr_proto_unpack_as(graph_def, bytes, &arena, &graph, &error) for a Mr__GraphDef *graph. */
#define mr_proto_unpack_as(type, bytes, arena, message, error)                                                         \
    mr_proto_unpack(&mr__##type##__descriptor, (bytes), (arena), (ProtobufCMessage **)(message), (error))

/* Serializes a message, which may be any struct of protobuf-c; *bytes is allocated from the arena. */
mr_status mr_proto_pack(const void *message, mr_arena *arena, mr_string *bytes, mr_error *error);

/* An allocator for protobuf-c that allocates from the arena, which it borrows; its free does nothing. */
ProtobufCAllocator mr_proto_allocator(mr_arena *arena);

/* A view of a bytes field. */
static inline mr_string mr_proto_bytes(ProtobufCBinaryData data)
{
    return (mr_string){(const char *)data.data, data.len};
}

#endif
