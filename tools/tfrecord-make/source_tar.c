/* The tar source: webdataset archives. Members whose names are equal up to the first dot after the last slash
 * ("a/0001.jpg", "a/0001.cls", "a/0001.json") are one sample. Usually they are consecutive, but an archive may also
 * contain all images and then all labels. Nothing is unpacked: a row stores where each run of its members starts,
 * and reading walks the headers from there. If archives were concatenated into one file, the same name in two of
 * them denotes two samples. */
#include "tfrecord-make/source_tar.h"

#include "tfrecord-make/make.h"

#include "common/file.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* At most this many archives stay open. Of the others, plain archives are opened for each row. */
static constexpr int32_t OPEN_MAX_FILES = 256;
static constexpr uint64_t LABEL_BYTES_MAX = 4096, JSON_BYTES_MAX = (uint64_t)16 << 20;

/* ---- Listing ---- */

/* A sample of the archive that is being listed. */
typedef struct gathered {
    int64_t row;
    uint32_t piece; /* the last piece */
    bool has_image;
} gathered;

typedef struct listing {
    source *source;
    archives *archives;
    const mr_input_file *file;
    int32_t archive;
    uint32_t part;      /* member.archive, if the file contains several archives */
    names keys;         /* keys of the archive's samples */
    gathered *gathered; /* owned; indexed by the numbers of keys */
    int64_t current;    /* the number of the last member's key; -1: none */
    source_bytes bytes;
} listing;

static mr_status add_piece(archives *archives, uint64_t offset, mr_error *error)
{
    uint32_t count = archives->piece_count;
    if (count == UINT32_MAX - 1) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "too many samples");
    if ((count & (count - 1)) == 0) {
        size_t size = (count ? 2 * (size_t)count : 1) * sizeof(piece);
        piece *grown = realloc(archives->pieces, size);
        if (!grown) return fail_memory(error, size);
        archives->pieces = grown;
    }
    archives->pieces[archives->piece_count++] = (piece){.offset = offset};
    return MR_OK;
}

/* Starts a sample with a new key. */
static mr_status begin_sample(listing *listing, uint32_t number, const mr_tar_member *member, mr_error *error)
{
    if ((number & (number - 1)) == 0) {
        size_t size = (number ? 2 * (size_t)number : 1) * sizeof(gathered);
        gathered *grown = realloc(listing->gathered, size);
        if (!grown) return fail_memory(error, size);
        listing->gathered = grown;
    }
    MR_TRY(add_piece(listing->archives, member->header_offset, error));
    uint32_t piece = listing->archives->piece_count - 1;
    listing->gathered[number] = (gathered){.row = listing->source->row_count, .piece = piece};
    return source_add_row(listing->source,
                          &(row){.name = listing->keys.texts[number],
                                 .modified_ns = mr_input_file_modified_ns(listing->file),
                                 .position = piece,
                                 .detail = (uint32_t)listing->archive,
                                 .label = TAR_LABEL_NONE},
                          error);
}

/* Continues a sample after members of other samples. */
static mr_status continue_sample(listing *listing, gathered *gathered, const mr_tar_member *member, mr_error *error)
{
    archives *archives = listing->archives;
    const row *row = &listing->source->rows[gathered->row];
    if (row->position == gathered->piece)
        MR_TRY(source_note(listing->source,
                           "sample has members that are not consecutive; they were combined|"
                           "samples have members that are not consecutive; they were combined",
                           row->name, error));
    MR_TRY(add_piece(archives, member->header_offset, error));
    assert(gathered->piece < archives->piece_count - 1 && archives->pieces[gathered->piece].next == 0);
    archives->pieces[gathered->piece].next = archives->piece_count;
    gathered->piece = archives->piece_count - 1;
    return MR_OK;
}

/* Resets the keys when another archive starts, in another file or in this one. */
static void reset_keys(listing *listing, uint32_t part)
{
    names_deinit(&listing->keys);
    listing->current = -1;
    listing->part = part;
}

static mr_status find_sample(listing *listing, mr_string key, const mr_tar_member *member, mr_error *error)
{
    if (member->archive != listing->part) reset_keys(listing, member->archive);
    if (listing->current >= 0 && mr_string_equal(mr_string_from(listing->keys.texts[listing->current]), key))
        return MR_OK;
    uint32_t number, before = listing->keys.count;
    MR_TRY(names_add(&listing->keys, key, &number, error));
    assert(number <= before);
    listing->current = number;
    return number == before ? begin_sample(listing, number, member, error)
                            : continue_sample(listing, &listing->gathered[number], member, error);
}

