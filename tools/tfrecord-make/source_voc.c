/* The Pascal VOC source: an .xml for each image, in Annotations next to JPEGImages, or all in one directory. Each
 * .xml is read once for the classes and once more for its record, so boxes need no memory. The lists in
 * ImageSets/Main define the splits and their members. Labels start at 1. The keys are those that TensorFlow's Object
 * Detection API writes for VOC. */
#include "tfrecord-make/boxes.h"
#include "tfrecord-make/make.h"
#include "tfrecord-make/voc.h"

#include "common/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static constexpr size_t XML_SIZE_MAX = (size_t)16 << 20, LIST_SIZE_MAX = (size_t)256 << 20;

/* A name in the lists of ImageSets/Main. */
typedef struct listed {
    int8_t split;
    bool is_found;
} listed;

typedef struct voc {
    char *annotations;   /* owned; the directory of the .xml */
    const char *between; /* the directory of images relative to source->directory: "JPEGImages" or "" */
    names names;         /* names of classes */
    int32_t *labels;     /* owned; the label of each name */
    names lists;         /* while listing: the names in ImageSets/Main */
    listed *listed;      /* owned; indexed by the numbers of lists */
    names taken;         /* while listing: images of annotations, and names of .xml files without the extension */
} voc;

/* The name of a row's .xml in the directory; it is in the source's arena. */
static const char *xml_of(const row *row)
{
    return (const char *)(uintptr_t)row->position;
}

/* Reads and parses an .xml. Errors start with its path. */
static mr_status read_annotation(const voc *voc, const char *name, arena *arena, voc_annotation *annotation,
                                 uint64_t *hash, mr_error *error)
{
    char *path = nullptr, *text = nullptr;
    size_t size;
    if (asprintf(&path, "%s/%s", voc->annotations, name) < 0) return fail_memory(error, strlen(name));
    mr_status status = file_read_all(path, XML_SIZE_MAX, &text, &size, error);
    if (status == MR_OK) {
        *hash = plan_hash(0, text, size);
        status = voc_parse((mr_string){text, size}, arena, annotation, error);
        if (status != MR_OK) status = mr_fail_prefix(error, status, "%s", path);
    }
    free(text);
    free(path);
    return status;
}

/* ---- Finding the image ---- */

/* Checks whether directory/between/stem.ending exists. name: relative to the directory; owned by the caller */
static bool try_image(const char *directory, const char *between, const char *stem, const char *ending, char **name,
                      struct stat *about)
{
    char *path = nullptr;
    *name = nullptr;
    if (asprintf(name, "%s%s%s%s", between, *between ? "/" : "", stem, ending) < 0) {
        *name = nullptr;
        return false;
    }
    bool found = asprintf(&path, "%s/%s", directory, *name) >= 0 && stat(path, about) == 0 && S_ISREG(about->st_mode);
    free(path);
    if (!found) {
        free(*name);
        *name = nullptr;
    }
    return found;
}

/* Finds the image that <filename> names, or one with the same name as the .xml. Only the last component of
 * <filename> is used: the directories are those of the machine where the boxes were drawn. */
static bool find_image(const source *source, const char *between, const char *file_name, const char *xml, char **name,
                       struct stat *about)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG"};
    char stem[4096];
    const char *slash = file_name ? strrchr(file_name, '/') : nullptr;
    const char *back = file_name ? strrchr(file_name, '\\') : nullptr;
    const char *base = slash > back ? slash + 1 : back ? back + 1 : file_name;
    if (base && *base && strcmp(base, "..") != 0 && try_image(source->directory, between, base, "", name, about))
        return true;
    size_t length = strlen(xml) - strlen(".xml");
    if (length >= sizeof(stem)) return false;
    memcpy(stem, xml, length);
    stem[length] = '\0';
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (try_image(source->directory, between, stem, endings[i], name, about)) return true;
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
            MR_TRY(source_note(
                source, "box without area inside its image left out|boxes without area inside their image left out",
                xml, error));
        else if (was_cut)
            MR_TRY(source_note(source, "box cut at the edge of its image|boxes cut at the edge of their image", xml,
                               error));
    }
    return MR_OK;
}

