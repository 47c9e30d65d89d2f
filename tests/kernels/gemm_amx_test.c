/* The micro-kernel for AMX on registers that the test emulates, as the manual defines the instructions: few processors
 * have AMX. All numbers are small integers, so every sum is exact. */
#include "tests/ops/run.h"

typedef struct registers {
    struct {
        int rows, bytes;
        uint32_t words[16][16];
    } at[8];
    bool configured;
} registers;
static _Thread_local registers emulated;

static void configure(const void *config)
{
    const uint8_t *bytes = config;
    CHECK(bytes[0] == 1 && bytes[1] == 0);
    memset(&emulated, 0, sizeof emulated);
    for (int i = 2; i < 16; i++) CHECK(bytes[i] == 0);
    for (int i = 0; i < 16; i++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, bytes + 16 + 2 * i, 2);
        const int rows = bytes[48 + i];
        CHECK(rows <= 16 && row_bytes <= 64 && (rows == 0) == (row_bytes == 0) && (i < 8 || rows == 0));
        if (i < 8) emulated.at[i].rows = rows, emulated.at[i].bytes = row_bytes;
    }
    emulated.configured = true;
}

static void check_register(int i)
{
    CHECK(emulated.configured && i >= 0 && i < 8 && emulated.at[i].rows > 0);
}

static void zero(int to)
{
    check_register(to);
    memset(emulated.at[to].words, 0, sizeof emulated.at[to].words);
}

static void load(int to, const void *from, int64_t stride)
{
    zero(to);
    for (int r = 0; r < emulated.at[to].rows; r++)
        memcpy(emulated.at[to].words[r], (const char *)from + r * stride, (size_t)emulated.at[to].bytes);
}

static void store(int from, void *to, int64_t stride)
{
    check_register(from);
    for (int r = 0; r < emulated.at[from].rows; r++)
        memcpy((char *)to + r * stride, emulated.at[from].words[r], (size_t)emulated.at[from].bytes);
}

static float half_of(uint32_t word, int half)
{
    return mr_bfloat16_to_float((uint16_t)(word >> 16 * half));
}

static void multiply_add(int sum, int a, int b)
{
    check_register(sum);
    check_register(a);
    check_register(b);
    CHECK(emulated.at[a].rows == emulated.at[sum].rows && emulated.at[b].bytes == emulated.at[sum].bytes);
    CHECK(emulated.at[a].bytes == 4 * emulated.at[b].rows);
    for (int m = 0; m < emulated.at[sum].rows; m++)
        for (int k = 0; k < emulated.at[a].bytes / 4; k++)
            for (int n = 0; n < emulated.at[sum].bytes / 4; n++) {
                float value;
                const uint32_t x = emulated.at[a].words[m][k], y = emulated.at[b].words[k][n];
                memcpy(&value, &emulated.at[sum].words[m][n], 4);
                value += half_of(x, 0) * half_of(y, 0) + half_of(x, 1) * half_of(y, 1);
                memcpy(&emulated.at[sum].words[m][n], &value, 4);
            }
}

#define AMX_CONFIGURE configure
#define AMX_ZERO zero
#define AMX_LOAD load
#define AMX_STORE store
#define AMX_MULTIPLY_ADD multiply_add
#define AMX_RELEASE() (emulated.configured = false)
#include "kernels/gemm_tile_amx.h"

static uint32_t *draw_pairs(int64_t count, mr_random *random)
{
    uint32_t *pairs = malloc((size_t)count * sizeof *pairs);
    CHECK(pairs != nullptr);
    for (int64_t i = 0; i < count; i++) {
        const float low = (float)mr_random_below(random, 9) - 4, high = (float)mr_random_below(random, 9) - 4;
        pairs[i] = mr_float_to_bfloat16(low) | (uint32_t)mr_float_to_bfloat16(high) << 16;
    }
    return pairs;
}

static float product(const uint32_t *a, const uint32_t *b, int64_t count, int64_t b_step)
{
    float sum = 0;
    for (int64_t k = 0; k < count; k++)
        for (int half = 0; half < 2; half++) sum += half_of(a[k], half) * half_of(b[k * b_step], half);
    return sum;
}

/* Each operand is exactly as large as the tile may read. */
static void check_tile(mr_random *random)
{
    mr_tile t = {.rows = 1 + (int)mr_random_below(random, 28),
                 .vectors = 1 + (int)mr_random_below(random, 2),
                 .length = 1 + (int64_t)mr_random_below(random, 50),
                 .segments = 1 + (int64_t)mr_random_below(random, 3),
                 .a_step = 1,
                 .accumulate = mr_random_below(random, 2),
                 .pairs = true};
    const int64_t steps = t.length * t.segments, width = t.vectors * 16;
    const bool packs = mr_random_below(random, 2), biased = mr_random_below(random, 2);
    t.columns = (int)width - (int)mr_random_below(random, 16);
    t.a_segment = t.length;
    t.a_row = steps + (int64_t)mr_random_below(random, 3);
    t.b_step = width;
    t.b_next = 16;
    t.c_row = t.columns + (int64_t)mr_random_below(random, 3);
    t.pack_next = 16 * steps;
    uint32_t *a = draw_pairs((t.rows - 1) * t.a_row + steps, random), *b = draw_pairs(steps * width, random);
    uint32_t *pack = draw_pairs(steps * width, random);
    float c[28 * 34], before[28 * 34], bias[32];
    for (int i = 0; i < 28 * 34; i++) before[i] = c[i] = (float)(i % 7);
    for (int i = 0; i < 32; i++) bias[i] = (float)(i % 5);
    t.a = (const float *)a;
    t.b = (const float *)b;
    t.c = c;
    t.bias = biased ? bias : nullptr;
    t.pack = packs ? (float *)pack : nullptr;
    amx_body(&t);
    CHECK(!emulated.configured);
    for (int64_t i = 0; i < 28 * 34; i++) {
        const int64_t row = i / t.c_row, column = i % t.c_row;
        float wanted = before[i];
        if (row < t.rows && column < t.columns)
            wanted = product(a + row * t.a_row, b + column, steps, width) + (t.accumulate ? before[i] : 0) +
                     (biased ? bias[column] : 0);
        if (c[i] != wanted)
            test_fail(__FILE__, __LINE__, "%d rows, %d vectors, length %lld: element %lld is %g, not %g", t.rows,
                      t.vectors, (long long)t.length, (long long)i, (double)c[i], (double)wanted);
    }
    for (int64_t i = 0; packs && i < steps * width; i++)
        CHECK(pack[i % width / 16 * t.pack_next + i / width * 16 + i % 16] == b[i]);
    free(a);
    free(b);
    free(pack);
}

TEST(gemm_amx_emulated)
{
    mr_random random = mr_random_at(test_seed(), 16, 0, 0);
    for (int i = 0; i < 500; i++) check_tile(&random);
}

/* The kernel's own check passes wherever the processor says that it has AMX. */
TEST(gemm_amx_found)
{
    if (!mr_cpu_has_amx()) test_skip("no AMX");
    CHECK(mr_tile_has_amx());
}
