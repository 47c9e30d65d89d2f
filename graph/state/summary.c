/* ScalarSummary, HistogramSummary, ImageSummary, AudioSummary, TensorSummary, MergeSummary: convert tensors to
 * serialized Summary messages. */
#include "graph/state/state.h"

#include "graph/ir/convert.h"
#include "graph/state/number.h"
#include "kernels/wav.h"
#include "proto/event.pb-c.h"
#include "proto/proto.h"
#include "records/event/summary.h"
#include <math.h>
#include <millrace/image.h>
#include <string.h>

static mr_status put(mr_kernel_call *call, mr_arena *arena, mr_status status, mr_string summary, mr_error *error)
{
    if (status == MR_OK) status = mr_tensor_init_string(&call->outputs[0], summary, error);
    mr_arena_deinit(arena);
    return status;
}

static mr_status scalar_summary(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *tags = &call->inputs[0], *values = &call->inputs[1];
    int64_t count = mr_tensor_count(values);
    char tag_shape[MR_SHAPE_TEXT_SIZE], value_shape[MR_SHAPE_TEXT_SIZE];
    if (!mr_shape_equal(tags->shape, values->shape)) {
        bool has_tag = mr_tensor_count(tags) == 1;
        mr_string tag = has_tag ? mr_tensor_strings(tags)[0] : (mr_string){0};
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "tags and values are not the same shape: %s != %s%s%.*s%s",
                              mr_shape_text(tags->shape, tag_shape, sizeof tag_shape),
                              mr_shape_text(values->shape, value_shape, sizeof value_shape), has_tag ? " (tag '" : "",
                              (int)tag.size_bytes, has_tag ? tag.data : "", has_tag ? "')" : "");
    }
    mr_arena arena = {0};
    mr_string summary = {0};
    float *numbers = MR_ARENA_NEW(&arena, float, (size_t)count + 1);
    if (!numbers) return mr_fail_memory(error, (size_t)count * sizeof *numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = (float)mr_number_at(values, i);
    mr_status status = mr_summary_pack_scalars(mr_tensor_strings(tags), numbers, count, &arena, &summary, error);
    return put(call, &arena, status, summary, error);
}

static mr_status one_tag(mr_kernel_call *call, mr_string *tag, mr_error *error)
{
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tags must be scalar");
    *tag = mr_tensor_strings(&call->inputs[0])[0];
    return MR_OK;
}

static mr_status histogram_summary(mr_kernel_call *call, mr_error *error)
{
    mr_string tag;
    MR_TRY(one_tag(call, &tag, error));
    const mr_tensor *values = &call->inputs[1];
    mr_arena arena = {0};
    mr_string summary = {0};
    mr_histogram *histogram = MR_ARENA_NEW(&arena, mr_histogram, 1);
    if (!histogram) return mr_fail_memory(error, sizeof *histogram);
    mr_histogram_init(histogram);
    mr_status status = MR_OK;
    for (int64_t i = 0, count = mr_tensor_count(values); status == MR_OK && i < count; i++) {
        double value = mr_number_at(values, i);
        if (!isfinite(value))
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s in summary histogram for: %.*s",
                                    isnan(value) ? "Nan" : "Infinity", (int)tag.size_bytes, tag.data);
        else
            mr_histogram_add(histogram, value);
    }
    if (status == MR_OK) status = mr_summary_pack_histogram(tag, histogram, &arena, &summary, error);
    return put(call, &arena, status, summary, error);
}

/* TensorFlow's scaling of a float image. With negative values, the largest magnitude maps to 127 around 128; otherwise
 * the largest value maps to 255. A pixel that is not finite gets the bad color. */
static void normalize_image(const mr_tensor *values, int64_t begin, int64_t pixels, int channels,
                            const uint8_t *bad_color, uint8_t *target)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < pixels * channels; i++) {
        float value = (float)mr_number_at(values, begin + i);
        if (!isfinite(value)) continue;
        least = fminf(least, value);
        most = fmaxf(most, value);
    }
    float scale, offset = 0;
    if (least < 0) {
        float largest = fmaxf(fabsf(least), fabsf(most));
        scale = largest < 1e-6f ? 0 : 127.0f / largest;
        offset = 128.0f;
    } else {
        scale = most < 1e-6f ? 0 : 255.0f / most;
    }
    for (int64_t i = 0; i < pixels; i++) {
        bool finite = true;
        for (int c = 0; c < channels; c++)
            finite &= isfinite((float)mr_number_at(values, begin + i * channels + c)) != 0;
        for (int c = 0; c < channels; c++)
            target[i * channels + c] =
                finite ? (uint8_t)((float)mr_number_at(values, begin + i * channels + c) * scale + offset)
                       : bad_color[c];
    }
}

