/* One shard. A block of pictures at a time is read, checked and encoded by all threads, then appended in order by one;
 * so the bytes do not depend on the threads, and memory is a few blocks' pictures at most. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"
#include "records/file.h"

#include <millrace/example.h>
#include <millrace/image.h>
#include <millrace/record.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A larger picture file is a mistake rather than a picture. */
static constexpr size_t PICTURE_SIZE_MAX = (size_t)1 << 30;
/* A block ends at this many pictures for each thread, or at this many bytes. */
static constexpr int64_t BLOCK_PICTURES = 32;
static constexpr uint64_t BLOCK_BYTES = (uint64_t)64 << 20;

/* A picture's way through a block. */
typedef struct item {
    const picture *picture;
    mr_status status;
    mr_error error;
    char *record; /* owned; the serialised Example */
    size_t record_size;
} item;

typedef struct block {
    work *work;
    item *items;
    int64_t count;
} block;

/* Decodes the whole picture at an eighth of its size: every byte of it is looked at, and little is computed. */
static mr_status check_pixels(const char *bytes, size_t size_bytes, const mr_image_info *info, mr_error *error)
{
    mr_tensor pixels = {0};
    mr_image_decode_options options = {.ratio = info->format == MR_IMAGE_JPEG ? 8 : 0};
    MR_TRY(mr_image_decode(bytes, size_bytes, &options, &pixels, error));
    mr_tensor_deinit(&pixels);
    return MR_OK;
}

static const char *color_name(mr_color_space color)
{
    switch (color) {
    case MR_COLOR_GRAY:
        return "Gray";
    case MR_COLOR_CMYK:
        return "CMYK";
    default:
        return "RGB";
    }
}

static mr_status examine(const options *options, const char *bytes, size_t size_bytes, mr_image_info *info,
                         mr_error *error)
{
    if (size_bytes == 0) return mr_fail(error, MR_DATA_LOSS, "the file is empty");
    MR_TRY(mr_image_probe(bytes, size_bytes, info, error));
    if (info->format != MR_IMAGE_JPEG && info->format != MR_IMAGE_PNG)
        return mr_fail(error, MR_INVALID_ARGUMENT, "is %s; only JPEG and PNG are taken",
                       mr_image_format_name(info->format));
    return options->check ? check_pixels(bytes, size_bytes, info, error) : MR_OK;
}

static mr_status encode(const listing *listing, const picture *picture, mr_string bytes, const mr_image_info *info,
                        mr_example_encoder *encoder, mr_string *record, mr_error *error)
{
    mr_example_add_bytes(encoder, "image/encoded", bytes);
    mr_example_add_bytes(encoder, "image/format", info->format == MR_IMAGE_JPEG ? MR_STR("jpeg") : MR_STR("png"));
    mr_example_add_int64(encoder, "image/height", info->height);
    mr_example_add_int64(encoder, "image/width", info->width);
    mr_example_add_int64(encoder, "image/channels", info->channels);
    mr_example_add_bytes(encoder, "image/colorspace", mr_string_from(color_name(info->color)));
    mr_example_add_bytes(encoder, "image/filename", mr_string_from(picture->path));
    mr_example_add_int64(encoder, "image/class/label", picture->label);
    mr_example_add_bytes(encoder, "image/class/text", mr_string_from(listing->classes[picture->label]));
    return mr_example_finish(encoder, record, error);
}

