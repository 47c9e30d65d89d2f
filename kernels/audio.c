/* DecodeWav and EncodeWav (tensorflow/core/lib/wav/wav_io.cc). */
#include "base/bytes.h"
#include "kernels/common.h"
#include "kernels/wav.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

constexpr size_t HEADER_BYTES = 44;

static void store(unsigned char *to, uint32_t value, int size_bytes)
{
    for (int i = 0; i < size_bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
}

mr_status mr_wav_encode(const float *audio, int64_t frames, int64_t channels, int64_t rate, mr_arena *arena,
                        mr_string *encoded, mr_error *error)
{
    int64_t samples;
    if (rate <= 0 || rate > UINT32_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "sample_rate must be in (0, 2^32), got: %" PRId64, rate);
    if (channels <= 0 || channels > UINT16_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "num_channels must be in (0, 2^16), got: %" PRId64, channels);
    if (__builtin_mul_overflow(frames, channels, &samples) || samples > (int64_t)(UINT32_MAX - HEADER_BYTES) / 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Provided channels and frames cannot be encoded as a WAV.");
    size_t size_bytes = HEADER_BYTES + (size_t)samples * 2;
    unsigned char *bytes = mr_arena_alloc(arena, size_bytes);
    if (!bytes) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a WAV of %zu bytes", size_bytes);
    memcpy(bytes, "RIFF", 4);
    store(bytes + 4, (uint32_t)(size_bytes - 8), 4);
    memcpy(bytes + 8, "WAVEfmt ", 8);
    store(bytes + 16, 16, 4);
    store(bytes + 20, 1, 2); /* PCM */
    store(bytes + 22, (uint32_t)channels, 2);
    store(bytes + 24, (uint32_t)rate, 4);
    store(bytes + 28, (uint32_t)((uint64_t)rate * (uint64_t)channels * 2), 4);
    store(bytes + 32, (uint32_t)channels * 2, 2);
    store(bytes + 34, 16, 2);
    memcpy(bytes + 36, "data", 4);
    store(bytes + 40, (uint32_t)samples * 2, 4);
    for (int64_t i = 0; i < samples; i++) {
        float scaled = roundf(audio[i] * 32768.0f);
        int32_t sample = scaled > -32768.0f ? scaled < 32767.0f ? (int32_t)scaled : 32767 : -32768;
        store(bytes + HEADER_BYTES + 2 * i, (uint32_t)sample, 2);
    }
    *encoded = (mr_string){(const char *)bytes, size_bytes};
    return MR_OK;
}

static mr_status encode_wav(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *audio = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t rate;
    if (audio->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "audio must be 2-dimensional%s",
                              mr_shape_text(audio->shape, text, sizeof text));
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input sample_rate should be a scalar tensor, got %s instead.",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    MR_TRY(mr_kernel_int(call, 1, "sample_rate", &rate, error));
    if (mr_tensor_count(audio) >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Cannot encode audio with >= max int32 elements");
    mr_arena arena = {0};
    mr_string encoded = {0};
    mr_status status = mr_wav_encode(mr_tensor_floats(audio), audio->shape.dims[0], audio->shape.dims[1], rate, &arena,
                                     &encoded, error);
    if (status == MR_OK)
        status = mr_tensor_init_string(&call->outputs[0], encoded, error);
    else
        status = mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Decoding ---- */

typedef struct wav {
    const unsigned char *bytes;
    size_t size_bytes, at;
    uint32_t channels, rate;
    const unsigned char *samples;
    int64_t frames;
} wav;

/* The next bytes, or an error in TensorFlow's words. */
static mr_status take(const mr_kernel_call *call, wav *w, size_t size_bytes, const unsigned char **bytes,
                      mr_error *error)
{
    if (size_bytes > w->size_bytes - w->at)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Data too short when trying to read string");
    *bytes = w->bytes + w->at;
    w->at += size_bytes;
    return MR_OK;
}

static mr_status expect(const mr_kernel_call *call, wav *w, const char *text, mr_error *error)
{
    const unsigned char *found;
    MR_TRY(take(call, w, 4, &found, error));
    if (memcmp(found, text, 4) == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Header mismatch: Expected %s but found %.4s", text,
                          (const char *)found);
}

/* Skips chunks of other programs up to "fmt ". */
static mr_status find_format(const mr_kernel_call *call, wav *w, mr_error *error)
{
    static const char known[][5] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
    for (;;) {
        const unsigned char *name, *size;
        bool is_known = false;
        MR_TRY(take(call, w, 4, &name, error));
        if (memcmp(name, "fmt ", 4) == 0) return MR_OK;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) is_known |= memcmp(name, known[i], 4) == 0;
        if (!is_known)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unexpected field %.4s", (const char *)name);
        MR_TRY(take(call, w, 4, &size, error));
        MR_TRY(take(call, w, mr_load_le32(size), &size, error));
    }
}

static mr_status read_format(const mr_kernel_call *call, wav *w, mr_error *error)
{
    const unsigned char *size, *format;
    MR_TRY(take(call, w, 4, &size, error));
    uint32_t size_bytes = mr_load_le32(size);
    if (size_bytes != 16 && size_bytes != 18)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Bad format chunk size for WAV: Expected 16 or 18, but got%" PRIu32, size_bytes);
    MR_TRY(take(call, w, 16, &format, error));
    uint32_t kind = mr_load_le16(format), bits = mr_load_le16(format + 14);
    w->channels = mr_load_le16(format + 2);
    w->rate = mr_load_le32(format + 4);
    if (kind != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Bad audio format for WAV: Expected 1 (PCM), but got%" PRIu32, kind);
    if (w->channels < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Bad number of channels for WAV: Expected at least 1, but got 0");
    if (bits != 16)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Can only read 16-bit WAV files, but received %" PRIu32, bits);
    if (mr_load_le16(format + 12) != w->channels * 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Bad bytes per sample in WAV header: Expected %" PRIu32 " but got %" PRIu32,
                              w->channels * 2, (uint32_t)mr_load_le16(format + 12));
    if (mr_load_le32(format + 8) != w->channels * 2 * w->rate)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Bad bytes per second in WAV header: Expected %" PRIu32 " but got %" PRIu32,
                              w->channels * 2 * w->rate, mr_load_le32(format + 8));
    return size_bytes == 18 ? take(call, w, 2, &format, error) : MR_OK;
}

static mr_status read_wav(const mr_kernel_call *call, wav *w, mr_error *error)
{
    const unsigned char *skipped;
    MR_TRY(expect(call, w, "RIFF", error));
    MR_TRY(take(call, w, 4, &skipped, error));
    MR_TRY(expect(call, w, "WAVE", error));
    MR_TRY(find_format(call, w, error));
    MR_TRY(read_format(call, w, error));
    while (w->at < w->size_bytes) {
        const unsigned char *name, *size;
        MR_TRY(take(call, w, 4, &name, error));
        MR_TRY(take(call, w, 4, &size, error));
        uint32_t size_bytes = mr_load_le32(size);
        if (size_bytes > INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "WAV data chunk '%.4s' is too large: %" PRIu32 " bytes, but the limit is %d",
                                  (const char *)name, size_bytes, INT32_MAX);
        if (memcmp(name, "data", 4) != 0) {
            w->at += MR_MIN(size_bytes, w->size_bytes - w->at);
            continue;
        }
        if (w->samples)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "More than one data chunk found in WAV");
        w->frames = size_bytes / (w->channels * 2);
        MR_TRY(take(call, w, (size_t)w->frames * w->channels * 2, &w->samples, error));
    }
    if (!w->samples) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "No data chunk found in WAV");
    return MR_OK;
}

static mr_status decode_wav(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *contents = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (contents->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "contents must be scalar, got shape %s",
                              mr_shape_text(contents->shape, text, sizeof text));
    mr_string bytes = mr_tensor_strings(contents)[0];
    wav w = {.bytes = (const unsigned char *)bytes.data, .size_bytes = bytes.size_bytes};
    MR_TRY(read_wav(call, &w, error));
    int64_t channels = mr_attr_int_or(call->node->attrs, "desired_channels", -1);
    int64_t frames = mr_attr_int_or(call->node->attrs, "desired_samples", -1);
    if (channels < -1 || frames < -1 || channels > INT32_MAX || frames > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "desired_channels or desired_samples is out of range");
    if (channels < 0) channels = w.channels;
    if (frames < 0) frames = w.frames;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(frames, channels), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SCALAR, error));
    float *target = mr_tensor_floats(&call->outputs[0]);
    for (int64_t i = 0; i < frames && channels > 0; i++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t from = i * w.channels + MR_MIN(c, (int64_t)w.channels - 1);
            *target++ = i < w.frames ? (float)(int16_t)mr_load_le16(w.samples + 2 * from) * (1.0f / 32768) : 0;
        }
    mr_tensor_int32s(&call->outputs[1])[0] = (int32_t)w.rate;
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "DecodeWav", .run = decode_wav},
    {.op = "EncodeWav", .run = encode_wav},
};
MR_KERNEL_FAMILY(audio);
