/* WAV files with 16-bit PCM samples. */
#ifndef MR_KERNELS_WAV_H
#define MR_KERNELS_WAV_H

#include "base/arena.h"
#include <millrace/tensor.h>

/* Encodes frames of interleaved channels; samples are rounded and clipped to 16 bits.
 * encoded  allocated from the arena
 * errors   MR_INVALID_ARGUMENT: a rate of 0, no or more than 65,535 channels, or more than 4 GiB */
mr_status mr_wav_encode(const float *audio, int64_t frames, int64_t channels, int64_t rate, mr_arena *arena,
                        mr_string *encoded, mr_error *error);

#endif
