/* Values written to event files without a graph: histograms, images, audio and text. */
#include "graph/ir/convert.h"
#include "graph/state/number.h"
#include "kernels/wav.h"
#include "proto/event.pb-c.h"
#include "records/event/event.h"
#include "records/event/summary.h"

#include <math.h>
#include <millrace/image.h>
#include <string.h>

static mr_status fail(const mr_event_writer *writer, const char *tag, mr_error *error, mr_status status)
{
    return mr_fail_prefix(error, status, "%s: %s", mr_event_writer_path(writer), tag);
}

static mr_status add_value(mr_event_writer *writer, int64_t step, const char *tag, Mr__Summary__Value *value,
                           mr_error *error)
{
    Mr__Summary__Value *values[] = {value};
    Mr__Summary summary = MR__SUMMARY__INIT;
    mr_arena arena = {0};
    mr_string bytes = {0};
    value->tag = (char *)tag;
    summary.n_value = 1;
    summary.value = values;
    mr_status status = mr_proto_pack(&summary, &arena, &bytes, error);
    if (status == MR_OK) status = mr_event_writer_add(writer, step, bytes, error);
    mr_arena_deinit(&arena);
    return status;
}

static bool is_real(mr_dtype dtype)
{
    switch (dtype) {
    case MR_FLOAT:
    case MR_DOUBLE:
    case MR_HALF:
    case MR_BFLOAT16:
    case MR_INT8:
    case MR_UINT8:
    case MR_INT16:
    case MR_UINT16:
    case MR_INT32:
    case MR_UINT32:
    case MR_INT64:
    case MR_UINT64:
        return true;
    default:
        return false;
    }
}

static mr_status count_values(const mr_tensor *values, mr_histogram *histogram, mr_error *error)
{
    mr_histogram_init(histogram);
    for (int64_t i = 0, count = mr_tensor_count(values); i < count; i++) {
        double value = mr_number_at(values, i);
        if (!isfinite(value))
            return mr_fail(error, MR_INVALID_ARGUMENT, "value %lld of the histogram is %s", (long long)i,
                           isnan(value) ? "NaN" : "infinite");
        mr_histogram_add(histogram, value);
    }
    return MR_OK;
}

mr_status mr_event_writer_add_histogram(mr_event_writer *writer, int64_t step, const char *tag, const mr_tensor *values,
                                        mr_error *error)
{
    mr_arena arena = {0};
    mr_string summary = {0};
    MR_TRY(mr_event_writer_check_tag(writer, tag, error));
    if (values == nullptr || !is_real(values->dtype)) {
        (void)mr_fail(error, MR_INVALID_ARGUMENT, "a histogram is of numbers, not of dtype %s",
                      mr_dtype_name(values != nullptr ? values->dtype : MR_DTYPE_INVALID));
        return fail(writer, tag, error, MR_INVALID_ARGUMENT);
    }
    mr_histogram *histogram = MR_ARENA_NEW(&arena, mr_histogram, 1);
    mr_status status =
        histogram != nullptr ? count_values(values, histogram, error) : mr_fail_memory(error, sizeof *histogram);
    if (status == MR_OK) status = mr_summary_pack_histogram(mr_string_from(tag), histogram, &arena, &summary, error);
    if (status != MR_OK)
        status = fail(writer, tag, error, status);
    else
        status = mr_event_writer_add(writer, step, summary, error);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status encode(const mr_tensor *image, mr_tensor *encoded, mr_image_info *info, mr_error *error)
{
    bool is_encoded = image != nullptr && image->dtype == MR_STRING && image->shape.rank == 0 && image->data != nullptr;
    if (!is_encoded) {
        char text[MR_SHAPE_TEXT_SIZE];
        const mr_shape shape = image != nullptr ? image->shape : MR_SHAPE_UNKNOWN;
        int64_t channels = shape.rank == 3 ? shape.dims[2] : 0;
        if (image == nullptr || image->dtype != MR_UINT8 || (channels != 1 && channels != 3 && channels != 4) ||
            mr_tensor_count(image) <= 0)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "an image has dtype uint8 and shape [height, width, 1, 3 or 4], not %s and %s",
                           mr_dtype_name(image != nullptr ? image->dtype : MR_DTYPE_INVALID),
                           mr_shape_text(shape, text, sizeof text));
        MR_TRY(mr_image_encode_png(image, encoded, error));
    } else {
        *encoded = mr_tensor_ref(image);
    }
    mr_string bytes = mr_tensor_strings(encoded)[0];
    return mr_image_probe(bytes.data, bytes.size_bytes, info, error);
}

