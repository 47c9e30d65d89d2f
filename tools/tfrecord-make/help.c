/* --help: a short text, and topics with their options from the table. Paragraphs are wrapped to the width of the
 * terminal; lines that start with a space are printed unchanged, except that what follows a tab is wrapped in a
 * column. */
#include "common/progress.h"
#include "common/text.h"
#include "tfrecord-make/make.h"
#include "tfrecord-make/options_table.h"

#include <string.h>
#include <unistd.h>

static constexpr int COLUMNS_MAX = 80;
/* Column of the option descriptions; on narrower terminals they are printed below the option. */
static constexpr int SENTENCE_COLUMN = 24, COLUMNS_BESIDE = 70, SENTENCE_BELOW = 10;
/* Column of the text after a tab. */
static constexpr int DESCRIPTION_COLUMN = 16;

static const char intro[] =
    "tfrecord-make converts images, lists, boxes, tables, arrays and archives to TFRecord files.\n"
    "\n"
    "    tfrecord-make --out records photos\n"
    "\n"
    "    photos/daisy/1.jpg      records/photos-train-00000-of-…\n"
    "    photos/rose/7.png   ->  records/photos-validation-0000…\n"
    "                            records/labels.txt\n"
    "\n"
    "usage: tfrecord-make --out DIR [options] INPUT\n"
    "\n";

/* The most common options. The topics have their complete text. */
static const struct {
    int code;
    const char *help;
} usual[] = {
    {'o', "output directory; created if it does not exist"},
    {OPTION_SPLIT, "default: train=0.9,validation=0.1"},
    {OPTION_SHARDS, "number of files for each split (default: by size, 200M)"},
    {OPTION_SHORTER_SIDE, "shrink larger images"},
    {OPTION_ENCODE, "convert all images to jpeg or png"},
    {OPTION_ON_ERROR, "stop (default) or skip images that cannot be used"},
    {OPTION_DRY_RUN, "print what would be written"},
    {OPTION_SURVEY, "report statistics and faults; write nothing"},
};

static const char outro[] = "\n"
                            "--help TOPIC prints details, --help all prints everything; TOPIC is output, images, "
                            "sources, columns, survey, run, or an option. Exit status: 0 success, 1 failure, 2 "
                            "invalid options.\n";

static const struct {
    const char *name, *before, *after;
} topics[TOPIC_COUNT] = {
    [TOPIC_OUTPUT] =
        {"output", "Output files: records, their indexes, labels.txt.\n",
         "A file gets its final name only when it is complete. Repeat the command to resume a run that was stopped;"
         " files whose input and options are unchanged are kept (DIR/.NAME.journal records how each file was made)."
         " When a run completes, record files of earlier runs with the same NAME that it did not write are removed, for"
         " example those of splits that no longer exist."
         " Record files, labels.txt and label_map.pbtxt that no run of this dataset wrote are never replaced: the run"
         " fails before it writes anything.\n"
         "\n"
         "The keys of a record with an image are\n"
         "\n"
         "    image/encoded      image/format       'jpeg' or 'png'\n"
         "    image/height       image/width        image/channels\n"
         "    image/class/label  image/class/text   image/filename\n"
         "    image/colorspace   'RGB', 'Gray' or 'CMYK'\n"},
    [TOPIC_IMAGES] =
        {"images",
         "JPEG and PNG images are stored unchanged, after each is decoded once as a check, unless an option"
         " changes them. WebP, GIF, BMP and TIFF are recognized by content and need --encode; of several"
         " frames or pages the first is used.\n",
         "Unusual properties of images (a format that differs from the file name, CMYK, 16 bits, animation,"
         " an orientation, …) are reported with a count and an example.\n"
         "\n"
         "Memory for each thread: about twelve encoded images, and one decoded image if images are checked"
         " or changed (at most 100 million pixels).\n"},
    [TOPIC_SOURCES] =
        {"sources",
         "The format of INPUT is detected; --format overrides it.\n"
         "\n"
         "    directory\tone subdirectory for each class\n"
         "    list\t.csv, .tsv, .jsonl: one image in each row; its path, relative to the file or to --images DIR; a"
         " label; more columns, which become features with the same names\n"
         "    regression\tthe same with numeric targets (--target): image/target\n"
         "    table\t.csv, .tsv, .jsonl without a column of paths: each column is a feature\n"
         "    coco\t.json with COCO boxes, with --images DIR: image/object/bbox/{xmin,ymin,xmax,ymax} from 0 to 1,"
         " image/object/class/{label,text}, image/object/{is_crowd,area}, image/source_id, image/key/sha256\n"
         "    voc\ta Pascal VOC directory (Annotations/*.xml, JPEGImages), or a directory with images and .xml: the"
         " same keys, and image/object/{difficult,truncated,view}; the lists in ImageSets/Main are the splits, unless"
         " --split is given\n"
         "    numpy\t.npy, .npz: row i of each array is a feature of record i\n"
         "    tar\t.tar, .tar.gz (webdataset), or a directory of them: members with the same basename are one record;"
         " .jpg and .png: image/…, .cls: image/class/label, the fields of .json: json/NAME, .npy: its elements, others:"
         " their bytes\n",
         "GLOB is matched against the path relative to INPUT: of a file in a class directory, of an image as a list or"
         " COCO names it, of a VOC image or its .xml, or of a tar member; a sample matches if any of its members does."
         " * matches any text and ? any character except a slash, [abc] and [a-z] one of these characters, [!a-z] any"
         " other character; \\ quotes the next character, and ** between slashes matches zero or more directories. A"
         " pattern without a slash matches the name of a file or directory at any depth, a pattern that ends in a slash"
         " only directories; a pattern that matches a directory matches everything in it. --exclude takes precedence"
         " over --include. INPUT is a path; standard input is not read.\n"
         "\n"
         "Memory: up to 160 bytes and the name (a path, or its line) for each row, 64 bytes for each box, 12 bytes for"
         " each keypoint, and one block of records for each thread, regardless of the size of the files. Compressed"
         " archives and arrays in Fortran order are expanded once to an unnamed temporary file in $TMPDIR or"
         " /var/tmp.\n"},
    [TOPIC_COLUMNS] =
        {"columns", "The columns of a list or a table, and the names of features.\n",
         "CSV is UTF-8 as in RFC 4180; CSV and JSON Lines may be gzipped. A column called split names the"
         " split of each row, unless --split is given. Otherwise a hash chooses the split: of the contents"
         " of a table's row, of an image's path, or of an array row's number.\n"},
    [TOPIC_SURVEY] = {"survey",
                      "Statistics and faults of the images. Only the charts are written; --out is not needed.\n",
                      "Input options apply as they do for records.\n"},
    [TOPIC_RUN] = {"run",
                   "Execution. Several machines with access to the same directories can divide the work with"
                   " --worker and --finish; the output is identical to that of one machine. Under mpirun or srun"
                   " neither option is needed: the first process waits for the others and finishes.\n",
                   "SIGINT (Ctrl-C) and SIGTERM stop the run. Finished files are kept; repeat the same command to"
                   " resume.\n"},
};

