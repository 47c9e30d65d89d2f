/* feed-images: runs only the input pipeline of a training program and shows its throughput and what it waits for.
 *
 *     feed-images records                          all records of a directory; on a terminal, a live table
 *     feed-images records --epochs 3 --threads 2   a fixed number of threads, not tuned
 *     feed-images 'records/pets-train-*.tfrecord'  the files that match a pattern
 *     feed-images records --trace trace.json       a trace for ui.perfetto.dev
 *
 * The digest in the last line is the same for any number of threads and on any machine, for the same records, seed and
 * epochs. A record that cannot be used, such as one without a label, is reported, counted and skipped. */
#include <millrace/millrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 224, BATCH = 64, BUFFER = 1000, ROWS_MAX = 40, COLUMNS_MAX = 100, PATTERN_SIZE = 4096 };

static const char usage[] = "feed-images runs the input pipeline of a training and reports its throughput.\n"
                            "\n"
                            "    feed-images records\n"
                            "    feed-images --epochs 3 'records/pets-train-*.tfrecord'\n"
                            "\n"
                            "usage: feed-images [options] RECORDS…\n"
                            "\n"
                            "RECORDS is a directory with *.tfrecord files, as tfrecord-make writes it, a\n"
                            "file, or one quoted pattern.\n"
                            "\n"
                            "  --epochs N    passes over the records (default 1)\n"
                            "  --threads N   threads, 1 to 1024 (default 0: tuned during the run)\n"
                            "  --seed N      seed of the order and of random crops and flips (default 1)\n"
                            "  --trace FILE  write a Chrome trace, for ui.perfetto.dev\n"
                            "  --force       let --trace replace an existing file; never one of the records\n"
                            "  --help        print this help\n"
                            "  --version     print the version\n"
                            "\n"
                            "exit status: 0 success, 1 failure, 2 invalid options\n";

typedef struct arguments {
    const char *trace;
    int64_t epochs, threads, seed;
    bool is_forced;
} arguments;

/* The table is redrawn in place: the cursor moves up over its lines, and each line is written again. */
typedef struct display {
    mr_iterator *iterator;
    int lines; /* lines of the table on the screen */
    double start, shown;
    int64_t images;
    int64_t skipped; /* records */
} display;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int terminal_columns(void)
{
    struct winsize size = {0};
    int columns = ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    return columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
}

/* Lines are truncated at the width of the terminal: a line that wraps would take two. */
static void show(display *d)
{
    char text[ROWS_MAX * (COLUMNS_MAX + 1)];
    int columns = terminal_columns();
    mr_iterator_statistics_text(d->iterator, columns, text, sizeof text - 100);
    double seconds = now() - d->start;
    snprintf(text + strlen(text), 100, "%lld images in %.1f s, %.0f images/s\n", (long long)d->images, seconds,
             (double)d->images / seconds);
    if (d->lines > 0) fprintf(stderr, "\033[%dA", d->lines);
    d->lines = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')) != nullptr; line = end + 1, d->lines++)
        fprintf(stderr, "\033[2K%.*s\n", (int)(end - line < columns ? end - line : columns), line);
    d->shown = now();
}

static void report(display *d, const char *text)
{
    fprintf(stderr, "%s%s\n", d->lines > 0 ? "\033[2K" : "", text);
    d->lines = 0; /* so that the next table is drawn below */
}

/* An element of this pipeline is an image. */
static void report_tuned(void *context, const char *line)
{
    static const char unit[] = "elements/s";
    const char *at = strstr(line, unit);
    char text[400];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at == nullptr ? strlen(line) : (size_t)(at - line)), line,
             at == nullptr ? "" : "images/s", at == nullptr ? "" : at + strlen(unit));
    report(context, text);
}

