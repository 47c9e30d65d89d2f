/* Fuzz target: CSV files. Each row must equal the row read separately at its offset, and its text must equal the bytes
 * of the file at that offset. Corpus: formats_corpus.py. */
#include <millrace/formats.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

static void need_same(const mr_csv_row *a, const mr_csv_row *b)
{
    need(a->count == b->count && a->count > 0);
    for (int32_t i = 0; i < a->count; i++) {
        need(mr_string_equal(a->cells[i], b->cells[i]));
        need(!a->cells[i].data == !b->cells[i].data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row = nullptr;
    mr_csv_row again = {0};
    mr_error error = {0};
    char separator = size_bytes > 0 && bytes[size_bytes - 1] == '\t' ? '\t' : 0;
    need(mr_input_file_from((mr_string){(const char *)bytes, size_bytes}, "fuzz", &file, &error) == MR_OK);
    if (mr_csv_reader_new(file, separator, &reader, &error) == MR_OK) {
        mr_status status;
        uint64_t line = 0, end = 0;
        while ((status = mr_csv_reader_next(reader, &row, &error)) == MR_OK) {
            mr_string text = mr_csv_reader_text(reader);
            need(mr_csv_reader_line(reader) > line && mr_csv_reader_offset(reader) >= end);
            line = mr_csv_reader_line(reader);
            end = mr_csv_reader_offset(reader) + text.size_bytes;
            need(end <= size_bytes && memcmp(bytes + end - text.size_bytes, text.data, text.size_bytes) == 0);
            need(mr_csv_row_at(file, mr_csv_reader_offset(reader), separator, &again, &error) == MR_OK);
            need_same(row, &again);
        }
        need(status == MR_OUT_OF_RANGE || (status == MR_DATA_LOSS && error.message[0]));
        mr_csv_reader_free(reader);
    }
    mr_csv_row_deinit(&again);
    mr_input_file_close(file);
    return 0;
}
