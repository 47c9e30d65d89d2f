/* Rotates and mirrors a JPEG without decoding it. The image is a grid of blocks, each of 8 x 8 frequencies. To mirror
 * it, reverse the order of the blocks and negate every second frequency of that direction; to transpose it, transpose
 * the grid, each block, the quantization tables and the sampling factors. No pixel changes, provided that the size of a
 * mirrored side is a multiple of the largest blocks: otherwise the padding of the last block would become visible at
 * the front.
 *
 * Both libjpeg objects share one error manager, which jumps back to upright(); everything that must survive the jump is
 * stored in the struct. */
#include "base/status.h"
#include "kernels/image/exif.h"
#include "kernels/image/orient.h"

#include <millrace/image.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

static constexpr int64_t PIXELS_MAX = 100'000'000;
static constexpr int SCANS_MAX = 500;

typedef struct orient_work {
    struct jpeg_decompress_struct source;
    struct jpeg_compress_struct target;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    mr_status status; /* belongs to the message */
    const unsigned char *bytes;
    size_t size_bytes;
    mr_orientation transform;
    jvirt_barray_ptr *source_blocks, *target_blocks;
    unsigned char *written; /* allocated by libjpeg with malloc */
    unsigned long written_bytes;
    bool has_jfif, has_adobe; /* present before the first scan */
} orient_work;

[[noreturn]] static void fail(orient_work *work, mr_status status)
{
    work->status = status;
    longjmp(work->jump, 1);
}

[[noreturn]] static void error_exit(j_common_ptr common)
{
    orient_work *work = common->client_data;
    common->err->format_message(common, work->message);
    int code = common->err->msg_code;
    fail(work, code == JERR_OUT_OF_MEMORY ? MR_RESOURCE_EXHAUSTED : MR_DATA_LOSS);
}

/* Warnings report damaged data, which must not be copied. */
static void emit_message(j_common_ptr common, int level)
{
    if (level < 0 && common->err->msg_code != JWRN_EXTRANEOUS_DATA && common->err->msg_code != JWRN_JFIF_MAJOR &&
        common->err->msg_code != JWRN_ADOBE_XFORM)
        error_exit(common);
}

static void output_message(j_common_ptr common)
{
    (void)common;
}

static void watch_scans(j_common_ptr common)
{
    orient_work *work = common->client_data;
    if (!common->is_decompressor || work->source.input_scan_number <= SCANS_MAX) return;
    snprintf(work->message, sizeof(work->message), "it has more than %d scans", SCANS_MAX);
    fail(work, MR_DATA_LOSS);
}

/* A block needs at least one bit of Huffman code, so a header with an impossible size is rejected before memory is
 * allocated. */
static void check_size(orient_work *work)
{
    const struct jpeg_decompress_struct *source = &work->source;
    int64_t pixels = (int64_t)source->image_width * source->image_height;
    if (pixels > PIXELS_MAX) {
        snprintf(work->message, sizeof(work->message), "it has %u x %u pixels", source->image_width,
                 source->image_height);
        fail(work, MR_INVALID_ARGUMENT);
    }
    if (!source->arith_code && pixels / 64 > (int64_t)work->size_bytes * 8) {
        snprintf(work->message, sizeof(work->message), "its %zu bytes cannot hold %u x %u pixels", work->size_bytes,
                 source->image_width, source->image_height);
        fail(work, MR_DATA_LOSS);
    }
}

