/* JPEG decoding with libjpeg-turbo. The result is identical to that of TensorFlow 2.15 for the same file.
 *
 * TensorFlow uses the fast integer DCT and fancy upsampling by default, converts CMYK and YCCK to RGB itself, and
 * treats the end of the data as an error. libjpeg reports errors through a function that must not return. Here that
 * function jumps back to guarded(), the only function with setjmp; functions called by guarded() store their state in
 * the reader. libjpeg's warnings report bad data after which decoding continued; those that affect pixels are counted
 * as damage.
 *
 * Baseline scans are decoded by jpeg_scan.c up to the first irregularity. The image is then restarted with libjpeg's
 * own decoder, and the rows that were already returned are read again, so that callers do not notice. */
#include "kernels/image/jpeg.h"

#include "kernels/image/jpeg_scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>

constexpr int rewinds_max = 100'000;
constexpr int64_t pixels_max_default = 100'000'000;

static mr_jpeg_reader *reader_of(j_common_ptr common)
{
    return (mr_jpeg_reader *)common->client_data;
}

static void keep_message(j_common_ptr common)
{
    mr_jpeg_reader *reader = reader_of(common);
    common->err->format_message(common, reader->message);
    reader->message_code = common->err->msg_code;
}

[[noreturn]] static void error_exit(j_common_ptr common)
{
    keep_message(common);
    longjmp(reader_of(common)->jump, 1);
}

static bool costs_pixels(int code)
{
    switch (code) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
        return true;
    default:
        return false;
    }
}

static void emit_message(j_common_ptr common, int level)
{
    mr_jpeg_reader *reader = reader_of(common);
    if (level >= 0 || reader->damaged || !costs_pixels(common->err->msg_code)) return;
    reader->damaged = true;
    keep_message(common);
}

static void output_message(j_common_ptr common)
{
    (void)common;
}

/* Limits the number of scans. A progressive file may contain any number of them, each of which takes few bytes, but
 * time for the complete image. */
static void progress_monitor(j_common_ptr common)
{
    mr_jpeg_reader *reader = reader_of(common);
    if (reader->decompress.input_scan_number <= reader->scans_max) return;
    snprintf(reader->message, sizeof(reader->message), "it has more than %d scans", reader->scans_max);
    reader->message_code = 0;
    longjmp(reader->jump, 1);
}

static void init_source(j_decompress_ptr decompress)
{
    (void)decompress;
}

/* All bytes are in memory, so if libjpeg requests more, the data is truncated. To continue, it gets an end marker. If
 * bytes are left in the source, libjpeg is inside a block or a segment and restarts it with these bytes, so that the
 * last blocks before the truncation are the same as in TensorFlow. For data that is truncated after 0xff this would
 * repeat indefinitely, so it is limited by rewinds_max, which is far above what other blocks need. */
static boolean fill_input_buffer(j_decompress_ptr decompress)
{
    static const JOCTET end_of_image[2] = {0xff, JPEG_EOI};
    mr_jpeg_reader *reader = reader_of((j_common_ptr)decompress);
    if (!reader->options.try_recover_truncated) ERREXIT(decompress, JERR_INPUT_EOF);
    if (decompress->src->bytes_in_buffer > 0 && ++reader->rewinds <= rewinds_max) return TRUE;
    reader->rewinds = 0;
    decompress->src->next_input_byte = end_of_image;
    decompress->src->bytes_in_buffer = sizeof(end_of_image);
    return TRUE;
}

static void skip_input_data(j_decompress_ptr decompress, long count)
{
    if (count <= 0) return;
    if (reader_of((j_common_ptr)decompress)->options.try_recover_truncated &&
        (unsigned long)count > decompress->src->bytes_in_buffer) {
        decompress->src->bytes_in_buffer = 0;
        (void)fill_input_buffer(decompress);
        return;
    }
    size_t left = decompress->src->bytes_in_buffer;
    size_t skipped = (unsigned long)count < left ? (size_t)count : left;
    decompress->src->next_input_byte += skipped;
    decompress->src->bytes_in_buffer -= skipped;
}

static void term_source(j_decompress_ptr decompress)
{
    (void)decompress;
}

