/* Copies and writes checkpoints for checkpoint_oracle.py. `checkpoint_files copy SOURCE TARGET` copies the tensors
 * named on standard input, one per line, from one checkpoint to another in that order; `checkpoint_files slices TARGET`
 * writes one tensor in two slices. */
#include "records/checkpoint/checkpoint.h"

#include <stdio.h>
#include <string.h>

static mr_status copy_keys(mr_checkpoint_reader *reader, mr_checkpoint_writer *writer, mr_error *error)
{
    char key[4096];
    while (fgets(key, sizeof key, stdin)) {
        key[strcspn(key, "\n")] = '\0';
        mr_tensor value;
        MR_TRY(mr_checkpoint_read(reader, key, &value, error));
        mr_status status = mr_checkpoint_write(writer, key, &value, error);
        mr_tensor_deinit(&value);
        MR_TRY(status);
    }
    return MR_OK;
}

static mr_status copy(const char *source, const char *target, mr_error *error)
{
    mr_checkpoint_reader *reader;
    mr_checkpoint_writer *writer;
    MR_TRY(mr_checkpoint_reader_open(source, &reader, error));
    MR_TRY(mr_checkpoint_writer_open(target, &writer, error));
    mr_status status = copy_keys(reader, writer, error);
    mr_checkpoint_reader_close(reader);
    if (status == MR_OK) return mr_checkpoint_writer_close(writer, error);
    mr_checkpoint_writer_discard(writer);
    return status;
}

/* A [300, 5] tensor of floats 0, 1, …, as the slices of rows 0 to 99 and 100 to 299. */
static mr_status write_slices(const char *target, mr_error *error)
{
    mr_checkpoint_writer *writer;
    MR_TRY(mr_checkpoint_writer_open(target, &writer, error));
    for (int i = 0; i < 2; i++) {
        int64_t start = i * 100, length = 100 + i * 100;
        mr_checkpoint_slice slice = {.rank = 2, .starts = {start, 0}, .lengths = {length, 5}};
        mr_tensor value;
        MR_TRY(mr_tensor_init(&value, MR_FLOAT, MR_SHAPE(length, 5), error));
        for (int64_t j = 0; j < length * 5; j++) mr_tensor_floats(&value)[j] = (float)(start * 5 + j);
        MR_TRY(mr_checkpoint_write_slice(writer, "part\xc3\xa9/w", MR_SHAPE(300, 5), &slice, &value, error));
        mr_tensor_deinit(&value);
    }
    return mr_checkpoint_writer_close(writer, error);
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    mr_status status = MR_INVALID_ARGUMENT;
    if (argc == 4 && strcmp(argv[1], "copy") == 0) status = copy(argv[2], argv[3], &error);
    if (argc == 3 && strcmp(argv[1], "slices") == 0) status = write_slices(argv[2], &error);
    if (status != MR_OK) fprintf(stderr, "%s: %s\n", mr_status_name(status), error.message);
    return status != MR_OK;
}
