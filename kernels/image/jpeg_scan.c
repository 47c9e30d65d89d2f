/* The scan decoder: converts bits to coefficients, which takes most of the time of decoding a JPEG.
 *
 * First the stuffed zeros are removed from the data, a few KiB at a time, so that 8 bytes of bits can be loaded without
 * examining them. A coefficient needs one table lookup for its code. Its value is extracted in parallel, off the
 * critical path from one code to the next. Skipping coefficients needs one lookup for several codes.
 *
 * MCUs are numbered through the scan. libjpeg requests each of them. A null pointer, or a column outside the crop,
 * means that it will not use the MCU; such an MCU is only counted. The next MCU that is used is then located: its
 * restart segment by counting markers, and within the segment by skipping the MCUs before it. MCUs after the last used
 * one are never read, except that a scan without restart markers is parsed to its end, as libjpeg does. */
#include "kernels/image/jpeg_scan.h"

#include "kernels/image/jpeg_bytes.h"
#include "kernels/image/jpeg_codes.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

/* The decoder is installed through two private structures of libjpeg-turbo, whose layout in these versions is known.
 * With other headers, libjpeg's own decoder is used. */
#if __has_include(<jpegint.h>) && JPEG_LIB_VERSION == 62 && LIBJPEG_TURBO_VERSION_NUMBER >= 2001000 && \
    LIBJPEG_TURBO_VERSION_NUMBER < 2002000
#include <jpegint.h>
static constexpr bool HAS_INTERNALS = true;
static_assert(offsetof(struct jpeg_entropy_decoder, decode_mcu) == sizeof(void (*)(void)));
static_assert(offsetof(struct jpeg_decomp_master, first_iMCU_col) == 2 * sizeof(void (*)(void)) + sizeof(JDIMENSION));
static_assert(offsetof(struct jpeg_decomp_master, last_iMCU_col) ==
              offsetof(struct jpeg_decomp_master, first_iMCU_col) + sizeof(JDIMENSION));

static JDIMENSION first_column(const struct jpeg_decompress_struct *decompress)
{
    return decompress->master->first_iMCU_col;
}

static JDIMENSION last_column(const struct jpeg_decompress_struct *decompress)
{
    return decompress->master->last_iMCU_col;
}

static void replace_decoder(struct jpeg_decompress_struct *decompress, boolean (*decode)(j_decompress_ptr, JBLOCKROW *))
{
    decompress->entropy->decode_mcu = decode;
}
#else
static constexpr bool HAS_INTERNALS = false;

static JDIMENSION first_column(const struct jpeg_decompress_struct *decompress)
{
    return 0;
}

static JDIMENSION last_column(const struct jpeg_decompress_struct *decompress)
{
    return 0;
}

static void replace_decoder(struct jpeg_decompress_struct *decompress, boolean (*decode)(j_decompress_ptr, JBLOCKROW *))
{
}
#endif

/* Ten blocks of 64 codes of at most 31 bits. */
constexpr size_t mcu_max_bytes = D_MAX_BLOCKS_IN_MCU * DCTSIZE2 * 4;
constexpr size_t piece_bytes = 8192;

typedef struct block_plan {
    const mr_jpeg_codes *dc, *ac;
    int32_t component;
    bool keeps_dc, keeps_ac;
} block_plan;

struct mr_jpeg_scan {
    const mr_jpeg_bytes_table *loops;
    bool (*decode)(mr_jpeg_scan *scan, JBLOCKROW *blocks); /* one MCU */
    bool (*skip)(mr_jpeg_scan *scan);
    const unsigned char *source, *source_end; /* data that has not been unstuffed */
    mr_jpeg_bits bits;
    const unsigned char *data_end; /* end of the unstuffed bytes in `data` */
    bool is_last_piece;            /* source is at a marker or at its end */

    block_plan plan[D_MAX_BLOCKS_IN_MCU];
    int32_t block_count, component_count;
    int64_t dc[MAX_COMPS_IN_SCAN];

