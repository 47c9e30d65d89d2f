/* Pascal VOC: see voc.h. A text is identified by the path of its enclosing elements, so that the boxes of an
 * object's parts are not mistaken for its own. */
#include "tfrecord-make/voc.h"

#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static constexpr size_t TEXT_BYTES_MAX = 4096, PATH_BYTES_MAX = 256, OBJECTS_MAX = 1 << 20;

typedef struct reader {
    XML_Parser parser;
    arena *arena;
    voc_annotation *annotation;
    char path[PATH_BYTES_MAX]; /* "annotation/object/bndbox" */
    size_t path_size;
    int deeper; /* depth of enclosing elements that do not fit in path */
    char text[TEXT_BYTES_MAX];
    size_t text_size;
    bool text_is_long;
    mr_status status;
    mr_error error;
} reader;

/* Stores the first failure and stops the parser. */
[[gnu::format(printf, 3, 4)]] static void stop(reader *reader, mr_status status, const char *format, ...)
{
    if (reader->status != MR_OK) return;
    va_list args;
    va_start(args, format);
    reader->status = mr_fail_va(&reader->error, status, format, args);
    va_end(args);
    (void)XML_StopParser(reader->parser, XML_FALSE);
}

static bool is_at(const reader *reader, const char *path)
{
    return reader->deeper == 0 && strcmp(reader->path, path) == 0;
}

static void add_object(reader *reader)
{
    voc_annotation *annotation = reader->annotation;
    if (annotation->count == OBJECTS_MAX) {
        stop(reader, MR_DATA_LOSS, "more than %zu objects", OBJECTS_MAX);
        return;
    }
    if (annotation->count == annotation->capacity) {
        size_t capacity = annotation->capacity ? 2 * annotation->capacity : 8;
        voc_object *grown = ARENA_NEW(reader->arena, voc_object, capacity);
        if (!grown) {
            stop(reader, MR_RESOURCE_EXHAUSTED, "out of memory (%zu objects)", capacity);
            return;
        }
        if (annotation->count > 0) memcpy(grown, annotation->objects, annotation->count * sizeof(voc_object));
        annotation->objects = grown;
        annotation->capacity = capacity;
    }
    double nothing = nan("");
    annotation->objects[annotation->count++] =
        (voc_object){.name = "", .pose = "", .xmin = nothing, .ymin = nothing, .xmax = nothing, .ymax = nothing};
}

static void begin_element(void *context, const char *name, const char **attributes)
{
    reader *reader = context;
    size_t size = strlen(name);
    reader->text_size = 0;
    reader->text_is_long = false;
    if (reader->deeper > 0 || reader->path_size + size + 2 > PATH_BYTES_MAX) {
        if (++reader->deeper > 1000) stop(reader, MR_DATA_LOSS, "elements are nested too deeply");
        return;
    }
    if (reader->path_size > 0) reader->path[reader->path_size++] = '/';
    memcpy(reader->path + reader->path_size, name, size + 1);
    reader->path_size += size;
    if (is_at(reader, "annotation/object")) add_object(reader);
}

static void take_text(void *context, const char *text, int size)
{
    reader *reader = context;
    if ((size_t)size > TEXT_BYTES_MAX - 1 - reader->text_size) {
        reader->text_is_long = true;
        return;
    }
    memcpy(reader->text + reader->text_size, text, (size_t)size);
    reader->text_size += (size_t)size;
}

/* The text of the element that ends, without surrounding blanks. */
static char *trimmed(reader *reader)
{
    static const char blanks[] = " \t\r\n";
    reader->text[reader->text_size] = '\0';
    while (reader->text_size > 0 && strchr(blanks, reader->text[reader->text_size - 1]))
        reader->text[--reader->text_size] = '\0';
    return reader->text + strspn(reader->text, blanks);
}

