/* The WebP decoder, by libwebp. Animations are parsed by libwebpdemux: the first frame is decoded on a canvas that
 * is transparent outside the frame. */
#include "tfrecord-make/foreign.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <string.h>

/* Decodes a frame to its position on the canvas, which has the same number of channels. */
static mr_status decode_frame(const uint8_t *bytes, size_t size_bytes, int32_t x, int32_t y, int32_t width,
                              int32_t height, mr_tensor *canvas, mr_error *error)
{
    WebPBitstreamFeatures features;
    int64_t rows = canvas->shape.dims[0], columns = canvas->shape.dims[1], channels = canvas->shape.dims[2];
    if (WebPGetFeatures(bytes, size_bytes, &features) != VP8_STATUS_OK || features.width != width ||
        features.height != height || x < 0 || y < 0 || (int64_t)x + width > columns || (int64_t)y + height > rows)
        return mr_fail(error, MR_DATA_LOSS, "the WebP image has a damaged header");
    size_t stride = (size_t)(columns * channels), begin = (size_t)y * stride + (size_t)(x * channels);
    uint8_t *to = (uint8_t *)canvas->data + begin;
    size_t room = (size_t)rows * stride - begin;
    const uint8_t *done = channels == 4 ? WebPDecodeRGBAInto(bytes, size_bytes, to, room, (int)stride)
                                        : WebPDecodeRGBInto(bytes, size_bytes, to, room, (int)stride);
    return done ? MR_OK : mr_fail(error, MR_DATA_LOSS, "the WebP image is damaged or truncated");
}

static mr_status decode_animation(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    WebPDemuxer *demuxer = WebPDemux(&(WebPData){(const uint8_t *)bytes.data, bytes.size_bytes});
    if (!demuxer) return mr_fail(error, MR_DATA_LOSS, "the WebP animation is damaged or truncated");
    WebPIterator frame;
    mr_status status = MR_OK;
    if (WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH) != (uint32_t)info->width ||
        WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT) != (uint32_t)info->height ||
        !WebPDemuxGetFrame(demuxer, 1, &frame)) {
        status = mr_fail(error, MR_DATA_LOSS, "the WebP animation has no first frame");
    } else {
        status = foreign_pixels(info, 4, pixels, error);
        if (status == MR_OK) memset(pixels->data, 0, (size_t)mr_tensor_count(pixels));
        if (status == MR_OK)
            status = decode_frame(frame.fragment.bytes, frame.fragment.size, frame.x_offset, frame.y_offset,
                                  frame.width, frame.height, pixels, error);
        WebPDemuxReleaseIterator(&frame);
    }
    WebPDemuxDelete(demuxer);
    return status;
}

mr_status foreign_decode_webp(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    WebPBitstreamFeatures features;
    const uint8_t *data = (const uint8_t *)bytes.data;
    if (WebPGetFeatures(data, bytes.size_bytes, &features) != VP8_STATUS_OK)
        return mr_fail(error, MR_DATA_LOSS, "the WebP image is damaged or truncated");
    info->is_animated = features.has_animation;
    if (features.has_animation) return decode_animation(bytes, info, pixels, error);
    MR_TRY(foreign_pixels(info, features.has_alpha ? 4 : 3, pixels, error));
    return decode_frame(data, bytes.size_bytes, 0, 0, info->width, info->height, pixels, error);
}
