/* photographs: renders images of simple objects, so that the examples and tests can be run without a data set.
 *
 *     photographs --out photos --count 3000 --seed 1
 *
 * writes photos/ball/ball-000000.jpg, photos/cone/cone-000001.png, …: six classes, many sizes, mostly JPEG. The same
 * seed produces the same files with any number of jobs. Existing files are kept. */
#include "common/file.h"
#include "common/pool.h"
#include "scene.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] = "usage: photographs --out DIR [--count 3000] [--seed 1] [--jobs N]\n"
                            "\n"
                            "Render photographs of simple objects (ball, cone, cube, cylinder, ring, star),\n"
                            "with one directory for each class.\n"
                            "\n"
                            "  --out DIR    directory of the class directories; created if it does not exist\n"
                            "  --count N    number of images of all classes together (default 3000)\n"
                            "  --seed N     seed of the images (default 1)\n"
                            "  --jobs N     number of threads (default: one for each processor)\n"
                            "\n"
                            "Existing images are kept, so the same command resumes an interrupted run.\n";

typedef struct job {
    const char *directory;
    uint64_t count, seed;
    atomic_uint_fast64_t made, found;
    atomic_bool failed;
    mr_error error; /* of the first failure; written by the thread that sets `failed` */
} job;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static mr_status make_one(job *job, uint64_t index, mr_error *error)
{
    scene scene;
    scene_draw(&scene, job->seed, index);
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s/%s-%06" PRIu64 ".%s", job->directory, class_names[scene.class],
                          class_names[scene.class], index, scene.format == PNG ? "png" : "jpg");
    if (length >= (int)sizeof(path))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the name is too long", job->directory);
    if (access(path, F_OK) == 0) {
        atomic_fetch_add(&job->found, 1);
        return MR_OK;
    }
    float *scratch = malloc(scene_scratch_count(scene.width, scene.height) * sizeof(float));
    unsigned char *pixels = malloc(3 * (size_t)scene.width * (size_t)scene.height);
    mr_status status = MR_OK;
    if (scratch == nullptr || pixels == nullptr) {
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory for an image of %d x %d pixels", scene.width,
                         scene.height);
    } else {
        scene_render(&scene, scratch, pixels);
        status = image_save(&scene, pixels, path, error);
    }
    free(scratch);
    free(pixels);
    if (status == MR_OK) atomic_fetch_add(&job->made, 1);
    return status;
}

static void make_some(void *context, int64_t begin, int64_t end)
{
    job *job = context;
    for (int64_t index = begin; index < end && !atomic_load(&job->failed); index++) {
        mr_error error = {0};
        if (make_one(job, (uint64_t)index, &error) == MR_OK) continue;
        if (!atomic_exchange(&job->failed, true)) job->error = error;
    }
}

static mr_status make_directories(const char *directory, mr_error *error)
{
    for (int i = -1; i < CLASS_COUNT; i++) {
        char path[4096];
        snprintf(path, sizeof(path), i < 0 ? "%s" : "%s/%s", directory, i < 0 ? "" : class_names[i]);
        MR_TRY(file_make_directories(path, error));
    }
    return MR_OK;
}

static mr_status make_all(job *job, int jobs, mr_error *error)
{
    MR_TRY(make_directories(job->directory, error));
    pool *pool = nullptr;
    MR_TRY(pool_new(jobs, &pool, error));
    pool_for(pool, (int64_t)job->count, 4, make_some, job);
    pool_free(pool);
    if (atomic_load(&job->failed)) return mr_fail(error, job->error.status, "%s", job->error.message);
    return MR_OK;
}

static bool parse_number(const char *text, uint64_t limit, uint64_t *number)
{
    char *end = nullptr;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > limit) return false;
    *number = value;
    return true;
}

static int fail_usage(const char *reason, const char *argument)
{
    fprintf(stderr, "photographs: %s%s\nTry 'photographs --help'.\n", reason, argument);
    return 2;
}

int main(int argument_count, char **arguments)
{
    job job = {.count = 3000, .seed = 1};
    uint64_t jobs = 0;
    for (int i = 1; i < argument_count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return fputs(usage, stdout) < 0;
        bool known = strcmp(name, "--out") == 0 || strcmp(name, "--count") == 0 || strcmp(name, "--seed") == 0 ||
                     strcmp(name, "--jobs") == 0;
        if (!known) return fail_usage("unknown option: ", name);
        if (i + 1 == argument_count) return fail_usage("missing value after ", name);
        const char *value = arguments[++i];
        if (name[2] == 'o') {
            job.directory = value;
            continue;
        }
        uint64_t *number = name[2] == 'c' ? &job.count : name[2] == 's' ? &job.seed : &jobs;
        uint64_t limit = name[2] == 'c' ? 1'000'000 : name[2] == 's' ? UINT64_MAX : 1024;
        if (!parse_number(value, limit, number)) return fail_usage("invalid number: ", value);
    }
    if (job.directory == nullptr) return fail_usage("--out DIR is missing", "");
    mr_error error = {0};
    double start = now();
    if (make_all(&job, (int)jobs, &error) != MR_OK) {
        fprintf(stderr, "photographs: %s\n", error.message);
        return 1;
    }
    uint64_t made = atomic_load(&job.made), found = atomic_load(&job.found);
    double seconds = now() - start;
    printf("%s: %" PRIu64 " photographs of %d classes", job.directory, made + found, CLASS_COUNT);
    if (made > 0) printf(", %" PRIu64 " rendered in %.1f s (%.0f/s)", made, seconds, (double)made / seconds);
    if (found > 0) printf(", %" PRIu64 " existed already", found);
    printf("\n");
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    fprintf(stderr, "photographs: cannot write the output: %s\n", strerror(errno));
    return 1;
}
