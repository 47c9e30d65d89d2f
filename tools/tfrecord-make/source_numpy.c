/* The NumPy source: row i of each array of an .npz, or of the array of an .npy, is a feature of record i. Whole
 * numbers and booleans become int64, other numbers float, text bytes. An array of images can be encoded as PNG, and
 * any array can be stored as raw bytes. */
#include "tfrecord-make/columns.h"
#include "tfrecord-make/make.h"

#include <inttypes.h>
#include <math.h>
#include <millrace/formats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum array_use { USE_FEATURE, USE_IMAGE, USE_RAW } array_use;

typedef struct array {
    char *name;                /* owned */
    mr_input_file *own;        /* owned; null if it is in the input file itself */
    const mr_input_file *file; /* borrowed: the file with its elements */
    mr_npy npy;
    array_use use;
} array;

typedef struct arrays {
    mr_input_file *file; /* owned */
    array *items;        /* owned */
    int32_t count;
    int64_t row_count;
} arrays;

/* ---- Opening ---- */

static bool is_dropped(const source *source, const char *name)
{
    for (int i = 0; i < source->in->key_count; i++)
        if (strcmp(source->in->keys[i].from, name) == 0 && !*source->in->keys[i].to) return true;
    return false;
}

static mr_status fail_array(const source *source, const array *array, const char *reason, mr_error *error)
{
    char shape[MR_SHAPE_TEXT_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the array %s%s %s", source->input, array->name,
                   mr_shape_text(array->npy.shape, shape, sizeof(shape)), reason);
}

static mr_status check_use(const source *source, array *array, mr_error *error)
{
    const mr_npy *npy = &array->npy;
    if (source->in->image && strcmp(array->name, source->in->image) == 0) {
        bool has_channels = npy->shape.rank == 4 && npy->shape.dims[3] >= 1 && npy->shape.dims[3] <= 4;
        if ((npy->dtype != MR_UINT8 && npy->dtype != MR_UINT16) || (npy->shape.rank != 3 && !has_channels))
            return fail_array(source, array,
                              "does not contain images: expected uint8 or uint16 of shape [row, height, width] or "
                              "[row, height, width, 1…4]",
                              error);
        if (list_has(source->in->raw, mr_string_from(array->name)))
            return fail_array(source, array, "is given for --image, so --raw has no effect on it", error);
        array->use = USE_IMAGE;
        return MR_OK;
    }
    if (list_has(source->in->raw, mr_string_from(array->name))) {
        if (npy->dtype == MR_STRING) return fail_array(source, array, "is text, which --raw does not support", error);
        array->use = USE_RAW;
        return MR_OK;
    }
    if (npy->kind == 'c') return fail_array(source, array, "is complex; use --raw to store its bytes", error);
    return MR_OK;
}

/* Adds an array whose header is at the start of a file. own: ownership is transferred; or null */
static mr_status add_array(source *source, arrays *arrays, const char *name, mr_input_file *own, mr_error *error)
{
    array array = {.own = own, .file = own ? own : arrays->file, .name = strdup(name)};
    mr_status status = array.name ? MR_OK : fail_memory(error, strlen(name));
    if (status == MR_OK) status = mr_npy_open(array.file, 0, &array.npy, error);
    if (status == MR_OK) status = check_use(source, &array, error);
    if (status == MR_OK && array.use != USE_IMAGE) status = source_declare(source, name, error);
    if (status == MR_OK && array.npy.shape.rank == 0) {
        status = source_note(source, "array without rows left out|arrays without rows left out", name, error);
    } else if (status == MR_OK && array.npy.fortran_order) {
        status = mr_npy_to_c_order(array.file, &array.npy, &array.own, error);
        if (status == MR_OK) {
            mr_input_file_close(own);
            own = nullptr;
            array.file = array.own;
        }
    }
    struct array *grown = nullptr;
    if (status == MR_OK && array.npy.shape.rank > 0) {
        grown = realloc(arrays->items, ((size_t)arrays->count + 1) * sizeof(array));
        if (!grown) status = fail_memory(error, sizeof(array));
    }
    if (!grown) {
        mr_input_file_close(array.own);
        if (own != array.own) mr_input_file_close(own);
        free(array.name);
        return status;
    }
    arrays->items = grown;
    grown[arrays->count++] = array;
    if (arrays->count > 1 && array.npy.shape.dims[0] != arrays->row_count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: the array %s has %" PRId64 " rows, but %s has %" PRId64 "; --key %s= leaves one out",
                       source->input, grown[0].name, arrays->row_count, array.name, array.npy.shape.dims[0],
                       array.name);
    arrays->row_count = array.npy.shape.dims[0];
    return MR_OK;
}

