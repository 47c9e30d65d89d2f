/* The processor's level: what the instruction set has, what the system saves, and what the environment allows. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static mr_cpu_level detect(void)
{
#if MR_CPU_X86
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
                __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? MR_CPU_AVX512 : avx2 ? MR_CPU_AVX2 : MR_CPU_PLAIN;
#else
    return MR_CPU_PLAIN;
#endif
}

static mr_cpu_level allowed(void)
{
    const char *name = getenv("MILLRACE_CPU");
    if (name == nullptr) return MR_CPU_AVX512;
    if (strcmp(name, "plain") == 0) return MR_CPU_PLAIN;
    if (strcmp(name, "avx2") == 0) return MR_CPU_AVX2;
    return MR_CPU_AVX512;
}

mr_cpu_level mr_cpu(void)
{
    static atomic_int found = -1; /* several threads may find it at once: they find the same */
    int level = atomic_load_explicit(&found, memory_order_relaxed);
    if (level < 0) {
        level = detect() < allowed() ? detect() : allowed();
        atomic_store_explicit(&found, level, memory_order_relaxed);
    }
    return (mr_cpu_level)level;
}
