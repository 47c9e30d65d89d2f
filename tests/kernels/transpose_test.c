/* Strided copies compared with the definition: permuted, broadcast and reversed views of every element size, at sizes
 * around those of vectors and blocks, at every CPU level. */
#include "kernels/common.h"
#include "tests/ops/run.h"

static int64_t draw_dim(mr_random *random, int rank)
{
    static const int64_t sides[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130};
    return sides[mr_random_below(random, rank > 2 ? 9 : 17)];
}

static void check_copy(mr_pool *pool, mr_random *random)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    mr_copy copy = {.rank = 1 + (int)mr_random_below(random, 4), .element_size = sizes[mr_random_below(random, 5)]};
    int order[4] = {0, 1, 2, 3};
    int64_t count = 1, span = 0, first = 0;
    for (int i = copy.rank - 1; i > 0; i--) { /* of the dims in the source */
        const int other = (int)mr_random_below(random, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = copy.rank - 1; i >= 0; i--) {
        copy.dims[i] = draw_dim(random, copy.rank);
        copy.target_strides[i] = count;
        count *= copy.dims[i];
    }
    int64_t stride = 1 + (int64_t)mr_random_below(random, 8) / 7; /* now and then with gaps */
    for (int i = copy.rank - 1; i >= 0; i--) {
        const int dim = order[i];
        const int kind = (int)mr_random_below(random, 8);
        copy.source_strides[dim] = kind == 0 ? 0 : kind == 1 ? -stride : stride;
        if (kind == 1) first += stride * (copy.dims[dim] - 1);
        if (kind > 0) span += stride * (copy.dims[dim] - 1);
        stride *= copy.dims[dim];
    }
    const size_t size = copy.element_size;
    char *source = malloc((size_t)(span + 1) * size), *target = malloc((size_t)count * size);
    CHECK(source && target);
    for (int64_t i = 0; i < (span + 1) * (int64_t)size; i++) source[i] = (char)mr_random_below(random, 256);
    copy.source = source + first * (int64_t)size;
    copy.target = target;
    mr_copy_strided(copy, pool);
    for (int64_t i = 0; i < count; i++) {
        int64_t from = 0;
        for (int d = 0; d < copy.rank; d++) from += i / copy.target_strides[d] % copy.dims[d] * copy.source_strides[d];
        if (memcmp(target + i * (int64_t)size, copy.source + from * (int64_t)size, size) != 0)
            test_fail(__FILE__, __LINE__, "rank %d, %zu bytes: element %lld", copy.rank, size, (long long)i);
    }
    free(source);
    free(target);
}

static void check_copies(void)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 15, 0, 0);
    mr_pool *pool;
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 400; i++) check_copy(i % 4 ? pool : nullptr, &random);
    mr_pool_free(pool);
}

TEST(transpose_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_copies();
}

TEST(transpose_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_copies();
}

TEST(transpose_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_copies();
}
