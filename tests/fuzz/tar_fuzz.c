/* Fuzz target: tar archives. Members must be inside the file, in order and without overlap, and a reader that starts at
 * a member must return the same member. Corpus: formats_corpus.py. */
#include <millrace/formats.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_input_file *file = nullptr;
    mr_tar_reader *reader = nullptr, *second = nullptr;
    mr_tar_member member, again;
    mr_error error = {0};
    need(mr_input_file_from((mr_string){(const char *)bytes, size_bytes}, "fuzz", &file, &error) == MR_OK);
    need(mr_tar_reader_new(file, 0, &reader, &error) == MR_OK);
    mr_status status;
    uint64_t end = 0;
    while ((status = mr_tar_reader_next(reader, &member, &error)) == MR_OK) {
        need(member.header_offset >= end && member.offset >= member.header_offset + 512);
        need(member.offset <= size_bytes && member.size_bytes <= size_bytes - member.offset);
        end = member.offset + member.size_bytes;
        need(mr_tar_reader_new(file, member.header_offset, &second, &error) == MR_OK);
        need(mr_tar_reader_next(second, &again, &error) == MR_OK);
        need(strcmp(again.name, member.name) == 0 && again.offset == member.offset);
        need(again.size_bytes == member.size_bytes && again.modified_ns == member.modified_ns);
        mr_tar_reader_free(second);
    }
    need(error.message[0] && (status == MR_OUT_OF_RANGE || status == MR_DATA_LOSS || status == MR_UNIMPLEMENTED));
    mr_tar_reader_free(reader);
    mr_input_file_close(file);
    return 0;
}
