/* CPU feature detection: the level that the instruction set supports, the system saves, and the environment allows. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if MR_CPU_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if MR_CPU_X86
/* Register state that the system saves and restores (XCR0): bits 1 and 2 for AVX, 5 to 7 for AVX-512. */
static uint64_t saved_registers(void)
{
    uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

/* Uses CPUID directly: the compiler's builtin needs a runtime library that Zig does not link. */
static mr_cpu_level detect(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0, b7 = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) return MR_CPU_PLAIN;
    if (!has(c, bit_SSE4_2 | bit_POPCNT | bit_PCLMUL | bit_AVX | bit_FMA | bit_F16C | bit_OSXSAVE)) return MR_CPU_PLAIN;
    if (__get_cpuid_count(7, 0, &a, &b7, &c, &d) == 0 || !has(b7, bit_AVX2 | bit_BMI | bit_BMI2)) return MR_CPU_PLAIN;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d) == 0 || !has(c, bit_LZCNT)) return MR_CPU_PLAIN;
    uint64_t saved = saved_registers();
    if ((saved & 0x6) != 0x6) return MR_CPU_PLAIN;
    bool avx512 = (saved & 0xe6) == 0xe6 && has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
    return avx512 ? MR_CPU_AVX512 : MR_CPU_AVX2;
}

static bool detect_bf16(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && has(a, bit_AVX512BF16);
}

/* The registers are large, so a process asks Linux for them. */
static bool detect_amx(void)
{
    constexpr long ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;
    constexpr uint64_t saved = (uint64_t)3 << 17;
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || !has(d, bit_AMXTILE | bit_AMXBF16)) return false;
    if ((saved_registers() & saved) != saved) return false;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#else
static mr_cpu_level detect(void)
{
    return MR_CPU_PLAIN;
}

static bool detect_bf16(void)
{
    return false;
}

static bool detect_amx(void)
{
    return false;
}
#endif

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
    static atomic_int found = -1; /* several threads may detect it at once, with the same result */
    int level = atomic_load_explicit(&found, memory_order_relaxed);
    if (level < 0) {
        level = detect() < allowed() ? detect() : allowed();
        atomic_store_explicit(&found, level, memory_order_relaxed);
    }
    return (mr_cpu_level)level;
}

bool mr_cpu_has_bf16(void)
{
    static atomic_int found = -1;
    int has_bf16 = atomic_load_explicit(&found, memory_order_relaxed);
    if (has_bf16 < 0) {
        has_bf16 = mr_cpu() == MR_CPU_AVX512 && getenv("MILLRACE_CPU") == nullptr && detect_bf16();
        atomic_store_explicit(&found, has_bf16, memory_order_relaxed);
    }
    return has_bf16 != 0;
}

bool mr_cpu_has_amx(void)
{
    return mr_cpu_has_bf16() && detect_amx();
}