static void work_on(work *work, item *item, mr_example_encoder *encoder)
{
    char *path = nullptr, *bytes = nullptr;
    size_t size = 0;
    mr_image_info info = {0};
    mr_string record = {0};
    mr_error *error = &item->error;
    if (asprintf(&path, "%s/%s", work->options->folder, item->picture->path) < 0) {
        item->status = mr_fail_memory(error, strlen(item->picture->path));
        return;
    }
    item->status = mr_file_read_whole(path, PICTURE_SIZE_MAX, &bytes, &size, error);
    if (item->status == MR_OK) {
        item->status = examine(work->options, bytes, size, &info, error);
        if (item->status == MR_OK)
            item->status =
                encode(work->listing, item->picture, (mr_string){bytes, size}, &info, encoder, &record, error);
        if (item->status != MR_OK) item->status = mr_fail_in(error, item->status, "%s", path);
    }
    if (item->status == MR_OK) {
        item->record = malloc(record.size_bytes);
        item->record_size = record.size_bytes;
        if (item->record)
            memcpy(item->record, record.data, record.size_bytes);
        else
            item->status = mr_fail_memory(error, record.size_bytes);
    }
    free(bytes);
    free(path);
    progress_add(work->progress, 1);
}

static void work_on_some(void *context, int64_t begin, int64_t end)
{
    block *block = context;
    mr_example_encoder encoder = {0};
    for (int64_t i = begin; i < end; i++) work_on(block->work, &block->items[i], &encoder);
    mr_example_encoder_deinit(&encoder);
}

/* How many pictures from begin make a block. */
static int64_t block_size(const work *work, int64_t begin, int64_t end)
{
    int64_t count = 0, most = BLOCK_PICTURES * mr_pool_thread_count(work->pool);
    uint64_t bytes = 0;
    while (begin + count < end && count < most && bytes < BLOCK_BYTES)
        bytes += work->listing->pictures[work->plan->order[begin + count++]].size_bytes;
    return count;
}

/* Appends what the threads made, in order, and tells of what is bad. */
static mr_status append_block(work *work, block *block, mr_record_writer *writer, int64_t *bad, mr_error *error)
{
    for (int64_t i = 0; i < block->count; i++) {
        item *item = &block->items[i];
        if (item->status == MR_OK) {
            MR_TRY(mr_record_writer_append(writer, item->record, item->record_size, error));
            continue;
        }
        if (item->status == MR_RESOURCE_EXHAUSTED && !work->options->skip_bad)
            return mr_fail(error, item->status, "%s", item->error.message);
        ++*bad;
        progress_hide(work->progress);
        fprintf(stderr, "tfrecord-make: %s\n", item->error.message);
        if (!work->options->skip_bad) return mr_fail(error, MR_CANCELLED, "stopped at a picture that cannot be used");
    }
    return MR_OK;
}

static mr_status write_blocks(work *work, const shard *shard, mr_record_writer *writer, int64_t *bad, mr_error *error)
{
    int64_t most = BLOCK_PICTURES * mr_pool_thread_count(work->pool), end = shard->begin + shard->count;
    block block = {.work = work, .items = calloc((size_t)most, sizeof(item))};
    if (!block.items) return mr_fail_memory(error, (size_t)most * sizeof(item));
    mr_status status = MR_OK;
    for (int64_t begin = shard->begin; begin < end && status == MR_OK; begin += block.count) {
        block.count = block_size(work, begin, end);
        for (int64_t i = 0; i < block.count; i++)
            block.items[i] = (item){.picture = &work->listing->pictures[work->plan->order[begin + i]]};
        mr_pool_for(work->pool, block.count, 1, work_on_some, &block);
        status = append_block(work, &block, writer, bad, error);
        for (int64_t i = 0; i < block.count; i++) free(block.items[i].record);
    }
    free(block.items);
    return status;
}

mr_status shard_write(work *work, const shard *shard, int64_t *bad, mr_error *error)
{
    mr_record_writer *writer = nullptr;
    *bad = 0;
    MR_TRY(
        mr_record_writer_open(shard->path, &(mr_record_writer_options){.index = true, .atomic = true}, &writer, error));
    mr_status status = write_blocks(work, shard, writer, bad, error);
    if (status != MR_OK) {
        mr_record_writer_abandon(writer);
        return status;
    }
    work->written += shard->count - *bad;
    work->bad += *bad;
    work->split_counts[shard->split] += shard->count - *bad;
    return mr_record_writer_close(writer, error);
}