    uint32_t requested, requested_column;        /* the MCU that libjpeg requests next */
    uint32_t columns, column_first, column_last; /* number of MCU columns; the range that libjpeg uses */
    uint32_t mcu_count;
    uint32_t next;                  /* the MCU that `bits` points to */
    uint32_t interval, segment_end; /* MCUs between restart markers, 0: none; the first MCU after this segment */
    uint32_t segment, segment_count;

    mr_jpeg_codes dc_codes[NUM_HUFF_TBLS], ac_codes[NUM_HUFF_TBLS];
    unsigned char data[piece_bytes + mcu_max_bytes + 2 * mr_jpeg_bytes_slack];
};

/* ---- Bytes ---- */

static void begin_data(mr_jpeg_scan *scan)
{
    scan->bits = (mr_jpeg_bits){.next = scan->data};
    size_t count = scan->loops->unstuff(scan->data, piece_bytes, &scan->source, scan->source_end);
    scan->data_end = scan->data + count;
    scan->is_last_piece = count < piece_bytes;
}

/* Called before each MCU: makes the bytes of the longest possible MCU available, or all that are left. */
static void ensure_data(mr_jpeg_scan *scan)
{
    if (scan->is_last_piece || (size_t)(scan->data_end - scan->bits.next) >= mcu_max_bytes) return;
    size_t kept = (size_t)(scan->data_end - scan->bits.next);
    memmove(scan->data, scan->bits.next, kept);
    scan->bits.next = scan->data;
    size_t room = piece_bytes - kept;
    size_t count = scan->loops->unstuff(scan->data + kept, room, &scan->source, scan->source_end);
    scan->data_end = scan->data + kept + count;
    scan->is_last_piece = count < room;
}

/* False if more bits were consumed than exist. Bytes after the last one are read, but never used. */
static bool is_within_data(const mr_jpeg_scan *scan)
{
    return (scan->bits.next - scan->data_end) * 8 <= (ptrdiff_t)(scan->bits.count & 63);
}

/* ---- Blocks ---- */

/* The position of each coefficient in a block, in coding order. */
static const uint8_t natural_order[DCTSIZE2] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                                12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                                35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                                58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* The functions below are compiled for each set of instructions: shifts by any number of bits, of which a code needs
 * several, are faster with BMI2. */
#define EACH_CPU [[gnu::always_inline]] static inline

EACH_CPU bool read_dc(mr_jpeg_bits *bits, const mr_jpeg_codes *codes, int64_t *dc)
{
    mr_jpeg_bits_fill(bits);
    mr_jpeg_code code = codes->lookup[bits->bits >> (64 - mr_jpeg_lookup_bits)];
    if (__builtin_expect(code == 0, 0)) {
        code = mr_jpeg_codes_search(codes, bits->bits);
        if (code == 0) return false;
    }
    if ((code & mr_jpeg_no_value) == 0) *dc += mr_jpeg_value(bits->bits, code);
    mr_jpeg_bits_drop(bits, code);
    return true;
}

/* Reads a code of any kind before coefficient k. Returns the index of the next coefficient, DCTSIZE2 if the block is
 * complete, or a larger number on an error. */
static uint32_t read_one(mr_jpeg_bits *bits, const mr_jpeg_codes *codes, uint32_t k, JCOEF *block)
{
    mr_jpeg_bits_fill(bits);
    mr_jpeg_code code = mr_jpeg_codes_search(codes, bits->bits);
    uint32_t zeros = code >> 24 & 15;
    if (code == 0) return UINT32_MAX;
    k += zeros + 1;
    if ((code & mr_jpeg_no_value) != 0) {
        /* As in libjpeg, a run of 16 zeros may extend past the end. */
        if (zeros != 15 || k > DCTSIZE2) k = DCTSIZE2;
    } else if (k <= DCTSIZE2) {
        block[natural_order[k - 1]] = (JCOEF)mr_jpeg_value(bits->bits, code);
    }
    mr_jpeg_bits_drop(bits, code);
    return k;
}

