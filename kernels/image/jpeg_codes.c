/* Builds lookup tables from the code lengths of a DHT segment.
 *
 * A code has at most 16 bits and its value at most 15 more. Short codes are found with one lookup, the few longer ones
 * by comparison with the last code of each length. The values of skipped blocks do not matter, so one lookup returns
 * all codes in the next bits: two or three in an image of good quality. */
#include "kernels/image/jpeg_codes.h"

static mr_jpeg_code code_of(unsigned symbol, uint32_t code_bits)
{
    uint32_t value_bits = symbol & 15, zeros = symbol >> 4;
    mr_jpeg_code code = (code_bits + value_bits) | code_bits << 8 | (64 - value_bits) << 16 | zeros << 24;
    return value_bits == 0 ? code | mr_jpeg_no_value : code;
}

static uint32_t total_bits(mr_jpeg_code code)
{
    return code & 0xff;
}

static uint32_t code_bits(mr_jpeg_code code)
{
    return code >> 8 & 0xff;
}

static uint32_t zeros(mr_jpeg_code code)
{
    return code >> 24 & 15;
}

static bool ends_block(mr_jpeg_code code)
{
    return (code & mr_jpeg_no_value) != 0 && zeros(code) != 15;
}

static void fill(uint32_t *entries, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++) entries[i] = value;
}

static void fill_pairs(mr_jpeg_pair *entries, uint32_t count, mr_jpeg_pair value)
{
    for (uint32_t i = 0; i < count; i++) entries[i] = value;
}

void mr_jpeg_codes_build(mr_jpeg_codes *codes, const JHUFF_TBL *table)
{
    if (codes->is_built && memcmp(codes->table.bits, table->bits, sizeof(table->bits)) == 0 &&
        memcmp(codes->table.huffval, table->huffval, sizeof(table->huffval)) == 0)
        return;
    codes->table = *table;
    codes->is_built = true;
    codes->has_lookup = codes->has_pairs = codes->has_skip = false;
    uint32_t code = 0;
    int32_t at = 0;
    for (uint32_t length = 1; length <= 16; length++, code <<= 1) {
        codes->first[length] = at - (int32_t)code;
        for (int i = 0; i < table->bits[length] && at < 256; i++, at++, code++)
            codes->by_length[at] = code_of(table->huffval[at], length);
        codes->end_code[length] = code << (16 - length);
    }
    codes->by_length[at] = 0;
}

void mr_jpeg_codes_build_lookup(mr_jpeg_codes *codes)
{
    if (codes->has_lookup) return;
    codes->has_lookup = true;
    uint32_t at = 0;
    for (const mr_jpeg_code *code = codes->by_length; *code != 0 && code_bits(*code) <= mr_jpeg_lookup_bits; code++) {
        uint32_t count = 1u << (mr_jpeg_lookup_bits - code_bits(*code));
        fill(codes->lookup + at, count, *code);
        at += count;
    }
    fill(codes->lookup + at, (1u << mr_jpeg_lookup_bits) - at, 0);
}

mr_jpeg_code mr_jpeg_codes_search(const mr_jpeg_codes *codes, uint64_t bits)
{
    uint32_t next = (uint32_t)(bits >> 48);
    for (uint32_t length = 1; length <= 16; length++)
        if (next < codes->end_code[length])
            return codes->by_length[((int32_t)(next >> (16 - length)) + codes->first[length]) & 255];
    return 0;
}

/* ---- Pairs ---- */

/* An entry with the given code as the last one, after `before` bits and `coefficients` coefficients. */
static mr_jpeg_pair last_of(mr_jpeg_code code, uint32_t before, uint32_t coefficients)
{
    uint64_t total = before + total_bits(code), to_value = before + code_bits(code);
    return total | to_value << 8 | (code & 0xff0000) | (uint64_t)(coefficients + zeros(code)) << 32;
}

static mr_jpeg_pair alone(mr_jpeg_code code)
{
    if ((code & mr_jpeg_no_value) != 0)
        return mr_jpeg_pair_special | total_bits(code) | (uint64_t)(ends_block(code) ? 0 : 16) << 32;
    return last_of(code, 0, 0) | (uint64_t)zeros(code) << 24;
}

/* For each value of the n bits after a coefficient, computes what they add to its entry; 0 if they are not sufficient.
 * A run of 16 zeros is left to the next lookup. */
