/* Samples of archives: see source_tar.h. A sample's members are found by walking the headers of its pieces. */
#include "tfrecord-make/source_tar.h"

#include "tfrecord-make/make.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static constexpr uint64_t MEMBER_BYTES_MAX = (uint64_t)1 << 30;

/* ---- Members ---- */

size_t tar_sample_size(const char *name, const char **ending)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strchr(base, '.');
    if (!dot || dot == base || !dot[1]) return 0;
    *ending = dot + 1;
    return (size_t)(dot - name);
}

bool tar_is_image_ending(const char *ending)
{
    return !strchr(ending, '.') && source_is_image_name(ending - 1); /* starting at its dot */
}

mr_status tar_read_member(const mr_input_file *file, const mr_tar_member *member, uint64_t size_max,
                          source_bytes *bytes, mr_error *error)
{
    size_t done;
    if (member->size_bytes > size_max)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s is larger than %" PRIu64 " bytes", member->name, size_max);
    MR_TRY(source_bytes_reserve(bytes, (size_t)member->size_bytes + 1, error));
    MR_TRY(mr_input_file_read(file, member->offset, bytes->data, (size_t)member->size_bytes, &done, error));
    if (done != member->size_bytes) return mr_fail(error, MR_DATA_LOSS, "%s is truncated", member->name);
    bytes->size_bytes = done;
    return MR_OK;
}

bool tar_key(const char *ending, char *key, size_t size_bytes)
{
    size_t length = strlen(ending);
    if (length >= size_bytes) return false;
    for (size_t i = 0; i <= length; i++) key[i] = (char)tolower((unsigned char)ending[i]);
    return true;
}

/* ---- Samples ---- */

typedef struct sample {
    const source *source;
    const row *row;
    const mr_input_file *file;
    mr_tar_reader *reader; /* owned */
    uint32_t piece;        /* the piece that the reader walks over */
    mr_input_file *own;    /* owned */
} sample;

static mr_status open_piece(sample *sample, uint32_t piece, mr_error *error)
{
    const archives *archives = sample->source->detail;
    assert(piece < archives->piece_count);
    mr_tar_reader_free(sample->reader);
    sample->reader = nullptr;
    sample->piece = piece;
    return mr_tar_reader_new(sample->file, archives->pieces[piece].offset, &sample->reader, error);
}

static mr_status open_sample(const source *source, const row *row, sample *sample, mr_error *error)
{
    const archives *archives = source->detail;
    const archive *archive = &archives->items[row->detail];
    *sample = (struct sample){.source = source, .row = row, .file = archive->file};
    if (!sample->file) {
        MR_TRY(mr_input_file_open(archive->path, false, &sample->own, error));
        sample->file = sample->own;
    }
    mr_status status = open_piece(sample, (uint32_t)row->position, error);
    if (status != MR_OK) mr_input_file_close(sample->own);
    return status;
}

/* Reads the next member of the sample; MR_OUT_OF_RANGE after the last. */
static mr_status next_member(sample *sample, mr_tar_member *member, const char **ending, mr_error *error)
{
    const archives *archives = sample->source->detail;
    const char *key = sample->row->name;
    for (;;) {
        mr_status status = mr_tar_reader_next(sample->reader, member, error);
        if (status != MR_OK && status != MR_OUT_OF_RANGE) return status;
        size_t size = status == MR_OK && member->kind == MR_TAR_FILE ? tar_sample_size(member->name, ending) : 0;
        if (status == MR_OK && member->archive == 0 && size == 0)
            continue; /* reported as left out when it was
                                                                               listed */
        if (size > 0 && member->archive == 0 && strncmp(key, member->name, size) == 0 && !key[size]) return MR_OK;
        uint32_t next = archives->pieces[sample->piece].next;
        if (next == 0) return mr_fail(error, MR_OUT_OF_RANGE, "the sample has ended");
        MR_TRY(open_piece(sample, next - 1, error));
    }
}

static void close_sample(sample *sample)
{
    mr_tar_reader_free(sample->reader);
    mr_input_file_close(sample->own);
}

static const char *path_of(const source *source, const row *row)
{
    const archives *archives = source->detail;
    return archives->items[row->detail].path;
}

static mr_status read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    sample sample;
    mr_tar_member member;
    const char *ending;
    mr_error end = {0};
    MR_TRY(open_sample(source, row, &sample, error));
    mr_status status;
    while ((status = next_member(&sample, &member, &ending, &end)) == MR_OK)
        if (tar_is_image_ending(ending)) {
            status = tar_read_member(sample.file, &member, MEMBER_BYTES_MAX, bytes, &end);
            *has_image = status == MR_OK;
            break;
        }
    close_sample(&sample);
    if (status == MR_OK || status == MR_OUT_OF_RANGE) return MR_OK;
    return mr_fail(error, status, "%s: %s", path_of(source, row), end.message);
}

typedef struct field_putter {
    const columns *fields;
    const features *to;
} field_putter;

