/* AudioSpectrogram and Mfcc (tensorflow/core/kernels/spectrogram.cc, mfcc_mel_filterbank.cc, mfcc_dct.cc): the features
 * of speech recognition, computed in double. */
#include "base/status.h"
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- AudioSpectrogram ---- */

typedef struct spectrogram_job {
    const float *audio; /* [samples, channels] */
    float *output;      /* [channels, frames, bins] */
    int64_t channels, frames, window, stride, size;
    const double *taper;           /* window */
    const double *cosines, *sines; /* size: the roots of unity */
    bool squared;
    int out_of_memory;
} spectrogram_job;

/* A decimation in time of a row whose elements are already in the order of their reversed bits. */
static void transform_row(const spectrogram_job *job, double *re, double *im)
{
    for (int64_t half = 1; half < job->size; half *= 2) {
        int64_t step = job->size / (2 * half);
        for (int64_t begin = 0; begin < job->size; begin += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                int64_t a = begin + k, b = a + half;
                double c = job->cosines[k * step], s = job->sines[k * step];
                double x = re[b] * c + im[b] * s, y = im[b] * c - re[b] * s;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
    }
}

static void spectrogram_rows(void *context, int64_t begin, int64_t end)
{
    spectrogram_job *job = context;
    double *re = calloc((size_t)job->size, 2 * sizeof *re), *im = re + job->size;
    if (re == nullptr) {
        __atomic_store_n(&job->out_of_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    int64_t bins = job->size / 2 + 1;
    for (int64_t i = begin; i < end; i++) {
        const float *first = job->audio + i % job->frames * job->stride * job->channels + i / job->frames;
        float *row = job->output + i * bins;
        for (int64_t k = 0, reversed = 0; k < job->size; k++) {
            re[reversed] = k < job->window ? (double)first[k * job->channels] * job->taper[k] : 0;
            im[k] = 0;
            int64_t bit = job->size / 2;
            for (; bit > 0 && (reversed & bit); bit /= 2) reversed ^= bit;
            reversed |= bit;
        }
        transform_row(job, re, im);
        for (int64_t k = 0; k < bins; k++) {
            float square = (float)(re[k] * re[k] + im[k] * im[k]);
            row[k] = job->squared ? square : sqrtf(square);
        }
    }
    free(re);
}

static mr_status audio_spectrogram(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *audio = &call->inputs[0];
    int64_t window = mr_attr_int_or(call->node->attrs, "window_size", 0);
    int64_t stride = mr_attr_int_or(call->node->attrs, "stride", 0), size = 1;
    char text[MR_SHAPE_TEXT_SIZE];
    if (audio->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 2-dimensional%s",
                              mr_shape_text(audio->shape, text, sizeof text));
    if (window <= 1 || window > INT32_MAX || stride <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Spectrogram initialization failed for window size %" PRId64 " and stride %" PRId64,
                              window, stride);
    int64_t samples = audio->shape.dims[0], channels = audio->shape.dims[1];
    int64_t frames = samples < window ? 0 : 1 + (samples - window) / stride;
    while (size < window) size *= 2;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(channels, frames, size / 2 + 1), error));
    if (channels * frames == 0) return MR_OK;
    double *tables = malloc((size_t)(window + size) * sizeof *tables);
    if (tables == nullptr) return mr_fail_memory(error, (size_t)(window + size) * sizeof *tables);
    spectrogram_job job = {.audio = mr_tensor_floats(audio),
                           .output = mr_tensor_floats(&call->outputs[0]),
                           .channels = channels,
                           .frames = frames,
                           .window = window,
                           .stride = stride,
                           .size = size,
                           .taper = tables,
                           .cosines = tables + window,
                           .sines = tables + window + size / 2,
                           .squared = mr_attr_bool_or(call->node->attrs, "magnitude_squared", false)};
    for (int64_t i = 0; i < window; i++) tables[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)window);
    for (int64_t i = 0; i < size / 2; i++) {
        tables[window + i] = cos(2 * M_PI * (double)i / (double)size);
        tables[window + size / 2 + i] = sin(2 * M_PI * (double)i / (double)size);
    }
    mr_pool_for(call->device->pool, channels * frames, MR_MAX(1, MR_GRAIN / 8 / size), spectrogram_rows, &job);
    free(tables);
    return !job.out_of_memory ? MR_OK : mr_fail_memory(error, (size_t)size * 2 * sizeof(double));
}

/* ---- Mfcc ---- */

/* Triangular filters at equal distances of the mel scale, then a discrete cosine transform. */
typedef struct mfcc_bank {
    int64_t bins, filters, coefficients;
    int64_t first, last; /* bins within the frequency limits */
    double *weights;     /* bins */
    int64_t *channels;   /* bins: the filter that a bin leaves, from -1; the rest of it enters the next one */
    double *cosines;     /* coefficients, filters */
    const float *input;
    float *output;
    int out_of_memory;
} mfcc_bank;

static double to_mel(double hertz)
{
    return 1127.0 * log1p(hertz / 700.0);
}

