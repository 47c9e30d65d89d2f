/* The options of tfrecord-make, one row each: the parser and --help read them, and the check that each has an effect on the
 * input and in the mode. An option that has none is an error; tests/tools/make_options_test.c runs every option on every kind
 * of input, tests/tools/make_help_test.c finds each in one topic. */
#ifndef MR_TOOLS_TFRECORD_MAKE_OPTIONS_TABLE_H
#define MR_TOOLS_TFRECORD_MAKE_OPTIONS_TABLE_H

#include "tools/tfrecord-make/source.h"

typedef struct option_row {
    const char *name;
    char letter;          /* 0: none */
    int code;             /* what getopt_long returns */
    const char *argument; /* null: takes none; "[…]": may be left out */
    option_topic topic;
    uint32_t inputs; /* input_kind bits; 0: it only prints */
    const char *help;
    bool is_for_images;     /* has no effect on rows without an image */
    bool is_for_making;     /* has no effect with --survey */
    bool is_for_ranks;      /* has an effect only under mpirun, srun and the like */
    const char *needs;      /* an option without which this one has no effect; or null */
    const char *refuses[2]; /* options with which this one has no effect; or null */
} option_row;

static const option_row option_rows[] = {
    {"out", 'o', 'o', "DIR", TOPIC_OUTPUT, INPUT_ANY, "directory of the files; created if it does not exist",
     .is_for_making = true},
    {"name", 'n', 'n', "NAME", TOPIC_OUTPUT, INPUT_ANY, "first part of file names (default: the name of INPUT)",
     .is_for_making = true},
    {"split", 0, OPTION_SPLIT, "NAME=SHARE,…", TOPIC_OUTPUT, INPUT_ANY,
     "shares that add up to 1 (default: train=0.9,validation=0.1). The split of an image follows from its path alone "
     "and"
     " stays when images are added"},
    {"stratify", 0, OPTION_STRATIFY, nullptr, TOPIC_OUTPUT, INPUT_DIRECTORY | INPUT_LISTS | INPUT_TAR,
     "give each split the same share of every class, to within one image. The split then follows from the paths of the"
     " class: adding images can move others of their class",
     .refuses = {"group-by"}},
    {"group-by", 0, OPTION_GROUP_BY, "KEY", TOPIC_OUTPUT, INPUT_ANY,
     "keep rows of one group in one split. KEY is the name of a feature, such as a column of a list, or a POSIX "
     "extended"
     " regular expression with parentheses around the part of the path that names the group: '/(patient[0-9]+)_'. Of"
     " several parentheses the first that takes part in the match counts, as in '(cat)s?/|(dog)s?/'. The split follows"
     " from the group's name alone"},
    {"shards", 0, OPTION_SHARDS, "N", TOPIC_OUTPUT, INPUT_ANY, "files of each split", .is_for_making = true},
    {"shard-size", 0, OPTION_SHARD_SIZE, "SIZE", TOPIC_OUTPUT, INPUT_ANY,
     "or: the fewest files of at most this size, of about the same size each (default: 200M). A record that alone is"
     " larger has a file of its own; an .index is not counted. How large records become is estimated from a sample, so"
     " that options that change images, and masks, may make a file somewhat larger",
     .is_for_making = true, .refuses = {"shards"}},
    {"shuffle-seed", 's', 's', "S", TOPIC_OUTPUT, INPUT_ANY, "order within the files (default: 0)",
     .is_for_making = true},
    {"compress", 0, OPTION_COMPRESS, "HOW", TOPIC_OUTPUT, INPUT_ANY,
     "none (default), gzip, zlib, or seekable: gzip that allows random access and reading on many threads",
     .is_for_making = true},

    {"no-check", 0, OPTION_NO_CHECK, nullptr, TOPIC_IMAGES, INPUT_ANY,
     "read the headers only, instead of decoding every image once", .is_for_images = true},
    {"shorter-side", 0, OPTION_SHORTER_SIDE, "N", TOPIC_IMAGES, INPUT_ANY,
     "shrink larger images to a shorter side of N pixels", .is_for_images = true, .is_for_making = true},
    {"upright", 0, OPTION_UPRIGHT, nullptr, TOPIC_IMAGES, INPUT_ANY & ~(uint32_t)INPUT_NUMPY,
     "rotate images as their EXIF orientation says, without loss where possible", .is_for_images = true,
     .is_for_making = true},
    {"encode", 0, OPTION_ENCODE, "FORMAT", TOPIC_IMAGES, INPUT_ANY,
     "keep (default), jpeg or png: the format of all images; transparent ones stay PNG. jpeg and png also convert WebP,"
     " GIF, BMP and TIFF",
     .is_for_images = true},
    {"quality", 0, OPTION_QUALITY, "Q", TOPIC_IMAGES, INPUT_ANY,
     "of JPEGs that are encoded again, 1 to 100 (default: 90); without another option here all JPEGs are",
     .is_for_images = true},
    {"crop-ready", 0, OPTION_CROP_READY, nullptr, TOPIC_IMAGES, INPUT_ANY,
     "rewrite JPEGs without loss so that random crops of them are cheap to decode", .is_for_images = true,
     .is_for_making = true},
    {"duplicates", 0, OPTION_DUPLICATES, "HOW", TOPIC_IMAGES, INPUT_ANY,
     "images with equal bytes. keep: report them (default); drop: leave copies out; stop: any is an error; ignore: do "
     "not"
     " look",
     .is_for_images = true},

    {"format", 0, OPTION_FORMAT, "KIND", TOPIC_SOURCES, INPUT_ANY,
     "directory, list, regression, table, coco, voc, numpy or tar (default: recognised)"},
    {"include", 0, OPTION_INCLUDE, "GLOB", TOPIC_SOURCES, INPUT_CLASSES,
     "take only paths that match; may be repeated. One that matches nothing is an error"},
    {"exclude", 0, OPTION_EXCLUDE, "GLOB", TOPIC_SOURCES, INPUT_CLASSES,
     "leave out paths that match; may be repeated. One that matches nothing is warned of"},
    {"images", 0, OPTION_IMAGES, "DIR", TOPIC_SOURCES, INPUT_LISTS | INPUT_COCO | INPUT_VOC,
     "directory of the images that INPUT names"},
    {"labels", 0, OPTION_LABELS, "FILE", TOPIC_SOURCES, INPUT_CLASSES,
     "one name on each line: line n+1 is label n, as in labels.txt of an earlier run, so that labels stay when classes "
     "are"
     " added (default: names sorted by bytes from 0, for boxes from 1; whole numbers stay what they are, and so do the"
     " numbers of COCO)"},
    {"append-labels", 0, OPTION_APPEND_LABELS, nullptr, TOPIC_SOURCES, INPUT_CLASSES,
     "give classes that --labels lacks the numbers after its last", .needs = "labels"},
    {"keypoints", 0, OPTION_KEYPOINTS, nullptr, TOPIC_SOURCES, INPUT_COCO,
     "of COCO: image/object/keypoint/{x,y,visibility,text,num}; x and y from 0 to 1, for each object as many as there "
     "are"
     " names, zeros where it has none; num counts the labelled ones",
     .is_for_making = true},
    {"masks", 0, OPTION_MASKS, nullptr, TOPIC_SOURCES, INPUT_COCO,
     "of COCO: image/object/mask, a PNG of each object's segmentation", .is_for_making = true},
    {"image", 0, OPTION_IMAGE, "ARRAY", TOPIC_SOURCES, INPUT_NUMPY,
     "of NumPy: the array of [row, height, width(, channels)], uint8 or uint16, that becomes PNG in image/encoded"},
    {"raw", 0, OPTION_RAW, "ARRAY,…", TOPIC_SOURCES, INPUT_NUMPY,
     "of NumPy: arrays whose rows become bytes as they are in memory, for decode_raw", .is_for_making = true},

    {"columns", 0, OPTION_COLUMNS, "A,B,…", TOPIC_COLUMNS, INPUT_CSV,
     "names of the columns of a file that has no first line with them"},
    {"skip-rows", 0, OPTION_SKIP_ROWS, "N", TOPIC_COLUMNS, INPUT_CSV,
     "lines of CSV to leave out, whatever they hold, before the header, or before the first row of values with "
     "--columns;"
     " empty lines are not counted"},
    {"path-column", 0, OPTION_PATH_COLUMN, "A", TOPIC_COLUMNS, INPUT_LISTS,
     "(default: path, filename, file_name, filepath, file, image_path or image)"},
    {"label-column", 0, OPTION_LABEL_COLUMN, "A", TOPIC_COLUMNS, INPUT_LISTS, "(default: label or class)"},
    {"split-column", 0, OPTION_SPLIT_COLUMN, "A", TOPIC_COLUMNS, INPUT_LISTS | INPUT_TABLES,
     "names the split of each row (default: split, where there is such a column)", .refuses = {"split"}},
    {"target", 0, OPTION_TARGET, "A,B,…", TOPIC_COLUMNS, INPUT_LISTS,
     "columns of numbers to learn (default with --format regression: target, label, value or y)"},
    {"types", 0, OPTION_TYPES, "A=TYPE,…", TOPIC_COLUMNS, INPUT_LISTS | INPUT_TABLES | INPUT_TAR,
     "int64, float or bytes. Others are found by reading the complete file once: numbers that are all whole are int64,"
     " other numbers float, the rest bytes"},
    {"missing", 0, OPTION_MISSING, "TEXT,…", TOPIC_COLUMNS, INPUT_CSV,
     "cells that mean that there is no value, as an empty cell does (\"\" is an empty text)"},
    {"separator", 0, OPTION_SEPARATOR, "C", TOPIC_COLUMNS, INPUT_CSV, "between cells (default: comma; tab in .tsv)"},
    {"key", 0, OPTION_KEY, "OLD=NEW", TOPIC_COLUMNS, INPUT_ANY,
     "rename a feature; --key OLD= leaves it out; --key 'OLD/*=NEW/*' changes the beginning of many names, --key "
     "'OLD/*='"
     " leaves these features out",
     .is_for_making = true},

    {"survey", 0, OPTION_SURVEY, nullptr, TOPIC_SURVEY, INPUT_ANY,
     "report sizes, proportions, formats, colors, faults, copies, classes, and the resize that pays"},
    {"svg", 0, OPTION_SVG, "FILE", TOPIC_SURVEY, INPUT_ANY, "write the charts to FILE too", .is_for_images = true,
     .needs = "survey"},
    {"crop", 0, OPTION_CROP, "N", TOPIC_SURVEY, INPUT_ANY,
     "size in pixels of the crops that will be trained with (default: 224)", .is_for_images = true, .needs = "survey"},

    {"dry-run", 0, OPTION_DRY_RUN, nullptr, TOPIC_RUN, INPUT_ANY, "print what would be written, and write nothing",
     .is_for_making = true, .refuses = {"finish"}},
    {"json", 0, OPTION_JSON, nullptr, TOPIC_RUN, INPUT_ANY, "print the summary as one JSON object",
     .is_for_making = true},
    {"on-error", 0, OPTION_ON_ERROR, "HOW", TOPIC_RUN, INPUT_ANY,
     "stop: the first image that cannot be used ends the run (default); skip: list such images, count them by reason "
     "and"
     " leave them out. An image is never written with some of its boxes: an annotation that cannot be used costs its"
     " image, and one that names no image, or JSON that cannot be parsed, ends the run",
     .is_for_making = true},
    {"jobs", 'j', 'j', "N", TOPIC_RUN, INPUT_ANY,
     "threads (default: one for each processor); the bytes are the same for any number"},
    {"worker", 0, OPTION_WORKER, "I/N", TOPIC_RUN, INPUT_ANY, "write part I of N, from 1/N to N/N",
     .is_for_making = true},
    {"finish", 0, OPTION_FINISH, nullptr, TOPIC_RUN, INPUT_ANY,
     "when all parts are written: check that nothing is missing and write labels.txt", .is_for_making = true,
     .refuses = {"worker"}},
    {"wait", 0, OPTION_WAIT, "SECONDS", TOPIC_RUN, INPUT_ANY,
     "under mpirun or srun: give up a process that shows no sign of life for this long (default: 120)",
     .is_for_making = true, .is_for_ranks = true, .refuses = {"worker", "finish"}},
    {"help", 'h', 'h', "[TOPIC]", TOPIC_RUN, 0, "the short help, a topic, or \"all\""},
    {"version", 'V', 'V', nullptr, TOPIC_RUN, 0, "print the version"},
};
static constexpr int OPTION_ROW_COUNT = sizeof(option_rows) / sizeof(option_rows[0]);
static_assert(OPTION_ROW_COUNT <= 64, "options.given has a bit for each");

#endif
