/* A source: one form of input as rows, each of which is written as one record.
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
 * Opening a source lists all rows and reads nothing that can be read later. A row stays in memory for the complete run:
 * 64 bytes and its name. Its other data (pixels, columns, array elements) is read again from the input, at the row's
 * position, when its record is written. So memory grows with the number of rows (for detection also of boxes), not with
 * the size of their contents.
 *
 * To add a form: write source_NAME.c with an `open` that fills the source through source_add_row, source_add_class and
 * source_note, and add it to the table in source_open.c. */
#ifndef MR_TOOLS_TFRECORD_MAKE_SOURCE_H
#define MR_TOOLS_TFRECORD_MAKE_SOURCE_H

#include "common/arena.h"

#include <millrace/example.h>
#include <millrace/image.h>

struct options;

/* ---- options_input.c: the options that concern the input ---- */

typedef enum input_format {
    FORMAT_AUTO = 0,
    FORMAT_DIRECTORY,
    FORMAT_LIST,       /* CSV or JSON Lines: an image path in each row, with a label or targets and more columns */
    FORMAT_REGRESSION, /* the same, with targets */
    FORMAT_TABLE,      /* CSV or JSON Lines without image paths */
    FORMAT_COCO,
    FORMAT_VOC,
    FORMAT_NUMPY,
    FORMAT_TAR
} input_format;

/* The detected kind of an input. It determines which options apply. */
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
    const char *from, *to; /* borrowed from the command line; to is "" if the feature is left out */
    size_t from_size;
} key_change;

/* Texts are borrowed from the command line; null where the option is not given. */
typedef struct source_options {
    input_format format;
    const char *images, *labels;
    const char *columns, *path_column, *label_column, *targets; /* names, separated by commas */
    const char *split_column;
    const char *types, *missing;
    const char *image, *raw; /* names of arrays */
    char separator;          /* 0: comma, or tab for .tsv */
    key_change *keys;        /* owned */
    int key_count;
    uint64_t skip_rows;    /* of CSV, before the header or the first row of values */
    bool keypoints, masks; /* of COCO */
    bool append_labels;    /* number classes that --labels lacks after its last label */
} source_options;

/* The topics of --help. */
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

/* The same for options that concern the input. */
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
/* Parses one of these options. False: *reason is a sentence for the user. */
bool source_option(int option, char *value, source_options *options, const char **reason);
void source_options_deinit(source_options *options);

/* ---- Rows ---- */

/* One row of the input: the source of one record. */
typedef struct row {
    const char *name;    /* borrowed from the source; a path, "list.csv:12", …: unique unless the input repeats it */
    uint64_t hash;       /* of the name: with the seed it alone determines split and order */
    uint64_t facts_hash; /* of everything else that determines its record, except the bytes of its file */
    uint64_t size_bytes; /* estimated size of its record */
    int64_t modified_ns; /* of its input file */
    uint64_t position;   /* private to the source: an offset, an index */
    uint32_t detail;     /* private to the source */
    int32_t label;       /* index of source.classes; -1: none */
    int8_t split;        /* 1…: in source.splits, as named by the input; 0: chosen by hash */
    bool is_included, is_excluded; /* one of its paths matches --include, or --exclude */
    bool is_faulty; /* its description in the input cannot be used; reading its image returns the reason */
} row;

/* A growable buffer that is reused between rows: one for each thread. {0} is empty; free with free(data). */
typedef struct source_bytes {
    char *data;
    size_t size_bytes, capacity_bytes;
} source_bytes;
/* Makes room for size_bytes. The previous content is lost. */
mr_status source_bytes_reserve(source_bytes *bytes, size_t size_bytes, mr_error *error);

/* An image as it is written to the record: after treatment. */
typedef struct image_facts {
    mr_string encoded;                   /* borrowed */
    mr_image_info info;                  /* of encoded */
    int32_t stored_width, stored_height; /* size in the input, before rotation and resizing */
    int32_t rotated;                     /* the EXIF orientation that was applied, 1…8; 0 and 1: none */
    uint32_t *remarks;                   /* borrowed: add_features adds REMARK_BIT to it; or null */
} image_facts;