mr_status mr_event_writer_add_image(mr_event_writer *writer, int64_t step, const char *tag, const mr_tensor *image,
                                    mr_error *error)
{
    Mr__Summary__Image message = MR__SUMMARY__IMAGE__INIT;
    Mr__Summary__Value value = MR__SUMMARY__VALUE__INIT;
    mr_tensor encoded = {0};
    mr_image_info info = {0};
    MR_TRY(mr_event_writer_check_tag(writer, tag, error));
    mr_status status = encode(image, &encoded, &info, error);
    if (status != MR_OK) {
        status = fail(writer, tag, error, status);
    } else {
        mr_string bytes = mr_tensor_strings(&encoded)[0];
        message.height = info.height;
        message.width = info.width;
        message.colorspace = info.channels;
        message.encoded_image_string = (ProtobufCBinaryData){bytes.size_bytes, (uint8_t *)bytes.data};
        value.value_case = MR__SUMMARY__VALUE__VALUE_IMAGE;
        value.image = &message;
        status = add_value(writer, step, tag, &value, error);
    }
    mr_tensor_deinit(&encoded);
    return status;
}

static mr_status check_audio(const mr_tensor *audio, float sample_rate, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (audio == nullptr || audio->dtype != MR_FLOAT || audio->shape.rank < 1 || audio->shape.rank > 2)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "audio has dtype float and shape [frames] or [frames, channels], not %s and %s",
                       mr_dtype_name(audio != nullptr ? audio->dtype : MR_DTYPE_INVALID),
                       mr_shape_text(audio != nullptr ? audio->shape : MR_SHAPE_UNKNOWN, text, sizeof text));
    if (!(sample_rate >= 1 && sample_rate < 0x1p32f))
        return mr_fail(error, MR_INVALID_ARGUMENT, "sample_rate is %g, but must be in [1, 2^32)", (double)sample_rate);
    return MR_OK;
}

mr_status mr_event_writer_add_audio(mr_event_writer *writer, int64_t step, const char *tag, const mr_tensor *audio,
                                    float sample_rate, mr_error *error)
{
    Mr__Summary__Audio message = MR__SUMMARY__AUDIO__INIT;
    Mr__Summary__Value value = MR__SUMMARY__VALUE__INIT;
    mr_arena arena = {0};
    mr_string encoded = {0};
    MR_TRY(mr_event_writer_check_tag(writer, tag, error));
    mr_status status = check_audio(audio, sample_rate, error);
    if (status != MR_OK) return fail(writer, tag, error, status);
    int64_t frames = audio->shape.dims[0], channels = audio->shape.rank == 2 ? audio->shape.dims[1] : 1;
    status = mr_wav_encode(audio->data, frames, channels, (int64_t)llrintf(sample_rate), &arena, &encoded, error);
    if (status != MR_OK) {
        status = fail(writer, tag, error, status);
    } else {
        message.sample_rate = sample_rate;
        message.num_channels = channels;
        message.length_frames = frames;
        message.content_type = (char *)"audio/wav";
        message.encoded_audio_string = (ProtobufCBinaryData){encoded.size_bytes, (uint8_t *)encoded.data};
        value.value_case = MR__SUMMARY__VALUE__VALUE_AUDIO;
        value.audio = &message;
        status = add_value(writer, step, tag, &value, error);
    }
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_event_writer_add_text(mr_event_writer *writer, int64_t step, const char *tag, const char *text,
                                   mr_error *error)
{
    Mr__SummaryMetadata__PluginData plugin = MR__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Mr__SummaryMetadata metadata = MR__SUMMARY_METADATA__INIT;
    Mr__Summary__Value value = MR__SUMMARY__VALUE__INIT;
    mr_tensor tensor = {0};
    mr_arena arena = {0};
    MR_TRY(mr_event_writer_check_tag(writer, tag, error));
    plugin.plugin_name = (char *)"text";
    metadata.plugin_data = &plugin;
    value.metadata = &metadata;
    value.value_case = MR__SUMMARY__VALUE__VALUE_TENSOR;
    mr_status status = mr_tensor_init_string(&tensor, mr_string_from(text != nullptr ? text : ""), error);
    if (status == MR_OK) status = mr_tensor_write(&tensor, &arena, &value.tensor, error);
    if (status == MR_OK) status = add_value(writer, step, tag, &value, error);
    mr_tensor_deinit(&tensor);
    mr_arena_deinit(&arena);
    return status;
}
