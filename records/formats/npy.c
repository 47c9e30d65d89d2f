/* The reader and writer of NumPy's .npy format: "\x93NUMPY", a version, the length of the header, the header (a Python
 * dict as text, padded to 64 bytes), then the elements. The header parser accepts only that dict; nothing is
 * evaluated. */
#include "records/io/input_file.h"

#include "base/arguments.h"
#include "base/status.h"
#include "records/io/file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr uint32_t HEADER_BYTES_MAX = (uint32_t)1 << 20;
/* Approximate size of the rows of a Fortran-order array that are transposed at a time. */
static constexpr uint64_t TRANSPOSE_BYTES = (uint64_t)16 << 20;
/* Maximum size of one 'S' or 'U' element. */
static constexpr uint32_t ITEM_BYTES_MAX = (uint32_t)1 << 28;

static const struct {
    char kind;
    uint32_t item_bytes;
    mr_dtype dtype;
} numbers[] = {{'b', 1, MR_BOOL},      {'i', 1, MR_INT8},       {'i', 2, MR_INT16},  {'i', 4, MR_INT32},
               {'i', 8, MR_INT64},     {'u', 1, MR_UINT8},      {'u', 2, MR_UINT16}, {'u', 4, MR_UINT32},
               {'u', 8, MR_UINT64},    {'f', 2, MR_HALF},       {'f', 4, MR_FLOAT},  {'f', 8, MR_DOUBLE},
               {'c', 8, MR_COMPLEX64}, {'c', 16, MR_COMPLEX128}};
static constexpr size_t NUMBER_COUNT = sizeof(numbers) / sizeof(numbers[0]);

static mr_status fail_array(const mr_input_file *file, mr_status status, const char *reason, mr_error *error)
{
    return mr_fail(error, status, "%s: %s", mr_input_file_name(file), reason);
}

/* ---- The header ---- */

/* The header text and the read position. */
typedef struct cursor {
    const char *next, *end;
} cursor;

static void skip_blanks(cursor *at)
{
    assert(at->next <= at->end);
    while (at->next < at->end && (*at->next == ' ' || *at->next == '\n' || *at->next == '\t')) at->next++;
}

static bool take(cursor *at, char c)
{
    skip_blanks(at);
    if (at->next == at->end || *at->next != c) return false;
    at->next++;
    return true;
}

static bool take_keyword(cursor *at, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(at);
    if ((size_t)(at->end - at->next) < length || memcmp(at->next, word, length) != 0) return false;
    at->next += length;
    return true;
}

/* 'text' or "text" without escapes. */
static bool take_string(cursor *at, mr_string *text)
{
    skip_blanks(at);
    if (at->next == at->end || (*at->next != '\'' && *at->next != '"')) return false;
    char quote = *at->next++;
    const char *begin = at->next;
    while (at->next < at->end && *at->next != quote && *at->next != '\\') at->next++;
    if (at->next == at->end || *at->next != quote) return false;
    *text = (mr_string){begin, (size_t)(at->next++ - begin)};
    return true;
}

static bool take_number(cursor *at, int64_t *number)
{
    skip_blanks(at);
    const char *begin = at->next;
    int64_t value = 0;
    for (; at->next < at->end && *at->next >= '0' && *at->next <= '9'; at->next++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at->next - '0', &value))
            return false;
    if (at->next > begin && at->next < at->end && *at->next == 'L') at->next++; /* suffix of Python 2's long integers */
    *number = value;
    return at->next > begin;
}

typedef enum shape_result { SHAPE_GOOD, SHAPE_BAD, SHAPE_DEEP } shape_result;

static shape_result take_shape(cursor *at, mr_shape *shape)
{
    *shape = MR_SCALAR;
    if (!take(at, '(')) return SHAPE_BAD;
    for (;;) {
        int64_t size;
        if (take(at, ')')) return SHAPE_GOOD;
        if (!take_number(at, &size)) return SHAPE_BAD;
        if (shape->rank == MR_RANK_MAX) return SHAPE_DEEP;
        assert(shape->rank < MR_RANK_MAX);
        shape->dims[shape->rank++] = size;
        if (!take(at, ',')) return take(at, ')') ? SHAPE_GOOD : SHAPE_BAD;
    }
}

