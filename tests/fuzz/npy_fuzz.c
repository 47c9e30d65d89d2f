/* Fuzz target: NumPy arrays (.npy) and archives of them (.npz). If an array can be read, reading it row by row returns
 * the same elements. Corpus: formats_corpus.py. */
#include <millrace/formats.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

static void need_same(const mr_tensor *whole, int64_t row, int64_t rows, const mr_tensor *part)
{
    int64_t count = mr_tensor_count(part);
    need(part->dtype == whole->dtype && count * rows == mr_tensor_count(whole));
    if (part->dtype == MR_STRING) {
        for (int64_t i = 0; i < count; i++)
            need(mr_string_equal(mr_tensor_strings(part)[i], mr_tensor_strings(whole)[row * count + i]));
        return;
    }
    size_t size = mr_tensor_size_bytes(part);
    if (size > 0) need(memcmp(part->data, (const char *)whole->data + (size_t)row * size, size) == 0);
}

static void try_array(const mr_input_file *file)
{
    mr_npy array;
    mr_tensor whole, part;
    mr_error error = {0};
    if (mr_npy_open(file, 0, &array, &error) != MR_OK) {
        need(error.message[0]);
        return;
    }
    if (mr_npy_read(file, &array, &whole, &error) != MR_OK) {
        need(error.message[0]);
        return;
    }
    int64_t rows = array.shape.rank > 0 ? array.shape.dims[0] : 0;
    for (int64_t i = 0; i < rows && i < 8; i++) {
        need(mr_npy_read_rows(file, &array, i, i + 1, &part, &error) == MR_OK);
        need_same(&whole, i, rows, &part);
        mr_tensor_deinit(&part);
    }
    mr_tensor_deinit(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_input_file *file = nullptr, *part = nullptr;
    mr_zip zip;
    mr_error error = {0};
    need(mr_input_file_from((mr_string){(const char *)bytes, size_bytes}, "fuzz", &file, &error) == MR_OK);
    try_array(file);
    if (mr_zip_open(file, &zip, &error) == MR_OK) {
        for (int64_t i = 0; i < zip.count && i < 16; i++) {
            /* Protects against decompression bombs: at most the size in the directory is decompressed. */
            if (zip.members[i].size_bytes > (uint64_t)1 << 20) continue;
            if (mr_zip_extract(file, &zip.members[i], &part, &error) != MR_OK) continue;
            need(mr_input_file_size(part) == zip.members[i].size_bytes);
            try_array(part);
            mr_input_file_close(part);
        }
        mr_zip_deinit(&zip);
    }
    mr_input_file_close(file);
    return 0;
}
