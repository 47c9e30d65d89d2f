/* Sources with numbers that are not record files: directories of images, records of fixed length, NumPy arrays. The
 * location of each element is determined when the dataset is built; its bytes are read when it is requested. */
#include "base/options.h"
#include "pipeline/pipeline.h"
#include "records/io/file.h"
#include "records/io/input_file.h"

#include <assert.h>
#include <millrace/formats.h>
#include <millrace/record.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maximum size of an image or a record. */
constexpr size_t ELEMENT_BYTES_MAX = (size_t)1 << 30;

static void take_string(mr_value *value, const char *bytes, size_t size_bytes)
{
    value->dtype = MR_STRING;
    value->shape = MR_SCALAR;
    value->string = (mr_string){bytes, size_bytes};
    value->data = &value->string;
}

static void put_component(mr_dataset *dataset, mr_dtype dtype, mr_shape shape, const char *name)
{
    assert(dataset->spec.count < MR_COMPONENTS_MAX);
    int32_t i = dataset->spec.count++;
    dataset->spec.dtypes[i] = dtype;
    dataset->spec.shapes[i] = shape;
    dataset->spec.names[i] = name;
}

/* ---- image_directory ---- */

typedef struct image {
    const char *path; /* relative to the directory */
    int64_t label;
    uint64_t size_bytes;
} image;

typedef struct directory_settings {
    const char *path;
    image *images; /* owned */
    size_t count, capacity;
} directory_settings;

/* path: owned by the caller. */
static mr_status path_of(const directory_settings *s, const image *p, char **path, mr_error *error)
{
    if (asprintf(path, "%s/%s", s->path, p->path) >= 0) return MR_OK;
    *path = nullptr;
    return mr_fail_memory(error, strlen(p->path));
}

/* Hashes the path, label and size of every image, and the content of some: opening all of them would take too long. */
static mr_status directory_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    constexpr size_t READ_MAX = 64;
    const directory_settings *s = dataset->settings;
    uint64_t digest = mr_digest(0, s->count);
    for (size_t i = 0; i < s->count; i++) {
        const image *p = &s->images[i];
        digest = mr_digest(mr_digest_text(digest, p->path), (uint64_t)p->label);
        digest = mr_digest(digest, p->size_bytes);
    }
    size_t count = s->count < READ_MAX ? s->count : READ_MAX;
    for (size_t i = 0; i < count; i++) {
        char *path = nullptr;
        MR_TRY(path_of(s, &s->images[i * s->count / count], &path, error));
        mr_status status = mr_digest_paths(&digest, (const char *const *)&path, 1, error);
        free(path);
        MR_TRY(status);
    }
    *content = digest;
    return MR_OK;
}

static mr_status directory_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    const directory_settings *s = dataset->settings;
    assert(number < s->count);
    const image *p = &s->images[number];
    char *path = nullptr, *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(path_of(s, p, &path, error));
    mr_status status = mr_file_read_all(path, ELEMENT_BYTES_MAX, &bytes, &size_bytes, error);
    free(path);
    MR_TRY(status);
    mr_workspace_take_bytes(workspace, bytes, size_bytes);
    workspace->count = 3;
    take_string(&workspace->values[0], bytes, size_bytes);
    mr_value *label = &workspace->values[1];
    label->dtype = MR_INT64;
    label->shape = MR_SCALAR;
    label->integer = p->label;
    label->data = &label->integer;
    take_string(&workspace->values[2], p->path, strlen(p->path));
    return MR_OK;
}

static void directory_read_ahead(const mr_dataset *dataset, uint64_t number)
{
    const directory_settings *s = dataset->settings;
    int directory = open(s->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int descriptor = directory < 0 ? -1 : openat(directory, s->images[number].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0) mr_file_prefetch(descriptor, 0, 0);
    if (descriptor >= 0) (void)close(descriptor);
    if (directory >= 0) (void)close(directory);
}

static void directory_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    const directory_settings *s = dataset->settings;
    snprintf(text, size_bytes, "%s/%s", s->path, s->images[number].path);
}

static void directory_deinit(mr_dataset *dataset)
{
    free(((directory_settings *)dataset->settings)->images);
}

