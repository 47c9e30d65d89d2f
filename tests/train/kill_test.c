/* Training is killed with SIGKILL at 50 random moments. After each kill the test checks the directory as the next
 * process or TensorBoard would read it: a file with a final name is complete; "checkpoint" names a checkpoint that can
 * be loaded and is never older than before; event files end with at most one truncated record. After restarts, every
 * run ends with the same variables, bit for bit, as a run that was not killed, and has removed the leftovers of the
 * killed ones. */
#include "tests/kill.h"
#include "tests/train/small_training.h"

#include <dirent.h>

constexpr int steps = 60, kills = 50, rounds_max = 400, kept = 3;

typedef mr_status (*training)(const char *records, const char *directory, int64_t last_step,
                              int64_t save_checkpoint_steps, mr_error *error);

/* Trains in a separate process, which is killed at change number kill_at of its directory (-1: never). True if it
 * completed.
 * changes  receives the number of changes; may be null */
static bool train(training run, const char *directory, int64_t save_checkpoint_steps, int kill_at, int *changes)
{
    char records[1024];
    snprintf(records, sizeof records, "%s", test_path("small.tfrecord"));
    int watch = kill_watch(directory), how = 0;
    pid_t child = fork();
    if (child == 0) {
        mr_error error = {0};
        mr_status status = run(records, directory, steps, save_checkpoint_steps, &error);
        if (status != MR_OK) fprintf(stderr, "training: %s\n", error.message);
        _exit(status == MR_OK ? 0 : 1);
    }
    int count = kill_at_change(child, watch, kill_at, &how);
    if (changes != nullptr) *changes = count;
    CHECK(WIFSIGNALED(how) ? WTERMSIG(how) == SIGKILL : WEXITSTATUS(how) == 0);
    return WIFEXITED(how);
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), size = strlen(ending);
    return length >= size && strcmp(text + length - size, ending) == 0;
}

/* Every value of a checkpoint can be read and has a valid checksum. */
static void check_loads(const char *path)
{
    mr_error error = {0};
    mr_checkpoint_reader *reader = nullptr;
    CHECK_OK(mr_checkpoint_reader_open(path, &reader, &error));
    CHECK(mr_checkpoint_count(reader) > 15);
    for (int32_t i = 0; i < mr_checkpoint_count(reader); i++) {
        mr_tensor value = {0};
        CHECK_OK(mr_checkpoint_read(reader, mr_checkpoint_key(reader, i, nullptr, nullptr), &value, &error));
        mr_tensor_deinit(&value);
    }
    mr_checkpoint_reader_close(reader);
}

static void check_meta(const char *path)
{
    mr_error error = {0};
    FILE *file = fopen(path, "rb");
    CHECK(file != nullptr);
    static char bytes[1 << 18];
    size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(size_bytes > 0 && size_bytes < sizeof bytes);
    mr_graph *g = mr_graph_new();
    CHECK_OK(mr_graph_import_meta(g, bytes, size_bytes, &error));
    mr_graph_free(g);
}

/* Reads records up to the end, or to an incomplete one. Returns true for an incomplete one. */
static bool check_events(const char *path)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    mr_status status;
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) continue;
    if (status != MR_OUT_OF_RANGE && mr_record_reader_damage(reader).kind != MR_DAMAGE_TRUNCATED)
        test_fail(__FILE__, __LINE__, "%s", error.message);
    mr_record_reader_close(reader);
    return status != MR_OUT_OF_RANGE;
}

typedef struct found {
    int checkpoints, events, torn, leftovers;
} found;

/* Every file with a final name is complete. */
static found check_directory(const char *directory)
{
    found f = {0};
    DIR *stream = opendir(directory);
    if (stream == nullptr) return f;
    for (struct dirent *entry; (entry = readdir(stream)) != nullptr;) {
        char path[2048], *ending;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (ends_with(path, ".partial")) {
            f.leftovers++;
        } else if (strstr(entry->d_name, "tfevents") != nullptr) {
            f.events++;
            f.torn += check_events(path);
        } else if (ends_with(path, ".meta")) {
            check_meta(path);
            strcpy(strstr(path, ".meta"), ".index");
            f.leftovers += access(path, F_OK) != 0;
        } else if (ends_with(path, ".index")) {
            f.checkpoints++;
            path[strlen(path) - strlen(".index")] = '\0';
            check_loads(path);
        } else if ((ending = strstr(path, ".data-")) != nullptr) {
            strcpy(ending, ".index");
            f.leftovers += access(path, F_OK) != 0;
        } else if (entry->d_name[0] != '.' && strcmp(entry->d_name, "graph.pbtxt") != 0) {
            CHECK_STR(entry->d_name, "checkpoint");
        }
    }
    closedir(stream);
    return f;
}

