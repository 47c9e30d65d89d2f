/* Constants of a rewritten GraphDef. */
#include "base/status.h"
#include "graph/train/rewrite.h"

#include <string.h>

int32_t mr_rewrite_add_constant(mr_rewrite *r, const char *name, const mr_tensor *value, mr_error *error)
{
    const int32_t node = mr_rewrite_add(r, "Const", name, error);
    if (node < 0 || mr_rewrite_make_constant(r, node, value, error) != MR_OK) return -1;
    return node;
}

mr_status mr_rewrite_make_constant(mr_rewrite *r, int32_t node, const mr_tensor *value, mr_error *error)
{
    Mr__AttrValue *content = MR_ARENA_NEW(&r->arena, Mr__AttrValue, 1);
    if (content == nullptr) return mr_fail_memory(error, sizeof *content);
    mr__attr_value__init(content);
    content->value_case = MR__ATTR_VALUE__VALUE_TENSOR;
    Mr__TensorProto *written = nullptr;
    MR_TRY(mr_tensor_write(value, &r->arena, &written, error));
    /* The message borrows the tensor's elements. */
    if (written->tensor_content.len > 0) {
        written->tensor_content.data =
            mr_arena_copy(&r->arena, written->tensor_content.data, written->tensor_content.len);
        if (written->tensor_content.data == nullptr) return mr_fail_memory(error, written->tensor_content.len);
    }
    for (size_t i = 0; i < written->n_string_val; i++) {
        ProtobufCBinaryData *text = &written->string_val[i];
        text->data = mr_arena_copy(&r->arena, text->data, text->len);
        if (text->data == nullptr) return mr_fail_memory(error, text->len);
    }
    content->tensor = written;
    Mr__NodeDef *def = r->nodes[node];
    def->op = (char *)"Const";
    def->n_input = 0;
    def->device = (char *)"";
    mr_rewrite_clear_attrs(r, node);
    MR_TRY(mr_rewrite_set_type(r, node, "dtype", value->dtype, error));
    return mr_rewrite_set_attr(r, node, "value", content, error);
}

bool mr_rewrite_constant(const mr_rewrite *r, mr_rewrite_input input, int32_t *node, mr_tensor *value)
{
    for (int32_t steps = 0; mr_rewrite_is(r, input.node, "Identity") && steps < r->count; steps++)
        input = mr_rewrite_data_input(r, input.node, 0);
    if (input.index != 0 || !mr_rewrite_is(r, input.node, "Const")) return false;
    const Mr__AttrValue *content = mr_rewrite_attr(r, input.node, "value");
    if (content == nullptr || content->value_case != MR__ATTR_VALUE__VALUE_TENSOR) return false;
    mr_import_budget budget = {.tensor_bytes = SIZE_MAX / 2};
    mr_error ignored = {0};
    *node = input.node;
    return mr_tensor_read(content->tensor, &budget, value, &ignored) == MR_OK;
}