static void fill_bank(mfcc_bank *bank, double rate, double low, double high)
{
    double mel_low = to_mel(low), spacing = (to_mel(high) - mel_low) / (double)(bank->filters + 1);
    double hertz_per_bin = 0.5 * rate / (double)(bank->bins - 1);
    double first = 1.5 + low / hertz_per_bin, last = high / hertz_per_bin;
    bank->first = first < (double)bank->bins ? (int64_t)first : bank->bins;
    bank->last = last < (double)INT32_MAX ? (int64_t)last : INT32_MAX;
    int64_t channel = 0;
    for (int64_t i = bank->first; i < bank->bins && i <= bank->last; i++) {
        double mel = to_mel((double)i * hertz_per_bin);
        while (channel < bank->filters && mel_low + spacing * (double)(channel + 1) < mel) channel++;
        bank->channels[i] = channel - 1;
        bank->weights[i] = (mel_low + spacing * (double)(channel + 1) - mel) / spacing;
    }
    for (int64_t i = 0; i < bank->coefficients; i++)
        for (int64_t j = 0; j < bank->filters; j++)
            bank->cosines[i * bank->filters + j] =
                sqrt(2.0 / (double)bank->filters) * cos((double)i * M_PI / (double)bank->filters * ((double)j + 0.5));
}

static void mfcc_rows(void *context, int64_t begin, int64_t end)
{
    mfcc_bank *bank = context;
    double *sums = calloc((size_t)bank->filters, sizeof *sums);
    if (sums == nullptr) {
        __atomic_store_n(&bank->out_of_memory, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        const float *input = bank->input + row * bank->bins;
        for (int64_t j = 0; j < bank->filters; j++) sums[j] = 0;
        for (int64_t i = bank->first; i <= bank->last; i++) {
            double value = sqrt((double)input[i]), part = value * bank->weights[i];
            int64_t channel = bank->channels[i];
            if (channel >= 0) sums[channel] += part;
            if (channel + 1 < bank->filters) sums[channel + 1] += value - part;
        }
        for (int64_t j = 0; j < bank->filters; j++) sums[j] = log(sums[j] < 1e-12 ? 1e-12 : sums[j]);
        for (int64_t i = 0; i < bank->coefficients; i++) {
            double sum = 0;
            for (int64_t j = 0; j < bank->filters; j++) sum += bank->cosines[i * bank->filters + j] * sums[j];
            bank->output[row * bank->coefficients + i] = (float)sum;
        }
    }
    free(sums);
}

static mr_status mfcc(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    const mr_attrs *attrs = call->node->attrs;
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t rate;
    double low = (double)mr_attr_float_or(attrs, "lower_frequency_limit", 20);
    double high = (double)mr_attr_float_or(attrs, "upper_frequency_limit", 4000);
    if (input->shape.rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "spectrogram must be 3-dimensional%s",
                              mr_shape_text(input->shape, text, sizeof text));
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input sample_rate should be a scalar tensor, got %s instead.",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    MR_TRY(mr_kernel_int(call, 1, "sample_rate", &rate, error));
    mfcc_bank bank = {.bins = input->shape.dims[2],
                      .filters = mr_attr_int_or(attrs, "filterbank_channel_count", 40),
                      .coefficients = mr_attr_int_or(attrs, "dct_coefficient_count", 13),
                      .input = mr_tensor_floats(input)};
    bool good = bank.filters >= 1 && rate > 0 && bank.bins >= 2 && low >= 0 && high > low && bank.coefficients >= 1 &&
                bank.coefficients <= bank.filters && bank.filters <= INT32_MAX / 16;
    if (!good)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Mfcc initialization failed for channel count %" PRId64 ", sample rate %" PRId64
                              " and filterbank_channel_count %" PRId64,
                              bank.bins, rate, bank.filters);
    int64_t rows = input->shape.dims[0] * input->shape.dims[1];
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(input->shape.dims[0], input->shape.dims[1], bank.coefficients), error));
    if (rows == 0) return MR_OK;
    bank.output = mr_tensor_floats(&call->outputs[0]);
    size_t numbers = (size_t)bank.bins + (size_t)bank.coefficients * (size_t)bank.filters;
    bank.weights = calloc(numbers, sizeof *bank.weights);
    bank.channels = calloc((size_t)bank.bins, sizeof *bank.channels);
    bool has_memory = bank.weights != nullptr && bank.channels != nullptr;
    if (has_memory) {
        bank.cosines = bank.weights + bank.bins;
        fill_bank(&bank, (double)rate, low, high);
        if (bank.last >= bank.bins) /* too few bins for the highest frequency */
            memset(bank.output, 0, mr_tensor_size_bytes(&call->outputs[0]));
        else
            mr_pool_for(call->device->pool, rows, MR_MAX(1, MR_GRAIN / 8 / bank.bins), mfcc_rows, &bank);
    }
    free(bank.weights);
    free(bank.channels);
    return has_memory && !bank.out_of_memory ? MR_OK : mr_fail_memory(error, numbers * sizeof *bank.weights);
}

static const mr_kernel kernels[] = {
    {.op = "AudioSpectrogram", .run = audio_spectrogram},
    {.op = "Mfcc", .run = mfcc},
};
MR_KERNEL_FAMILY(spectrogram);