static void set_text(reader *reader, const char **target)
{
    char *copy = arena_strdup(reader->arena, trimmed(reader));
    if (copy)
        *target = copy;
    else
        stop(reader, MR_RESOURCE_EXHAUSTED, "out of memory");
}

/* Parses digits, optionally with a point and an exponent. */
static double number_of(reader *reader)
{
    char *text = trimmed(reader), *end;
    double value = strtod(text, &end);
    if (*text && !*end && isfinite(value) && strspn(text, "+-.0123456789eE") == strlen(text)) return value;
    stop(reader, MR_DATA_LOSS, "%s is not a number: \"%.60s\"", reader->path, text);
    return 0;
}

/* Parses a number, or the words that some programs write; an empty text is false. */
static bool flag_of(reader *reader)
{
    static const char *const words[] = {"", "false", "no", "unspecified", "true", "yes"};
    const char *text = trimmed(reader);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(text, words[i]) == 0) return i >= 4;
    return number_of(reader) != 0;
}

static int64_t size_of(reader *reader)
{
    double value = number_of(reader);
    if (value >= 0 && value <= INT32_MAX && value == floor(value)) return (int64_t)value;
    stop(reader, MR_DATA_LOSS, "%s has an invalid value: %g", reader->path, value);
    return 0;
}

static void take_object_value(reader *reader, voc_object *object, const char *what)
{
    if (strcmp(what, "name") == 0)
        set_text(reader, &object->name);
    else if (strcmp(what, "pose") == 0)
        set_text(reader, &object->pose);
    else if (strcmp(what, "truncated") == 0)
        object->is_truncated = flag_of(reader);
    else if (strcmp(what, "difficult") == 0)
        object->is_difficult = flag_of(reader);
    else if (strcmp(what, "bndbox/xmin") == 0)
        object->xmin = number_of(reader);
    else if (strcmp(what, "bndbox/ymin") == 0)
        object->ymin = number_of(reader);
    else if (strcmp(what, "bndbox/xmax") == 0)
        object->xmax = number_of(reader);
    else if (strcmp(what, "bndbox/ymax") == 0)
        object->ymax = number_of(reader);
}

static void take_value(reader *reader)
{
    static const char object[] = "annotation/object/";
    voc_annotation *annotation = reader->annotation;
    bool is_in_object = strncmp(reader->path, object, sizeof(object) - 1) == 0;
    if (is_at(reader, "annotation/filename"))
        set_text(reader, &annotation->file_name);
    else if (is_at(reader, "annotation/size/width"))
        annotation->width = size_of(reader);
    else if (is_at(reader, "annotation/size/height"))
        annotation->height = size_of(reader);
    else if (is_in_object && annotation->count > 0)
        take_object_value(reader, &annotation->objects[annotation->count - 1], reader->path + sizeof(object) - 1);
}

static void end_element(void *context, const char *name)
{
    reader *reader = context;
    if (reader->deeper > 0) {
        reader->deeper--;
        return;
    }
    /* A long text, such as a description, is not a value that is needed here. */
    if (!reader->text_is_long) take_value(reader);
    reader->text_size = 0;
    char *slash = strrchr(reader->path, '/');
    reader->path_size = slash ? (size_t)(slash - reader->path) : 0;
    reader->path[reader->path_size] = '\0';
}

static void reject_doctype(void *context, const char *name, const char *system, const char *public_id, int has_subset)
{
    stop(context, MR_UNIMPLEMENTED, "a document type (<!DOCTYPE) is not supported");
}

static mr_status check_objects(voc_annotation *annotation, mr_error *error)
{
    for (size_t i = 0; i < annotation->count; i++) {
        voc_object *object = &annotation->objects[i];
        if (!*object->name) return mr_fail(error, MR_DATA_LOSS, "object %zu has no name", i + 1);
        if (isnan(object->xmin + object->ymin + object->xmax + object->ymax))
            return mr_fail(error, MR_DATA_LOSS, "object %zu (%s) has no complete bndbox", i + 1, object->name);
    }
    return MR_OK;
}

