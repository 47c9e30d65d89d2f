/* Object boxes from COCO and Pascal VOC: conversion from pixels of the annotated image to coordinates 0…1 of the
 * image in the record. */
#ifndef MR_TOOLS_TFRECORD_MAKE_BOXES_H
#define MR_TOOLS_TFRECORD_MAKE_BOXES_H

#include "tfrecord-make/coco.h"
#include "tfrecord-make/source.h"

typedef struct box {
    double xmin, ymin, xmax, ymax;
} box;

/* Clips a box to the image. False: nothing is left of it, or it had no area. */
bool box_clip(box *box, double width, double height, bool *was_cut);

/* The mapping from pixels of the annotated image to coordinates 0…1 of the image that the facts describe. */
typedef struct placing {
    double width, height; /* of the annotated image; whole numbers */
    int32_t orientation;  /* the EXIF orientation that is applied to it; 0: none */
} placing;
/* width, height  as for boxes_transform */
mr_status placing_of(int64_t width, int64_t height, const image_facts *facts, placing *placing, mr_error *error);
/* Maps a point from coordinates 0…1 of the image of the facts back to coordinates 0…1 of the annotated image. */
void placing_undo(const placing *placing, double *x, double *y);

/* Maps boxes to coordinates 0…1 of the image that the facts describe, rotated as that image was.
 * width, height  of the annotated image: that of the file, or of the upright one; 0: unknown, the size of the file is
 *                used
 * errors         the size is neither of the two */
mr_status boxes_transform(box *boxes, size_t count, int64_t width, int64_t height, const image_facts *facts,
                          mr_error *error);

/* The same for points, which may be outside the image. */
mr_status points_transform(coco_point *points, size_t count, int64_t width, int64_t height, const image_facts *facts,
                           mr_error *error);

/* Adds image/object/bbox/{xmin,ymin,xmax,ymax}, image/object/class/{label,text}, image/key/sha256. */
mr_status boxes_put(const source *source, const box *boxes, const int32_t *labels, size_t count,
                    const image_facts *facts, const features *to, mr_error *error);
/* Declares these keys. */
mr_status boxes_declare(source *source, mr_error *error);

#endif
