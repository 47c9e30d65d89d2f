/* ImageNet-like training input compared with complete loaders: tf.data, DALI, torch, ffcv, SPDL, Grain, and cv2 in
 * threads, each with its best setting. Each peer is a process that measures itself; peers alternate with millrace.
 * Their programs are found through $PEER_SCRIPTS. Millrace runs photos_crop_224 of input_photos.c. */
#include "tools/bench/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

constexpr int ROUNDS_MAX = 15;
constexpr int WARM_BATCHES = 8, BATCHES = 48;

typedef struct loader {
    const char *name, *venv, *script, *variant;
} loader;

static const loader loaders[] = {
    {"tf.data, fused", "tf", "peer_tf.py", "fused"},
    {"DALI", "dali", "peer_dali.py", ""},
    {"torch, torchvision", "torch", "peer_torch.py", "folder_tv"},
    {"ffcv, JPEG", "ffcv", "peer_ffcv.py", "jpg"},
    {"SPDL", "spdl", "peer_spdl.py", ""},
    {"Grain", "grain", "peer_grain.py", ""},
    {"cv2 in threads", "misc", "peer_misc.py", "cv2"},
};
constexpr int LOADERS = BENCH_LOADERS;
static_assert(sizeof loaders / sizeof *loaders == BENCH_LOADERS);

/* Images per second, and microseconds of processor time per image. */
typedef struct rate {
    double images, processor_us;
} rate;

static rate peer(const loader *loader, const char *scripts, int threads)
{
    char command[2048], variant[64] = "";
    static const char *const keys[] = {"\"value\": ", "\"cpu_us_per_unit\": "};
    double numbers[2];
    if (loader->variant[0] != '\0') snprintf(variant, sizeof variant, " --variant %s", loader->variant);
    snprintf(command, sizeof command,
             "cd '%s' && '%s' %s --task imagenet_train --threads %d --seconds 5 --warm 4%s 2>/dev/null", scripts,
             bench_peers_path("venvs/%s/bin/python", loader->venv), loader->script, threads, variant);
    bench_command_numbers(command, keys, numbers, 2);
    return (rate){numbers[0], numbers[1]};
}

static mr_status take(mr_iterator *iterator, int batches, mr_error *error)
{
    mr_element element = {0};
    mr_status status = MR_OK;
    for (int i = 0; i < batches && status == MR_OK; i++) status = mr_iterator_next(iterator, &element, error);
    mr_element_deinit(&element);
    return status;
}

static mr_status ours(int threads, rate *measured, mr_error *error)
{
    mr_dataset *records = mr_dataset_shuffle(mr_dataset_records(bench_photo_records()), .seed = 1);
    mr_dataset *dataset = bench_photo_batches(mr_dataset_repeat(records, MR_INFINITE));
    mr_iterator *iterator = nullptr;
    mr_status status = mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, error);
    mr_dataset_free(dataset);
    if (status == MR_OK) status = take(iterator, WARM_BATCHES, error);
    double start = bench_seconds(), processor_start = bench_processor_seconds();
    if (status == MR_OK) status = take(iterator, BATCHES, error);
    double images = (double)BATCHES * BENCH_PHOTO_BATCH;
    *measured =
        (rate){images / (bench_seconds() - start), (bench_processor_seconds() - processor_start) * 1e6 / images};
    mr_iterator_free(iterator);
    return status;
}

const char *bench_loader_name(int loader)
{
    return loaders[loader].name;
}

double bench_loader_images(int loader, const char *scripts, int threads)
{
    return peer(&loaders[loader], scripts, threads).images;
}

mr_status bench_our_images(int threads, double *images, mr_error *error)
{
    rate measured = {0};
    mr_status status = ours(threads, &measured, error);
    *images = measured.images;
    return status;
}

static double median_of(const rate *rates, int count, bool processor)
{
    double values[ROUNDS_MAX];
    for (int i = 0; i < count; i++) values[i] = processor ? rates[i].processor_us : rates[i].images;
    return bench_median(values, count);
}

static void report_loader(bench_report *report, const char *name, const rate *mine, const rate *theirs, int rounds)
{
    bench_row(report, (bench_result){.task = "train_224",
                                     .unit = "images/s",
                                     .peer = name,
                                     .ours = median_of(mine, rounds, false),
                                     .peer_value = median_of(theirs, rounds, false),
                                     .goal = 1.5,
                                     .runs = rounds});
    bench_row(report, (bench_result){.task = "train_224",
                                     .unit = "us of CPU",
                                     .peer = name,
                                     .ours = median_of(mine, rounds, true),
                                     .peer_value = median_of(theirs, rounds, true),
                                     .less_is_better = true,
                                     .goal = 1 / 0.65,
                                     .runs = rounds});
}

/* Measures one thread and all threads alternately. */
static mr_status measure_threads(bench_report *report, int rounds, mr_error *error)
{
    rate one[ROUNDS_MAX], all[ROUNDS_MAX];
    int threads = bench_threads(report);
    mr_status status = MR_OK;
    for (int i = 0; i < rounds && status == MR_OK; i++) {
        status = ours(1, &one[i], error);
        if (status == MR_OK) status = ours(threads, &all[i], error);
    }
    if (status == MR_OK)
        bench_row(report, (bench_result){.task = "train_224_threads",
                                         .unit = "images/s",
                                         .peer = "ours on one thread",
                                         .ours = median_of(all, rounds, false),
                                         .peer_value = median_of(one, rounds, false),
                                         .goal = 0.95 * threads,
                                         .runs = rounds});
    return status;
}

void bench_loaders(bench_report *report)
{
    const char *scripts = getenv("PEER_SCRIPTS");
    int rounds = bench_rounds(report, 3);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    mr_error error = {0};
    mr_status status = measure_threads(report, rounds, &error);
    rate mine[ROUNDS_MAX], theirs[LOADERS][ROUNDS_MAX];
    for (int i = 0; i < rounds && scripts != nullptr && status == MR_OK; i++) {
        status = ours(bench_threads(report), &mine[i], &error);
        for (int k = 0; k < LOADERS; k++) theirs[k][i] = peer(&loaders[k], scripts, bench_threads(report));
    }
    for (int k = 0; k < LOADERS && scripts != nullptr && status == MR_OK; k++)
        report_loader(report, loaders[k].name, mine, theirs[k], rounds);
    if (status != MR_OK)
        bench_note(report, "train_224: %s", error.message);
    else if (scripts == nullptr)
        bench_note(report, "No other loaders: set PEER_SCRIPTS to the directory of their programs.");
}
