/* Crop-ready JPEGs: the same coefficients, encoded again as one baseline scan with a restart marker every few MCUs.
 *
 * A restart marker can be found without decoding the data before it, and decoding can start after it. If each row of
 * MCUs has an integral number of segments, a decoder reads only the segments that overlap a crop (jpeg_scan.c). Short
 * segments match the crop better, but need more bytes for the marker, the padding of a byte, and DC values that are
 * encoded in full instead of as differences. Huffman tables optimized for the image usually recover most of that.
 *
 * Images that would decode to other pixels are rejected: damaged ones, which every decoder repairs differently, and
 * progressive ones without their last scans, which decoders smooth. */
#include "base/arguments.h"
#include "base/options.h"
#include "kernels/image/jpeg.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

/* Below this size, optimized Huffman tables may cost more than they save, and trying both takes little time. */
constexpr size_t tables_matter_bytes = 8192;

typedef struct rewriter {
    mr_jpeg_reader reader;
    struct jpeg_compress_struct compress;
    struct jpeg_error_mgr errors;
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    struct jpeg_destination_mgr destination;
    unsigned char *bytes; /* owned; allocated with malloc */
    size_t size_bytes, capacity_bytes;
    jvirt_barray_ptr *coefficients;
    const mr_crop_ready_options *options;
    mr_crop_ready_info *info;
    bool has_jfif; /* in front of the first scan, where it determines the color space */
} rewriter;

[[noreturn]] static void error_exit(j_common_ptr common)
{
    rewriter *work = common->client_data;
    common->err->format_message(common, work->message);
    longjmp(work->jump, 1);
}

static void output_message(j_common_ptr common)
{
    (void)common;
}

/* ---- Destination: libjpeg's own memory destination loses its buffer after an error ---- */

static void init_destination(j_compress_ptr compress)
{
    rewriter *work = compress->client_data;
    work->destination.next_output_byte = work->bytes;
    work->destination.free_in_buffer = work->capacity_bytes;
}

static boolean grow_destination(j_compress_ptr compress)
{
    rewriter *work = compress->client_data;
    size_t capacity_bytes = 2 * work->capacity_bytes;
    unsigned char *bytes = realloc(work->bytes, capacity_bytes);
    if (bytes == nullptr) ERREXIT1(compress, JERR_OUT_OF_MEMORY, 0);
    work->destination.next_output_byte = bytes + work->capacity_bytes;
    work->destination.free_in_buffer = capacity_bytes - work->capacity_bytes;
    work->bytes = bytes;
    work->capacity_bytes = capacity_bytes;
    return TRUE;
}

static void finish_destination(j_compress_ptr compress)
{
    rewriter *work = compress->client_data;
    work->size_bytes = work->capacity_bytes - work->destination.free_in_buffer;
}

/* ---- Segments ---- */

static int32_t mcus_per_row(const struct jpeg_decompress_struct *source)
{
    if (source->num_components == 1) return (int32_t)source->comp_info[0].width_in_blocks;
    int32_t mcu_width = source->max_h_samp_factor * DCTSIZE;
    return ((int32_t)source->image_width + mcu_width - 1) / mcu_width;
}

/* A segment of about 64 pixels adds few bytes and is rarely much longer than a crop needs. */
static int32_t choose_segment(const struct jpeg_decompress_struct *source, int32_t row)
{
    static const int32_t wide[] = {4, 5, 3, 6, 7, 8, 2}, narrow[] = {8, 7, 6, 5, 4, 3, 2};
    bool is_wide = source->num_components > 1 && source->max_h_samp_factor > 1;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        int32_t mcus = is_wide ? wide[i] : narrow[i];
        if (row % mcus == 0) return mcus;
    }
    return 1;
}

/* ---- Markers ---- */

static bool begins_with(const struct jpeg_marker_struct *marker, const char *text, unsigned size_bytes)
{
    return marker->data_length >= size_bytes && memcmp(marker->data, text, size_bytes) == 0;
}

static void write_orientation(struct jpeg_compress_struct *compress, int32_t orientation)
{
    unsigned char exif[] = {
        'E', 'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, /* offset of the first directory */
        0,   1,                                                 /* one entry */
        1,   0x12, 0,   3,   0, 0, 0,   1,   0, 0,  0, 0,       /* orientation: one number of type SHORT */
        0,   0,    0,   0};                                     /* no other directory */
    exif[25] = (unsigned char)orientation;
    jpeg_write_marker(compress, JPEG_APP0 + 1, exif, sizeof(exif));
}

/* Adobe's marker is copied unchanged: if it and JFIF's disagree, decoders differ, and must continue to do so. */
static void write_markers(rewriter *work)
{
    struct jpeg_compress_struct *compress = &work->compress;
    mr_crop_ready_info *info = work->info;
    const struct jpeg_marker_struct *adobe = nullptr;
    info->metadata_bytes = 0;
    info->profile_dropped = info->orientation_kept = false;
    for (const struct jpeg_marker_struct *m = work->reader.decompress.marker_list; m != nullptr; m = m->next) {
        if (m->marker == JPEG_APP0 && begins_with(m, "JFIF", 5)) {
            info->metadata_bytes += m->data_length > 14 ? m->data_length - 14 : 0;
        } else if (m->marker == JPEG_APP0 + 14 && m->data_length >= 12 && begins_with(m, "Adobe", 5)) {
            adobe = m;
        } else if (m->marker == JPEG_APP0 + 2 && begins_with(m, "ICC_PROFILE", 12)) {
            if (work->options->keep_icc_profile)
                jpeg_write_marker(compress, m->marker, m->data, m->data_length);
            else
                info->profile_dropped = true;
            info->metadata_bytes += work->options->keep_icc_profile ? 0 : m->data_length + 4;
        } else {
            info->metadata_bytes += m->data_length + 4;
        }
    }
    if (adobe != nullptr) jpeg_write_marker(compress, JPEG_APP0 + 14, adobe->data, 12);
    if (info->source.orientation > 1 && !work->options->drop_orientation) {
        write_orientation(compress, info->source.orientation);
        info->orientation_kept = true;
    }
}