/* The split of an annotation in ImageSets/Main. False: no list contains it. */
static bool take_listed(voc *voc, const char *xml, int8_t *split)
{
    if (voc->lists.count == 0) return true;
    int64_t number = names_find(&voc->lists, (mr_string){xml, strlen(xml) - strlen(".xml")});
    if (number < 0) return false;
    *split = voc->listed[number].split;
    return voc->listed[number].is_found = true;
}

/* Filters by the paths of the image and of its .xml, relative to the input. */
static mr_status see_paths(source *source, const voc *voc, row *row, const char *xml, mr_error *error)
{
    char *path = nullptr;
    const char *directory = voc->annotations + strlen(source->input);
    directory += *directory == '/';
    if (asprintf(&path, "%s%s%s", directory, *directory ? "/" : "", xml) < 0) return fail_memory(error, strlen(xml));
    filter_match(source, row, path);
    if (row->detail) filter_match(source, row, row->name);
    free(path);
    return MR_OK;
}

static mr_status add_annotation(source *source, voc *voc, const char *xml, arena *arena, mr_error *error)
{
    voc_annotation annotation = {0};
    uint32_t ignored;
    mr_error fault = {0};
    row row = {.label = -1};
    char *name = nullptr;
    struct stat about = {0};
    MR_TRY(names_add(&voc->taken, (mr_string){xml, strlen(xml) - strlen(".xml")}, &ignored, error));
    if (!take_listed(voc, xml, &row.split))
        return source_note(source,
                           "annotation in no list of ImageSets/Main left out|"
                           "annotations in no list of ImageSets/Main left out",
                           xml, error);
    char *kept = source_keep(source, xml, strlen(xml));
    if (!kept) return fail_memory(error, strlen(xml));
    row.position = (uint64_t)(uintptr_t)kept;
    mr_status status = read_annotation(voc, xml, arena, &annotation, &row.facts_hash, &fault);
    /* Without an image, or with a fault, the row is named after its .xml, and reading it returns the reason. */
    row.detail = status == MR_OK && find_image(source, voc->between, annotation.file_name, xml, &name, &about);
    if (row.detail) {
        const char *slash = strrchr(name, '/');
        MR_TRY(names_add(&voc->taken, mr_string_from(slash ? slash + 1 : name), &ignored, error));
        file_stamp stamp = file_stamp_from(&about);
        row.size_bytes = stamp.size_bytes;
        row.modified_ns = stamp.modified_ns;
    }
    row.name = row.detail ? name : xml;
    MR_TRY(see_paths(source, voc, &row, xml, error));
    if (!filter_accepts(source, &row)) {
        status = filter_count_excluded(source, row.name, error);
        free(name);
        return status;
    }
    for (size_t i = 0; i < annotation.count && status == MR_OK; i++) {
        uint32_t number;
        MR_TRY(names_add(&voc->names, mr_string_from(annotation.objects[i].name), &number, error));
    }
    if (status == MR_OK) MR_TRY(note_boxes(source, &annotation, xml, error));
    if (status == MR_OK && annotation.is_latin1)
        MR_TRY(source_note(source,
                           "annotation is not UTF-8 and was read as Latin-1|"
                           "annotations are not UTF-8 and were read as Latin-1",
                           xml, error));
    status = source_add_row(source, &row, error);
    free(name);
    return status;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Calls take with the sorted names in a directory. */
static mr_status each_entry(source *source, const char *path,
                            mr_status (*take)(struct source *, const char *, arena *, mr_error *), mr_error *error)
{
    struct dirent **entries = nullptr;
    arena arena = {0};
    int count = scandir(path, &entries, is_visible, compare_names);
    if (count < 0) return file_fail(error, errno, "read directory", path);
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++) {
        arena_reset(&arena);
        if (status == MR_OK) status = take(source, entries[i]->d_name, &arena, error);
        free(entries[i]);
    }
    free(entries);
    arena_deinit(&arena);
    return status;
}

static mr_status take_entry(source *source, const char *name, arena *arena, mr_error *error)
{
    voc *voc = source->detail;
    if (source_has_ending(name, ".xml")) return add_annotation(source, voc, name, arena, error);
    bool is_flat = !*voc->between && !source->in->images;
    if (is_flat && source_is_image_name(name)) return MR_OK;
    return source_note(source,
                       "file or directory left out, not .xml by name|files and directories left out, not .xml by name",
                       name, error);
}

