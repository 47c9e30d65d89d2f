/* The COCO source: the JSON lists images and boxes. Each image is a row, also one without boxes. Boxes stay in
 * memory, sorted by image. A label is the number of its category, as is usual with COCO. */
#include "tfrecord-make/source_coco.h"
#include "tfrecord-make/make.h"

#include "common/file.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static constexpr int64_t CATEGORY_MAX = 1'000'000;
static const char stray_boxes[] =
    "box of an image that is not listed left out|boxes of images that are not listed left out";

typedef struct listing {
    source *source;
    coco *coco;
} listing;

/* ---- Listing ---- */

static mr_status take_image(void *context, const coco_image *image, mr_error *error)
{
    listing *listing = context;
    source *source = listing->source;
    coco *coco = listing->coco;
    int64_t count = source->row_count;
    assert(count == coco->image_count);
    if ((count & (count - 1)) == 0) {
        size_t size = (size_t)(count ? 2 * count : 1) * sizeof(listed);
        listed *grown = realloc(coco->images, size);
        if (!grown) return fail_memory(error, size);
        coco->images = grown;
    }
    coco->images[count] = (listed){image->id, (int32_t)image->width, (int32_t)image->height};
    char *name = strndup(image->file_name.data, image->file_name.size_bytes), *path = nullptr;
    if (!name || asprintf(&path, "%s/%s", coco->directory, name) < 0) {
        free(name);
        return fail_memory(error, image->file_name.size_bytes);
    }
    row row = {.name = name, .position = (uint64_t)count, .label = -1};
    filter_match(source, &row, name);
    struct stat about;
    if (stat(*name == '/' ? name : path, &about) == 0) {
        file_stamp stamp = file_stamp_from(&about);
        row.size_bytes = stamp.size_bytes;
        row.modified_ns = stamp.modified_ns;
    }
    mr_status status = source_note_path(source, name, error);
    if (status == MR_OK) status = source_add_row(source, &row, error);
    coco->image_count = source->row_count;
    free(name);
    free(path);
    return status;
}

/* With --on-error skip, an element that cannot be used excludes its image, and nothing else. */
static mr_status take_fault(void *context, const coco_fault *fault, mr_error *error)
{
    listing *listing = context;
    coco *coco = listing->coco;
    int64_t count = coco->fault_count;
    if (!listing->source->options->skip_bad) return mr_fail(error, MR_DATA_LOSS, "%s", fault->message);
    if ((count & (count - 1)) == 0) {
        size_t size = (size_t)(count ? 2 * count : 1) * sizeof(*fault);
        coco_fault *grown = realloc(coco->faults, size);
        if (!grown) return fail_memory(error, size);
        coco->faults = grown;
    }
    const char *kept = source_keep(listing->source, fault->message, strlen(fault->message));
    if (!kept) return fail_memory(error, strlen(fault->message));
    coco->faults[coco->fault_count++] = (coco_fault){kept, fault->image, fault->has_image, fault->is_annotation};
    return MR_OK;
}

static mr_status keep_points(coco *coco, const coco_box *given, mr_error *error)
{
    size_t count = coco->point_count + given->point_count;
    if (count > coco->point_capacity) {
        size_t capacity = count > 2 * coco->point_capacity ? count : 2 * coco->point_capacity;
        coco_point *grown = realloc(coco->points, capacity * sizeof(coco_point));
        if (!grown) return fail_memory(error, capacity * sizeof(coco_point));
        coco->points = grown;
        coco->point_capacity = capacity;
    }
    if (given->point_count > 0)
        memcpy(coco->points + coco->point_count, given->points, given->point_count * sizeof(coco_point));
    coco->point_count = count;
    return MR_OK;
}

/* Stores the position of an annotation, which is read again for its mask. */
static mr_status keep_span(coco *coco, const coco_box *given, mr_error *error)
{
    if (given->index >= coco->span_capacity) {
        size_t capacity = 2 * (size_t)given->index + 64, size = capacity * sizeof(span);
        span *grown = realloc(coco->spans, size);
        if (!grown) return fail_memory(error, size);
        coco->spans = grown;
        coco->span_capacity = capacity;
    }
    coco->spans[given->index] =
        (span){given->offset, plan_hash(0, given->text.data, given->text.size_bytes), (uint32_t)given->text.size_bytes};
    return MR_OK;
}