static mr_status put_field(void *context, mr_string name, const json_t *value, mr_error *error)
{
    const field_putter *putter = context;
    int64_t index = names_find(&putter->fields->names, name);
    if (index < 0) return mr_fail(error, MR_DATA_LOSS, "the archive has changed since it was listed");
    const column *column = &putter->fields->items[index];
    char *key = nullptr;
    if (asprintf(&key, "json/%s", column->name) < 0) return fail_memory(error, name.size_bytes);
    mr_status status = column_put_json(column, value, key, putter->to, error);
    free(key);
    return status;
}

static mr_status put_array(const source_bytes *bytes, const mr_tar_member *member, const char *key, const features *to,
                           mr_error *error)
{
    mr_input_file *file = nullptr;
    mr_npy array;
    mr_tensor tensor = {0};
    MR_TRY(mr_input_file_from((mr_string){bytes->data, bytes->size_bytes}, member->name, &file, error));
    mr_status status = mr_npy_open(file, 0, &array, error);
    if (status == MR_OK && array.kind == 'c')
        status = mr_fail(error, MR_UNIMPLEMENTED, "%s: complex numbers are not supported in features", member->name);
    if (status == MR_OK) status = mr_npy_read(file, &array, &tensor, error);
    if (status == MR_OK) status = put_tensor(&tensor, key, to, error);
    mr_tensor_deinit(&tensor);
    mr_input_file_close(file);
    return status;
}

/* Adds the features of a member that is neither image nor label. ending: in lower case */
static mr_status put_member(const archives *archives, const source_bytes *bytes, const mr_tar_member *member,
                            const char *ending, const features *to, mr_error *error)
{
    if (strcmp(ending, "npy") == 0 || source_has_ending(ending, ".npy"))
        return put_array(bytes, member, ending, to, error);
    if (strcmp(ending, "json") != 0) {
        put_bytes(to, ending, (mr_string){bytes->data, bytes->size_bytes});
        return MR_OK;
    }
    json_t *object = json_object_from(bytes->data, bytes->size_bytes, error);
    if (!object) return mr_fail_prefix(error, MR_DATA_LOSS, "%s", member->name);
    mr_status status = json_each_field(object, put_field, &(field_putter){&archives->fields, to}, error);
    json_decref(object);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s", member->name);
}

static mr_status add_member(sample *sample, const mr_tar_member *member, const char *ending, bool *has_image,
                            source_bytes *bytes, const features *to, mr_error *error)
{
    char key[TAR_KEY_BYTES];
    if (tar_is_image_ending(ending) && !*has_image) {
        *has_image = true;
        put_bytes(to, "image/filename", mr_string_from(member->name));
        return MR_OK;
    }
    if (strcasecmp(ending, "cls") == 0) return MR_OK;
    if (!tar_key(ending, key, sizeof(key)))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the extension is too long for the name of a feature",
                       member->name);
    MR_TRY(tar_read_member(sample->file, member, MEMBER_BYTES_MAX, bytes, error));
    return put_member(sample->source->detail, bytes, member, key, to, error);
}

/* Rejects a second member with the same extension in a sample: one of them would be lost. */
static mr_status check_ending(names *endings, const mr_tar_member *member, const char *ending, mr_error *error)
{
    char key[TAR_KEY_BYTES];
    uint32_t number, before = endings->count;
    if (!tar_key(ending, key, sizeof(key))) return MR_OK; /* rejected by add_member */
    MR_TRY(names_add(endings, mr_string_from(key), &number, error));
    if (number == before) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "%s: its sample already has a member with the extension \"%s\"", member->name,
                   key);
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    sample sample;
    mr_tar_member member;
    const char *ending;
    source_bytes bytes = {0};
    mr_error end = {0};
    bool has_image = false;
    names endings = {0};
    if (row->label == TAR_LABEL_FAULT) {
        (void)mr_fail(error, MR_INVALID_ARGUMENT, "its .cls contains no label");
        return source_fail_row(source, row, MR_INVALID_ARGUMENT, error);
    }
    MR_TRY(open_sample(source, row, &sample, error));
    put_bytes(to, "__key__", mr_string_from(row->name));
    if (row->label >= 0) put_int64(to, "image/class/label", row->label);
    if (row->label >= 0 && source->class_count > 0)
        put_bytes(to, "image/class/text", mr_string_from(source->classes[row->label]));
    mr_status status;
    while ((status = next_member(&sample, &member, &ending, &end)) == MR_OK) {
        status = check_ending(&endings, &member, ending, &end);
        if (status == MR_OK) status = add_member(&sample, &member, ending, &has_image, &bytes, to, &end);
        if (status != MR_OK) break;
    }
    close_sample(&sample);
    free(bytes.data);
    names_deinit(&endings);
    if (status == MR_OUT_OF_RANGE) return MR_OK;
    return mr_fail(error, status, "%s: %s", path_of(source, row), end.message);
}

static void deinit(source *source)
{
    archives *archives = source->detail;
    for (int32_t i = 0; i < archives->count; i++) {
        free(archives->items[i].path);
        mr_input_file_close(archives->items[i].file);
    }
    free(archives->items);
    free(archives->pieces);
    columns_deinit(&archives->fields);
    names_deinit(&archives->labels);
    free(archives);
}

const source_functions tar_functions = {
    .image = read_image, .add_features = add_features, .directory = path_of, .deinit = deinit};