/* Counts images without an annotation. */
static mr_status take_rest(source *source, const char *name, arena *arena, mr_error *error)
{
    const voc *voc = source->detail;
    const char *dot = strrchr(name, '.');
    if (!source_is_image_name(name) || names_find(&voc->taken, mr_string_from(name)) >= 0) return MR_OK;
    if (names_find(&voc->taken, (mr_string){name, (size_t)(dot - name)}) >= 0) return MR_OK;
    return source_note(source, "image without an .xml left out|images without an .xml left out", name, error);
}

/* ---- ImageSets/Main: the splits ---- */

/* Whether lines end in " 1", " 0" or " -1": such a list specifies which images show a class, and is not a split. */
static bool is_of_class(const char *text)
{
    bool has_lines = false;
    while (*text) {
        size_t size = strcspn(text, "\r\n"), end = size;
        while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
        bool is_flag = end > 2 && (text[end - 1] == '1' || text[end - 1] == '0');
        size_t begin = end - 1 - (end > 2 && text[end - 2] == '-');
        if (end > 0 && (!is_flag || (text[begin - 1] != ' ' && text[begin - 1] != '\t'))) return false;
        has_lines |= end > 0;
        text += size;
        text += strspn(text, "\r\n");
    }
    return has_lines;
}

/* The name of an annotation in a line, without blanks, directory and image extension. */
static mr_string name_in_line(const char *line, size_t size)
{
    char ending[8] = "";
    while (size > 0 && (*line == ' ' || *line == '\t')) line++, size--;
    while (size > 0 && (line[size - 1] == ' ' || line[size - 1] == '\t')) size--;
    const char *slash = size ? memrchr(line, '/', size) : nullptr;
    if (slash) size -= (size_t)(slash + 1 - line), line = slash + 1;
    const char *dot = size ? memrchr(line, '.', size) : nullptr;
    size_t length = dot ? size - (size_t)(dot - line) : 0;
    if (length > 0 && length < sizeof(ending)) {
        memcpy(ending, dot, length);
        if (source_is_image_name(ending)) size -= length;
    }
    return (mr_string){line, size};
}

static mr_status add_list(source *source, voc *voc, const char *file, const char *text, mr_error *error)
{
    int8_t split = 0;
    mr_string part = {file, strlen(file) - strlen(".txt")};
    for (size_t size; *text; text += size + strspn(text + size, "\r\n")) {
        uint32_t number, before = voc->lists.count;
        size = strcspn(text, "\r\n");
        mr_string name = name_in_line(text, size);
        if (name.size_bytes == 0) continue;
        if (split == 0) MR_TRY(source_find_split(source, part, &split, error));
        if (split == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s/ImageSets/Main/%s: \"%.*s\" is not a valid name for a split",
                           source->input, file, (int)part.size_bytes, part.data);
        MR_TRY(names_add(&voc->lists, name, &number, error));
        if (number < before && voc->listed[number].split != split)
            return mr_fail(
                error, MR_DATA_LOSS,
                "%s/ImageSets/Main/%s: \"%.*s\" is also in %s.txt, but an image belongs to one split; --split "
                "ignores these lists",
                source->input, file, (int)name.size_bytes, name.data, source->splits[voc->listed[number].split - 1]);
        if (number < before) continue;
        if ((before & (before - 1)) == 0) {
            size_t room = (before ? 2 * (size_t)before : 1) * sizeof(listed);
            listed *grown = realloc(voc->listed, room);
            if (!grown) return fail_memory(error, room);
            voc->listed = grown;
        }
        assert(number == before);
        voc->listed[number] = (listed){split, false};
    }
    return MR_OK;
}

static bool is_file_of(const char *directory, const char *name)
{
    char *path = nullptr;
    struct stat about;
    bool found = asprintf(&path, "%s/%s", directory, name) >= 0 && stat(path, &about) == 0 && S_ISREG(about.st_mode);
    free(path);
    return found;
}