static mr_status take_box(void *context, const coco_box *given, mr_error *error)
{
    listing *listing = context;
    coco *coco = listing->coco;
    int64_t count = coco->box_count;
    if (given->category < 0 || given->category > CATEGORY_MAX)
        return mr_fail(error, MR_DATA_LOSS, "category %" PRId64 " is not between 0 and %" PRId64, given->category,
                       CATEGORY_MAX);
    if (given->index > UINT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "too many boxes");
    if ((count & (count - 1)) == 0) {
        size_t size = (size_t)(count ? 2 * count : 1) * sizeof(kept_box);
        kept_box *grown = realloc(coco->boxes, size);
        if (!grown) return fail_memory(error, size);
        coco->boxes = grown;
    }
    if (listing->source->in->masks) MR_TRY(keep_span(coco, given, error));
    coco->boxes[coco->box_count++] =
        (kept_box){.key = given->image,
                   .box = {given->x, given->y, given->x + given->width, given->y + given->height},
                   .area = (float)(given->has_area ? given->area : given->width * given->height),
                   .has_area = given->has_area,
                   .category = (int32_t)given->category,
                   .is_crowd = given->is_crowd,
                   .order = (uint32_t)given->index,
                   .point_count = (uint32_t)given->point_count,
                   .point_begin = coco->point_count};
    return keep_points(coco, given, error);
}

static mr_status take_nothing(void *context, mr_error *error)
{
    listing *listing = context;
    return source_note(listing->source, "annotation without a box left out|annotations without a box left out",
                       "for example a caption", error);
}

/* All objects share one list of keypoint names, as in TensorFlow's records. */
static mr_status keep_names(source *source, coco *coco, const coco_category *category, mr_error *error)
{
    size_t count = category->point_count;
    if (count == 0) return MR_OK;
    bool is_same = count == coco->name_count;
    for (size_t i = 0; i < count && is_same; i++) is_same = mr_string_equal(coco->point_names[i], category->points[i]);
    if (is_same) return MR_OK;
    if (coco->point_names)
        return mr_fail(error, MR_UNIMPLEMENTED,
                       "category %" PRId64
                       " has other keypoints than an earlier category; --keypoints requires one list",
                       category->id);
    coco->point_names = calloc(count, sizeof(mr_string));
    if (!coco->point_names) return fail_memory(error, count * sizeof(mr_string));
    coco->name_count = count;
    for (size_t i = 0; i < count; i++) {
        const char *name = source_keep(source, category->points[i].data, category->points[i].size_bytes);
        if (!name) return fail_memory(error, category->points[i].size_bytes);
        coco->point_names[i] = (mr_string){name, category->points[i].size_bytes};
    }
    return MR_OK;
}

static mr_status take_category(void *context, const coco_category *category, mr_error *error)
{
    listing *listing = context;
    coco *coco = listing->coco;
    int64_t id = category->id;
    mr_string name = category->name;
    MR_TRY(keep_names(listing->source, coco, category, error));
    if (id < 0 || id > CATEGORY_MAX)
        return mr_fail(error, MR_DATA_LOSS, "category %" PRId64 " is not between 0 and %" PRId64, id, CATEGORY_MAX);
    if (id >= coco->category_count) {
        char **grown = realloc(coco->categories, ((size_t)id + 1) * sizeof(char *));
        if (!grown) return fail_memory(error, (size_t)id * sizeof(char *));
        coco->categories = grown;
        while (coco->category_count <= id) grown[coco->category_count++] = nullptr;
    }
    if (coco->categories[id]) return mr_fail(error, MR_DATA_LOSS, "category %" PRId64 " occurs twice", id);
    coco->categories[id] = source_keep(listing->source, name.data, name.size_bytes);
    return coco->categories[id] ? MR_OK : fail_memory(error, name.size_bytes);
}

/* ---- Assigning boxes to images ---- */

