/* A source: one form of input as rows, each of which becomes a record.
 *
 * ```c
 * source source = {0};
 * MR_TRY(source_open(options, &source, error));
 * for (int64_t i = 0; i < source.row_count; i++) {
 *     MR_TRY(source_image(&source, &source.rows[i], &bytes, &has_image, error));
 *     …treat the image, fill facts…
 *     MR_TRY(source_add_features(&source, &source.rows[i], has_image ? &facts : nullptr, &encoder, error));
 *     MR_TRY(mr_example_finish(&encoder, &record, error));
 * }
 * source_deinit(&source);
 * ```
 *
 * Opening lists all rows and reads nothing that can be read later. A row is a few words and its name, in memory for the
 * whole run: 64 bytes and the name's own. What else belongs to it (pixels, columns, array elements) is read
 * again from the input, at the row's place, when its record is made; so memory follows the number of rows (for detection
 * also that of boxes), never the size of what is in them.
 *
 * To add a form: source_NAME.c with `open` that fills the source through source_add_row, source_add_class and
 * source_leave_out, and a row in the table of source.c. */
#ifndef MR_TOOLS_TFRECORD_MAKE_SOURCE_H
#define MR_TOOLS_TFRECORD_MAKE_SOURCE_H

#include "base/arena.h"

#include <millrace/example.h>
#include <millrace/image.h>

struct options;

/* ---- options_input.c: the part of the command line that is about the input ---- */

typedef enum input_format {
    FORMAT_AUTO = 0,
    FORMAT_DIRECTORY,
    FORMAT_LIST,       /* CSV or JSON Lines: an image's path a row, with a label or targets and more columns */
    FORMAT_REGRESSION, /* the same, with targets */
    FORMAT_TABLE,      /* CSV or JSON Lines: columns alone */
    FORMAT_COCO,
    FORMAT_VOC,
    FORMAT_NUMPY,
    FORMAT_TAR
} input_format;

/* What an input was found to be: the options that apply differ. */
typedef enum input_kind {
    INPUT_DIRECTORY = 1 << 0, /* class directories */
    INPUT_LIST_CSV = 1 << 1,
    INPUT_LIST_JSON = 1 << 2,
    INPUT_TABLE_CSV = 1 << 3,
    INPUT_TABLE_JSON = 1 << 4,
    INPUT_COCO = 1 << 5,
    INPUT_VOC = 1 << 6,
    INPUT_NUMPY = 1 << 7,
    INPUT_TAR = 1 << 8,
    INPUT_LISTS = INPUT_LIST_CSV | INPUT_LIST_JSON,
    INPUT_TABLES = INPUT_TABLE_CSV | INPUT_TABLE_JSON,
    INPUT_CSV = INPUT_LIST_CSV | INPUT_TABLE_CSV,
    INPUT_CLASSES = INPUT_DIRECTORY | INPUT_LISTS | INPUT_COCO | INPUT_VOC | INPUT_TAR,
    INPUT_ANY = (1 << 9) - 1
} input_kind;

typedef struct key_change {
    const char *from, *to; /* borrowed from the command line; to is "" for a feature that is left out */
    size_t from_size;
} key_change;

/* Texts are borrowed from the command line; null where the option is not given. */
typedef struct source_options {
    input_format format;
    const char *images, *labels;
    const char *columns, *path_column, *label_column, *targets; /* names, with commas between */
    const char *split_column;
    const char *types, *missing;
    const char *image, *raw; /* names of arrays */
    char separator;          /* 0: comma, or tab for .tsv */
    key_change *keys;        /* owned */
    int key_count;
    uint64_t skip_rows;    /* of CSV, before the header or the first row of values */
    bool keypoints, masks; /* of COCO */
    bool append_labels;    /* classes that --labels does not have get numbers after its last */
} source_options;

/* What --help TOPIC prints. */
typedef enum option_topic {
    TOPIC_OUTPUT = 0,
    TOPIC_IMAGES,
    TOPIC_SOURCES,
    TOPIC_COLUMNS,
    TOPIC_SURVEY,
    TOPIC_RUN,
    TOPIC_COUNT
} option_topic;