/* "<f4", "|S12", ">U7" */
static mr_status parse_type(const mr_input_file *file, mr_string text, mr_npy *array, mr_error *error)
{
    cursor at = {text.data, text.data + text.size_bytes};
    int64_t size = 0;
    bool has_order = at.next < at.end && strchr("<>|=", *at.next) != nullptr && *at.next;
    array->is_big_endian = has_order && *at.next == '>';
    at.next += has_order;
    array->kind = at.next < at.end ? *at.next++ : '\0';
    if (array->kind == 'a') array->kind = 'S';
    bool is_text = array->kind == 'S' || array->kind == 'U';
    if (array->kind == '?' && at.next == at.end) {
        array->kind = 'b';
        size = 1;
    } else if (array->kind == 'O') {
        return fail_array(file, MR_UNIMPLEMENTED, "contains pickled Python objects, which are not supported", error);
    } else if (!take_number(&at, &size) || at.next != at.end) {
        size = -1;
    }
    if (is_text && size >= 0 && size <= ITEM_BYTES_MAX / 4) {
        array->item_bytes = (uint32_t)size * (array->kind == 'U' ? 4 : 1);
        array->dtype = MR_STRING;
        return MR_OK;
    }
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i].kind == array->kind && numbers[i].item_bytes == size) {
            array->item_bytes = numbers[i].item_bytes;
            array->dtype = numbers[i].dtype;
            return MR_OK;
        }
    return mr_fail(error, MR_UNIMPLEMENTED, "%s: elements of NumPy type \"%.*s\" are not supported",
                   mr_input_file_name(file), text.size_bytes > 40 ? 40 : (int)text.size_bytes, text.data);
}

static mr_status parse_header(const mr_input_file *file, const char *text, size_t size, mr_npy *array, mr_error *error)
{
    cursor at = {text, text + size};
    bool has_type = false, has_order = false, has_shape = false;
    bool good = take(&at, '{');
    while (good && !take(&at, '}')) {
        mr_string key, value;
        good = take_string(&at, &key) && take(&at, ':');
        if (!good) break;
        if (mr_string_equal(key, MR_STR("descr"))) {
            skip_blanks(&at);
            if (at.next < at.end && (*at.next == '[' || *at.next == '('))
                return fail_array(file, MR_UNIMPLEMENTED, "the elements are structures, which are not supported",
                                  error);
            good = take_string(&at, &value);
            if (good) MR_TRY(parse_type(file, value, array, error));
            has_type = true;
        } else if (mr_string_equal(key, MR_STR("fortran_order"))) {
            array->fortran_order = take_keyword(&at, "True");
            good = array->fortran_order || take_keyword(&at, "False");
            has_order = true;
        } else if (mr_string_equal(key, MR_STR("shape"))) {
            shape_result result = take_shape(&at, &array->shape);
            if (result == SHAPE_DEEP) return fail_array(file, MR_UNIMPLEMENTED, "has more than 12 dimensions", error);
            good = result == SHAPE_GOOD;
            has_shape = true;
        } else {
            good = false;
        }
        if (good && !take(&at, ',')) {
            good = take(&at, '}');
            break;
        }
    }
    if (!good || !has_type || !has_order || !has_shape)
        return fail_array(file, MR_DATA_LOSS, "invalid array header", error);
    return MR_OK;
}

