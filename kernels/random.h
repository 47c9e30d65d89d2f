/* What the kernels of random operators share: sequences of words, and tensors filled from a distribution.
 *
 * The numbers are TensorFlow's, bit for bit, except for the last bit of those that need a logarithm, a sine or a
 * cosine. They do not depend on the number of threads. */
#ifndef MR_KERNELS_RANDOM_H
#define MR_KERNELS_RANDOM_H

#include "kernels/common.h"

#include <assert.h>

/* A sequence of random words (TensorFlow's SimplePhilox). Start with used = 4. */
typedef struct mr_words {
    mr_philox philox;
    uint32_t have[4];
    int used;
} mr_words;

static inline uint32_t mr_words_next(mr_words *words)
{
    if (words->used == 4) {
        mr_philox_next(&words->philox, words->have);
        words->used = 0;
    }
    return words->have[words->used++];
}

static inline uint64_t mr_words_next64(mr_words *words)
{
    uint32_t low = mr_words_next(words), high = mr_words_next(words);
    return low | (uint64_t)high << 32;
}

static inline double mr_words_double(mr_words *words)
{
    uint32_t first = mr_words_next(words), second = mr_words_next(words);
    return mr_random_double(first, second);
}

/* Unbiased integers in [0, limit), limit > 0: words below 2^32 mod limit (2^64 mod limit) are rejected. */
static inline uint32_t mr_words_below(mr_words *words, uint32_t limit)
{
    assert(limit > 0);
    uint32_t word = mr_words_next(words), least = (limit & (limit - 1)) == 0 ? 0 : UINT32_MAX % limit + 1;
    while (word < least) word = mr_words_next(words);
    return word % limit;
}

static inline uint64_t mr_words_below64(mr_words *words, uint64_t limit)
{
    assert(limit > 0);
    uint64_t word = mr_words_next64(words), least = (limit & (limit - 1)) == 0 ? 0 : UINT64_MAX % limit + 1;
    while (word < least) word = mr_words_next64(words);
    return word % limit;
}

/* Two normal numbers from four words, by the Box-Muller transform. */
void mr_random_normal_doubles(const uint32_t words[4], double out[2]);
/* Two normal numbers from two words. */
void mr_random_normal_floats(uint32_t first, uint32_t second, float out[2]);

typedef enum mr_distribution {
    MR_RANDOM_UNIFORM,   /* [0, 1) */
    MR_RANDOM_NORMAL,    /* mean 0, standard deviation 1 */
    MR_RANDOM_TRUNCATED, /* the same, within 2 standard deviations */
    MR_RANDOM_INT,       /* [low, low + range), int32 or int64 */
    MR_RANDOM_FULL_INT,  /* all values of a type of 32 or 64 bits */
} mr_distribution;

typedef struct mr_random_fill {
    mr_philox philox;
    mr_distribution distribution;
    mr_dtype dtype;
    void *target;
    int64_t count;
    int64_t low;
    uint64_t range;
} mr_random_fill;
/* Reads the shape in input 0, a vector. */
mr_status mr_random_shape(const mr_kernel_call *call, mr_shape *shape, mr_error *error);
/* Fills target[0, count). */
void mr_random_run_fill(mr_random_fill *fill, mr_pool *pool);

/* The generator of the call's node, which reserves `samples` 128-bit samples. */
mr_philox mr_random_reserve(mr_kernel_call *call, int64_t samples);

/* The generator of a stateless operator, from the seed in input `index`, two integers.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_random_from_seed(mr_kernel_call *call, int index, mr_philox *philox, mr_error *error);

/* The generator in inputs 1, 2 and 3 of a stateless operator: key, counter and alg.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_random_from_key(mr_kernel_call *call, mr_philox *philox, mr_error *error);

/* The generator whose state is the variable in input 0: the counter and the key from element `first` on. It then skips
 * `numbers`, for which it reserves 256 samples each.
 * errors  MR_INVALID_ARGUMENT */
mr_status mr_random_from_state(mr_kernel_call *call, int first, int64_t algorithm, uint64_t numbers, mr_philox *philox,
                               mr_error *error);

/* The number of elements per 128-bit sample. */
int mr_random_group_size(mr_dtype dtype);

#endif