static mr_status open_members(source *source, arrays *arrays, const mr_zip *zip, mr_error *error)
{
    for (int64_t i = 0; i < zip->count; i++) {
        const mr_zip_member *member = &zip->members[i];
        size_t length = strlen(member->name);
        char *name = strndup(member->name, source_has_ending(member->name, ".npy") ? length - 4 : length);
        mr_input_file *part = nullptr;
        mr_status status = name ? MR_OK : fail_memory(error, length);
        for (int32_t j = 0; j < arrays->count && status == MR_OK; j++)
            if (strcmp(arrays->items[j].name, name) == 0)
                status = mr_fail(error, MR_DATA_LOSS, "%s: the array %s occurs twice", source->input, name);
        if (status == MR_OK && !source_has_ending(member->name, ".npy")) {
            status = source_note(source, "member that is not .npy left out|members that are not .npy left out",
                                 member->name, error);
        } else if (status == MR_OK && is_dropped(source, name)) {
            status = source_declare(source, name, error);
        } else if (status == MR_OK) {
            status = mr_zip_extract(arrays->file, member, &part, error);
            if (status == MR_OK) status = add_array(source, arrays, name, part, error);
        }
        free(name);
        MR_TRY(status);
    }
    return MR_OK;
}

static mr_status open_arrays(source *source, arrays *arrays, mr_error *error)
{
    char magic[4] = {0};
    size_t done;
    MR_TRY(mr_input_file_open(source->input, false, &arrays->file, error));
    MR_TRY(mr_input_file_read(arrays->file, 0, magic, sizeof(magic), &done, error));
    if (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0) {
        mr_zip zip;
        MR_TRY(mr_zip_open(arrays->file, &zip, error));
        mr_status status = open_members(source, arrays, &zip, error);
        mr_zip_deinit(&zip);
        return status;
    }
    const char *slash = strrchr(source->input, '/'), *base = slash ? slash + 1 : source->input;
    size_t length = strlen(base);
    char *name = strndup(base, source_has_ending(base, ".npy") ? length - 4 : length);
    if (!name) return fail_memory(error, length);
    mr_status status = add_array(source, arrays, name, nullptr, error);
    free(name);
    return status;
}

/* A name in an option that matches no array is an error. */
static mr_status check_names(const source *source, const arrays *arrays, const char *option, const char *names,
                             mr_error *error)
{
    for (mr_string name; list_next(&names, &name);) {
        bool is_there = false;
        for (int32_t i = 0; i < arrays->count; i++)
            is_there |= mr_string_equal(name, mr_string_from(arrays->items[i].name));
        if (!is_there)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has no array \"%.*s\"", option, source->input,
                           (int)name.size_bytes, name.data);
    }
    return MR_OK;
}

/* ---- Reading ---- */

static mr_status read_row(const source *source, const row *row, const array *array, mr_tensor *tensor, mr_error *error)
{
    return mr_npy_read_rows(array->file, &array->npy, (int64_t)row->position, (int64_t)row->position + 1, tensor,
                            error);
}

