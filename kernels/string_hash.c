/* Hashes of strings, equal to TensorFlow's: FarmHash Fingerprint64, SipHash-2-4, and the function of its old Hash64. */
#include "kernels/text.h"

#include <string.h>

static uint64_t load64(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t load32(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t rotate_right(uint64_t value, int bits)
{
    return value >> bits | value << (64 - bits);
}

/* ---- FarmHash ---- */

static constexpr uint64_t K0 = 0xc3a5c85c97cb3127, K1 = 0xb492b66fbe98f273, K2 = 0x9ae16a3b2f90404f;

static uint64_t shift_mix(uint64_t value)
{
    return value ^ value >> 47;
}

static uint64_t mix_two(uint64_t u, uint64_t v, uint64_t factor)
{
    uint64_t a = shift_mix((u ^ v) * factor);
    return shift_mix((v ^ a) * factor) * factor;
}

static uint64_t fingerprint_short(const unsigned char *s, size_t size)
{
    uint64_t factor = K2 + size * 2;
    if (size >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + size - 8);
        return mix_two(rotate_right(b, 37) * factor + a, (rotate_right(a, 25) + b) * factor, factor);
    }
    if (size >= 4) return mix_two(size + (load32(s) << 3), load32(s + size - 4), factor);
    if (size == 0) return K2;
    uint64_t y = s[0] + ((uint64_t)s[size >> 1] << 8), z = size + ((uint64_t)s[size - 1] << 2);
    return shift_mix(y * K2 ^ z * K0) * K2;
}

static uint64_t fingerprint_up_to_64(const unsigned char *s, size_t size)
{
    uint64_t factor = K2 + size * 2, a = load64(s) * (size <= 32 ? K1 : K2), b = load64(s + 8);
    uint64_t c = load64(s + size - 8) * factor, d = load64(s + size - 16) * K2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = mix_two(y, a + rotate_right(b + K2, 18) + c, factor);
    if (size <= 32) return z;
    uint64_t e = load64(s + 16) * factor, f = load64(s + 24);
    uint64_t g = (y + load64(s + size - 32)) * factor, h = (z + load64(s + size - 24)) * factor;
    return mix_two(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, factor);
}

typedef struct long_state {
    uint64_t x, y, z, v[2], w[2];
} long_state;

static void absorb_32(const unsigned char *s, uint64_t a, uint64_t b, uint64_t result[2])
{
    uint64_t last = load64(s + 24), first = a + load64(s);
    b = rotate_right(b + first + last, 21);
    a = first + load64(s + 8) + load64(s + 16);
    result[0] = a + last;
    result[1] = b + rotate_right(a, 44) + first;
}

/* scale: 1, or 9 in the last round */
static void absorb_64(long_state *t, const unsigned char *s, uint64_t factor, uint64_t scale)
{
    uint64_t x = rotate_right(t->x + t->y + t->v[0] + load64(s + 8), 37) * factor;
    uint64_t y = rotate_right(t->y + t->v[1] + load64(s + 48), 42) * factor;
    x ^= t->w[1] * scale;
    y += t->v[0] * scale + load64(s + 40);
    uint64_t z = rotate_right(t->z + t->w[0], 33) * factor;
    absorb_32(s, t->v[1] * factor, x + t->w[0], t->v);
    absorb_32(s + 32, z + t->w[1], y + load64(s + 16), t->w);
    t->x = z;
    t->y = y;
    t->z = x;
}

static uint64_t fingerprint_long(const unsigned char *s, size_t size)
{
    constexpr uint64_t SEED = 81;
    long_state t = {.x = SEED * K2 + load64(s), .y = SEED * K1 + 113};
    t.z = shift_mix(t.y * K2 + 113) * K2;
    size_t tail = (size - 1) & 63, whole = size - 1 - tail;
    for (size_t at = 0; at < whole; at += 64) absorb_64(&t, s + at, K1, 1);
    uint64_t factor = K1 + ((t.z & 0xff) << 1);
    t.w[0] += tail;
    t.v[0] += t.w[0];
    t.w[0] += t.v[0];
    absorb_64(&t, s + size - 64, factor, 9);
    return mix_two(mix_two(t.v[0], t.w[0], factor) + shift_mix(t.y) * K0 + t.z, mix_two(t.v[1], t.w[1], factor) + t.x,
                   factor);
}

uint64_t mr_text_fingerprint(const void *bytes, size_t size_bytes)
{
    if (size_bytes <= 16) return fingerprint_short(bytes, size_bytes);
    return size_bytes <= 64 ? fingerprint_up_to_64(bytes, size_bytes) : fingerprint_long(bytes, size_bytes);
}

uint64_t mr_text_fingerprint_join(uint64_t first, uint64_t second)
{
    constexpr uint64_t FACTOR = 0xc6a4a7935bd1e995;
    uint64_t joined = (first ^ FACTOR ^ shift_mix(second * FACTOR) * FACTOR) * FACTOR;
    return shift_mix(shift_mix(joined) * FACTOR);
}

/* ---- The others ---- */

static uint64_t hash_old(mr_string text)
{
    constexpr uint64_t FACTOR = 0xc6a4a7935bd1e995;
    const unsigned char *s = (const unsigned char *)text.data;
    size_t left = text.size_bytes;
    uint64_t hash = 0xDECAFCAFFE ^ left * FACTOR, rest = 0;
    for (; left >= 8; left -= 8, s += 8) {
        uint64_t word = load64(s) * FACTOR;
        hash = (hash ^ shift_mix(word) * FACTOR) * FACTOR;
    }
    for (size_t i = 0; i < left; i++) rest |= (uint64_t)s[i] << (8 * i);
    if (left > 0) hash = (hash ^ rest) * FACTOR;
    return shift_mix(shift_mix(hash) * FACTOR);
}

static uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int count)
{
    for (; count > 0; count--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32) + v[3];
        v[2] += v[1];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] = rotate_left(v[2], 32);
    }
}

