/* The check before unpacking follows the descriptor: it descends into known message fields and skips all others by
 * their length. A stack of MR_PROTO_DEPTH_MAX ends replaces recursion, so memory is constant, and each tag is read
 * once. */
#include "proto/proto.h"

#include <inttypes.h>
#include <string.h>

typedef struct frame {
    const ProtobufCMessageDescriptor *descriptor;
    size_t end;
} frame;

enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_BYTES = 2, WIRE_32BIT = 5 };

static bool read_varint(const uint8_t *bytes, size_t end, size_t *offset, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70 && *offset < end; shift += 7) {
        uint8_t byte = bytes[(*offset)++];
        if (shift < 64) result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return true;
        }
    }
    return false;
}

static mr_status damaged(const ProtobufCMessageDescriptor *descriptor, size_t offset, const char *reason,
                         mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "damaged %s at byte %zu: %s", descriptor->short_name, offset, reason);
}

/* The descriptor of a message field's type; null if the field is unknown or not a message. */
static const ProtobufCMessageDescriptor *submessage(const ProtobufCMessageDescriptor *descriptor, uint32_t number)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(descriptor, number);
    return field != nullptr && field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : nullptr;
}

/* Reads a number, or the size in bytes of the value that follows, which must be inside the message. protobuf-c checks
 * the contents of values. */
static mr_status check_value(const frame *top, const uint8_t *bytes, uint32_t wire, size_t *offset, size_t *size_bytes,
                             mr_error *error)
{
    uint64_t value = 0;
    size_t at = *offset;
    switch (wire) {
    case WIRE_VARINT:
        if (!read_varint(bytes, top->end, offset, &value)) return damaged(top->descriptor, at, "bad varint", error);
        *size_bytes = 0;
        return MR_OK;
    case WIRE_64BIT:
        *size_bytes = 8;
        break;
    case WIRE_32BIT:
        *size_bytes = 4;
        break;
    case WIRE_BYTES:
        if (!read_varint(bytes, top->end, offset, &value)) return damaged(top->descriptor, at, "bad length", error);
        if (value > top->end - *offset) return damaged(top->descriptor, at, "a length exceeds the message", error);
        *size_bytes = (size_t)value;
        return MR_OK;
    default:
        return damaged(top->descriptor, at, "invalid wire type", error);
    }
    if (*size_bytes > top->end - *offset) return damaged(top->descriptor, at, "truncated", error);
    return MR_OK;
}

mr_status mr_proto_check(const ProtobufCMessageDescriptor *descriptor, mr_string message, mr_error *error)
{
    if (message.data == nullptr && message.size_bytes > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the bytes of a %s are null, with a size of %zu",
                       descriptor->short_name, message.size_bytes);
    const uint8_t *bytes = (const uint8_t *)message.data;
    frame stack[MR_PROTO_DEPTH_MAX];
    size_t depth = 0, offset = 0;
    stack[0] = (frame){descriptor, message.size_bytes};
    for (;;) {
        frame *top = &stack[depth];
        if (offset == top->end) {
            if (depth == 0) return MR_OK;
            depth--;
            continue;
        }
        uint64_t tag = 0;
        size_t at = offset, size_bytes = 0;
        if (!read_varint(bytes, top->end, &offset, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
            return damaged(top->descriptor, at, "bad tag", error);
        uint32_t wire = (uint32_t)(tag & 7);
        MR_TRY(check_value(top, bytes, wire, &offset, &size_bytes, error));
        const ProtobufCMessageDescriptor *inner =
            wire == WIRE_BYTES ? submessage(top->descriptor, (uint32_t)(tag >> 3)) : nullptr;
        if (inner == nullptr) {
            offset += size_bytes;
            continue;
        }
        if (depth + 1 == MR_PROTO_DEPTH_MAX) return damaged(top->descriptor, at, "nested too deeply", error);
        stack[++depth] = (frame){inner, offset + size_bytes};
    }
}

static void *arena_alloc(void *arena, size_t size_bytes)
{
    return mr_arena_reserve(arena, size_bytes);
}

static void arena_free(void *, void *)
{
}

ProtobufCAllocator mr_proto_allocator(mr_arena *arena)
{
    return (ProtobufCAllocator){.alloc = arena_alloc, .free = arena_free, .allocator_data = arena};
}

/* An arena, and whether it had no memory: protobuf-c then reports the same as for damaged bytes. */
typedef struct tracked_arena {
    mr_arena *arena;
    bool is_exhausted;
} tracked_arena;

static void *tracked_alloc(void *data, size_t size_bytes)
{
    tracked_arena *tracked = data;
    void *bytes = mr_arena_reserve(tracked->arena, size_bytes);
    tracked->is_exhausted |= bytes == nullptr;
    return bytes;
}

mr_status mr_proto_unpack(const ProtobufCMessageDescriptor *descriptor, mr_string bytes, mr_arena *arena,
                          ProtobufCMessage **message, mr_error *error)
{
    MR_TRY(mr_proto_check(descriptor, bytes, error));
    constexpr size_t slack_bytes = 1 << 20, factor = 64;
    size_t limit = arena->limit_bytes;
    if (bytes.size_bytes < (SIZE_MAX - slack_bytes) / factor - arena->allocated_bytes / factor) {
        size_t own = arena->allocated_bytes + slack_bytes + factor * bytes.size_bytes;
        if (limit == 0 || own < limit) arena->limit_bytes = own;
    }
    tracked_arena tracked = {.arena = arena};
    ProtobufCAllocator allocator = {.alloc = tracked_alloc, .free = arena_free, .allocator_data = &tracked};
    *message = protobuf_c_message_unpack(descriptor, &allocator, bytes.size_bytes, (const uint8_t *)bytes.data);
    arena->limit_bytes = limit;
    if (*message != nullptr) return MR_OK;
    if (tracked.is_exhausted)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s of %zu bytes requires too much memory", descriptor->short_name,
                       bytes.size_bytes);
    return mr_fail(error, MR_DATA_LOSS, "damaged %s of %zu bytes", descriptor->short_name, bytes.size_bytes);
}

mr_status mr_proto_pack(const void *message, mr_arena *arena, mr_string *bytes, mr_error *error)
{
    size_t size_bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *target = mr_arena_alloc(arena, size_bytes + 1);
    if (target == nullptr) return mr_fail_memory(error, size_bytes);
    size_t packed = protobuf_c_message_pack(message, target);
    *bytes = (mr_string){(const char *)target, packed};
    return MR_OK;
}