static int compare_ids(const void *a, const void *b, void *context)
{
    const listed *images = context;
    int64_t x = images[*(const int64_t *)a].id, y = images[*(const int64_t *)b].id;
    return (x > y) - (x < y);
}

/* Like take_fault, for faults that are detected after everything is read. */
[[gnu::format(printf, 6, 7)]] static mr_status
fail_of_image(source *source, coco *coco, int64_t image, bool is_annotation, mr_error *error, const char *format, ...)
{
    mr_error fault = {0};
    va_list args;
    va_start(args, format);
    (void)mr_fail_va(&fault, MR_DATA_LOSS, format, args);
    va_end(args);
    return take_fault(&(listing){source, coco}, &(coco_fault){fault.message, image, true, is_annotation}, error);
}

static mr_status sort_images(source *source, coco *coco, mr_error *error)
{
    size_t count = (size_t)coco->image_count;
    coco->by_id = malloc((count + 1) * sizeof(int64_t));
    if (!coco->by_id) return fail_memory(error, count * sizeof(int64_t));
    for (size_t i = 0; i < count; i++) coco->by_id[i] = (int64_t)i;
    qsort_r(coco->by_id, count, sizeof(int64_t), compare_ids, coco->images);
    for (size_t i = 1; i < count; i++) {
        int64_t id = coco->images[coco->by_id[i]].id;
        if (id == coco->images[coco->by_id[i - 1]].id)
            MR_TRY(
                fail_of_image(source, coco, id, false, error, "%s: image %" PRId64 " occurs twice", source->input, id));
    }
    return MR_OK;
}

/* The index in by_id of the first image with an id; -1: none. */
static int64_t find_image(const coco *coco, int64_t id)
{
    int64_t low = 0, high = coco->image_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, found = coco->images[coco->by_id[middle]].id;
        if (found < id)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < coco->image_count && coco->images[coco->by_id[low]].id == id;
    return is_found ? low : -1;
}

