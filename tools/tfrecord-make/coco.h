/* COCO's JSON of boxes, read value by value: the file is an object whose "images", "annotations" and "categories" are lists;
 * of these one element at a time is parsed, everything else is passed over. Memory: the largest element. */
#ifndef MR_TOOLS_TFRECORD_MAKE_COCO_H
#define MR_TOOLS_TFRECORD_MAKE_COCO_H

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
    double x, y, width, height, area; /* finite; pixels */
    bool is_crowd;
    const coco_point *points; /* borrowed for the call */
    size_t point_count;       /* 0: it has none */
} coco_box;

typedef struct coco_category {
    int64_t id;
    mr_string name;          /* borrowed for the call, as the others; without NUL */
    const mr_string *points; /* names of keypoints */
    size_t point_count;
} coco_category;

/* Called in the order of the file, where annotations may come before what they speak of. */
typedef struct coco_functions {
    mr_status (*image)(void *context, const coco_image *image, mr_error *error);
    mr_status (*box)(void *context, const coco_box *box, mr_error *error);
    mr_status (*no_box)(void *context, mr_error *error); /* an annotation without a box: a caption */
    mr_status (*category)(void *context, const coco_category *category, mr_error *error);
    bool takes_points; /* else "keypoints" are passed over, whatever they are */
} coco_functions;
/* errors  MR_DATA_LOSS with the byte: no JSON; with the element: what it lacks */
mr_status coco_read(const mr_input_file *file, const coco_functions *functions, void *context, mr_error *error);

#endif
