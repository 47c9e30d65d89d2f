/* CRC32C: the Castagnoli polynomial 0x1edc6f41, bit-reflected, as in iSCSI, ext4 and TFRecord.
 *
 * There are three implementations. The plain one processes eight bytes per step with eight lookup tables, which the
 * compiler computes. With SSE4.2, the crc32 instruction processes eight bytes but has a latency of three cycles, so
 * three adjacent blocks are processed in parallel and combined by a carry-less multiplication. With AVX-512 and
 * VPCLMULQDQ, sixteen 128-bit lanes are folded forward by 256 bytes per step, which is faster than memory.
 *
 * Combining and folding: advancing a remainder a by n bits gives a·x^n mod P. The carry-less product of two reflected
 * values is multiplied by an extra x, and crc32 of a 64-bit word multiplies it by x^32 and reduces it. The constants
 * for a distance of n bits are therefore x^(n-33) and, for the word 64 bits further on, x^(n+31).
 * tests/records/crc32c_test.c verifies them by long division. */
#include "records/io/crc32c.h"

#include "base/bytes.h"
#include "base/cpu.h"

#include <millrace/record.h>

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#if MR_CPU_X86
#include <cpuid.h>
#include <immintrin.h>
#endif

/* ---- Plain ---- */

/* Remainders advanced by one bit and by the eight bits of a byte. a0 … a7 are the first table's entries for the bytes
 * with only bit 0 … 7 set, b0 … b7 those of the second table, and so on. */
#define STEP(value) (((value) >> 1) ^ (0x82f63b78u & (0u - ((value) & 1u))))
#define CHAIN8(name, before)                                                                                           \
    static constexpr uint32_t name##7 = STEP(before);                                                                  \
    static constexpr uint32_t name##6 = STEP(name##7);                                                                 \
    static constexpr uint32_t name##5 = STEP(name##6);                                                                 \
    static constexpr uint32_t name##4 = STEP(name##5);                                                                 \
    static constexpr uint32_t name##3 = STEP(name##4);                                                                 \
    static constexpr uint32_t name##2 = STEP(name##3);                                                                 \
    static constexpr uint32_t name##1 = STEP(name##2);                                                                 \
    static constexpr uint32_t name##0 = STEP(name##1)
CHAIN8(a, 1u);
CHAIN8(b, a0);
CHAIN8(c, b0);
CHAIN8(d, c0);
CHAIN8(e, d0);
CHAIN8(f, e0);
CHAIN8(g, f0);
CHAIN8(h, g0);

/* The tables are linear: the entry of a byte is the sum of the entries of its bits. */
#define BIT(z, i, j) ((i) >> j & 1u ? z##j : 0u)
#define ENTRY(z, i)                                                                                                    \
    (BIT(z, i, 0) ^ BIT(z, i, 1) ^ BIT(z, i, 2) ^ BIT(z, i, 3) ^ BIT(z, i, 4) ^ BIT(z, i, 5) ^ BIT(z, i, 6) ^          \
     BIT(z, i, 7))
#define ENTRIES4(z, i) ENTRY(z, i), ENTRY(z, i + 1), ENTRY(z, i + 2), ENTRY(z, i + 3)
#define ENTRIES16(z, i) ENTRIES4(z, i), ENTRIES4(z, i + 4), ENTRIES4(z, i + 8), ENTRIES4(z, i + 12)
#define ENTRIES64(z, i) ENTRIES16(z, i), ENTRIES16(z, i + 16), ENTRIES16(z, i + 32), ENTRIES16(z, i + 48)
#define TABLE(z) {ENTRIES64(z, 0u), ENTRIES64(z, 64u), ENTRIES64(z, 128u), ENTRIES64(z, 192u)}

/* tables[t][byte]: the remainder of the byte followed by t zero bytes. */
static const uint32_t tables[8][256] = {TABLE(a), TABLE(b), TABLE(c), TABLE(d), TABLE(e), TABLE(f), TABLE(g), TABLE(h)};

static uint32_t crc32c_plain(uint32_t crc, const void *bytes, size_t size_bytes)
{
    const unsigned char *next = bytes;
    crc = ~crc;
    for (; size_bytes >= 8; size_bytes -= 8, next += 8) {
        crc = tables[7][(crc ^ next[0]) & 0xff] ^ tables[6][(crc >> 8 ^ next[1]) & 0xff] ^
              tables[5][(crc >> 16 ^ next[2]) & 0xff] ^ tables[4][crc >> 24 ^ next[3]] ^ tables[3][next[4]] ^
              tables[2][next[5]] ^ tables[1][next[6]] ^ tables[0][next[7]];
    }
    for (; size_bytes > 0; size_bytes--, next++) crc = crc >> 8 ^ tables[0][(crc ^ *next) & 0xff];
    return ~crc;
}

