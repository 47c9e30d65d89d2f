/* COCO's JSON: see coco.h. A scanner finds where values end (brackets and strings, nothing more); what lies between is
 * jansson's, or nobody's. */
#include "tools/tfrecord-make/coco.h"

#include "base/arena.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t WINDOW_BYTES = (size_t)256 << 10;
/* Of one element, of which the lists hold many. */
static constexpr size_t ELEMENT_BYTES_MAX = (size_t)64 << 20;
static constexpr int DEPTH_MAX = 1000;
/* Of an object. */
static constexpr size_t POINTS_MAX = 10'000;

typedef struct scanner {
    const mr_input_file *file;
    const coco_functions *functions;
    void *context;
    char *bytes; /* owned */
    size_t capacity, begin, end;
    size_t at;       /* of the next byte */
    uint64_t offset; /* of bytes[0] */
    bool has_ended;
} scanner;

static mr_status fail_at(const scanner *scanner, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "%s: byte %" PRIu64 ": %s", mr_input_file_name(scanner->file),
                   scanner->offset + scanner->at, reason);
}

/* Reads on; what lies before begin is let go. */
static mr_status read_more(scanner *scanner, mr_error *error)
{
    assert(scanner->begin <= scanner->at && scanner->at <= scanner->end && scanner->end <= scanner->capacity);
    size_t kept = scanner->end - scanner->begin, done;
    if (scanner->begin > 0) {
        memmove(scanner->bytes, scanner->bytes + scanner->begin, kept);
        scanner->offset += scanner->begin;
        scanner->at -= scanner->begin;
        scanner->begin = 0;
        scanner->end = kept;
    }
    if (kept == scanner->capacity) {
        if (kept >= ELEMENT_BYTES_MAX) return fail_at(scanner, "one element has more than 64 MiB", error);
        size_t capacity = kept ? 2 * kept : WINDOW_BYTES;
        char *grown = realloc(scanner->bytes, capacity);
        if (!grown) return mr_fail_memory(error, capacity);
        scanner->bytes = grown;
        scanner->capacity = capacity;
    }
    MR_TRY(mr_input_file_read(scanner->file, scanner->offset + kept, scanner->bytes + kept, scanner->capacity - kept,
                              &done, error));
    scanner->end += done;
    assert(scanner->end <= scanner->capacity);
    scanner->has_ended = done == 0;
    return MR_OK;
}

/* The next byte, which is not taken; '\0' at the end. keep: what lies behind begin stays. */
static mr_status peek(scanner *scanner, bool keep, char *c, mr_error *error)
{
    if (!keep) scanner->begin = scanner->at;
    while (scanner->at == scanner->end && !scanner->has_ended) MR_TRY(read_more(scanner, error));
    *c = scanner->at < scanner->end ? scanner->bytes[scanner->at] : '\0';
    return MR_OK;
}

static mr_status skip_blanks(scanner *scanner, char *c, mr_error *error)
{
    for (;; scanner->at++) {
        MR_TRY(peek(scanner, false, c, error));
        if (scanner->at == scanner->end || (*c != ' ' && *c != '\t' && *c != '\n' && *c != '\r')) return MR_OK;
    }
}

static mr_status expect(scanner *scanner, char wanted, const char *reason, mr_error *error)
{
    char c;
    MR_TRY(skip_blanks(scanner, &c, error));
    if (c != wanted) return fail_at(scanner, reason, error);
    scanner->at++;
    return MR_OK;
}