/* The step at which a new process would start; -1 if there is no checkpoint. */
static int latest_step(const char *directory)
{
    mr_error error = {0};
    char latest[2048];
    mr_status status = mr_latest_checkpoint(directory, latest, sizeof latest, &error);
    if (status == MR_NOT_FOUND && access(test_path("%s/checkpoint", strrchr(directory, '/') + 1), F_OK) != 0) return -1;
    CHECK_OK(status);
    check_loads(latest);
    return atoi(strrchr(latest, '-') + 1);
}

static void check_equal(const char *a, const char *b)
{
    mr_error error = {0};
    mr_checkpoint_reader *first = nullptr, *second = nullptr;
    CHECK_OK(mr_checkpoint_reader_open(a, &first, &error));
    CHECK_OK(mr_checkpoint_reader_open(b, &second, &error));
    CHECK_EQ(mr_checkpoint_count(first), mr_checkpoint_count(second));
    for (int32_t i = 0; i < mr_checkpoint_count(first); i++) {
        mr_dtype dtype = MR_DTYPE_INVALID;
        const char *key = mr_checkpoint_key(first, i, &dtype, nullptr);
        mr_tensor x = {0}, y = {0};
        CHECK_OK(mr_checkpoint_read(first, key, &x, &error));
        CHECK_OK(mr_checkpoint_read(second, key, &y, &error));
        bool same = dtype == MR_STRING ? mr_string_equal(mr_tensor_strings(&x)[0], mr_tensor_strings(&y)[0])
                                       : memcmp(x.data, y.data, mr_tensor_size_bytes(&x)) == 0;
        if (!same) test_fail(__FILE__, __LINE__, "%s differs between %s and %s", key, a, b);
        mr_tensor_deinit(&x);
        mr_tensor_deinit(&y);
    }
    mr_checkpoint_reader_close(first);
    mr_checkpoint_reader_close(second);
}

/* Checks a completed run: the directory contains the files to be kept, and the variables equal those of the
 * uninterrupted run. */
static void check_end(const char *directory, const char *whole)
{
    found f = check_directory(directory);
    CHECK_EQ(f.leftovers, 0);
    char name[128];
    snprintf(name, sizeof name, "%s/model.ckpt-%d", strrchr(directory, '/') + 1, steps);
    check_equal(whole, test_path("%s", name));
}

static void kill_50_times(training run)
{
    small_records_write(test_path("small.tfrecord"));
    char whole[1024], directory[1024];
    snprintf(whole, sizeof whole, "%s", test_path("whole"));
    int changes = 0;
    CHECK(train(run, whole, 1, -1, &changes));
    found f = check_directory(whole);
    CHECK_EQ(f.checkpoints, kept);
    CHECK_EQ(f.events, 1);
    CHECK_EQ(f.torn + f.leftovers, 0);
    snprintf(whole, sizeof whole, "%s", test_path("whole/model.ckpt-%d", steps));

    uint64_t state = test_seed();
    int killed = 0, runs = 0, rounds = 0, before = -1, torn = 0, leftovers = 0;
    for (; killed < kills && rounds < rounds_max; rounds++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        snprintf(directory, sizeof directory, "%s", test_path("killed-%d", runs));
        int kill_at = (int)((state >> 33) % (uint64_t)(changes / 3 + 1));
        bool ended = train(run, directory, 1 + (int64_t)(state >> 40) % 3, kill_at, nullptr);
        int now = latest_step(directory);
        CHECK(now >= before);
        before = now;
        if (ended) {
            check_end(directory, whole);
            before = -1;
            runs++;
            continue;
        }
        killed++;
        f = check_directory(directory);
        torn += f.torn;
        leftovers += f.leftovers;
    }
    CHECK_EQ(killed, kills);
    if (access(directory, F_OK) == 0 && train(run, directory, 5, -1, nullptr)) check_end(directory, whole);
    /* Shows that kills happened in the middle of operations. */
    if (getenv("MILLRACE_TEST_VERBOSE") != nullptr)
        fprintf(stderr, "%d kills in %d rounds, %d runs ended, %d leftovers, %d torn event files\n", killed, rounds,
                runs, leftovers, torn);
    CHECK(runs > 0);
}

TEST(training_killed_50_times_ends_as_the_unbroken_run)
{
    kill_50_times(small_training);
}

TEST(monitored_training_killed_50_times_ends_as_the_unbroken_run)
{
    kill_50_times(small_monitored_training);
}
