/* --help: a short text, and topics, whose options come from the table. Paragraphs are wrapped to the width of the terminal; lines
 * that begin with a space stay as they are. */
#include "tools/common/progress.h"
#include "tools/tfrecord-make/make.h"
#include "tools/tfrecord-make/options_table.h"

#include <string.h>
#include <unistd.h>

static constexpr int COLUMNS_MAX = 80;
/* Where the sentences about options begin; on narrower terminals, below their option. */
static constexpr int SENTENCE_COLUMN = 24, COLUMNS_BESIDE = 70, SENTENCE_BELOW = 10;

static const char intro[] =
    "tfrecord-make turns images, lists, boxes, tables, arrays and archives into TFRecord files.\n"
    "\n"
    "    tfrecord-make --out records photos\n"
    "\n"
    "    photos/daisy/1.jpg      records/photos-train-00000-of-…\n"
    "    photos/rose/7.png   ->  records/photos-validation-0000…\n"
    "                            records/labels.txt\n"
    "\n"
    "usage: tfrecord-make --out DIR [options] INPUT\n"
    "\n";

/* The options that most people need; their complete text is in the topics. */
static const struct {
    int code;
    const char *help;
} usual[] = {
    {'o', "directory of the files; created if it does not exist"},
    {OPTION_SPLIT, "default: train=0.9,validation=0.1"},
    {OPTION_SHARDS, "files of each split (default: by size, 200M)"},
    {OPTION_SHORTER_SIDE, "shrink larger images"},
    {OPTION_ENCODE, "jpeg or png: convert all images"},
    {OPTION_ON_ERROR, "skip: leave out images that cannot be used"},
    {OPTION_DRY_RUN, "print what would be written"},
    {OPTION_SURVEY, "report what the images are like; write nothing"},
};

static const char outro[] = "\n"
                            "--help TOPIC says more, --help all everything; TOPIC is output, images, sources, columns, "
                            "survey, run, or an option. Exit status: 0 success, 1 failure, 2 wrong options.\n";

