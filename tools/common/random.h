/* Random numbers that are the same on every machine: a stream for each (seed, element), from Philox4x32-10 (Salmon et
 * al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011), and permutations that are computed, not stored. */
#ifndef MR_TOOLS_RANDOM_H
#define MR_TOOLS_RANDOM_H

#include <stdint.h>

typedef struct random_stream {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t words[4];
    unsigned used; /* of words */
} random_stream;

/* purpose  distinguishes streams of the same element */
random_stream random_at(uint64_t seed, uint64_t element, uint64_t purpose);
uint32_t random_next32(random_stream *random);
uint64_t random_next64(random_stream *random);
double random_unit(random_stream *random);                           /* [0, 1), 53 bits */
double random_range(random_stream *random, double low, double high); /* [low, high) */
uint64_t random_below(random_stream *random, uint64_t limit);        /* [0, limit), unbiased; 0 if limit is 0 */

/* A permutation of [0, count) determined by a seed, in constant memory and expected constant time. */
typedef struct permutation {
    uint64_t count;
    uint32_t half_bits;
    uint32_t keys[6];
} permutation;
/* count  at least 1 */
permutation permutation_init(uint64_t count, uint64_t seed);
/* The position of an element below count. */
uint64_t permutation_position(const permutation *permutation, uint64_t element);

#endif
