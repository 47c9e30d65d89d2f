/* Random numbers as a function of a key and a counter: Philox4x32-10 (Salmon and others, "Parallel random numbers: as
 * easy as 1, 2, 3", 2011), the generator of TensorFlow's random operators.
 *
 * The same (key, counter) gives the same four words on every machine and at any number of threads. Where millrace needs
 * a number for an element it makes the key from the seed and the counter from what the element is — (epoch, record,
 * operator) — so no state is passed from element to element. */
#ifndef MR_BASE_RANDOM_H
#define MR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct mr_philox {
    uint32_t key[2];
    uint32_t counter[4];
} mr_philox;

/* TensorFlow's PhiloxRandom(seed_lo, seed_hi): key = seed, counter[2..3] = seed2. */
mr_philox mr_philox_seed(uint64_t seed, uint64_t seed2);
/* Four words at the counter; the counter steps by one. */
void mr_philox_next(mr_philox *philox, uint32_t words[4]);
/* Moves the counter on by count steps. */
void mr_philox_skip(mr_philox *philox, uint64_t count);

/* TensorFlow's conversions from 32 (64) random bits: [0, 1) with 23 (52) bits of mantissa. */
float mr_random_float(uint32_t word);
double mr_random_double(uint32_t first, uint32_t second);

/* A stream of numbers for one element. Which numbers an element draws depends only on the four words it was made of. */
typedef struct mr_random {
    mr_philox philox;
    uint32_t words[4];
    unsigned used;
} mr_random;

/* For example (seed, epoch, record, operator number). */
mr_random mr_random_at(uint64_t seed, uint64_t epoch, uint64_t element, uint64_t purpose);
uint32_t mr_random_next32(mr_random *random);
uint64_t mr_random_next64(mr_random *random);
double mr_random_unit(mr_random *random);                           /* [0, 1), 53 bits */
double mr_random_range(mr_random *random, double low, double high); /* [low, high) */
uint64_t mr_random_below(mr_random *random, uint64_t limit);        /* [0, limit), without bias; 0 if limit is 0 */
double mr_random_normal(mr_random *random);                         /* mean 0, deviation 1 */

/* A permutation of [0, count) that is computed, not stored: element i of the order drawn by seed and epoch, in constant
 * memory and time (a Feistel network over the next even power of two, walked until it lands inside). count > 0. */
typedef struct mr_permutation {
    uint64_t count;
    uint32_t half_bits;
    uint32_t keys[6];
} mr_permutation;
mr_permutation mr_permutation_init(uint64_t count, uint64_t seed, uint64_t epoch);
uint64_t mr_permutation_at(const mr_permutation *permutation, uint64_t index);
/* The index at which mr_permutation_at gives this element. */
uint64_t mr_permutation_inverse(const mr_permutation *permutation, uint64_t element);

#endif
