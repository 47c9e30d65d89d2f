/* bench: runs the named suites and prints one table. */
#include "tools/bench/bench.h"

#include <getopt.h>
#include <millrace/dataset.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct bench_report {
    bool json, stats;
    int threads;
    int rounds;
    const char *suite, *part;
    int row_count;
    bool headed;
    char notes[8192];
};

static bench_suite *first;

void bench_register(bench_suite *suite)
{
    suite->next = first;
    first = suite;
}

double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const double *values, int count)
{
    if (count <= 0) return 0;
    double sorted[256];
    if (count > 256) count = 256;
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

int bench_threads(const bench_report *report)
{
    if (report->threads > 0) return report->threads;
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

int bench_rounds(const bench_report *report, int default_value)
{
    return report->rounds > 0 ? report->rounds : default_value;
}

const char *bench_directory(const char *name)
{
    static char path[512];
    (void)mkdir("out", 0777);
    (void)mkdir("out/bench", 0777);
    snprintf(path, sizeof path, "out/bench/%s", name);
    (void)mkdir(path, 0777);
    return path;
}

void bench_command_numbers(const char *command, const char *const *keys, double *numbers, int count)
{
    for (int i = 0; i < count; i++) numbers[i] = 0;
    fflush(nullptr);
    FILE *pipe = popen(command, "r");
    if (!pipe) return;
    for (char line[4096]; fgets(line, sizeof line, pipe);)
        for (int i = 0; i < count; i++) {
            const char *found = strstr(line, keys[i]);
            if (found) numbers[i] = strtod(found + strlen(keys[i]), nullptr);
        }
    if (pclose(pipe) != 0)
        for (int i = 0; i < count; i++) numbers[i] = 0;
}

double bench_command(const char *command)
{
    double value;
    bench_command_numbers(command, (const char *const[]){"value "}, &value, 1);
    return value;
}

const char *bench_peers_path(const char *format, ...)
{
    static char path[1024];
    const char *peers = getenv("PEERS"), *home = getenv("HOME");
    int used = peers ? snprintf(path, sizeof path / 2, "%s/", peers)
                     : snprintf(path, sizeof path / 2, "%s/.cache/millrace-peers/", home ? home : "");
    va_list args;
    va_start(args, format);
    if (used > 0 && used < (int)sizeof path / 2) vsnprintf(path + used, sizeof path - (size_t)used, format, args);
    va_end(args);
    return path;
}

const char *bench_tensorflow_python(void)
{
    const char *named = getenv("MILLRACE_ORACLE_PYTHON");
    if (named) return named;
    const char *own = ".toolchain/oracle/bin/python";
    return access(own, X_OK) == 0 ? own : nullptr;
}

static void print_json_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

void bench_row(bench_report *report, bench_result result)
{
    double ratio = 0;
    if (!bench_wants(report, result.task)) return;
    report->row_count++;
    if (result.ours > 0 && result.peer_value > 0)
        ratio = result.less_is_better ? result.peer_value / result.ours : result.ours / result.peer_value;
    if (report->json) {
        printf("{\"task\": ");
        print_json_string(result.task);
        printf(", \"unit\": ");
        print_json_string(result.unit);
        printf(", \"ours\": %.6g, \"peer\": ", result.ours);
        print_json_string(result.peer);
        printf(", \"peer_value\": %.6g, \"ratio\": %.4g, \"goal\": %.4g, \"limit\": %.4g, \"runs\": %d}\n",
               result.peer_value, ratio, result.goal, result.limit, result.runs);
    } else {
        if (!report->headed)
            printf("%-30s %-10s %11s %11s  %-28s %6s %6s\n", report->suite, "unit", "ours", "peer", "", "ratio",
                   "goal");
        report->headed = true;
        printf("%-30s %-10s %11.5g ", result.task, result.unit, result.ours);
        if (result.peer_value > 0)
            printf("%11.5g  %-28s %6.2f ", result.peer_value, result.peer, ratio);
        else
            printf("%11s  %-28s %6s ", "not found", result.peer, "");
        if (result.goal > 0) printf("%6.2f%s", result.goal, ratio > 0 && ratio < result.goal ? "  missed" : "");
        if (result.limit > 0)
            printf("<= %g %s%s", result.limit, result.unit, result.ours > result.limit ? "  missed" : "");
        printf("\n");
    }
    fflush(stdout);
}

void bench_note(bench_report *report, const char *format, ...)
{
    size_t used = strlen(report->notes);
    va_list args;
    va_start(args, format);
    vsnprintf(report->notes + used, sizeof report->notes - used, format, args);
    va_end(args);
    used = strlen(report->notes);
    if (used + 1 < sizeof report->notes) report->notes[used] = '\n', report->notes[used + 1] = 0;
}

bool bench_wants(const bench_report *report, const char *task)
{
    return strstr(task, report->part) != nullptr;
}

const char *bench_part(const bench_report *report)
{
    return report->part;
}

bool bench_wants_stats(const bench_report *report)
{
    return report->stats;
}

void bench_show_stages(bench_report *report, const char *task, mr_iterator *iterator, bool is_first)
{
    char text[8192];
    if (!report->stats) return;
    (void)mr_iterator_statistics_text(iterator, 80, text, sizeof text);
    int lines = 1;
    for (const char *at = text; *at; at++) lines += *at == '\n';
    if (!is_first && isatty(2)) fprintf(stderr, "\033[%dA\033[J", lines);
    fprintf(stderr, "%s\n%s", task, text);
}

static void usage(FILE *file)
{
    fprintf(file, "bench SUITE[:PART]… [--json] [--stats] [--threads N] [--rounds N]\n\n"
                  "Measures millrace and a peer or a limit in the same run and prints medians and\n"
                  "ratios; a ratio above 1 is better than the peer. SUITE:PART prints only the rows\n"
                  "whose name contains PART. --json prints one object per\n"
                  "line; --stats shows statistics of the pipeline stages of \"input\" and each\n"
                  "decision of the tuner.\n\nSuites:\n");
    for (bench_suite *suite = first; suite; suite = suite->next)
        fprintf(file, "  %-10s %s\n", suite->name, suite->about);
}

int main(int argc, char **argv)
{
    bench_report report = {0};
    const struct option options[] = {
        {"json", no_argument, nullptr, 'j'},          {"stats", no_argument, nullptr, 's'},
        {"threads", required_argument, nullptr, 't'}, {"rounds", required_argument, nullptr, 'r'},
        {"help", no_argument, nullptr, 'h'},          {nullptr, 0, nullptr, 0}};
    for (int option; (option = getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
        if (option == 'j')
            report.json = true;
        else if (option == 's')
            report.stats = true;
        else if (option == 't')
            report.threads = (int)strtol(optarg, nullptr, 10);
        else if (option == 'r')
            report.rounds = (int)strtol(optarg, nullptr, 10);
        else
            return usage(option == 'h' ? stdout : stderr), option == 'h' ? 0 : 2;
    }
    if (optind == argc) return usage(stderr), 2;
    for (int i = optind; i < argc; i++) {
        bench_suite *suite = first;
        const size_t length = strcspn(argv[i], ":");
        while (suite && !(strlen(suite->name) == length && strncmp(suite->name, argv[i], length) == 0))
            suite = suite->next;
        if (!suite) return fprintf(stderr, "bench: unknown suite: %s\n", argv[i]), usage(stderr), 2;
        report.suite = suite->name;
        report.part = argv[i][length] ? argv[i] + length + 1 : "";
        report.row_count = 0;
        report.headed = false;
        report.notes[0] = 0;
        suite->run(&report);
        fputs(report.notes, report.json ? stderr : stdout);
        if (report.part[0] && report.row_count == 0)
            return fprintf(stderr, "bench: no row of %s contains \"%s\"\n", suite->name, report.part), 2;
    }
    return 0;
}
