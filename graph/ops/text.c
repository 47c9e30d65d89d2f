/* String operators. */
#include "graph/ops/shapes.h"

#include <string.h>

/* Scalars are joined with every element of the other inputs, which must have the same shape. */
static mr_status string_join_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = MR_SCALAR;
    bool is_unknown = false;
    for (int32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].rank == 0) continue;
        is_unknown |= call->inputs[i].rank < 0;
        if (call->inputs[i].rank < 0) continue;
        if (result.rank == 0)
            result = call->inputs[i];
        else
            MR_TRY(mr_shape_merge(result, call->inputs[i], &result, error));
    }
    call->outputs[0] = is_unknown && result.rank == 0 ? MR_SHAPE_UNKNOWN : result;
    return MR_OK;
}

/* As many inputs as the template has placeholders. */
static mr_status string_format_shape(mr_shape_call *call, mr_error *error)
{
    mr_string text = {0}, placeholder = {0};
    MR_TRY(mr_attr_get_string(call->attrs, "template", &text, error));
    MR_TRY(mr_attr_get_string(call->attrs, "placeholder", &placeholder, error));
    int64_t count = 0;
    if (placeholder.size_bytes == 0) count = (int64_t)text.size_bytes - 1; /* an empty one separates all characters */
    for (size_t at = 0; placeholder.size_bytes > 0 && at < text.size_bytes;) {
        const char *found = memmem(text.data + at, text.size_bytes - at, placeholder.data, placeholder.size_bytes);
        if (found == nullptr) break;
        at = (size_t)(found - text.data) + placeholder.size_bytes;
        count++;
    }
    if (count < 0) count = 0;
    if (count != call->input_count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "num placeholders in template and num inputs must match: %lld vs. %d", (long long)count,
                       call->input_count);
    call->outputs[0] = MR_SCALAR;
    return MR_OK;
}

static mr_status string_ngrams_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    call->outputs[0] = MR_SHAPE(-1);
    return mr_shape_with_rank(call->inputs[1], 1, &call->outputs[1], error);
}

static mr_status string_split_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    call->outputs[0] = MR_SHAPE(-1, 2);
    call->outputs[1] = MR_SHAPE(-1);
    call->outputs[2] = MR_SHAPE(2);
    return MR_OK;
}

static mr_status substr_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape pos = call->inputs[1], len = call->inputs[2], same;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (pos.rank >= 0 && len.rank >= 0) {
        MR_TRY(mr_shape_with_rank(pos, len.rank, &same, error));
        if (!mr_shape_equal(pos, len))
            return mr_fail(error, MR_INVALID_ARGUMENT, "pos and len shapes must match: %s vs. %s",
                           mr_shape_text(pos, a, sizeof a), mr_shape_text(len, b, sizeof b));
    }
    return mr_shape_broadcast(call->inputs[0], pos, &call->outputs[0], error);
}

