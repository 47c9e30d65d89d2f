/* Training input from ImageNet-like images — decode, random-resized crop to 224, flip, normalize, batch of 64, shuffle
 * — from ordinary and from crop-ready records. It is compared with libjpeg-turbo doing the same work without a
 * pipeline: from images in memory, it decodes the same regions with its own crop and skip, resizes them to floats and
 * normalizes.
 *
 * The images are those of the peers: data/train-* in $PEERS or ~/.cache/millrace-peers. Both sides use the fast integer
 * DCT, TensorFlow's default, and bilinear interpolation without antialiasing. */
#include "tools/bench/input.h"

#include "base/random.h"

#include <millrace/dataset.h>
#include <millrace/record.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

constexpr int SHARDS = 8;
constexpr int PHOTOS_MAX = 4096;
constexpr int BATCH = BENCH_PHOTO_BATCH;
constexpr int SIDE = 224;
constexpr int ROUNDS_MAX = 64;
constexpr int64_t COUNT = 24 * BATCH; /* images per round */

static const float means[3] = {123.675f, 116.28f, 103.53f}, deviations[3] = {58.395f, 57.12f, 57.375f};

static const mr_image_options crops = {.size = sizeof crops,
                                       .height = SIDE,
                                       .width = SIDE,
                                       .crop = MR_CROP_RANDOM_RESIZED,
                                       .random_flip_left_right = true,
                                       .mean = {123.675f, 116.28f, 103.53f},
                                       .std = {58.395f, 57.12f, 57.375f}};

typedef struct photo {
    unsigned char *bytes;
    size_t size_bytes;
} photo;

typedef struct photos {
    photo all[PHOTOS_MAX];
    int count;
    size_t bytes, ready_bytes;
    char plain[640], ready[640]; /* paths of record files */
} photos;

/* ---- Records ---- */

static mr_status load(photos *photos, mr_error *error)
{
    for (int shard = 0; shard < SHARDS; shard++) {
        char path[700];
        int stem = (int)strcspn(photos->plain, "?");
        snprintf(path, sizeof path, "%.*s%d%s", stem, photos->plain, shard, photos->plain + stem + 1);
        mr_record_reader *reader = nullptr;
        MR_TRY(mr_record_reader_open(path, nullptr, &reader, error));
        mr_string record, encoded;
        mr_status status;
        while (photos->count < PHOTOS_MAX && (status = mr_record_reader_next(reader, &record, error)) == MR_OK) {
            if ((status = mr_example_get_bytes(record, "image/encoded", &encoded, error)) != MR_OK) break;
            photo *photo = &photos->all[photos->count++];
            *photo = (struct photo){malloc(encoded.size_bytes), encoded.size_bytes};
            if (photo->bytes) memcpy(photo->bytes, encoded.data, encoded.size_bytes);
            photos->bytes += encoded.size_bytes;
        }
        mr_record_reader_close(reader);
        if (photos->count < PHOTOS_MAX && status != MR_OUT_OF_RANGE) return status;
    }
    return photos->count > 0 ? MR_OK : mr_fail(error, MR_NOT_FOUND, "%s: no images", photos->plain);
}

static mr_status append_ready(mr_record_writer *writer, mr_example_encoder *encoder, const photo *photo,
                              mr_error *error)
{
    mr_tensor ready = {0};
    mr_string record = {0};
    MR_TRY(mr_image_crop_ready(photo->bytes, photo->size_bytes, nullptr, &ready, nullptr, error));
    mr_example_add_bytes(encoder, "image/encoded", mr_tensor_strings(&ready)[0]);
    mr_example_add_int64(encoder, "image/class/label", 0);
    mr_status status = mr_example_finish(encoder, &record, error);
    if (status == MR_OK) status = mr_record_writer_append(writer, record.data, record.size_bytes, error);
    mr_tensor_deinit(&ready);
    return status;
}