static void make_seconds(const mr_jpeg_codes *codes, uint32_t n, mr_jpeg_pair *seconds)
{
    uint32_t at = 0, before = mr_jpeg_lookup_bits - n;
    for (const mr_jpeg_code *code = codes->by_length; *code != 0 && code_bits(*code) <= n; code++) {
        mr_jpeg_pair second = 0;
        if (ends_block(*code))
            second = mr_jpeg_pair_special | mr_jpeg_pair_first | (before + total_bits(*code));
        else if ((*code & mr_jpeg_no_value) == 0 && before + total_bits(*code) <= mr_jpeg_lookup_total_bits)
            second = last_of(*code, before, 1);
        uint32_t count = 1u << (n - code_bits(*code));
        fill_pairs(seconds + at, count, second);
        at += count;
    }
    fill_pairs(seconds + at, (1u << n) - at, 0);
}

static void make_pairs_of(mr_jpeg_code code, const mr_jpeg_pair *seconds, mr_jpeg_pair *pairs)
{
    uint32_t value_bits = total_bits(code) - code_bits(code), count = 1u << (mr_jpeg_lookup_bits - total_bits(code));
    mr_jpeg_pair single = alone(code), zeros_before = (mr_jpeg_pair)zeros(code) << 24 | (mr_jpeg_pair)zeros(code) << 32;
    for (uint32_t v = 0; v < 1u << value_bits; v++, pairs += count) {
        int32_t value = v >> (value_bits - 1) != 0 ? (int32_t)v : (int32_t)v - (1 << value_bits) + 1;
        mr_jpeg_pair first = zeros_before | (uint64_t)(uint16_t)value << 40;
        for (uint32_t i = 0; i < count; i++) pairs[i] = seconds[i] == 0 ? single : seconds[i] + first;
    }
}

void mr_jpeg_codes_build_pairs(mr_jpeg_codes *codes)
{
    if (codes->has_pairs) return;
    codes->has_pairs = true;
    mr_jpeg_pair seconds[1 << mr_jpeg_lookup_bits];
    bool has_seconds[mr_jpeg_lookup_bits] = {0};
    uint32_t at = 0;
    for (const mr_jpeg_code *code = codes->by_length; *code != 0 && code_bits(*code) <= mr_jpeg_lookup_bits; code++) {
        uint32_t total = total_bits(*code), count = 1u << (mr_jpeg_lookup_bits - code_bits(*code));
        if (total > mr_jpeg_lookup_total_bits) {
            fill_pairs(codes->pairs + at, count, mr_jpeg_pair_special);
        } else if (total >= mr_jpeg_lookup_bits || (*code & mr_jpeg_no_value) != 0) {
            fill_pairs(codes->pairs + at, count, alone(*code));
        } else {
            /* The table for n bits starts at entry 2^n. */
            uint32_t n = mr_jpeg_lookup_bits - total;
            if (!has_seconds[n]) make_seconds(codes, n, seconds + (1 << n));
            has_seconds[n] = true;
            make_pairs_of(*code, seconds + (1 << n), codes->pairs + at);
        }
        at += count;
    }
    fill_pairs(codes->pairs + at, (1u << mr_jpeg_lookup_bits) - at, mr_jpeg_pair_special);
}

/* ---- Skipping ---- */

/* Builds the table that skips codes by the first n bits. Each entry is a code of at most n bits, combined with the
 * entry of the remaining bits after its value, if there are any. */
static void make_skip_of(mr_jpeg_codes *codes, uint32_t n)
{
    mr_jpeg_skip *skip = codes->skip + (1 << n);
    uint32_t at = 0, end = 1u << n;
    for (int i = 0; at < end; i++) {
        mr_jpeg_code code = codes->by_length[i];
        uint32_t bits = code_bits(code), total = total_bits(code);
        if (bits == 0 || bits > n) break;
        uint32_t count = 1u << (n - bits), advance = ends_block(code) ? mr_jpeg_block_end : zeros(code) + 1;
        mr_jpeg_skip alone = total | advance << 16;
        if (total > mr_jpeg_lookup_total_bits) {
            fill(skip + at, count, 0);
        } else if (total >= n || advance == mr_jpeg_block_end) {
            fill(skip + at, count, alone);
        } else {
            const mr_jpeg_skip *rest = codes->skip + (1 << (n - total));
            uint32_t rest_count = 1u << (n - total);
            for (uint32_t k = 0; k < rest_count; k++)
                skip[at + k] = rest[k] == 0 ? alone : rest[k] + (alone | advance << 8);
            for (uint32_t k = rest_count; k < count; k += rest_count)
                memcpy(skip + at + k, skip + at, rest_count * sizeof(*skip));
        }
        at += count;
    }
    fill(skip + at, end - at, 0);
}

void mr_jpeg_codes_build_skip(mr_jpeg_codes *codes)
{
    if (codes->has_skip) return;
    codes->has_skip = true;
    for (uint32_t n = 1; n <= mr_jpeg_skip_bits; n++) make_skip_of(codes, n);
}
