/* Protobuf messages from hostile bytes, into arenas.
 *
 * The messages of the .proto files here are compiled by protoc-c; PREFIX.pb-c.h declares them as Mr__GraphDef and so on.
 * Its unpack function recurses as deep as the bytes say and takes any amount of memory, so files are read through
 * mr_proto_unpack: it walks the wire first, in constant memory, checks every length and the depth of nesting, and gives
 * protobuf-c an arena with a limit. Messages live in the arena and are never freed singly. */
#ifndef MR_PROTO_PROTO_H
#define MR_PROTO_PROTO_H

#include "base/arena.h"
#include <millrace/tensor.h>
#include <protobuf-c/protobuf-c.h>

/* Messages inside messages: TensorFlow's limit. */
#define MR_PROTO_DEPTH_MAX 100

/* Checks that bytes are a message of the descriptor: tags, lengths, wire types, depth. Unknown fields are allowed.
 * errors  MR_DATA_LOSS with the message's name and the byte */
mr_status mr_proto_check(const ProtobufCMessageDescriptor *descriptor, mr_string bytes, mr_error *error);

/* Checks, then unpacks into the arena; strings and bytes are copies. Fields that the descriptor does not know are kept
 * and written back by pack. Memory is at most 64 times the bytes and 1 MiB, and what arena->limit_bytes leaves.
 * *message  of the descriptor's type, in the arena
 * errors    MR_DATA_LOSS, MR_RESOURCE_EXHAUSTED */
mr_status mr_proto_unpack(const ProtobufCMessageDescriptor *descriptor, mr_string bytes, mr_arena *arena,
                          ProtobufCMessage **message, mr_error *error);
/* Typed: mr_proto_unpack_as(graph_def, bytes, &arena, &graph, &error) for a Mr__GraphDef *graph. */
#define mr_proto_unpack_as(type, bytes, arena, message, error)                                                         \
    mr_proto_unpack(&mr__##type##__descriptor, (bytes), (arena), (ProtobufCMessage **)(message), (error))

/* The serialised message, in the arena. message may be any pb-c struct. */
mr_status mr_proto_pack(const void *message, mr_arena *arena, mr_string *bytes, mr_error *error);

/* An allocator for protobuf-c over the arena, whose free does nothing. It borrows the arena. */
ProtobufCAllocator mr_proto_allocator(mr_arena *arena);

/* A view of protobuf-c's bytes. */
static inline mr_string mr_proto_bytes(ProtobufCBinaryData data)
{
    return (mr_string){(const char *)data.data, data.len};
}

#endif