static mr_status fail_as_libjpeg(mr_jpeg_reader *reader, mr_error *error)
{
    switch (reader->message_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the JPEG image needs more memory than is available");
    case JERR_INPUT_EOF:
        return mr_fail(error, MR_DATA_LOSS, "the JPEG image is truncated: its %zu bytes end too early",
                       reader->size_bytes);
    case JERR_IMAGE_TOO_BIG:
        return mr_fail(error, MR_INVALID_ARGUMENT, "the JPEG image is larger than %d pixels in one direction",
                       (int)JPEG_MAX_DIMENSION);
    case JERR_NO_SOI:
        return mr_fail(error, MR_INVALID_ARGUMENT, "not a JPEG image: it does not start with an SOI marker");
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
        return mr_fail(error, MR_UNIMPLEMENTED, "the JPEG image is of an unsupported kind: %s", reader->message);
    default:
        return mr_fail(error, MR_DATA_LOSS, "the JPEG image is damaged: %s", reader->message);
    }
}

/* Runs step and converts a jump out of libjpeg to a status, after which the image cannot be continued. */
static mr_status guarded(mr_jpeg_reader *reader, void (*step)(mr_jpeg_reader *reader), mr_error *error)
{
    if (setjmp(reader->jump) == 0) {
        step(reader);
        return MR_OK;
    }
    mr_status status = reader->irregular ? MR_DATA_LOSS : fail_as_libjpeg(reader, error);
    if (reader->created) jpeg_abort_decompress(&reader->decompress);
    return status;
}

static void create(mr_jpeg_reader *reader)
{
    jpeg_create_decompress(&reader->decompress);
    reader->created = true;
    mr_jpeg_memory_install(reader);
}

static mr_status ensure_created(mr_jpeg_reader *reader, mr_error *error)
{
    if (reader->created) return MR_OK;
    reader->decompress.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = error_exit;
    reader->errors.emit_message = emit_message;
    reader->errors.output_message = output_message;
    reader->decompress.client_data = reader;
    MR_TRY(guarded(reader, create, error));
    reader->source = (struct jpeg_source_mgr){.init_source = init_source,
                                              .fill_input_buffer = fill_input_buffer,
                                              .skip_input_data = skip_input_data,
                                              .resync_to_restart = jpeg_resync_to_restart,
                                              .term_source = term_source};
    reader->decompress.src = &reader->source;
    reader->progress.progress_monitor = progress_monitor;
    reader->decompress.progress = &reader->progress;
    return MR_OK;
}

static void read_header(mr_jpeg_reader *reader)
{
    if (reader->save_markers) {
        jpeg_save_markers(&reader->decompress, JPEG_COM, 0xffff);
        for (int i = 0; i < 16; i++) jpeg_save_markers(&reader->decompress, JPEG_APP0 + i, 0xffff);
    }
    (void)jpeg_read_header(&reader->decompress, TRUE);
}

static void calculate_output(mr_jpeg_reader *reader)
{
    jpeg_calc_output_dimensions(&reader->decompress);
}

static mr_status check_size(mr_jpeg_reader *reader, mr_error *error)
{
    const struct jpeg_decompress_struct *decompress = &reader->decompress;
    int64_t pixels_max = reader->options.pixels_max > 0 ? reader->options.pixels_max : pixels_max_default;
    int64_t pixels = (int64_t)decompress->image_width * decompress->image_height;
    if (pixels > pixels_max)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the JPEG image of %u x %u pixels is larger than the limit of %" PRId64 " pixels",
                       decompress->image_width, decompress->image_height, pixels_max);
    if (decompress->num_components > 4)
        return mr_fail(error, MR_UNIMPLEMENTED, "the JPEG image has %d components, more than 4",
                       decompress->num_components);
    /* A scan takes about one nanosecond for each pixel, even if it is empty. */
    int64_t scans_max = 10'000'000'000 / (pixels + 1);
    reader->scans_max = scans_max < 64 ? 64 : scans_max > 1000 ? 1000 : (int)scans_max;
    /* Coefficients of a progressive image: two bytes for each sample, padded to complete blocks. */
    int64_t memory_bytes = 16 * pixels + (64 << 20);
    decompress->mem->max_memory_to_use = (long)memory_bytes;
    reader->arena.limit_bytes = (size_t)memory_bytes;
    return MR_OK;
}