static bool always(void)
{
    return true;
}

#if MR_CPU_X86

/* ---- SSE4.2: three blocks in parallel ---- */

/* x^(n-33) and x^(n+31) mod P, reflected, for a distance of n bits; SHIFT_… is the former, with the distance in
 * bytes. */
static constexpr uint32_t SHIFT_128_BYTES = 0x0d3b6092;
static constexpr uint32_t SHIFT_256_BYTES = 0xb9e02b86;
static constexpr uint32_t SHIFT_1024_BYTES = 0x170076fa;
static constexpr uint32_t SHIFT_2048_BYTES = 0xa51b6135;
static constexpr uint32_t FOLD_128_LOW = 0xf20c0dfe;
static constexpr uint32_t FOLD_128_HIGH = 0x493c7d27;
static constexpr uint32_t FOLD_512_LOW = 0x740eef02;
static constexpr uint32_t FOLD_512_HIGH = 0x9e4addf8;
static constexpr uint32_t FOLD_2048_LOW = 0xdcb17aa4;
static constexpr uint32_t FOLD_2048_HIGH = 0xb9e02b86;

#define TARGET_SSE __attribute__((target("sse4.2,crc32,pclmul")))

/* The remainder advanced by n bits, not yet reduced; shift is x^(n-33), reflected. */
TARGET_SSE static inline uint64_t shifted(uint64_t crc, uint32_t shift)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int32_t)shift), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Processes three blocks of block_bytes each, a multiple of 8. far and near: the shifts over two blocks and over
 * one. */
TARGET_SSE static inline uint64_t three_blocks(uint64_t crc, const unsigned char *bytes, size_t block_bytes,
                                               uint32_t far, uint32_t near)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < block_bytes; i += 8) {
        crc = _mm_crc32_u64(crc, mr_load_le64(bytes + i));
        second = _mm_crc32_u64(second, mr_load_le64(bytes + block_bytes + i));
        third = _mm_crc32_u64(third, mr_load_le64(bytes + 2 * block_bytes + i));
    }
    return _mm_crc32_u64(0, shifted(crc, far) ^ shifted(second, near)) ^ third;
}

TARGET_SSE static inline uint32_t tail(uint64_t crc, const unsigned char *next, size_t size_bytes)
{
    for (; size_bytes >= 8; size_bytes -= 8, next += 8) crc = _mm_crc32_u64(crc, mr_load_le64(next));
    if (size_bytes & 4) {
        uint32_t word;
        memcpy(&word, next, 4);
        crc = _mm_crc32_u32((uint32_t)crc, word);
        next += 4;
    }
    if (size_bytes & 2) {
        uint16_t word;
        memcpy(&word, next, 2);
        crc = _mm_crc32_u16((uint32_t)crc, word);
        next += 2;
    }
    if (size_bytes & 1) crc = _mm_crc32_u8((uint32_t)crc, *next);
    return ~(uint32_t)crc;
}

TARGET_SSE static uint32_t crc32c_sse42(uint32_t crc, const void *bytes, size_t size_bytes)
{
    const unsigned char *next = bytes;
    uint64_t state = ~crc;
    for (; size_bytes >= 3 * 1024; size_bytes -= 3 * 1024, next += 3 * 1024)
        state = three_blocks(state, next, 1024, SHIFT_2048_BYTES, SHIFT_1024_BYTES);
    for (; size_bytes >= 3 * 128; size_bytes -= 3 * 128, next += 3 * 128)
        state = three_blocks(state, next, 128, SHIFT_256_BYTES, SHIFT_128_BYTES);
    return tail(state, next, size_bytes);
}

static bool has_sse42(void)
{
    /* mr_cpu's AVX2 level requires more than this function, but respects the user's limit. */
    return mr_cpu() >= MR_CPU_AVX2;
}

/* ---- AVX-512 and VPCLMULQDQ: folding ---- */

#define TARGET_FOLD                                                                                                    \
    __attribute__((target(MR_TARGET_EVEX512 "avx512f,avx512vl,avx512bw,avx512dq,vpclmulqdq,sse4.2,crc32,pclmul")))

