/* Every operator with hostile inputs. Each operator runs in a process of its own, so that a crash is one failure that
 * names operator, seed and case.
 *
 *     MILLRACE_HOSTILE_CASES=20000   cases for each operator; the default keeps the tests short
 *     MILLRACE_HOSTILE_OP=Conv2D,Pad only these operators
 *     MILLRACE_HOSTILE_CASE=17       only this case
 *     MILLRACE_HOSTILE_VERBOSE=1     prints each case with its outcome
 *     MILLRACE_HOSTILE_SECONDS=900   time for a quarter of the operators */
#include "tests/ops/hostile.h"

#include "builtin/builtin.h"
#include <limits.h>
#include <millrace/saver.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr size_t ALLOCATION_MAX_BYTES = (size_t)16 << 20;

/* The report from an operator's process to its parent. */
typedef struct report {
    int cases, accepted, succeeded;
    bool sample_succeeded;
    bool has_no_kernel;
    char current[4096]; /* the running case */
} report;

static report *shared;

static long long setting(const char *name, long long default_value)
{
    const char *text = getenv(name);
    return text != nullptr && *text != '\0' ? strtoll(text, nullptr, 0) : default_value;
}

/* ---- In the operator's process ---- */

static void stop(int signal_number)
{
    static const char slow[] = "\nthe case takes too long: ", crashed[] = "\nthe case crashes: ";
    bool is_slow = signal_number == SIGPROF || signal_number == SIGALRM;
    (void)!write(2, is_slow ? slow : crashed, is_slow ? sizeof slow - 1 : sizeof crashed - 1);
    (void)!write(2, shared->current, strlen(shared->current));
    (void)!write(2, "\n", 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void limit_time(void)
{
    int seconds = test_is_sanitized() ? 30 : 3;
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = seconds}}, nullptr);
    alarm(120);
}

/* Runs the case; the results for different sources of the same case must be bitwise equal. */
static mr_status run_case(hostile_case *c, const char *label, hostile_result *result)
{
    int used = snprintf(shared->current, sizeof shared->current, "%s ", label);
    hostile_describe(c, shared->current + used, sizeof shared->current - (size_t)used);
    limit_time();
    hostile_run(c, result);
    if (setting("MILLRACE_HOSTILE_VERBOSE", 0))
        fprintf(stderr, "%s: %s: %s\n", shared->current, mr_status_name(result->status), result->error.message);
    shared->cases++;
    shared->accepted += result->was_built;
    shared->succeeded += result->status == MR_OK;
    return result->status;
}

static void set_source(hostile_case *c, hostile_source source)
{
    for (int i = 0; i < c->input_count; i++) c->inputs[i].source = source;
}

static void check_same(const hostile_case *c, const hostile_result *a, const hostile_result *b)
{
    if (c->def->op->flags & MR_OP_STATEFUL) return;
    CHECK_EQ(a->output_count, b->output_count);
    for (int32_t i = 0; i < a->output_count; i++) {
        CHECK_EQ(a->outputs[i].dtype, b->outputs[i].dtype);
        CHECK(mr_shape_equal(a->outputs[i].shape, b->outputs[i].shape));
        if (a->outputs[i].dtype == MR_STRING) continue;
        if (memcmp(a->outputs[i].data, b->outputs[i].data, mr_tensor_size_bytes(&a->outputs[i])) != 0)
            test_fail(__FILE__, __LINE__, "output %d of constants differs from that of fed tensors: %s", i,
                      shared->current);
    }
}

/* Constants are folded during planning, fed tensors are not. */
static void run_each_source(hostile_case *c, const char *label)
{
    hostile_result results[HOSTILE_SOURCE_COUNT];
    for (hostile_source s = 0; s < HOSTILE_SOURCE_COUNT; s++) {
        set_source(c, s);
        (void)run_case(c, label, &results[s]);
    }
    for (int s = 1; s < HOSTILE_SOURCE_COUNT; s++)
        if (results[0].status == MR_OK && results[s].status == MR_OK) check_same(c, &results[0], &results[s]);
    for (int s = 0; s < HOSTILE_SOURCE_COUNT; s++) hostile_result_deinit(&results[s]);
}

static void run_sample(const hostile_sample *sample)
{
    hostile_case c;
    hostile_result result;
    hostile_parse(sample, &c);
    c.with_gradients = true;
    c.is_patient = !sample->failure || strcmp(sample->failure, "Timed out") != 0;
    if (run_case(&c, "sample", &result) == MR_OK ||
        (sample->failure != nullptr && strstr(result.error.message, sample->failure) != nullptr))
        shared->sample_succeeded = true;
    else if (result.status == MR_UNIMPLEMENTED || result.status == MR_NOT_FOUND)
        shared->has_no_kernel = true;
    else
        test_fail(__FILE__, __LINE__, "%s: %s: %s", shared->current, mr_status_name(result.status),
                  result.error.message);
    hostile_result_deinit(&result);
    run_each_source(&c, "sample");
}

