/* The GIF decoder, by giflib: the first image on its canvas, which is transparent outside the image. Blocks are read
 * one by one, so that blocks after the first image cost nothing. */
#include "tfrecord-make/foreign.h"

#include <gif_lib.h>

#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    const char *bytes;
    size_t size_bytes, at;
} cursor;

static int read_bytes(GifFileType *file, GifByteType *to, int count)
{
    cursor *cursor = file->UserData;
    size_t left = cursor->size_bytes - cursor->at, size = count > 0 && (size_t)count < left ? (size_t)count : left;
    if (count <= 0) return 0;
    memcpy(to, cursor->bytes + cursor->at, size);
    cursor->at += size;
    return (int)size;
}

static mr_status fail_damaged(mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "the GIF image is damaged or truncated");
}

/* Skips an extension; *transparent is the color that a graphics control extension makes transparent. */
static bool pass_extension(GifFileType *file, int *transparent)
{
    int code;
    GifByteType *block;
    if (DGifGetExtension(file, &code, &block) == GIF_ERROR) return false;
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        *transparent = control.TransparentColor;
    while (block)
        if (DGifGetExtensionNext(file, &block) == GIF_ERROR) return false;
    return true;
}

/* Moves to the first image. */
static bool find_image(GifFileType *file, int *transparent)
{
    *transparent = NO_TRANSPARENT_COLOR;
    for (GifRecordType type; DGifGetRecordType(file, &type) != GIF_ERROR;) {
        if (type == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(file) != GIF_ERROR;
        if (type != EXTENSION_RECORD_TYPE || !pass_extension(file, transparent)) return false;
    }
    return false;
}

/* The image row of the n-th line in the file. */
static int row_of(int line, int height, bool interlaced)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    if (!interlaced) return line;
    for (int pass = 0; pass < 4; pass++) {
        int rows = height > starts[pass] ? (height - starts[pass] + steps[pass] - 1) / steps[pass] : 0;
        if (line < rows) return starts[pass] + line * steps[pass];
        line -= rows;
    }
    return height - 1;
}

static mr_status read_image(GifFileType *file, int transparent, GifByteType *line, mr_tensor *pixels, mr_error *error)
{
    const GifImageDesc *image = &file->Image;
    const ColorMapObject *colors = image->ColorMap ? image->ColorMap : file->SColorMap;
    if (!colors) return mr_fail(error, MR_DATA_LOSS, "the GIF image has no color table");
    for (int i = 0; i < image->Height; i++) {
        if (DGifGetLine(file, line, image->Width) == GIF_ERROR) return fail_damaged(error);
        int64_t y = image->Top + row_of(i, image->Height, image->Interlace);
        uint8_t *to = (uint8_t *)pixels->data + (y * pixels->shape.dims[1] + image->Left) * 4;
        for (int x = 0; x < image->Width; x++, to += 4) {
            if (line[x] == transparent) continue;
            if (line[x] >= colors->ColorCount) return fail_damaged(error);
            const GifColorType *color = &colors->Colors[line[x]];
            to[0] = color->Red, to[1] = color->Green, to[2] = color->Blue, to[3] = 255;
        }
    }
    return MR_OK;
}

mr_status foreign_decode_gif(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    cursor cursor = {bytes.data, bytes.size_bytes, 0};
    int code, transparent;
    GifFileType *file = DGifOpen(&cursor, read_bytes, &code);
    if (!file) return fail_damaged(error);
    mr_status status = MR_OK;
    GifByteType *line = nullptr;
    if (!find_image(file, &transparent)) {
        status = fail_damaged(error);
    } else if (file->Image.Width <= 0 || file->Image.Height <= 0 || file->Image.Left < 0 || file->Image.Top < 0 ||
               (int64_t)file->Image.Left + file->Image.Width > info->width ||
               (int64_t)file->Image.Top + file->Image.Height > info->height) {
        status = mr_fail(error, MR_DATA_LOSS, "the first frame of the GIF image is outside its %d x %d pixels",
                         info->width, info->height);
    } else {
        line = malloc((size_t)file->Image.Width);
        status = line ? foreign_pixels(info, 4, pixels, error) : mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
        if (status == MR_OK) memset(pixels->data, 0, (size_t)mr_tensor_count(pixels));
        if (status == MR_OK) status = read_image(file, transparent, line, pixels, error);
    }
    free(line);
    (void)DGifCloseFile(file, &code);
    return status;
}