static void open_source(orient_work *work)
{
    struct jpeg_decompress_struct *source = &work->source;
    jpeg_create_decompress(source);
    source->progress = &work->progress;
    jpeg_mem_src(source, work->bytes, work->size_bytes);
    jpeg_save_markers(source, JPEG_COM, 0xffff);
    for (int i = 0; i < 16; i++) jpeg_save_markers(source, JPEG_APP0 + i, 0xffff);
    (void)jpeg_read_header(source, TRUE);
    check_size(work);
    /* Markers after the first scan are too late to determine the color space. */
    work->has_jfif = source->saw_JFIF_marker;
    work->has_adobe = source->saw_Adobe_marker;
    jpeg_save_markers(source, JPEG_COM, 0);
    for (int i = 0; i < 16; i++) jpeg_save_markers(source, JPEG_APP0 + i, 0);
    /* The sampling factors of a single component have no effect. */
    bool single = source->num_components == 1;
    JDIMENSION block_width = 8 * (JDIMENSION)(single ? 1 : source->max_h_samp_factor),
               block_height = 8 * (JDIMENSION)(single ? 1 : source->max_v_samp_factor);
    if ((work->transform.mirror_x && source->image_width % block_width != 0) ||
        (work->transform.mirror_y && source->image_height % block_height != 0)) {
        snprintf(work->message, sizeof(work->message), "its %u x %u pixels are not a multiple of blocks of %u x %u",
                 source->image_width, source->image_height, block_width, block_height);
        fail(work, MR_FAILED_PRECONDITION);
    }
}

static JDIMENSION round_up(JDIMENSION count, int unit)
{
    return (count + (JDIMENSION)unit - 1) / (JDIMENSION)unit * (JDIMENSION)unit;
}

/* Requests the result's blocks, which must precede reading the source's. */
static void request_blocks(orient_work *work)
{
    struct jpeg_decompress_struct *source = &work->source;
    work->target_blocks = source->mem->alloc_small((j_common_ptr)source, JPOOL_IMAGE,
                                                   sizeof(jvirt_barray_ptr) * (size_t)source->num_components);
    for (int i = 0; i < source->num_components; i++) {
        const jpeg_component_info *component = &source->comp_info[i];
        JDIMENSION across = round_up(component->width_in_blocks, component->h_samp_factor),
                   down = round_up(component->height_in_blocks, component->v_samp_factor);
        bool swap = work->transform.swap;
        work->target_blocks[i] = source->mem->request_virt_barray(
            (j_common_ptr)source, JPOOL_IMAGE, TRUE, swap ? down : across, swap ? across : down,
            (JDIMENSION)(swap ? component->h_samp_factor : component->v_samp_factor));
    }
    work->source_blocks = jpeg_read_coefficients(source);
}

static void orient_block(const mr_orientation *transform, const JCOEF *source, JCOEF *target)
{
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++) {
            bool negate = ((transform->mirror_x && (u & 1) != 0) != (transform->mirror_y && (v & 1) != 0));
            JCOEF value = source[8 * v + u];
            target[transform->swap ? 8 * u + v : 8 * v + u] = (JCOEF)(negate ? -value : value);
        }
}

static JBLOCKARRAY row_of(orient_work *work, jvirt_barray_ptr blocks, JDIMENSION row, bool writable)
{
    struct jpeg_decompress_struct *source = &work->source;
    return source->mem->access_virt_barray((j_common_ptr)source, blocks, row, 1, writable);
}

static void orient_component(orient_work *work, int i)
{
    const jpeg_component_info *component = &work->source.comp_info[i];
    JDIMENSION across = component->width_in_blocks, down = component->height_in_blocks;
    mr_orientation transform = work->transform;
    JDIMENSION rows = transform.swap ? across : down, columns = transform.swap ? down : across;
    for (JDIMENSION y = 0; y < rows; y++) {
        JBLOCKROW target = row_of(work, work->target_blocks[i], y, true)[0];
        for (JDIMENSION x = 0; x < columns; x++) {
            JDIMENSION source_x = transform.swap ? y : x, source_y = transform.swap ? x : y;
            if (transform.mirror_x) source_x = across - 1 - source_x;
            if (transform.mirror_y) source_y = down - 1 - source_y;
            orient_block(&transform, row_of(work, work->source_blocks[i], source_y, false)[0][source_x], target[x]);
        }
    }
}

