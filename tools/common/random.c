/* See random.h. */
#include "common/random.h"

#include <assert.h>
#include <math.h>

static constexpr uint64_t PERMUTATION_PURPOSE = 0x7065726d757465;

/* Sets words to the four at the counter, and increments the counter. */
static void fill_words(random_stream *random)
{
    uint32_t c0 = random->counter[0], c1 = random->counter[1], c2 = random->counter[2], c3 = random->counter[3];
    uint32_t k0 = random->key[0], k1 = random->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xd2511f53 * c0, product1 = (uint64_t)0xcd9e8d57 * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    random->words[0] = c0, random->words[1] = c1, random->words[2] = c2, random->words[3] = c3;
    random->used = 0;
    for (int i = 0; i < 4 && ++random->counter[i] == 0; i++) {}
}

/* The finalizer of SplitMix64: every bit of the result depends on every bit of value. */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

random_stream random_at(uint64_t seed, uint64_t element, uint64_t purpose)
{
    uint64_t key = mix(mix(mix(seed)) ^ purpose);
    return (random_stream){.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                           .counter = {0, 0, (uint32_t)element, (uint32_t)(element >> 32)},
                           .used = 4};
}

uint32_t random_next32(random_stream *random)
{
    if (random->used == 4) fill_words(random);
    return random->words[random->used++];
}

uint64_t random_next64(random_stream *random)
{
    uint64_t low = random_next32(random);
    return low | (uint64_t)random_next32(random) << 32;
}

double random_unit(random_stream *random)
{
    return (double)(random_next64(random) >> 11) * 0x1p-53;
}

double random_range(random_stream *random, double low, double high)
{
    double value = low + (high - low) * random_unit(random);
    return value < high || !(low < high) ? value : nextafter(high, low); /* rounding may return high */
}

uint64_t random_below(random_stream *random, uint64_t limit)
{
    if (limit == 0) return 0;
    /* The upper half of a 128-bit product; numbers in the biased remainder of the range are rejected (Lemire 2019). */
    uint64_t remainder = -limit % limit;
    for (;;) {
        unsigned __int128 product = (unsigned __int128)random_next64(random) * limit;
        if ((uint64_t)product >= remainder) return (uint64_t)(product >> 64);
    }
}

/* ---- Permutation: a Feistel network ---- */

/* The network permutes [0, 4^half_bits), which contains [0, count) and is less than four times as large. */
permutation permutation_init(uint64_t count, uint64_t seed)
{
    assert(count > 0);
    permutation permutation = {.count = count};
    while (permutation.half_bits < 32 && (count - 1) >> (2 * permutation.half_bits) != 0) permutation.half_bits++;
    random_stream random = random_at(seed, count, PERMUTATION_PURPOSE);
    for (int i = 0; i < 6; i++) permutation.keys[i] = random_next32(&random);
    return permutation;
}

static uint32_t hash(uint32_t value, uint32_t key)
{
    value = (value ^ key) * 0xcc9e2d51;
    value = (value ^ value >> 15) * 0x1b873593;
    value += key;
    value = (value ^ value >> 13) * 0x85ebca6b;
    return value ^ value >> 16;
}

/* Applies the inverse network until the result is below count. */
uint64_t permutation_position(const struct permutation *permutation, uint64_t element)
{
    assert(element < permutation->count);
    uint32_t half_bits = permutation->half_bits;
    if (half_bits == 0) return 0;
    uint32_t mask = UINT32_MAX >> (32 - half_bits);
    do {
        uint32_t left = (uint32_t)(element >> half_bits), right = (uint32_t)element & mask;
        for (int round = 5; round >= 0; round--) {
            uint32_t before = right ^ (hash(left, permutation->keys[round]) & mask);
            right = left;
            left = before;
        }
        element = (uint64_t)left << half_bits | right;
    } while (element >= permutation->count);
    return element;
}