/* Advances each 128-bit lane of value by the distance of the constants, and adds the data there. */
TARGET_FOLD static inline __m512i fold512(__m512i value, __m512i constants, __m512i there)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, constants, 0x00),
                                     _mm512_clmulepi64_epi128(value, constants, 0x11), there, 0x96);
}

TARGET_FOLD static inline __m128i fold128(__m128i value, __m128i constants, __m128i there)
{
    return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(value, constants, 0x00),
                                  _mm_clmulepi64_si128(value, constants, 0x11), there, 0x96);
}

TARGET_FOLD static uint32_t crc32c_fold512(uint32_t crc, const void *bytes, size_t size_bytes)
{
    const unsigned char *next = bytes;
    uint64_t state = ~crc;
    if (size_bytes >= 256) {
        __m512i x0 =
            _mm512_xor_si512(_mm512_loadu_si512(next), _mm512_zextsi128_si512(_mm_cvtsi64_si128((int64_t)state)));
        __m512i x1 = _mm512_loadu_si512(next + 64);
        __m512i x2 = _mm512_loadu_si512(next + 128);
        __m512i x3 = _mm512_loadu_si512(next + 192);
        const __m512i by2048 = _mm512_broadcast_i32x4(_mm_setr_epi32((int)FOLD_2048_LOW, 0, (int)FOLD_2048_HIGH, 0));
        const __m512i by512 = _mm512_broadcast_i32x4(_mm_setr_epi32((int)FOLD_512_LOW, 0, (int)FOLD_512_HIGH, 0));
        next += 256;
        size_bytes -= 256;
        for (; size_bytes >= 256; size_bytes -= 256, next += 256) {
            x0 = fold512(x0, by2048, _mm512_loadu_si512(next));
            x1 = fold512(x1, by2048, _mm512_loadu_si512(next + 64));
            x2 = fold512(x2, by2048, _mm512_loadu_si512(next + 128));
            x3 = fold512(x3, by2048, _mm512_loadu_si512(next + 192));
        }
        x1 = fold512(x0, by512, x1);
        x2 = fold512(x1, by512, x2);
        x3 = fold512(x2, by512, x3);
        for (; size_bytes >= 64; size_bytes -= 64, next += 64) x3 = fold512(x3, by512, _mm512_loadu_si512(next));
        /* Advances lanes 0, 1, 2 by 384, 256, 128 bits to lane 3. */
        const __m128i by128 = _mm_setr_epi32((int)FOLD_128_LOW, 0, (int)FOLD_128_HIGH, 0);
        __m128i y = _mm512_castsi512_si128(x3);
        y = fold128(y, by128, _mm512_extracti32x4_epi32(x3, 1));
        y = fold128(y, by128, _mm512_extracti32x4_epi32(x3, 2));
        y = fold128(y, by128, _mm512_extracti32x4_epi32(x3, 3));
        state = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(y));
        state = _mm_crc32_u64(state, (uint64_t)_mm_extract_epi64(y, 1));
    }
    return tail(state, next, size_bytes);
}

static bool has_fold512(void)
{
    /* Leaf 7: VPCLMULQDQ is bit 10 of ecx. */
    unsigned eax, ebx, ecx, edx;
    return mr_cpu() >= MR_CPU_AVX512 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx >> 10 & 1);
}

#endif

const mr_crc32c_variant mr_crc32c_variants[] = {
    {"plain", crc32c_plain, always},
#if MR_CPU_X86
    {"sse4.2", crc32c_sse42, has_sse42},
    {"avx512", crc32c_fold512, has_fold512},
#endif
};
const int mr_crc32c_variant_count = sizeof(mr_crc32c_variants) / sizeof(mr_crc32c_variants[0]);

uint32_t mr_crc32c(uint32_t crc, const void *bytes, size_t size_bytes)
{
    /* 1 + index of the best variant. Threads that detect it concurrently get the same result. */
    static atomic_int best = 0;
    int choice = atomic_load_explicit(&best, memory_order_relaxed);
    if (choice == 0) {
        choice = mr_crc32c_variant_count;
        while (!mr_crc32c_variants[choice - 1].is_supported()) choice--;
        atomic_store_explicit(&best, choice, memory_order_relaxed);
    }
    assert(choice > 0 && choice <= mr_crc32c_variant_count);
    return mr_crc32c_variants[choice - 1].run(crc, bytes, size_bytes);
}

uint32_t mr_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

uint32_t mr_crc32c_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
}
