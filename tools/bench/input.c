/* input: the demo's pipeline — records, shuffle, parse, random-resized crop, flip, normalise, batch of 64, prefetch —
 * beside libjpeg-turbo alone, which decodes the same files whole on as many threads and does nothing else.
 *
 * Rounds are interleaved, so that a neighbour on the machine slows both. Both use the fast integer DCT, TensorFlow's
 * default. */
#include "tools/bench/bench.h"

#include "base/pool.h"
#include "base/random.h"

#include <millrace/dataset.h>
#include <millrace/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

constexpr int PICTURES = 512;
constexpr int BATCH = 64;
constexpr int SIDE = 96;
constexpr int ROUNDS_MAX = 64;

typedef struct picture {
    char *bytes;
    size_t size_bytes;
} picture;

/* ---- Pictures: 240 to 640 pixels, as the demo's: soft shapes, texture, some noise ---- */

static mr_status render(int number, mr_tensor *jpeg, mr_error *error)
{
    mr_random random = mr_random_at(20, 0, (uint64_t)number, 0);
    int width = 240 + (int)mr_random_below(&random, 401), height = 240 + (int)mr_random_below(&random, 401);
    mr_tensor image = {0};
    MR_TRY(mr_tensor_init(&image, MR_UINT8, MR_SHAPE(height, width, 3), error));
    uint8_t *at = mr_tensor_uint8s(&image);
    double cx = mr_random_range(&random, 0, width), cy = mr_random_range(&random, 0, height);
    double radius = mr_random_range(&random, 40, 200);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double dx = x - cx, dy = y - cy;
            int light = (int)(90 + 60.0 * x / width + 40.0 * y / height);
            int shape = dx * dx + dy * dy < radius * radius ? 50 : 0, texture = ((x / 6 + y / 9) & 1) * 24;
            int noise = (int)(mr_random_next32(&random) & 15);
            *at++ = (uint8_t)(light + noise);
            *at++ = (uint8_t)(light / 2 + shape + texture + noise);
            *at++ = (uint8_t)(200 - light / 2 + shape - texture / 2 + noise);
        }
    mr_status status = mr_image_encode_jpeg(&image, 90, jpeg, error);
    mr_tensor_deinit(&image);
    return status;
}

/* out/bench/input/pictures.tfrecord, made once. */
static mr_status make_records(const char *path, mr_error *error)
{
    if (access(path, R_OK) == 0) return MR_OK;
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    MR_TRY(mr_record_writer_open(path, &(mr_record_writer_options){.index = true, .atomic = true}, &writer, error));
    mr_status status = MR_OK;
    for (int i = 0; i < PICTURES && status == MR_OK; i++) {
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
    mr_record_writer_abandon(writer);
    return status;
}

static mr_status load_pictures(const char *path, picture *pictures, double *megapixels, mr_error *error)
{
    mr_record_reader *reader = nullptr;
    mr_string record, encoded;
    MR_TRY(mr_record_reader_open(path, nullptr, &reader, error));
    mr_status status = MR_OK;
    for (int i = 0; i < PICTURES && status == MR_OK; i++) {
        mr_image_info info = {0};
        status = mr_record_reader_next(reader, &record, error);
        if (status == MR_OK) status = mr_example_get_bytes(record, "image/encoded", &encoded, error);
        if (status == MR_OK) status = mr_image_probe(encoded.data, encoded.size_bytes, &info, error);
        if (status != MR_OK) break;
        *megapixels += (double)info.width * info.height / 1e6;
        pictures[i] = (picture){malloc(encoded.size_bytes), encoded.size_bytes};
        memcpy(pictures[i].bytes, encoded.data, encoded.size_bytes);
    }
    mr_record_reader_free(reader);
    return status;
}

/* ---- The peer ---- */

static void decode_whole(void *context, int64_t begin, int64_t end)
{
    const picture *pictures = context;
    struct jpeg_decompress_struct decoder = {0};
    struct jpeg_error_mgr errors = {0};
    decoder.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&decoder);
    unsigned char *pixels = malloc((size_t)640 * 640 * 3);
    for (int64_t i = begin; i < end; i++) {
        const picture *p = &pictures[i % PICTURES];
        jpeg_mem_src(&decoder, (const unsigned char *)p->bytes, p->size_bytes);
        (void)jpeg_read_header(&decoder, TRUE);
        decoder.out_color_space = JCS_RGB;
        decoder.dct_method = JDCT_IFAST;
        (void)jpeg_start_decompress(&decoder);
        while (decoder.output_scanline < decoder.output_height) {
            JSAMPROW rows[8];
            for (unsigned r = 0; r < 8; r++)
                rows[r] = pixels + (size_t)(decoder.output_scanline + r) * decoder.output_width * 3;
            JDIMENSION left = decoder.output_height - decoder.output_scanline;
            (void)jpeg_read_scanlines(&decoder, rows, left < 8 ? left : 8);
        }
        (void)jpeg_finish_decompress(&decoder);
    }
    free(pixels);
    jpeg_destroy_decompress(&decoder);
}