uint64_t mr_text_hash_keyed(const uint64_t key[2], mr_string text)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                     key[1] ^ 0x7465646279746573};
    const unsigned char *s = (const unsigned char *)text.data;
    size_t left = text.size_bytes;
    uint64_t last = (uint64_t)text.size_bytes << 56;
    for (; left >= 8; left -= 8, s += 8) {
        uint64_t word = load64(s);
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    for (size_t i = 0; i < left; i++) last |= (uint64_t)s[i] << (8 * i);
    v[3] ^= last;
    sip_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

typedef enum hash_kind { HASH_OLD, HASH_FAST, HASH_STRONG } hash_kind;

static mr_status hash_all(mr_kernel_call *call, hash_kind kind, const uint64_t *key, mr_error *error)
{
    uint64_t buckets = (uint64_t)mr_attr_int_or(call->node->attrs, "num_buckets", 1);
    if (buckets == 0 || buckets > INT64_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_buckets is less than 1");
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    const mr_string *texts = mr_tensor_strings(&call->inputs[0]);
    for (int64_t i = 0, count = mr_tensor_count(&call->inputs[0]); i < count; i++) {
        uint64_t hash = kind == HASH_OLD    ? hash_old(texts[i])
                        : kind == HASH_FAST ? mr_text_fingerprint(texts[i].data, texts[i].size_bytes)
                                            : mr_text_hash_keyed(key, texts[i]);
        mr_tensor_int64s(&call->outputs[0])[i] = (int64_t)(hash % buckets);
    }
    return MR_OK;
}

static mr_status to_bucket(mr_kernel_call *call, mr_error *error)
{
    return hash_all(call, HASH_OLD, nullptr, error);
}

static mr_status to_bucket_fast(mr_kernel_call *call, mr_error *error)
{
    return hash_all(call, HASH_FAST, nullptr, error);
}

static mr_status prepare_strong(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    const mr_attr *key = mr_attrs_find(node->attrs, "key");
    if (key == nullptr || key->count != 2 || key->kind != MR_ATTR_INT)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Key must have 2 elements");
    for (int i = 0; i < 2; i++) ((uint64_t *)prepared)[i] = (uint64_t)key->values[i].integer;
    return MR_OK;
}

static mr_status to_bucket_strong(mr_kernel_call *call, mr_error *error)
{
    return hash_all(call, HASH_STRONG, call->prepared, error);
}

/* ---- Fingerprint ---- */

/* The fingerprint of a row of strings is that of its elements' fingerprints, unless there is only one. */
static void fingerprint_row(const mr_tensor *data, int64_t row, int64_t width, uint64_t *hashes, uint64_t *result)
{
    size_t size = mr_dtype_size(data->dtype) * (size_t)width;
    if (data->dtype != MR_STRING) {
        *result = mr_text_fingerprint((const char *)data->data + (size_t)row * size, size);
        return;
    }
    const mr_string *texts = mr_tensor_strings(data) + row * width;
    for (int64_t i = 0; i < width; i++) hashes[i] = mr_text_fingerprint(texts[i].data, texts[i].size_bytes);
    *result = width == 1 ? hashes[0] : mr_text_fingerprint(hashes, (size_t)width * sizeof *hashes);
}

static mr_status fingerprint(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *data = &call->inputs[0], *method = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    if (method->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`method` should be a scalar string: %s",
                              mr_shape_text(method->shape, text, sizeof text));
    mr_string name = mr_tensor_strings(method)[0];
    if (!mr_string_equal(name, MR_STR("farmhash64")))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unsupported fingerprint method: %.*s",
                              (int)name.size_bytes, name.data);
    if (data->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`data` should have at least one dimension: %s",
                              mr_shape_text(data->shape, text, sizeof text));
    int64_t rows = data->shape.dims[0], width = mr_dims_product(&data->shape, 1, data->shape.rank);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows, 8), error));
    mr_tensor hashes = {0};
    MR_TRY(mr_tensor_init(&hashes, MR_UINT64, MR_SHAPE(data->dtype == MR_STRING ? width : 0), error));
    for (int64_t i = 0; i < rows; i++) {
        uint64_t result;
        fingerprint_row(data, i, width, hashes.data, &result);
        memcpy(mr_tensor_uint8s(&call->outputs[0]) + 8 * i, &result, sizeof result);
    }
    mr_tensor_deinit(&hashes);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "StringToHashBucket", .run = to_bucket},
    {.op = "StringToHashBucketFast", .run = to_bucket_fast},
    {.op = "StringToHashBucketStrong",
     .run = to_bucket_strong,
     .prepared_size_bytes = 2 * sizeof(uint64_t),
     .prepare = prepare_strong},
    {.op = "Fingerprint",
     .types =
         "T: half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16, "
         "uint32, uint64, string",
     .run = fingerprint},
};
MR_KERNEL_FAMILY(string_hash);