/* ---- Writing ---- */

static void write_image(rewriter *work, bool own_tables)
{
    struct jpeg_compress_struct *compress = &work->compress;
    jpeg_create_compress(compress);
    work->destination = (struct jpeg_destination_mgr){.init_destination = init_destination,
                                                      .empty_output_buffer = grow_destination,
                                                      .term_destination = finish_destination};
    compress->dest = &work->destination;
    jpeg_copy_critical_parameters(&work->reader.decompress, compress);
    compress->write_JFIF_header = work->has_jfif;
    compress->write_Adobe_marker = FALSE;
    compress->restart_interval = (unsigned)work->info->restart_interval;
    compress->optimize_coding = own_tables;
    jpeg_write_coefficients(compress, work->coefficients);
    write_markers(work);
    jpeg_finish_compress(compress);
}

static mr_status write_guarded(rewriter *work, bool own_tables, mr_error *error)
{
    work->compress = (struct jpeg_compress_struct){.err = jpeg_std_error(&work->errors), .client_data = work};
    work->errors.error_exit = error_exit;
    work->errors.output_message = output_message;
    mr_status status = MR_OK;
    if (setjmp(work->jump) == 0)
        write_image(work, own_tables);
    else if (work->errors.msg_code == JERR_OUT_OF_MEMORY)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory while making the JPEG image crop-ready");
    else
        status = mr_fail(error, MR_UNIMPLEMENTED, "the JPEG image cannot be made crop-ready: %s", work->message);
    jpeg_destroy_compress(&work->compress);
    return status;
}

/* Stores the result in work, with the Huffman tables that make it shorter. */
static mr_status write_shortest(rewriter *work, mr_error *error)
{
    MR_TRY(write_guarded(work, true, error));
    size_t own_bytes = work->size_bytes;
    if (own_bytes >= tables_matter_bytes) return MR_OK;
    MR_TRY(write_guarded(work, false, error));
    return work->size_bytes <= own_bytes ? MR_OK : write_guarded(work, true, error);
}

static mr_status rewrite(rewriter *work, const void *bytes, size_t size_bytes, mr_error *error)
{
    mr_image_decode_options decode = {.size = sizeof decode, .pixels_max = work->options->pixels_max};
    work->reader.save_markers = true;
    MR_TRY(mr_jpeg_reader_open(&work->reader, bytes, size_bytes, &decode, error));
    struct jpeg_decompress_struct *source = &work->reader.decompress;
    work->info->mcus_per_row = mcus_per_row(source);
    int32_t requested = work->options->restart_interval;
    work->info->restart_interval = requested > 0 ? requested : choose_segment(source, work->info->mcus_per_row);
    /* Markers after the first scan are too late to affect a pixel. */
    work->has_jfif = source->saw_JFIF_marker;
    jpeg_save_markers(source, JPEG_COM, 0);
    for (int i = 0; i < 16; i++) jpeg_save_markers(source, JPEG_APP0 + i, 0);
    MR_TRY(mr_jpeg_reader_coefficients(&work->reader, &work->coefficients, error));
    if (mr_jpeg_lacks_scans(source))
        return mr_fail(error, MR_UNIMPLEMENTED,
                       "the JPEG image lacks scans, which decoders estimate; it cannot be made crop-ready");
    work->capacity_bytes = size_bytes + size_bytes / 8 + 4096;
    work->bytes = malloc(work->capacity_bytes);
    if (work->bytes == nullptr) return mr_fail_memory(error, work->capacity_bytes);
    return write_shortest(work, error);
}

mr_status mr_image_crop_ready(const void *bytes, size_t size_bytes, const mr_crop_ready_options *given,
                              mr_tensor *ready, mr_crop_ready_info *info, mr_error *error)
{
    MR_REFUSE_NULL(ready, error);
    mr_crop_ready_options options;
    mr_crop_ready_info own_info;
    if (info == nullptr) info = &own_info;
    *info = (mr_crop_ready_info){0};
    *ready = (mr_tensor){0};
    MR_TRY(MR_OPTIONS_READ(mr_crop_ready_options, &options, given, error));
    if (options.restart_interval < 0 || options.restart_interval > 65535)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a restart segment must have 1 to 65535 MCUs, not %d",
                       options.restart_interval);
    MR_TRY(mr_image_probe(bytes, size_bytes, &info->source, error));
    if (info->source.format != MR_IMAGE_JPEG)
        return mr_fail(error, MR_UNIMPLEMENTED, "only JPEG images can be made crop-ready, not %s",
                       mr_image_format_name(info->source.format));
    rewriter *work = calloc(1, sizeof(*work));
    if (work == nullptr) return mr_fail_memory(error, sizeof(*work));
    work->options = &options;
    work->info = info;
    mr_status status = rewrite(work, bytes, size_bytes, error);
    if (status == MR_OK)
        status = mr_tensor_init_string(ready, (mr_string){(const char *)work->bytes, work->size_bytes}, error);
    if (status != MR_OK) *info = (mr_crop_ready_info){.source = info->source};
    free(work->bytes);
    mr_jpeg_reader_deinit(&work->reader);
    free(work);
    return status;
}
