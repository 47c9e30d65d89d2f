/* Protobuf's text format, as in .pbtxt files: parsed by descriptor from untrusted text.
 *
 * Fields are "name: value" and "name { … }", with lists in brackets, comments after #, and strings that continue in the
 * next literal. Enums, which the .proto files of this directory declare as int32, are read by TensorFlow's names:
 * DT_FLOAT, V2. Fields that only newer versions of TensorFlow write and that have no meaning here are skipped. */
#ifndef MR_PROTO_TEXT_H
#define MR_PROTO_TEXT_H

#include "proto/proto.h"

/* Converts text to a serialized message of the descriptor's type. Memory is at most 16 times the size of the text.
 * *bytes  owned by the caller: free() its data
 * errors  MR_DATA_LOSS: "line 3, column 9: GraphDef has no field nodes"; MR_RESOURCE_EXHAUSTED */
mr_status mr_proto_text_parse(const ProtobufCMessageDescriptor *descriptor, mr_string text, mr_string *bytes,
                              mr_error *error);
/* Writes a message, any struct of protobuf-c. Values of enums are numbers.
 * *text   owned by the caller: free() its data
 * errors  MR_FAILED_PRECONDITION: a field is not declared, so that the text cannot name it; it names the message */
mr_status mr_proto_text_write(const void *message, mr_string *text, mr_error *error);
/* The same, but leaves fields out that are not declared, as TensorFlow does. */
mr_status mr_proto_text_write_declared(const void *message, mr_string *text, mr_error *error);
/* The first field name of a text, to recognize its type: the length of the name at *begin, which is followed by a
 * value; 0 if the bytes do not begin as text. */
size_t mr_proto_text_first_name(mr_string text, const char **begin);

#endif