mr_status mr_npy_open(const mr_input_file *file, uint64_t offset, mr_npy *array, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(array, error);
    unsigned char start[12] = {0};
    size_t done = 0;
    *array = (mr_npy){0};
    MR_TRY(mr_input_file_read(file, offset, start, sizeof(start), &done, error));
    if (done < 10 || memcmp(start, "\x93NUMPY", 6) != 0)
        return fail_array(file, MR_INVALID_ARGUMENT, "not a NumPy array (.npy)", error);
    if (start[6] < 1 || start[6] > 3)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: version %d.%d of .npy is not supported", mr_input_file_name(file),
                       start[6], start[7]);
    uint32_t length = (uint32_t)start[8] | (uint32_t)start[9] << 8, begin = 10;
    if (start[6] > 1) {
        length |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
        begin = 12;
    }
    if (length > HEADER_BYTES_MAX) return fail_array(file, MR_DATA_LOSS, "the header is longer than 1 MiB", error);
    char *text = malloc((size_t)length + 1);
    if (text == nullptr) return mr_fail_memory(error, length);
    mr_status status = mr_input_file_read_all(file, offset + begin, text, length, error);
    if (status == MR_OK) status = parse_header(file, text, length, array, error);
    free(text);
    MR_TRY(status);
    array->offset = offset + begin + length;
    if (array->shape.rank < 2) array->fortran_order = false;
    int64_t count = mr_shape_count(array->shape);
    uint64_t there = mr_input_file_size(file) - array->offset, needed;
    if (count < 0 || __builtin_mul_overflow((uint64_t)count, (uint64_t)array->item_bytes, &needed))
        return fail_array(file, MR_DATA_LOSS, "invalid shape", error);
    /* Elements of 0 bytes still use memory in the result. */
    if (array->item_bytes == 0 && (uint64_t)count > mr_input_file_size(file))
        return fail_array(file, MR_DATA_LOSS, "invalid shape", error);
    if (needed <= there) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "%s: truncated: the shape requires %" PRIu64 " bytes, the file has %" PRIu64,
                   mr_input_file_name(file), needed, there);
}

/* ---- Elements ---- */

static void swap_bytes(unsigned char *bytes, size_t item_bytes, size_t count)
{
    assert(item_bytes > 0 || count == 0);
    for (size_t i = 0; i < count; i++)
        for (size_t a = i * item_bytes, b = a + item_bytes - 1; a < b; a++, b--) {
            unsigned char byte = bytes[a];
            bytes[a] = bytes[b];
            bytes[b] = byte;
        }
}

/* Reads rows of an array in Fortran order and transposes them. Element (row, j) is stored at row + rows * j, where j
 * counts the other indices with the first one varying fastest; in the result the last one varies fastest. */
static mr_status read_fortran(const mr_input_file *file, const mr_npy *array, int64_t begin, int64_t end,
                              unsigned char *target, mr_error *error)
{
    assert(array->shape.rank >= 2 && 0 <= begin && begin <= end && end <= array->shape.dims[0]);
    size_t item = array->item_bytes, count = (size_t)(end - begin);
    int64_t columns = 1, index[MR_RANK_MAX] = {0};
    for (int i = 1; i < array->shape.rank; i++) columns *= array->shape.dims[i];
    unsigned char *column = malloc(count * item + 1);
    if (column == nullptr) return mr_fail_memory(error, count * item);
    mr_status status = MR_OK;
    for (int64_t j = 0; j < columns && status == MR_OK; j++) {
        uint64_t element = ((uint64_t)j * (uint64_t)array->shape.dims[0] + (uint64_t)begin) * item;
        status = mr_input_file_read_all(file, array->offset + element, column, count * item, error);
        size_t to = 0;
        for (int i = 1; i < array->shape.rank; i++) to = to * (size_t)array->shape.dims[i] + (size_t)index[i];
        assert(to < (size_t)columns);
        for (size_t row = 0; row < count && status == MR_OK; row++)
            memcpy(target + (row * (size_t)columns + to) * item, column + row * item, item);
        for (int i = 1; i < array->shape.rank && ++index[i] == array->shape.dims[i]; i++) index[i] = 0;
    }
    free(column);
    return status;
}

static size_t utf8_size(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static char *put_utf8(char *next, uint32_t c)
{
    assert(c <= 0x10ffff);
    size_t size = utf8_size(c);
    if (size == 1) {
        *next++ = (char)c;
        return next;
    }
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    *next++ = (char)(marks[size] | c >> 6 * (size - 1));
    for (size_t i = size - 1; i > 0; i--) *next++ = (char)(0x80 | (c >> 6 * (i - 1) & 0x3f));
    return next;
}

/* The characters of a 'U' element, up to the last one that is not NUL. Surrogates and invalid code points become
 * U+FFFD. */
static size_t text_characters(const unsigned char *bytes, uint32_t item_bytes, uint32_t *characters)
{
    assert(item_bytes % 4 == 0);
    size_t count = item_bytes / 4, used = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t c;
        memcpy(&c, bytes + 4 * i, 4);
        characters[i] = c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c;
        if (c) used = i + 1;
    }
    return used;
}