/* Called by the pipeline for each element that fails. Only errors of a record are skipped; others end the run. */
static bool skip_bad(void *context, const mr_error *error)
{
    display *d = context;
    if (error->status != MR_DATA_LOSS && error->status != MR_INVALID_ARGUMENT) return false;
    char text[MR_ERROR_SIZE + 16];
    snprintf(text, sizeof text, "skipped: %s", error->message);
    report(d, text);
    d->skipped++;
    return true;
}

/* Called from another thread while this one waits. */
static void report_stuck(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count)
{
    (void)context;
    fprintf(stderr, "no batch for %.0f s\n", (double)waited_ns * 1e-9);
    for (int32_t i = 0; i < count; i++)
        if (threads[i].stage != nullptr)
            fprintf(stderr, "  %s, %s: for %.1f s\n", threads[i].stage, threads[i].where,
                    (double)threads[i].since_ns * 1e-9);
}

/* The pattern of a directory's records, or the path itself. */
static void name_pattern(const char *path, char pattern[PATTERN_SIZE])
{
    struct stat about;
    bool is_directory = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    snprintf(pattern, PATTERN_SIZE, is_directory ? "%s/*.tfrecord" : "%s", path);
}

/* The records of a directory, of a pattern, or of files. */
static mr_dataset *records(const char *const *paths, int count)
{
    char pattern[PATTERN_SIZE];
    if (count > 1) return mr_dataset_record_files(paths, count);
    name_pattern(paths[0], pattern);
    return mr_dataset_records(pattern);
}

/* Whether one of the files that the pattern matches is this file. */
static bool is_matched(const char *pattern, const struct stat *file)
{
    char **paths = nullptr;
    int32_t count = 0;
    bool is_found = false;
    if (mr_paths_match(pattern, &paths, &count, nullptr) != MR_OK) return false;
    for (int32_t i = 0; i < count; i++) {
        struct stat about;
        is_found |= stat(paths[i], &about) == 0 && about.st_dev == file->st_dev && about.st_ino == file->st_ino;
    }
    mr_paths_free(paths, count);
    return is_found;
}

/* The trace never replaces records, and another file only with --force. */
static mr_status check_trace(const arguments *a, const char *const *paths, int count, mr_error *error)
{
    struct stat file;
    char pattern[PATTERN_SIZE];
    if (stat(a->trace, &file) != 0 || !S_ISREG(file.st_mode)) return MR_OK;
    for (int i = 0; i < count; i++) {
        name_pattern(paths[i], pattern);
        if (is_matched(pattern, &file))
            return mr_fail(error, MR_INVALID_ARGUMENT, "--trace %s: is one of the input files", a->trace);
    }
    return a->is_forced
               ? MR_OK
               : mr_fail(error, MR_ALREADY_EXISTS, "--trace %s: already exists; --force replaces it", a->trace);
}

static mr_dataset *input(const char *const *paths, int count, const arguments *a, display *display)
{
    mr_dataset *d = records(paths, count);
    /* Compressed records have no random access, which a global shuffle needs. */
    bool is_stream = mr_dataset_status(d, nullptr) == MR_OK && mr_dataset_cardinality(d) == MR_CARDINALITY_UNKNOWN;
    if (is_stream)
        fprintf(stderr, "feed-images: no random access to compressed records: shuffling %d at a time\n", BUFFER);
    d = mr_dataset_repeat(mr_dataset_shuffle(d, .buffer_size = is_stream ? BUFFER : 0, .seed = (uint64_t)a->seed),
                          a->epochs);
    mr_feature features[] = {{"image/encoded", MR_STRING}, {"image/class/label", MR_INT64}};
    d = mr_dataset_parse_example(d, features, 2);
    mr_image_options image = {
        .size = sizeof image, .height = SIZE, .width = SIZE, .mean = {124, 117, 104}, .std = {59, 57, 57}};
    image.crop = MR_CROP_RANDOM_RESIZED;
    image.random_flip_left_right = true;
    d = mr_dataset_decode_image(d, .seed = (uint64_t)a->seed, .image = &image);
    d = mr_dataset_ignore_errors(d, .ignores = skip_bad, .context = display);
    return mr_dataset_prefetch(mr_dataset_batch(d, BATCH), 0);
}