static const struct {
    const char *name, *before, *after;
} topics[TOPIC_COUNT] = {
    [TOPIC_OUTPUT] =
        {"output", "The files that are written: records, their indexes, labels.txt.\n",
         "A file has its final name only when it is complete. A run that was stopped continues where it was;"
         " a run that is repeated does only what has changed (DIR/.NAME.journal records what was made from"
         " what). Record files, labels.txt and label_map.pbtxt that no run of this dataset wrote are never replaced: "
         "the"
         " run is refused before it writes.\n"
         "\n"
         "The keys of a record with an image are\n"
         "\n"
         "    image/encoded      image/format       'jpeg' or 'png'\n"
         "    image/height       image/width        image/channels\n"
         "    image/class/label  image/class/text   image/filename\n"
         "    image/colorspace   'RGB', 'Gray' or 'CMYK'\n"},
    [TOPIC_IMAGES] = {"images",
                      "JPEG and PNG images go into their records byte by byte, after each was decoded once as a check,"
                      " unless they are to be changed. WebP, GIF, BMP and TIFF are recognised by content and need"
                      " --encode; of several frames or pages the first is taken.\n",
                      "What is odd about an image (another format than its name says, CMYK, 16 bits, animation, an"
                      " orientation, …) is reported with a count and an example.\n"
                      "\n"
                      "Memory: about twelve images as they are stored for each thread, and one decoded where it is"
                      " checked or changed (at most 100 million pixels).\n"},
    [TOPIC_SOURCES] =
        {"sources",
         "INPUT is recognised by what it is; --format chooses where that is not enough.\n"
         "\n"
         "    directory      a directory for each class\n"
         "    list        .csv, .tsv, .jsonl: one image in each row, its path beside\n"
         "                the file or in --images DIR; a label; more columns, which\n"
         "                become features of their names\n"
         "    regression  the same with numbers to learn (--target): image/target\n"
         "    table       .csv, .tsv, .jsonl without a column of paths: each column\n"
         "                is a feature\n"
         "    coco        .json of COCO's boxes, with --images DIR:\n"
         "                image/object/bbox/{xmin,ymin,xmax,ymax} from 0 to 1,\n"
         "                image/object/class/{label,text},\n"
         "                image/object/{is_crowd,area}, image/source_id,\n"
         "                image/key/sha256\n"
         "    voc         a directory of Pascal VOC (Annotations/*.xml, JPEGImages),\n"
         "                or one of images and .xml together: the same keys, and\n"
         "                image/object/{difficult,truncated,view}; the lists in\n"
         "                ImageSets/Main are the splits, unless --split is given\n"
         "    numpy       .npy, .npz: row i of each array is a feature of record i\n"
         "    tar         .tar, .tar.gz (webdataset), or a directory of them:\n"
         "                members of one basename are one record; .jpg and .png:\n"
         "                image/…, .cls: image/class/label, the fields of .json:\n"
         "                json/NAME, .npy: its elements, others: their bytes\n",
         "GLOB is matched against the path below INPUT: of a file in a class directory, of an image as a list or COCO"
         " names it, of a VOC image or its .xml, of a member of a tar, where a sample follows any of its members."
         " * is any text and ? any character but a slash, [abc], [a-z] one of these and [!a-z] another one, \\ takes "
         "the"
         " next character as it is, and ** between slashes is any number of directories, also none. A pattern without"
         " a slash matches the name of a file or of a directory anywhere, one with a slash at its end directories"
         " alone; what matches a directory matches all that is in it. --exclude wins over --include. INPUT is a path;"
         " standard input is not read.\n"
         "\n"
         "Memory: up to 160 bytes and the name for each row (a path, or its line), 64 bytes for each box and 12 for "
         "each"
         " keypoint, one block of records for each thread; it does not grow with what is in the files. Compressed "
         "archives"
         " and arrays in Fortran's order are expanded once into a nameless file in $TMPDIR or /var/tmp.\n"},
    [TOPIC_COLUMNS] = {"columns", "The columns of a list or a table, and the names of features.\n",
                       "CSV is UTF-8 as RFC 4180 has it; it and JSON Lines may be gzipped. A column that is called"
                       " split names the split of each row, unless --split is given. Else the split of a table's row"
                       " follows from what is in it, that of an image from its path, that of an array's row from its"
                       " number.\n"},
    [TOPIC_SURVEY] = {"survey", "Looks at the images; nothing is written but the charts, and --out is not needed.\n",
                      "Options about the input apply as they do for records.\n"},
    [TOPIC_RUN] = {"run",
                   "How the work is done. Several machines that see the same directories share it with --worker and"
                   " --finish; the bytes are those of one machine. Under mpirun or srun neither is needed: the first"
                   " process waits for the others and finishes.\n",
                   "SIGINT (Ctrl-C) and SIGTERM stop the run; finished files stay, and the same command continues.\n"},
};

static int columns_of(const char *text, size_t size)
{
    int columns = 0;
    for (size_t i = 0; i < size; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* Prints words from column `at` on; lines that follow begin at `indent`. */
static void wrap(FILE *file, const char *text, size_t size, int at, int indent, int columns)
{
    bool is_first = true;
    for (size_t i = 0; i < size;) {
        size_t length = strcspn(text + i, " \n");
        if (length > size - i) length = size - i;
        int width = columns_of(text + i, length);
        if (!is_first && at + 1 + width > columns) {
            fprintf(file, "\n%*s", indent, "");
            at = indent;
            is_first = true;
        }
        if (!is_first) at += fprintf(file, " ");
        fwrite(text + i, 1, length, file);
        at += width;
        is_first = false;
        i += length;
        while (i < size && (text[i] == ' ' || text[i] == '\n')) i++;
    }
    fputc('\n', file);
}

static void print_text(FILE *file, const char *text, int columns)
{
    for (size_t size; *text; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        if (size == 0 || *text == ' ')
            fprintf(file, "%.*s\n", (int)size, text);
        else
            wrap(file, text, size, 0, 0, columns);
    }
}

static void print_option(FILE *file, const option_row *row, const char *help, int columns)
{
    char label[128];
    snprintf(label, sizeof(label), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
             row->letter ? ',' : ' ', row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    int used = columns_of(label, strlen(label));
    int column = columns >= COLUMNS_BESIDE ? SENTENCE_COLUMN : SENTENCE_BELOW;
    fputs(label, file);
    if (used + 2 > column) {
        fputc('\n', file);
        used = 0;
    }
    fprintf(file, "%*s", column - used, "");
    wrap(file, help, strlen(help), column, column, columns);
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
