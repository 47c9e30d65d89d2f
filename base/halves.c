#include "base/halves.h"

#include "base/cpu.h"
#include <assert.h>
#if MR_CPU_X86
#include <immintrin.h>
#endif

static void widen_half(float *target, const uint16_t *source, int64_t count)
{
    for (int64_t i = 0; i < count; i++) target[i] = mr_half_to_float(source[i]);
}

static void widen_bfloat16(float *target, const uint16_t *source, int64_t count)
{
    for (int64_t i = 0; i < count; i++) target[i] = mr_bfloat16_to_float(source[i]);
}

static void narrow_half(uint16_t *target, const float *source, int64_t count)
{
    for (int64_t i = 0; i < count; i++) target[i] = mr_float_to_half(source[i]);
}

static void narrow_bfloat16(uint16_t *target, const float *source, int64_t count)
{
    for (int64_t i = 0; i < count; i++) target[i] = mr_float_to_bfloat16(source[i]);
}

#if MR_CPU_X86
/* Widening keeps the payload of a NaN, which the instruction makes quiet; narrowing drops it, which the instruction
 * keeps. */
MR_TARGET_AVX2 static void widen_half_avx2(float *target, const uint16_t *source, int64_t count)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m128i words = _mm_loadu_si128((const __m128i *)(source + i));
        const __m256i bits = _mm256_cvtepu16_epi32(words),
                      magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fff));
        const __m256i special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7c00));
        const __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(bits, magnitude), 16);
        const __m256i payload = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x3ff)), 13);
        const __m256i nan = _mm256_or_si256(_mm256_or_si256(sign, payload), _mm256_set1_epi32(0x7f800000));
        _mm256_storeu_ps(target + i, _mm256_blendv_ps(_mm256_cvtph_ps(words), _mm256_castsi256_ps(nan),
                                                      _mm256_castsi256_ps(special)));
    }
    widen_half(target + i, source + i, count - i);
}

MR_TARGET_AVX2 static void widen_bfloat16_avx2(float *target, const uint16_t *source, int64_t count)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(source + i)));
        _mm256_storeu_si256((__m256i *)(target + i), _mm256_slli_epi32(bits, 16));
    }
    widen_bfloat16(target + i, source + i, count - i);
}

MR_TARGET_AVX2 static __m256i pack_words(__m256i bits)
{
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
}

MR_TARGET_AVX2 static void narrow_half_avx2(uint16_t *target, const float *source, int64_t count)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 value = _mm256_loadu_ps(source + i);
        const __m256i quiet = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
        const __m256i sign = _mm256_srli_epi32(_mm256_castps_si256(value), 31);
        const __m256i nan = _mm256_or_si256(_mm256_slli_epi32(sign, 15), _mm256_set1_epi32(0x7e00));
        const __m128i words = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
        const __m128i chosen = _mm_packs_epi32(_mm256_castsi256_si128(quiet), _mm256_extracti128_si256(quiet, 1));
        _mm_storeu_si128((__m128i *)(target + i),
                         _mm_blendv_epi8(words, _mm256_castsi256_si128(pack_words(nan)), chosen));
    }
    narrow_half(target + i, source + i, count - i);
}

MR_TARGET_AVX2 static void narrow_bfloat16_avx2(uint16_t *target, const float *source, int64_t count)
{
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 value = _mm256_loadu_ps(source + i);
        const __m256i bits = _mm256_castps_si256(value),
                      odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i round = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
        const __m256i nan =
            _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(bits, 31), 31), _mm256_set1_epi32(0x7fc00000));
        const __m256 rounded = _mm256_castsi256_ps(_mm256_add_epi32(bits, round));
        const __m256 chosen =
            _mm256_blendv_ps(rounded, _mm256_castsi256_ps(nan), _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
        const __m256i words = pack_words(_mm256_srli_epi32(_mm256_castps_si256(chosen), 16));
        _mm_storeu_si128((__m128i *)(target + i), _mm256_castsi256_si128(words));
    }
    narrow_bfloat16(target + i, source + i, count - i);
}
#else
#define widen_half_avx2 widen_half
#define widen_bfloat16_avx2 widen_bfloat16
#define narrow_half_avx2 narrow_half
#define narrow_bfloat16_avx2 narrow_bfloat16
#endif

void mr_halves_to_floats(float *target, const uint16_t *source, int64_t count, mr_dtype half)
{
    const bool is_plain = mr_cpu() == MR_CPU_PLAIN;
    assert(count >= 0 && mr_is_half(half));
    if (half == MR_HALF)
        (is_plain ? widen_half : widen_half_avx2)(target, source, count);
    else
        (is_plain ? widen_bfloat16 : widen_bfloat16_avx2)(target, source, count);
}

void mr_floats_to_halves(uint16_t *target, const float *source, int64_t count, mr_dtype half)
{
    const bool is_plain = mr_cpu() == MR_CPU_PLAIN;
    assert(count >= 0 && mr_is_half(half));
    if (half == MR_HALF)
        (is_plain ? narrow_half : narrow_half_avx2)(target, source, count);
    else
        (is_plain ? narrow_bfloat16 : narrow_bfloat16_avx2)(target, source, count);
}
