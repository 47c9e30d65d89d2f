/* A permutation computed by a Feistel network. Each round adds a keyed hash of one half to the other, which is
 * invertible for any hash, so the network permutes [0, 4^half_bits). A result of at least count is passed through the
 * network again until it is below count. The domain is less than four times count, so this takes fewer than four passes
 * on average. */
#include "base/random.h"

#include <assert.h>

mr_permutation mr_permutation_init(uint64_t count, uint64_t seed, uint64_t epoch)
{
    assert(count > 0);
    mr_permutation permutation = {.count = count};
    while (permutation.half_bits < 32 && (count - 1) >> (2 * permutation.half_bits) != 0) permutation.half_bits++;
    /* The domain contains all numbers, and at most four times as many. */
    assert(permutation.half_bits == 32 || (count - 1) >> (2 * permutation.half_bits) == 0);
    assert(permutation.half_bits == 0 || (count - 1) >> (2 * permutation.half_bits - 2) != 0);
    mr_random random = mr_random_at(seed, epoch, count, 0x7065726d757465);
    for (int i = 0; i < 6; i++) permutation.keys[i] = mr_random_next32(&random);
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

uint64_t mr_permutation_at(const mr_permutation *permutation, uint64_t index)
{
    assert(index < permutation->count);
    uint32_t half_bits = permutation->half_bits;
    if (half_bits == 0) return 0;
    uint32_t mask = UINT32_MAX >> (32 - half_bits);
    do {
        uint32_t left = (uint32_t)(index >> half_bits), right = (uint32_t)index & mask;
        for (int round = 0; round < 6; round++) {
            uint32_t next = left ^ (hash(right, permutation->keys[round]) & mask);
            left = right;
            right = next;
        }
        index = (uint64_t)left << half_bits | right;
    } while (index >= permutation->count);
    return index;
}

uint64_t mr_permutation_inverse(const mr_permutation *permutation, uint64_t element)
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