static mr_status set_output(mr_jpeg_reader *reader, mr_error *error)
{
    struct jpeg_decompress_struct *decompress = &reader->decompress;
    const mr_image_decode_options *options = &reader->options;
    int32_t channels = options->channels;
    if (channels == 0) channels = decompress->num_components < 3 ? decompress->num_components : 3;
    if (channels != 1 && channels != 3)
        return mr_fail(error, MR_INVALID_ARGUMENT, "JPEG images can be decoded to 1 or 3 channels, not %d", channels);
    int32_t ratio = options->ratio == 0 ? 1 : options->ratio;
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the ratio of JPEG decoding must be 1, 2, 4 or 8, not %d", ratio);
    bool cmyk = decompress->jpeg_color_space == JCS_CMYK || decompress->jpeg_color_space == JCS_YCCK;
    decompress->out_color_space = channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
    decompress->do_fancy_upsampling = !options->no_fancy_upsampling;
    decompress->dct_method = options->accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    decompress->scale_num = 1;
    decompress->scale_denom = (unsigned)ratio;
    MR_TRY(guarded(reader, calculate_output, error));
    reader->width = (int32_t)decompress->output_width;
    reader->height = (int32_t)decompress->output_height;
    reader->channels = channels;
    return MR_OK;
}

/* libjpeg keeps tables for a next image that has none; here images are independent. */
static void reset_tables(struct jpeg_decompress_struct *decompress)
{
    for (int i = 0; i < NUM_QUANT_TBLS; i++) decompress->quant_tbl_ptrs[i] = nullptr;
    for (int i = 0; i < NUM_HUFF_TBLS; i++) decompress->dc_huff_tbl_ptrs[i] = decompress->ac_huff_tbl_ptrs[i] = nullptr;
}

mr_status mr_jpeg_reader_open(mr_jpeg_reader *reader, const void *bytes, size_t size_bytes,
                              const mr_image_decode_options *options, mr_error *error)
{
    MR_TRY(ensure_created(reader, error));
    jpeg_abort_decompress(&reader->decompress);
    reset_tables(&reader->decompress);
    reader->bytes = bytes;
    reader->size_bytes = size_bytes;
    reader->options = *options;
    reader->damaged = false;
    reader->is_plain = reader->always_plain;
    reader->irregular = false;
    reader->rewinds = 0;
    reader->scans_max = 1;
    reader->source.next_input_byte = bytes;
    reader->source.bytes_in_buffer = size_bytes;
    MR_TRY(guarded(reader, read_header, error));
    mr_status status = check_size(reader, error);
    if (status == MR_OK) status = set_output(reader, error);
    if (status != MR_OK) jpeg_abort_decompress(&reader->decompress);
    return status;
}

mr_status mr_jpeg_reader_set_ratio(mr_jpeg_reader *reader, int32_t ratio, mr_error *error)
{
    reader->options.ratio = ratio;
    mr_status status = set_output(reader, error);
    if (status != MR_OK) jpeg_abort_decompress(&reader->decompress);
    return status;
}

/* The number of coefficients whose precision libjpeg examines to decide whether to smooth blocks, with a margin. */
constexpr int smoothed_coefficients = 10;

bool mr_jpeg_lacks_scans(const struct jpeg_decompress_struct *decompress)
{
    for (int c = 0; c < decompress->num_components; c++) {
        if (decompress->comp_info[c].quant_table == nullptr) return true;
        for (int k = 0; decompress->coef_bits != nullptr && k < smoothed_coefficients; k++)
            if (decompress->coef_bits[c][k] != 0) return true;
    }
    return false;
}

/* Whether libjpeg's column crop produces the same pixels as the complete image. With a ratio, libjpeg may decode
 * subsampled components at a larger size instead of upsampling them; if both are necessary, as with 4:1:1 at 1/2, a
 * crop upsamples too few. And a progressive image that lacks scans is smoothed without the blocks next to the crop. */
