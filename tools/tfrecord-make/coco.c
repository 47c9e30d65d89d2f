/* COCO's JSON: see coco.h. A scanner finds where values end, from brackets and strings alone. The elements of the
 * three lists are parsed by jansson; other values are not parsed. */
#include "tfrecord-make/coco.h"

#include "common/arena.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t WINDOW_BYTES = (size_t)256 << 10;
/* Maximum size of one element of a list. */
static constexpr size_t ELEMENT_BYTES_MAX = (size_t)64 << 20;
static constexpr int DEPTH_MAX = 1000;
/* Maximum number of keypoints of an object. */
static constexpr size_t POINTS_MAX = 10'000;

typedef struct scanner {
    const mr_input_file *file;
    const coco_functions *functions;
    void *context;
    char *bytes; /* owned */
    size_t capacity, begin, end;
    size_t at;       /* of the next byte */
    uint64_t offset; /* of bytes[0] */
    uint64_t index;  /* of the element in its list */
    uint32_t lists;  /* one bit for each of "images", "annotations" and "categories" that has been read */
    bool has_ended;
} scanner;

static mr_status fail_at(const scanner *scanner, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "%s: byte %" PRIu64 ": %s", mr_input_file_name(scanner->file),
                   scanner->offset + scanner->at, reason);
}

/* Reads more of the file. Bytes before begin are discarded. */
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
        if (kept >= ELEMENT_BYTES_MAX) return fail_at(scanner, "an element is larger than 64 MiB", error);
        size_t capacity = kept ? 2 * kept : WINDOW_BYTES;
        char *grown = realloc(scanner->bytes, capacity);
        if (!grown) return fail_memory(error, capacity);
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

/* Stores the next byte without consuming it; '\0' at the end. keep: bytes from begin on are kept. */
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

/* Moves past the next value. keep: its text is bytes[begin … at). */
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
            return fail_at(scanner, "the file ends inside a value", error);
        }
        if (in_string) {
            if (c == '\\') {
                scanner->at++;
                MR_TRY(peek(scanner, keep, &c, error));
                if (scanner->at == scanner->end) return fail_at(scanner, "the file ends inside a value", error);
            } else if (c == '"') {
                in_string = false;
                if (depth == 0) break;
            }
        } else if (c == '"' && !is_scalar) {
            in_string = true;
        } else if ((c == '{' || c == '[') && !is_scalar) {
            if (++depth > DEPTH_MAX) return fail_at(scanner, "values are nested too deeply", error);
        } else if ((c == '}' || c == ']') && depth > 0) {
            if (--depth == 0) break;
        } else if (depth == 0) {
            bool is_end = strchr(",]} \t\r\n:{[\"", c) != nullptr; /* also matches NUL */
            if (is_end && !is_scalar) return fail_at(scanner, "a value is missing", error);
            if (is_end) return MR_OK;
            is_scalar = true;
        }
    }
    scanner->at++;
    return MR_OK;
}

/* ---- Values that jansson rejects ---- */

/* Replaces surrogate escapes and non-ASCII bytes with blanks in the string at text, and returns its size. */
static size_t blank_string(char *text, size_t size)
{
    size_t i = 1;
    for (; i < size && text[i] != '"'; i++) {
        bool is_surrogate = i + 5 < size && text[i] == '\\' && text[i + 1] == 'u' && tolower(text[i + 2]) == 'd' &&
                            isxdigit((unsigned char)text[i + 3]) && text[i + 3] > '7' &&
                            isxdigit((unsigned char)text[i + 4]) && isxdigit((unsigned char)text[i + 5]);
        if (is_surrogate)
            memset(text + i, '?', 6);
        else if (text[i] == '\\')
            i++;
        else if ((unsigned char)text[i] >= 0x80)
            text[i] = '?';
    }
    return i < size ? i + 1 : size;
}

/* Replaces the word at text if it is NaN, Infinity or a number outside int64 and double, and returns its size. */
static size_t blank_word(char *text, size_t size)
{
    size_t count = 0;
    while (count < size && (isalnum((unsigned char)text[count]) || memchr("+-.", text[count], 3))) count++;
    if (count < 2) return 1;
    json_error_t reason;
    json_t *value = json_loadb(text, count, JSON_DECODE_ANY, &reason);
    bool is_number = (text[0] == '-' || isdigit((unsigned char)text[0])) && !value &&
                     json_error_code(&reason) == json_error_numeric_overflow;
    json_decref(value);
    const char *word = text + (text[0] == '-');
    size_t length = count - (text[0] == '-');
    if (!is_number && !(length == 3 && memcmp(word, "NaN", 3) == 0) &&
        !(length == 8 && memcmp(word, "Infinity", 8) == 0))
        return count;
    text[0] = text[1] = '"';
    memset(text + 2, ' ', count - 2);
    return count;
}