static double peer_rate(const picture *pictures, mr_pool *pool, int64_t count)
{
    double start = bench_seconds();
    mr_pool_for(pool, count, 16, decode_whole, (void *)pictures);
    return (double)count / (bench_seconds() - start);
}

/* ---- Ours ---- */

static mr_dataset *parsed(const char *path)
{
    static const mr_feature features[] = {{.name = "image/encoded", .dtype = MR_STRING},
                                          {.name = "image/class/label", .dtype = MR_INT64}};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(path), .seed = 1), MR_FOREVER);
    return mr_dataset_parse_example(d, features, 2);
}

static mr_dataset *train_input(const char *path)
{
    mr_dataset *d = mr_dataset_decode_image(parsed(path), .seed = 1,
                                            .image = {.height = SIDE,
                                                      .width = SIDE,
                                                      .crop = MR_CROP_RANDOM_RESIZED,
                                                      .random_flip = true,
                                                      .mean = {123.7f, 116.3f, 103.5f},
                                                      .deviation = {58.4f, 57.1f, 57.4f}});
    return mr_dataset_prefetch(mr_dataset_batch(d, BATCH, .drop_remainder = true), 2);
}

static mr_dataset *whole_pictures(const char *path)
{
    mr_dataset *d = mr_dataset_decode_image(parsed(path), .image = {.dtype = MR_UINT8});
    return mr_dataset_prefetch(d, 8);
}

/* Elements taken off the iterator, count pictures in all. */
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
    int64_t pictures; /* in an element */
    double goal;
} bench_task;

static mr_status measure(bench_report *report, const bench_task *task, const char *path, const picture *pictures,
                         mr_pool *pool, mr_error *error)
{
    constexpr int64_t COUNT = 3 * PICTURES;
    double ours[ROUNDS_MAX], peers[ROUNDS_MAX];
    int rounds = bench_rounds(report, 7);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    mr_dataset *dataset = task->dataset(path);
    mr_iterator *iterator = nullptr;
    mr_status status =
        mr_iterator_new(dataset, &(mr_iterator_options){.threads = bench_threads(report)}, &iterator, error);
    mr_dataset_free(dataset);
    if (status == MR_OK) status = take(iterator, 2 * PICTURES / task->pictures, error);
    (void)peer_rate(pictures, pool, PICTURES);
    for (int r = 0; r < rounds && status == MR_OK; r++) {
        double start = bench_seconds();
        status = take(iterator, COUNT / task->pictures, error);
        ours[r] = (double)COUNT / (bench_seconds() - start);
        /* Nobody wants the next batches: the threads fill the window and wait, and the peer has the machine. */
        usleep(100000);
        peers[r] = peer_rate(pictures, pool, COUNT);
    }
    if (status == MR_OK) {
        bench_row(report, (bench_result){.task = task->name,
                                         .unit = "images/s",
                                         .peer = "libjpeg-turbo whole decode",
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

BENCH(input, "the demo's pipeline: records to batches of pictures")
{
    static const bench_task tasks[] = {
        {"train_input", train_input, BATCH, 0.85},
        {"whole_decode", whole_pictures, 1, 0.97},
    };
    static picture pictures[PICTURES];
    char path[600];
    double megapixels = 0;
    mr_error error = {0};
    mr_pool *pool = nullptr;
    snprintf(path, sizeof path, "%s/pictures.tfrecord", bench_folder("input"));
    mr_status status = make_records(path, &error);
    if (status == MR_OK) status = load_pictures(path, pictures, &megapixels, &error);
    if (status == MR_OK) status = mr_pool_new(bench_threads(report), &pool, &error);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks && status == MR_OK; i++)
        status = measure(report, &tasks[i], path, pictures, pool, &error);
    if (status == MR_OK)
        bench_note(report, "%d pictures of %.2f megapixels on the average, %d threads", PICTURES, megapixels / PICTURES,
                   bench_threads(report));
    else
        bench_note(report, "input: %s", error.message);
    mr_pool_free(pool);
    for (int i = 0; i < PICTURES; i++) free(pictures[i].bytes);
}
