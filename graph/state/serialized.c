/* Serialized sparse tensors as variants (serialized.h). */
#include "graph/state/serialized.h"

#include "graph/ir/convert.h"

typedef struct serialized {
    mr_resource resource;
    mr_tensor strings;
} serialized;

static void serialized_deinit(mr_resource *resource)
{
    mr_tensor_deinit(&((serialized *)resource)->strings);
}

static const mr_resource_class serialized_class = {
    .name = "serialized sparse tensor", .size_bytes = sizeof(serialized), .deinit = serialized_deinit};

const mr_tensor *mr_serialized_strings(const mr_tensor *variant)
{
    if (variant->dtype != MR_VARIANT) return nullptr;
    mr_resource *resource = mr_tensor_resource(variant, &serialized_class);
    return resource ? &((serialized *)resource)->strings : nullptr;
}

mr_status mr_serialized_wrap(mr_tensor *tensor, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(&serialized_class, &resource, error));
    mr_shape shape = tensor->shape;
    ((serialized *)resource)->strings = *tensor;
    *tensor = mr_tensor_take_resource(MR_VARIANT, resource);
    tensor->shape = shape;
    return MR_OK;
}

mr_status mr_serialized_to_graph(mr_tensor *tensor, mr_dtype dtype, mr_error *error)
{
    return dtype == MR_VARIANT && tensor->dtype == MR_STRING ? mr_serialized_wrap(tensor, error) : MR_OK;
}

void mr_serialized_to_pipeline(mr_tensor *tensor)
{
    const mr_tensor *strings = mr_serialized_strings(tensor);
    if (!strings) return;
    mr_tensor kept = mr_tensor_ref(strings);
    mr_tensor_deinit(tensor);
    *tensor = kept;
}

mr_status mr_serialized_sparse(const mr_tensor *indices, const mr_tensor *values, const mr_tensor *shape,
                               mr_tensor *strings, mr_error *error)
{
    const mr_tensor *tensors[] = {indices, values, shape};
    mr_string texts[3] = {0};
    mr_arena arena = {0};
    mr_status status = MR_OK;
    for (int i = 0; i < 3 && status == MR_OK; i++) {
        Mr__TensorProto *proto = nullptr;
        status = mr_tensor_write(tensors[i], &arena, &proto, error);
        if (status == MR_OK) status = mr_proto_pack(proto, &arena, &texts[i], error);
    }
    if (status == MR_OK) status = mr_tensor_init_strings(strings, MR_SHAPE(3), texts, error);
    mr_arena_deinit(&arena);
    return status;
}
