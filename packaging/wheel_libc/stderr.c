/* Defines stderr in the wheel's libmillrace.so. Debian's static libjpeg and libpng are compiled for programs: their
 * functions for messages, which millrace replaces, use an address of stderr that must be in the same file. */
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>

FILE *stderr;

[[gnu::constructor]] static void copy_stderr(void)
{
    FILE **of_libc = dlsym(RTLD_DEFAULT, "stderr");
    assert(of_libc != nullptr && of_libc != &stderr);
    stderr = of_libc != nullptr ? *of_libc : nullptr;
}