static int compare_boxes(const void *a, const void *b)
{
    const kept_box *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Whether a box can be used. A box that cannot is counted. */
static mr_status check_box(source *source, coco *coco, kept_box *kept, bool *is_good, mr_error *error)
{
    char example[64];
    bool was_cut = false;
    int64_t at = find_image(coco, kept->key), row = at < 0 ? -1 : coco->by_id[at];
    *is_good = false;
    snprintf(example, sizeof(example), "annotations[%" PRIu32 "]", kept->order);
    if (kept->category >= coco->category_count || !coco->categories[kept->category])
        return fail_of_image(source, coco, kept->key, true, error,
                             "%s: annotations[%" PRIu32 "]: category %d is not in \"categories\"", source->input,
                             kept->order, kept->category);
    if (kept->point_count > 0 && kept->point_count != coco->name_count)
        return fail_of_image(source, coco, kept->key, true, error,
                             "%s: annotations[%" PRIu32 "]: %" PRIu32 " keypoints, but %zu keypoint names",
                             source->input, kept->order, kept->point_count, coco->name_count);
    if (row < 0) return source_note(source, stray_boxes, example, error);
    kept->key = row;
    const listed *image = &coco->images[row];
    double width = image->width ? image->width : HUGE_VAL, height = image->height ? image->height : HUGE_VAL;
    *is_good = box_clip(&kept->box, width, height, &was_cut);
    if (!*is_good)
        return source_note(source,
                           "box without area inside its image left out|boxes without area inside their image left out",
                           example, error);
    return was_cut ? source_note(source, "box cut at the edge of its image|boxes cut at the edge of their image",
                                 example, error)
                   : MR_OK;
}

/* Assigns faults to the rows of their images. An image whose id cannot be read becomes a row of its own, so that it
 * is counted; for an annotation of an image that is not listed, a note is added. */
static mr_status assign_faults(source *source, coco *coco, mr_error *error)
{
    if (coco->fault_count >= UINT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "too many faults");
    for (int64_t i = 0; i < coco->fault_count; i++) {
        const coco_fault *fault = &coco->faults[i];
        uint32_t detail = (uint32_t)i + 1;
        int64_t at = fault->has_image ? find_image(coco, fault->image) : -1;
        if (at < 0 && fault->is_annotation)
            MR_TRY(source_note(source, stray_boxes, fault->message, error));
        else if (at < 0)
            MR_TRY(source_add_row(
                source,
                &(row){.name = fault->message, .detail = detail, .label = -1, .is_included = true, .is_faulty = true},
                error));
        for (; at >= 0 && at < coco->image_count && coco->images[coco->by_id[at]].id == fault->image; at++) {
            row *row = &source->rows[coco->by_id[at]];
            if (row->detail == 0) row->detail = detail;
            row->is_faulty = true;
        }
    }
    return MR_OK;
}

static mr_status sort_boxes(source *source, coco *coco, mr_error *error)
{
    int64_t count = 0;
    MR_TRY(sort_images(source, coco, error));
    for (int64_t i = 0; i < coco->box_count; i++) {
        bool is_good;
        MR_TRY(check_box(source, coco, &coco->boxes[i], &is_good, error));
        if (is_good) coco->boxes[count++] = coco->boxes[i];
    }
    coco->box_count = count;
    if (count > 0) qsort(coco->boxes, (size_t)count, sizeof(kept_box), compare_boxes);
    MR_TRY(assign_faults(source, coco, error));
    free(coco->by_id);
    coco->by_id = nullptr;
    for (int64_t i = 0, j = 0; i < coco->image_count; i++) {
        row *row = &source->rows[i];
        row->position = (uint64_t)j;
        const listed *image = &coco->images[i];
        int64_t words[] = {image->id, image->width, image->height, row->is_faulty};
        row->facts_hash = plan_hash(0, words, sizeof(words));
        for (; j < count && coco->boxes[j].key == i; j++) {
            const kept_box *box = &coco->boxes[j];
            double sides[] = {box->box.xmin, box->box.ymin, box->box.xmax,
                              box->box.ymax, box->area,     2.0 * box->category + box->is_crowd};
            row->facts_hash = plan_hash(row->facts_hash, sides, sizeof(sides));
            if (coco->spans)
                row->facts_hash = plan_hash(row->facts_hash, &coco->spans[box->order].hash, sizeof(uint64_t));
            if (box->point_count > 0)
                row->facts_hash =
                    plan_hash(row->facts_hash, coco->points + box->point_begin, box->point_count * sizeof(coco_point));
        }
    }
    return MR_OK;
}

/* Labels are the categories' numbers, or with --labels the line numbers of their names. */
static mr_status set_classes(source *source, coco *coco, mr_error *error)
{
    coco->labels = calloc((size_t)coco->category_count + 1, sizeof(int32_t));
    if (!coco->labels) return fail_memory(error, (size_t)coco->category_count * sizeof(int32_t));
    if (!source->in->labels) {
        for (int64_t i = 0; i < coco->category_count; i++) {
            coco->labels[i] = (int32_t)i;
            MR_TRY(source_add_class(source, coco->categories[i], error));
        }
        return MR_OK;
    }
    names names = {0};
    int32_t *labels = nullptr;
    uint32_t number;
    mr_status status = MR_OK;
    for (int64_t i = 0; i < coco->category_count && status == MR_OK; i++) {
        if (!coco->categories[i]) continue;
        status = names_add(&names, mr_string_from(coco->categories[i]), &number, error);
        coco->labels[i] = (int32_t)number;
    }
    if (status == MR_OK) status = source_set_classes(source, &names, 0, &labels, error);
    for (int64_t i = 0; i < coco->category_count && status == MR_OK; i++)
        if (coco->categories[i]) coco->labels[i] = labels[coco->labels[i]];
    free(labels);
    names_deinit(&names);
    return status;
}

/* ---- Reading ---- */

static mr_status read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    const coco *coco = source->detail;
    if (row->detail == 0) return source_read_image(source, row, bytes, has_image, error);
    assert(row->detail <= coco->fault_count);
    const coco_fault *fault = &coco->faults[row->detail - 1];
    bool is_image = row - source->rows < coco->image_count;
    return mr_fail(error, MR_DATA_LOSS, "%s%s%s%s", fault->message, is_image ? " (" : "", is_image ? row->name : "",
                   is_image ? ")" : "");
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    const coco *coco = source->detail;
    char id[32];
    int64_t index = row - source->rows;
    snprintf(id, sizeof(id), "%" PRId64, coco->images[index].id);
    put_bytes(to, "image/filename", mr_string_from(row->name));
    put_bytes(to, "image/source_id", mr_string_from(id));
    int64_t begin = (int64_t)row->position, end = begin;
    while (end < coco->box_count && coco->boxes[end].key == index) end++;
    const kept_box *kept = end > begin ? coco->boxes + begin : nullptr;
    return coco_put(source, row, kept, (size_t)(end - begin), facts, to, error);
}

