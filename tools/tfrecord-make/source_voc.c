/* Pascal VOC: an .xml for each picture, in Annotations beside JPEGImages, or all in one folder. The .xml is read once for the
 * classes and once more for its record, so that boxes need no memory. Labels begin with 1; the keys are those that
 * TensorFlow's Object Detection API makes of VOC. */
#include "tools/tfrecord-make/boxes.h"
#include "tools/tfrecord-make/make.h"
#include "tools/tfrecord-make/voc.h"

#include "records/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static constexpr size_t XML_SIZE_MAX = (size_t)16 << 20;

typedef struct voc {
    char *annotations; /* owned; the folder of the .xml */
    names names;       /* of classes */
    int32_t *labels;   /* owned; of each name */
} voc;

/* The .xml of a row: its name in the folder, which lives in the source's arena. */
static const char *xml_of(const row *row)
{
    return (const char *)(uintptr_t)row->place;
}

/* Reads and parses an .xml; errors begin with its path. */
static mr_status read_annotation(const voc *voc, const char *name, mr_arena *arena, voc_annotation *annotation,
                                 uint64_t *hash, mr_error *error)
{
    char *path = nullptr, *text = nullptr;
    size_t size;
    if (asprintf(&path, "%s/%s", voc->annotations, name) < 0) return mr_fail_memory(error, strlen(name));
    mr_status status = mr_file_read_whole(path, XML_SIZE_MAX, &text, &size, error);
    if (status == MR_OK) {
        *hash = plan_hash(0, text, size);
        status = voc_parse((mr_string){text, size}, arena, annotation, error);
        if (status != MR_OK) status = mr_fail_in(error, status, "%s", path);
    }
    free(text);
    free(path);
    return status;
}

/* ---- Which picture ---- */

/* Looks for folder/between/stem.ending; name is below the folder, owned. */
static bool try_picture(const char *folder, const char *between, const char *stem, const char *ending, char **name,
                        struct stat *about)
{
    char *path = nullptr;
    *name = nullptr;
    if (asprintf(name, "%s%s%s%s", between, *between ? "/" : "", stem, ending) < 0) {
        *name = nullptr;
        return false;
    }
    bool found = asprintf(&path, "%s/%s", folder, *name) >= 0 && stat(path, about) == 0 && S_ISREG(about->st_mode);
    free(path);
    if (!found) {
        free(*name);
        *name = nullptr;
    }
    return found;
}

/* The picture that <filename> names, or one that is called as the .xml is. Only the last part of <filename> is used: what
 * stands before it is of the machine where the boxes were drawn. */
static bool find_picture(const source *source, const char *between, const char *file_name, const char *xml, char **name,
                         struct stat *about)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG"};
    char stem[4096];
    const char *slash = file_name ? strrchr(file_name, '/') : nullptr;
    const char *back = file_name ? strrchr(file_name, '\\') : nullptr;
    const char *base = slash > back ? slash + 1 : back ? back + 1 : file_name;
    if (base && *base && strcmp(base, "..") != 0 && try_picture(source->folder, between, base, "", name, about))
        return true;
    size_t length = strlen(xml) - strlen(".xml");
    if (length >= sizeof(stem)) return false;
    memcpy(stem, xml, length);
    stem[length] = '\0';
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (try_picture(source->folder, between, stem, endings[i], name, about)) return true;
    return false;
}

/* ---- Listing ---- */

static mr_status note_boxes(source *source, const voc_annotation *annotation, const char *xml, mr_error *error)
{
    for (size_t i = 0; i < annotation->count; i++) {
        const voc_object *object = &annotation->objects[i];
        box box = {object->xmin, object->ymin, object->xmax, object->ymax};
        bool was_cut = false;
        bool is_known = annotation->width > 0 && annotation->height > 0;
        double width = is_known ? (double)annotation->width : HUGE_VAL;
        double height = is_known ? (double)annotation->height : HUGE_VAL;
        if (!box_clip(&box, width, height, &was_cut))
            MR_TRY(source_note(source, "boxes left out, without area inside of their picture", xml, error));
        else if (was_cut)
            MR_TRY(source_note(source, "boxes cut at the edge of their picture", xml, error));
    }
    return MR_OK;
}

static mr_status add_annotation(source *source, voc *voc, const char *between, const char *xml, mr_arena *arena,
                                mr_error *error)
{
    voc_annotation annotation = {0};
    mr_error fault = {0};
    row row = {.label = -1};
    char *name = nullptr;
    struct stat about = {0};
    char *kept = source_keep(source, xml, strlen(xml));
    if (!kept) return mr_fail_memory(error, strlen(xml));
    row.place = (uint64_t)(uintptr_t)kept;
    mr_status status = read_annotation(voc, xml, arena, &annotation, &row.facts_hash, &fault);
    for (size_t i = 0; i < annotation.count && status == MR_OK; i++) {
        uint32_t number;
        MR_TRY(names_add(&voc->names, mr_string_from(annotation.objects[i].name), &number, error));
    }
    if (status == MR_OK) MR_TRY(note_boxes(source, &annotation, xml, error));
    /* Without a picture, or with a fault, the row is named after its .xml, and reading it says why. */
    row.detail = status == MR_OK && find_picture(source, between, annotation.file_name, xml, &name, &about);
    if (row.detail) {
        mr_file_stamp stamp = mr_file_stamp_from(&about);
        row.size_bytes = stamp.size_bytes;
        row.modified_ns = stamp.modified_ns;
    }
    row.name = row.detail ? name : xml;
    status = source_add_row(source, &row, error);
    free(name);
    return status;
}