/* Creates the string tensor from elements in their file format. */
static mr_status make_strings(const mr_npy *array, mr_shape shape, unsigned char *bytes, size_t count,
                              mr_tensor *tensor, mr_error *error)
{
    size_t item = array->item_bytes, characters = item / 4 + 1;
    mr_string *strings = calloc(count + 1, sizeof(mr_string));
    /* UTF-8 is never longer than UTF-32. */
    char *text = malloc(count * item + 1), *next = text;
    uint32_t *buffer = malloc(characters * sizeof(uint32_t));
    mr_status status = strings != nullptr && text != nullptr && buffer != nullptr
                           ? MR_OK
                           : mr_fail_memory(error, count * (item + sizeof(mr_string)));
    if (status == MR_OK && array->kind == 'U' && array->is_big_endian) swap_bytes(bytes, 4, count * item / 4);
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        const unsigned char *from = bytes + i * item;
        size_t size = item;
        strings[i].data = next;
        if (array->kind == 'S') {
            while (size > 0 && from[size - 1] == 0) size--;
            memcpy(next, from, size);
            next += size;
        } else {
            size_t used = text_characters(from, array->item_bytes, buffer);
            for (size_t j = 0; j < used; j++) next = put_utf8(next, buffer[j]);
        }
        strings[i].size_bytes = (size_t)(next - strings[i].data);
        assert((size_t)(next - text) <= (i + 1) * item);
    }
    if (status == MR_OK) status = mr_tensor_init_strings(tensor, shape, strings, error);
    free(strings);
    free(text);
    free(buffer);
    return status;
}

static mr_status read_elements(const mr_input_file *file, const mr_npy *array, int64_t begin, int64_t end,
                               uint64_t row_bytes, unsigned char *bytes, mr_error *error)
{
    size_t size = (size_t)(end - begin) * (size_t)row_bytes;
    if (array->fortran_order) return read_fortran(file, array, begin, end, bytes, error);
    return mr_input_file_read_all(file, array->offset + (uint64_t)begin * row_bytes, bytes, size, error);
}

/* Reads rows [begin, end), of row_bytes each, into a tensor of the given shape. */
static mr_status read_shape(const mr_input_file *file, const mr_npy *array, mr_shape shape, int64_t begin, int64_t end,
                            mr_tensor *tensor, mr_error *error)
{
    int64_t count = mr_shape_count(shape), rows = end - begin;
    assert(count >= 0);
    uint64_t row_bytes = rows > 0 ? (uint64_t)count / (uint64_t)rows * array->item_bytes : 0;
    if (array->dtype != MR_STRING) {
        MR_TRY(mr_tensor_init(tensor, array->dtype, shape, error));
        mr_status status = count == 0 ? MR_OK : read_elements(file, array, begin, end, row_bytes, tensor->data, error);
        if (status != MR_OK) {
            mr_tensor_deinit(tensor);
            return status;
        }
        size_t half = array->kind == 'c' ? 2 : 1;
        if (array->is_big_endian) swap_bytes(tensor->data, array->item_bytes / half, (size_t)count * half);
        for (int64_t i = 0; array->kind == 'b' && i < count; i++)
            ((unsigned char *)tensor->data)[i] = ((unsigned char *)tensor->data)[i] != 0;
        return MR_OK;
    }
    size_t size;
    if (__builtin_mul_overflow((size_t)count, (size_t)array->item_bytes, &size)) return mr_fail_memory(error, SIZE_MAX);
    unsigned char *bytes = calloc(size + 1, 1);
    if (bytes == nullptr) return mr_fail_memory(error, size);
    mr_status status = size == 0 ? MR_OK : read_elements(file, array, begin, end, row_bytes, bytes, error);
    if (status == MR_OK) status = make_strings(array, shape, bytes, (size_t)count, tensor, error);
    free(bytes);
    return status;
}

mr_status mr_npy_read_rows(const mr_input_file *file, const mr_npy *array, int64_t begin, int64_t end,
                           mr_tensor *tensor, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(array, error);
    MR_REFUSE_NULL(tensor, error);
    *tensor = (mr_tensor){0};
    if (array->shape.rank == 0 || begin < 0 || begin > end || end > array->shape.dims[0])
        return mr_fail(error, MR_OUT_OF_RANGE, "%s: the array does not have rows %" PRId64 " to %" PRId64,
                       mr_input_file_name(file), begin, end);
    mr_shape shape = array->shape;
    shape.dims[0] = end - begin;
    return read_shape(file, array, shape, begin, end, tensor, error);
}

