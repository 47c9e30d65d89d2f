/* Encodings of text: strings and code points. */
#include "graph/ir/op.h"

/* A row for each string. */
static mr_status unicode_decode_shape(mr_shape_call *call, mr_error *)
{
    int64_t count = call->inputs[0].rank < 0 ? -1 : mr_shape_count(call->inputs[0]);
    call->outputs[0] = MR_SHAPE(count < 0 || count == INT64_MAX ? -1 : count + 1);
    for (int32_t i = 1; i < call->output_count; i++) call->outputs[i] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status unicode_encode_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    int64_t splits = call->inputs[1].rank == 1 ? call->inputs[1].dims[0] : -1;
    if (splits == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Negative dimension size caused by subtracting 1 from 0");
    call->outputs[0] = MR_SHAPE(splits < 0 ? -1 : splits - 1);
    return MR_OK;
}

static const mr_op unicode_ops[] = {
    {.name = "UnicodeDecode",
     .signature = "input: string -> row_splits: Tsplits, char_values: int32",
     .attrs = "input_encoding: string; errors: {'strict', 'replace', 'ignore'} = 'replace'; replacement_char: int = "
              "65533; replace_control_characters: bool = false; Tsplits: {int32, int64} = int64",
     .shape = unicode_decode_shape,
     .doc = "Decodes each string to the code points of its characters, as a ragged tensor."},
    {.name = "UnicodeDecodeWithOffsets",
     .signature = "input: string -> row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
     .attrs = "input_encoding: string; errors: {'strict', 'replace', 'ignore'} = 'replace'; replacement_char: int = "
              "65533; replace_control_characters: bool = false; Tsplits: {int32, int64} = int64",
     .shape = unicode_decode_shape,
     .doc = "Decodes each string to the code points of its characters and the byte at which each one starts."},
    {.name = "UnicodeEncode",
     .signature = "input_values: int32, input_splits: Tsplits -> output: string",
     .attrs = "errors: {'ignore', 'replace', 'strict'} = 'replace'; output_encoding: {'UTF-8', 'UTF-16-BE', "
              "'UTF-32-BE'}; replacement_char: int = 65533; Tsplits: {int32, int64} = int64",
     .shape = unicode_encode_shape,
     .doc = "Encodes the code points of each row of a ragged tensor as a string."},
    {.name = "UnicodeScript",
     .signature = "input: int32 -> output: int32",
     .shape = mr_shape_unchanged,
     .doc = "Returns the number of each code point's script in ICU, or -1."},
    {.name = "UnicodeTranscode",
     .signature = "input: string -> output: string",
     .attrs = "input_encoding: string; output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; errors: {'strict', "
              "'replace', 'ignore'} = 'replace'; replacement_char: int = 65533; replace_control_characters: bool = "
              "false",
     .shape = mr_shape_unchanged,
     .doc = "Converts each string from one encoding to another."},
};

const mr_op_table mr_ops_unicode = {unicode_ops, sizeof unicode_ops / sizeof unicode_ops[0]};