/* Creates out/bench/input/ready.tfrecord if it does not exist. */
static mr_status make_ready(const photos *photos, mr_error *error)
{
    if (access(photos->ready, R_OK) == 0) return MR_OK;
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_record_writer_options options = {.size = sizeof options, .index = true, .atomic = true};
    MR_TRY(mr_record_writer_open(photos->ready, &options, &writer, error));
    mr_status status = MR_OK;
    for (int i = 0; i < photos->count && status == MR_OK; i++)
        status = append_ready(writer, &encoder, &photos->all[i], error);
    mr_example_encoder_deinit(&encoder);
    if (status == MR_OK) return mr_record_writer_close(writer, error);
    mr_record_writer_discard(writer);
    return status;
}

/* ---- Time ---- */

/* Images per second, and microseconds of processor time per image. */
typedef struct rate {
    double images, processor_us;
} rate;

static rate rate_since(double start, double processor_start, int64_t count)
{
    return (rate){(double)count / (bench_seconds() - start),
                  (bench_processor_seconds() - processor_start) * 1e6 / (double)count};
}

/* ---- The peer ---- */

typedef struct peer_work {
    const photos *photos;
    bool whole;
    atomic_llong next;
    int64_t count;
} peer_work;

typedef struct peer {
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    unsigned char *pixels;
    size_t capacity_bytes;
    float *batch, *row;
} peer;

/* Reads rows [top, top + height) of the decoder's image into pixels. */
static void read_rows(peer *peer, JDIMENSION height)
{
    size_t stride = (size_t)peer->decoder.output_width * 3, needed_bytes = stride * (height + 8);
    if (needed_bytes > peer->capacity_bytes) {
        free(peer->pixels);
        peer->pixels = malloc(2 * needed_bytes);
        peer->capacity_bytes = 2 * needed_bytes;
    }
    for (JDIMENSION done = 0; done < height;) {
        JSAMPROW rows[8];
        JDIMENSION wanted = height - done < 8 ? height - done : 8;
        for (JDIMENSION r = 0; r < wanted; r++) rows[r] = peer->pixels + (done + r) * stride;
        done += jpeg_read_scanlines(&peer->decoder, rows, wanted);
    }
}

static void resize(peer *peer, const mr_image_region *region, int left, float *target)
{
    size_t stride = (size_t)peer->decoder.output_width * 3, count = (size_t)region->width * 3;
    float scale_y = (float)region->height / SIDE, scale_x = (float)region->width / SIDE;
    int first[SIDE], second[SIDE];
    float weights[SIDE], inverse[3];
    for (int c = 0; c < 3; c++) inverse[c] = 1 / deviations[c];
    for (int i = 0; i < SIDE; i++) {
        float at = fmaxf(((float)(region->flip ? SIDE - 1 - i : i) + 0.5f) * scale_x - 0.5f, 0);
        first[i] = 3 * (int)at;
        second[i] = first[i] + 3 < (int)count ? first[i] + 3 : first[i];
        weights[i] = at - (float)(int)at;
    }
    for (int y = 0; y < SIDE; y++) {
        float at = fmaxf(((float)y + 0.5f) * scale_y - 0.5f, 0), weight = at - (float)(int)at;
        int above = (int)at, below = above + 1 < region->height ? above + 1 : above;
        const unsigned char *a = peer->pixels + (size_t)above * stride + (size_t)left * 3;
        const unsigned char *b = peer->pixels + (size_t)below * stride + (size_t)left * 3;
        for (size_t i = 0; i < count; i++) peer->row[i] = a[i] + weight * ((float)b[i] - (float)a[i]);
        for (int i = 0; i < SIDE; i++)
            for (int c = 0; c < 3; c++) {
                float u = peer->row[first[i] + c], v = peer->row[second[i] + c];
                *target++ = (u + weights[i] * (v - u) - means[c]) * inverse[c];
            }
    }
}

