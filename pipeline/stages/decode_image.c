/* decode_image: decodes an image to pixels, with crop or pad, resize, flip and normalization in the same pass. If only
 * other decoding follows, the decoder writes directly to the element's row of the batch. */
#include "base/options.h"
#include "kernels/image/image_rows.h"
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct decode_settings {
    mr_decode_options options;
    mr_image_options image; /* options.image is null */
} decode_settings;

static uint64_t digest_color(uint64_t digest, const mr_color_jitter *color)
{
    const float numbers[] = {color->brightness,     color->contrast_min,   color->contrast_max,
                             color->saturation_min, color->saturation_max, color->hue};
    for (int i = 0; i < 6; i++) digest = mr_digest_float(digest, numbers[i]);
    for (int i = 0; i < 4; i++) digest = mr_digest(digest, (uint64_t)color->order[i]);
    return digest;
}

static uint64_t decode_digest(const mr_dataset *dataset)
{
    const decode_settings *s = dataset->settings;
    const mr_decode_options *o = &s->options;
    const mr_image_options *i = &s->image;
    const uint64_t numbers[] = {o->seed,
                                (uint64_t)o->component,
                                (uint64_t)i->height,
                                (uint64_t)i->width,
                                (uint64_t)i->channels,
                                (uint64_t)i->crop,
                                (uint64_t)i->dtype,
                                (uint64_t)i->padding,
                                (uint64_t)i->padding_mode,
                                i->random_flip_left_right,
                                (uint64_t)i->method,
                                (uint64_t)i->layout,
                                i->accurate_dct,
                                i->accept_truncated,
                                i->accept_damaged,
                                (uint64_t)i->pixels_max,
                                i->approximate_scale};
    const float floats[] = {i->fraction, i->area_min, i->area_max, i->aspect_min, i->aspect_max, i->mean[0],
                            i->mean[1],  i->mean[2],  i->std[0],   i->std[1],     i->std[2]};
    uint64_t digest = 5;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) digest = mr_digest(digest, numbers[k]);
    for (size_t k = 0; k < sizeof floats / sizeof *floats; k++) digest = mr_digest_float(digest, floats[k]);
    return digest_color(digest, &i->color);
}

static mr_shape pixels_shape(const mr_image_options *options, int64_t height, int64_t width)
{
    return options->layout == MR_LAYOUT_NCHW ? MR_SHAPE(options->channels, height, width)
                                             : MR_SHAPE(height, width, options->channels);
}

/* Smaller amounts are not reserved in advance. */
constexpr size_t RESERVED_BYTES = (size_t)1 << 20;

/* Memory of images that can only be decoded completely: the coefficients of a progressive JPEG, or the pixels of an
 * interlaced PNG. */
static size_t held_bytes(const mr_image_info *info)
{
    if (!info->is_progressive) return 0;
    size_t sample_bytes = info->format == MR_IMAGE_JPEG ? sizeof(int16_t) : (size_t)info->bits / 8;
    return (size_t)info->width * (size_t)info->height * (size_t)info->channels * sample_bytes;
}

static mr_status decode_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                             mr_error *error)
{
    const decode_settings *s = work->dataset->settings;
    const mr_image_options *image = &s->image;
    int32_t component = s->options.component;
    assert(component < workspace->count && workspace->values[component].dtype == MR_STRING);
    mr_value *value = &workspace->values[component];
    mr_string bytes = *(const mr_string *)value->data;
    mr_image_info info = {0};
    if (workspace->image == nullptr) MR_TRY(mr_image_scratch_new(&workspace->image, error));
    mr_image_scratch_stop(workspace->image, workspace->stop);
    MR_TRY(mr_image_probe(bytes.data, bytes.size_bytes, &info, error));
    mr_random random = mr_random_at(work->seed, epoch, number, work->purpose);
    mr_image_region region = mr_image_choose(image, info.width, info.height, &random);
    bool is_sized = image->height > 0;
    int64_t pixels_max = image->pixels_max > 0 ? image->pixels_max : 100000000;
    if (!is_sized && (int64_t)info.width * info.height > pixels_max)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the image has %d x %d pixels, expected at most %lld", info.width,
                       info.height, (long long)pixels_max);
    void *row = work->is_last ? workspace->rows[component] : nullptr;
    mr_tensor pixels = {0};
    mr_shape shape = pixels_shape(image, is_sized ? image->height : info.height, is_sized ? image->width : info.width);
    size_t pixels_bytes = row != nullptr ? 0 : (size_t)mr_shape_count(shape) * mr_dtype_size(image->dtype);
    size_t full_bytes = pixels_bytes + held_bytes(&info);
    if (full_bytes >= RESERVED_BYTES) workspace->reserve(workspace, full_bytes);
    if (row == nullptr) {
        MR_TRY(mr_tensor_init(&pixels, image->dtype, shape, error));
    }
    mr_status status = mr_image_decode_region(bytes.data, bytes.size_bytes, image, region,
                                              row != nullptr ? row : pixels.data, workspace->image, error);
    if (status != MR_OK) {
        mr_tensor_deinit(&pixels);
        return status;
    }
    mr_value_deinit(value);
    if (row == nullptr)
        mr_value_take(value, &pixels);
    else
        *value = (mr_value){.dtype = image->dtype, .shape = shape, .data = row, .is_in_row = true};
    return MR_OK;
}

static const mr_dataset_kind decode_kind = {
    .name = "decode_image", .role = MR_ROLE_WORK, .digest = decode_digest, .work = decode_work, .reserves = true};

mr_dataset *mr_dataset_decode_image_(mr_dataset *input, const mr_decode_options *given)
{
    mr_decode_options options;
    input = MR_DATASET_READ(mr_decode_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&decode_kind, input, sizeof(decode_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    decode_settings *s = dataset->settings;
    mr_image_options *image = &s->image;
    mr_error error = {0};
    if (MR_OPTIONS_READ(mr_image_options, image, options.image, &error) != MR_OK)
        return mr_dataset_fail_with(dataset, &error);
    options.image = nullptr;
    s->options = options;
    if (image->channels == 0) image->channels = 3;
    if (image->dtype == MR_DTYPE_INVALID) image->dtype = MR_FLOAT;
    if (mr_dataset_failed(mr_dataset_check_threads(dataset, options.num_parallel_calls))) return dataset;
    int32_t c = options.component;
    if (c < 0 || c >= input->spec.count)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "decode_image: component is %d, expected less than %d", c,
                               input->spec.count);
    if (input->spec.dtypes[c] != MR_STRING || input->spec.shapes[c].rank != 0)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "decode_image: component %d must be a string scalar; decode before batch", c);
    mr_status status = mr_image_check(image, &error);
    if (status != MR_OK) {
        (void)mr_fail_prefix(&error, status, "decode_image");
        return mr_dataset_fail_with(dataset, &error);
    }
    int32_t height = image->height, width = image->width;
    bool is_sized = height > 0;
    if (is_sized && (int64_t)height * width > 100000000)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "decode_image: %d x %d pixels exceed the maximum of 100000000", height, width);
    dataset->spec.dtypes[c] = image->dtype;
    dataset->spec.shapes[c] = pixels_shape(image, is_sized ? height : -1, is_sized ? width : -1);
    dataset->is_heavy = true;
    dataset->seed = options.seed;
    return dataset;
}

int32_t mr_decode_threads(const mr_dataset *dataset)
{
    return dataset->kind == &decode_kind ? ((const decode_settings *)dataset->settings)->options.num_parallel_calls : 0;
}

bool mr_decode_keeps(const mr_dataset *dataset)
{
    return dataset->kind == &decode_kind;
}