static const mr_dataset_kind directory_kind = {.name = "image_directory",
                                               .role = MR_ROLE_SOURCE,
                                               .digest_content = directory_digest,
                                               .stage_size_bytes = sizeof(mr_stage),
                                               .functions = &mr_numbers_functions,
                                               .read = directory_read,
                                               .read_ahead = directory_read_ahead,
                                               .describe = directory_describe,
                                               .deinit = directory_deinit};

static bool is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != nullptr &&
           (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 || strcasecmp(dot, ".png") == 0);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mr_status add_image(mr_dataset *dataset, const char *path, int64_t label, uint64_t size_bytes, mr_error *error)
{
    directory_settings *s = dataset->settings;
    if (s->count == s->capacity) {
        size_t capacity = 2 * s->capacity + 64;
        image *images = realloc(s->images, capacity * sizeof *images);
        if (images == nullptr) return mr_fail_memory(error, capacity * sizeof *images);
        s->images = images;
        s->capacity = capacity;
    }
    const char *kept = mr_arena_strdup(&dataset->arena, path);
    if (kept == nullptr) return mr_fail_memory(error, strlen(path));
    assert(s->count < s->capacity);
    s->images[s->count++] = (image){kept, label, size_bytes};
    return MR_OK;
}

/* Collects the images of a directory and its subdirectories. below: path relative to the top; "" for the top, whose
 * subdirectories are the classes. */
static mr_status scan(mr_dataset *dataset, const char *below, int depth, int64_t *label, mr_error *error)
{
    constexpr int DEPTH_MAX = 32;
    const directory_settings *s = dataset->settings;
    char *full = nullptr;
    struct dirent **entries = nullptr;
    if (depth > DEPTH_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s/%s: directories are nested more than %d deep", s->path, below,
                       DEPTH_MAX);
    if (asprintf(&full, *below ? "%s/%s" : "%s", s->path, below) < 0) return mr_fail_memory(error, strlen(below));
    int count = scandir(full, &entries, visible, compare_names);
    mr_status status = count < 0 ? mr_file_fail(error, errno, "read directory", full) : MR_OK;
    free(full);
    for (int i = 0; i < count; i++) {
        char *path = nullptr, *from_here = nullptr;
        struct stat about = {0};
        if (asprintf(&path, *below ? "%s/%s" : "%s%s", below, entries[i]->d_name) < 0 ||
            asprintf(&from_here, "%s/%s", s->path, path) < 0)
            status = mr_fail_memory(error, strlen(below));
        if (status == MR_OK && stat(from_here, &about) != 0) about.st_mode = S_IFREG;
        size_t before = s->count;
        if (status == MR_OK && S_ISDIR(about.st_mode)) {
            status = scan(dataset, path, depth + 1, label, error);
            if (depth == 0 && s->count > before) ++*label;
        } else if (status == MR_OK && depth > 0 && is_image(entries[i]->d_name)) {
            status = add_image(dataset, path, *label, (uint64_t)about.st_size, error);
        }
        free(path);
        free(from_here);
        free(entries[i]);
    }
    free(entries);
    return status;
}

