/* Pascal VOC's XML of boxes: one small file an image. Parsed by expat; a document type is refused, and with it entities. */
#ifndef MR_TOOLS_TFRECORD_MAKE_VOC_H
#define MR_TOOLS_TFRECORD_MAKE_VOC_H

#include "base/arena.h"

#include <millrace/tensor.h>

typedef struct voc_object {
    const char *name, *pose; /* never null */
    double xmin, ymin, xmax, ymax;
    bool is_truncated, is_difficult;
} voc_object;

typedef struct voc_annotation {
    const char *file_name; /* null: not said */
    int64_t width, height; /* 0: not said */
    bool is_latin1;        /* it is not the UTF-8 that it says or leaves to be assumed, and was read as Latin-1 */
    voc_object *objects;   /* parts of objects are left out */
    size_t count, capacity;
} voc_annotation;

/* Parses a file; everything is in the arena.
 * errors  MR_DATA_LOSS with the line */
mr_status voc_parse(mr_string xml, mr_arena *arena, voc_annotation *annotation, mr_error *error);

#endif