/* What getopt_long returns for options without a letter. */
enum {
    OPTION_SPLIT = 256,
    OPTION_STRATIFY,
    OPTION_GROUP_BY,
    OPTION_SHARDS,
    OPTION_SHARD_SIZE,
    OPTION_COMPRESS,
    OPTION_NO_CHECK,
    OPTION_SHORTER_SIDE,
    OPTION_UPRIGHT,
    OPTION_ENCODE,
    OPTION_QUALITY,
    OPTION_CROP_READY,
    OPTION_DUPLICATES,
    OPTION_INCLUDE,
    OPTION_EXCLUDE,
    OPTION_SURVEY,
    OPTION_SVG,
    OPTION_CROP,
    OPTION_DRY_RUN,
    OPTION_JSON,
    OPTION_ON_ERROR,
    OPTION_WORKER,
    OPTION_FINISH,
    OPTION_WAIT,
};

/* For those about the input. */
enum {
    SOURCE_OPTION = 1000,
    OPTION_FORMAT = SOURCE_OPTION,
    OPTION_IMAGES,
    OPTION_LABELS,
    OPTION_APPEND_LABELS,
    OPTION_COLUMNS,
    OPTION_SKIP_ROWS,
    OPTION_PATH_COLUMN,
    OPTION_LABEL_COLUMN,
    OPTION_SPLIT_COLUMN,
    OPTION_TARGET,
    OPTION_TYPES,
    OPTION_MISSING,
    OPTION_SEPARATOR,
    OPTION_IMAGE,
    OPTION_RAW,
    OPTION_KEY,
    OPTION_KEYPOINTS,
    OPTION_MASKS
};
/* Takes one of them. False: *reason is a sentence for the person. */
bool source_option(int option, char *value, source_options *options, const char **reason);
void source_options_deinit(source_options *options);

/* ---- Rows ---- */

/* What becomes a record. */
typedef struct row {
    const char *name;    /* borrowed from the source; a path, "list.csv:12", …: unique unless the input says it twice */
    uint64_t hash;       /* of the name: split and order follow from it and the seed alone */
    uint64_t facts_hash; /* of all else that its record follows from, but the bytes of its file */
    uint64_t size_bytes; /* about what its record will take */
    int64_t modified_ns; /* of the file that it comes from */
    uint64_t place;      /* the source's own: an offset, an index */
    uint32_t detail;     /* the source's own */
    int32_t label;       /* index of source.classes; -1: none */
    int8_t split;        /* 1…: of source.splits, which the input itself names; 0: by hash */
    bool is_included, is_excluded; /* a path of it matches --include, or --exclude */
    bool is_faulty; /* the input's own text about it cannot be used; reading its image gives the reason */
} row;

/* Bytes that grow and are kept between rows: one for each thread. {0} is empty; free(data). */
typedef struct source_bytes {
    char *data;
    size_t size_bytes, capacity_bytes;
} source_bytes;
/* Room for size_bytes, whose old content is lost. */
mr_status source_bytes_reserve(source_bytes *bytes, size_t size_bytes, mr_error *error);

/* An image as it goes into the record: after treatment. */
typedef struct image_facts {
    mr_string encoded;                   /* borrowed */
    mr_image_info info;                  /* of encoded */
    int32_t stored_width, stored_height; /* as the input had it, before it was turned or resized */
    int32_t turned;                      /* the EXIF orientation that was applied, 1…8; 0 and 1: none */
    uint32_t *remarks;                   /* borrowed: where add_features adds REMARK_BIT; or null */
} image_facts;

/* Distinct texts with numbers in the order of their coming. {0} is empty. */
typedef struct names {
    char **texts; /* owned; their bytes are in the arena */
    uint32_t *slots;
    uint32_t count, slot_count;
    mr_arena arena;
} names;
/* The number of a text, which is added when it is new. */
mr_status names_add(names *names, mr_string text, uint32_t *number, mr_error *error);
/* -1: not there */
int64_t names_find(const names *names, mr_string text);
void names_deinit(names *names);

