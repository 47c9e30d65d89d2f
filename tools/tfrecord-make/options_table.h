/* The options of tfrecord-make, one row each. The table is used by the parser, by --help and by the check that each
 * option has an effect on the input and in the mode; an option without effect is an error.
 * tests/tools/make_options_test.c runs every option on every kind of input, and tests/tools/make_help_test.c checks
 * that each is in exactly one topic. */
#ifndef MR_TOOLS_TFRECORD_MAKE_OPTIONS_TABLE_H
#define MR_TOOLS_TFRECORD_MAKE_OPTIONS_TABLE_H

#include "tfrecord-make/source.h"

typedef struct option_row {
    const char *name;
    char letter;          /* 0: none */
    int code;             /* what getopt_long returns */
    const char *argument; /* null: none; "[…]": optional */
    option_topic topic;
    uint32_t inputs; /* input_kind bits; 0: the option only prints */
    const char *help;
    bool is_for_images;       /* has no effect on rows without an image */
    bool is_for_making;       /* has no effect with --survey */
    bool is_for_ranks;        /* has an effect only under mpirun, srun or a similar launcher */
    const char *needs;        /* required option; or null */
    const char *conflicts[2]; /* conflicting options; or null */
} option_row;

static const option_row option_rows[] = {
    {"out", 'o', 'o', "DIR", TOPIC_OUTPUT, INPUT_ANY, "output directory; created if it does not exist",
     .is_for_making = true},
    {"name", 'n', 'n', "NAME", TOPIC_OUTPUT, INPUT_ANY, "prefix of file names (default: the name of INPUT)",
     .is_for_making = true},
    {"split", 0, OPTION_SPLIT, "NAME=SHARE,…", TOPIC_OUTPUT, INPUT_ANY,
     "fractions that add up to 1 (default: train=0.9,validation=0.1). The split of an image depends only on its path"
     " and does not change when images are added"},
    {"stratify", 0, OPTION_STRATIFY, nullptr, TOPIC_OUTPUT, INPUT_DIRECTORY | INPUT_LISTS | INPUT_TAR,
     "give each split the same fraction of every class, to within one image. The split of an image then depends on all"
     " paths of its class: adding images can move others of the class",
     .conflicts = {"group-by"}},
    {"group-by", 0, OPTION_GROUP_BY, "KEY", TOPIC_OUTPUT, INPUT_ANY,
     "keep the rows of each group in one split. KEY is the name of a feature, such as a column of a list, or a POSIX"
     " extended regular expression with parentheses around the part of the path that names the group:"
     " '/(patient[0-9]+)_'. If several parentheses are given, the first that takes part in the match is used, as in"
     " '(cat)s?/|(dog)s?/'. The split depends only on the group's name"},
    {"shards", 0, OPTION_SHARDS, "N", TOPIC_OUTPUT, INPUT_ANY, "number of files for each split", .is_for_making = true},
    {"shard-size", 0, OPTION_SHARD_SIZE, "SIZE", TOPIC_OUTPUT, INPUT_ANY,
     "maximum size of a file (default: 200M): the fewest files within this size, of about equal size. A record that is"
     " larger gets a file of its own; .index files are not counted. The size of records is estimated from a sample, so"
     " options that change images, and masks, may make a file slightly larger",
     .is_for_making = true, .conflicts = {"shards"}},
    {"shuffle-seed", 's', 's', "S", TOPIC_OUTPUT, INPUT_ANY, "seed of the order within the files (default: 0)",
     .is_for_making = true},
    {"compress", 0, OPTION_COMPRESS, "HOW", TOPIC_OUTPUT, INPUT_ANY,
     "none (default), gzip, zlib, or seekable: gzip with random access and multithreaded reading",
     .is_for_making = true},

    {"no-check", 0, OPTION_NO_CHECK, nullptr, TOPIC_IMAGES, INPUT_ANY,
     "read only the headers of images instead of decoding each once", .is_for_images = true},
    {"shorter-side", 0, OPTION_SHORTER_SIDE, "N", TOPIC_IMAGES, INPUT_ANY,
     "shrink larger images to a shorter side of N pixels", .is_for_images = true, .is_for_making = true},
    {"upright", 0, OPTION_UPRIGHT, nullptr, TOPIC_IMAGES, INPUT_ANY & ~(uint32_t)INPUT_NUMPY,
     "apply the EXIF orientation to the pixels, losslessly where possible", .is_for_images = true,
     .is_for_making = true},
    {"encode", 0, OPTION_ENCODE, "FORMAT", TOPIC_IMAGES, INPUT_ANY,
     "format of all images: keep (default), jpeg or png; transparent images stay PNG. jpeg and png also convert WebP,"
     " GIF, BMP and TIFF",
     .is_for_images = true},
    {"quality", 0, OPTION_QUALITY, "Q", TOPIC_IMAGES, INPUT_ANY,
     "quality of re-encoded JPEGs, 1 to 100 (default: 90). Without another option of this topic, all JPEGs are"
     " re-encoded",
     .is_for_images = true},
    {"crop-ready", 0, OPTION_CROP_READY, nullptr, TOPIC_IMAGES, INPUT_ANY,
     "rewrite JPEGs losslessly so that random crops are cheap to decode", .is_for_images = true, .is_for_making = true},
    {"duplicates", 0, OPTION_DUPLICATES, "HOW", TOPIC_IMAGES, INPUT_ANY,
     "handling of images with equal bytes. keep (default): report them; drop: leave out copies; stop: fail;"
     " ignore: do not search for them",
     .is_for_images = true},

    {"format", 0, OPTION_FORMAT, "KIND", TOPIC_SOURCES, INPUT_ANY,
     "directory, list, regression, table, coco, voc, numpy or tar (default: detected)"},
    {"include", 0, OPTION_INCLUDE, "GLOB", TOPIC_SOURCES, INPUT_CLASSES,
     "use only paths that match; may be repeated. A pattern that matches nothing is an error"},
    {"exclude", 0, OPTION_EXCLUDE, "GLOB", TOPIC_SOURCES, INPUT_CLASSES,
     "leave out paths that match; may be repeated. A pattern that matches nothing causes a warning"},
    {"images", 0, OPTION_IMAGES, "DIR", TOPIC_SOURCES, INPUT_LISTS | INPUT_COCO | INPUT_VOC,
     "directory of the images that INPUT names"},
    {"labels", 0, OPTION_LABELS, "FILE", TOPIC_SOURCES, INPUT_CLASSES,
     "class names, one on each line: line n+1 is label n, as in labels.txt of an earlier run. Keeps labels stable when"
     " classes are added (default: names sorted by bytes and numbered from 0, for boxes from 1; whole numbers and"
     " COCO's category numbers are used as labels)"},
    {"append-labels", 0, OPTION_APPEND_LABELS, nullptr, TOPIC_SOURCES, INPUT_CLASSES,
     "number classes that --labels lacks after its last label", .needs = "labels"},
    {"keypoints", 0, OPTION_KEYPOINTS, nullptr, TOPIC_SOURCES, INPUT_COCO,
     "for COCO: write image/object/keypoint/{x,y,visibility,text,num}. x and y are from 0 to 1; each object has one"
     " entry for each keypoint name, zero if it has none; num is the number of labeled keypoints",
     .is_for_making = true},
    {"masks", 0, OPTION_MASKS, nullptr, TOPIC_SOURCES, INPUT_COCO,
     "for COCO: write image/object/mask, a PNG of each object's segmentation", .is_for_making = true},
    {"image", 0, OPTION_IMAGE, "ARRAY", TOPIC_SOURCES, INPUT_NUMPY,
     "for NumPy: array of shape [row, height, width(, channels)], uint8 or uint16, to encode as PNG in image/encoded"},
    {"raw", 0, OPTION_RAW, "ARRAY,…", TOPIC_SOURCES, INPUT_NUMPY,
     "for NumPy: arrays whose rows are stored as raw bytes, for decode_raw", .is_for_making = true},

    {"columns", 0, OPTION_COLUMNS, "A,B,…", TOPIC_COLUMNS, INPUT_CSV, "column names, for a file without a header line"},
    {"skip-rows", 0, OPTION_SKIP_ROWS, "N", TOPIC_COLUMNS, INPUT_CSV,
     "number of CSV lines to skip, whatever they contain, before the header, or with --columns before the first row of"
     " values; empty lines are not counted"},
    {"path-column", 0, OPTION_PATH_COLUMN, "A", TOPIC_COLUMNS, INPUT_LISTS,
     "column of image paths (default: path, filename, file_name, filepath, file, image_path or image)"},
    {"label-column", 0, OPTION_LABEL_COLUMN, "A", TOPIC_COLUMNS, INPUT_LISTS,
     "column of labels (default: label or class)"},
    {"split-column", 0, OPTION_SPLIT_COLUMN, "A", TOPIC_COLUMNS, INPUT_LISTS | INPUT_TABLES,
     "column that names the split of each row (default: split, if it exists)", .conflicts = {"split"}},
    {"target", 0, OPTION_TARGET, "A,B,…", TOPIC_COLUMNS, INPUT_LISTS,
     "columns of numeric targets (default with --format regression: target, label, value or y)"},
    {"types", 0, OPTION_TYPES, "A=TYPE,…", TOPIC_COLUMNS, INPUT_LISTS | INPUT_TABLES | INPUT_TAR,
     "column types: int64, float or bytes. Types that are not given are detected by reading the complete file once:"
     " int64 if all values are whole numbers, float if all are numbers, otherwise bytes"},
    {"missing", 0, OPTION_MISSING, "TEXT,…", TOPIC_COLUMNS, INPUT_CSV,
     "cell texts that mean a missing value, as an empty cell does (\"\" is an empty text)"},
    {"separator", 0, OPTION_SEPARATOR, "C", TOPIC_COLUMNS, INPUT_CSV, "cell separator (default: comma; tab in .tsv)"},
    {"key", 0, OPTION_KEY, "OLD=NEW", TOPIC_COLUMNS, INPUT_ANY,
     "rename a feature; --key OLD= leaves it out; --key 'OLD/*=NEW/*' replaces a prefix of feature names, and --key"
     " 'OLD/*=' leaves out the features with this prefix",
     .is_for_making = true},

    {"survey", 0, OPTION_SURVEY, nullptr, TOPIC_SURVEY, INPUT_ANY,
     "report sizes, aspect ratios, formats, colors, faults, duplicates and classes, and recommend a resize"},
    {"svg", 0, OPTION_SVG, "FILE", TOPIC_SURVEY, INPUT_ANY, "also write the charts to FILE", .is_for_images = true,
     .needs = "survey"},
    {"crop", 0, OPTION_CROP, "N", TOPIC_SURVEY, INPUT_ANY,
     "size in pixels of the crops that training will use (default: 224)", .is_for_images = true, .needs = "survey"},

    {"dry-run", 0, OPTION_DRY_RUN, nullptr, TOPIC_RUN, INPUT_ANY, "print what would be written; write nothing",
     .is_for_making = true, .conflicts = {"finish"}},
    {"json", 0, OPTION_JSON, nullptr, TOPIC_RUN, INPUT_ANY, "print the summary as one JSON object",
     .is_for_making = true},
    {"on-error", 0, OPTION_ON_ERROR, "HOW", TOPIC_RUN, INPUT_ANY,
     "stop (default): end the run at the first image that cannot be used; skip: leave out such images, list them and"
     " count them by reason. An annotation that cannot be used (not an object, an unknown category, a box that is not"
     " four numbers, …) excludes its image. Some annotations are always left out without their image, and are"
     " counted: boxes without area or completely outside their image, COCO annotations without a box, and those whose"
     " image_id is not in \"images\". A COCO annotation without an integer image_id, and JSON that cannot be parsed,"
     " always end the run",
     .is_for_making = true},
    {"jobs", 'j', 'j', "N", TOPIC_RUN, INPUT_ANY,
     "number of threads (default: one for each processor); the output does not depend on it"},
    {"worker", 0, OPTION_WORKER, "I/N", TOPIC_RUN, INPUT_ANY, "write part I of N, from 1/N to N/N",
     .is_for_making = true},
    {"finish", 0, OPTION_FINISH, nullptr, TOPIC_RUN, INPUT_ANY,
     "after all parts are written: check that nothing is missing and write labels.txt", .is_for_making = true,
     .conflicts = {"worker"}},
    {"wait", 0, OPTION_WAIT, "SECONDS", TOPIC_RUN, INPUT_ANY,
     "under mpirun or srun: fail if a process does not respond for this long (default: 120)", .is_for_making = true,
     .is_for_ranks = true, .conflicts = {"worker", "finish"}},
    {"help", 'h', 'h', "[TOPIC]", TOPIC_RUN, 0, "print the short help, a topic, or \"all\""},
    {"version", 'V', 'V', nullptr, TOPIC_RUN, 0, "print the version"},
};
static constexpr int OPTION_ROW_COUNT = sizeof(option_rows) / sizeof(option_rows[0]);
static_assert(OPTION_ROW_COUNT <= 64, "options.given has a bit for each");

#endif
