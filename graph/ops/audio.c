/* Audio: WAV files. */
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
};

const mr_op_table mr_ops_audio = {audio_ops, sizeof audio_ops / sizeof audio_ops[0]};
