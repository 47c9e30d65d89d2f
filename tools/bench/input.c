/* The suite "input": the demo's pipeline — records, shuffle, parse, random-resized crop, flip, normalize, batch of 64,
 * prefetch — compared with libjpeg-turbo alone, which only decodes the same complete files with the same number of
 * threads.
 *
 * Rounds are interleaved, so that other load on the machine slows down both sides. Both use the fast integer DCT,
 * TensorFlow's default. input_photos.c adds rows for photographs. */
#include "tools/bench/input.h"

#include <millrace/dataset.h>
#include <millrace/record.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

constexpr int IMAGES = 512;
constexpr int BATCH = 64;
constexpr int SIDE = 96;
constexpr int ROUNDS_MAX = 64;

typedef struct image {
    char *bytes;
    size_t size_bytes;
} image;

/* ---- Images: 240 to 640 pixels, like the demo's: soft shapes, texture, some noise ---- */

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static mr_status render(int number, mr_tensor *jpeg, mr_error *error)
{
    uint64_t state = 20 + (uint64_t)number;
    (void)draw(&state);
    int width = 240 + (int)(draw(&state) % 401), height = 240 + (int)(draw(&state) % 401);
    mr_tensor image = {0};
    MR_TRY(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(height, width, 3), error));
    uint8_t *at = mr_tensor_uint8s(&image);
    double cx = draw(&state) % (uint32_t)width, cy = draw(&state) % (uint32_t)height;
    double radius = 40 + draw(&state) % 160;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double dx = x - cx, dy = y - cy;
            int light = (int)(90 + 60.0 * x / width + 40.0 * y / height);
            int shape = dx * dx + dy * dy < radius * radius ? 50 : 0, texture = ((x / 6 + y / 9) & 1) * 24;
            int noise = (int)(draw(&state) & 15);
            *at++ = (uint8_t)(light + noise);
            *at++ = (uint8_t)(light / 2 + shape + texture + noise);
            *at++ = (uint8_t)(200 - light / 2 + shape - texture / 2 + noise);
        }
    mr_status status = mr_image_encode_jpeg(&image, 90, jpeg, error);
    mr_tensor_deinit(&image);
    return status;
}

/* Creates out/bench/input/images.tfrecord if it does not exist. */
static mr_status make_records(const char *path, mr_error *error)
{
    if (access(path, R_OK) == 0) return MR_OK;
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    MR_TRY(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .index = true, .atomic = true), &writer,
                                 error));
    mr_status status = MR_OK;
    for (int i = 0; i < IMAGES && status == MR_OK; i++) {
        mr_tensor jpeg = {0};
        mr_string record = {0};
        if ((status = render(i, &jpeg, error)) != MR_OK) break;
        mr_example_add_bytes(&encoder, "image/encoded", mr_tensor_strings(&jpeg)[0]);
        mr_example_add_int64(&encoder, "image/class/label", i % 6);
        status = mr_example_finish(&encoder, &record, error);
        if (status == MR_OK) status = mr_record_writer_append(writer, record.data, record.size_bytes, error);
        mr_tensor_deinit(&jpeg);
    }
    mr_example_encoder_deinit(&encoder);
    if (status == MR_OK) return mr_record_writer_close(writer, error);
    mr_record_writer_discard(writer);
    return status;
}

static mr_status load_images(const char *path, image *images, double *megapixels, mr_error *error)
{
    mr_record_reader *reader = nullptr;
    mr_string record, encoded;
    MR_TRY(mr_record_reader_open(path, nullptr, &reader, error));
    mr_status status = MR_OK;
    for (int i = 0; i < IMAGES && status == MR_OK; i++) {
        mr_image_info info = {0};
        status = mr_record_reader_next(reader, &record, error);
        if (status == MR_OK) status = mr_example_get_bytes(record, "image/encoded", &encoded, error);
        if (status == MR_OK) status = mr_image_probe(encoded.data, encoded.size_bytes, &info, error);
        if (status != MR_OK) break;
        *megapixels += (double)info.width * info.height / 1e6;
        images[i] = (image){malloc(encoded.size_bytes), encoded.size_bytes};
        memcpy(images[i].bytes, encoded.data, encoded.size_bytes);
    }
    mr_record_reader_close(reader);
    return status;
}

