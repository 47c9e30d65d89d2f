/* CSV, tar, .npy and zip: valid files of other programs, and invalid files. */
#include "tests/records/record_data.h"
#include "tests/test.h"

#include <millrace/formats.h>

#include <sys/stat.h>

/* ---- CSV ---- */

/* All cells of a text as "a|b;c|-;", with "-" for an empty cell. */
static const char *csv_cells(const char *text, char separator)
{
    static char result[4096];
    size_t used = 0;
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row;
    result[0] = '\0';
    CHECK_OK(mr_input_file_from(mr_string_from(text), "text", &file, &error));
    CHECK_OK(mr_csv_reader_new(file, separator, &reader, &error));
    mr_status status;
    while ((status = mr_csv_reader_next(reader, &row, &error)) == MR_OK)
        for (int32_t i = 0; i < row->count; i++) {
            mr_string cell = row->cells[i].data ? row->cells[i] : MR_STR("-");
            used += (size_t)snprintf(result + used, sizeof result - used, "%.*s%c", (int)cell.size_bytes, cell.data,
                                     i + 1 < row->count ? '|' : ';');
        }
    if (status != MR_OUT_OF_RANGE) snprintf(result + used, sizeof result - used, "error: %s", error.message);
    mr_csv_reader_free(reader);
    mr_input_file_close(file);
    return result;
}

TEST(csv_cells_are_those_of_the_rfc)
{
    CHECK_STR(csv_cells("a,b\n1,2\n", 0), "a|b;1|2;");
    CHECK_STR(csv_cells("\xef\xbb\xbf"
                        "a,b\r\n1,2",
                        0),
              "a|b;1|2;");
    CHECK_STR(csv_cells("a\rb\r\rc", 0), "a;b;c;");
    CHECK_STR(csv_cells(",\n\"\",\n", 0), "-|-;|-;");
    CHECK_STR(csv_cells("\"x,\n y\",\"say \"\"hi\"\"\"\n\"\"\"\"\n", 0), "x,\n y|say \"hi\";\";");
    CHECK_STR(csv_cells("a b\t\"c\td\"\te,f", '\t'), "a b|c\td|e,f;");
    CHECK_STR(csv_cells("", 0), "");
    CHECK_STR(csv_cells("\n\r\n\n", 0), "");
    CHECK_STR(csv_cells("\xff\xc3(,\x80\n", 0), "\xff\xc3(|\x80;");
}

