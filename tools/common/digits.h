/* Images of digits for the MNIST examples: read from MNIST's files, or synthesized.
 *
 * ```c
 * digits d = {0};
 * if (digits_draw(&d, 6000, 1, &error) != MR_OK) return 1;
 * mr_tensor images = {0}, labels = {0};
 * if (digits_batch(&d, 0, 100, &images, &labels, &error) != MR_OK) return 1;
 * ``` */
#ifndef MR_TOOLS_DIGITS_H
#define MR_TOOLS_DIGITS_H

#include <millrace/tensor.h>

typedef struct digits {
    int64_t count;
    mr_tensor images; /* float [count, 784], 0 … 1 */
    mr_tensor labels; /* int64 [count] */
} digits;

/* Reads DIRECTORY/PREFIX-images-idx3-ubyte and DIRECTORY/PREFIX-labels-idx1-ubyte; PREFIX is "train" or "t10k". */
mr_status digits_read(digits *digits, const char *directory, const char *prefix, mr_error *error);
/* Draws digits with random offset, slant, scale, blots and noise; the same for the same seed. */
mr_status digits_draw(digits *digits, int64_t count, uint64_t seed, mr_error *error);
/* Copies batch `index` of `size` digits, starting over after the last full batch. The caller deinits both tensors. */
mr_status digits_batch(const digits *digits, int64_t index, int64_t size, mr_tensor *images, mr_tensor *labels,
                       mr_error *error);
void digits_deinit(digits *digits);

#endif