/* Handles names of Latin-1 and of Windows-1252, which expat does not know. */
static int find_encoding(void *context, const char *name, XML_Encoding *encoding)
{
    static const char *const names[] = {"latin1", "latin-1", "l1", "iso8859-1", "cp1252", "windows-1252"};
    /* Code points of the bytes 0x80 … 0x9f in Windows-1252; -1: none. */
    static const int windows[32] = {0x20ac, -1,     0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                    0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, -1,     0x017d, -1,
                                    -1,     0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                    0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, -1,     0x017e, 0x0178};
    size_t i = 0, count = sizeof(names) / sizeof(names[0]);
    while (i < count && strcasecmp(names[i], name) != 0) i++;
    if (i == count) return XML_STATUS_ERROR;
    for (int byte = 0; byte < 256; byte++)
        encoding->map[byte] = i >= 4 && byte >= 0x80 && byte < 0xa0 ? windows[byte - 0x80] : byte;
    encoding->data = nullptr;
    encoding->convert = nullptr;
    encoding->release = nullptr;
    return XML_STATUS_OK;
}

/* encoding: overrides the one that the document declares; null: use that one */
static mr_status parse_as(mr_string xml, const char *encoding, reader *reader, enum XML_Error *code, mr_error *error)
{
    reader->parser = XML_ParserCreate(encoding);
    if (!reader->parser) return fail_memory(error, sizeof(*reader));
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(reader->parser, take_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, reject_doctype);
    XML_SetUnknownEncodingHandler(reader->parser, find_encoding, nullptr);
    enum XML_Status result = XML_Parse(reader->parser, xml.data, (int)xml.size_bytes, 1);
    unsigned long line = XML_GetCurrentLineNumber(reader->parser);
    mr_status status = reader->status;
    *code = XML_GetErrorCode(reader->parser);
    if (status != MR_OK)
        (void)mr_fail(error, status, "line %lu: %s", line, reader->error.message);
    else if (result != XML_STATUS_OK)
        status = mr_fail(error, MR_DATA_LOSS, "line %lu: not well-formed XML: %s", line, XML_ErrorString(*code));
    XML_ParserFree(reader->parser);
    return status;
}

/* Whether bytes above 127 have the form of UTF-8 sequences. */
static bool is_utf8(mr_string text)
{
    for (size_t i = 0; i < text.size_bytes;) {
        unsigned char c = (unsigned char)text.data[i++];
        int more = c < 0x80                ? 0
                   : c >= 0xc2 && c < 0xe0 ? 1
                   : c >= 0xe0 && c < 0xf0 ? 2
                   : c >= 0xf0 && c < 0xf5 ? 3
                                           : -1;
        if (more < 0) return false;
        for (; more > 0; more--)
            if (i == text.size_bytes || ((unsigned char)text.data[i++] & 0xc0) != 0x80) return false;
    }
    return true;
}

mr_status voc_parse(mr_string xml, arena *arena, voc_annotation *annotation, mr_error *error)
{
    *annotation = (voc_annotation){0};
    if (xml.size_bytes > INT32_MAX)
        return mr_fail(error, MR_DATA_LOSS, "too large for an annotation (more than 2 GiB)");
    reader *reader = calloc(1, sizeof(*reader));
    if (!reader) return fail_memory(error, sizeof(*reader));
    *reader = (struct reader){.arena = arena, .annotation = annotation};
    enum XML_Error code;
    mr_status status = parse_as(xml, nullptr, reader, &code, error);
    if (status == MR_DATA_LOSS && code == XML_ERROR_INVALID_TOKEN && !is_utf8(xml)) {
        *annotation = (voc_annotation){.is_latin1 = true};
        *reader = (struct reader){.arena = arena, .annotation = annotation};
        status = parse_as(xml, "ISO-8859-1", reader, &code, error);
    }
    free(reader);
    return status == MR_OK ? check_objects(annotation, error) : status;
}