EACH_CPU bool read_ac(mr_jpeg_bits *bits, const mr_jpeg_codes *codes, JCOEF *block)
{
    const uint8_t *order = natural_order;
    uint32_t k = 1;
    while (k < DCTSIZE2) {
        mr_jpeg_pair pair;
        mr_jpeg_bits_fill(bits);
        for (int i = 0; i < 3; i++) {
            pair = codes->pairs[bits->bits >> (64 - mr_jpeg_lookup_bits)];
            uint32_t last = k + (pair >> 32 & 0xff);
            if (__builtin_expect((pair & mr_jpeg_pair_special) != 0, 0)) goto special;
            /* The last coefficient of a block may be the first of the two; the second then belongs to another block. */
            if (__builtin_expect(last >= DCTSIZE2 - 1, 0)) goto one;
            block[order[k + (pair >> 24 & 0xff)]] = (JCOEF)(pair >> 40);
            block[order[last]] = (JCOEF)mr_jpeg_value(bits->bits, pair);
            mr_jpeg_bits_drop(bits, pair);
            k = last + 1;
        }
        continue;
    special:
        if ((pair & mr_jpeg_pair_first) != 0) {
            k += pair >> 24 & 0xff;
            if (k >= DCTSIZE2 - 1) {
                k -= pair >> 24 & 0xff;
                goto one;
            }
            block[order[k]] = (JCOEF)(pair >> 40);
        }
        if ((pair & 0xff) != 0) {
            uint32_t advance = pair >> 32 & 0xff;
            mr_jpeg_bits_drop(bits, pair);
            if (advance != 16 || (pair & mr_jpeg_pair_first) != 0) return true;
            k += advance;
            continue;
        }
    one:
        k = read_one(bits, codes, k, block);
    }
    return k == DCTSIZE2;
}

EACH_CPU bool skip_ac(mr_jpeg_bits *bits, const mr_jpeg_codes *codes)
{
    const mr_jpeg_skip *skips = mr_jpeg_codes_skip(codes);
    uint32_t k = 1;
    while (k < DCTSIZE2) {
        mr_jpeg_bits_fill(bits);
        for (int i = 0; i < 2; i++) {
            mr_jpeg_skip skip = skips[bits->bits >> (64 - mr_jpeg_skip_bits)];
            if (__builtin_expect(skip == 0 || k + (skip >> 8 & 0xff) >= DCTSIZE2, 0)) {
                JCOEF unused[DCTSIZE2];
                k = read_one(bits, codes, k, unused);
                break;
            }
            mr_jpeg_bits_drop(bits, skip);
            k += skip >> 16;
            if (k >= mr_jpeg_block_end) return true;
            if (k >= DCTSIZE2) break;
        }
    }
    return k == DCTSIZE2;
}

/* libjpeg's sums are ints; a sum that does not fit is an error there. */
static bool is_dc_in_range(const mr_jpeg_scan *scan)
{
    bool good = true;
    for (int32_t c = 0; c < scan->component_count; c++) good = good && scan->dc[c] == (int32_t)scan->dc[c];
    return good;
}

EACH_CPU bool decode_mcu(mr_jpeg_scan *scan, JBLOCKROW *blocks)
{
    ensure_data(scan);
    mr_jpeg_bits bits = scan->bits;
    bool good = true;
    for (int32_t b = 0; b < scan->block_count && good; b++) {
        const block_plan *plan = &scan->plan[b];
        JCOEF *block = *blocks[b];
        good = read_dc(&bits, plan->dc, &scan->dc[plan->component]);
        if (plan->keeps_dc) block[0] = (JCOEF)scan->dc[plan->component];
        if (good) good = plan->keeps_ac ? read_ac(&bits, plan->ac, block) : skip_ac(&bits, plan->ac);
    }
    scan->bits = bits;
    scan->next++;
    return good && is_within_data(scan) && is_dc_in_range(scan);
}

