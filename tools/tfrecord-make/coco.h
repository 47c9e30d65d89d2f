/* A streaming reader of COCO's JSON annotations. The file is an object with the lists "images", "annotations" and
 * "categories". Their elements are parsed one at a time; everything else is skipped. Memory: the largest element. */
#ifndef MR_TOOLS_TFRECORD_MAKE_COCO_H
#define MR_TOOLS_TFRECORD_MAKE_COCO_H

#include <jansson.h>
#include <millrace/formats.h>

typedef struct coco_image {
    int64_t id, width, height; /* width and height 0: unknown */
    mr_string file_name;       /* borrowed for the call; without NUL */
} coco_image;

/* A keypoint. Visibility 0: not labeled (x and y are then 0); 1: labeled but hidden; 2: visible. */
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
    mr_string text;           /* of the annotation; borrowed for the call */
    const coco_point *points; /* borrowed for the call */
    size_t point_count;       /* 0: no keypoints */
} coco_box;

typedef struct coco_category {
    int64_t id;
    mr_string name;          /* borrowed for the call, like the others; without NUL */
    const mr_string *points; /* names of keypoints */
    size_t point_count;
} coco_category;

/* An image or an annotation that cannot be used. Only annotations have an image id, and each has one. */
typedef struct coco_fault {
    const char *message; /* includes the file's name and the element's position; borrowed for the call */
    int64_t image;       /* its id */
    bool has_image, is_annotation;
} coco_fault;

/* Called in the order of the file. Annotations may precede the images and categories that they refer to. */
typedef struct coco_functions {
    mr_status (*image)(void *context, const coco_image *image, mr_error *error);
    mr_status (*box)(void *context, const coco_box *box, mr_error *error);
    mr_status (*no_box)(void *context, mr_error *error); /* an annotation without a box: a caption */
    mr_status (*category)(void *context, const coco_category *category, mr_error *error);
    mr_status (*fault)(void *context, const coco_fault *fault,
                       mr_error *error); /* MR_OK continues with the next element */
    bool takes_points;                   /* otherwise "keypoints" are skipped unchecked */
} coco_functions;
/* errors  MR_DATA_LOSS naming the byte or the element: invalid JSON, a fault in a category, an annotation that names
 *         no image; and errors of the callbacks */
mr_status coco_read(const mr_input_file *file, const coco_functions *functions, void *context, mr_error *error);
/* Parses an annotation again, at the position that coco_box reported. Free with json_decref; safe from any thread. */
mr_status coco_annotation_at(const mr_input_file *file, uint64_t offset, uint32_t size_bytes, json_t **annotation,
                             mr_error *error);

#endif
