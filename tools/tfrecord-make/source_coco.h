/* COCO's boxes in memory: what listing (source_coco.c) keeps for records (source_coco_put.c). */
#ifndef MR_TOOLS_TFRECORD_MAKE_SOURCE_COCO_H
#define MR_TOOLS_TFRECORD_MAKE_SOURCE_COCO_H

#include "tools/tfrecord-make/boxes.h"
#include "tools/tfrecord-make/coco.h"

/* 64 bytes a box. */
typedef struct kept_box {
    int64_t key; /* the image's id; after listing its row */
    box box;     /* pixels; inside of the image when its size is known */
    float area;  /* the whole box's when the annotation says none */
    int32_t category : 30;
    uint32_t is_crowd : 1;
    uint32_t has_area : 1;
    uint32_t order;       /* the number of the annotation in the file */
    uint32_t point_count; /* of coco.points, from point_begin on */
    uint64_t point_begin;
} kept_box;

typedef struct listed {
    int64_t id;
    int32_t width, height;
} listed;

/* Where the JSON of an annotation is: read again for its mask. */
typedef struct span {
    uint64_t offset, hash;
    uint32_t size_bytes;
} span;

typedef struct coco {
    mr_input_file *file; /* owned; the JSON */
    kept_box *boxes;     /* owned */
    span *spans;         /* owned; with --masks of all boxes, by kept_box.order */
    size_t span_capacity;
    int64_t box_count, image_count;
    coco_fault *faults; /* owned; messages in the source's arena. row.detail is one more than a number of these */
    int64_t fault_count;
    coco_point *points; /* owned */
    size_t point_count, point_capacity;
    mr_string *point_names; /* owned array; names in the source's arena. Of every category that has keypoints */
    size_t name_count;
    listed *images;    /* owned; by row, for the first image_count of them */
    int64_t *by_id;    /* owned; rows, sorted by id; while listing */
    char **categories; /* owned array; names in the source's arena; null where there is none */
    int32_t *labels;   /* owned; of each category */
    int64_t category_count;
    char *directory; /* owned */
} coco;

/* Adds the features of an image's boxes, with keypoints and masks where the options ask for them. */
mr_status coco_put(const source *source, const row *row, const kept_box *kept, size_t count, const image_facts *facts,
                   const features *to, mr_error *error);

#endif