static void deinit(source *source)
{
    coco *coco = source->detail;
    mr_input_file_close(coco->file);
    free(coco->boxes);
    free(coco->spans);
    free(coco->faults);
    free(coco->points);
    free(coco->point_names);
    free(coco->images);
    free(coco->by_id);
    free(coco->categories);
    free(coco->labels);
    free(coco->directory);
    free(coco);
}

static mr_status declare(source *source, mr_error *error)
{
    static const char *const keys[] = {"image/filename", "image/source_id", "image/object/is_crowd",
                                       "image/object/area"};
    static const char *const point_keys[] = {"image/object/keypoint/x", "image/object/keypoint/y",
                                             "image/object/keypoint/visibility", "image/object/keypoint/text",
                                             "image/object/keypoint/num"};
    MR_TRY(boxes_declare(source, error));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) MR_TRY(source_declare(source, keys[i], error));
    for (size_t i = 0; source->in->keypoints && i < sizeof(point_keys) / sizeof(point_keys[0]); i++)
        MR_TRY(source_declare(source, point_keys[i], error));
    return source->in->masks ? source_declare(source, "image/object/mask", error) : MR_OK;
}

/* Hashes what determines all records: names of classes and keypoints, and whether masks are written. */
static void hash_facts(source *source, const coco *coco)
{
    source->facts_hash = plan_hash(source->facts_hash, &source->in->masks, sizeof(source->in->masks));
    for (size_t i = 0; i < coco->name_count; i++)
        source->facts_hash = plan_hash(source->facts_hash, coco->point_names[i].data, coco->point_names[i].size_bytes);
    for (int32_t i = 0; i < source->class_count; i++) {
        const char *name = source->classes[i] ? source->classes[i] : "";
        source->facts_hash = plan_hash(source->facts_hash, name, strlen(name));
    }
}

mr_status source_coco_open(source *source, mr_error *error)
{
    static const source_functions functions = {.image = read_image, .add_features = add_features, .deinit = deinit};
    const coco_functions take = {.image = take_image,
                                 .box = take_box,
                                 .no_box = take_nothing,
                                 .category = take_category,
                                 .fault = take_fault,
                                 .takes_points = source->in->keypoints};
    coco *coco = calloc(1, sizeof(*coco));
    if (!coco) return fail_memory(error, sizeof(*coco));
    source->detail = coco;
    source->functions = &functions;
    source->has_images = source->has_boxes = true;
    if (!source->in->images)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the image directory is unknown; specify it with --images DIR",
                       source->input);
    coco->directory = strdup(source->in->images);
    if (!coco->directory) return fail_memory(error, strlen(source->in->images));
    source->directory = coco->directory;
    MR_TRY(mr_input_file_open(source->input, true, &coco->file, error));
    MR_TRY(coco_read(coco->file, &take, &(listing){source, coco}, error));
    if (source->row_count == 0)
        return mr_fail(error, MR_NOT_FOUND, "%s: lists no images; \"images\" is missing or empty", source->input);
    if (source->in->keypoints && coco->name_count == 0)
        return mr_fail(error, MR_NOT_FOUND, "%s: no category has \"keypoints\", the names of its keypoints",
                       source->input);
    MR_TRY(sort_boxes(source, coco, error));
    MR_TRY(set_classes(source, coco, error));
    hash_facts(source, coco);
    return declare(source, error);
}
