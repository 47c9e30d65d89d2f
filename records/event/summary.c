/* Builds Summary messages from values. The messages borrow all their data and are packed immediately. */
#include "records/event/summary.h"

#include "proto/event.pb-c.h"
#include "proto/proto.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Initializes a Summary with an array of count initialized values. */
static mr_status begin(Mr__Summary *message, int64_t count, mr_arena *arena, mr_error *error)
{
    size_t length = (size_t)count;
    mr__summary__init(message);
    Mr__Summary__Value *values = MR_ARENA_NEW(arena, Mr__Summary__Value, length);
    message->value = MR_ARENA_NEW(arena, Mr__Summary__Value *, length);
    if (values == nullptr || message->value == nullptr) return mr_fail_memory(error, length * sizeof *values);
    for (size_t i = 0; i < length; i++) {
        mr__summary__value__init(&values[i]);
        message->value[i] = &values[i];
    }
    message->n_value = length;
    return MR_OK;
}

static mr_status set_tag(Mr__Summary__Value *value, char *tag, mr_error *error)
{
    value->tag = tag;
    return tag != nullptr ? MR_OK : mr_fail_memory(error, 1);
}

mr_status mr_summary_pack_scalars(const mr_string *tags, const float *values, int64_t count, mr_arena *arena,
                                  mr_string *summary, mr_error *error)
{
    Mr__Summary message;
    MR_TRY(begin(&message, count, arena, error));
    for (int64_t i = 0; i < count; i++) {
        MR_TRY(set_tag(message.value[i], mr_arena_strndup(arena, tags[i].data, tags[i].size_bytes), error));
        message.value[i]->value_case = MR__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        message.value[i]->simple_value = values[i];
    }
    return mr_proto_pack(&message, arena, summary, error);
}

/* ---- Histograms ---- */

void mr_histogram_init(mr_histogram *histogram)
{
    constexpr int middle = MR_HISTOGRAM_BUCKETS / 2;
    *histogram = (mr_histogram){.min = DBL_MAX, .max = -DBL_MAX};
    double limit = 1e-12;
    /* The product is rounded after each step, as in TensorFlow. */
    for (int i = 1; i < middle; i++, limit *= 1.1) {
        histogram->limits[middle + i] = limit;
        histogram->limits[middle - i] = -limit;
    }
    histogram->limits[2 * middle] = DBL_MAX;
    histogram->limits[0] = -DBL_MAX;
}