EACH_CPU bool skip_mcu(mr_jpeg_scan *scan)
{
    assert(scan->plan[0].ac->has_skip);
    ensure_data(scan);
    mr_jpeg_bits bits = scan->bits;
    bool good = true;
    for (int32_t b = 0; b < scan->block_count && good; b++) {
        const block_plan *plan = &scan->plan[b];
        good = read_dc(&bits, plan->dc, &scan->dc[plan->component]) && skip_ac(&bits, plan->ac);
    }
    scan->bits = bits;
    scan->next++;
    return good && is_within_data(scan) && is_dc_in_range(scan);
}

static bool decode_mcu_plain(mr_jpeg_scan *scan, JBLOCKROW *blocks)
{
    return decode_mcu(scan, blocks);
}

MR_TARGET_AVX2 static bool decode_mcu_avx2(mr_jpeg_scan *scan, JBLOCKROW *blocks)
{
    return decode_mcu(scan, blocks);
}

static bool skip_mcu_plain(mr_jpeg_scan *scan)
{
    return skip_mcu(scan);
}

MR_TARGET_AVX2 static bool skip_mcu_avx2(mr_jpeg_scan *scan)
{
    return skip_mcu(scan);
}

/* ---- Segments ---- */

static void begin_segment(mr_jpeg_scan *scan, uint32_t segment)
{
    scan->segment = segment;
    uint64_t begin = (uint64_t)segment * scan->interval, end = begin + scan->interval;
    scan->next = (uint32_t)begin;
    scan->segment_end = scan->interval == 0 || end > scan->mcu_count ? scan->mcu_count : (uint32_t)end;
    memset(scan->dc, 0, sizeof(scan->dc));
}

/* Skips markers from this segment to another; each must be the next restart marker. Leaves source after the last
 * one. */
static bool advance_to_segment(mr_jpeg_scan *scan, uint32_t segment)
{
    for (uint32_t s = scan->segment; s < segment; s++) {
        const unsigned char *marker = scan->loops->find_marker(scan->source, scan->source_end);
        if (marker == nullptr || marker[1] != JPEG_RST0 + (s & 7)) return false;
        scan->source = marker + 2;
    }
    return true;
}

static bool seek_mcu(mr_jpeg_scan *scan, uint32_t mcu)
{
    if (mcu >= scan->segment_end) {
        uint32_t segment = mcu / scan->interval;
        if (!advance_to_segment(scan, segment)) return false;
        begin_segment(scan, segment);
        begin_data(scan);
    }
    while (scan->next < mcu)
        if (!scan->skip(scan)) return false;
    return true;
}

/* Finds the marker after the scan, where libjpeg continues. */
static bool end_scan(mr_jpeg_scan *scan, struct jpeg_source_mgr *source)
{
    while (scan->interval == 0 && scan->next < scan->mcu_count)
        if (!scan->skip(scan)) return false;
    if (!advance_to_segment(scan, scan->segment_count - 1)) return false;
    const unsigned char *marker = scan->loops->find_marker(scan->source, scan->source_end);
    if (marker == nullptr || marker[1] == 0xff || (marker[1] >= JPEG_RST0 && marker[1] <= JPEG_RST0 + 7)) return false;
    source->next_input_byte = marker;
    source->bytes_in_buffer = (size_t)(scan->source_end - marker);
    return true;
}

/* Leaves libjpeg; the reader then restarts the image with libjpeg's own decoder. */
[[noreturn]] static void leave_irregular(mr_jpeg_reader *reader)
{
    reader->irregular = true;
    longjmp(reader->jump, 1);
}

/* The function that replaces libjpeg's decoder. */
static boolean decode_for_libjpeg(j_decompress_ptr decompress, JBLOCKROW *blocks)
{
    mr_jpeg_reader *reader = decompress->client_data;
    mr_jpeg_scan *scan = reader->scan;
    uint32_t mcu = scan->requested++, column = scan->requested_column++;
    assert(mcu < scan->mcu_count);
    if (scan->requested_column == scan->columns) scan->requested_column = 0;
    if (blocks != nullptr && column >= scan->column_first && column <= scan->column_last)
        if (!seek_mcu(scan, mcu) || !scan->decode(scan, blocks)) leave_irregular(reader);
    if (scan->requested == scan->mcu_count && !end_scan(scan, decompress->src)) leave_irregular(reader);
    return TRUE;
}

