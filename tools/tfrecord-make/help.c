/* --help. The text is written as it looks on a wide terminal, and laid out anew for the one that there is: paragraphs and the
 * sentences beside options are wrapped, examples (four blanks) stay as they are. */
#include "tools/common/progress.h"
#include "tools/tfrecord-make/make.h"

#include <string.h>
#include <unistd.h>

static constexpr int COLUMNS_MAX = 100;
/* On narrower terminals sentences stand under their options. */
static constexpr int COLUMNS_BESIDE = 70, INDENT_UNDER = 10;

static const char help[] =
    "tfrecord-make turns pictures, lists, boxes, tables, arrays and archives into TFRecord files.\n"
    "\n"
    "    tfrecord-make --out records photos\n"
    "    tfrecord-make --out records --shorter-side 512 photos\n"
    "\n"
    "    photos/daisy/1.jpg      records/photos-train-00000-of-…\n"
    "    photos/rose/7.png   ->  records/photos-validation-0000…\n"
    "                            records/labels.txt\n"
    "\n"
    "usage: tfrecord-make --out DIR [options] INPUT\n"
    "\n"
    "  -o, --out DIR            where the files go; made when it is not there\n"
    "  -n, --name NAME          how file names begin (default: the name of INPUT)\n"
    "      --split NAME=PART,…  parts that add up to 1 (default: train=0.9,validation=0.1). Which part a picture goes "
    "to follows\n"
    "                           from its path alone, and stays when others are added\n"
    "      --shards N           files for each part\n"
    "      --shard-size SIZE    or: as few files as keep each within this size (default: 200M, which gives 100M to "
    "200M)\n"
    "  -s, --shuffle-seed S     the order in the files (default: 0)\n"
    "  -j, --jobs N             threads (default: one for each processor); the bytes are the same for any number\n"
    "      --compress HOW       gzip, zlib, or seekable: gzip that is also read by number and by many threads\n"
    "      --on-error stop      the first picture that cannot be used ends the run (default)\n"
    "      --on-error skip      such pictures are listed, counted by reason and left out\n"
    "  -h, --help               this text\n"
    "\n"
    "Pictures (.jpg, .jpeg, .png) go into their records byte by byte, after each was decoded once as a check, unless "
    "they are\n"
    "to be changed:\n"
    "\n"
    "      --no-check           read only their headers\n"
    "      --shorter-side N     make larger ones smaller, so that the shorter side has N pixels\n"
    "      --upright            turn them as their EXIF orientation says, without loss where that can be\n"
    "      --quality Q          of JPEGs that are encoded anew, 1 to 100 (default: 90); alone it means all JPEGs\n"
    "      --encode FORMAT      jpeg or png: make all of them so (transparent ones stay PNG)\n"
    "      --crop-ready         rewrite JPEGs without loss so that random crops of them are cheap to decode\n"
    "      --duplicates HOW     pictures that are there twice, by content. keep: tell of them (default); drop: leave "
    "copies out;\n"
    "                           stop: any is an error; ignore: do not look\n"
    "\n"
    "What is odd about a picture (another format than its name says, CMYK, 16 bits, animation, an orientation, …) is "
    "told with\n"
    "a count and an example. The keys of a record are\n"
    "\n"
    "    image/encoded      image/format       'jpeg' or 'png'\n"
    "    image/height       image/width        image/channels\n"
    "    image/class/label  image/class/text   image/filename\n"
    "    image/colorspace   'RGB', 'Gray' or 'CMYK'\n"
    "\n"
    "A file has its final name only when it is whole. A run that was killed goes on where it was; a run that is "
    "repeated does\n"
    "only what has changed (DIR/.NAME.journal remembers what was made of what).\n"
    "\n"
    "To look before anything is made; nothing is written but the charts, and --out is not needed:\n"
    "\n"
    "      --survey             sizes, proportions, formats, colours, faults, copies, classes, and the resize that "
    "pays\n"
    "      --svg FILE           all of it as charts too\n"
    "      --crop N             the crop, in pixels, that is to be trained with (default: 224)\n"
    "\n"
    "Several machines that see the same folders share the work; the bytes are those of one machine:\n"
    "\n"
    "      --worker I/N         make the I-th of N parts, I from 1 to N\n"
    "      --finish             when all have finished: check that nothing is missing, write labels.txt\n"
    "      --wait SECONDS       under mpirun or srun neither of these is needed: the first process waits for the "
    "others and\n"
    "                           finishes, and gives one up that shows no life for so long (default: 120)\n";