static bool can_crop_columns(const struct jpeg_decompress_struct *decompress)
{
    int size = decompress->min_DCT_scaled_size;
    for (int c = 0; c < decompress->num_components; c++) {
        const jpeg_component_info *info = &decompress->comp_info[c];
        bool is_integral = info->h_samp_factor * info->DCT_scaled_size == decompress->max_h_samp_factor * size &&
                           info->v_samp_factor * info->DCT_scaled_size == decompress->max_v_samp_factor * size;
        if (info->DCT_scaled_size != size && !is_integral) return false;
    }
    return !decompress->progressive_mode || !mr_jpeg_lacks_scans(decompress);
}

static void start(mr_jpeg_reader *reader)
{
    struct jpeg_decompress_struct *decompress = &reader->decompress;
    (void)jpeg_start_decompress(decompress);
    const mr_image_region *window = &reader->window;
    reader->row_left = window->x;
    reader->is_cropped = window->width < reader->width && can_crop_columns(decompress);
    if (reader->is_cropped) {
        /* Fancy upsampling uses the chroma of adjacent pixels: two more columns on each side keep the window's own
         * columns exact. libjpeg then moves the left edge further to the left, to a complete block of the most
         * subsampled component. */
        constexpr int32_t guard = 2;
        int32_t left = window->x > guard ? window->x - guard : 0;
        int32_t right = window->x + window->width;
        right = reader->width - right > guard ? right + guard : reader->width;
        JDIMENSION x = (JDIMENSION)left, width = (JDIMENSION)(right - left);
        jpeg_crop_scanline(decompress, &x, &width);
        reader->row_left = window->x - (int32_t)x;
    }
    reader->row_width = (int32_t)decompress->output_width;
    if (!reader->is_plain) mr_jpeg_scan_start(reader);
    if (window->y > 0) (void)jpeg_skip_scanlines(decompress, (JDIMENSION)window->y);
    if (decompress->out_color_space == JCS_CMYK) {
        j_common_ptr common = (j_common_ptr)decompress;
        reader->cmyk = decompress->mem->alloc_large(common, JPOOL_IMAGE, 4 * (size_t)decompress->output_width);
    }
}

/* Adobe files store inverted inks. */
static void cmyk_to_rgb(const unsigned char *cmyk, unsigned char *rgb, int32_t width, bool inverted)
{
    for (int32_t i = 0; i < width; i++, cmyk += 4, rgb += 3) {
        unsigned light = inverted ? cmyk[3] : 255u - cmyk[3];
        for (int c = 0; c < 3; c++) rgb[c] = (unsigned char)(light * (inverted ? cmyk[c] : 255u - cmyk[c]) / 255);
    }
}

static void read_row(mr_jpeg_reader *reader)
{
    struct jpeg_decompress_struct *decompress = &reader->decompress;
    bool cmyk = decompress->out_color_space == JCS_CMYK;
    JSAMPROW row = cmyk ? reader->cmyk : reader->row;
    /* The source never suspends, so a row is always available. */
    if (jpeg_read_scanlines(decompress, &row, 1) != 1) ERREXIT(decompress, JERR_CANT_SUSPEND);
    if (cmyk) cmyk_to_rgb(reader->cmyk, reader->row, reader->row_width, decompress->saw_Adobe_marker);
}

/* Reads the rows that the caller already has into a separate buffer. */
static void repeat_rows(mr_jpeg_reader *reader)
{
    struct jpeg_decompress_struct *decompress = &reader->decompress;
    unsigned char *row = reader->row;
    size_t row_bytes = (size_t)reader->row_width * (size_t)reader->channels;
    reader->row = decompress->mem->alloc_large((j_common_ptr)decompress, JPOOL_IMAGE, row_bytes);
    for (int32_t i = 0; i < reader->rows_read; i++) read_row(reader);
    reader->row = row;
}

/* Runs a step of decoding; if necessary, restarts with libjpeg's own decoder. */
static mr_status attempt(mr_jpeg_reader *reader, void (*step)(mr_jpeg_reader *reader), mr_error *error)
{
    mr_status status = guarded(reader, step, error);
    if (!reader->irregular) return status;
    mr_image_decode_options options = reader->options;
    MR_TRY(mr_jpeg_reader_open(reader, reader->bytes, reader->size_bytes, &options, error));
    reader->is_plain = true;
    if (step != start) {
        MR_TRY(guarded(reader, start, error));
        MR_TRY(guarded(reader, repeat_rows, error));
    }
    return guarded(reader, step, error);
}

