/* Time to the first batch: the time and memory that a shuffle of 10,000 photographs needs before training begins,
 * compared with tf.data, whose shuffle buffers the records themselves. Each side runs in its own process. Time starts
 * when the pipeline is built, after libraries are loaded. Memory is the peak of the process after ten more batches. */
#include "tools/bench/input.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr int ROUNDS_MAX = 15;
constexpr int BUFFER = 10000, MORE_BATCHES = 10;

typedef struct cost {
    double seconds, megabytes;
} cost;

static double peak_megabytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    if (file == nullptr) return 0;
    double kilobytes = 0;
    for (char line[256]; fgets(line, sizeof line, file);)
        if (sscanf(line, "VmHWM: %lf kB", &kilobytes) == 1) break;
    fclose(file);
    return kilobytes / 1024;
}

/* Resets the process's peak memory. */
static void forget_peak(void)
{
    int file = open("/proc/self/clear_refs", O_WRONLY);
    if (file < 0) return;
    (void)!write(file, "5", 1);
    close(file);
}

static cost ours(int threads)
{
    forget_peak();
    cost result = {0};
    double start = bench_seconds();
    mr_dataset *records = mr_dataset_repeat(mr_dataset_records(bench_photo_records()), MR_INFINITE);
    mr_dataset *dataset = bench_photo_batches(mr_dataset_shuffle(records, .buffer_size = BUFFER, .seed = 1));
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status =
        mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, nullptr);
    mr_dataset_free(dataset);
    if (status == MR_OK) status = mr_iterator_next(iterator, &element, nullptr);
    double seconds = bench_seconds() - start;
    for (int i = 0; i < MORE_BATCHES && status == MR_OK; i++) status = mr_iterator_next(iterator, &element, nullptr);
    if (status == MR_OK) result = (cost){seconds, peak_megabytes()};
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return result;
}

static cost ours_apart(int threads)
{
    int ends[2];
    cost result = {0};
    fflush(nullptr);
    if (pipe(ends) != 0) return result;
    pid_t child = fork();
    if (child == 0) {
        result = ours(threads);
        _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &result, sizeof result) != sizeof result) result = (cost){0};
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return result;
}

static const char script[] =
    "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n"
    "import glob, sys, time, tensorflow as tf\n"
    "n = int(sys.argv[2])\n"
    "tf.config.threading.set_intra_op_parallelism_threads(n)\n"
    "tf.config.threading.set_inter_op_parallelism_threads(n)\n"
    "box = tf.constant([0., 0., 1., 1.], shape=[1, 1, 4])\n"
    "mean = tf.constant([123.675, 116.28, 103.53]); deviation = tf.constant([58.395, 57.12, 57.375])\n"
    "def make(record):\n"
    "    e = tf.io.parse_single_example(record, {'image/encoded': tf.io.FixedLenFeature([], tf.string),\n"
    "                                            'image/class/label': tf.io.FixedLenFeature([], tf.int64)})\n"
    "    s = e['image/encoded']\n"
    "    begin, size, _ = tf.image.sample_distorted_bounding_box(tf.image.extract_jpeg_shape(s), box,\n"
    "        min_object_covered=0., aspect_ratio_range=[3 / 4, 4 / 3], area_range=[.08, 1.],\n"
    "        use_image_if_no_bounding_boxes=True)\n"
    "    y, x, _ = tf.unstack(begin); h, w, _ = tf.unstack(size)\n"
    "    image = tf.io.decode_and_crop_jpeg(s, tf.stack([y, x, h, w]), channels=3)\n"
    "    image = tf.image.random_flip_left_right(tf.image.resize(image, [224, 224]))\n"
    "    return (image - mean) / deviation, e['image/class/label']\n"
    "start = time.time()\n"
    "d = tf.data.TFRecordDataset(sorted(glob.glob(sys.argv[1])), num_parallel_reads=n).repeat().shuffle(10000)\n"
    "d = iter(d.map(make, num_parallel_calls=n).batch(64, drop_remainder=True).prefetch(2))\n"
    "next(d)\n"
    "seconds = time.time() - start\n"
    "for _ in range(10): next(d)\n"
    "peak = [l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1]\n"
    "print('value', seconds)\n"
    "print('memory', int(peak) / 1024)\n";

static cost tensorflow(const char *python, int threads)
{
    char path[600], command[3000];
    double numbers[2] = {0};
    if (python == nullptr) return (cost){0};
    snprintf(path, sizeof path, "%s/first.py", bench_directory("input"));
    FILE *file = fopen(path, "w");
    if (file == nullptr) return (cost){0};
    fputs(script, file);
    if (fclose(file) != 0) return (cost){0};
    snprintf(command, sizeof command, "'%s' %s '%s' %d 2>/dev/null", python, path, bench_photo_records(), threads);
    bench_command_numbers(command, (const char *const[]){"value ", "memory "}, numbers, 2);
    return (cost){numbers[0], numbers[1]};
}

void bench_first_batch(bench_report *report)
{
    double mine[2][ROUNDS_MAX], theirs[2][ROUNDS_MAX];
    int rounds = bench_rounds(report, 3), threads = bench_threads(report);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    const char *python = bench_tensorflow_python();
    for (int i = 0; i < rounds; i++) {
        cost a = ours_apart(threads), b = tensorflow(python, threads);
        mine[0][i] = 1e3 * a.seconds;
        mine[1][i] = a.megabytes;
        theirs[0][i] = 1e3 * b.seconds;
        theirs[1][i] = b.megabytes;
    }
    static const char *const tasks[] = {"first_batch", "shuffle_memory"}, *const units[] = {"ms", "MiB"};
    for (int k = 0; k < 2; k++)
        bench_row(report, (bench_result){.task = tasks[k],
                                         .unit = units[k],
                                         .peer = "tf.data",
                                         .ours = bench_median(mine[k], rounds),
                                         .peer_value = bench_median(theirs[k], rounds),
                                         .less_is_better = true,
                                         .goal = 10,
                                         .runs = rounds});
}