static void decode(peer *peer, const peer_work *work, int64_t number)
{
    struct jpeg_decompress_struct *decoder = &peer->decoder;
    const photo *photo = &work->photos->all[number % work->photos->count];
    jpeg_mem_src(decoder, photo->bytes, photo->size_bytes);
    (void)jpeg_read_header(decoder, TRUE);
    decoder->out_color_space = JCS_RGB;
    decoder->dct_method = JDCT_IFAST;
    (void)jpeg_start_decompress(decoder);
    if (work->whole) {
        read_rows(peer, decoder->output_height);
        (void)jpeg_finish_decompress(decoder);
        return;
    }
    mr_random random = mr_random_at(1, 0, (uint64_t)number, 0);
    mr_image_region region =
        mr_image_choose(&crops, (int32_t)decoder->output_width, (int32_t)decoder->output_height, &random);
    JDIMENSION x = (JDIMENSION)region.x, width = (JDIMENSION)region.width;
    jpeg_crop_scanline(decoder, &x, &width);
    if (region.y > 0) (void)jpeg_skip_scanlines(decoder, (JDIMENSION)region.y);
    read_rows(peer, (JDIMENSION)region.height);
    resize(peer, &region, region.x - (int)x, peer->batch + (size_t)(number % BATCH) * SIDE * SIDE * 3);
    jpeg_abort_decompress(decoder);
}

static void *peer_main(void *argument)
{
    peer_work *work = argument;
    peer peer = {.batch = malloc(sizeof(float) * BATCH * SIDE * SIDE * 3), .row = malloc(sizeof(float) * 3 * 65536)};
    peer.decoder.err = jpeg_std_error(&peer.errors);
    jpeg_create_decompress(&peer.decoder);
    for (int64_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) decode(&peer, work, i);
    jpeg_destroy_decompress(&peer.decoder);
    free(peer.pixels);
    free(peer.batch);
    free(peer.row);
    return nullptr;
}

static rate peer_rate(const photos *photos, bool whole, int threads, int64_t count)
{
    peer_work work = {.photos = photos, .whole = whole, .count = count};
    pthread_t others[64];
    int started = 0;
    double start = bench_seconds(), processor_start = bench_processor_seconds();
    while (started < threads - 1 && started < 64 && pthread_create(&others[started], nullptr, peer_main, &work) == 0)
        started++;
    (void)peer_main(&work);
    for (int i = 0; i < started; i++) pthread_join(others[i], nullptr);
    return rate_since(start, processor_start, count);
}

/* ---- Millrace ---- */

typedef struct photo_task {
    const char *name, *peer;
    bool whole, ready;
    double goal;
} photo_task;

static mr_dataset *parsed(mr_dataset *records)
{
    static const mr_feature features[] = {{.name = "image/encoded", .dtype = MR_STRING},
                                          {.name = "image/class/label", .dtype = MR_INT64}};
    return mr_dataset_parse_example(records, features, 2);
}

mr_dataset *bench_photo_batches(mr_dataset *records)
{
    mr_dataset *d = mr_dataset_decode_image(parsed(records), .seed = 1, .image = &crops);
    return mr_dataset_prefetch(mr_dataset_batch(d, BATCH, .drop_remainder = true), 2);
}

const char *bench_photo_records(void)
{
    return bench_peers_path("data/train-0000?-of-0000%d", SHARDS);
}

static mr_dataset *dataset_of(const photos *photos, const photo_task *task)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_records(task->ready ? photos->ready : photos->plain), .seed = 1);
    d = mr_dataset_repeat(d, MR_INFINITE);
    if (!task->whole) return bench_photo_batches(d);
    return mr_dataset_prefetch(
        mr_dataset_decode_image(parsed(d), .image = MR_OPTIONS(mr_image_options, .dtype = MR_UINT8)), 8);
}

