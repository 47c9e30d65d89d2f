/* Serialized states (state.h). */
#include "pipeline/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void mr_state_deinit(mr_state *state)
{
    free(state->bytes);
    *state = (mr_state){0};
}

static mr_status reserve(mr_state *state, size_t more_bytes, mr_error *error)
{
    size_t needed_bytes = 0;
    if (__builtin_add_overflow(state->size_bytes, more_bytes, &needed_bytes) || needed_bytes > MR_STATE_BYTES_MAX)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the state of a pipeline is larger than %zu bytes",
                       MR_STATE_BYTES_MAX);
    assert(state->size_bytes <= state->capacity_bytes);
    if (needed_bytes <= state->capacity_bytes) return MR_OK;
    size_t capacity_bytes = needed_bytes + needed_bytes / 2 + 64;
    unsigned char *bytes = realloc(state->bytes, capacity_bytes);
    if (bytes == nullptr)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a state of %zu bytes", needed_bytes);
    state->bytes = bytes;
    state->capacity_bytes = capacity_bytes;
    return MR_OK;
}

mr_status mr_state_put(mr_state *state, uint64_t number, mr_error *error)
{
    MR_TRY(reserve(state, 10, error));
    while (number >= 0x80) {
        state->bytes[state->size_bytes++] = (unsigned char)(number | 0x80);
        number >>= 7;
    }
    state->bytes[state->size_bytes++] = (unsigned char)number;
    return MR_OK;
}

mr_status mr_state_put_bytes(mr_state *state, const void *bytes, size_t size_bytes, mr_error *error)
{
    MR_TRY(mr_state_put(state, size_bytes, error));
    MR_TRY(reserve(state, size_bytes, error));
    if (size_bytes > 0) memcpy(state->bytes + state->size_bytes, bytes, size_bytes);
    state->size_bytes += size_bytes;
    assert(state->size_bytes <= state->capacity_bytes);
    return MR_OK;
}

mr_status mr_state_append(mr_state *state, const mr_state *other, mr_error *error)
{
    MR_TRY(reserve(state, other->size_bytes, error));
    if (other->size_bytes > 0) memcpy(state->bytes + state->size_bytes, other->bytes, other->size_bytes);
    state->size_bytes += other->size_bytes;
    return MR_OK;
}

mr_status mr_state_refuse(mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "the state does not fit the pipeline: damaged, or of other data");
}

mr_status mr_state_get(mr_state_reader *reader, uint64_t *number, mr_error *error)
{
    *number = 0;
    assert(reader->next <= reader->end);
    for (int shift = 0; shift < 64; shift += 7) {
        if (reader->next == reader->end) return mr_state_refuse(error);
        unsigned char byte = *reader->next++;
        if (shift == 63 && byte > 1) return mr_state_refuse(error);
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return MR_OK;
    }
    return mr_state_refuse(error);
}

mr_status mr_state_get_below(mr_state_reader *reader, uint64_t most, uint64_t *number, mr_error *error)
{
    MR_TRY(mr_state_get(reader, number, error));
    return *number <= most ? MR_OK : mr_state_refuse(error);
}

mr_status mr_state_get_bool(mr_state_reader *reader, bool *is_true, mr_error *error)
{
    uint64_t number = 0;
    MR_TRY(mr_state_get_below(reader, 1, &number, error));
    *is_true = number != 0;
    return MR_OK;
}

mr_status mr_state_get_count(mr_state_reader *reader, uint64_t most, uint64_t *count, mr_error *error)
{
    MR_TRY(mr_state_get_below(reader, most, count, error));
    return *count <= (uint64_t)(reader->end - reader->next) ? MR_OK : mr_state_refuse(error);
}

mr_status mr_state_get_bytes(mr_state_reader *reader, const void **bytes, size_t *size_bytes, mr_error *error)
{
    uint64_t size = 0;
    MR_TRY(mr_state_get(reader, &size, error));
    /* The bytes that remain after the size has been read. */
    if (size > (uint64_t)(reader->end - reader->next)) return mr_state_refuse(error);
    *bytes = reader->next;
    *size_bytes = (size_t)size;
    reader->next += size;
    return MR_OK;
}

mr_status mr_state_put_tensor(mr_state *state, const mr_tensor *tensor, mr_error *error)
{
    assert(tensor->shape.rank >= 0 && tensor->shape.rank <= MR_RANK_MAX);
    MR_TRY(mr_state_put(state, (uint64_t)tensor->dtype, error));
    MR_TRY(mr_state_put(state, (uint64_t)tensor->shape.rank, error));
    for (int32_t d = 0; d < tensor->shape.rank; d++)
        MR_TRY(mr_state_put(state, (uint64_t)tensor->shape.dims[d], error));
    if (tensor->dtype != MR_STRING) return mr_state_put_bytes(state, tensor->data, mr_tensor_size_bytes(tensor), error);
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
        mr_string string = mr_tensor_strings(tensor)[i];
        MR_TRY(mr_state_put_bytes(state, string.data, string.size_bytes, error));
    }
    return MR_OK;
}

static mr_status get_strings(mr_state_reader *reader, mr_shape shape, mr_tensor *tensor, mr_error *error)
{
    int64_t count = mr_shape_count(shape);
    /* Each string takes at least one byte, for its length. */
    if (count < 0 || count > reader->end - reader->next) return mr_state_refuse(error);
    mr_string *strings = calloc((size_t)count + 1, sizeof *strings);
    if (strings == nullptr)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %lld strings", (long long)count);
    mr_status status = MR_OK;
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        const void *bytes = nullptr;
        status = mr_state_get_bytes(reader, &bytes, &strings[i].size_bytes, error);
        strings[i].data = bytes;
    }
    if (status == MR_OK) status = mr_tensor_init_strings(tensor, shape, strings, error);
    free(strings);
    return status;
}

/* A bool of any other value is undefined behavior. */
static bool are_booleans(const unsigned char *bytes, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++)
        if (bytes[i] > 1) return false;
    return true;
}

mr_status mr_state_get_tensor(mr_state_reader *reader, mr_tensor *tensor, mr_error *error)
{
    uint64_t dtype = 0, rank = 0, dim = 0;
    *tensor = (mr_tensor){0};
    mr_shape shape = {0};
    MR_TRY(mr_state_get_below(reader, 255, &dtype, error));
    MR_TRY(mr_state_get_below(reader, MR_RANK_MAX, &rank, error));
    shape.rank = (int32_t)rank;
    for (int32_t d = 0; d < shape.rank; d++) {
        MR_TRY(mr_state_get_below(reader, INT64_MAX, &dim, error));
        shape.dims[d] = (int64_t)dim;
    }
    if ((mr_dtype)dtype == MR_STRING) return get_strings(reader, shape, tensor, error);
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(mr_state_get_bytes(reader, &bytes, &size_bytes, error));
    size_t element_bytes = mr_dtype_size((mr_dtype)dtype);
    int64_t count = mr_shape_count(shape);
    if (element_bytes == 0 || count < 0 || (uint64_t)count != size_bytes / element_bytes ||
        size_bytes % element_bytes != 0)
        return mr_state_refuse(error);
    if ((mr_dtype)dtype == MR_BOOL && !are_booleans(bytes, size_bytes)) return mr_state_refuse(error);
    return mr_tensor_init_copy(tensor, (mr_dtype)dtype, shape, bytes, error);
}