mr_status mr_npy_read(const mr_input_file *file, const mr_npy *array, mr_tensor *tensor, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(array, error);
    MR_REFUSE_NULL(tensor, error);
    *tensor = (mr_tensor){0};
    int64_t rows = array->shape.rank > 0 ? array->shape.dims[0] : 1;
    return read_shape(file, array, array->shape, 0, rows, tensor, error);
}

mr_status mr_npy_to_c_order(const mr_input_file *file, mr_npy *array, mr_input_file **transposed, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(array, error);
    MR_REFUSE_NULL(transposed, error);
    int64_t rows = array->shape.rank > 0 ? array->shape.dims[0] : 1, count = mr_shape_count(array->shape);
    uint64_t row_bytes = rows > 0 ? (uint64_t)count / (uint64_t)rows * array->item_bytes : 0;
    int64_t block = row_bytes < TRANSPOSE_BYTES ? (int64_t)(TRANSPOSE_BYTES / (row_bytes + 1)) + 1 : 1;
    if (block > rows) block = rows;
    unsigned char *bytes = malloc((size_t)block * row_bytes + 1);
    if (bytes == nullptr) return mr_fail_memory(error, (size_t)block * row_bytes);
    mr_status status = mr_input_file_nameless(mr_input_file_name(file), transposed, error);
    for (int64_t i = 0; i < rows && status == MR_OK && row_bytes > 0; i += block) {
        int64_t end = rows - i < block ? rows : i + block;
        status = read_elements(file, array, i, end, row_bytes, bytes, error);
        if (status == MR_OK) status = mr_input_file_append(*transposed, bytes, (size_t)(end - i) * row_bytes, error);
    }
    free(bytes);
    if (status != MR_OK) {
        mr_input_file_close(*transposed);
        *transposed = nullptr;
        return status;
    }
    array->fortran_order = false;
    array->offset = 0;
    return MR_OK;
}

/* ---- Complete files ---- */

mr_status mr_npy_load(const char *path, mr_tensor *tensor, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(tensor, error);
    mr_input_file *file = nullptr;
    mr_npy array;
    *tensor = (mr_tensor){0};
    MR_TRY(mr_input_file_open(path, false, &file, error));
    mr_status status = mr_npy_open(file, 0, &array, error);
    if (status == MR_OK) status = mr_npy_read(file, &array, tensor, error);
    mr_input_file_close(file);
    return status;
}

mr_status mr_npy_save(const char *path, const mr_tensor *tensor, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(tensor, error);
    char text[512];
    size_t i = 0;
    while (i < NUMBER_COUNT && numbers[i].dtype != tensor->dtype) i++;
    if (i == NUMBER_COUNT)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: elements of dtype %s cannot be written", path,
                       mr_dtype_name(tensor->dtype));
    int used = snprintf(text, sizeof(text), "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                        numbers[i].item_bytes == 1 ? '|' : '<', numbers[i].kind, numbers[i].item_bytes);
    for (int32_t j = 0; j < tensor->shape.rank; j++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%" PRId64 ", ", tensor->shape.dims[j]);
    used += snprintf(text + used, sizeof(text) - (size_t)used, "), }");
    while ((used + 11) % 64 != 0) text[used++] = ' ';
    assert(used > 0 && (size_t)used < sizeof(text));
    text[used++] = '\n';
    const unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)used, (unsigned char)(used >> 8)};
    mr_file_output output = {0};
    MR_TRY(mr_file_output_open(&output, path, true, error));
    mr_status status = mr_file_output_write(&output, start, sizeof(start), error);
    if (status == MR_OK) status = mr_file_output_write(&output, text, (size_t)used, error);
    if (status == MR_OK) status = mr_file_output_write(&output, tensor->data, mr_tensor_size_bytes(tensor), error);
    if (status != MR_OK) {
        mr_file_output_discard(&output);
        return status;
    }
    return mr_file_output_commit(&output, error);
}
