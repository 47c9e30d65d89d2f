/* Common code of the kernels for strings: outputs whose strings are created one by one, numbers in text, and the
 * characters of UTF-8. */
#ifndef MR_KERNELS_TEXT_H
#define MR_KERNELS_TEXT_H

#include "base/arena.h"
#include "kernels/common.h"

/* A string output. Its elements may borrow bytes of the inputs, or of the arena; they are copied at the end. */
typedef struct mr_text_output {
    mr_sink sink;
    mr_arena arena;
    mr_string *items; /* all empty at first */
    int64_t count;
} mr_text_output;
mr_status mr_text_begin(mr_kernel_call *call, int index, mr_shape shape, mr_text_output *output, mr_error *error);
/* Must be called after every successful begin. failed: the status of the kernel, returned if it is not MR_OK. */
mr_status mr_text_end(mr_kernel_call *call, mr_text_output *output, mr_status failed, mr_error *error);

/* A string that grows. {0} is empty. A failed allocation is remembered. */
typedef struct mr_text_builder {
    char *data; /* owned: free() */
    size_t size_bytes, capacity_bytes;
    bool failed;
} mr_text_builder;
void mr_text_add(mr_text_builder *builder, const void *bytes, size_t size_bytes);
static inline void mr_text_add_string(mr_text_builder *builder, mr_string text)
{
    mr_text_add(builder, text.data, text.size_bytes);
}
/* Copies the contents to element `index` of an output, and empties the builder but keeps its memory. */
mr_status mr_text_put(mr_text_output *output, int64_t index, mr_text_builder *builder, mr_error *error);
static inline void mr_text_deinit(mr_text_builder *builder)
{
    __builtin_free(builder->data);
    *builder = (mr_text_builder){0};
}

/* The size that a printed string may have; a larger width or precision is an error. */
constexpr int MR_TEXT_WIDTH_MAX = 1 << 20;

/* Numbers in text, exactly as TensorFlow reads them: white space around the number is allowed; a floating-point number
 * may also be inf, nan or a hexadecimal integer, and has at most 31 bytes; text of white space alone is 0. Do not
 * depend on the locale. False if the text is not a number or does not fit. */
bool mr_text_to_int32(mr_string text, int32_t *value);
bool mr_text_to_int64(mr_string text, int64_t *value);
bool mr_text_to_float(mr_string text, float *value);
bool mr_text_to_double(mr_string text, double *value);

/* Writes a number with as few digits as TensorFlow's StrCat: 6 or 9 for float, 15 or 17 for double. */
constexpr size_t MR_NUMBER_TEXT_SIZE = 40;
int mr_text_from_float(float value, char text[MR_NUMBER_TEXT_SIZE]);
int mr_text_from_double(double value, char text[MR_NUMBER_TEXT_SIZE]);

static inline bool mr_text_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A byte that continues a character of UTF-8. */
static inline bool mr_utf8_is_trail(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}
/* Decodes the character at `at`, which must be less than the size; returns its length in bytes. A malformed sequence is
 * U+FFFD, as long as the longest part that could start a character; *is_valid reports it. */
size_t mr_utf8_decode(mr_string text, size_t at, int32_t *code_point, bool *is_valid);
/* Writes a code point of at most 0x10ffff, but a surrogate as U+FFFD; returns the number of bytes. */
size_t mr_utf8_encode(int32_t code_point, char bytes[4]);

/* FarmHash Fingerprint64, and the 64-bit hash of TensorFlow's Hash64. */
uint64_t mr_text_fingerprint(const void *bytes, size_t size_bytes);
/* Combines two hashes: TensorFlow's FingerprintCat64. */
uint64_t mr_text_fingerprint_join(uint64_t first, uint64_t second);
/* SipHash-2-4: TensorFlow's StrongKeyedHash. */
uint64_t mr_text_hash_keyed(const uint64_t key[2], mr_string text);

#endif