static mr_status encode_image(mr_kernel_call *call, int64_t index, const uint8_t *bad_color, mr_tensor *encoded,
                              mr_error *error)
{
    const mr_tensor *images = &call->inputs[1];
    int64_t height = images->shape.dims[1], width = images->shape.dims[2], channels = images->shape.dims[3];
    mr_tensor pixels = {0};
    MR_TRY(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(height, width, channels), error));
    int64_t size = height * width * channels;
    if (images->dtype == MR_UINT8)
        memcpy(pixels.data, mr_tensor_uint8s(images) + index * size, (size_t)size);
    else
        normalize_image(images, index * size, height * width, (int)channels, bad_color, pixels.data);
    mr_status status = mr_image_encode_png(&pixels, encoded, error);
    mr_tensor_deinit(&pixels);
    return status;
}

static mr_status image_summary(mr_kernel_call *call, mr_error *error)
{
    mr_string tag;
    MR_TRY(one_tag(call, &tag, error));
    const mr_tensor *images = &call->inputs[1];
    const mr_shape shape = images->shape;
    char text[MR_SHAPE_TEXT_SIZE];
    bool fits = shape.rank == 4 && shape.dims[1] > 0 && shape.dims[2] > 0 && shape.dims[1] <= INT32_MAX &&
                shape.dims[2] <= INT32_MAX;
    if (!fits || (shape.dims[3] != 1 && shape.dims[3] != 3 && shape.dims[3] != 4))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                              mr_shape_text(shape, text, sizeof text));
    uint8_t bad_color[4] = {255, 0, 0, 255};
    const mr_tensor *bad = nullptr;
    mr_error ignored = {0};
    if (mr_attr_get_tensor(call->node->attrs, "bad_color", &bad, &ignored) == MR_OK && bad->dtype == MR_UINT8)
        memcpy(bad_color, bad->data, (size_t)(mr_tensor_count(bad) < 4 ? mr_tensor_count(bad) : 4));
    if (call->node->input_count > 2) { /* WriteImageSummary */
        bad = &call->inputs[2];
        memcpy(bad_color, bad->data, (size_t)(mr_tensor_count(bad) < 4 ? mr_tensor_count(bad) : 4));
    }
    int64_t most = mr_attr_int_or(call->node->attrs, "max_images", 3);
    int64_t count = shape.dims[0] < most ? shape.dims[0] : most;
    mr_arena arena = {0};
    mr_string summary = {0};
    mr_summary_encoded_image *packed = MR_ARENA_NEW(&arena, mr_summary_encoded_image, (size_t)count + 1);
    mr_tensor *encoded = MR_ARENA_NEW(&arena, mr_tensor, (size_t)count + 1);
    mr_status status = packed && encoded ? MR_OK : mr_fail_memory(error, (size_t)count * sizeof *packed);
    for (int64_t i = 0; status == MR_OK && i < count; i++) {
        status = encode_image(call, i, bad_color, &encoded[i], error);
        if (status != MR_OK) break;
        packed[i] = (mr_summary_encoded_image){.height = (int32_t)shape.dims[1],
                                               .width = (int32_t)shape.dims[2],
                                               .channels = (int32_t)shape.dims[3],
                                               .encoded = mr_tensor_strings(&encoded[i])[0]};
    }
    if (status == MR_OK)
        status = mr_summary_pack_images(tag, packed, (int32_t)count, most == 1, &arena, &summary, error);
    if (status == MR_OK) status = mr_tensor_init_string(&call->outputs[0], summary, error);
    for (int64_t i = 0; encoded && i < count; i++) mr_tensor_deinit(&encoded[i]);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status audio_summary(mr_kernel_call *call, mr_error *error)
{
    mr_string tag;
    MR_TRY(one_tag(call, &tag, error));
    const mr_tensor *audio = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    if (audio->shape.rank < 2 || audio->shape.rank > 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Tensor must be 3-D or 2-D, got: %s",
                              mr_shape_text(audio->shape, text, sizeof text));
    float rate = mr_attr_float_or(call->node->attrs, "sample_rate", 0);
    if (call->node->input_count > 2 && mr_tensor_count(&call->inputs[2]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "sample_rate must be a scalar");
    if (call->node->input_count > 2) rate = mr_tensor_floats(&call->inputs[2])[0];
    if (!(rate > 0)) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "sample_rate must be > 0");
    int64_t most = mr_attr_int_or(call->node->attrs, "max_outputs", 3);
    int64_t count = audio->shape.dims[0] < most ? audio->shape.dims[0] : most, frames = audio->shape.dims[1];
    int64_t channels = audio->shape.rank == 2 ? 1 : audio->shape.dims[2];
    int64_t whole = rate < 0x1p40f ? (int64_t)lrintf(rate) : INT64_MAX;
    mr_arena arena = {0};
    mr_string summary = {0};
    if (count > INT32_MAX) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "too many clips");
    mr_string *encoded = MR_ARENA_NEW(&arena, mr_string, (size_t)count + 1);
    mr_status status = encoded ? MR_OK : mr_fail_memory(error, (size_t)count * sizeof *encoded);
    for (int64_t i = 0; status == MR_OK && i < count; i++) {
        status = mr_wav_encode(mr_tensor_floats(audio) + i * frames * channels, frames, channels,
                               whole == 0 ? 1 : whole, &arena, &encoded[i], error);
        if (status != MR_OK) status = mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
    }
    if (status == MR_OK)
        status = mr_summary_pack_audio(tag, encoded, (int32_t)count, most == 1, rate, channels, frames, &arena,
                                       &summary, error);
    return put(call, &arena, status, summary, error);
}