/* Goes behind the next value. keep: its text is bytes[begin … at). */
static mr_status skip_value(scanner *scanner, bool keep, mr_error *error)
{
    char c;
    int depth = 0;
    bool in_string = false, is_scalar = false;
    MR_TRY(skip_blanks(scanner, &c, error));
    scanner->begin = scanner->at;
    for (;; scanner->at++) {
        MR_TRY(peek(scanner, keep, &c, error));
        if (scanner->at == scanner->end) {
            if (is_scalar) return MR_OK;
            return fail_at(scanner, "the file ends inside of a value", error);
        }
        if (in_string) {
            if (c == '\\') {
                scanner->at++;
                MR_TRY(peek(scanner, keep, &c, error));
                if (scanner->at == scanner->end) return fail_at(scanner, "the file ends inside of a value", error);
            } else if (c == '"') {
                in_string = false;
                if (depth == 0) break;
            }
        } else if (c == '"' && !is_scalar) {
            in_string = true;
        } else if ((c == '{' || c == '[') && !is_scalar) {
            if (++depth > DEPTH_MAX) return fail_at(scanner, "values lie too deep in each other", error);
        } else if ((c == '}' || c == ']') && depth > 0) {
            if (--depth == 0) break;
        } else if (depth == 0) {
            bool is_end = strchr(",]} \t\r\n:{[\"", c) != nullptr; /* also NUL */
            if (is_end && !is_scalar) return fail_at(scanner, "a value is missing", error);
            if (is_end) return MR_OK;
            is_scalar = true;
        }
    }
    scanner->at++;
    return MR_OK;
}

/* ---- Elements ---- */

static mr_status want_int(const json_t *element, const char *key, int64_t *value, mr_error *error)
{
    const json_t *number = json_object_get(element, key);
    if (!json_is_integer(number)) return mr_fail(error, MR_DATA_LOSS, "\"%s\" is no whole number", key);
    *value = json_integer_value(number);
    return MR_OK;
}

/* A text that can name a file or a class. */
static mr_status want_text(const json_t *value, const char *key, mr_string *text, mr_error *error)
{
    *text = (mr_string){json_string_value(value), json_string_length(value)};
    if (text->data && text->size_bytes > 0 && !memchr(text->data, '\0', text->size_bytes)) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "\"%s\" is no text", key);
}

static mr_status take_image(scanner *scanner, const json_t *element, mr_error *error)
{
    coco_image image = {0};
    MR_TRY(want_int(element, "id", &image.id, error));
    MR_TRY(want_text(json_object_get(element, "file_name"), "file_name", &image.file_name, error));
    if (json_object_get(element, "width") || json_object_get(element, "height")) {
        MR_TRY(want_int(element, "width", &image.width, error));
        MR_TRY(want_int(element, "height", &image.height, error));
        if (image.width <= 0 || image.height <= 0 || image.width > INT32_MAX || image.height > INT32_MAX)
            return mr_fail(error, MR_DATA_LOSS, "a picture of %" PRId64 " x %" PRId64 " cannot be", image.width,
                           image.height);
    }
    return scanner->functions->image(scanner->context, &image, error);
}

/* "keypoints": x, y and visibility of each. points: POINTS_MAX */
static mr_status take_points(const json_t *element, coco_point *points, size_t *count, mr_error *error)
{
    static const char reason[] = "\"keypoints\" is no list of x, y, visibility (0, 1 or 2), at most 10,000 times";
    const json_t *list = json_object_get(element, "keypoints");
    size_t size = json_array_size(list);
    *count = size / 3;
    if (!list) return MR_OK;
    if (!json_is_array(list) || size % 3 != 0 || *count > POINTS_MAX) return mr_fail(error, MR_DATA_LOSS, "%s", reason);
    for (size_t i = 0; i < *count; i++) {
        const json_t *x = json_array_get(list, 3 * i), *y = json_array_get(list, 3 * i + 1),
                     *seen = json_array_get(list, 3 * i + 2);
        points[i] = (coco_point){(float)json_number_value(x), (float)json_number_value(y), 0};
        if (!json_is_number(x) || !json_is_number(y) || !isfinite(points[i].x) || !isfinite(points[i].y) ||
            !json_is_integer(seen) || json_integer_value(seen) < 0 || json_integer_value(seen) > 2)
            return mr_fail(error, MR_DATA_LOSS, "%s", reason);
        points[i].visibility = (int32_t)json_integer_value(seen);
        if (points[i].visibility == 0) points[i] = (coco_point){0};
    }
    return MR_OK;
}

