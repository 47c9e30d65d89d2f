/* The test runner: runs each test in a process of its own, with as many concurrently as there are processors, and kills
 * tests that hang. What a test and the programs that it starts write to standard error is printed when the test ends,
 * after its line if it failed.
 *
 *     MILLRACE_TEST_TIMES=FILE   append a line for each test: its seconds, its seconds of processor time, its name */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

constexpr int running_max = 64;
constexpr unsigned hang_seconds = 600;
constexpr double slow_seconds = 20; /* tests that take longer are printed */
constexpr int skipped_code = 77;

static test_case *first, **last = &first;

void test_register(test_case *test)
{
    *last = test;
    last = &test->next;
}

static char run_directory[256];  /* contains the directories of all tests of this run; its name is unique */
static char directory[256 + 16]; /* of this test and of every process that it starts */

uint64_t test_seed(void)
{
    const char *text = getenv("MILLRACE_TEST_SEED");
    return text ? strtoull(text, nullptr, 0) : 1;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: %s (seed %llu)\n", file, line, text, (unsigned long long)test_seed());
    fflush(nullptr);
    _exit(1);
}

void test_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("skipped: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    fflush(nullptr);
    _exit(skipped_code);
}

static const char *temporary_base(void)
{
    const char *base = getenv("TMPDIR");
    return base && *base ? base : "/tmp";
}

const char *test_directory(void)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) test_fail(__FILE__, __LINE__, "cannot make %s", directory);
    return directory;
}

const char *test_path(const char *format, ...)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    int used = snprintf(path, sizeof paths[0], "%s/", test_directory());
    va_list args;
    va_start(args, format);
    vsnprintf(path + used, sizeof paths[0] - (size_t)used, format, args);
    va_end(args);
    return path;
}

const char *test_bin(const char *program)
{
    static char path[1024];
    const char *bin = getenv("MILLRACE_BIN");
    snprintf(path, sizeof path, "%s/%s", bin ? bin : "zig-out/bin", program);
    return path;
}

static int remove_entry(const char *path, const struct stat *, int, struct FTW *)
{
    return remove(path);
}

static void name_directory(int number)
{
    snprintf(directory, sizeof directory, "%s/%d", run_directory, number);
}

static void remove_directory(int number)
{
    name_directory(number);
    if (access(directory, F_OK) == 0) nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

typedef struct running_test {
    pid_t process;
    int number;
    int output; /* a file in memory, the test's standard error; -1: it has the runner's */
    double started;
    test_case *test;
} running_test;

static running_test running[running_max];
static int running_count, passed, failed, skipped;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void print_time(const test_case *test, double seconds, const struct rusage *used)
{
    const char *path = getenv("MILLRACE_TEST_TIMES");
    FILE *file = path ? fopen(path, "a") : nullptr;
    if (!file) return;
    fprintf(file, "%8.2f %8.2f %s\n", seconds, seconds_of(used->ru_utime) + seconds_of(used->ru_stime), test->name);
    fclose(file);
}

/* Ends with a new line, so that a line of the runner follows. */
static void print_output(int output)
{
    char bytes[4096], end = '\n';
    if (output < 0) return;
    lseek(output, 0, SEEK_SET);
    for (ssize_t count; (count = read(output, bytes, sizeof bytes)) > 0; end = bytes[count - 1])
        fwrite(bytes, 1, (size_t)count, stderr);
    if (end != '\n') fputc('\n', stderr);
    close(output);
}

static void wait_one(void)
{
    int status;
    struct rusage used;
    pid_t process = wait4(-1, &status, 0, &used);
    for (int i = 0; i < running_count; i++) {
        if (running[i].process != process) continue;
        const running_test ended = running[i];
        const test_case *test = ended.test;
        const double seconds = seconds_now() - ended.started;
        remove_directory(ended.number);
        running[i] = running[--running_count];
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            passed++;
        } else if (WIFEXITED(status) && WEXITSTATUS(status) == skipped_code) {
            skipped++;
        } else {
            failed++;
            const char *reason = "";
            if (WIFSIGNALED(status)) reason = WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status));
            fprintf(stderr, "FAILED %s %s %s\n", test->file, test->name, reason);
        }
        print_output(ended.output);
        if (seconds >= slow_seconds) fprintf(stderr, "slow: %s %.0f s\n", test->name, seconds);
        print_time(test, seconds, &used);
        return;
    }
}

static void start(test_case *test, int number)
{
    fflush(nullptr);
    name_directory(number);
    int output = memfd_create("test", MFD_CLOEXEC);
    if (output >= 0) fcntl(output, F_SETFL, O_APPEND); /* for programs that open /dev/stderr */
    const double started = seconds_now();
    pid_t process = fork();
    if (process < 0) {
        perror("fork");
        exit(1);
    }
    if (process == 0) {
        if (output >= 0) {
            dup2(output, STDERR_FILENO);
            close(output);
        }
        for (int i = 0; i < running_count; i++) close(running[i].output);
        alarm(hang_seconds);
        test->run();
        fflush(nullptr);
        exit(0); /* not _exit: leak checkers run at exit */
    }
    running[running_count++] = (running_test){process, number, output, started, test};
}

/* ---- Counting allocations: this program's malloc counts a call, then calls the real one ---- */