static void run_operator(const char *op, const int *samples, int sample_count)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (!test_is_sanitized() || i >= 4) signal(signals[i], stop);
    test_limit_allocation(ALLOCATION_MAX_BYTES);
    for (int i = 0; i < sample_count; i++) run_sample(hostile_sample_at(samples[i]));
    long long only = setting("MILLRACE_HOSTILE_CASE", -1), count = setting("MILLRACE_HOSTILE_CASES", 300);
    for (long long at = only >= 0 ? only : 0; at < (only >= 0 ? only + 1 : count); at++) {
        uint64_t hash = 0;
        for (const char *p = op; *p; p++) hash = hash * 31 + (unsigned char)*p;
        mr_random random = mr_random_at(test_seed(), hash, (uint64_t)at, 0);
        hostile_case c;
        char label[96];
        snprintf(label, sizeof label, "seed %llu case %lld", (unsigned long long)test_seed(), at);
        hostile_parse(hostile_sample_at(samples[mr_random_below(&random, (uint64_t)sample_count)]), &c);
        for (int changes = 1 + (int)mr_random_below(&random, 3); changes > 0; changes--) hostile_mutate(&c, &random);
        hostile_result result;
        c.with_gradients = at % 3 == 1;
        (void)run_case(&c, label, &result);
        hostile_result_deinit(&result);
        if (at % 2 == 0) run_each_source(&c, label);
    }
    test_limit_allocation(0);
}

/* ---- In the parent ---- */

/* A checkpoint "model" with a vector "w" and a matrix "m", and a file with three words. */
static void write_checkpoint(void)
{
    mr_error error = {0};
    mr_tensor value = {0};
    mr_checkpoint_writer *writer = nullptr;
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(3), (float[]){1, 2, 3}, &error));
    CHECK_OK(mr_checkpoint_writer_open(test_path("model"), &writer, &error));
    CHECK_OK(mr_checkpoint_write(writer, "w", &value, &error));
    mr_tensor_deinit(&value);
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(3, 2), (float[]){1, 2, 3, 4, 5, 6}, &error));
    CHECK_OK(mr_checkpoint_write(writer, "m", &value, &error));
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    mr_tensor_deinit(&value);
    FILE *words = fopen(test_path("vocabulary"), "w");
    CHECK(words != nullptr && fputs("red\ngreen\nblue\n", words) >= 0 && fclose(words) == 0);
}

/* False if the operator's process failed. */
static bool fork_operator(const char *op)
{
    int samples[HOSTILE_VALUES_MAX], count = 0;
    for (int i = 0; i < hostile_sample_count() && count < HOSTILE_VALUES_MAX; i++)
        if (strcmp(hostile_sample_at(i)->op, op) == 0) samples[count++] = i;
    *shared = (report){0};
    if (count == 0) {
        fprintf(stderr, "%s has no sample in tests/ops\n", op);
        return false;
    }
    fflush(nullptr);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        run_operator(op, samples, count);
        exit(0); /* not _exit: leak checkers run at exit */
    }
    int status = 0;
    CHECK(waitpid(process, &status, 0) == process);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    fprintf(stderr, "%s failed in %s\n", op, shared->current);
    return false;
}

/* Whether the operator is one of the names, which are separated by commas. */
static bool is_listed(const char *names, const char *op)
{
    size_t length = strlen(op);
    for (const char *at = strstr(names, op); at != nullptr; at = strstr(at + 1, op))
        if ((at == names || at[-1] == ',') && (at[length] == '\0' || at[length] == ',')) return true;
    return false;
}

/* A quarter of the operators: the runner runs the quarters concurrently. */
static void run_quarter(int quarter)
{
    const char *only = getenv("MILLRACE_HOSTILE_OP");
    int failed = 0, succeeded = 0, without_kernel = 0, total = 0;
    long long cases = 0, accepted = 0, valid = 0;
    shared = mmap(nullptr, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    mr_builtin_register();
    write_checkpoint();
    CHECK(chdir(test_directory()) == 0); /* relative file names of a case stay in the test's directory */
    alarm((unsigned)setting("MILLRACE_HOSTILE_SECONDS", 280));
    for (int32_t i = quarter; i < mr_op_count(); i += 4) {
        const char *op = mr_op_at(i)->op->name;
        if (only != nullptr && !is_listed(only, op)) continue;
        failed += !fork_operator(op);
        total++;
        succeeded += shared->sample_succeeded;
        without_kernel += shared->has_no_kernel && !shared->sample_succeeded;
        if (!shared->sample_succeeded && setting("MILLRACE_HOSTILE_CASES", 0) > 0)
            fprintf(stderr, "%s cannot run here\n", op);
        cases += shared->cases;
        accepted += shared->accepted;
        valid += shared->succeeded;
    }
    if (setting("MILLRACE_HOSTILE_CASES", 0) > 0)
        fprintf(stderr,
                "%d operators: %d ran a valid sample, %d have no kernel; %lld runs, of which %lld were built and %lld "
                "succeeded\n",
                total, succeeded, without_kernel, cases, accepted, valid);
    if (failed > 0) test_fail(__FILE__, __LINE__, "%d of %d operators failed", failed, total);
}

TEST(hostile_operators_first_quarter)
{
    run_quarter(0);
}

TEST(hostile_operators_second_quarter)
{
    run_quarter(1);
}

TEST(hostile_operators_third_quarter)
{
    run_quarter(2);
}

TEST(hostile_operators_fourth_quarter)
{
    run_quarter(3);
}