/* ---- The peer ---- */

typedef struct peer_work {
    const image *images;
    atomic_llong next;
    int64_t count;
} peer_work;

static void decode_whole(struct jpeg_decompress_struct *decoder, const image *p, unsigned char *pixels)
{
    jpeg_mem_src(decoder, (const unsigned char *)p->bytes, p->size_bytes);
    (void)jpeg_read_header(decoder, TRUE);
    decoder->out_color_space = JCS_RGB;
    decoder->dct_method = JDCT_IFAST;
    (void)jpeg_start_decompress(decoder);
    while (decoder->output_scanline < decoder->output_height) {
        JSAMPROW rows[8];
        for (unsigned r = 0; r < 8; r++)
            rows[r] = pixels + (size_t)(decoder->output_scanline + r) * decoder->output_width * 3;
        JDIMENSION left = decoder->output_height - decoder->output_scanline;
        (void)jpeg_read_scanlines(decoder, rows, left < 8 ? left : 8);
    }
    (void)jpeg_finish_decompress(decoder);
}

static void *peer_main(void *argument)
{
    peer_work *work = argument;
    struct jpeg_decompress_struct decoder = {0};
    struct jpeg_error_mgr errors = {0};
    decoder.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&decoder);
    unsigned char *pixels = malloc((size_t)640 * 648 * 3);
    for (int64_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;)
        decode_whole(&decoder, &work->images[i % IMAGES], pixels);
    free(pixels);
    jpeg_destroy_decompress(&decoder);
    return nullptr;
}

static double peer_rate(const image *images, int threads, int64_t count)
{
    peer_work work = {.images = images, .count = count};
    pthread_t others[64];
    int started = 0;
    double start = bench_seconds();
    while (started < threads - 1 && started < 64 && pthread_create(&others[started], nullptr, peer_main, &work) == 0)
        started++;
    (void)peer_main(&work);
    for (int i = 0; i < started; i++) pthread_join(others[i], nullptr);
    return (double)count / (bench_seconds() - start);
}

/* ---- Millrace ---- */

static mr_dataset *parsed(const char *path)
{
    static const mr_feature features[] = {{.name = "image/encoded", .dtype = MR_STRING},
                                          {.name = "image/class/label", .dtype = MR_INT64}};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(path), .seed = 1), MR_INFINITE);
    return mr_dataset_parse_example(d, features, 2);
}

/* Without prefetch. */
static mr_dataset *train_batches(const char *path)
{
    mr_dataset *d =
        mr_dataset_decode_image(parsed(path), .seed = 1,
                                .image = MR_OPTIONS(mr_image_options, .height = SIDE, .width = SIDE,
                                                    .crop = MR_CROP_RANDOM_RESIZED, .random_flip_left_right = true,
                                                    .mean = {123.7f, 116.3f, 103.5f}, .std = {58.4f, 57.1f, 57.4f}));
    return mr_dataset_batch(d, BATCH, .drop_remainder = true);
}

static mr_dataset *train_input(const char *path)
{
    return mr_dataset_prefetch(train_batches(path), 2);
}

static mr_dataset *tuned_batches(const void *path)
{
    return train_batches(path);
}

static mr_dataset *whole_images(const char *path)
{
    mr_dataset *d = mr_dataset_decode_image(parsed(path), .image = MR_OPTIONS(mr_image_options, .dtype = MR_UINT8));
    return mr_dataset_prefetch(d, 8);
}