/* Distinct texts, numbered in order of first occurrence. {0} is empty. */
typedef struct names {
    char **texts; /* owned array; the bytes are in the arena */
    uint32_t *slots;
    uint32_t count, slot_count;
    arena arena;
} names;
/* The number of a text. A new text is added. */
mr_status names_add(names *names, mr_string text, uint32_t *number, mr_error *error);
/* -1: not found */
int64_t names_find(const names *names, mr_string text);
void names_deinit(names *names);

/* The destination of a row's features: the encoder, and the renaming by --key. */
typedef struct features {
    mr_example_encoder *encoder;
    const source_options *options;
    const names *declared; /* the keys passed to source_declare */
} features;
void put_bytes(const features *to, const char *key, mr_string value);
void put_int64(const features *to, const char *key, int64_t value);
void put_float(const features *to, const char *key, float value);
void put_bytes_list(const features *to, const char *key, const mr_string *values, size_t count);
void put_int64_list(const features *to, const char *key, const int64_t *values, size_t count);
void put_float_list(const features *to, const char *key, const float *values, size_t count);

typedef struct source source;

/* How rows are read. All functions are safe from any thread and do not modify the source. */
typedef struct source_functions {
    /* Reads the bytes of the row's image. Null in a source without images; *has_image stays false for a row without
     * one. errors: what is wrong with this row; the caller may skip it and continue */
    mr_status (*image)(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
    /* Reads bytes that are equal for equal images and cheaper to read; null: the image itself is used. */
    mr_status (*content)(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
    /* Adds the row's own features. facts: null for a row without an image. The image's keys have already been added. */
    mr_status (*add_features)(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error);
    /* The directory or archive that contains the row's file, for messages; null: source->directory. */
    const char *(*directory)(const source *source, const row *row);
    void (*deinit)(source *source); /* frees detail; may be null */
} source_functions;

static constexpr int SOURCE_NOTES_MAX = 16;
/* Maximum number of --include patterns, and of --exclude patterns. */
static constexpr int GLOBS_MAX = 64;
static constexpr int SOURCE_REMARKS_MAX = 16 + GLOBS_MAX;
/* Maximum number of splits (train, validation, …). */
static constexpr int SPLITS_MAX = 8;
static constexpr size_t SPLIT_NAME_BYTES = 64;

struct source {
    const source_functions *functions;
    const struct options *options; /* borrowed */
    const char *input;             /* borrowed: the file or directory on the command line */
    const source_options *in;      /* borrowed: options->in */
    input_format format;           /* as detected */
    input_kind kind;
    row *rows; /* owned; in the order of the input; for directories, sorted by name */
    int64_t row_count;
    bool *excluded; /* owned; for each row, whether --include and --exclude leave it out. Null: all rows are included */
    int64_t excluded_count;
    bool include_used[GLOBS_MAX], exclude_used[GLOBS_MAX]; /* patterns that have matched */
    uint64_t size_bytes;                                   /* of all included rows */
    const char *row_noun;                                  /* "image", "row", "sample": used in messages */
    char **classes;      /* indexed by label; null for a number without a class. Borrowed from the arena */
    int32_t class_count; /* 0: labels have no names, and labels.txt is not written */
    bool has_images;
    bool sizes_include_more; /* sizes of rows include more than their images */
    bool has_boxes;          /* detection: labels start at 1, and label_map.pbtxt is also written */
    uint64_t facts_hash;     /* of the options and input that determine all records */
    /* Unused input, such as "12 files left out, not images by name: notes.txt, …" */
    struct {
        int64_t count;
        const char *what;  /* static: "files left out, not images by name" */
        const char *first; /* an example; from the arena */
    } notes[SOURCE_NOTES_MAX];
    int note_count;
    const char *remarks[SOURCE_REMARKS_MAX]; /* sentences about the input; in the arena */
    int remark_count;
    names features;                            /* keys that a record may have, before --key renames them */
    char splits[SPLITS_MAX][SPLIT_NAME_BYTES]; /* named by the input */
    int split_count;
    const char *directory;    /* borrowed; directory of the rows' files; null: names are not file paths */
    bool names_are_positions; /* names are positions in the input, such as "line 12" */
    arena arena;
    char *text; /* the arena block that names are packed into */
    size_t text_room;
    void *detail; /* private to the source; functions->deinit frees what is not in the arena */
};

/* Detects the form of options->input (or uses options->format), and lists its rows. If the input names the split of
 * each row, these names are stored in options->splits, unless --split is given.
 * errors  naming file, position and reason; a source without rows is an error, and so is an option without effect. The
 *         caller must call source_deinit also after an error. */
mr_status source_open(struct options *options, source *source, mr_error *error);
void source_deinit(source *source);

/* Whether --include and --exclude leave a row out. */
static inline bool source_is_excluded(const source *source, int64_t row)
{
    return source->excluded && source->excluded[row];
}

/* See source_functions. Error messages start with the row's file. */
mr_status source_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
/* Bytes that are equal for rows with the same image: see source_functions. */
mr_status source_content(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error);
/* Adds image/encoded, image/format, image/height, … from the facts, and all of the row's own features. */
mr_status source_add_features(const source *source, const row *row, const image_facts *facts,
                              mr_example_encoder *encoder, mr_error *error);

/* Prepends the row's file, as the user knows it, to the message. */
mr_status source_fail_row(const source *source, const row *row, mr_status status, mr_error *error);

/* ---- For the sources ---- */

/* Sets the kind of the input, and rejects options that have no effect on it. */
mr_status source_set_kind(source *source, input_kind kind, mr_error *error);
/* Declares a feature that records may have. Only declared features are written. */
mr_status source_declare(source *source, const char *key, mr_error *error);
/* The number of a split that the input names, for row.split; 0 if it cannot be the name of a split.
 * errors  more than SPLITS_MAX */
mr_status source_find_split(source *source, mr_string name, int8_t *split, mr_error *error);
/* Whether the splits that the input names are used: --split is not given. */
bool source_takes_splits(const source *source);
bool source_is_split_name(mr_string name);
/* Stores a sentence that is printed with the summary of the input. Sentences beyond SOURCE_REMARKS_MAX are dropped. */
[[gnu::format(printf, 3, 4)]] mr_status source_remark(source *source, mr_error *error, const char *format, ...);

/* Appends a row. Its name is copied, and hashed unless the row has a hash. */
mr_status source_add_row(source *source, const row *row, mr_error *error);
/* Appends a class. Its name is copied. */
mr_status source_add_class(source *source, const char *name, mr_error *error);
/* Counts unused input. what: static; "singular|plural" if the two differ */
mr_status source_note(source *source, const char *what, const char *example, mr_error *error);
/* Counts a path outside the directory. Such paths are used, but reported. */
mr_status source_note_path(source *source, const char *path, mr_error *error);
/* A copy with the lifetime of the source, without alignment padding. Null when out of memory. */
char *source_keep(source *source, const char *text, size_t size_bytes);
/* Reads the complete file directory/name, at most 1 GiB: `image` of the sources whose rows are named after files. */
mr_status source_read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image,
                            mr_error *error);
/* Whether a name has one of the endings (separated by spaces), in any case, and is longer than the ending. */
bool source_has_ending(const char *name, const char *endings);
#define SOURCE_TAR_ENDINGS ".tar .tar.gz .tgz"
/* .jpg, .jpeg, .jpe, .jfif, .png, .webp, .gif, .bmp, .dib, .tif, .tiff, in any case. */
bool source_is_image_name(const char *name);

/* Makes names the classes of the source, numbered from label `first`: in the order of the --labels file, which must
 * contain all of them (with --append-labels, missing names follow its last label), or sorted by bytes. labels[number of
 * the name] becomes the label of the name. If all names are whole numbers, these numbers are the labels, and there are
 * no classes (unless --labels names them).
 * labels  owned by the caller: free() */
mr_status source_set_classes(source *source, const names *names, int32_t first, int32_t **labels, mr_error *error);

/* The forms. Each fills a source whose options are set. */
mr_status source_directory_open(source *source, mr_error *error);
mr_status source_list_open(source *source, mr_error *error);
mr_status source_table_open(source *source, mr_error *error);
mr_status source_coco_open(source *source, mr_error *error);
mr_status source_voc_open(source *source, mr_error *error);
mr_status source_numpy_open(source *source, mr_error *error);
mr_status source_tar_open(source *source, mr_error *error);

#endif