static mr_status feed(display *d, mr_error *error)
{
    mr_element batch = {0};
    mr_status status;
    d->start = now();
    while ((status = mr_iterator_next(d->iterator, &batch, error)) == MR_OK) {
        d->images += batch.tensors[0].shape.dims[0];
        if (isatty(2) && now() - d->shown > 0.5) show(d);
    }
    mr_element_deinit(&batch);
    if (status != MR_OUT_OF_RANGE) return status;
    if (isatty(2)) show(d);
    double seconds = now() - d->start;
    printf("%lld images in %.2f s, %.0f images/s, %lld records skipped, digest %016llx\n", (long long)d->images,
           seconds, (double)d->images / seconds, (long long)d->skipped,
           (unsigned long long)mr_iterator_digest(d->iterator));
    if (d->images == 0)
        return mr_fail(error, MR_NOT_FOUND, "%s", d->skipped > 0 ? "no record could be used" : "there are no records");
    return mr_iterator_trace_stop(d->iterator, error);
}

/* Returns -1 to continue, otherwise the exit status. */
static int parse_arguments(mr_flags *flags, int argc, char **argv, arguments *a)
{
    bool version = false;
    mr_error error = {0};
    mr_flags_int(flags, "epochs", &a->epochs, nullptr, .lower_bound = 1, .upper_bound = INT32_MAX);
    mr_flags_int(flags, "threads", &a->threads, nullptr, .lower_bound = 0, .upper_bound = 1024);
    mr_flags_int(flags, "seed", &a->seed, nullptr, .lower_bound = 0);
    mr_flags_string(flags, "trace", &a->trace, nullptr);
    mr_flags_bool(flags, "force", &a->is_forced, nullptr);
    mr_flags_bool(flags, "version", &version, nullptr);
    mr_status status = mr_flags_parse(flags, argc, argv, &error);
    if (mr_flags_help(flags) != nullptr) return fputs(usage, stdout), 0;
    if (version) return puts("feed-images (millrace) " MR_VERSION), 0;
    if (status == MR_OK && a->is_forced && a->trace == nullptr)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "--force is for --trace");
    if (status == MR_OK && mr_flags_arguments(flags).count == 0)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "no RECORDS");
    if (status == MR_OK) return -1;
    return fprintf(stderr, "feed-images: %s\nTry 'feed-images --help'.\n", error.message), 2;
}

int main(int argc, char **argv)
{
    arguments a = {.epochs = 1, .seed = 1};
    (void)signal(SIGXFSZ, SIG_IGN); /* a trace that exceeds the file size limit is an error */
    mr_flags *flags = mr_flags_new(nullptr);
    int exit_code = parse_arguments(flags, argc, argv, &a);
    if (exit_code >= 0) return mr_flags_free(flags), exit_code;
    mr_error error = {0};
    const mr_names paths = mr_flags_arguments(flags);
    if (a.trace != nullptr && check_trace(&a, paths.items, paths.count, &error) != MR_OK)
        return fprintf(stderr, "feed-images: %s\n", error.message), mr_flags_free(flags), 1;
    display shown = {0};
    mr_dataset *d = input(paths.items, paths.count, &a, &shown);
    mr_iterator_options with = {.size = sizeof with,
                                .threads = (int32_t)a.threads,
                                .trace_path = a.trace,
                                .digest = true,
                                .tuned = report_tuned,
                                .tuned_context = &shown,
                                .watchdog_ns = 10'000'000'000,
                                .watchdog = report_stuck};
    mr_status status = mr_iterator_new(d, &with, &shown.iterator, &error);
    if (status == MR_OK) status = feed(&shown, &error);
    if (status != MR_OK) fprintf(stderr, "feed-images: %s\n", error.message);
    mr_iterator_free(shown.iterator);
    mr_dataset_free(d);
    mr_flags_free(flags);
    return status == MR_OK ? 0 : 1;
}
