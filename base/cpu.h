/* CPU features, detected once. */
#ifndef MR_BASE_CPU_H
#define MR_BASE_CPU_H

typedef enum mr_cpu_level {
    MR_CPU_PLAIN = 0,  /* plain C */
    MR_CPU_AVX2 = 1,   /* AVX2, FMA, F16C, SSE4.2, PCLMULQDQ */
    MR_CPU_AVX512 = 2, /* AVX-512 F, BW, DQ, VL, and all of AVX2's */
} mr_cpu_level;

/* The highest supported level, or a lower one set by the environment variable MILLRACE_CPU ("plain", "avx2",
 * "avx512"). */
mr_cpu_level mr_cpu(void);

/* Spin-wait hint, for loops that wait for another thread's store. */
static inline void mr_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
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
#define MR_TARGET_AVX512                                                                                               \
    __attribute__((target(MR_TARGET_EVEX512                                                                            \
                          "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,sse4.2,pclmul")))
#else
#define MR_CPU_X86 0
#define MR_TARGET_AVX2
#define MR_TARGET_AVX512
#endif

#endif
