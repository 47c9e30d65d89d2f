/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011), the
 * generator of TensorFlow's random operators.
 *
 * The same (key, counter) gives the same four words on every machine and at any number of threads. Random numbers for
 * an element use the seed as the key and (epoch, record, operator) as the counter, so no state is passed from element
 * to element. */
#ifndef MR_BASE_RANDOM_H
#define MR_BASE_RANDOM_H

#include <millrace/api.h>

#include <stddef.h>
#include <stdint.h>

typedef struct mr_philox {
    uint32_t key[2];
    uint32_t counter[4];
} mr_philox;

/* TensorFlow's PhiloxRandom(seed_lo, seed_hi): key = seed, counter[2..3] = seed2. */
mr_philox mr_philox_seed(uint64_t seed, uint64_t seed2);
/* Returns the four words at the counter and increments the counter. */
void mr_philox_next(mr_philox *philox, uint32_t words[4]);
/* Advances the counter by count. */
void mr_philox_skip(mr_philox *philox, uint64_t count);

/* TensorFlow's conversions from 32 or 64 random bits to [0, 1), with 23 or 52 bits of mantissa. */
float mr_random_float(uint32_t word);
double mr_random_double(uint32_t first, uint32_t second);

/* A stream of random numbers for one element, determined by the four arguments of mr_random_at. */
typedef struct mr_random {
    mr_philox philox;
    uint32_t words[4];
    unsigned used;
} mr_random;

/* purpose  distinguishes streams of the same element, for example the operator's number */
mr_random mr_random_at(uint64_t seed, uint64_t epoch, uint64_t element, uint64_t purpose);
uint32_t mr_random_next32(mr_random *random);
uint64_t mr_random_next64(mr_random *random);
MR_API double mr_random_unit(mr_random *random);                           /* [0, 1), 53 bits */
MR_API double mr_random_range(mr_random *random, double low, double high); /* [low, high) */
MR_API uint64_t mr_random_below(mr_random *random, uint64_t limit);        /* [0, limit), unbiased; 0 if limit is 0 */
MR_API double mr_random_normal(mr_random *random);                         /* mean 0, standard deviation 1 */

/* A permutation of [0, count) that is computed, not stored, from a seed and an epoch, in constant memory and expected
 * constant time (a Feistel network over the next even power of two, applied repeatedly until the result is below
 * count). count > 0. */
typedef struct mr_permutation {
    uint64_t count;
    uint32_t half_bits;
    uint32_t keys[6];
} mr_permutation;
mr_permutation mr_permutation_init(uint64_t count, uint64_t seed, uint64_t epoch);
uint64_t mr_permutation_at(const mr_permutation *permutation, uint64_t index);
/* The index for which mr_permutation_at returns this element. */
uint64_t mr_permutation_inverse(const mr_permutation *permutation, uint64_t element);

#endif