/* ---- Starting ---- */

static bool fits(struct jpeg_decompress_struct *decompress)
{
    return !decompress->progressive_mode && !decompress->arith_code && !jpeg_has_multiple_scans(decompress) &&
           decompress->comps_in_scan == decompress->num_components && decompress->Ss == 0 &&
           decompress->Se == DCTSIZE2 - 1 && decompress->Ah == 0 && decompress->Al == 0 &&
           decompress->unread_marker == 0 && decompress->data_precision == 8;
}

static void plan_blocks(mr_jpeg_scan *scan, const struct jpeg_decompress_struct *decompress, bool skips)
{
    scan->component_count = decompress->comps_in_scan;
    scan->block_count = decompress->blocks_in_MCU;
    for (int32_t b = 0; b < scan->block_count; b++) {
        int component = decompress->MCU_membership[b];
        const jpeg_component_info *info = decompress->cur_comp_info[component];
        mr_jpeg_codes *dc = &scan->dc_codes[info->dc_tbl_no], *ac = &scan->ac_codes[info->ac_tbl_no];
        mr_jpeg_codes_build(dc, decompress->dc_huff_tbl_ptrs[info->dc_tbl_no]);
        mr_jpeg_codes_build(ac, decompress->ac_huff_tbl_ptrs[info->ac_tbl_no]);
        bool keeps_ac = info->component_needed && info->DCT_scaled_size > 1;
        mr_jpeg_codes_build_lookup(dc);
        if (keeps_ac) mr_jpeg_codes_build_pairs(ac);
        if (skips || !keeps_ac) mr_jpeg_codes_build_skip(ac);
        scan->plan[b] = (block_plan){dc, ac, component, info->component_needed, keeps_ac};
    }
}

size_t mr_jpeg_scan_bytes(void)
{
    return sizeof(mr_jpeg_scan);
}

void mr_jpeg_scan_start(mr_jpeg_reader *reader)
{
    struct jpeg_decompress_struct *decompress = &reader->decompress;
    if (!HAS_INTERNALS || !fits(decompress)) return;
    if (reader->scan == nullptr) reader->scan = calloc(1, sizeof(*reader->scan));
    mr_jpeg_scan *scan = reader->scan;
    if (scan == nullptr) return;
    bool is_cropped = reader->is_cropped;
    bool has_avx2 = mr_cpu() >= MR_CPU_AVX2;
    scan->loops = mr_jpeg_bytes(mr_cpu());
    scan->decode = has_avx2 ? decode_mcu_avx2 : decode_mcu_plain;
    scan->skip = has_avx2 ? skip_mcu_avx2 : skip_mcu_plain;
    scan->source = decompress->src->next_input_byte;
    scan->source_end = scan->source + decompress->src->bytes_in_buffer;
    scan->requested = scan->requested_column = 0;
    scan->columns = decompress->MCUs_per_row;
    scan->column_first = is_cropped ? first_column(decompress) : 0;
    scan->column_last = is_cropped ? last_column(decompress) : scan->columns - 1;
    scan->mcu_count = decompress->MCUs_per_row * decompress->MCU_rows_in_scan;
    scan->interval = decompress->restart_interval;
    scan->segment_count = scan->interval == 0 ? 1 : (scan->mcu_count + scan->interval - 1) / scan->interval;
    plan_blocks(scan, decompress, is_cropped || reader->window.y > 0);
    begin_segment(scan, 0);
    begin_data(scan);
    replace_decoder(decompress, decode_for_libjpeg);
}

void mr_jpeg_scan_free(mr_jpeg_scan *scan)
{
    free(scan);
}