/* Packs a tensor with a tag and metadata (V2), or with the node's name. */
static mr_status pack_tensor(mr_kernel_call *call, mr_arena *arena, mr_string *summary, mr_error *error)
{
    bool is_tagged = call->node->input_count == 3;
    Mr__Summary message = MR__SUMMARY__INIT;
    Mr__Summary__Value value = MR__SUMMARY__VALUE__INIT, *values[] = {&value};
    Mr__SummaryMetadata *metadata = nullptr;
    message.value = values;
    message.n_value = 1;
    char *name = mr_arena_printf(arena, "%s", call->node->name);
    if (is_tagged) {
        mr_string tag = mr_tensor_strings(&call->inputs[0])[0], bytes = mr_tensor_strings(&call->inputs[2])[0];
        name = mr_arena_strndup(arena, tag.data, tag.size_bytes);
        metadata = mr__summary_metadata__unpack(nullptr, bytes.size_bytes, (const uint8_t *)bytes.data);
        if (!metadata)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "serialized_summary_metadata is not a SummaryMetadata message");
    }
    if (is_tagged)
        value.tag = name;
    else
        value.node_name = name;
    value.metadata = metadata;
    value.value_case = MR__SUMMARY__VALUE__VALUE_TENSOR;
    mr_status status = name ? mr_tensor_write(&call->inputs[is_tagged ? 1 : 0], arena, &value.tensor, error)
                            : mr_fail_memory(error, 1);
    if (status == MR_OK) status = mr_proto_pack(&message, arena, summary, error);
    if (metadata) mr__summary_metadata__free_unpacked(metadata, nullptr);
    return status;
}

static mr_status tensor_summary(mr_kernel_call *call, mr_error *error)
{
    for (int i = 0; i < call->node->input_count && call->node->input_count == 3; i += 2)
        if (mr_tensor_count(&call->inputs[i]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be scalar",
                                  i == 0 ? "tag" : "serialized_summary_metadata");
    mr_arena arena = {0};
    mr_string summary = {0};
    mr_status status = pack_tensor(call, &arena, &summary, error);
    return put(call, &arena, status, summary, error);
}

static mr_status merge_summary(mr_kernel_call *call, mr_error *error)
{
    int64_t total = 0, at = 0;
    for (int32_t i = 0; i < call->node->input_count; i++) total += mr_tensor_count(&call->inputs[i]);
    mr_arena arena = {0};
    mr_string summary = {0};
    mr_string *parts = MR_ARENA_NEW(&arena, mr_string, (size_t)total + 1);
    if (!parts) return mr_fail_memory(error, (size_t)total * sizeof *parts);
    for (int32_t i = 0; i < call->node->input_count; i++)
        for (int64_t j = 0; j < mr_tensor_count(&call->inputs[i]); j++)
            parts[at++] = mr_tensor_strings(&call->inputs[i])[j];
    mr_status status = mr_summary_pack_merged(parts, total, &arena, &summary, error);
    return put(call, &arena, status, summary, error);
}

static const mr_kernel kernels[] = {
    {.op = "ScalarSummary", .run = scalar_summary},   {.op = "HistogramSummary", .run = histogram_summary},
    {.op = "ImageSummary", .run = image_summary},     {.op = "AudioSummary", .run = audio_summary},
    {.op = "AudioSummaryV2", .run = audio_summary},   {.op = "TensorSummary", .run = tensor_summary},
    {.op = "TensorSummaryV2", .run = tensor_summary}, {.op = "MergeSummary", .run = merge_summary},
};
const mr_kernel_table mr_state_kernels_summary = {kernels, sizeof kernels / sizeof kernels[0]};
