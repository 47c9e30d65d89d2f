/* Lookup tables for a JPEG's Huffman codes, and the bit buffer that codes are read from. */
#ifndef MR_KERNELS_JPEG_CODES_H
#define MR_KERNELS_JPEG_CODES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

/* After a refill, 56 bits suffice for three lookups or for two skip steps. */
constexpr uint32_t mr_jpeg_lookup_bits = 10, mr_jpeg_lookup_total_bits = 18, mr_jpeg_skip_bits = 11;

/* A code and the value that follows it:
 *     bits 0…7    total length of code and value; 0: no such code exists, or it is not in the table
 *     bits 8…15   length of the code
 *     bits 16…23  64 minus the length of the value
 *     bits 24…30  number of zero coefficients before the value
 *     bit  31     no value follows: end of block, or a run of 16 zeros
 * Shift counts need no masking, since shifts of 64-bit numbers use only the lowest six bits of the count. */
typedef uint32_t mr_jpeg_code;
constexpr mr_jpeg_code mr_jpeg_no_value = 1u << 31;

/* One or two AC coefficients: the first including its value, if it fits into the lookup bits, and the code of the last:
 *     bits 0…7    total length; 0: the code is not in the table
 *     bits 8…15   length of everything before the last value
 *     bits 16…23  64 minus the length of the last value
 *     bits 24…31  number of zero coefficients before the first; the same as before the last if there is one
 *     bits 32…39  number of coefficients before the last
 *     bits 40…55  the value of the first
 *     bit  62     a first coefficient precedes the end of the block
 *     bit  63     there is no last: end of block, a run of 16 zeros, or an empty entry */
typedef uint64_t mr_jpeg_pair;
constexpr mr_jpeg_pair mr_jpeg_pair_special = 1ull << 63, mr_jpeg_pair_first = 1ull << 62;

/* The AC coefficients that can be skipped: as many codes as the lookup bits contain, at most to the end of the block:
 *     bits 0…7    total length; 0: none
 *     bits 8…15   number of coefficients before the last one
 *     bits 16…31  number of coefficients including it; mr_jpeg_block_end or more: the block ends */
typedef uint32_t mr_jpeg_skip;
constexpr uint32_t mr_jpeg_block_end = 512;

typedef struct mr_jpeg_codes {
    mr_jpeg_code lookup[1 << mr_jpeg_lookup_bits];
    mr_jpeg_pair pairs[1 << mr_jpeg_lookup_bits];
    /* Tables for lookups of 1, 2, … mr_jpeg_skip_bits bits, stored one after another: 2, 4, … entries. */
    mr_jpeg_skip skip[2 << mr_jpeg_skip_bits];
    mr_jpeg_code by_length[257]; /* shortest first, then 0 */
    uint32_t end_code[18];       /* for each length: the last code plus 1, left-aligned to 16 bits */
    int32_t first[18];           /* for each length, the number to add to a code to get its index in by_length */
    JHUFF_TBL table;             /* the source of these tables */
    bool is_built, has_lookup, has_pairs, has_skip;
} mr_jpeg_codes;

/* Builds the tables, unless they were built from the same table for the previous image. libjpeg has checked `table`. */
void mr_jpeg_codes_build(mr_jpeg_codes *codes, const JHUFF_TBL *table);
/* Build a lookup table, unless it exists. */
void mr_jpeg_codes_build_lookup(mr_jpeg_codes *codes);
void mr_jpeg_codes_build_pairs(mr_jpeg_codes *codes);
void mr_jpeg_codes_build_skip(mr_jpeg_codes *codes);
/* The code at the start of `bits`, of any length; 0 if there is none. */
mr_jpeg_code mr_jpeg_codes_search(const mr_jpeg_codes *codes, uint64_t bits);

static inline const mr_jpeg_skip *mr_jpeg_codes_skip(const mr_jpeg_codes *codes)
{
    return codes->skip + (1 << mr_jpeg_skip_bits);
}

/* The bit buffer: at least `count` bits, the next one highest. Only the lowest 8 bits of count are significant. */
typedef struct mr_jpeg_bits {
    uint64_t bits, count;
    const unsigned char *next; /* 8 bytes must be readable */
} mr_jpeg_bits;

/* Refills the buffer to at least 56 bits. */
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

/* Removes the bits of an entry of any table. */
static inline void mr_jpeg_bits_drop(mr_jpeg_bits *b, uint64_t entry)
{
    b->bits <<= entry & 63;
    b->count -= entry;
}

/* The value after the last code of an entry, which must have one. A value whose first bit is 0 is negative. */
static inline int32_t mr_jpeg_value(uint64_t bits, uint64_t entry)
{
    bits <<= entry >> 8 & 63;
    uint64_t negative = ~(uint64_t)((int64_t)bits >> 63);
    return (int32_t)(((bits ^ negative) >> (entry >> 16 & 63)) ^ negative) - (int32_t)negative;
}

#endif
