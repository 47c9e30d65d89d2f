/* SHA-256 (FIPS 180-4), as names of contents: image/key/sha256. */
#ifndef MR_TOOLS_SHA256_H
#define MR_TOOLS_SHA256_H

#include <stddef.h>

/* 64 hexadecimal digits and a terminator. */
#define SHA256_TEXT_SIZE 65
void sha256_text(const void *bytes, size_t size_bytes, char text[SHA256_TEXT_SIZE]);

#endif