/* Parses an element that jansson rejects, after replacing values that are valid only in form: Python writes NaN, and
 * its readers accept it. Such a value becomes a string, which is not a valid number. Quotes and commas are
 * unchanged, so an element whose structure is really invalid is rejected again. Null in that case. */
static json_t *parse_blanked(const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    if (!copy) return nullptr;
    memcpy(copy, text, size);
    for (size_t i = 0; i < size;)
        i += copy[i] == '"' ? blank_string(copy + i, size - i) : blank_word(copy + i, size - i);
    json_t *element = json_loadb(copy, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, nullptr);
    free(copy);
    return element;
}

/* ---- Elements ---- */

static mr_status want_int(const json_t *element, const char *key, int64_t *value, mr_error *error)
{
    const json_t *number = json_object_get(element, key);
    if (!json_is_integer(number)) return mr_fail(error, MR_DATA_LOSS, "\"%s\" is not a whole number", key);
    *value = json_integer_value(number);
    return MR_OK;
}

/* Gets a string that can name a file or a class. */
static mr_status want_text(const json_t *value, const char *key, mr_string *text, mr_error *error)
{
    *text = (mr_string){json_string_value(value), json_string_length(value)};
    if (text->data && text->size_bytes > 0 && !memchr(text->data, '\0', text->size_bytes)) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "\"%s\" is not a string", key);
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
            return mr_fail(error, MR_DATA_LOSS, "invalid image size %" PRId64 " x %" PRId64, image.width, image.height);
    }
    return scanner->functions->image(scanner->context, &image, error);
}

/* Parses "keypoints": x, y and visibility of each. points: room for POINTS_MAX */
static mr_status take_points(const json_t *element, coco_point *points, size_t *count, mr_error *error)
{
    static const char reason[] = "\"keypoints\" is not a list of at most 10,000 groups of x, y, visibility (0, 1 or 2)";
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

/* Parses "area" and "iscrowd", which may be missing or null. */
static mr_status take_extras(const json_t *element, coco_box *box, mr_error *error)
{
    const json_t *area = json_object_get(element, "area"), *crowd = json_object_get(element, "iscrowd");
    box->has_area = area && !json_is_null(area);
    box->area = json_number_value(area);
    if (box->has_area && (!json_is_number(area) || !isfinite((float)box->area)))
        return mr_fail(error, MR_DATA_LOSS, "\"area\" is not a number in the range of float");
    box->is_crowd = json_is_true(crowd) || json_number_value(crowd) != 0;
    if (crowd && !json_is_null(crowd) && !json_is_boolean(crowd) && !json_is_number(crowd))
        return mr_fail(error, MR_DATA_LOSS, "\"iscrowd\" is neither 0 nor 1");
    return MR_OK;
}

static mr_status take_annotation(scanner *scanner, const json_t *element, mr_error *error)
{
    coco_box box = {0};
    const json_t *list = json_object_get(element, "bbox");
    if (!list || (json_is_array(list) && json_array_size(list) == 0))
        return scanner->functions->no_box(scanner->context, error);
    MR_TRY(want_int(element, "image_id", &box.image, error));
    MR_TRY(want_int(element, "category_id", &box.category, error));
    if (json_array_size(list) != 4) return mr_fail(error, MR_DATA_LOSS, "\"bbox\" is not a list of four numbers");
    double *values[] = {&box.x, &box.y, &box.width, &box.height};
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_array_get(list, i);
        *values[i] = json_number_value(value);
        if (!json_is_number(value) || !isfinite(*values[i]))
            return mr_fail(error, MR_DATA_LOSS, "\"bbox\" is not a list of four numbers");
    }
    MR_TRY(take_extras(element, &box, error));
    box.index = scanner->index;
    box.offset = scanner->offset + scanner->begin;
    box.text = (mr_string){scanner->bytes + scanner->begin, scanner->at - scanner->begin};
    if (!scanner->functions->takes_points) return scanner->functions->box(scanner->context, &box, error);
    coco_point *points = malloc(POINTS_MAX * sizeof(*points));
    if (!points) return fail_memory(error, POINTS_MAX * sizeof(*points));
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
        return mr_fail(error, MR_DATA_LOSS, "\"keypoints\" is not a list of at most %zu names", POINTS_MAX);
    mr_string *names = calloc(category.point_count + 1, sizeof(*names));
    if (!names) return fail_memory(error, category.point_count * sizeof(*names));
    mr_status status = MR_OK;
    for (size_t i = 0; i < category.point_count && status == MR_OK; i++)
        status = want_text(json_array_get(list, i), "keypoints", &names[i], error);
    category.points = names;
    if (status == MR_OK) status = scanner->functions->category(scanner->context, &category, error);
    free(names);
    return status;
}

typedef mr_status (*take_element)(scanner *scanner, const json_t *element, mr_error *error);

/* Reports an element with a fault to the caller, so that the others can still be used. An error if the fault may
 * affect any image: in a category, or in an annotation that names no image. element: null if it is not JSON */
