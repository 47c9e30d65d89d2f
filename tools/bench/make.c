/* tfrecord-make compared with cp -r: 4,000 JPEGs of about 100 KB in the page cache are written, unchecked and
 * unchanged, to the same disk. Both write the same number of bytes. cp creates 4,000 files and syncs none of them;
 * tfrecord-make creates a few and syncs all of them. Before each run, earlier writes are synced to the disk. */
#include "tools/bench/bench.h"

#include <millrace/image.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr int IMAGES = 4000;
static constexpr int DIFFERENT = 50, CLASSES = 20;
static constexpr int ROUNDS_MAX = 64;

/* An image of noise over waves; its JPEG has 70 to 130 KB. */
static bool encode(int number, mr_tensor *bytes)
{
    mr_error error = {0};
    mr_tensor pixels = {0};
    int height = 330 + number * 3, width = 500;
    if (mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(height, width, 3), &error) != MR_OK) return false;
    uint32_t state = (uint32_t)number;
    for (int64_t i = 0; i < mr_tensor_count(&pixels); i++) {
        state = state * 1664525 + 1013904223;
        mr_tensor_uint8s(&pixels)[i] = (uint8_t)(i / 7 + i / 1500 + (state >> 27));
    }
    mr_status status = mr_image_encode_jpeg(&pixels, 92, bytes, &error);
    mr_tensor_deinit(&pixels);
    return status == MR_OK;
}

/* Writes the image with its number in a comment segment after the start marker, so that no two files are equal. */
static bool save(const char *directory, int number, mr_string jpeg)
{
    char path[1024];
    unsigned char head[12] = "\xff\xd8\xff\xfe\0\x08";
    snprintf(path, sizeof path, "%s/%02d", directory, number % CLASSES);
    (void)mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%02d/%05d.jpg", directory, number % CLASSES, number);
    snprintf((char *)head + 6, 6, "%05d", number);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    bool is_written =
        fwrite(head, 1, 12, file) == 12 && fwrite(jpeg.data + 2, 1, jpeg.size_bytes - 2, file) == jpeg.size_bytes - 2;
    return fclose(file) == 0 && is_written;
}

static bool make_images(const char *directory)
{
    char last[1024];
    snprintf(last, sizeof last, "%s/%02d/%05d.jpg", directory, (IMAGES - 1) % CLASSES, IMAGES - 1);
    if (access(last, R_OK) == 0) return true;
    (void)mkdir(directory, 0777);
    for (int i = 0; i < DIFFERENT; i++) {
        mr_tensor bytes = {0};
        bool is_made = encode(i, &bytes);
        for (int j = i; is_made && j < IMAGES; j += DIFFERENT)
            is_made = save(directory, j, mr_tensor_strings(&bytes)[0]);
        mr_tensor_deinit(&bytes);
        if (!is_made) return false;
    }
    return true;
}

/* Seconds that a command needs to write DIRECTORY/new, which is removed before the time is measured. 0 if the command
 * fails. */
static double run(const char *directory, const char *format, const char *program)
{
    char command[4096];
    snprintf(command, sizeof command, "cd '%s' && rm -rf new && sync -f .", directory);
    if (system(command) != 0) return 0;
    int used = snprintf(command, sizeof command, "cd '%s' && exec >/dev/null 2>&1; ", directory);
    snprintf(command + used, sizeof command - (size_t)used, format, program);
    double begin = bench_seconds();
    return system(command) == 0 ? bench_seconds() - begin : 0;
}

void bench_making(bench_report *report)
{
    char directory[1024], images[1100], program[1024] = "";
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    int rounds = bench_rounds(report, 7);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    snprintf(directory, sizeof directory, "%s", bench_directory("records"));
    snprintf(images, sizeof images, "%s/photos", directory);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 32);
    char *slash = length > 0 ? strrchr(program, '/') : nullptr;
    if (slash) memcpy(slash + 1, "tfrecord-make", sizeof "tfrecord-make");
    if (!slash || access(program, X_OK) != 0 || !make_images(images)) {
        bench_note(report, "tfrecord-make: not built, or no space for images in %s", directory);
        return;
    }
    static const char make[] = "'%s' --out new --no-check photos", copy[] = "%.0scp -r photos new";
    (void)run(directory, copy, program);
    for (int i = 0; i < rounds; i++) {
        theirs[i] = IMAGES / run(directory, copy, program);
        ours[i] = IMAGES / run(directory, make, program);
    }
    (void)run(directory, "true %s", program);
    bench_row(report, (bench_result){.task = "make_4000_jpegs",
                                     .unit = "images/s",
                                     .peer = "cp -r",
                                     .ours = bench_median(ours, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .goal = 0.8,
                                     .runs = rounds});
}
