/* Philox4x32-10, and random streams based on it. */
#include "base/random.h"

#include <assert.h>
#include <math.h>
#include <string.h>

mr_philox mr_philox_seed(uint64_t seed, uint64_t seed2)
{
    return (mr_philox){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)},
    };
}

void mr_philox_next(mr_philox *philox, uint32_t words[4])
{
    uint32_t c0 = philox->counter[0], c1 = philox->counter[1], c2 = philox->counter[2], c3 = philox->counter[3];
    uint32_t k0 = philox->key[0], k1 = philox->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xd2511f53 * c0, product1 = (uint64_t)0xcd9e8d57 * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
    for (int i = 0; i < 4 && ++philox->counter[i] == 0; i++) {}
}

void mr_philox_skip(mr_philox *philox, uint64_t count)
{
    uint64_t low = philox->counter[0] | (uint64_t)philox->counter[1] << 32;
    uint64_t high = philox->counter[2] | (uint64_t)philox->counter[3] << 32;
    low += count;
    high += low < count;
    philox->counter[0] = (uint32_t)low, philox->counter[1] = (uint32_t)(low >> 32);
    philox->counter[2] = (uint32_t)high, philox->counter[3] = (uint32_t)(high >> 32);
}

float mr_random_float(uint32_t word)
{
    uint32_t bits = (uint32_t)127 << 23 | (word & 0x7fffff); /* [1, 2) */
    float value;
    memcpy(&value, &bits, sizeof value);
    return value - 1.0f;
}

double mr_random_double(uint32_t first, uint32_t second)
{
    uint64_t bits = (uint64_t)1023 << 52 | (uint64_t)(first & 0xfffff) << 32 | second;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value - 1.0;
}

/* The finalizer of SplitMix64: every bit of the result depends on every bit of value. */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

mr_random mr_random_at(uint64_t seed, uint64_t epoch, uint64_t element, uint64_t purpose)
{
    mr_random random = {.philox = mr_philox_seed(mix(mix(mix(seed) ^ epoch) ^ purpose), element), .used = 4};
    return random;
}

uint32_t mr_random_next32(mr_random *random)
{
    if (random->used >= 4) {
        mr_philox_next(&random->philox, random->words);
        random->used = 0;
    }
    return random->words[random->used++];
}

uint64_t mr_random_next64(mr_random *random)
{
    uint64_t low = mr_random_next32(random);
    return low | (uint64_t)mr_random_next32(random) << 32;
}

double mr_random_unit(mr_random *random)
{
    return (double)(mr_random_next64(random) >> 11) * 0x1p-53;
}

double mr_random_range(mr_random *random, double low, double high)
{
    double value = low + (high - low) * mr_random_unit(random);
    return value < high || !(low < high) ? value : nextafter(high, low); /* rounding may return high */
}

uint64_t mr_random_below(mr_random *random, uint64_t limit)
{
    if (limit == 0) return 0;
    /* The upper half of a 128-bit product; numbers in the biased remainder of the range are rejected (Lemire 2019). */
    uint64_t rest = -limit % limit;
    for (;;) {
        unsigned __int128 product = (unsigned __int128)mr_random_next64(random) * limit;
        if ((uint64_t)product >= rest) return (uint64_t)(product >> 64);
    }
}

double mr_random_normal(mr_random *random)
{
    double radius = sqrt(-2.0 * log(1.0 - mr_random_unit(random))); /* 1 - unit is never 0 */
    return radius * cos(2.0 * 3.14159265358979323846 * mr_random_unit(random));
}