static mr_status fingerprint_shape(mr_shape_call *call, mr_error *error)
{
    const mr_tensor *method = call->constants[1];
    MR_TRY(mr_shape_at_least(call->inputs[0], 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    int64_t size = -1;
    if (method != nullptr && mr_tensor_count(method) == 1) {
        mr_string name = mr_tensor_strings(method)[0];
        if (!mr_string_equal(name, MR_STR("farmhash64")))
            return mr_fail(error, MR_INVALID_ARGUMENT, "unsupported method: %.*s", (int)name.size_bytes, name.data);
        size = 8;
    }
    call->outputs[0] = MR_SHAPE(call->inputs[0].rank > 0 ? call->inputs[0].dims[0] : -1, size);
    return MR_OK;
}

static const mr_op text_ops[] = {
    {.name = "AsString",
     .signature = "input: T -> output: string",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
              "complex128, bool, variant, string}; precision: int = -1; scientific: bool = false; shortest: bool = "
              "false; width: int = -1; fill: string = ''",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Formats each element as text, as printf does."},
    {.name = "DecodeBase64",
     .signature = "input: string -> output: string",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Decodes web-safe base64, with or without padding."},
    {.name = "EncodeBase64",
     .signature = "input: string -> output: string",
     .attrs = "pad: bool = false",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Encodes each string as web-safe base64."},
    {.name = "ReduceJoin",
     .signature = "inputs: string, reduction_indices: int32 -> output: string",
     .attrs = "keep_dims: bool = false; separator: string = ''",
     .shape = mr_reduction_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Joins the strings along the dimensions in reduction_indices, with separator between them."},
    {.name = "StringJoin",
     .signature = "inputs: N * string -> output: string",
     .attrs = "N: int >= 0; separator: string = ''",
     .shape = string_join_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Joins strings element-wise with separator between them."},
    {.name = "StringFormat",
     .signature = "inputs: T -> output: string",
     .attrs = "T: list(type) >= 0; template: string = '%s'; placeholder: string = '%s'; summarize: int = 3",
     .shape = string_format_shape,
     .doc = "Replaces each placeholder of template with a summary of the corresponding input."},
    {.name = "StringLength",
     .signature = "input: string -> output: int32",
     .attrs = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .shape = mr_shape_unchanged,
     .doc = "Returns the number of bytes or of UTF-8 characters of each string."},
    {.name = "StringLower",
     .signature = "input: string -> output: string",
     .attrs = "encoding: string = ''",
     .shape = mr_shape_unchanged,
     .doc = "Converts each string to lower case."},
    {.name = "StringUpper",
     .signature = "input: string -> output: string",
     .attrs = "encoding: string = ''",
     .shape = mr_shape_unchanged,
     .doc = "Converts each string to upper case."},
    {.name = "StringStrip",
     .signature = "input: string -> output: string",
     .shape = mr_shape_unchanged,
     .doc = "Removes leading and trailing white space from each string."},
    {.name = "StringNGrams",
     .signature = "data: string, data_splits: Tsplits -> ngrams: string, ngrams_splits: Tsplits",
     .attrs = "separator: string; ngram_widths: list(int) >= 0; left_pad: string; right_pad: string; pad_width: int; "
              "preserve_short_sequences: bool; Tsplits: {int32, int64} = int64",
     .shape = string_ngrams_shape,
     .doc = "Joins every ngram_widths consecutive strings of each row of a ragged tensor."},
    {.name = "StringSplit",
     .signature = "input: string, delimiter: string -> indices: int64, values: string, shape: int64",
     .attrs = "skip_empty: bool = true",
     .shape = string_split_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Splits each string at any of the bytes of delimiter, into a sparse tensor."},
    {.name = "StringSplitV2",
     .signature = "input: string, sep: string -> indices: int64, values: string, shape: int64",
     .attrs = "maxsplit: int = -1",
     .shape = string_split_shape,
     .doc = "Splits each string at sep, or at white space if sep is empty, into a sparse tensor."},
    {.name = "StringToHashBucket",
     .signature = "string_tensor: string -> output: int64",
     .attrs = "num_buckets: int >= 1",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Hashes each string to a bucket, with the hash function of TensorFlow 0.x."},
    {.name = "StringToHashBucketFast",
     .signature = "input: string -> output: int64",
     .attrs = "num_buckets: int >= 1",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Hashes each string to a bucket with FarmHash Fingerprint64."},
    {.name = "StringToHashBucketStrong",
     .signature = "input: string -> output: int64",
     .attrs = "num_buckets: int >= 1; key: list(int)",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Hashes each string to a bucket with keyed SipHash, against inputs that are chosen to collide."},
    {.name = "StringToNumber",
     .signature = "string_tensor: string -> output: out_type",
     .attrs = "out_type: {float, double, int32, int64} = float",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Parses each string as a number."},
    {.name = "Substr",
     .signature = "input: string, pos: T, len: T -> output: string",
     .attrs = "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .shape = substr_shape,
     .doc = "Returns len bytes or characters of each string, from position pos."},
    {.name = "UnsortedSegmentJoin",
     .signature = "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments -> output: string",
     .attrs = "separator: string = ''; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
     .shape = mr_unsorted_segment_shape,
     .doc = "Joins the rows of inputs that have the same segment id, with separator between them."},
    {.name = "Fingerprint",
     .signature = "data: T, method: string -> fingerprint: uint8",
     .attrs = "T: type",
     .shape = fingerprint_shape,
     .doc = "Returns the 64-bit fingerprint of each row of data, as bytes."},
};

const mr_op_table mr_ops_text = {text_ops, sizeof text_ops / sizeof text_ops[0]};