static mr_status give_fault(scanner *scanner, const char *list, const json_t *element, mr_status status,
                            const mr_error *fault, mr_error *error)
{
    bool is_image = strcmp(list, "images") == 0, is_annotation = strcmp(list, "annotations") == 0;
    const json_t *id = is_annotation ? json_object_get(element, "image_id") : nullptr;
    mr_error named = *fault;
    status =
        mr_fail_prefix(&named, status, "%s: %s[%" PRIu64 "]", mr_input_file_name(scanner->file), list, scanner->index);
    bool is_of_none = is_annotation && !json_is_integer(id);
    if (status == MR_RESOURCE_EXHAUSTED || !element || !(is_image || is_annotation) || is_of_none)
        return mr_fail(error, status, "%s%s", named.message,
                       is_of_none ? " (an annotation without an image cannot be skipped)" : "");
    coco_fault found = {named.message, json_integer_value(id), json_is_integer(id), is_annotation};
    return scanner->functions->fault(scanner->context, &found, error);
}

/* Parses the element that was skipped last and passes it to take. */
static mr_status take_one(scanner *scanner, const char *list, take_element take, mr_error *error)
{
    assert(scanner->begin <= scanner->at && scanner->at <= scanner->end);
    const char *text = scanner->bytes + scanner->begin;
    size_t size = scanner->at - scanner->begin;
    json_error_t reason;
    mr_error fault = {0};
    mr_status status;
    json_t *element = json_loadb(text, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, &reason);
    if (!element) {
        status = mr_fail(&fault, MR_DATA_LOSS, "%s", reason.text);
        element = parse_blanked(text, size);
    } else if (!json_is_object(element)) {
        status = mr_fail(&fault, MR_DATA_LOSS, "is not an object");
    } else {
        status = take(scanner, element, &fault);
    }
    if (status != MR_OK) status = give_fault(scanner, list, element, status, &fault, error);
    json_decref(element);
    return status;
}

/* Reads "[element, …]" of the list called name. */
static mr_status read_list(scanner *scanner, const char *name, take_element take, mr_error *error)
{
    char c;
    MR_TRY(expect(scanner, '[', "a list must start with [", error));
    MR_TRY(skip_blanks(scanner, &c, error));
    if (c == ']') {
        scanner->at++;
        return MR_OK;
    }
    for (scanner->index = 0;; scanner->index++) {
        MR_TRY(skip_value(scanner, true, error));
        MR_TRY(take_one(scanner, name, take, error));
        MR_TRY(skip_blanks(scanner, &c, error));
        scanner->at++;
        if (c == ']') return MR_OK;
        if (c != ',') {
            scanner->at--;
            return fail_at(scanner, "an element must be followed by , or ]", error);
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
        return fail_at(scanner, "expected a name in quotes", error);
    }
    const char *key = scanner->bytes + scanner->begin;
    size_t i = 0;
    while (i < 3 && (strlen(lists[i].quoted) != size || memcmp(lists[i].quoted, key, size) != 0)) i++;
    if (i < 3 && scanner->lists & 1U << i) return fail_at(scanner, "a list occurs twice", error);
    scanner->lists |= 1U << i;
    MR_TRY(expect(scanner, ':', "a name must be followed by :", error));
    return i < 3 ? read_list(scanner, lists[i].name, lists[i].take, error) : skip_value(scanner, false, error);
}

static mr_status read_object(scanner *scanner, mr_error *error)
{
    char c;
    MR_TRY(peek(scanner, false, &c, error));
    while (scanner->end - scanner->at < 3 && !scanner->has_ended) MR_TRY(read_more(scanner, error));
    if (scanner->end >= 3 && memcmp(scanner->bytes, "\xef\xbb\xbf", 3) == 0) scanner->at = 3;
    MR_TRY(expect(scanner, '{', "COCO's JSON must be an object and start with {", error));
    MR_TRY(skip_blanks(scanner, &c, error));
    while (c != '}') {
        MR_TRY(read_field(scanner, error));
        MR_TRY(skip_blanks(scanner, &c, error));
        if (c != ',' && c != '}') return fail_at(scanner, "a value must be followed by , or }", error);
        scanner->at += c == ',';
    }
    scanner->at++;
    MR_TRY(skip_blanks(scanner, &c, error));
    return scanner->at == scanner->end ? MR_OK
                                       : fail_at(scanner, "the file continues after the end of its object", error);
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
    if (!text) return fail_memory(error, size_bytes);
    mr_status status = mr_input_file_read(file, offset, text, size_bytes, &done, error);
    *annotation = status == MR_OK ? json_loadb(text, done, JSON_ALLOW_NUL, &reason) : nullptr;
    free(text);
    if (status != MR_OK || *annotation) return status;
    return mr_fail(error, MR_DATA_LOSS, "%s: has changed since it was listed", mr_input_file_name(file));
}
