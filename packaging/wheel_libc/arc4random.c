/* Defines arc4random_buf, which Debian's static libexpat calls and which glibc has since 2.36. The library salts its
 * hash tables with the bytes. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

void arc4random_buf(void *bytes, size_t size_bytes);

void arc4random_buf(void *bytes, size_t size_bytes)
{
    memset(bytes, 0, size_bytes);
    for (char *at = bytes, *end = at + size_bytes; at < end;) {
        ssize_t count = getrandom(at, (size_t)(end - at), 0);
        if (count < 0 && errno != EINTR) return; /* kernels before 3.17 */
        if (count > 0) at += count;
    }
}