/* Where a row's features go: the encoder, under the names that --key gives them. */
typedef struct features {
    mr_example_encoder *encoder;
    const source_options *options;
    const names *declared; /* of source_declare */
} features;
void put_bytes(const features *to, const char *key, mr_string value);
void put_int64(const features *to, const char *key, int64_t value);
void put_float(const features *to, const char *key, float value);
void put_bytes_list(const features *to, const char *key, const mr_string *values, size_t count);
void put_int64_list(const features *to, const char *key, const int64_t *values, size_t count);
void put_float_list(const features *to, const char *key, const float *values, size_t count);

typedef struct source source;

/* How rows are read. All are safe from any thread; they write nothing to the source. */
typedef struct source_functions {
    /* The bytes of the row's image. Null in a source without images; leaves *has_image false for a row that has
     * none. errors: what is wrong with this row; the caller may leave it out and go on */
    mr_status (*image)(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
    /* Bytes that are equal for equal images and cheaper than they; null: the image itself. */
    mr_status (*content)(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
    /* The row's own features. facts: null for a row without an image; the image's keys are there already. */
    mr_status (*add_features)(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error);
    /* The directory or archive that a row's name is in, for messages; null: source->directory. */
    const char *(*directory)(const source *source, const row *row);
    void (*deinit)(source *source); /* of detail; may be null */
} source_functions;

static constexpr int SOURCE_NOTES_MAX = 16;
/* Patterns of --include, and of --exclude. */
static constexpr int GLOBS_MAX = 64;
static constexpr int SOURCE_REMARKS_MAX = 16 + GLOBS_MAX;
/* Parts: train, validation, … */
static constexpr int SPLITS_MAX = 8;
static constexpr size_t SPLIT_NAME_BYTES = 64;

struct source {
    const source_functions *functions;
    const struct options *options; /* borrowed */
    const char *input;             /* borrowed: the file or directory that was given */
    const source_options *in;      /* borrowed: options->in */
    input_format format;           /* as recognised */
    input_kind kind;
    row *rows; /* owned; in the order of the input, which for directories is that of sorted names */
    int64_t row_count;
    bool *excluded; /* owned; of each row, whether --include and --exclude leave it out. Null: none */
    int64_t excluded_count;
    bool include_used[GLOBS_MAX], exclude_used[GLOBS_MAX]; /* patterns that match something */
    uint64_t size_bytes;                                   /* of all rows that are not left out */
    const char *row_noun;                                  /* "image", "row", "sample": what a row is to a person */
    char **classes; /* the index is the label; a null where a number stands for no class. Borrowed from the arena */
    int32_t class_count; /* 0: no names of labels, and no labels.txt */
    bool has_images;
    bool sizes_hold_more; /* rows' sizes are not those of their images alone */
    bool has_boxes;       /* detection: labels begin with 1, and label_map.pbtxt is written too */
    uint64_t facts_hash;  /* of options and input that all records follow from */
    /* What is not used, as "12 files left out, no images by name: notes.txt, …" */
    struct {
        int64_t count;
        const char *what;  /* static: "files left out, no images by name" */
        const char *first; /* one of them; from the arena */
    } notes[SOURCE_NOTES_MAX];
    int note_count;
    const char *remarks[SOURCE_REMARKS_MAX]; /* sentences about the input; from the arena */
    int remark_count;
    names features;                            /* that a record may have, before --key renames them */
    char splits[SPLITS_MAX][SPLIT_NAME_BYTES]; /* that the input names */
    int split_count;
    const char *directory; /* borrowed; where the files that rows are named after lie; null: names stand alone */
    bool names_are_places; /* names are "line 12" and the like, in the input */
    mr_arena arena;
    char *text; /* where names are packed: in the arena */
    size_t text_room;
    void *detail; /* the source's own; functions->deinit frees what the arena does not hold */
};

/* Recognises what options->input is (or takes the form that options->format asks for), and lists its rows. Where the input
 * names the part of each row, these parts become options->splits, unless --split is given.
 * errors  naming file, place and reason; a source without rows is an error, and so is an option without effect. The source
 *         wants deinit in any case. */
mr_status source_open(struct options *options, source *source, mr_error *error);
void source_deinit(source *source);

/* Whether --include and --exclude leave a row out. */
static inline bool source_is_excluded(const source *source, int64_t row)
{
    return source->excluded && source->excluded[row];
}

/* See source_functions. Errors begin with the row's file. */
mr_status source_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
/* What two rows with the same image have in common: see source_functions. */
mr_status source_content(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
/* Adds image/encoded, image/format, image/height, … from the facts, and all of the row's own features. */
mr_status source_add_features(const source *source, const row *row, const image_facts *facts,
                              mr_example_encoder *encoder, mr_error *error);

/* Puts the row's file, as a person knows it, before the message. */
mr_status source_fail_row(const source *source, const row *row, mr_status status, mr_error *error);

/* ---- For the sources ---- */

/* Says what the input is, and refuses options that have no effect on it. */
mr_status source_set_kind(source *source, input_kind kind, mr_error *error);
/* Names a feature that records may have; only these are put. */
mr_status source_declare(source *source, const char *key, mr_error *error);
/* The number of a part that the input names, for row.split; 0 when it cannot be the name of a part.
 * errors  more than SPLITS_MAX */
mr_status source_find_split(source *source, mr_string name, int8_t *split, mr_error *error);
/* Whether the parts that the input names are used: --split is not given. */
bool source_takes_splits(const source *source);
bool source_is_split_name(mr_string name);
/* Keeps a sentence that is printed with the summary of the input; more than SOURCE_REMARKS_MAX are dropped. */
[[gnu::format(printf, 3, 4)]] mr_status source_remark(source *source, mr_error *error, const char *format, ...);

/* Appends a row; its name is copied, and hashed unless the row has a hash. */
mr_status source_add_row(source *source, const row *row, mr_error *error);
/* Appends a class; its name is copied. */
mr_status source_add_class(source *source, const char *name, mr_error *error);
/* Counts something that is not used. what: static; "of one|of many" where the two differ */
mr_status source_note(source *source, const char *what, const char *example, mr_error *error);
/* Counts a path that leads out of the directory; paths are used as they are, but that is worth a word. */
mr_status source_note_path(source *source, const char *path, mr_error *error);
/* A copy that lives as long as the source, without padding. Null when there is no memory. */
char *source_keep(source *source, const char *text, size_t size_bytes);
/* Reads directory/name, a whole file of at most a GiB: `image` of the sources whose rows are named after files. */
mr_status source_read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image,
                            mr_error *error);
/* Whether a name ends in one of some endings with blanks between, in any case, and has more before it. */
bool source_has_ending(const char *name, const char *endings);
#define SOURCE_TAR_ENDINGS ".tar .tar.gz .tgz"
/* .jpg, .jpeg, .jpe, .jfif, .png, .webp, .gif, .bmp, .dib, .tif, .tiff, in any case. */
bool source_is_image_name(const char *name);

/* Makes names the classes of the source, from label `first` on: in the order of the file of --labels, which must have all
 * of them (those that it lacks come after its last with --append-labels), or sorted by bytes; labels[number of the name]
 * becomes its label. Names that are all whole numbers stay those numbers, without classes (unless --labels names them).
 * labels  owned by the caller: free() */
mr_status source_set_classes(source *source, const names *names, int32_t first, int32_t **labels, mr_error *error);

/* The forms; each fills a source whose options are set. */
mr_status source_directory_open(source *source, mr_error *error);
mr_status source_list_open(source *source, mr_error *error);
mr_status source_table_open(source *source, mr_error *error);
mr_status source_coco_open(source *source, mr_error *error);
mr_status source_voc_open(source *source, mr_error *error);
mr_status source_numpy_open(source *source, mr_error *error);
mr_status source_tar_open(source *source, mr_error *error);

#endif
