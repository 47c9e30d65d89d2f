/* CPU features, detected once. */
#ifndef MR_BASE_CPU_H
#define MR_BASE_CPU_H

#include <stdbool.h>

typedef enum mr_cpu_level {
    MR_CPU_PLAIN = 0,  /* plain C */
    MR_CPU_AVX2 = 1,   /* AVX2, FMA, F16C, SSE4.2, PCLMULQDQ */
    MR_CPU_AVX512 = 2, /* AVX-512 F, BW, DQ, VL, and all of AVX2's */
} mr_cpu_level;

/* The highest supported level, or a lower one set by the environment variable MILLRACE_CPU ("plain", "avx2",
 * "avx512"). */
mr_cpu_level mr_cpu(void);

/* Whether the level is MR_CPU_AVX512 and the processor also has AVX512-BF16, products of bfloat16 numbers. False if
 * MILLRACE_CPU names a level. */
bool mr_cpu_has_bf16(void);

/* Whether the processor has that and AMX for bfloat16 numbers, and the system lets this process use its registers. */
bool mr_cpu_has_amx(void);

/* Spin-wait hint, for loops that wait for another thread's store. */
static inline void mr_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Makes subnormal numbers zero, as operands and as results of this thread, or keeps them; returns what was before. */
static inline bool mr_cpu_flush_subnormals(bool flush)
{
#if defined(__x86_64__)
    constexpr unsigned bits = 1u << 15 | 1u << 6; /* flush to zero, denormals are zero */
    unsigned before = __builtin_ia32_stmxcsr(), after = flush ? before | bits : before & ~bits;
    if (after != before) __builtin_ia32_ldmxcsr(after);
    return (before & bits) == bits;
#elif defined(__aarch64__)
    constexpr unsigned long bit = 1ul << 24;
    unsigned long before, after;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    after = flush ? before | bit : before & ~bit;
    if (after != before) __asm__ volatile("msr fpcr, %0" : : "r"(after));
    return (before & bit) != 0;
#else
    (void)flush;
    return false;
#endif
}
static inline bool mr_cpu_flushes_subnormals(void)
{
#if defined(__x86_64__)
    return (__builtin_ia32_stmxcsr() & (1u << 15 | 1u << 6)) == (1u << 15 | 1u << 6);
#elif defined(__aarch64__)
    unsigned long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (mode >> 24 & 1) != 0;
#else
    return false;
#endif
}

/* Function attributes for code that uses these instructions. Call such a function only if mr_cpu() reports the
 * level. */
#if defined(__x86_64__)
#define MR_CPU_X86 1
#define MR_TARGET_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,sse4.2,pclmul")))
/* These compilers require 512-bit registers to be enabled explicitly when the target processor has none. */
#if __clang_major__ >= 18 && __clang_major__ <= 21
#define MR_TARGET_EVEX512 "evex512,"
#else
#define MR_TARGET_EVEX512
#endif
#define MR_TARGET_AVX512_WITH(more)                                                                                    \
    __attribute__((target(MR_TARGET_EVEX512 more                                                                       \
                          "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,sse4.2,pclmul")))
#define MR_TARGET_AVX512 MR_TARGET_AVX512_WITH("")
#define MR_TARGET_AVX512_BF16 MR_TARGET_AVX512_WITH("avx512bf16,")
#define MR_TARGET_AMX MR_TARGET_AVX512_WITH("amx-tile,amx-bf16,")
#else
#define MR_CPU_X86 0
#define MR_TARGET_AVX2
#define MR_TARGET_AVX512
#define MR_TARGET_AVX512_BF16
#define MR_TARGET_AMX
#endif

#endif