/* Consumes `elements` elements of the iterator. */
static mr_status take(mr_iterator *iterator, int64_t elements, mr_error *error)
{
    mr_element element = {0};
    mr_status status = MR_OK;
    for (int64_t i = 0; i < elements && status == MR_OK; i++) status = mr_iterator_next(iterator, &element, error);
    mr_element_deinit(&element);
    return status;
}

typedef struct bench_task {
    const char *name;
    mr_dataset *(*dataset)(const char *path);
    int64_t images; /* per element */
    double goal;
} bench_task;

static mr_status measure(bench_report *report, const bench_task *task, const char *path, const image *images,
                         mr_error *error)
{
    constexpr int64_t COUNT = 3 * IMAGES;
    double ours[ROUNDS_MAX], peers[ROUNDS_MAX];
    int rounds = bench_rounds(report, 7);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    mr_dataset *dataset = task->dataset(path);
    mr_iterator *iterator = nullptr;
    mr_status status =
        mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = bench_threads(report)), &iterator, error);
    mr_dataset_free(dataset);
    if (status == MR_OK) status = take(iterator, 2 * IMAGES / task->images, error);
    (void)peer_rate(images, bench_threads(report), IMAGES);
    for (int r = 0; r < rounds && status == MR_OK; r++) {
        /* Elements that were produced while the peer ran do not count. */
        status = take(iterator, IMAGES / task->images, error);
        if (status != MR_OK) break;
        double start = bench_seconds();
        status = take(iterator, COUNT / task->images, error);
        ours[r] = (double)COUNT / (bench_seconds() - start);
        /* Nothing consumes batches now: threads fill their buffers and wait, so the machine is free for the peer. */
        usleep(100000);
        peers[r] = peer_rate(images, bench_threads(report), COUNT);
        bench_show_stages(report, task->name, iterator, r == 0);
    }
    if (status == MR_OK) {
        bench_row(report, (bench_result){.task = task->name,
                                         .unit = "images/s",
                                         .peer = "libjpeg-turbo full decode",
                                         .ours = bench_median(ours, rounds),
                                         .peer_value = bench_median(peers, rounds),
                                         .goal = task->goal,
                                         .runs = rounds});
        mr_stage_statistics stages[16];
        int32_t count = mr_iterator_statistics(iterator, stages, 16);
        for (int32_t i = 0; i < count && i < 16; i++)
            bench_note(report, "%-14s %-13s %9llu elements, busy %7.2f s, waited for input %6.2f s, for output %6.2f s",
                       task->name, stages[i].stage, (unsigned long long)stages[i].elements,
                       (double)stages[i].busy_ns * 1e-9, (double)stages[i].input_wait_ns * 1e-9,
                       (double)stages[i].output_wait_ns * 1e-9);
    }
    mr_iterator_free(iterator);
    return status;
}

BENCH(input, "the demo's pipeline: records to batches of images")
{
    static const bench_task tasks[] = {
        {"train_input", train_input, BATCH, 0.85},
        {"whole_decode", whole_images, 1, 0.97},
    };
    /* Must run first: it measures the memory of a fresh process. */
    bench_first_batch(report);
    static image images[IMAGES];
    char path[600];
    double megapixels = 0;
    mr_error error = {0};
    snprintf(path, sizeof path, "%s/images.tfrecord", bench_directory("input"));
    mr_status status = make_records(path, &error);
    if (status == MR_OK) status = load_images(path, images, &megapixels, &error);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks && status == MR_OK; i++)
        status = measure(report, &tasks[i], path, images, &error);
    if (status == MR_OK) {
        bench_tuned_task task = {"train_input", tuned_batches, path, 6 * IMAGES / BATCH};
        bench_tuned(report, &task);
    }
    if (status == MR_OK)
        bench_note(report, "%d images of %.2f megapixels on the average, %d threads", IMAGES, megapixels / IMAGES,
                   bench_threads(report));
    else
        bench_note(report, "input: %s", error.message);
    for (int i = 0; i < IMAGES; i++) free(images[i].bytes);
    bench_photos(report);
    bench_loaders(report);
}