static mr_status take_annotation(scanner *scanner, const json_t *element, mr_error *error)
{
    coco_box box = {0};
    const json_t *list = json_object_get(element, "bbox"), *area = json_object_get(element, "area");
    if (!list || (json_is_array(list) && json_array_size(list) == 0))
        return scanner->functions->no_box(scanner->context, error);
    MR_TRY(want_int(element, "image_id", &box.image, error));
    MR_TRY(want_int(element, "category_id", &box.category, error));
    if (json_array_size(list) != 4) return mr_fail(error, MR_DATA_LOSS, "\"bbox\" is no list of four numbers");
    double *values[] = {&box.x, &box.y, &box.width, &box.height};
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_array_get(list, i);
        *values[i] = json_number_value(value);
        if (!json_is_number(value) || !isfinite(*values[i]))
            return mr_fail(error, MR_DATA_LOSS, "\"bbox\" is no list of four numbers");
    }
    box.has_area = json_is_number(area) && isfinite((float)json_number_value(area));
    box.area = box.has_area ? json_number_value(area) : 0;
    box.offset = scanner->offset + scanner->begin;
    box.text = (mr_string){scanner->bytes + scanner->begin, scanner->at - scanner->begin};
    const json_t *crowd = json_object_get(element, "iscrowd");
    box.is_crowd = json_is_true(crowd) || json_integer_value(crowd) != 0;
    if (!scanner->functions->takes_points) return scanner->functions->box(scanner->context, &box, error);
    coco_point *points = malloc(POINTS_MAX * sizeof(*points));
    if (!points) return mr_fail_memory(error, POINTS_MAX * sizeof(*points));
    mr_status status = take_points(element, points, &box.point_count, error);
    box.points = points;
    if (status == MR_OK) status = scanner->functions->box(scanner->context, &box, error);
    free(points);
    return status;
}

static mr_status take_category(scanner *scanner, const json_t *element, mr_error *error)
{
    coco_category category = {0};
    MR_TRY(want_int(element, "id", &category.id, error));
    MR_TRY(want_text(json_object_get(element, "name"), "name", &category.name, error));
    const json_t *list = json_object_get(element, "keypoints");
    if (!scanner->functions->takes_points || !list)
        return scanner->functions->category(scanner->context, &category, error);
    category.point_count = json_array_size(list);
    if (!json_is_array(list) || category.point_count > POINTS_MAX)
        return mr_fail(error, MR_DATA_LOSS, "\"keypoints\" is no list of at most %zu names", POINTS_MAX);
    mr_string *names = calloc(category.point_count + 1, sizeof(*names));
    if (!names) return mr_fail_memory(error, category.point_count * sizeof(*names));
    mr_status status = MR_OK;
    for (size_t i = 0; i < category.point_count && status == MR_OK; i++)
        status = want_text(json_array_get(list, i), "keypoints", &names[i], error);
    category.points = names;
    if (status == MR_OK) status = scanner->functions->category(scanner->context, &category, error);
    free(names);
    return status;
}

typedef mr_status (*take_element)(scanner *scanner, const json_t *element, mr_error *error);

/* Hands an element with a fault on, so that the others can still be used. Categories are of all pictures. */
static mr_status give_fault(scanner *scanner, const char *list, uint64_t index, const json_t *element, mr_status status,
                            const mr_error *fault, mr_error *error)
{
    const json_t *id = json_object_get(element, "image_id");
    mr_error named = *fault;
    status = mr_fail_in(&named, status, "%s: %s[%" PRIu64 "]", mr_input_file_name(scanner->file), list, index);
    if (status == MR_RESOURCE_EXHAUSTED || strcmp(list, "categories") == 0)
        return mr_fail(error, status, "%s", named.message);
    int64_t image = json_integer_value(id);
    return scanner->functions->fault(scanner->context, named.message, json_is_integer(id) ? &image : nullptr, error);
}

/* The element whose text was skipped last. */
static mr_status take_one(scanner *scanner, const char *list, uint64_t index, take_element take, mr_error *error)
{
    assert(scanner->begin <= scanner->at && scanner->at <= scanner->end);
    json_error_t reason;
    mr_error fault = {0};
    mr_status status;
    json_t *element = json_loadb(scanner->bytes + scanner->begin, scanner->at - scanner->begin,
                                 JSON_ALLOW_NUL | JSON_DECODE_ANY, &reason);
    if (!element)
        status = mr_fail(&fault, MR_DATA_LOSS, "%s", reason.text);
    else if (!json_is_object(element))
        status = mr_fail(&fault, MR_DATA_LOSS, "is no object");
    else
        status = take(scanner, element, &fault);
    if (status != MR_OK) status = give_fault(scanner, list, index, element, status, &fault, error);
    json_decref(element);
    return status;
}

