/* Prints count floats and then count doubles of Philox(seed, seed2), which random_oracle.py compares with
 * TensorFlow's. */
#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 4) return 1;
    uint64_t seed = strtoull(argv[1], nullptr, 10), seed2 = strtoull(argv[2], nullptr, 10);
    int count = atoi(argv[3]);
    uint32_t words[4];
    mr_philox philox = mr_philox_seed(seed, seed2);
    for (int i = 0; i < count; i += 4) {
        mr_philox_next(&philox, words);
        for (int j = 0; j < 4; j++) printf("%a\n", (double)mr_random_float(words[j]));
    }
    philox = mr_philox_seed(seed, seed2);
    for (int i = 0; i < count; i += 2) {
        mr_philox_next(&philox, words);
        for (int j = 0; j < 4; j += 2) printf("%a\n", mr_random_double(words[j], words[j + 1]));
    }
    return 0;
}