static mr_status take_list(source *source, const char *name, arena *arena, mr_error *error)
{
    voc *voc = source->detail;
    char *directory = nullptr, *path = nullptr, *text = nullptr;
    size_t size;
    if (!source_has_ending(name, ".txt")) return MR_OK;
    if (asprintf(&directory, "%s/ImageSets/Main", source->input) < 0) return fail_memory(error, strlen(name));
    /* trainval is the union of train and val. */
    bool is_sum =
        strcmp(name, "trainval.txt") == 0 && (is_file_of(directory, "train.txt") || is_file_of(directory, "val.txt"));
    mr_status status = MR_OK;
    if (!is_sum && asprintf(&path, "%s/%s", directory, name) < 0) status = fail_memory(error, strlen(name));
    if (status == MR_OK && path) status = file_read_all(path, LIST_SIZE_MAX, &text, &size, error);
    if (status == MR_OK && text && memchr(text, '\0', size))
        status = mr_fail(error, MR_DATA_LOSS, "%s: contains a NUL byte; not a text file", path);
    if (status == MR_OK && text && !is_of_class(text)) status = add_list(source, voc, name, text, error);
    free(text);
    free(path);
    free(directory);
    return status;
}

static mr_status read_lists(source *source, mr_error *error)
{
    char *directory = nullptr;
    struct stat about;
    if (asprintf(&directory, "%s/ImageSets/Main", source->input) < 0) return fail_memory(error, strlen(source->input));
    bool is_there = stat(directory, &about) == 0 && S_ISDIR(about.st_mode);
    mr_status status = MR_OK;
    if (is_there && source_takes_splits(source))
        status = each_entry(source, directory, take_list, error);
    else if (is_there)
        status = source_remark(source, error, "the lists in ImageSets/Main are ignored: --split is given");
    free(directory);
    return status;
}

/* Adds rows for names in lists without an .xml; reading them returns the error. */
static mr_status add_missing(source *source, voc *voc, mr_error *error)
{
    for (uint32_t i = 0; i < voc->lists.count; i++) {
        char *name = nullptr;
        if (voc->listed[i].is_found) continue;
        if (asprintf(&name, "%s.xml", voc->lists.texts[i]) < 0) return fail_memory(error, 1);
        const char *kept = source_keep(source, name, strlen(name));
        free(name);
        if (!kept) return fail_memory(error, 1);
        row row = {.name = kept, .position = (uint64_t)(uintptr_t)kept, .label = -1, .split = voc->listed[i].split};
        MR_TRY(see_paths(source, voc, &row, kept, error));
        MR_TRY(source_add_row(source, &row, error));
    }
    return MR_OK;
}

static mr_status list_all(source *source, voc *voc, mr_error *error)
{
    char *images = nullptr;
    MR_TRY(read_lists(source, error));
    MR_TRY(each_entry(source, voc->annotations, take_entry, error));
    MR_TRY(add_missing(source, voc, error));
    if (asprintf(&images, "%s%s%s", source->directory, *voc->between ? "/" : "", voc->between) < 0)
        return fail_memory(error, strlen(source->directory));
    struct stat about;
    mr_status status = stat(images, &about) == 0 ? each_entry(source, images, take_rest, error) : MR_OK;
    free(images);
    names_deinit(&voc->taken);
    return status;
}

/* ---- Reading ---- */

static mr_status read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    const voc *voc = source->detail;
    if (row->detail) return source_read_image(source, row, bytes, has_image, error);
    voc_annotation annotation;
    arena arena = {0};
    uint64_t hash;
    mr_status status = read_annotation(voc, xml_of(row), &arena, &annotation, &hash, error);
    if (status == MR_OK)
        status = mr_fail(error, MR_NOT_FOUND, "%s/%s: its image \"%s\" does not exist", voc->annotations, xml_of(row),
                         annotation.file_name ? annotation.file_name : "");
    arena_deinit(&arena);
    return status;
}

