/* The summary at the end of a run, one sentence for each fact, wrapped to the width of the terminal. */
#include "tfrecord-make/make.h"

#include "common/output.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr int INDENT = 2;

void print_wrapped(const char *format, ...)
{
    char *raw = nullptr;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&raw, format, args);
    va_end(args);
    if (length < 0) return output_lose(ENOMEM);
    size_t size = 4 * (size_t)length + 1;
    char *text = malloc(size);
    if (text) {
        (void)text_copy(text, size, (mr_string){raw, (size_t)length}, length * 4);
        int columns = isatty(STDOUT_FILENO) ? progress_columns(STDOUT_FILENO, 80) : 0, used = 0;
        char *rest = text;
        for (char *word; (word = strsep(&rest, " "));) {
            int width = text_columns(mr_string_from(word));
            if (columns > 0 && used > INDENT && used + 1 + width > columns) {
                printf("\n%*s", INDENT, "");
                used = INDENT;
            } else if (word != text) {
                putchar(' ');
                used++;
            }
            fputs(word, stdout);
            used += width;
        }
        putchar('\n');
    } else {
        output_lose(ENOMEM);
    }
    free(text);
    free(raw);
}

/* "2 files left out: a.txt, …". what: as for source_note. */
static void print_note(int64_t count, const char *what, const char *first)
{
    size_t one = strcspn(what, "|");
    const char *many = what[one] == '|' ? what + one + 1 : what;
    print_wrapped("  %" PRId64 " %.*s: %s%s", count, count == 1 ? (int)one : (int)strlen(many),
                  count == 1 ? what : many, first, count > 1 ? ", …" : "");
}

/* With a single label every prediction is correct, and training reports an accuracy of 100 %. */
static void warn_of_one_label(const source *source)
{
    if (source->has_boxes || source->row_count < 2) return;
    int32_t label = -1;
    for (int64_t i = 0; i < source->row_count; i++) {
        if (source_is_excluded(source, i)) continue;
        if (source->rows[i].label < 0 || (label >= 0 && source->rows[i].label != label)) return;
        label = source->rows[i].label;
    }
    if (label < 0) return;
    const char *name = label < source->class_count ? source->classes[label] : nullptr;
    print_wrapped("  warning: all %ss have the same label, %d%s%s%s: there is nothing to learn", source->row_noun,
                  label, name ? " (" : "", name ? name : "", name ? ")" : "");
}

void report_source(const options *options, const source *source)
{
    char size[PROGRESS_TEXT_SIZE], classes[64] = "";
    int32_t class_count = 0;
    for (int32_t i = 0; i < source->class_count; i++) class_count += source->classes[i] != nullptr;
    if (class_count > 0)
        snprintf(classes, sizeof(classes), " in %d class%s", class_count, class_count == 1 ? "" : "es");
    int64_t count = source->row_count - source->excluded_count;
    print_wrapped("%s: %" PRId64 " %s%s%s, %s", options->input, count, source->row_noun, count == 1 ? "" : "s", classes,
                  progress_size_text(source->size_bytes, size));
    for (int i = 0; i < source->note_count; i++)
        print_note(source->notes[i].count, source->notes[i].what, source->notes[i].first);
    for (int i = 0; i < source->remark_count; i++) print_wrapped("  %s", source->remarks[i]);
    warn_of_one_label(source);
    fflush(stdout);
}

void report_duplicates(const options *options, const duplicates_found *found)
{
    if (found->same.count > 0)
        print_wrapped("  %" PRId64 " %s: %s equals %s%s", found->same.count,
                      found->dropped > 0       ? "duplicate images were left out"
                      : found->same.count == 1 ? "image is a duplicate; --duplicates drop leaves it out"
                                               : "images are duplicates; --duplicates drop leaves them out",
                      found->same.other, found->same.first, found->same.count > 1 ? ", …" : "");
    if (found->contradicting.count > 0)
        print_wrapped("  %" PRId64 " %s with another label or other annotations and %s kept: %s equals %s%s",
                      found->contradicting.count,
                      found->contradicting.count == 1 ? "image occurs again" : "images occur again",
                      found->contradicting.count == 1 ? "was" : "were", found->contradicting.other,
                      found->contradicting.first, found->contradicting.count > 1 ? ", …" : "");
    if (found->unread > 0)
        print_wrapped("  %" PRId64 " %s not be read and compared with others: %s%s", found->unread,
                      found->unread == 1 ? "image could" : "images could", found->first_unread,
                      found->unread > 1 ? ", …" : "");
    if (found->crossing.count > 0 && found->dropped == 0)
        print_wrapped("  warning: %" PRId64
                      " of the duplicates %s in another split than the original, so test data is also training data: "
                      "%s equals %s%s",
                      found->crossing.count, found->crossing.count == 1 ? "is" : "are", found->crossing.other,
                      found->crossing.first, found->crossing.count > 1 ? ", …" : "");
    fflush(stdout);
}