mr_dataset *mr_dataset_image_directory(const char *path)
{
    mr_dataset *dataset = mr_dataset_new(&directory_kind, nullptr, sizeof(directory_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    directory_settings *s = dataset->settings;
    mr_error error = {0};
    int64_t label = 0;
    if (mr_dataset_failed(mr_dataset_require(dataset, path != nullptr, "path"))) return dataset;
    s->path = mr_arena_strdup(&dataset->arena, path);
    if (s->path == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "image_directory: no memory");
    if (scan(dataset, "", 0, &label, &error) != MR_OK)
        return mr_dataset_fail(dataset, error.status, "image_directory: %s", error.message);
    put_component(dataset, MR_STRING, MR_SCALAR, "image/encoded");
    put_component(dataset, MR_INT64, MR_SCALAR, "image/class/label");
    put_component(dataset, MR_STRING, MR_SCALAR, "image/filename");
    dataset->count = (int64_t)s->count;
    dataset->is_heavy = true;
    if (s->count == 0)
        return mr_dataset_fail(
            dataset, MR_NOT_FOUND,
            "image_directory: %s: no images in class directories, expected for example %s/daisy/1.jpg", path, path);
    return dataset;
}

/* ---- fixed_length ---- */

typedef struct fixed_settings {
    mr_input_file **files; /* owned */
    uint64_t *firsts;      /* count + 1 */
    int32_t count;
    size_t record_bytes, header_bytes, footer_bytes;
} fixed_settings;

static uint64_t fixed_digest(const mr_dataset *dataset)
{
    const fixed_settings *s = dataset->settings;
    return mr_digest(mr_digest(s->record_bytes, s->header_bytes), s->footer_bytes);
}

static mr_status fixed_digest_content(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    const fixed_settings *s = dataset->settings;
    *content = mr_digest(6, (uint64_t)s->count);
    for (int32_t i = 0; i < s->count; i++) MR_TRY(mr_digest_file(content, s->files[i], (size_t)s->count, error));
    return MR_OK;
}

/* Index of the file that contains a record: the last one whose first number is not greater. */
static int32_t part_of(const uint64_t *firsts, int32_t count, uint64_t number)
{
    int32_t low = 0, high = count;
    assert(count > 0 && number < firsts[count]);
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (firsts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    assert(firsts[low] <= number && number < firsts[low + 1]);
    return low;
}

static mr_status read_at(const mr_input_file *file, uint64_t offset, size_t size_bytes, char *bytes, mr_error *error)
{
    size_t done = 0;
    MR_TRY(mr_input_file_read(file, offset, bytes, size_bytes, &done, error));
    return done == size_bytes ? MR_OK
                              : mr_fail(error, MR_DATA_LOSS, "%s: ended at byte %llu: truncated while it was read",
                                        mr_input_file_name(file), (unsigned long long)(offset + done));
}

static mr_status fixed_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    const fixed_settings *s = dataset->settings;
    int32_t file = part_of(s->firsts, s->count, number);
    MR_TRY(mr_workspace_reserve(workspace, s->record_bytes, error));
    MR_TRY(read_at(s->files[file], s->header_bytes + (number - s->firsts[file]) * s->record_bytes, s->record_bytes,
                   workspace->bytes, error));
    workspace->count = 1;
    take_string(&workspace->values[0], workspace->bytes, s->record_bytes);
    return MR_OK;
}

static void fixed_read_ahead(const mr_dataset *dataset, uint64_t number)
{
    const fixed_settings *s = dataset->settings;
    int32_t file = part_of(s->firsts, s->count, number);
    mr_input_file_prefetch(s->files[file], s->header_bytes + (number - s->firsts[file]) * s->record_bytes,
                           s->record_bytes);
}

static void fixed_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    const fixed_settings *s = dataset->settings;
    int32_t file = part_of(s->firsts, s->count, number);
    snprintf(text, size_bytes, "%s: record %llu", mr_input_file_name(s->files[file]),
             (unsigned long long)(number - s->firsts[file]));
}

static void fixed_deinit(mr_dataset *dataset)
{
    fixed_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->count; i++) mr_input_file_close(s->files[i]);
}

static const mr_dataset_kind fixed_kind = {.name = "fixed_length",
                                           .role = MR_ROLE_SOURCE,
                                           .digest = fixed_digest,
                                           .digest_content = fixed_digest_content,
                                           .stage_size_bytes = sizeof(mr_stage),
                                           .functions = &mr_numbers_functions,
                                           .read = fixed_read,
                                           .read_ahead = fixed_read_ahead,
                                           .describe = fixed_describe,
                                           .deinit = fixed_deinit};

static mr_status add_fixed(fixed_settings *s, const char *path, mr_error *error)
{
    mr_input_file *file = nullptr;
    MR_TRY(mr_input_file_open(path, true, &file, error));
    s->files[s->count++] = file;
    assert(s->record_bytes > 0 && s->count >= 1);
    uint64_t size_bytes = mr_input_file_size(file), around = s->header_bytes + s->footer_bytes;
    if (size_bytes < around || (size_bytes - around) % s->record_bytes != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %llu bytes are not a multiple of the record size %zu", path,
                       (unsigned long long)size_bytes, s->record_bytes);
    s->firsts[s->count] = s->firsts[s->count - 1] + (size_bytes - around) / s->record_bytes;
    return MR_OK;
}