TEST(csv_faults_name_line_and_cell)
{
    CHECK_STR(csv_cells("a,b\n\n1,\"2\n3,4\n", 0), "a|b;error: text: line 3: cell 2: unterminated quote");
    CHECK_CONTAINS(csv_cells("a\nx\"y\n", 0), "error: text: line 2: cell 1: a quote inside an unquoted cell");
    CHECK_CONTAINS(csv_cells("a\n\"x\"y\n", 0), "line 2: cell 1: text after the closing quote");
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row;
    CHECK_OK(mr_input_file_from(MR_STR("a\n1\0002\n"), "text", &file, &error));
    CHECK_OK(mr_csv_reader_new(file, 0, &reader, &error));
    CHECK_OK(mr_csv_reader_next(reader, &row, &error));
    CHECK_STATUS(mr_csv_reader_next(reader, &row, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "line 2: cell 1: contains a NUL byte");
    mr_csv_reader_free(reader);
    mr_input_file_close(file);
    CHECK_OK(mr_input_file_from(MR_STR("\xff\xfe"
                                       "a\0,\0"),
                                "text", &file, &error));
    CHECK_STATUS(mr_csv_reader_new(file, 0, &reader, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "UTF-16");
    mr_input_file_close(file);
}

/* Rows that end at every offset of the window, some larger than it, then each row read separately. */
TEST(csv_rows_are_found_again_at_their_offsets)
{
    static constexpr int ROWS = 3000;
    size_t capacity = (size_t)4 << 20, used = 0;
    char *text = malloc(capacity);
    uint64_t offsets[ROWS], lines[ROWS], line = 1;
    for (int i = 0; i < ROWS; i++) {
        offsets[i] = used;
        lines[i] = line;
        int size = i == 1500 ? 300'000 : i % 97;
        used += (size_t)sprintf(text + used, "%d,\"", i);
        memset(text + used, i % 13 ? 'x' : '\n', (size_t)size);
        line += i % 13 ? 1 : (uint64_t)size + 1;
        used += (size_t)size;
        used += (size_t)sprintf(text + used, "\"\"\",%d\r\n", size);
    }
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row;
    mr_csv_row again = {0};
    CHECK_OK(mr_input_file_from((mr_string){text, used}, "text", &file, &error));
    CHECK_OK(mr_csv_reader_new(file, 0, &reader, &error));
    for (int i = 0; i < ROWS; i++) {
        CHECK_OK(mr_csv_reader_next(reader, &row, &error));
        CHECK_EQ(row->count, 3);
        CHECK_EQ(strtol(row->cells[0].data, nullptr, 10), i);
        CHECK_EQ(row->cells[1].size_bytes, (size_t)(i == 1500 ? 300'000 : i % 97) + 1);
        CHECK_EQ(mr_csv_reader_offset(reader), offsets[i]);
        CHECK_EQ(mr_csv_reader_line(reader), lines[i]);
    }
    CHECK_STATUS(mr_csv_reader_next(reader, &row, &error), MR_OUT_OF_RANGE);
    for (int i = ROWS - 1; i >= 0; i -= 50) {
        CHECK_OK(mr_csv_row_at(file, offsets[i], 0, &again, &error));
        CHECK_EQ(strtol(again.cells[0].data, nullptr, 10), i);
    }
    mr_csv_row_deinit(&again);
    mr_csv_reader_free(reader);
    mr_input_file_close(file);
    free(text);
}

TEST(csv_quote_that_is_never_closed_does_not_take_the_memory)
{
    size_t size = MR_CSV_ROW_SIZE_MAX * 3;
    char *text = malloc(size);
    memset(text, 'x', size);
    text[0] = '"';
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row;
    CHECK_OK(mr_input_file_from((mr_string){text, size}, "text", &file, &error));
    CHECK_OK(mr_csv_reader_new(file, 0, &reader, &error));
    CHECK_STATUS(mr_csv_reader_next(reader, &row, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "is a quote unterminated");
    mr_csv_reader_free(reader);
    mr_input_file_close(file);
    free(text);
}

/* ---- tar ---- */

/* Writes a ustar header with its checksum. */
static void put_header(unsigned char *block, const char *name, size_t size, char type)
{
    memset(block, 0, 512);
    snprintf((char *)block, 100, "%s", name);
    snprintf((char *)block + 124, 12, "%011zo", size);
    snprintf((char *)block + 136, 12, "%011o", 1'700'000'000u);
    block[156] = (unsigned char)type;
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

typedef struct archive {
    unsigned char bytes[16384];
    size_t size;
} archive;

static void add_member(archive *archive, const char *name, const char *bytes, size_t size, char type)
{
    put_header(archive->bytes + archive->size, name, size, type);
    memcpy(archive->bytes + archive->size + 512, bytes, size);
    archive->size += 512 + (size + 511) / 512 * 512;
}

/* "name:size;…" and the error that ends the archive. */
static const char *tar_members(const archive *archive)
{
    static char result[4096];
    size_t used = 0;
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_tar_reader *reader = nullptr;
    mr_tar_member member;
    CHECK_OK(mr_input_file_from((mr_string){(const char *)archive->bytes, archive->size}, "x.tar", &file, &error));
    CHECK_OK(mr_tar_reader_new(file, 0, &reader, &error));
    result[0] = '\0';
    mr_status status;
    while ((status = mr_tar_reader_next(reader, &member, &error)) == MR_OK)
        used += (size_t)snprintf(result + used, sizeof result - used, "%.60s:%d:%llu;", member.name, member.kind,
                                 (unsigned long long)member.size_bytes);
    if (status != MR_OUT_OF_RANGE) snprintf(result + used, sizeof result - used, "error: %s", error.message);
    mr_tar_reader_free(reader);
    mr_input_file_close(file);
    return result;
}

TEST(tar_members_have_the_names_and_sizes_that_came_before_them)
{
    archive a = {0};
    add_member(&a, "directory/", "", 0, '5');
    add_member(&a, "directory/one.txt", "hello", 5, '0');
    add_member(&a, "././@LongLink", "a/very/long/name.jpg", 21, 'L');
    add_member(&a, "a/very/lo", "x", 1, '0');
    add_member(&a, "pax", "20 path=caf\xc3\xa9/p.jpg\n9 size=3\n", 29, 'x');
    add_member(&a, "caf", "abc", 3, '0');
    add_member(&a, "global", "16 comment=none\n", 16, 'g');
    add_member(&a, "link", "", 0, '2');
    a.size += 1024;
    CHECK_STR(tar_members(&a),
              "directory/:1:0;directory/one.txt:0:5;a/very/long/name.jpg:0:1;caf\xc3\xa9/p.jpg:0:3;link:2:0;");
}

TEST(tar_faults_are_reported)
{
    archive a = {0};
    add_member(&a, "one", "1", 1, '0');
    add_member(&a, "two", "2", 1, '0');
    a.bytes[1024 + 3] ^= 1;
    CHECK_STR(tar_members(&a), "one:0:1;error: x.tar: the tar header at byte 1024 is damaged");
    a.bytes[0] ^= 1;
    CHECK_CONTAINS(tar_members(&a), "is this a tar file?");
    a = (archive){0};
    add_member(&a, "cut", "1", 1, '0');
    a.size = 512;
    CHECK_CONTAINS(tar_members(&a), "longer than the rest of the file");
    a = (archive){0};
    add_member(&a, "sparse", "", 0, 'S');
    CHECK_CONTAINS(tar_members(&a), "sparse");
    a = (archive){0};
    add_member(&a, "pax", "22 GNU.sparse.major=1\n", 22, 'x');
    CHECK_CONTAINS(tar_members(&a), "sparse");
    a = (archive){0};
    add_member(&a, "pax", "999999 path=a\n", 14, 'x');
    CHECK_CONTAINS(tar_members(&a), "has an invalid extended header");
    a = (archive){0};
    add_member(&a, "pax", "10 path=a\n", 10, 'x');
    CHECK_CONTAINS(tar_members(&a), "is missing");
    /* A size that overflows. */
    a = (archive){0};
    put_header(a.bytes, "huge", 0, '0');
    memset(a.bytes + 124, 0xff, 12);
    a.size = 512;
    memset(a.bytes + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += a.bytes[i];
    snprintf((char *)a.bytes + 148, 8, "%06o", sum);
    CHECK_CONTAINS(tar_members(&a), "has an invalid size");
}

/* ---- npy ---- */

/* Opens an array file with text as its header and count bytes of elements 0, 1, 2, … */
static mr_status open_array(const char *text, size_t count, mr_input_file **file, mr_npy *array, mr_error *why)
{
    static char bytes[4096];
    mr_error error = {0};
    size_t length = strlen(text);
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (char)length;
    bytes[9] = (char)(length >> 8);
    memcpy(bytes + 10, text, length);
    for (size_t i = 0; i < count; i++) bytes[10 + length + i] = (char)i;
    CHECK_OK(mr_input_file_from((mr_string){bytes, 10 + length + count}, "x.npy", file, &error));
    return mr_npy_open(*file, 0, array, why);
}

TEST(npy_rows_come_in_c_order)
{
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_npy array;
    mr_tensor rows = {0};
    CHECK_OK(open_array("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", 12, &file, &array, &error));
    CHECK_OK(mr_npy_read_rows(file, &array, 1, 2, &rows, &error));
    /* In Fortran order, element (i, j, k) is i + 2 j + 6 k. */
    static const uint8_t expected[] = {1, 7, 3, 9, 5, 11};
    CHECK(memcmp(rows.data, expected, 6) == 0);
    mr_tensor_deinit(&rows);
    CHECK_STATUS(mr_npy_read_rows(file, &array, 1, 3, &rows, &error), MR_OUT_OF_RANGE);
    mr_input_file_close(file);
    CHECK_OK(open_array("{\"shape\":(2,),'fortran_order':False,'descr':'>u2'}", 4, &file, &array, &error));
    CHECK_OK(mr_npy_read(file, &array, &rows, &error));
    CHECK_EQ(((uint16_t *)rows.data)[1], 0x0203);
    mr_tensor_deinit(&rows);
    mr_input_file_close(file);
}

TEST(npy_headers_that_are_not_read_say_why)
{
    static const struct {
        const char *header, *reason;
    } cases[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "pickled Python objects"},
        {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }", "structures"},
        {"{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", "\"<M8[s]\" are not supported"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", "\"<f16\" are not supported"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1), }", "more than 12 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", "the shape requires 24 bytes, the file has 16"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "invalid shape"},
        {"{'descr': '|S0', 'fortran_order': False, 'shape': (1099511627776,), }", "invalid shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "invalid array header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "invalid array header"},
        {"{'descr': '<f4', 'shape': (1,), }", "invalid array header"},
        {"{'descr': '<f4", "invalid array header"},
        {"", "invalid array header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mr_error error = {0};
        mr_input_file *file = nullptr;
        mr_npy array;
        CHECK(open_array(cases[i].header, 16, &file, &array, &error) != MR_OK);
        CHECK_CONTAINS(error.message, "x.npy: ");
        CHECK_CONTAINS(error.message, cases[i].reason);
        mr_input_file_close(file);
    }
}

TEST(npy_saved_is_loaded)
{
    static const mr_dtype dtypes[] = {MR_BOOL, MR_UINT8, MR_INT16, MR_UINT32, MR_INT64, MR_HALF, MR_FLOAT, MR_DOUBLE};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        mr_error error = {0};
        mr_tensor tensor = {0}, loaded = {0};
        CHECK_OK(mr_tensor_init(&tensor, dtypes[i], MR_SHAPE(3, 2), &error));
        for (size_t j = 0; j < mr_tensor_size_bytes(&tensor); j++)
            ((uint8_t *)tensor.data)[j] = dtypes[i] == MR_BOOL ? j & 1 : (uint8_t)j;
        CHECK_OK(mr_npy_save(test_path("x.npy"), &tensor, &error));
        CHECK_OK(mr_npy_load(test_path("x.npy"), &loaded, &error));
        CHECK_EQ(loaded.dtype, tensor.dtype);
        CHECK(mr_shape_equal(loaded.shape, tensor.shape));
        CHECK(memcmp(loaded.data, tensor.data, mr_tensor_size_bytes(&tensor)) == 0);
        mr_tensor_deinit(&tensor);
        mr_tensor_deinit(&loaded);
    }
}

/* ---- Allocation failures ---- */

/* Reads everything that a format provides; returns the status of the first failure. */
static mr_status read_csv(mr_error *error)
{
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row;
    mr_csv_row again = {0};
    mr_status status = mr_input_file_from(MR_STR("a,b\n\"x\"\"y\",2\n"), "text", &file, error);
    if (status == MR_OK) status = mr_csv_reader_new(file, 0, &reader, error);
    while (status == MR_OK && (status = mr_csv_reader_next(reader, &row, error)) == MR_OK)
        status = mr_csv_row_at(file, mr_csv_reader_offset(reader), 0, &again, error);
    mr_csv_row_deinit(&again);
    mr_csv_reader_free(reader);
    mr_input_file_close(file);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static mr_status read_tar(mr_error *error)
{
    static archive a;
    if (a.size == 0) {
        add_member(&a, "././@LongLink", "a/very/long/name.jpg", 21, 'L');
        add_member(&a, "a/very/lo", "x", 1, '0');
        add_member(&a, "pax", "20 path=caf\xc3\xa9/p.jpg\n9 size=3\n", 29, 'x');
        add_member(&a, "caf", "abc", 3, '0');
    }
    mr_input_file *file = nullptr;
    mr_tar_reader *reader = nullptr;
    mr_tar_member member;
    mr_status status = mr_input_file_from((mr_string){(const char *)a.bytes, a.size}, "x.tar", &file, error);
    if (status == MR_OK) status = mr_tar_reader_new(file, 0, &reader, error);
    while (status == MR_OK) status = mr_tar_reader_next(reader, &member, error);
    mr_tar_reader_free(reader);
    mr_input_file_close(file);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static const char *corpus(const char *name);

static mr_status read_zip(mr_error *error)
{
    mr_input_file *file = nullptr, *part = nullptr, *turned = nullptr;
    mr_zip zip = {0};
    mr_npy array;
    mr_tensor tensor = {0};
    mr_status status = mr_input_file_open(corpus("npy/deflated.npz"), true, &file, error);
    if (status == MR_OK) status = mr_zip_open(file, &zip, error);
    for (int64_t i = 0; i < zip.count && status == MR_OK; i++) {
        status = mr_zip_extract(file, &zip.members[i], &part, error);
        if (status == MR_OK) status = mr_npy_open(part, 0, &array, error);
        if (status == MR_OK) status = mr_npy_read(part, &array, &tensor, error);
        if (status == MR_OK) mr_tensor_deinit(&tensor);
        if (status == MR_OK) status = mr_npy_to_c_order(part, &array, &turned, error);
        mr_input_file_close(turned);
        mr_input_file_close(part);
        turned = part = nullptr;
    }
    mr_zip_deinit(&zip);
    mr_input_file_close(file);
    return status;
}

TEST(formats_without_memory_say_so)
{
    static mr_status (*const reads[])(mr_error *) = {read_csv, read_tar, read_zip};
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        mr_error error = {0};
        CHECK_OK(reads[i](&error));
        long long before = test_allocations();
        CHECK_OK(reads[i](&error));
        long long count = test_allocations() - before;
        CHECK(count > 3);
        for (long long j = 1; j <= count; j++) {
            error = (mr_error){0};
            test_fail_allocation(test_allocations() + j);
            mr_status status = reads[i](&error);
            test_fail_allocation(0);
            CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
            CHECK(error.message[0] != '\0');
        }
    }
}

/* ---- zip and gzip: seeds of the fuzz targets, written by Python ---- */

static const char *corpus(const char *name)
{
    const char *root = getenv("MILLRACE_ROOT");
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", root ? root : ".", name);
    struct stat about;
    if (stat(path, &about) != 0) test_skip("%s is not there", path);
    return path;
}

TEST(zip64_numbers_are_read_from_the_extra_field)
{
    mr_error error = {0};
    mr_input_file *file = nullptr, *part = nullptr;
    mr_zip zip;
    mr_npy array;
    CHECK_OK(mr_input_file_open(corpus("npy/zip64.npz"), false, &file, &error));
    CHECK_OK(mr_zip_open(file, &zip, &error));
    CHECK_EQ(zip.count, 1);
    CHECK_EQ(zip.members[0].header_offset, 0);
    CHECK_OK(mr_zip_extract(file, &zip.members[0], &part, &error));
    CHECK_OK(mr_npy_open(part, 0, &array, &error));
    CHECK(mr_shape_equal(array.shape, MR_SHAPE(2, 3)));
    mr_input_file_close(part);
    mr_zip_deinit(&zip);
    mr_input_file_close(file);
}

TEST(zip_members_are_read_stored_and_deflated)
{
    static const char *const names[] = {"npy/stored.npz", "npy/deflated.npz"};
    for (int i = 0; i < 2; i++) {
        mr_error error = {0};
        mr_input_file *file = nullptr, *part = nullptr;
        mr_zip zip;
        mr_npy array;
        mr_tensor tensor = {0};
        CHECK_OK(mr_input_file_open(corpus(names[i]), false, &file, &error));
        CHECK_OK(mr_zip_open(file, &zip, &error));
        CHECK_EQ(zip.count, 2);
        CHECK_STR(zip.members[1].name, "y.npy");
        CHECK_OK(mr_zip_extract(file, &zip.members[1], &part, &error));
        CHECK_OK(mr_npy_open(part, 0, &array, &error));
        CHECK_OK(mr_npy_read(part, &array, &tensor, &error));
        CHECK(mr_string_equal(mr_tensor_strings(&tensor)[1], MR_STR("caf")));
        mr_tensor_deinit(&tensor);
        mr_input_file_close(part);
        /* Flips one bit of a member's data. */
        size_t size;
        unsigned char *bytes = file_load(corpus(names[i]), &size);
        bytes[zip.members[0].header_offset + 30 + 5 + zip.members[0].compressed_bytes - 3] ^= 4;
        mr_input_file *damaged = nullptr;
        CHECK_OK(mr_input_file_from((mr_string){(char *)bytes, size}, "damaged.npz", &damaged, &error));
        CHECK_STATUS(mr_zip_extract(damaged, &zip.members[0], &part, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, "damaged.npz: x.npy: ");
        mr_input_file_close(damaged);
        /* A truncated file has no directory. */
        CHECK_OK(mr_input_file_from((mr_string){(char *)bytes, size - 30}, "cut.npz", &damaged, &error));
        mr_zip none;
        CHECK_STATUS(mr_zip_open(damaged, &none, &error), MR_DATA_LOSS);
        mr_input_file_close(damaged);
        free(bytes);
        mr_zip_deinit(&zip);
        mr_input_file_close(file);
    }
}