static int is_xml(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && source_has_ending(entry->d_name, ".xml");
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mr_status list_folder(source *source, voc *voc, const char *between, mr_error *error)
{
    struct dirent **entries = nullptr;
    mr_arena arena = {0};
    int count = scandir(voc->annotations, &entries, is_xml, compare_names);
    if (count < 0) return mr_file_fail(error, errno, "read folder", voc->annotations);
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++) {
        mr_arena_reset(&arena);
        if (status == MR_OK) status = add_annotation(source, voc, between, entries[i]->d_name, &arena, error);
        free(entries[i]);
    }
    free(entries);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Reading ---- */

static mr_status read_picture(const source *source, const row *row, source_bytes *bytes, bool *has_picture,
                              mr_error *error)
{
    const voc *voc = source->detail;
    if (row->detail) return source_read_picture(source, row, bytes, has_picture, error);
    voc_annotation annotation;
    mr_arena arena = {0};
    uint64_t hash;
    mr_status status = read_annotation(voc, xml_of(row), &arena, &annotation, &hash, error);
    if (status == MR_OK)
        status = mr_fail(error, MR_NOT_FOUND, "%s/%s: no picture \"%s\" for it", voc->annotations, xml_of(row),
                         annotation.file_name ? annotation.file_name : "");
    mr_arena_deinit(&arena);
    return status;
}

static mr_status put_objects(const source *source, const voc_annotation *annotation, const picture_facts *facts,
                             mr_arena *arena, const features *to, mr_error *error)
{
    const voc *voc = source->detail;
    size_t count = 0, most = annotation->count + 1;
    box *boxes = MR_ARENA_NEW(arena, box, most);
    int32_t *labels = MR_ARENA_NEW(arena, int32_t, most);
    int64_t *difficult = MR_ARENA_NEW(arena, int64_t, most), *truncated = MR_ARENA_NEW(arena, int64_t, most);
    mr_string *views = MR_ARENA_NEW(arena, mr_string, most);
    if (!boxes || !labels || !difficult || !truncated || !views) return mr_fail_memory(error, most * sizeof(box));
    double width = annotation->width ? (double)annotation->width : facts->stored_width;
    double height = annotation->height ? (double)annotation->height : facts->stored_height;
    for (size_t i = 0; i < annotation->count; i++) {
        const voc_object *object = &annotation->objects[i];
        bool was_cut = false;
        boxes[count] = (box){object->xmin, object->ymin, object->xmax, object->ymax};
        if (!box_clip(&boxes[count], width, height, &was_cut)) continue;
        int64_t number = names_find(&voc->names, mr_string_from(object->name));
        if (number < 0) return mr_fail(error, MR_DATA_LOSS, "has changed since it was listed");
        labels[count] = voc->labels[number];
        difficult[count] = object->is_difficult;
        truncated[count] = object->is_truncated;
        views[count++] = mr_string_from(object->pose);
    }
    MR_TRY(boxes_place(boxes, count, annotation->width, annotation->height, facts, error));
    MR_TRY(boxes_put(source, boxes, labels, count, facts, to, error));
    put_int64_list(to, "image/object/difficult", difficult, count);
    put_int64_list(to, "image/object/truncated", truncated, count);
    put_bytes_list(to, "image/object/view", views, count);
    return MR_OK;
}

static mr_status add_features(const source *source, const row *row, const picture_facts *facts, const features *to,
                              mr_error *error)
{
    const voc *voc = source->detail;
    const char *slash = strrchr(row->name, '/'), *base = slash ? slash + 1 : row->name;
    voc_annotation annotation;
    mr_arena arena = {0};
    uint64_t hash;
    put_bytes(to, "image/filename", mr_string_from(base));
    put_bytes(to, "image/source_id", mr_string_from(base));
    mr_status status = read_annotation(voc, xml_of(row), &arena, &annotation, &hash, error);
    if (status == MR_OK) {
        status = put_objects(source, &annotation, facts, &arena, to, error);
        if (status != MR_OK) status = mr_fail_in(error, status, "%s/%s", voc->annotations, xml_of(row));
    }
    mr_arena_deinit(&arena);
    return status;
}

static void deinit(source *source)
{
    voc *voc = source->detail;
    names_deinit(&voc->names);
    free(voc->annotations);
    free(voc->labels);
    free(voc);
}

mr_status source_voc_open(source *source, mr_error *error)
{
    static const source_functions functions = {.picture = read_picture, .add_features = add_features, .deinit = deinit};
    voc *voc = calloc(1, sizeof(*voc));
    if (!voc) return mr_fail_memory(error, sizeof(*voc));
    source->detail = voc;
    source->functions = &functions;
    source->has_pictures = source->has_boxes = true;
    struct stat about;
    if (asprintf(&voc->annotations, "%s/Annotations", source->input) < 0) {
        voc->annotations = nullptr;
        return mr_fail_memory(error, strlen(source->input));
    }
    const char *between = "JPEGImages";
    if (stat(voc->annotations, &about) != 0) {
        voc->annotations[strlen(source->input)] = '\0';
        between = "";
    }
    source->folder = source->input;
    if (source->in->images) {
        source->folder = source->in->images;
        between = "";
    }
    MR_TRY(list_folder(source, voc, between, error));
    if (source->row_count == 0)
        return mr_fail(error, MR_NOT_FOUND, "%s: no .xml of Pascal VOC in it or in its Annotations", source->input);
    MR_TRY(source_set_classes(source, &voc->names, 1, &voc->labels, error));
    for (int32_t i = 0; i < source->class_count; i++) {
        const char *name = source->classes[i] ? source->classes[i] : "";
        source->facts_hash = plan_hash(source->facts_hash, name, strlen(name));
    }
    return MR_OK;
}
