/* The micro-kernel on AMX. It is used after it has computed a product that is known: a virtual machine may show
 * registers that it does not have. */
#include "kernels/gemm.h"
#include <assert.h>
#include <stdatomic.h>

#if MR_CPU_X86
#pragma clang attribute push(MR_TARGET_AMX, apply_to = function)
#define AMX_CONFIGURE(config) __builtin_ia32_tile_loadconfig(config)
#define AMX_ZERO(to) __builtin_ia32_tilezero(to)
#define AMX_LOAD(to, from, stride) __builtin_ia32_tileloadd64(to, from, (size_t)(stride))
#define AMX_STORE(from, to, stride) __builtin_ia32_tilestored64(from, to, stride)
#define AMX_MULTIPLY_ADD(sum, a, b) __builtin_ia32_tdpbf16ps(sum, a, b)
#define AMX_RELEASE() __builtin_ia32_tilerelease()
#include "kernels/gemm_tile_amx.h"

void mr_tile_amx(const mr_tile *tile)
{
    amx_body(tile);
}
#pragma clang attribute pop

/* Small integers, whose products and sums are exact. */
static bool computes(void)
{
    constexpr int ROWS = 14, LENGTH = 41, COLUMNS = 32;
    static_assert(LENGTH % 16 != 0);
    uint32_t a[ROWS * LENGTH], b[LENGTH * COLUMNS];
    float c[ROWS * COLUMNS];
    constexpr uint32_t one = 0x3f80, two = 0x4000;
    for (int i = 0; i < ROWS * LENGTH; i++) a[i] = i % 3 == 0 ? one | two << 16 : i % 3 == 1 ? two : one << 16;
    for (int i = 0; i < LENGTH * COLUMNS; i++) b[i] = i % 5 < 2 ? one | one << 16 : two;
    const mr_tile tile = {.a = (const float *)a,
                          .a_row = LENGTH,
                          .a_step = 1,
                          .b = (const float *)b,
                          .b_step = COLUMNS,
                          .b_next = 16,
                          .c = c,
                          .c_row = COLUMNS,
                          .length = LENGTH,
                          .segments = 1,
                          .rows = ROWS,
                          .vectors = 2,
                          .columns = COLUMNS,
                          .pairs = true};
    mr_tile_amx(&tile);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int sum = 0;
        for (int k = 0; k < LENGTH; k++) {
            const int x = (i / COLUMNS * LENGTH + k) % 3, y = (k * COLUMNS + i % COLUMNS) % 5;
            const int low = x == 0 ? 1 : x == 1 ? 2 : 0, high = x == 0 ? 2 : x == 1 ? 0 : 1;
            sum += y < 2 ? low + high : 2 * low;
        }
        if (c[i] != (float)sum) return false;
    }
    return true;
}

bool mr_tile_has_amx(void)
{
    static atomic_int found = -1; /* several threads may find it at once, with the same result */
    int has_amx = atomic_load_explicit(&found, memory_order_relaxed);
    if (has_amx < 0) {
        has_amx = mr_cpu_has_amx() && computes();
        atomic_store_explicit(&found, has_amx, memory_order_relaxed);
    }
    return has_amx != 0;
}
#else
void mr_tile_amx(const mr_tile *)
{
    unreachable();
}

bool mr_tile_has_amx(void)
{
    return false;
}
#endif