/* A sanitizer's malloc has a second name for programs that define malloc themselves. The functions below must then be
 * visible to the C library too, because memory that it allocates is freed here; but only this program's own allocations
 * are counted. Code that runs before a sanitizer is initialized must not be instrumented. */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BENEATH(name) __interceptor_##name
#define BENEATH_ALIGNED __interceptor_aligned_alloc
#define UNSEEN [[clang::disable_sanitizer_instrumentation]]
#define ALLOCATOR UNSEEN [[gnu::visibility("default")]]
extern const char __executable_start[], etext[];
#define IS_OURS(caller) ((const char *)(caller) >= __executable_start && (const char *)(caller) < etext)
#elif defined(__GLIBC__)
#define BENEATH(name) __libc_##name
#define BENEATH_ALIGNED __libc_memalign
#define UNSEEN
#define ALLOCATOR
#define IS_OURS(caller) true
#endif

bool test_is_sanitized(void)
{
    return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
}

#if defined(BENEATH)
static atomic_llong allocation_count, failing_first, failing_end;
static atomic_size_t largest_bytes; /* 0: no limit */

void *BENEATH(malloc)(size_t size_bytes);
void *BENEATH(calloc)(size_t count, size_t size_bytes);
void *BENEATH(realloc)(void *bytes, size_t size_bytes);
void *BENEATH_ALIGNED(size_t alignment, size_t size_bytes);

/* Counts an allocation. False if it is one that must fail. */
UNSEEN static bool may_allocate(const void *caller, size_t count, size_t size_bytes)
{
    if (!IS_OURS(caller)) return true;
    long long number = atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed) + 1;
    size_t limit = atomic_load_explicit(&largest_bytes, memory_order_relaxed);
    bool fits = limit == 0 || size_bytes == 0 || count <= limit / size_bytes;
    if (fits && (number < atomic_load_explicit(&failing_first, memory_order_relaxed) ||
                 number >= atomic_load_explicit(&failing_end, memory_order_relaxed)))
        return true;
    errno = ENOMEM; /* pthread_create requires it */
    return false;
}

ALLOCATOR void *malloc(size_t size_bytes)
{
    return may_allocate(__builtin_return_address(0), 1, size_bytes) ? BENEATH(malloc)(size_bytes) : nullptr;
}

ALLOCATOR void *calloc(size_t count, size_t size_bytes)
{
    return may_allocate(__builtin_return_address(0), count, size_bytes) ? BENEATH(calloc)(count, size_bytes) : nullptr;
}

ALLOCATOR void *realloc(void *bytes, size_t size_bytes)
{
    return may_allocate(__builtin_return_address(0), 1, size_bytes) ? BENEATH(realloc)(bytes, size_bytes) : nullptr;
}

ALLOCATOR void *aligned_alloc(size_t alignment, size_t size_bytes)
{
    return may_allocate(__builtin_return_address(0), 1, size_bytes) ? BENEATH_ALIGNED(alignment, size_bytes) : nullptr;
}

long long test_allocations(void)
{
    return atomic_load(&allocation_count);
}

void test_fail_allocations(long long number, long long count)
{
    atomic_store(&failing_end, 0);
    atomic_store(&failing_first, number);
    atomic_store(&failing_end, number + count);
}

void test_limit_allocation(size_t size_bytes)
{
    atomic_store(&largest_bytes, size_bytes);
}
#else
void test_limit_allocation(size_t size_bytes)
{
    (void)size_bytes;
}

void test_fail_allocations(long long number, long long count)
{
    (void)number, (void)count;
}

long long test_allocations(void)
{
    return -1;
}
#endif

void test_fail_allocation(long long number)
{
    test_fail_allocations(number, number == 0 ? 0 : 1);
}

static bool wanted(const test_case *test, int filter_count, char **filters)
{
    if (filter_count == 0) return true;
    for (int i = 0; i < filter_count; i++)
        if (strstr(test->name, filters[i]) || strstr(test->file, filters[i])) return true;
    return false;
}

int main(int argc, char **argv)
{
    static const int restored[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE};
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (test_case *test = first; test; test = test->next) printf("%s %s\n", test->file, test->name);
        return 0;
    }
    /* A process in the background may be started with these ignored, and hands that on to its children. */
    for (size_t i = 0; i < sizeof restored / sizeof restored[0]; i++) signal(restored[i], SIG_DFL);
    cpu_set_t cpus;
    /* One more than processors: tests also wait, for programs that they start and for times to pass. */
    int jobs = 1 + (sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1);
    if (jobs > running_max) jobs = running_max;
    snprintf(run_directory, sizeof run_directory, "%s/millrace-XXXXXX", temporary_base());
    if (!mkdtemp(run_directory)) {
        perror(run_directory);
        return 1;
    }
    int number = 0;
    for (test_case *test = first; test; test = test->next) {
        if (!wanted(test, argc - 1, argv + 1)) continue;
        if (running_count == jobs) wait_one();
        start(test, ++number);
    }
    while (running_count > 0) wait_one();
    if (rmdir(run_directory) != 0) perror(run_directory);
    printf("%d passed, %d failed", passed, failed);
    if (skipped) printf(", %d skipped", skipped);
    printf("\n");
    return failed != 0 || passed + skipped == 0;
}