static mr_status put_objects(const source *source, const voc_annotation *annotation, const image_facts *facts,
                             arena *arena, const features *to, mr_error *error)
{
    const voc *voc = source->detail;
    size_t count = 0, most = annotation->count + 1;
    box *boxes = ARENA_NEW(arena, box, most);
    int32_t *labels = ARENA_NEW(arena, int32_t, most);
    int64_t *difficult = ARENA_NEW(arena, int64_t, most), *truncated = ARENA_NEW(arena, int64_t, most);
    mr_string *views = ARENA_NEW(arena, mr_string, most);
    if (!boxes || !labels || !difficult || !truncated || !views) return fail_memory(error, most * sizeof(box));
    double width = annotation->width ? (double)annotation->width : facts->stored_width;
    double height = annotation->height ? (double)annotation->height : facts->stored_height;
    for (size_t i = 0; i < annotation->count; i++) {
        const voc_object *object = &annotation->objects[i];
        bool was_cut = false;
        boxes[count] = (box){object->xmin, object->ymin, object->xmax, object->ymax};
        bool is_inside = box_clip(&boxes[count], width, height, &was_cut);
        /* If the annotation specifies the size, they were counted when they were listed. */
        if ((was_cut || !is_inside) && annotation->width == 0 && facts->remarks)
            *facts->remarks |= REMARK_BIT(REMARK_BOXES_CUT);
        if (!is_inside) continue;
        int64_t number = names_find(&voc->names, mr_string_from(object->name));
        if (number < 0) return mr_fail(error, MR_DATA_LOSS, "has changed since it was listed");
        labels[count] = voc->labels[number];
        difficult[count] = object->is_difficult;
        truncated[count] = object->is_truncated;
        views[count++] = mr_string_from(object->pose);
    }
    MR_TRY(boxes_transform(boxes, count, annotation->width, annotation->height, facts, error));
    MR_TRY(boxes_put(source, boxes, labels, count, facts, to, error));
    put_int64_list(to, "image/object/difficult", difficult, count);
    put_int64_list(to, "image/object/truncated", truncated, count);
    put_bytes_list(to, "image/object/view", views, count);
    return MR_OK;
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    const voc *voc = source->detail;
    const char *slash = strrchr(row->name, '/'), *base = slash ? slash + 1 : row->name;
    voc_annotation annotation;
    arena arena = {0};
    uint64_t hash;
    put_bytes(to, "image/filename", mr_string_from(base));
    put_bytes(to, "image/source_id", mr_string_from(base));
    mr_status status = read_annotation(voc, xml_of(row), &arena, &annotation, &hash, error);
    if (status == MR_OK) {
        status = put_objects(source, &annotation, facts, &arena, to, error);
        if (status != MR_OK) status = mr_fail_prefix(error, status, "%s/%s", voc->annotations, xml_of(row));
    }
    arena_deinit(&arena);
    return status;
}

static void deinit(source *source)
{
    voc *voc = source->detail;
    names_deinit(&voc->names);
    names_deinit(&voc->lists);
    names_deinit(&voc->taken);
    free(voc->annotations);
    free(voc->listed);
    free(voc->labels);
    free(voc);
}

mr_status source_voc_open(source *source, mr_error *error)
{
    static const source_functions functions = {.image = read_image, .add_features = add_features, .deinit = deinit};
    static const char *const keys[] = {"image/filename", "image/source_id", "image/object/difficult",
                                       "image/object/truncated", "image/object/view"};
    voc *voc = calloc(1, sizeof(*voc));
    if (!voc) return fail_memory(error, sizeof(*voc));
    source->detail = voc;
    source->functions = &functions;
    source->has_images = source->has_boxes = true;
    struct stat about;
    if (asprintf(&voc->annotations, "%s/Annotations", source->input) < 0) {
        voc->annotations = nullptr;
        return fail_memory(error, strlen(source->input));
    }
    voc->between = "JPEGImages";
    if (stat(voc->annotations, &about) != 0) {
        voc->annotations[strlen(source->input)] = '\0';
        voc->between = "";
    }
    source->directory = source->input;
    if (source->in->images) {
        source->directory = source->in->images;
        voc->between = "";
    }
    MR_TRY(list_all(source, voc, error));
    if (source->row_count == 0 && source->options->include_count + source->options->exclude_count == 0)
        return mr_fail(error, MR_NOT_FOUND, "%s: no Pascal VOC .xml in it or in its Annotations", source->input);
    MR_TRY(source_set_classes(source, &voc->names, 1, &voc->labels, error));
    for (int32_t i = 0; i < source->class_count; i++) {
        const char *name = source->classes[i] ? source->classes[i] : "";
        source->facts_hash = plan_hash(source->facts_hash, name, strlen(name));
    }
    MR_TRY(boxes_declare(source, error));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) MR_TRY(source_declare(source, keys[i], error));
    return MR_OK;
}