static const char tail[] =
    "\n"
    "Memory for pictures: about twelve of them as they are stored for each thread, and one decoded where it is checked "
    "or\n"
    "changed (at most 100 million pixels).\n"
    "\n"
    "Exit status: 0 done, 1 something failed, 2 the options are wrong.\n";

static int columns_of(const char *text, size_t size)
{
    int columns = 0;
    for (size_t i = 0; i < size; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* Where text is being written: wrapped at columns, new lines begin at indent. */
typedef struct layout {
    FILE *file;
    int columns, at, indent;
} layout;

static void put_words(layout *layout, const char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        i += strspn(text + i, " ");
        size_t length = strcspn(text + i, " \n");
        if (i >= size || length == 0) break;
        int width = columns_of(text + i, length);
        bool is_first = layout->at <= layout->indent;
        if (!is_first && layout->at + 1 + width > layout->columns) {
            fprintf(layout->file, "\n%*s", layout->indent, "");
            layout->at = layout->indent;
            is_first = true;
        }
        if (!is_first) layout->at += fprintf(layout->file, " ");
        fwrite(text + i, 1, length, layout->file);
        layout->at += width;
        i += length;
    }
}

/* "  -o, --out DIR   where": how long the part before the sentence is; 0: no such line. */
static size_t label_size(const char *line, size_t size)
{
    size_t blanks = strspn(line, " ");
    if (blanks != 2 && (blanks != 6 || line[6] != '-')) return 0;
    const char *gap = memmem(line + blanks, size - blanks, "  ", 2);
    return gap ? (size_t)(gap - line) : 0;
}

/* Prints the label and makes room for its sentence; returns how the lines are indented that go on with it. */
static size_t put_label(layout *layout, const char *line, size_t size)
{
    size_t text = size + strspn(line + size, " ");
    int sentence = columns_of(line, text);
    fwrite(line, 1, size, layout->file);
    layout->indent = layout->columns >= COLUMNS_BESIDE ? sentence : INDENT_UNDER;
    layout->at = columns_of(line, size);
    if (layout->at + 2 > layout->indent) {
        fputc('\n', layout->file);
        layout->at = 0;
    }
    fprintf(layout->file, "%*s", layout->indent - layout->at, "");
    layout->at = layout->indent;
    return (size_t)sentence;
}

static void put_text(FILE *file, const char *text, int columns)
{
    layout layout = {.file = file, .columns = columns};
    size_t hanging = 0; /* blanks before a line that goes on with an option's sentence */
    while (*text) {
        size_t size = strcspn(text, "\n"), blanks = strspn(text, " "), label = label_size(text, size);
        bool goes_on = size > 0 && layout.at > 0 && (hanging > 0 ? blanks >= hanging : blanks == 0);
        if (!goes_on && layout.at > 0) {
            fputc('\n', file);
            layout.at = layout.indent = 0;
        }
        if (goes_on) {
            put_words(&layout, text, size);
        } else if (label > 0) {
            hanging = put_label(&layout, text, label);
            put_words(&layout, text + label, size - label);
        } else if (blanks >= 4 || size == 0) {
            fprintf(file, "%.*s\n", (int)size, text);
            hanging = 0;
        } else {
            hanging = 0;
            put_words(&layout, text, size);
        }
        text += size;
        if (*text) text++;
    }
    if (layout.at > 0) fputc('\n', file);
}

void help_print(FILE *file)
{
    int columns = progress_columns(fileno(file), COLUMNS_MAX);
    if (columns > COLUMNS_MAX) columns = COLUMNS_MAX;
    put_text(file, help, columns);
    put_text(file, source_help, columns);
    put_text(file, tail, columns);
}