static mr_status take(mr_iterator *iterator, const photo_task *task, int64_t count, rate *rate, mr_error *error)
{
    mr_element element = {0};
    mr_status status = MR_OK;
    double start = bench_seconds(), processor_start = bench_processor_seconds();
    for (int64_t i = 0; i < count && status == MR_OK; i += task->whole ? 1 : BATCH)
        status = mr_iterator_next(iterator, &element, error);
    *rate = rate_since(start, processor_start, count);
    mr_element_deinit(&element);
    return status;
}

static void report_rates(bench_report *report, const photo_task *task, const rate *ours, const rate *peers, int rounds)
{
    double a[ROUNDS_MAX], b[ROUNDS_MAX];
    bench_result row = {.task = task->name, .unit = "images/s", .peer = task->peer, .goal = task->goal, .runs = rounds};
    for (int i = 0; i < rounds; i++) {
        a[i] = ours[i].images;
        b[i] = peers[i].images;
    }
    row.ours = bench_median(a, rounds);
    row.peer_value = bench_median(b, rounds);
    bench_row(report, row);
    for (int i = 0; i < rounds; i++) {
        a[i] = ours[i].processor_us;
        b[i] = peers[i].processor_us;
    }
    row.unit = "us of CPU";
    row.less_is_better = true;
    row.ours = bench_median(a, rounds);
    row.peer_value = bench_median(b, rounds);
    bench_row(report, row);
}

static mr_status measure(bench_report *report, const photos *photos, const photo_task *task, mr_error *error)
{
    rate ours[ROUNDS_MAX], peers[ROUNDS_MAX], unused;
    int rounds = bench_rounds(report, 7), threads = bench_threads(report);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    mr_dataset *dataset = dataset_of(photos, task);
    mr_iterator *iterator = nullptr;
    mr_status status = mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, error);
    mr_dataset_free(dataset);
    (void)peer_rate(photos, task->whole, threads, 4 * BATCH);
    for (int r = 0; r < rounds && status == MR_OK; r++) {
        /* Elements that were produced while the peer ran do not count. */
        status = take(iterator, task, 8 * BATCH, &unused, error);
        if (status == MR_OK) status = take(iterator, task, COUNT, &ours[r], error);
        /* Nothing consumes batches now: threads fill their buffers and wait, so the machine is free for the peer. */
        usleep(200000);
        peers[r] = peer_rate(photos, task->whole, threads, COUNT);
        bench_show_stages(report, task->name, iterator, r == 0);
    }
    mr_iterator_free(iterator);
    if (status == MR_OK) report_rates(report, task, ours, peers, rounds);
    return status;
}

void bench_photos(bench_report *report)
{
    static const photo_task tasks[] = {
        {"photos_crop_224", "libjpeg-turbo same regions", .goal = 0.9},
        {"photos_ready_224", "libjpeg-turbo same regions", .ready = true, .goal = 1.1},
        {"photos_whole", "libjpeg-turbo full decode", .whole = true, .goal = 0.97},
    };
    photos *photos = calloc(1, sizeof *photos);
    mr_error error = {0};
    if (photos == nullptr) return;
    snprintf(photos->plain, sizeof photos->plain, "%s", bench_photo_records());
    snprintf(photos->ready, sizeof photos->ready, "%s/ready.tfrecord", bench_directory("input"));
    mr_status status = load(photos, &error);
    if (status == MR_OK) status = make_ready(photos, &error);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks && status == MR_OK; i++)
        status = measure(report, photos, &tasks[i], &error);
    if (status == MR_OK)
        bench_note(
            report,
            "%d photographs of %.1f KB, %d threads; libjpeg-turbo decodes regions of the same distribution, resized",
            photos->count, (double)photos->bytes / 1e3 / photos->count, bench_threads(report));
    else
        bench_note(report, "photos: %s", error.message);
    for (int i = 0; i < photos->count; i++) free(photos->all[i].bytes);
    free(photos);
}
