/* A JPEG's Huffman codes as tables to look up, and the bits that they are read from. */
#ifndef MR_KERNELS_JPEG_CODES_H
#define MR_KERNELS_JPEG_CODES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

/* A filling of 56 bits serves three looks, or two steps of skipping. */
constexpr uint32_t mr_jpeg_lookup_bits = 10, mr_jpeg_lookup_total_bits = 18, mr_jpeg_skip_bits = 11;

/* A code and the value that follows it:
 *     bits 0…7    of both together; 0: there is no such code, or it is not in the table
 *     bits 8…15   of the code alone
 *     bits 16…23  64 less those of the value
 *     bits 24…30  coefficients of zero before the value
 *     bit  31     no value follows: the block ends, or 16 zeros come
 * Shifts by 64 bits and less need no masking, since they take the lowest six bits of what they are given. */
typedef uint32_t mr_jpeg_code;
constexpr mr_jpeg_code mr_jpeg_no_value = 1u << 31;

/* One or two AC coefficients: the first with its value, when all of it lies within the bits that are looked at, and the
 * code of the last:
 *     bits 0…7    of all; 0: the code is not in the table
 *     bits 8…15   before the last's value
 *     bits 16…23  64 less those of the last's value
 *     bits 24…31  coefficients of zero before the first; the same as before the last when there is one
 *     bits 32…39  coefficients before the last
 *     bits 40…55  the first's value
 *     bit  62     there is a first before the end of the block
 *     bit  63     no last: the block ends, or 16 zeros come, or all is 0 */
typedef uint64_t mr_jpeg_pair;
constexpr mr_jpeg_pair mr_jpeg_pair_special = 1ull << 63, mr_jpeg_pair_first = 1ull << 62;

/* Codes of AC coefficients to be passed over, as many as the bits show, at most until the block ends:
 *     bits 0…7    of all of them; 0: none
 *     bits 8…15   coefficients before the last of them
 *     bits 16…31  coefficients with it; from mr_jpeg_block_end on, the block ends */
typedef uint32_t mr_jpeg_skip;
constexpr uint32_t mr_jpeg_block_end = 512;

typedef struct mr_jpeg_codes {
    mr_jpeg_code lookup[1 << mr_jpeg_lookup_bits];
    mr_jpeg_pair pairs[1 << mr_jpeg_lookup_bits];
    /* By 1, 2, … mr_jpeg_skip_bits bits, one after the other: 2, 4, … entries. */
    mr_jpeg_skip skip[2 << mr_jpeg_skip_bits];
    mr_jpeg_code by_length[257]; /* shortest first, then 0 */
    uint32_t end_code[18];       /* behind the last code of each length, left-aligned to 16 bits */
    int32_t first[18];           /* of each length: what to add to a code to find it in by_length */
    JHUFF_TBL table;             /* what this was made from */
    bool is_made, has_lookup, has_pairs, has_skip;
} mr_jpeg_codes;

/* Reads a table unless it is that of the image before. It has been checked by libjpeg. */
void mr_jpeg_codes_make(mr_jpeg_codes *codes, const JHUFF_TBL *table);
/* Makes one of the tables to look up, unless it is there. */
void mr_jpeg_codes_make_lookup(mr_jpeg_codes *codes);
void mr_jpeg_codes_make_pairs(mr_jpeg_codes *codes);
void mr_jpeg_codes_make_skip(mr_jpeg_codes *codes);
/* The code that the bits begin with, whatever its length; 0 when there is none. */
mr_jpeg_code mr_jpeg_codes_search(const mr_jpeg_codes *codes, uint64_t bits);

static inline const mr_jpeg_skip *mr_jpeg_codes_skip(const mr_jpeg_codes *codes)
{
    return codes->skip + (1 << mr_jpeg_skip_bits);
}

/* Bits to come, the next one highest, at least `count` of them; of count only the lowest 8 bits mean something. */
typedef struct mr_jpeg_bits {
    uint64_t bits, count;
    const unsigned char *next; /* 8 bytes must be readable */
} mr_jpeg_bits;

/* Afterwards there are at least 56. */
static inline void mr_jpeg_bits_fill(mr_jpeg_bits *b)
{
    uint64_t word;
    memcpy(&word, b->next, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    b->bits |= word >> (b->count & 63);
    b->next += 7 - (b->count >> 3 & 7);
    b->count |= 56;
}

/* Takes what an entry of any table tells of off the bits. */
static inline void mr_jpeg_bits_drop(mr_jpeg_bits *b, uint64_t entry)
{
    b->bits <<= entry & 63;
    b->count -= entry;
}

/* The value behind the last code of an entry, which has one: with a first bit of 0 it is negative. */
static inline int32_t mr_jpeg_value(uint64_t bits, uint64_t entry)
{
    bits <<= entry >> 8 & 63;
    uint64_t negative = ~(uint64_t)((int64_t)bits >> 63);
    return (int32_t)(((bits ^ negative) >> (entry >> 16 & 63)) ^ negative) - (int32_t)negative;
}

#endif
