/* DatasetToTFRecord: writes a dataset of strings to a file. */
#include "graph/data/dataset.h"

#include "base/options.h"
#include "base/rights.h"

#include <millrace/record.h>

#include <stdlib.h>
#include <string.h>

static mr_status write_all(mr_kernel_call *call, mr_iterator *iterator, mr_record_writer *writer, mr_error *error)
{
    mr_element element = {0};
    mr_status status;
    while ((status = mr_data_next(call, iterator, &element, error)) == MR_OK) {
        mr_string record = mr_tensor_strings(&element.tensors[0])[0];
        status = mr_record_writer_append(writer, record.data, record.size_bytes, error);
        if (status != MR_OK) break;
    }
    mr_element_deinit(&element);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static mr_status write_file(mr_kernel_call *call, mr_dataset *input, const char *path, mr_compression compression,
                            mr_error *error)
{
    mr_iterator *iterator = nullptr;
    mr_record_writer *writer = nullptr;
    mr_record_writer_options options = {.size = sizeof options, .compression = compression};
    MR_TRY(mr_kernel_check_write(call, path, error));
    MR_TRY(mr_iterator_new(input, nullptr, &iterator, error));
    mr_status status = mr_record_writer_open(path, &options, &writer, error);
    if (status == MR_OK) {
        status = write_all(call, iterator, writer, error);
        if (status == MR_OK)
            status = mr_record_writer_close(writer, error);
        else
            mr_record_writer_discard(writer);
    }
    mr_iterator_free(iterator);
    return status;
}

static mr_status to_records(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_string path, type;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_string(call, 1, "filename", &path, error));
    MR_TRY(mr_data_string(call, 2, "compression_type", &type, error));
    const mr_element_spec *spec = mr_dataset_spec(input);
    if (spec->count != 1 || spec->dtypes[0] != MR_STRING || spec->shapes[0].rank > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the elements must be scalars of type string");
    if (path.size_bytes == 0 || memchr(path.data, 0, path.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filename is empty or contains a NUL byte");
    mr_compression compression = MR_COMPRESSION_NONE;
    if (mr_string_equal(type, MR_STR("GZIP")))
        compression = MR_COMPRESSION_GZIP;
    else if (mr_string_equal(type, MR_STR("ZLIB")))
        compression = MR_COMPRESSION_ZLIB;
    else if (type.size_bytes > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unsupported compression_type.");
    char *text = strndup(path.data, path.size_bytes);
    if (!text) return mr_fail_memory(error, path.size_bytes);
    mr_status status = write_file(call, input, text, compression, error);
    free(text);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "DatasetToTFRecord", .run = to_records},
};
const mr_kernel_table mr_data_kernels_write = {kernels, sizeof kernels / sizeof kernels[0]};