/* Prints the remarks about images, one sentence each, then why some were left out. */
static void report_remarks(const work *work)
{
    shard_report sum = {0};
    for (int i = 0; i < work->options->split_count; i++)
        if (shard_report_add(&sum, &work->splits[i], nullptr) != MR_OK)
            return output_lose(ENOMEM), shard_report_deinit(&sum);
    for (int i = 0; i < (int)REMARK_FAULTS; i++)
        if (sum.remarks[i].count > 0)
            print_wrapped("%" PRId64 " %s (%s%s)", sum.remarks[i].count,
                          remark_sentence((remark)i, sum.remarks[i].count > 1), sum.remarks[i].first,
                          sum.remarks[i].count > 1 ? ", …" : "");
    if (sum.skipped > 0)
        print_wrapped("%" PRId64 " %s%s could not be used and %s left out:", sum.skipped, work->source->row_noun,
                      sum.skipped == 1 ? "" : "s", sum.skipped == 1 ? "was" : "were");
    for (int i = (int)REMARK_FAULTS; i < REMARK_COUNT; i++)
        if (sum.remarks[i].count > 0)
            print_wrapped("  %" PRId64 " %s (%s%s)", sum.remarks[i].count,
                          remark_sentence((remark)i, sum.remarks[i].count > 1), sum.remarks[i].first,
                          sum.remarks[i].count > 1 ? ", …" : "");
    shard_report_deinit(&sum);
}

/* The number of this process's shards in a split, of their rows and of the stored bytes of these rows. */
static int32_t count_planned(const work *work, int split, int64_t *rows, uint64_t *bytes)
{
    int32_t shards = 0;
    *rows = 0;
    *bytes = 0;
    for (int32_t i = 0; i < work->plan->shard_count; i++) {
        const shard *shard = &work->plan->shards[i];
        if (shard->split != split || (work->options->worker_count > 0 && shard->worker != work->options->worker))
            continue;
        shards++;
        *rows += shard->count;
        *bytes += shard->size_bytes;
    }
    return shards;
}

void report_planned(const work *work, int32_t finished)
{
    const options *options = work->options;
    char text[PROGRESS_TEXT_SIZE];
    for (int i = 0; i < options->split_count; i++) {
        int64_t rows;
        uint64_t bytes;
        int32_t shards = count_planned(work, i, &rows, &bytes);
        if (shards == 0)
            print_wrapped("%-12s no %ss", options->splits[i].name, work->source->row_noun);
        else
            print_wrapped("%-12s %" PRId64 " %s%s, %s as stored, in %d file%s: %s/%s-%s@%d.tfrecord",
                          options->splits[i].name, rows, work->source->row_noun, rows == 1 ? "" : "s",
                          progress_size_text(bytes, text), shards, shards == 1 ? "" : "s", options->out, options->name,
                          options->splits[i].name, work->plan->split_shards[i]);
    }
    if (work->source->class_count > 0) print_wrapped("%-12s %s/labels.txt", "labels", options->out);
    if (finished > 0) print_wrapped("%d of these files %s already finished", finished, finished == 1 ? "is" : "are");
    print_wrapped("nothing was written (--dry-run)");
}

void report_interrupted(const work *work)
{
    const options *options = work->options;
    int32_t files = 0;
    for (int32_t i = 0; i < work->plan->shard_count; i++)
        files += options->worker_count == 0 || work->plan->shards[i].worker == options->worker;
    fprintf(stderr, "tfrecord-make: interrupted at %" PRId64 " of %" PRId64 " %ss; %d of %d files are finished in ",
            work->rows_done, work->row_count, work->source->row_noun, work->finished, files);
    text_print_sentence(stderr, options->out);
    fputs("; run the same command again to resume\n", stderr);
}

static void report_written(const work *work, double seconds)
{
    char text[PROGRESS_TEXT_SIZE], rate[64] = "";
    if (work->reused > 0 && work->written > 0)
        print_wrapped("%" PRId64 " records in files that were already finished", work->reused);
    if (work->written > 0 && seconds > 0) snprintf(rate, sizeof(rate), ", %.0f/s", (double)work->written / seconds);
    print_wrapped("%" PRId64 " %s%s written in %s%s", work->written, work->source->row_noun,
                  work->written == 1 ? "" : "s", progress_time_text(seconds, text), rate);
    fflush(stdout);
}

void report_part(const work *work, double seconds)
{
    const options *options = work->options;
    int32_t shards = 0;
    for (int32_t i = 0; i < work->plan->shard_count; i++) shards += work->plan->shards[i].worker == options->worker;
    report_remarks(work);
    print_wrapped("worker %d of %d: %d of the %d files%s", options->worker, options->worker_count, shards,
                  work->plan->shard_count, shards == 0 ? "; there are more workers than files: increase --shards" : "");
    report_written(work, seconds);
}

void report_made(const work *work, double seconds, int64_t removed, bool joined)
{
    char text[PROGRESS_TEXT_SIZE];
    const options *options = work->options;
    for (int i = 0; i < options->split_count; i++) {
        const shard_report *split = &work->splits[i];
        if (work->plan->split_shards[i] == 0)
            print_wrapped("%-12s no %ss", options->splits[i].name, work->source->row_noun);
        else
            print_wrapped("%-12s %" PRId64 " record%s, %s: %s/%s-%s@%d.tfrecord", options->splits[i].name,
                          split->records, split->records == 1 ? "" : "s", progress_size_text(split->size_bytes, text),
                          options->out, options->name, options->splits[i].name, work->plan->split_shards[i]);
    }
    if (work->source->class_count > 0) print_wrapped("%-12s %s/labels.txt", "labels", options->out);
    report_remarks(work);
    if (removed > 0) print_wrapped("%" PRId64 " file%s of an earlier run removed", removed, removed == 1 ? "" : "s");
    if (joined)
        print_wrapped("%" PRId64 " records in %d files joined%s%s", work->reused, work->plan->shard_count,
                      seconds > 0 ? " after " : "", seconds > 0 ? progress_time_text(seconds, text) : "");
    else
        report_written(work, seconds);
    fflush(stdout);
}