static void swap_directions(struct jpeg_compress_struct *target)
{
    JDIMENSION width = target->image_width;
    target->image_width = target->image_height;
    target->image_height = width;
#if JPEG_LIB_VERSION >= 70
    target->jpeg_width = target->image_width;
    target->jpeg_height = target->image_height;
#endif
    for (int i = 0; i < target->num_components; i++) {
        jpeg_component_info *component = &target->comp_info[i];
        int across = component->h_samp_factor;
        component->h_samp_factor = component->v_samp_factor;
        component->v_samp_factor = across;
    }
    for (int i = 0; i < NUM_QUANT_TBLS; i++) {
        JQUANT_TBL *table = target->quant_tbl_ptrs[i];
        for (int v = 0; table != nullptr && v < 8; v++)
            for (int u = 0; u < v; u++) {
                UINT16 value = table->quantval[8 * v + u];
                table->quantval[8 * v + u] = table->quantval[8 * u + v];
                table->quantval[8 * u + v] = value;
            }
    }
}

/* Copies all metadata, except what libjpeg writes itself. */
static void copy_markers(orient_work *work)
{
    struct jpeg_compress_struct *target = &work->target;
    for (jpeg_saved_marker_ptr marker = work->source.marker_list; marker != nullptr; marker = marker->next) {
        unsigned length = marker->data_length;
        if (target->write_JFIF_header && marker->marker == JPEG_APP0 && length >= 5 &&
            memcmp(marker->data, "JFIF", 5) == 0)
            continue;
        if (target->write_Adobe_marker && marker->marker == JPEG_APP0 + 14 && length >= 5 &&
            memcmp(marker->data, "Adobe", 5) == 0)
            continue;
        if (marker->marker == JPEG_APP0 + 1 && length >= 6 && memcmp(marker->data, "Exif\0", 6) == 0)
            mr_exif_remove_orientation(marker->data + 6, length - 6);
        jpeg_write_marker(target, marker->marker, marker->data, length);
    }
}

static void write_target(orient_work *work)
{
    struct jpeg_decompress_struct *source = &work->source;
    struct jpeg_compress_struct *target = &work->target;
    for (int i = 0; i < source->num_components; i++) orient_component(work, i);
    jpeg_create_compress(target);
    jpeg_mem_dest(target, &work->written, &work->written_bytes);
    jpeg_copy_critical_parameters(source, target);
    /* The markers that determine the color space are kept as they are, even if absent. */
    target->write_JFIF_header = work->has_jfif;
    target->write_Adobe_marker = work->has_adobe;
    if (work->transform.swap) swap_directions(target);
    target->optimize_coding = TRUE;
    if (source->progressive_mode) jpeg_simple_progression(target);
    jpeg_write_coefficients(target, work->target_blocks);
    copy_markers(work);
    jpeg_finish_compress(target);
    (void)jpeg_finish_decompress(source);
}

static mr_status upright(orient_work *work, mr_tensor *result, mr_error *error)
{
    work->source.err = work->target.err = jpeg_std_error(&work->errors);
    work->source.client_data = work->target.client_data = work;
    work->errors.error_exit = error_exit;
    work->errors.emit_message = emit_message;
    work->errors.output_message = output_message;
    work->progress.progress_monitor = watch_scans;
    if (setjmp(work->jump) == 0) {
        open_source(work);
        request_blocks(work);
        write_target(work);
        return mr_tensor_init_string(result, (mr_string){(const char *)work->written, work->written_bytes}, error);
    }
    return mr_fail(error, work->status, "the JPEG image cannot be rotated: %s", work->message);
}

mr_status mr_image_orient_jpeg(const void *bytes, size_t size_bytes, mr_tensor *result, mr_error *error)
{
    mr_image_info info = {0};
    MR_TRY(mr_image_probe(bytes, size_bytes, &info, error));
    if (info.format != MR_IMAGE_JPEG || info.orientation < 1)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the %s image has no orientation to apply",
                       mr_image_format_name(info.format));
    orient_work *work = calloc(1, sizeof(*work));
    if (work == nullptr) return mr_fail_memory(error, sizeof(*work));
    work->bytes = bytes;
    work->size_bytes = size_bytes;
    work->transform = mr_orientation_of(info.orientation);
    mr_status status = upright(work, result, error);
    jpeg_destroy_compress(&work->target);
    jpeg_destroy_decompress(&work->source);
    free(work->written);
    free(work);
    return status;
}
