/* Finds markers in a JPEG's data and removes stuffed zeros.
 *
 * An image has a stuffed zero every 100 to 300 bytes, so complete vectors are copied and truncated after their first
 * 0xff. The search for a marker compares two loads, one byte apart, to find a 0xff that is not followed by 0. */
#include "kernels/image/jpeg_bytes.h"

#include <stdint.h>
#if MR_CPU_X86
#include <immintrin.h>
#endif

static size_t unstuff_plain(unsigned char *target, size_t capacity, const unsigned char **source,
                            const unsigned char *end)
{
    const unsigned char *from = *source;
    size_t count = 0;
    while (count < capacity && from < end) {
        if (*from == 0xff) {
            if (end - from < 2 || from[1] != 0) break;
            from++;
            target[count++] = 0xff;
        } else {
            target[count++] = *from;
        }
        from++;
    }
    *source = from;
    return count;
}

static const unsigned char *find_plain(const unsigned char *source, const unsigned char *end)
{
    for (; end - source >= 2; source++)
        if (source[0] == 0xff && source[1] != 0) return source;
    return nullptr;
}

static const mr_jpeg_bytes_table plain = {unstuff_plain, find_plain};

#if MR_CPU_X86

/* One more byte must follow a vector, to determine what its last 0xff is. */
MR_TARGET_AVX2 static size_t unstuff_avx2(unsigned char *target, size_t capacity, const unsigned char **source,
                                          const unsigned char *end)
{
    const unsigned char *from = *source;
    const __m256i ones = _mm256_set1_epi8(-1);
    size_t count = 0;
    while (count < capacity && end - from > 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)from);
        _mm256_storeu_si256((__m256i *)(target + count), bytes);
        uint32_t stops = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, ones));
        if (stops == 0) {
            size_t taken = capacity - count < 32 ? capacity - count : 32;
            from += taken;
            count += taken;
            continue;
        }
        size_t before = (size_t)__builtin_ctz(stops);
        if (before >= capacity - count) {
            from += capacity - count;
            count = capacity;
            break;
        }
        from += before;
        count += before;
        if (from[1] != 0) {
            *source = from;
            return count;
        }
        from += 2;
        count++;
    }
    *source = from;
    return count + unstuff_plain(target + count, capacity - count, source, end);
}

MR_TARGET_AVX2 static const unsigned char *find_avx2(const unsigned char *source, const unsigned char *end)
{
    const __m256i ones = _mm256_set1_epi8(-1), zero = _mm256_setzero_si256();
    for (; end - source > 32; source += 32) {
        __m256i first = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)source), ones);
        __m256i second = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(source + 1)), zero);
        uint32_t found = (uint32_t)_mm256_movemask_epi8(_mm256_andnot_si256(second, first));
        if (found != 0) return source + __builtin_ctz(found);
    }
    return find_plain(source, end);
}

static const mr_jpeg_bytes_table avx2 = {unstuff_avx2, find_avx2};

MR_TARGET_AVX512 static const unsigned char *find_avx512(const unsigned char *source, const unsigned char *end)
{
    const __m512i ones = _mm512_set1_epi8(-1);
    for (; end - source > 64; source += 64) {
        __mmask64 first = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(source), ones);
        __m512i next = _mm512_loadu_si512(source + 1);
        __mmask64 found = _mm512_mask_test_epi8_mask(first, next, next);
        if (found != 0) return source + __builtin_ctzll(found);
    }
    return find_plain(source, end);
}

/* Longer vectors would be truncated most of the time. */
static const mr_jpeg_bytes_table avx512 = {unstuff_avx2, find_avx512};

const mr_jpeg_bytes_table *mr_jpeg_bytes(mr_cpu_level level)
{
    return level >= MR_CPU_AVX512 ? &avx512 : level >= MR_CPU_AVX2 ? &avx2 : &plain;
}

#else

const mr_jpeg_bytes_table *mr_jpeg_bytes(mr_cpu_level level)
{
    (void)level;
    return &plain;
}

#endif
