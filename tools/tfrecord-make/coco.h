/* COCO's JSON of boxes, read value by value: the file is an object whose "images", "annotations" and "categories" are lists;
 * of these one element at a time is parsed, everything else is passed over. Memory: the largest element. */
#ifndef MR_TOOLS_TFRECORD_MAKE_COCO_H
#define MR_TOOLS_TFRECORD_MAKE_COCO_H

#include <jansson.h>
#include <millrace/formats.h>

typedef struct coco_image {
    int64_t id, width, height; /* width and height 0: not said */
    mr_string file_name;       /* borrowed for the call; without NUL */
} coco_image;

/* A keypoint: visibility 0 is not labelled (x and y are then 0), 1 is hidden, 2 is seen. */
typedef struct coco_point {
    float x, y; /* finite; pixels */
    int32_t visibility;
} coco_point;

typedef struct coco_box {
    int64_t image, category;
    double x, y, width, height; /* finite; pixels */
    double area;
    bool has_area, is_crowd;
    uint64_t index;           /* of the annotation in its list */
    uint64_t offset;          /* of the annotation in the file, for coco_annotation_at */
    mr_string text;           /* of it; borrowed for the call */
    const coco_point *points; /* borrowed for the call */
    size_t point_count;       /* 0: it has none */
} coco_box;

typedef struct coco_category {
    int64_t id;
    mr_string name;          /* borrowed for the call, as the others; without NUL */
    const mr_string *points; /* names of keypoints */
    size_t point_count;
} coco_category;

/* An image or an annotation that cannot be used. Only annotations have an image, and each has one. */
typedef struct coco_fault {
    const char *message; /* with the file's name and the element's place; borrowed for the call */
    int64_t image;       /* its id */
    bool has_image, is_annotation;
} coco_fault;

/* Called in the order of the file, where annotations may come before what they speak of. */
typedef struct coco_functions {
    mr_status (*image)(void *context, const coco_image *image, mr_error *error);
    mr_status (*box)(void *context, const coco_box *box, mr_error *error);
    mr_status (*no_box)(void *context, mr_error *error); /* an annotation without a box: a caption */
    mr_status (*category)(void *context, const coco_category *category, mr_error *error);
    mr_status (*fault)(void *context, const coco_fault *fault,
                       mr_error *error); /* MR_OK goes on with the next element */
    bool takes_points;                   /* else "keypoints" are passed over, whatever they are */
} coco_functions;
/* errors  MR_DATA_LOSS with the byte or the element: no JSON, a category's fault, an annotation that names no image; what the
 *         functions return */
mr_status coco_read(const mr_input_file *file, const coco_functions *functions, void *context, mr_error *error);
/* Parses an annotation again, as coco_box says where it is. json_decref; safe from any thread. */
mr_status coco_annotation_at(const mr_input_file *file, uint64_t offset, uint32_t size_bytes, json_t **annotation,
                             mr_error *error);

#endif
