/* The list of operator families. A new file in this directory adds two lines here. */
#include "graph/ir/signature.h"

extern const mr_op_table mr_op_table_constant;
extern const mr_op_table mr_op_table_identity;
extern const mr_op_table mr_op_table_reshape;
extern const mr_op_table mr_op_table_concat;
extern const mr_op_table mr_op_table_slice;
extern const mr_op_table mr_op_table_gather;
extern const mr_op_table mr_op_table_transpose;
extern const mr_op_table mr_op_table_pad;
extern const mr_op_table mr_op_table_binary;
extern const mr_op_table mr_op_table_select;
extern const mr_op_table mr_op_table_unary;
extern const mr_op_table mr_op_table_reduce;
extern const mr_op_table mr_op_table_matmul;
extern const mr_op_table mr_op_table_conv;
extern const mr_op_table mr_op_table_bias;
extern const mr_op_table mr_op_table_activation;
extern const mr_op_table mr_op_table_pool;
extern const mr_op_table mr_op_table_batch_norm;
extern const mr_op_table mr_op_table_softmax;
extern const mr_op_table mr_op_table_random;
extern const mr_op_table mr_op_table_variable;
extern const mr_op_table mr_op_table_training;
extern const mr_op_table mr_op_table_control;
extern const mr_op_table mr_op_table_checkpoint;
extern const mr_op_table mr_op_table_text;
extern const mr_op_table mr_op_table_summary;
extern const mr_op_table mr_op_table_image;
extern const mr_op_table mr_op_table_iterator;

const mr_op_table *const mr_op_tables[] = {
    &mr_op_table_constant, &mr_op_table_identity,   &mr_op_table_reshape,   &mr_op_table_concat,
    &mr_op_table_slice,    &mr_op_table_gather,     &mr_op_table_transpose, &mr_op_table_pad,
    &mr_op_table_binary,   &mr_op_table_select,     &mr_op_table_unary,     &mr_op_table_reduce,
    &mr_op_table_matmul,   &mr_op_table_conv,       &mr_op_table_bias,      &mr_op_table_activation,
    &mr_op_table_pool,     &mr_op_table_batch_norm, &mr_op_table_softmax,   &mr_op_table_random,
    &mr_op_table_variable, &mr_op_table_training,   &mr_op_table_control,   &mr_op_table_checkpoint,
    &mr_op_table_text,     &mr_op_table_summary,    &mr_op_table_image,     &mr_op_table_iterator,
};
const size_t mr_op_table_count = sizeof mr_op_tables / sizeof mr_op_tables[0];