/* Reads the pixels, which determine the PNG. */
static mr_status read_content(const source *source, const row *row, source_bytes *bytes, bool *has_image,
                              mr_error *error)
{
    const arrays *arrays = source->detail;
    mr_tensor pixels = {0};
    int32_t i = 0;
    while (i < arrays->count && arrays->items[i].use != USE_IMAGE) i++;
    if (i == arrays->count) return MR_OK;
    MR_TRY(read_row(source, row, &arrays->items[i], &pixels, error));
    size_t size = mr_tensor_size_bytes(&pixels);
    mr_status status = source_bytes_reserve(bytes, size, error);
    if (status == MR_OK) memcpy(bytes->data, pixels.data, size);
    if (status == MR_OK) bytes->size_bytes = size;
    *has_image = status == MR_OK;
    mr_tensor_deinit(&pixels);
    return status;
}

static mr_status read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    const arrays *arrays = source->detail;
    mr_tensor pixels = {0}, image = {0}, encoded = {0};
    int32_t i = 0;
    while (i < arrays->count && arrays->items[i].use != USE_IMAGE) i++;
    if (i == arrays->count) return MR_OK;
    const mr_npy *npy = &arrays->items[i].npy;
    mr_shape shape = MR_SHAPE(npy->shape.dims[1], npy->shape.dims[2], npy->shape.rank == 4 ? npy->shape.dims[3] : 1);
    mr_status status = read_row(source, row, &arrays->items[i], &pixels, error);
    if (status == MR_OK) status = mr_tensor_reshape(&pixels, shape, &image, error);
    if (status == MR_OK) status = mr_image_encode_png(&image, &encoded, error);
    if (status == MR_OK) {
        mr_string png = mr_tensor_strings(&encoded)[0];
        status = source_bytes_reserve(bytes, png.size_bytes, error);
        if (status == MR_OK) memcpy(bytes->data, png.data, png.size_bytes);
        if (status == MR_OK) bytes->size_bytes = png.size_bytes;
    }
    *has_image = status == MR_OK;
    mr_tensor_deinit(&pixels);
    mr_tensor_deinit(&image);
    mr_tensor_deinit(&encoded);
    return status;
}

static mr_status integer_at(const mr_tensor *tensor, size_t i, int64_t *value, mr_error *error)
{
    uint64_t wide;
    switch (tensor->dtype) {
    case MR_BOOL:
    case MR_UINT8:
        *value = ((const uint8_t *)tensor->data)[i];
        return MR_OK;
    case MR_INT8:
        *value = ((const int8_t *)tensor->data)[i];
        return MR_OK;
    case MR_INT16:
        *value = ((const int16_t *)tensor->data)[i];
        return MR_OK;
    case MR_UINT16:
        *value = ((const uint16_t *)tensor->data)[i];
        return MR_OK;
    case MR_INT32:
        *value = ((const int32_t *)tensor->data)[i];
        return MR_OK;
    case MR_UINT32:
        *value = ((const uint32_t *)tensor->data)[i];
        return MR_OK;
    case MR_INT64:
        *value = ((const int64_t *)tensor->data)[i];
        return MR_OK;
    default:
        wide = ((const uint64_t *)tensor->data)[i];
        if (wide > INT64_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "%" PRIu64 " is too large for an int64", wide);
        *value = (int64_t)wide;
        return MR_OK;
    }
}

static mr_status float_number(const mr_tensor *tensor, size_t i, float *value, mr_error *error)
{
    if (tensor->dtype == MR_FLOAT) {
        *value = ((const float *)tensor->data)[i];
    } else if (tensor->dtype == MR_HALF) {
        *value = mr_half_to_float(((const uint16_t *)tensor->data)[i]);
    } else {
        double wide = ((const double *)tensor->data)[i];
        *value = (float)wide;
        if (isinf(*value) && !isinf(wide))
            return mr_fail(error, MR_INVALID_ARGUMENT, "%g is too large for a float", wide);
    }
    return MR_OK;
}

