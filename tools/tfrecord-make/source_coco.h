/* COCO's boxes in memory: data that listing (source_coco.c) keeps for writing records (source_coco_put.c). */
#ifndef MR_TOOLS_TFRECORD_MAKE_SOURCE_COCO_H
#define MR_TOOLS_TFRECORD_MAKE_SOURCE_COCO_H

#include "tfrecord-make/boxes.h"
#include "tfrecord-make/coco.h"

/* 64 bytes for each box. */
typedef struct kept_box {
    int64_t key; /* the image's id; after listing, its row */
    box box;     /* pixels; inside the image if its size is known */
    float area;  /* the area of the unclipped box if the annotation has none */
    int32_t category : 30;
    uint32_t is_crowd : 1;
    uint32_t has_area : 1;
    uint32_t order;       /* the number of the annotation in the file */
    uint32_t point_count; /* in coco.points, starting at point_begin */
    uint64_t point_begin;
} kept_box;

typedef struct listed {
    int64_t id;
    int32_t width, height;
} listed;

/* The position of an annotation's JSON, which is read again for its mask. */
typedef struct span {
    uint64_t offset, hash;
    uint32_t size_bytes;
} span;

typedef struct coco {
    mr_input_file *file; /* owned; the JSON */
    kept_box *boxes;     /* owned */
    span *spans;         /* owned; with --masks, for all boxes, indexed by kept_box.order */
    size_t span_capacity;
    int64_t box_count, image_count;
    coco_fault *faults; /* owned; messages in the source's arena. row.detail is an index into these plus one */
    int64_t fault_count;
    coco_point *points; /* owned */
    size_t point_count, point_capacity;
    mr_string *point_names; /* owned array; names in the source's arena. The same for every category with keypoints */
    size_t name_count;
    listed *images;    /* owned; by row, for the first image_count rows */
    int64_t *by_id;    /* owned; rows, sorted by id; only while listing */
    char **categories; /* owned array; names in the source's arena; null for numbers without a category */
    int32_t *labels;   /* owned; of each category */
    int64_t category_count;
    char *directory; /* owned */
} coco;

/* Adds the features of an image's boxes, with keypoints and masks if the options request them. */
mr_status coco_put(const source *source, const row *row, const kept_box *kept, size_t count, const image_facts *facts,
                   const features *to, mr_error *error);

#endif
