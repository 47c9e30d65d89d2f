/* Programs that Zig links use the C library's memcpy, memset and so on. Zig's runtime library has slower versions, some
 * of which copy byte by byte, and they would replace the C library's as soon as a program needs anything else from that
 * runtime. The linker finds the definitions here first. They call the C library by names with the symbol's version,
 * which Zig's runtime library does not define. */
#include <stddef.h>

#if defined(__x86_64__)
#define VERSION "@GLIBC_2.2.5"
#define MEMCPY_VERSION "@GLIBC_2.14"
#elif defined(__aarch64__)
#define VERSION "@GLIBC_2.17"
#define MEMCPY_VERSION VERSION
#else
#error "add the first version of glibc for this architecture"
#endif

void *libc_memcpy(void *target, const void *source, size_t size_bytes) __asm__("memcpy" MEMCPY_VERSION);
void *libc_memmove(void *target, const void *source, size_t size_bytes) __asm__("memmove" VERSION);
void *libc_memset(void *target, int byte, size_t size_bytes) __asm__("memset" VERSION);
int libc_memcmp(const void *a, const void *b, size_t size_bytes) __asm__("memcmp" VERSION);
size_t libc_strlen(const char *text) __asm__("strlen" VERSION);

void *memcpy(void *restrict target, const void *restrict source, size_t size_bytes)
{
    return libc_memcpy(target, source, size_bytes);
}

void *memmove(void *target, const void *source, size_t size_bytes)
{
    return libc_memmove(target, source, size_bytes);
}

void *memset(void *target, int byte, size_t size_bytes)
{
    return libc_memset(target, byte, size_bytes);
}

int memcmp(const void *a, const void *b, size_t size_bytes)
{
    return libc_memcmp(a, b, size_bytes);
}

int bcmp(const void *a, const void *b, size_t size_bytes)
{
    return libc_memcmp(a, b, size_bytes);
}

size_t strlen(const char *text)
{
    return libc_strlen(text);
}
