/* --about: prints the metadata of tensorflow_datasets directories: splits, features and their meaning. */
#include "common/progress.h"
#include "tfrecord-cat/cat.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static constexpr int LABELS_SHOWN = 12;

/* Prints the first line of a text, cut to the width. */
static void print_line(const char *title, const char *text, int columns)
{
    if (!text) return;
    text += strspn(text, " \n");
    printf("%s", title);
    (void)text_print(stdout, (mr_string){text, strcspn(text, "\n")}, columns - (int)strlen(title));
    putchar('\n');
}

static void print_labels(const tfds_feature *feature, int columns)
{
    int left = columns - 4;
    if (feature->label_count == 0) return;
    fputs("    ", stdout);
    for (size_t i = 0; i < feature->label_count; i++) {
        mr_string label = mr_string_from(feature->labels[i]);
        int needed = text_columns(label) + 2;
        if (i == (size_t)LABELS_SHOWN || (needed > left - 2 && i > 0)) {
            fputs("…", stdout);
            break;
        }
        left -= text_print(stdout, label, left - 2);
        if (i + 1 < feature->label_count) left -= printf(", ");
    }
    putchar('\n');
}

static void print_features(const tfds *tfds, int columns)
{
    int name_columns = 7, most = columns / 2 - 2;
    for (size_t i = 0; i < tfds->feature_count; i++) {
        int used = text_columns(mr_string_from(tfds->features[i].name));
        if (used > name_columns) name_columns = used < most ? used : most;
    }
    puts("features:");
    for (size_t i = 0; i < tfds->feature_count; i++) {
        const tfds_feature *feature = &tfds->features[i];
        int used = printf("  ") + text_print(stdout, mr_string_from(feature->name), name_columns);
        printf("%*s  ", name_columns + 2 - used, "");
        (void)text_print(stdout, mr_string_from(feature->meaning), columns - name_columns - 4);
        putchar('\n');
        print_labels(feature, columns);
    }
}

static void print_splits(const tfds *tfds)
{
    char size[PROGRESS_TEXT_SIZE];
    if (tfds->split_count > 0) puts("splits:");
    for (size_t i = 0; i < tfds->split_count; i++) {
        const tfds_split *split = &tfds->splits[i];
        fputs("  ", stdout);
        (void)text_print(stdout, mr_string_from(split->name), 30);
        printf(": %" PRIu64 " record%s in %zu file%s", split->records, split->records == 1 ? "" : "s",
               split->shard_count, split->shard_count == 1 ? "" : "s");
        printf(split->size_bytes ? ", %s\n" : "\n", progress_size_text(split->size_bytes, size));
    }
}

int about_run(const options *options)
{
    int columns = progress_columns(STDOUT_FILENO, 100);
    for (size_t i = 0; i < options->tfds.count; i++) {
        const tfds *tfds = options->tfds.items[i];
        if (i > 0) putchar('\n');
        print_line("", *tfds->directory ? tfds->directory : ".", columns);
        print_line("dataset: ", tfds->title, columns);
        print_line("about:   ", tfds->description, columns);
        print_line("license: ", tfds->license, columns);
        print_splits(tfds);
        print_features(tfds, columns);
    }
    if (options->tfds.count > 0) return 0;
    mr_error error = {0};
    (void)mr_fail(&error, MR_NOT_FOUND, "no features.json in the directories of these files");
    return print_error(&error);
}
