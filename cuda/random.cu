/* Philox4x32-10, with the same numbers as base/random.c: the four outputs of a counter are four adjacent elements. */
#include "cuda/gpu.h"

MR_GPU_FUNCTION void philox(const mr_gpu_random *a, uint64_t step, uint32_t words[4])
{
    uint64_t low = ((uint64_t)a->counter[1] << 32 | a->counter[0]) + step;
    uint64_t high = ((uint64_t)a->counter[3] << 32 | a->counter[2]) + (low < step ? 1 : 0);
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32), c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
    uint32_t k0 = a->key[0], k1 = a->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

/* 23 bits as the mantissa of a number in [1, 2), minus 1: exact in any arithmetic. */
MR_GPU_KERNEL(uniform_float, mr_gpu_random)
{
    MR_GPU_EACH(group, (a.count + 3) / 4)
    {
        uint32_t words[4];
        philox(&a, (uint64_t)group, words);
        for (int j = 0; j < 4; j++)
            if (group * 4 + j < a.count) a.out[group * 4 + j] = (float)(words[j] & 0x7fffffu) * (1.0f / 8388608.0f);
    }
}
