/* Audio: WAV files and the features of speech recognition. */
#include "graph/ir/op.h"

static mr_status decode_wav_shape(mr_shape_call *call, mr_error *error)
{
    int64_t channels, samples;
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_attr_get_int(call->attrs, "desired_channels", &channels, error));
    MR_TRY(mr_attr_get_int(call->attrs, "desired_samples", &samples, error));
    if (channels < -1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "channels must be non-negative, got %lld", (long long)channels);
    if (samples < -1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "samples must be non-negative, got %lld", (long long)samples);
    call->outputs[0] = MR_SHAPE(samples, channels);
    call->outputs[1] = MR_SCALAR;
    return MR_OK;
}

static mr_status encode_wav_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 2, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    call->outputs[0] = MR_SCALAR;
    return MR_OK;
}

static mr_status spectrogram_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input;
    int64_t window, stride, size = 1, frames = -1;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &input, error));
    MR_TRY(mr_attr_get_int(call->attrs, "window_size", &window, error));
    MR_TRY(mr_attr_get_int(call->attrs, "stride", &stride, error));
    if (window <= 1) return mr_fail(error, MR_INVALID_ARGUMENT, "window size must be > 1, got %lld", (long long)window);
    if (stride <= 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "stride must be strictly positive, got %lld", (long long)stride);
    if (input.dims[0] >= 0) frames = input.dims[0] < window ? 0 : 1 + (input.dims[0] - window) / stride;
    while (size < window && size <= INT32_MAX) size *= 2;
    call->outputs[0] = MR_SHAPE(input.dims[1], frames, size / 2 + 1);
    return MR_OK;
}

static mr_status mfcc_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input;
    int64_t coefficients;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 3, &input, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    MR_TRY(mr_attr_get_int(call->attrs, "dct_coefficient_count", &coefficients, error));
    if (coefficients < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension size, %lld, must be non-negative",
                       (long long)coefficients);
    call->outputs[0] = MR_SHAPE(input.dims[0], input.dims[1], coefficients);
    return MR_OK;
}

static const mr_op audio_ops[] = {
    {.name = "DecodeWav",
     .signature = "contents: string -> audio: float, sample_rate: int32",
     .attrs = "desired_channels: int = -1; desired_samples: int = -1",
     .shape = decode_wav_shape,
     .doc = "Decodes a 16-bit PCM WAV file to [samples, channels] in [-1, 1)."},
    {.name = "EncodeWav",
     .signature = "audio: float, sample_rate: int32 -> contents: string",
     .shape = encode_wav_shape,
     .doc = "Encodes audio [samples, channels] in [-1, 1] as a 16-bit PCM WAV file."},
    {.name = "AudioSpectrogram",
     .signature = "input: float -> spectrogram: float",
     .attrs = "window_size: int; stride: int; magnitude_squared: bool = false",
     .shape = spectrogram_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the magnitudes [channels, frames, bins] of the spectra of Hann windows of input."},
    {.name = "Mfcc",
     .signature = "spectrogram: float, sample_rate: int32 -> output: float",
     .attrs = "upper_frequency_limit: float = 4000; lower_frequency_limit: float = 20; "
              "filterbank_channel_count: int = 40; dct_coefficient_count: int = 13",
     .shape = mfcc_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the Mel-frequency cepstral coefficients of squared magnitudes."},
};

const mr_op_table mr_ops_audio = {audio_ops, sizeof audio_ops / sizeof audio_ops[0]};