mr_dataset *mr_dataset_fixed_length_(const char *pattern, size_t record_bytes, const mr_fixed_length_options *given)
{
    mr_fixed_length_options options;
    constexpr size_t AROUND_MAX = (size_t)1 << 40;
    mr_dataset *dataset = mr_dataset_new(&fixed_kind, nullptr, sizeof(fixed_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    fixed_settings *s = dataset->settings;
    char **paths = nullptr;
    int32_t count = 0;
    mr_error error = {0};
    if (MR_OPTIONS_READ(mr_fixed_length_options, &options, given, &error) != MR_OK)
        return mr_dataset_fail_with(dataset, &error);
    s->record_bytes = record_bytes;
    s->header_bytes = options.header_bytes;
    s->footer_bytes = options.footer_bytes;
    if (record_bytes == 0 || record_bytes > ELEMENT_BYTES_MAX || options.header_bytes > AROUND_MAX ||
        options.footer_bytes > AROUND_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "fixed_length: invalid record, header or footer size (record_bytes %zu)", record_bytes);
    mr_status status = mr_paths_match(pattern, &paths, &count, &error);
    if (status == MR_OK) {
        s->files = MR_ARENA_NEW(&dataset->arena, mr_input_file *, (size_t)count);
        s->firsts = MR_ARENA_NEW(&dataset->arena, uint64_t, (size_t)count + 1);
        if (s->files == nullptr || s->firsts == nullptr) status = mr_fail_memory(&error, (size_t)count * 16);
    }
    for (int32_t i = 0; i < count && status == MR_OK; i++) status = add_fixed(s, paths[i], &error);
    mr_paths_free(paths, count);
    if (status != MR_OK) return mr_dataset_fail(dataset, status, "fixed_length: %s", error.message);
    put_component(dataset, MR_STRING, MR_SCALAR, nullptr);
    dataset->count = (int64_t)s->firsts[s->count];
    dataset->is_heavy = true;
    return dataset;
}

/* ---- npy ---- */

typedef struct npy_settings {
    int32_t count, file_count;
    mr_npy *arrays;
    mr_input_file **files; /* one for each array; borrowed from owned */
    mr_input_file **owned; /* files, and members of zip files, in the order in which they were opened */
} npy_settings;

static mr_status npy_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    const npy_settings *s = dataset->settings;
    *content = mr_digest(0, (uint64_t)s->count);
    for (int32_t i = 0; i < s->count; i++) {
        *content = mr_digest_shape(mr_digest(*content, (uint64_t)s->arrays[i].dtype), s->arrays[i].shape);
        MR_TRY(mr_digest_file(content, s->files[i], (size_t)s->count, error));
    }
    return MR_OK;
}

static mr_status npy_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    const npy_settings *s = dataset->settings;
    assert(s->count == dataset->spec.count && number < (uint64_t)dataset->count);
    workspace->count = 0;
    for (int32_t i = 0; i < s->count; i++) {
        mr_tensor row = {0}, element = {0};
        MR_TRY(mr_npy_read_rows(s->files[i], &s->arrays[i], (int64_t)number, (int64_t)number + 1, &row, error));
        mr_status status = mr_tensor_reshape(&row, dataset->spec.shapes[i], &element, error);
        mr_tensor_deinit(&row);
        MR_TRY(status);
        mr_value_take(&workspace->values[i], &element);
        workspace->count = i + 1;
    }
    return MR_OK;
}

static void npy_deinit(mr_dataset *dataset)
{
    npy_settings *s = dataset->settings;
    /* Members are closed before the files that contain them. */
    while (s->file_count > 0) mr_input_file_close(s->owned[--s->file_count]);
}

static const mr_dataset_kind npy_kind = {.name = "npy",
                                         .role = MR_ROLE_SOURCE,
                                         .digest_content = npy_digest,
                                         .stage_size_bytes = sizeof(mr_stage),
                                         .functions = &mr_numbers_functions,
                                         .read = npy_read,
                                         .describe = mr_describe_element,
                                         .deinit = npy_deinit};