mr_status put_tensor(const mr_tensor *tensor, const char *key, const features *to, mr_error *error)
{
    size_t count = (size_t)mr_tensor_count(tensor);
    if (tensor->dtype == MR_STRING) {
        put_bytes_list(to, key, mr_tensor_strings(tensor), count);
        return MR_OK;
    }
    bool is_float = tensor->dtype == MR_FLOAT || tensor->dtype == MR_DOUBLE || tensor->dtype == MR_HALF;
    int64_t *whole = malloc((count + 1) * sizeof(int64_t));
    float *floats = (float *)whole;
    if (!whole) return fail_memory(error, count * sizeof(int64_t));
    mr_status status = MR_OK;
    for (size_t i = 0; i < count && status == MR_OK; i++)
        status = is_float ? float_number(tensor, i, &floats[i], error) : integer_at(tensor, i, &whole[i], error);
    if (status == MR_OK && is_float) put_float_list(to, key, floats, count);
    if (status == MR_OK && !is_float) put_int64_list(to, key, whole, count);
    free(whole);
    return status;
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    const arrays *arrays = source->detail;
    for (int32_t i = 0; i < arrays->count; i++) {
        const array *array = &arrays->items[i];
        mr_tensor tensor = {0};
        if (array->use == USE_IMAGE) continue;
        mr_status status = read_row(source, row, array, &tensor, error);
        if (status == MR_OK && array->use == USE_RAW)
            put_bytes(to, array->name, (mr_string){tensor.data, mr_tensor_size_bytes(&tensor)});
        else if (status == MR_OK)
            status = put_tensor(&tensor, array->name, to, error);
        mr_tensor_deinit(&tensor);
        if (status != MR_OK)
            return mr_fail_prefix(error, status, "%s: %s, array %s", source->input, row->name, array->name);
    }
    return MR_OK;
}

static void deinit(source *source)
{
    arrays *arrays = source->detail;
    for (int32_t i = 0; i < arrays->count; i++) {
        free(arrays->items[i].name);
        mr_input_file_close(arrays->items[i].own);
    }
    free(arrays->items);
    mr_input_file_close(arrays->file);
    free(arrays);
}

mr_status source_numpy_open(source *source, mr_error *error)
{
    static const source_functions functions = {
        .image = read_image, .content = read_content, .add_features = add_features, .deinit = deinit};
    arrays *arrays = calloc(1, sizeof(*arrays));
    if (!arrays) return fail_memory(error, sizeof(*arrays));
    source->detail = arrays;
    source->functions = &functions;
    source->row_noun = "row";
    source->names_are_positions = true;
    source->sizes_include_more = true;
    source->has_images = source->in->image != nullptr;
    MR_TRY(open_arrays(source, arrays, error));
    MR_TRY(check_names(source, arrays, "--image", source->in->image, error));
    MR_TRY(check_names(source, arrays, "--raw", source->in->raw, error));
    uint64_t row_bytes = 0;
    for (int32_t i = 0; i < arrays->count; i++) {
        const array *array = &arrays->items[i];
        int64_t count = mr_shape_count(array->npy.shape);
        if (arrays->row_count > 0) row_bytes += (uint64_t)(count / arrays->row_count) * array->npy.item_bytes;
        source->facts_hash = plan_hash(source->facts_hash, array->name, strlen(array->name));
        uint64_t facts[2] = {array->use, array->npy.dtype};
        source->facts_hash = plan_hash(source->facts_hash, facts, sizeof(facts));
    }
    for (int64_t i = 0; i < arrays->row_count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "row %" PRId64, i);
        MR_TRY(source_add_row(source,
                              &(row){.name = name,
                                     .size_bytes = row_bytes,
                                     .modified_ns = mr_input_file_modified_ns(arrays->file),
                                     .position = (uint64_t)i,
                                     .label = -1},
                              error));
    }
    return MR_OK;
}
