/* Pascal VOC's XML annotations: one small file for each image. Parsed by expat; a document type is rejected, so
 * entities cannot be defined. */
#ifndef MR_TOOLS_TFRECORD_MAKE_VOC_H
#define MR_TOOLS_TFRECORD_MAKE_VOC_H

#include "common/arena.h"

#include <millrace/tensor.h>

typedef struct voc_object {
    const char *name, *pose; /* never null */
    double xmin, ymin, xmax, ymax;
    bool is_truncated, is_difficult;
} voc_object;

typedef struct voc_annotation {
    const char *file_name; /* null: not specified */
    int64_t width, height; /* 0: not specified */
    bool is_latin1;        /* it is not valid UTF-8, although UTF-8 is declared or implied, and was read as Latin-1 */
    voc_object *objects;   /* parts of objects are excluded */
    size_t count, capacity;
} voc_annotation;

/* Parses a file; all results are in the arena.
 * errors  MR_DATA_LOSS naming the line */
mr_status voc_parse(mr_string xml, arena *arena, voc_annotation *annotation, mr_error *error);

#endif