static void print_text(FILE *file, const char *text, int columns)
{
    for (size_t size; *text; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        const char *tab = memchr(text, '\t', size);
        if (tab) {
            int used = fprintf(file, "%.*s", (int)(tab - text), text);
            fprintf(file, "%*s", DESCRIPTION_COLUMN - used, "");
            text_wrap(file, tab + 1, size - (size_t)(tab + 1 - text), DESCRIPTION_COLUMN, DESCRIPTION_COLUMN, columns);
        } else if (size == 0 || *text == ' ')
            fprintf(file, "%.*s\n", (int)size, text);
        else
            text_wrap(file, text, size, 0, 0, columns);
    }
}

static void print_option(FILE *file, const option_row *row, const char *help, int columns)
{
    char label[128];
    snprintf(label, sizeof(label), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
             row->letter ? ',' : ' ', row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    int used = text_columns(mr_string_from(label));
    int column = columns >= COLUMNS_BESIDE ? SENTENCE_COLUMN : SENTENCE_BELOW;
    fputs(label, file);
    if (used + 2 > column) {
        fputc('\n', file);
        used = 0;
    }
    fprintf(file, "%*s", column - used, "");
    text_wrap(file, help, strlen(help), column, column, columns);
}

static void print_topic(FILE *file, int topic, int columns)
{
    print_text(file, topics[topic].before, columns);
    fputc('\n', file);
    for (int i = 0; i < OPTION_ROW_COUNT; i++)
        if ((int)option_rows[i].topic == topic) print_option(file, &option_rows[i], option_rows[i].help, columns);
    fputc('\n', file);
    print_text(file, topics[topic].after, columns);
}

static void print_short(FILE *file, int columns)
{
    print_text(file, intro, columns);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        for (int j = 0; j < OPTION_ROW_COUNT; j++)
            if (option_rows[j].code == usual[i].code) print_option(file, &option_rows[j], usual[i].help, columns);
    print_text(file, outro, columns);
}

bool help_print(FILE *file, const char *topic)
{
    int columns = progress_columns(file == stdout ? STDOUT_FILENO : STDERR_FILENO, COLUMNS_MAX);
    if (columns > COLUMNS_MAX) columns = COLUMNS_MAX;
    if (!topic) return print_short(file, columns), true;
    topic += strspn(topic, "-");
    bool all = strcmp(topic, "all") == 0, found = false;
    for (int i = 0; i < TOPIC_COUNT; i++) {
        if (!all && strcmp(topics[i].name, topic) != 0) continue;
        if (found) fputc('\n', file);
        found = true;
        if (all) fprintf(file, "%s\n\n", topics[i].name);
        print_topic(file, i, columns);
    }
    for (int i = 0; i < OPTION_ROW_COUNT && !found; i++)
        if (strcmp(option_rows[i].name, topic) == 0) {
            print_option(file, &option_rows[i], option_rows[i].help, columns);
            found = true;
        }
    return found;
}