void mr_histogram_add(mr_histogram *histogram, double value)
{
    int low = 0, high = MR_HISTOGRAM_BUCKETS - 1;
    while (low < high) { /* the first limit above value */
        int middle = (low + high) / 2;
        if (histogram->limits[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    assert(low >= 0 && low < MR_HISTOGRAM_BUCKETS);
    histogram->counts[low] += 1;
    if (value < histogram->min) histogram->min = value;
    if (value > histogram->max) histogram->max = value;
    histogram->number += 1;
    histogram->sum += value;
    histogram->sum_squares += value * value;
}

mr_status mr_summary_pack_histogram(mr_string tag, const mr_histogram *histogram, mr_arena *arena, mr_string *summary,
                                    mr_error *error)
{
    double *limits = MR_ARENA_NEW(arena, double, MR_HISTOGRAM_BUCKETS);
    double *counts = MR_ARENA_NEW(arena, double, MR_HISTOGRAM_BUCKETS);
    if (limits == nullptr || counts == nullptr) return mr_fail_memory(error, MR_HISTOGRAM_BUCKETS * sizeof *limits);
    size_t length = 0;
    for (int i = 0; i < MR_HISTOGRAM_BUCKETS;) {
        double limit = histogram->limits[i], count = histogram->counts[i];
        i++;
        if (count <= 0)
            for (; i < MR_HISTOGRAM_BUCKETS && histogram->counts[i] <= 0; i++) limit = histogram->limits[i];
        limits[length] = limit;
        counts[length++] = count;
    }
    assert(length > 0 && length <= MR_HISTOGRAM_BUCKETS);
    Mr__HistogramProto proto = MR__HISTOGRAM_PROTO__INIT;
    proto.min = histogram->min;
    proto.max = histogram->max;
    proto.num = histogram->number;
    proto.sum = histogram->sum;
    proto.sum_squares = histogram->sum_squares;
    proto.bucket_limit = limits;
    proto.bucket = counts;
    proto.n_bucket_limit = proto.n_bucket = length;
    Mr__Summary message;
    MR_TRY(begin(&message, 1, arena, error));
    MR_TRY(set_tag(message.value[0], mr_arena_strndup(arena, tag.data, tag.size_bytes), error));
    message.value[0]->value_case = MR__SUMMARY__VALUE__VALUE_HISTO;
    message.value[0]->histo = &proto;
    return mr_proto_pack(&message, arena, summary, error);
}

/* ---- Images ---- */

mr_status mr_summary_pack_images(mr_string tag, const mr_summary_encoded_image *images, int32_t count, bool is_single,
                                 mr_arena *arena, mr_string *summary, mr_error *error)
{
    Mr__Summary message;
    const char *name = mr_arena_strndup(arena, tag.data, tag.size_bytes);
    Mr__Summary__Image *messages = MR_ARENA_NEW(arena, Mr__Summary__Image, (size_t)count);
    if (name == nullptr || messages == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *messages);
    MR_TRY(begin(&message, count, arena, error));
    for (int32_t i = 0; i < count; i++) {
        char *own =
            is_single ? mr_arena_printf(arena, "%s/image", name) : mr_arena_printf(arena, "%s/image/%d", name, i);
        MR_TRY(set_tag(message.value[i], own, error));
        mr__summary__image__init(&messages[i]);
        messages[i].height = images[i].height;
        messages[i].width = images[i].width;
        messages[i].colorspace = images[i].channels;
        messages[i].encoded_image_string.data = (uint8_t *)images[i].encoded.data;
        messages[i].encoded_image_string.len = images[i].encoded.size_bytes;
        message.value[i]->value_case = MR__SUMMARY__VALUE__VALUE_IMAGE;
        message.value[i]->image = &messages[i];
    }
    return mr_proto_pack(&message, arena, summary, error);
}

/* ---- Audio ---- */

mr_status mr_summary_pack_audio(mr_string tag, const mr_string *encoded, int32_t count, bool is_single, float rate,
                                int64_t channels, int64_t frames, mr_arena *arena, mr_string *summary, mr_error *error)
{
    Mr__Summary message;
    const char *name = mr_arena_strndup(arena, tag.data, tag.size_bytes);
    char *type = mr_arena_printf(arena, "audio/wav");
    Mr__Summary__Audio *messages = MR_ARENA_NEW(arena, Mr__Summary__Audio, (size_t)count);
    if (name == nullptr || type == nullptr || messages == nullptr)
        return mr_fail_memory(error, (size_t)count * sizeof *messages);
    MR_TRY(begin(&message, count, arena, error));
    for (int32_t i = 0; i < count; i++) {
        char *own =
            is_single ? mr_arena_printf(arena, "%s/audio", name) : mr_arena_printf(arena, "%s/audio/%d", name, i);
        MR_TRY(set_tag(message.value[i], own, error));
        mr__summary__audio__init(&messages[i]);
        messages[i].sample_rate = rate;
        messages[i].num_channels = channels;
        messages[i].length_frames = frames;
        messages[i].content_type = type;
        messages[i].encoded_audio_string.data = (uint8_t *)encoded[i].data;
        messages[i].encoded_audio_string.len = encoded[i].size_bytes;
        message.value[i]->value_case = MR__SUMMARY__VALUE__VALUE_AUDIO;
        message.value[i]->audio = &messages[i];
    }
    return mr_proto_pack(&message, arena, summary, error);
}

/* ---- Merge ---- */

static int compare_tags(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static mr_status check_tags(const Mr__Summary *message, mr_arena *arena, mr_error *error)
{
    const char **tags = MR_ARENA_NEW(arena, const char *, message->n_value);
    if (tags == nullptr) return mr_fail_memory(error, message->n_value * sizeof *tags);
    for (size_t i = 0; i < message->n_value; i++) tags[i] = message->value[i]->tag;
    qsort(tags, message->n_value, sizeof *tags, compare_tags);
    for (size_t i = 1; i < message->n_value; i++)
        if (tags[i][0] != '\0' && strcmp(tags[i - 1], tags[i]) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Duplicate tag %.200s found in summary inputs", tags[i]);
    return MR_OK;
}

mr_status mr_summary_pack_merged(const mr_string *summaries, int64_t count, mr_arena *arena, mr_string *summary,
                                 mr_error *error)
{
    Mr__Summary merged = MR__SUMMARY__INIT;
    Mr__Summary **parts = MR_ARENA_NEW(arena, Mr__Summary *, (size_t)count);
    if (parts == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *parts);
    for (int64_t i = 0; i < count; i++) {
        if (mr_proto_unpack_as(summary, summaries[i], arena, &parts[i], error) != MR_OK)
            return mr_fail_prefix(error, MR_INVALID_ARGUMENT, "Could not parse one of the summary inputs: summary %lld",
                                  (long long)i);
        merged.n_value += parts[i]->n_value;
    }
    merged.value = MR_ARENA_NEW(arena, Mr__Summary__Value *, merged.n_value);
    if (merged.value == nullptr) return mr_fail_memory(error, merged.n_value * sizeof *merged.value);
    size_t length = 0;
    for (int64_t i = 0; i < count; i++)
        for (size_t j = 0; j < parts[i]->n_value; j++) merged.value[length++] = parts[i]->value[j];
    assert(length == merged.n_value);
    MR_TRY(check_tags(&merged, arena, error));
    return mr_proto_pack(&merged, arena, summary, error);
}
