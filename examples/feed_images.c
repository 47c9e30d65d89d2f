/* Runs the input of a training alone, and shows what it does: how fast your pictures come, and what they wait for.
 *
 *     feed-images 'records/pets-train-*.tfrecord'                  one epoch; on a terminal a live table of its stages
 *     feed-images records/a.tfrecord records/b.tfrecord --epochs 3 --threads 2        a fixed number of threads; otherwise they are tuned
 *     feed-images 'records/pets-*' --trace trace.json                   for ui.perfetto.dev
 *
 * The digest of the last line is the same at any number of threads and on any machine, as long as records, seed and epochs
 * are. A picture that cannot be used is told of and left out. */
#include <getopt.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 224, BATCH = 64, ROWS_MAX = 40, COLUMNS_MAX = 100 };
typedef struct arguments {
    const char *trace;
    int64_t epochs, threads;
    uint64_t seed;
} arguments;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The table where it was before: the cursor goes up over its lines, each is written anew. */
typedef struct display {
    mr_iterator *iterator;
    int lines; /* on the screen */
    double shown;
} display;

static void show(display *d)
{
    char text[ROWS_MAX * (COLUMNS_MAX + 1)];
    struct winsize size = {0};
    int columns = ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
    mr_iterator_statistics_text(d->iterator, columns, text, sizeof text);
    if (d->lines > 0) fprintf(stderr, "\033[%dA", d->lines);
    d->lines = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')) != nullptr; line = end + 1, d->lines++)
        fprintf(stderr, "\033[2K%.*s", (int)(end - line + 1), line);
    d->shown = now();
}

static void tell(display *d, const char *what)
{
    fprintf(stderr, "%s%s\n", d->lines > 0 ? "\033[2K" : "", what);
    d->lines = 0; /* the next table stands below */
}

static void tell_tuned(void *context, const char *line)
{
    tell(context, line);
}

/* Called from another thread while this one waits. */
static void tell_stuck(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count)
{
    (void)context;
    fprintf(stderr, "nothing came for %.0f s\n", (double)waited_ns * 1e-9);
    for (int32_t i = 0; i < count; i++)
        if (threads[i].stage != nullptr)
            fprintf(stderr, "  %s, %s: for %.1f s\n", threads[i].stage, threads[i].where,
                    (double)threads[i].since_ns * 1e-9);
}

static mr_dataset *input(const char *const *paths, int count, const arguments *a)
{
    mr_dataset *d = count == 1 ? mr_dataset_records(paths[0]) : mr_dataset_record_files(paths, count);
    d = mr_dataset_repeat(mr_dataset_shuffle(d, .seed = a->seed), a->epochs);
    mr_feature features[] = {{"image/encoded", MR_STRING}, {"image/class/label", MR_INT64}};
    d = mr_dataset_parse_example(d, features, 2);
    mr_image_options image = {.height = SIZE, .width = SIZE, .mean = {124, 117, 104}, .deviation = {59, 57, 57}};
    image.crop = MR_CROP_RANDOM_RESIZED;
    image.random_flip = true;
    d = mr_dataset_decode_image(d, .seed = a->seed, .image = image);
    return mr_dataset_prefetch(mr_dataset_batch(d, BATCH), 0);
}

static mr_status feed(mr_iterator *iterator, display *d, mr_error *error)
{
    mr_element batch = {0};
    mr_status status;
    int64_t images = 0, failed = 0;
    double start = now();
    d->iterator = iterator;
    while ((status = mr_iterator_next(iterator, &batch, error)) != MR_OUT_OF_RANGE) {
        if (status == MR_OK) {
            images += batch.tensors[0].shape.dims[0];
        } else if (status == MR_DATA_LOSS || status == MR_INVALID_ARGUMENT) {
            tell(d, error->message);
            failed++;
        } else {
            break;
        }
        if (isatty(2) && now() - d->shown > 0.5) show(d);
    }
    mr_element_deinit(&batch);
    if (status != MR_OUT_OF_RANGE) return status;
    if (isatty(2)) show(d);
    double seconds = now() - start;
    printf("%lld images in %.2f s, %.0f images/s, %lld batches failed, digest %016llx\n", (long long)images, seconds,
           (double)images / seconds, (long long)failed, (unsigned long long)mr_iterator_digest(iterator));
    return mr_iterator_trace_stop(iterator, error);
}

static const char usage[] = "usage: feed-images RECORDS… [--epochs 1] [--threads N] [--seed 1] [--trace FILE]";
int main(int argc, char **argv)
{
    arguments a = {.epochs = 1, .seed = 1};
    const struct option options[] = {{"epochs", 1, 0, 'e'}, {"threads", 1, 0, 'n'}, {"seed", 1, 0, 's'},
                                     {"trace", 1, 0, 't'},  {"help", 0, 0, 'h'},    {}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, nullptr)) != -1 && option != '?' && option != 'h') {
        if (option == 'e') a.epochs = strtoll(optarg, nullptr, 10);
        if (option == 'n') a.threads = strtoll(optarg, nullptr, 10);
        if (option == 's') a.seed = strtoull(optarg, nullptr, 10);
        if (option == 't') a.trace = optarg;
    }
    if (option == 'h') return puts(usage), 0;
    if (option == '?' || optind == argc || a.epochs < 1 || a.threads < 0 || a.threads > 1024)
        return fprintf(stderr, "%s\n", usage), 2;
    mr_error error = {0};
    mr_dataset *d = input((const char *const *)argv + optind, argc - optind, &a);
    mr_iterator *iterator = nullptr;
    display shown = {0};
    mr_iterator_options with = {.threads = (int32_t)a.threads,
                                .trace_path = a.trace,
                                .digest = true,
                                .tuned = tell_tuned,
                                .tuned_context = &shown,
                                .watchdog_ns = 10'000'000'000,
                                .watchdog = tell_stuck};
    mr_status status = mr_iterator_new(d, &with, &iterator, &error);
    if (status == MR_OK) status = feed(iterator, &shown, &error);
    if (status != MR_OK) fprintf(stderr, "feed-images: %s\n", error.message);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return status == MR_OK ? 0 : 1;
}
