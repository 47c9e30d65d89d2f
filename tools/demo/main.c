/* demo: the complete workflow, from no data to a trained network. It renders photographs, converts them to records,
 * inspects the records, trains, kills the training half way, resumes from the last checkpoint, and evaluates. Every
 * step runs a program that a user would start by hand; the demo prints the command lines. */
#include "demo/child.h"
#include "demo/linear.h"

#include <millrace/saver.h>

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

constexpr int class_count = 6;
constexpr double accuracy_goal = 95;

typedef struct demo {
    char directory[1024];
    char images[1100], records[1100], run[1100];
    char train[1200], validation[1200];
    const char *count;
    const char *steps;
    double begun;
} demo;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void title(const demo *d, int number, const char *text)
{
    printf("\n%d/6  %s  (%.0f s)\n", number, text, now() - d->begun);
    fflush(stdout);
}

/* Removes the files of an earlier demo's run, and nothing else. */
static bool remove_run(const char *directory)
{
    DIR *entries = opendir(directory);
    if (!entries) return errno == ENOENT;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (unlink(path) != 0 && errno != EISDIR && errno != ENOENT)
            fprintf(stderr, "demo: cannot remove %s: %s\n", path, strerror(errno));
    }
    closedir(entries);
    return true;
}

static bool make_directory(const char *path)
{
    char part[1024];
    for (size_t i = 1; path[i - 1]; i++) {
        if (path[i] && path[i] != '/') continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fprintf(stderr, "demo: cannot create %s: %s\n", part, strerror(errno)), false;
    }
    return true;
}

static bool make_images(demo *d)
{
    title(d, 1, "Photographs of simple objects");
    return child_run((const char *[]){"photographs", "--out", d->images, "--count", d->count, "--seed", "1", nullptr});
}

static bool make_records(demo *d)
{
    title(d, 2, "Images to records");
    return child_run((const char *[]){"tfrecord-make", "--out", d->records, "--name", "objects", "--split",
                                      "train=0.9,validation=0.1", "--shards", "4", d->images, nullptr});
}

static bool look_inside(demo *d)
{
    title(d, 3, "Contents of the records");
    return child_run((const char *[]){"tfrecord-cat", "--count", d->train, d->validation, nullptr}) &&
           child_run((const char *[]){"tfrecord-cat", "--schema", d->validation, nullptr}) &&
           child_run((const char *[]){"tfrecord-cat", "--record", "0", d->validation, nullptr});
}

/* The step of the latest checkpoint; -1 if there is none. */
static long checkpoint_step(const char *directory)
{
    char path[4096];
    if (mr_latest_checkpoint(directory, path, sizeof path, nullptr) != MR_OK) return -1;
    const char *dash = strrchr(path, '-');
    return dash ? strtol(dash + 1, nullptr, 10) : -1;
}

/* Trains, kills the training when half of the steps are saved, and resumes it. */
static bool train(demo *d)
{
    long half = strtol(d->steps, nullptr, 10) / 2;
    const char *const arguments[] = {"train-images", d->records, d->run, "--steps", d->steps, nullptr};
    title(d, 4, "Training, killed half way with SIGKILL");
    pid_t process = child_start(arguments);
    bool ok = false;
    while (child_running(process, &ok) && checkpoint_step(d->run) < half)
        nanosleep(&(struct timespec){.tv_nsec = 20'000'000}, nullptr);
    if (kill(process, SIGKILL) != 0 || child_wait(process))
        return fprintf(stderr, "demo: training ended before it could be killed\n"), false;
    printf("\n   killed with SIGKILL; the last checkpoint was saved at step %ld\n", checkpoint_step(d->run));

    title(d, 5, "Training resumes from the last checkpoint, at the same position in the epoch");
    return child_run(arguments);
}

static bool evaluate(demo *d, double *accuracy, double *linear)
{
    title(d, 6, "Evaluation on images that were not used for training");
    mr_error error = {0};
    if (linear_accuracy(d->train, d->validation, class_count, linear, &error) != MR_OK)
        return fprintf(stderr, "demo: the linear model: %s\n", error.message), false;
    *linear *= 100;
    printf("   a linear model on the pixels reaches %.1f %%\n", *linear);
    char text[8192];
    if (!child_run_read((const char *[]){"train-images", d->records, d->run, "--evaluate", nullptr}, text, sizeof text))
        return false;
    const char *line = strstr(text, "validation accuracy: ");
    if (!line) return fprintf(stderr, "demo: the evaluation printed no accuracy\n"), false;
    *accuracy = strtod(line + strlen("validation accuracy: "), nullptr);
    return true;
}

static void usage(FILE *file)
{
    fputs("usage: demo [--out DIR] [--count N] [--steps N]\n\n"
          "Render photographs, convert them to records, train a network, kill the training\n"
          "half way, resume it, and evaluate the network.\n\n"
          "  --out DIR     output directory (default out/demo)\n"
          "  --count N     number of photographs (default 3000)\n"
          "  --steps N     number of training steps (default 800)\n",
          file);
}

int main(int argc, char **argv)
{
    demo d = {.count = "3000", .steps = "800", .begun = now()};
    snprintf(d.directory, sizeof d.directory, "out/demo");
    const struct option options[] = {{"out", required_argument, nullptr, 'o'},
                                     {"count", required_argument, nullptr, 'c'},
                                     {"steps", required_argument, nullptr, 's'},
                                     {"help", no_argument, nullptr, 'h'},
                                     {nullptr, 0, nullptr, 0}};
    for (int option; (option = getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
        if (option == 'o')
            snprintf(d.directory, sizeof d.directory, "%s", optarg);
        else if (option == 'c')
            d.count = optarg;
        else if (option == 's')
            d.steps = optarg;
        else
            return usage(option == 'h' ? stdout : stderr), option == 'h' ? 0 : 2;
    }
    snprintf(d.images, sizeof d.images, "%s/photographs", d.directory);
    snprintf(d.records, sizeof d.records, "%s/records", d.directory);
    snprintf(d.run, sizeof d.run, "%s/run", d.directory);
    snprintf(d.train, sizeof d.train, "%s/objects-train-*.tfrecord", d.records);
    snprintf(d.validation, sizeof d.validation, "%s/objects-validation-*.tfrecord", d.records);
    double accuracy = 0, linear = 0;
    if (!make_directory(d.directory) || !remove_run(d.run) || !make_images(&d) || !make_records(&d) ||
        !look_inside(&d) || !train(&d) || !evaluate(&d, &accuracy, &linear))
        return 1;

    printf("\nDone in %.0f s. The files are in %s:\n", now() - d.begun, d.directory);
    printf("  photographs/   the images, one directory for each class\n");
    printf("  records/       training and validation records with their indexes, labels.txt\n");
    printf("  run/           checkpoints and event files (tensorboard --logdir %s)\n", d.run);
    printf("linear model: %.1f %%\n", linear);
    printf("validation accuracy: %.1f %%\n", accuracy);
    if (accuracy >= accuracy_goal) return 0;
    fprintf(stderr, "demo: the accuracy is below %.0f %%\n", accuracy_goal);
    return 1;
}