/* "[element, …]" of a list called name. */
static mr_status read_list(scanner *scanner, const char *name, take_element take, mr_error *error)
{
    char c;
    MR_TRY(expect(scanner, '[', "a list begins with [", error));
    MR_TRY(skip_blanks(scanner, &c, error));
    if (c == ']') {
        scanner->at++;
        return MR_OK;
    }
    for (uint64_t i = 0;; i++) {
        MR_TRY(skip_value(scanner, true, error));
        MR_TRY(take_one(scanner, name, i, take, error));
        MR_TRY(skip_blanks(scanner, &c, error));
        scanner->at++;
        if (c == ']') return MR_OK;
        if (c != ',') {
            scanner->at--;
            return fail_at(scanner, "neither , nor ] follows an element", error);
        }
    }
}

static mr_status read_field(scanner *scanner, mr_error *error)
{
    static const struct {
        const char *name, *quoted;
        take_element take;
    } lists[] = {{"images", "\"images\"", take_image},
                 {"annotations", "\"annotations\"", take_annotation},
                 {"categories", "\"categories\"", take_category}};
    MR_TRY(skip_value(scanner, true, error));
    size_t size = scanner->at - scanner->begin;
    if (size < 2 || scanner->bytes[scanner->begin] != '"') {
        scanner->at = scanner->begin;
        return fail_at(scanner, "a name in quotes is missing", error);
    }
    const char *key = scanner->bytes + scanner->begin;
    size_t i = 0;
    while (i < 3 && (strlen(lists[i].quoted) != size || memcmp(lists[i].quoted, key, size) != 0)) i++;
    MR_TRY(expect(scanner, ':', "no : follows a name", error));
    return i < 3 ? read_list(scanner, lists[i].name, lists[i].take, error) : skip_value(scanner, false, error);
}

static mr_status read_object(scanner *scanner, mr_error *error)
{
    char c;
    MR_TRY(peek(scanner, false, &c, error));
    while (scanner->end - scanner->at < 3 && !scanner->has_ended) MR_TRY(read_more(scanner, error));
    if (scanner->end >= 3 && memcmp(scanner->bytes, "\xef\xbb\xbf", 3) == 0) scanner->at = 3;
    MR_TRY(expect(scanner, '{', "COCO's JSON is an object, which begins with {", error));
    MR_TRY(skip_blanks(scanner, &c, error));
    if (c == '}') return MR_OK;
    for (;;) {
        MR_TRY(read_field(scanner, error));
        MR_TRY(skip_blanks(scanner, &c, error));
        if (c == '}') return MR_OK;
        if (c != ',') return fail_at(scanner, "neither , nor } follows a value", error);
        scanner->at++;
    }
}

mr_status coco_read(const mr_input_file *file, const coco_functions *functions, void *context, mr_error *error)
{
    scanner scanner = {.file = file, .functions = functions, .context = context};
    mr_status status = read_object(&scanner, error);
    free(scanner.bytes);
    return status;
}

mr_status coco_annotation_at(const mr_input_file *file, uint64_t offset, uint32_t size_bytes, json_t **annotation,
                             mr_error *error)
{
    size_t done;
    json_error_t reason;
    char *text = malloc((size_t)size_bytes + 1);
    if (!text) return mr_fail_memory(error, size_bytes);
    mr_status status = mr_input_file_read(file, offset, text, size_bytes, &done, error);
    *annotation = status == MR_OK ? json_loadb(text, done, JSON_ALLOW_NUL, &reason) : nullptr;
    free(text);
    if (status != MR_OK || *annotation) return status;
    return mr_fail(error, MR_DATA_LOSS, "%s: has changed since it was listed", mr_input_file_name(file));
}
