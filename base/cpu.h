/* What this processor can do, found once. */
#ifndef MR_BASE_CPU_H
#define MR_BASE_CPU_H

typedef enum mr_cpu_level {
    MR_CPU_PLAIN = 0,  /* plain C */
    MR_CPU_AVX2 = 1,   /* AVX2, FMA, F16C, SSE4.2, PCLMULQDQ */
    MR_CPU_AVX512 = 2, /* AVX-512 F, BW, DQ, VL, and all of AVX2's */
} mr_cpu_level;

/* The best level, or a lower one that the environment variable MILLRACE_CPU names ("plain", "avx2", "avx512"). */
mr_cpu_level mr_cpu(void);

/* In a loop that waits for another thread's store. */
static inline void mr_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Put before a function whose body uses those instructions; call it only when mr_cpu() says so. */
#if defined(__x86_64__)
#define MR_CPU_X86 1
#define MR_TARGET_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,sse4.2,pclmul")))
/* Compilers between these versions ask for 512-bit registers by name when the processor they build for has none. */
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