static mr_status learn_field(void *context, mr_string name, const json_t *value, mr_error *error)
{
    listing *listing = context;
    columns *fields = &listing->archives->fields;
    int32_t index;
    bool is_text = json_is_string(value);
    mr_string text = {is_text ? json_string_value(value) : nullptr, is_text ? json_string_length(value) : 0};
    MR_TRY(columns_add(fields, name, &index, error));
    column_see(&fields->items[index], column_type_of_json(value), (uint64_t)listing->gathered[listing->current].row,
               text);
    return MR_OK;
}

/* The label's text without surrounding blanks. */
static mr_string trimmed(const source_bytes *bytes)
{
    const char *begin = bytes->data, *end = begin + bytes->size_bytes;
    while (begin < end && isspace((unsigned char)*begin)) begin++;
    while (begin < end && isspace((unsigned char)end[-1])) end--;
    return (mr_string){begin, (size_t)(end - begin)};
}

/* Reads the small members that determine the classes and types of the complete input. Faults are reported when the
 * row is read. */
static mr_status learn_member(listing *listing, const mr_tar_member *member, const char *ending, mr_error *error)
{
    mr_error fault = {0};
    source_bytes *bytes = &listing->bytes;
    row *row = &listing->source->rows[listing->gathered[listing->current].row];
    bool is_label = strcasecmp(ending, "cls") == 0, is_json = strcasecmp(ending, "json") == 0;
    if (!is_label && !is_json) return MR_OK;
    mr_status status =
        tar_read_member(listing->file, member, is_label ? LABEL_BYTES_MAX : JSON_BYTES_MAX, bytes, &fault);
    if (is_label) {
        mr_string text = status == MR_OK ? trimmed(bytes) : (mr_string){0};
        uint32_t number;
        row->label = TAR_LABEL_FAULT;
        if (text.size_bytes == 0 || memchr(text.data, '\0', text.size_bytes)) return MR_OK;
        MR_TRY(names_add(&listing->archives->labels, text, &number, error));
        row->label = (int32_t)number;
    } else if (status == MR_OK) {
        json_t *object = json_object_from(bytes->data, bytes->size_bytes, &fault);
        if (object) status = json_each_field(object, learn_field, listing, &fault);
        json_decref(object);
        if (status == MR_RESOURCE_EXHAUSTED)
            return mr_fail(error, status, "%s: %s: %s", mr_input_file_name(listing->file), member->name, fault.message);
    }
    return MR_OK;
}

/* Members become features that are named after their extensions. */
static mr_status declare_ending(source *source, const char *ending, mr_error *error)
{
    char key[TAR_KEY_BYTES];
    if (!tar_key(ending, key, sizeof(key)) || strcmp(key, "cls") == 0 || strcmp(key, "json") == 0) return MR_OK;
    return source_declare(source, key, error);
}

static mr_status list_member(listing *listing, const mr_tar_member *member, mr_error *error)
{
    const char *ending;
    source *source = listing->source;
    if (member->kind == MR_TAR_DIRECTORY) return MR_OK;
    if (member->kind != MR_TAR_FILE)
        return source_note(source, "member that is not a file left out|members that are not files left out",
                           member->name, error);
    size_t size = tar_sample_size(member->name, &ending);
    if (size == 0)
        return source_note(source,
                           "member without a name or extension left out|members without a name or extension left out",
                           member->name, error);
    MR_TRY(find_sample(listing, (mr_string){member->name, size}, member, error));
    gathered *gathered = &listing->gathered[listing->current];
    filter_match(source, &source->rows[gathered->row], member->name);
    source->rows[gathered->row].size_bytes += member->size_bytes;
    source->size_bytes += member->size_bytes;
    bool is_image = tar_is_image_ending(ending) && !gathered->has_image;
    if (is_image) source->has_images = gathered->has_image = true;
    if (!is_image) MR_TRY(declare_ending(source, ending, error));
    return learn_member(listing, member, ending, error);
}