static mr_status add_array(mr_dataset *dataset, mr_input_file *file, const char *name, mr_error *error)
{
    npy_settings *s = dataset->settings;
    if (s->count == MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "more than %d arrays", MR_COMPONENTS_MAX);
    mr_npy *array = &s->arrays[s->count];
    MR_TRY(mr_npy_open(file, 0, array, error));
    if (array->shape.rank < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the array is a scalar, which has no rows",
                       mr_input_file_name(file));
    if (array->shape.dims[0] != s->arrays[0].shape.dims[0])
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the array has %lld rows, the first array has %lld",
                       mr_input_file_name(file), (long long)array->shape.dims[0],
                       (long long)s->arrays[0].shape.dims[0]);
    mr_shape shape = array->shape;
    for (int32_t d = 1; d < shape.rank; d++) shape.dims[d - 1] = shape.dims[d];
    shape.dims[--shape.rank] = 0;
    s->files[s->count++] = file;
    put_component(dataset, array->dtype, shape, name);
    return MR_OK;
}

static mr_status add_zip(mr_dataset *dataset, mr_input_file *file, mr_error *error)
{
    npy_settings *s = dataset->settings;
    mr_zip zip = {0};
    MR_TRY(mr_zip_open(file, &zip, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < zip.count && status == MR_OK; i++) {
        const char *name = zip.members[i].name;
        size_t length = strlen(name);
        if (length >= 4 && strcmp(name + length - 4, ".npy") == 0) length -= 4;
        const char *kept = mr_arena_strndup(&dataset->arena, name, length);
        if (s->count == MR_COMPONENTS_MAX)
            status = mr_fail(error, MR_INVALID_ARGUMENT, "more than %d arrays", MR_COMPONENTS_MAX);
        else if (kept == nullptr)
            status = mr_fail_memory(error, length);
        else
            status = mr_zip_extract(file, &zip.members[i], &s->owned[s->file_count], error);
        if (status == MR_OK) status = add_array(dataset, s->owned[s->file_count++], kept, error);
    }
    mr_zip_deinit(&zip);
    return status;
}

static mr_status add_npy(mr_dataset *dataset, const char *path, mr_error *error)
{
    npy_settings *s = dataset->settings;
    char magic[4] = {0};
    size_t done = 0;
    mr_input_file *file = nullptr;
    MR_TRY(mr_input_file_open(path, false, &file, error));
    s->owned[s->file_count++] = file;
    MR_TRY(mr_input_file_read(file, 0, magic, sizeof magic, &done, error));
    if (done == sizeof magic && memcmp(magic, "PK", 2) == 0) return add_zip(dataset, file, error);
    return add_array(dataset, file, nullptr, error);
}

mr_dataset *mr_dataset_npy(const char *const *paths, int32_t count)
{
    mr_dataset *dataset = mr_dataset_new(&npy_kind, nullptr, sizeof(npy_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    npy_settings *s = dataset->settings;
    if (count < 1 || count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "npy: %d files, expected 1 to %d", count,
                               MR_COMPONENTS_MAX);
    if (mr_dataset_failed(mr_dataset_require(dataset, paths != nullptr, "paths"))) return dataset;
    s->arrays = MR_ARENA_NEW(&dataset->arena, mr_npy, MR_COMPONENTS_MAX);
    s->files = MR_ARENA_NEW(&dataset->arena, mr_input_file *, MR_COMPONENTS_MAX);
    s->owned = MR_ARENA_NEW(&dataset->arena, mr_input_file *, 2 * MR_COMPONENTS_MAX);
    if (s->arrays == nullptr || s->files == nullptr || s->owned == nullptr)
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "npy: no memory");
    for (int32_t i = 0; i < count; i++) {
        mr_error error = {0};
        if (mr_dataset_failed(mr_dataset_require(dataset, paths[i] != nullptr, "a path"))) return dataset;
        if (add_npy(dataset, paths[i], &error) != MR_OK)
            return mr_dataset_fail(dataset, error.status, "npy: %s", error.message);
    }
    if (s->count == 0) return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "npy: %s contains no arrays", paths[0]);
    dataset->count = s->arrays[0].shape.dims[0];
    return dataset;
}