mr_status mr_jpeg_reader_start(mr_jpeg_reader *reader, const mr_image_region *window, mr_error *error)
{
    mr_image_region complete = {.width = reader->width, .height = reader->height};
    reader->window = window != nullptr ? *window : complete;
    reader->rows_read = 0;
    return attempt(reader, start, error);
}

mr_status mr_jpeg_reader_row(mr_jpeg_reader *reader, unsigned char *row, mr_error *error)
{
    reader->row = row;
    MR_TRY(attempt(reader, read_row, error));
    reader->rows_read++;
    return MR_OK;
}

static void finish(mr_jpeg_reader *reader)
{
    (void)jpeg_finish_decompress(&reader->decompress);
}

mr_status mr_jpeg_reader_finish(mr_jpeg_reader *reader, mr_error *error)
{
    if (reader->decompress.output_scanline < reader->decompress.output_height)
        jpeg_abort_decompress(&reader->decompress);
    else
        MR_TRY(guarded(reader, finish, error));
    if (reader->damaged && !reader->options.accept_damaged && !reader->options.try_recover_truncated)
        return mr_fail(error, MR_DATA_LOSS, "the JPEG image is damaged: %s", reader->message);
    return MR_OK;
}

static void read_coefficients(mr_jpeg_reader *reader)
{
    reader->coefficients = jpeg_read_coefficients(&reader->decompress);
}

mr_status mr_jpeg_reader_coefficients(mr_jpeg_reader *reader, jvirt_barray_ptr **coefficients, mr_error *error)
{
    MR_TRY(guarded(reader, read_coefficients, error));
    if (reader->damaged) return mr_fail(error, MR_DATA_LOSS, "the JPEG image is damaged: %s", reader->message);
    *coefficients = reader->coefficients;
    return MR_OK;
}

void mr_jpeg_reader_deinit(mr_jpeg_reader *reader)
{
    if (reader->created) jpeg_destroy_decompress(&reader->decompress);
    mr_arena_deinit(&reader->arena);
    mr_jpeg_scan_free(reader->scan);
    *reader = (mr_jpeg_reader){0};
}

static mr_status decode(mr_jpeg_reader *reader, const void *bytes, size_t size_bytes,
                        const mr_image_decode_options *options, mr_tensor *image, mr_error *error)
{
    MR_TRY(mr_jpeg_reader_open(reader, bytes, size_bytes, options, error));
    /* Before the target is allocated, so that the coefficients of a progressive file are known to fit into memory. */
    MR_TRY(mr_jpeg_reader_start(reader, nullptr, error));
    MR_TRY(mr_tensor_init(image, MR_UINT8, MR_SHAPE(reader->height, reader->width, reader->channels), error));
    unsigned char *row = mr_tensor_uint8s(image);
    size_t row_bytes = (size_t)reader->width * (size_t)reader->channels;
    mr_status status = MR_OK;
    for (int32_t y = 0; y < reader->height && status == MR_OK; y++, row += row_bytes)
        status = mr_jpeg_reader_row(reader, row, error);
    if (status == MR_OK) status = mr_jpeg_reader_finish(reader, error);
    const int64_t rows = reader->rows_read;
    const float fraction = options != nullptr ? options->acceptable_fraction : 0;
    if (status == MR_DATA_LOSS && reader->message_code == JERR_INPUT_EOF && fraction > 0 && fraction < 1 &&
        rows < reader->height && (float)rows >= fraction * (float)reader->height) {
        memset(mr_tensor_uint8s(image) + (size_t)rows * row_bytes, 0, (size_t)(reader->height - rows) * row_bytes);
        return MR_OK;
    }
    if (status != MR_OK) mr_tensor_deinit(image);
    return status;
}

mr_status mr_jpeg_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options, mr_tensor *image,
                         mr_error *error)
{
    mr_jpeg_reader *reader = calloc(1, sizeof(*reader));
    if (reader == nullptr) return mr_fail_memory(error, sizeof(*reader));
    mr_status status = decode(reader, bytes, size_bytes, options, image, error);
    mr_jpeg_reader_deinit(reader);
    free(reader);
    return status;
}