static mr_status list_archive(listing *listing, mr_error *error)
{
    mr_tar_reader *reader = nullptr;
    mr_tar_member member;
    reset_keys(listing, 0);
    MR_TRY(mr_tar_reader_new(listing->file, 0, &reader, error));
    mr_status status;
    while ((status = mr_tar_reader_next(reader, &member, error)) == MR_OK) {
        status = list_member(listing, &member, error);
        if (status != MR_OK) break;
    }
    mr_tar_reader_free(reader);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* ---- Opening ---- */

static mr_status add_path(archives *archives, const char *directory, const char *name, mr_error *error)
{
    archive *grown = realloc(archives->items, ((size_t)archives->count + 1) * sizeof(archive));
    if (!grown) return fail_memory(error, sizeof(archive));
    archives->items = grown;
    char *path = nullptr;
    if (asprintf(&path, directory ? "%s/%s" : "%s%s", directory ? directory : "", name) < 0)
        return fail_memory(error, strlen(name));
    grown[archives->count++] = (archive){.path = path};
    return MR_OK;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Finds the archive that was given, or those in a directory, sorted. */
static mr_status find_archives(source *source, archives *archives, mr_error *error)
{
    struct stat about;
    if (stat(source->input, &about) != 0) return file_fail(error, errno, "open", source->input);
    if (!S_ISDIR(about.st_mode)) return add_path(archives, nullptr, source->input, error);
    struct dirent **entries = nullptr;
    int count = scandir(source->input, &entries, is_visible, compare_names);
    if (count < 0) return file_fail(error, errno, "read directory", source->input);
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        row whole = {0};
        filter_match(source, &whole, name);
        if (status == MR_OK && whole.is_excluded)
            status = filter_count_excluded(source, name, error);
        else if (status == MR_OK && source_has_ending(name, SOURCE_TAR_ENDINGS))
            status = add_path(archives, source->input, name, error);
        else if (status == MR_OK)
            status = source_note(source,
                                 "file or directory left out, not .tar by name|"
                                 "files and directories left out, not .tar by name",
                                 name, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static mr_status list_all(source *source, archives *archives, mr_error *error)
{
    listing listing = {.source = source, .archives = archives};
    mr_status status = MR_OK;
    for (int32_t i = 0; i < archives->count && status == MR_OK; i++) {
        archive *archive = &archives->items[i];
        status = mr_input_file_open(archive->path, true, &archive->file, error);
        if (status != MR_OK) break;
        listing.file = archive->file;
        listing.archive = i;
        status = list_archive(&listing, error);
        if (i >= OPEN_MAX_FILES && !source_has_ending(archive->path, ".gz .tgz")) {
            mr_input_file_close(archive->file);
            archive->file = nullptr;
        }
    }
    names_deinit(&listing.keys);
    free(listing.gathered);
    free(listing.bytes.data);
    return status;
}

static const char *name_row(const source *source, uint64_t row, char *text, size_t size_bytes)
{
    return source->rows[row].name;
}

static mr_status declare(source *source, const archives *archives, mr_error *error)
{
    bool has_labels = archives->labels.count > 0;
    if (source->in->labels && !has_labels)
        return mr_fail(error, MR_INVALID_ARGUMENT, "--labels: %s has no .cls members", source->input);
    MR_TRY(source_declare(source, "__key__", error));
    if (has_labels) MR_TRY(source_declare(source, "image/class/label", error));
    if (has_labels) MR_TRY(source_declare(source, "image/class/text", error));
    if (source->has_images) MR_TRY(source_declare(source, "image/filename", error));
    MR_TRY(columns_report(&archives->fields, source, "fields of .json", name_row, error));
    return columns_declare(&archives->fields, source, "json/", error);
}

/* Keeps the labels of included samples. Labels of excluded samples do not become classes. */
static mr_status keep_labels(source *source, archives *archives, mr_error *error)
{
    names kept = {0};
    mr_status status = MR_OK;
    for (int64_t i = 0; i < source->row_count && status == MR_OK; i++) {
        row *row = &source->rows[i];
        uint32_t number = 0;
        if (row->label < 0) continue;
        if (filter_accepts(source, row))
            status = names_add(&kept, mr_string_from(archives->labels.texts[row->label]), &number, error);
        row->label = filter_accepts(source, row) ? (int32_t)number : TAR_LABEL_NONE;
    }
    names_deinit(&archives->labels);
    archives->labels = kept;
    return status;
}

mr_status source_tar_open(source *source, mr_error *error)
{
    archives *archives = calloc(1, sizeof(*archives));
    if (!archives) return fail_memory(error, sizeof(*archives));
    source->detail = archives;
    source->functions = &tar_functions;
    source->row_noun = "sample";
    source->sizes_include_more = true;
    archives->fields.in = source->in;
    MR_TRY(find_archives(source, archives, error));
    MR_TRY(list_all(source, archives, error));
    MR_TRY(keep_labels(source, archives, error));
    MR_TRY(columns_check_types(&archives->fields, source->input, error));
    MR_TRY(declare(source, archives, error));
    source->directory = source->input;
    source->facts_hash = columns_hash(&archives->fields, source->facts_hash);
    int32_t *labels = nullptr;
    mr_status status =
        archives->labels.count > 0 ? source_set_classes(source, &archives->labels, 0, &labels, error) : MR_OK;
    for (int64_t i = 0; i < source->row_count && status == MR_OK; i++) {
        row *row = &source->rows[i];
        if (row->label >= 0) row->label = labels[row->label];
        const char *text = row->label >= 0 && source->class_count > 0 ? source->classes[row->label] : "";
        uint64_t label = (uint64_t)row->label;
        row->facts_hash = plan_hash(plan_hash(0, &label, sizeof(label)), text, strlen(text));
    }
    free(labels);
    names_deinit(&archives->labels);
    return status;
}
