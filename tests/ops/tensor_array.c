/* Samples of the operators of graph/ops/tensor_array.c. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <millrace/ops.h>
#include <millrace/session.h>

/* clang-format off */
SAMPLES(
    {"TensorArrayV2", "int32[]=3", "dtype=float"},
    {"TensorArrayGrad", "string[2]=a; float[]", "source=gradients", "cannot be fetched"},
    {"TensorArrayGradV2", "string[2]=a; float[]", "source=gradients", "no tensor array with the name"},
    {"TensorArrayWriteV2", "string[2]=a; int32[]=0; float[3]; float[]", "", "no tensor array with the name"},
    {"TensorArrayReadV2", "string[2]=a; int32[]=1; float[]", "dtype=float", "no tensor array with the name"},
    {"TensorArrayGatherV2", "string[2]=a; int32[2]=1,3; float[]", "dtype=float", "no tensor array with the name"},
    {"TensorArrayScatterV2", "string[2]=a; int32[2]=0,1; float[2,3]; float[]", "", "no tensor array with the name"},
    {"TensorArrayConcatV2", "string[2]=a; float[]", "dtype=float", "no tensor array with the name"},
    {"TensorArraySplitV2", "string[2]=a; float[3,2]; int64[2]=1,2; float[]", "", "no tensor array with the name"},
    {"TensorArraySizeV2", "string[2]=a; float[]", "", "no tensor array with the name"},
    {"TensorArrayCloseV2", "string[2]=a", "", "no tensor array with the name"},
    {"TensorArrayV3", "int32[]=3", "dtype=float"},
    {"TensorArrayGradV3", "%float[2,3]; float[]", "source=gradients"},
    {"TensorArrayGradWithShape", "%float[2,3]; float[]; int32[2]=4,5", "source=gradients"},
    {"TensorArrayWriteV3", "%float[]; int32[]=0; float[3]; float[]", "", "not resizeable"},
    {"TensorArrayReadV3", "%float[2,3]; int32[]=1; float[]", "dtype=float"},
    {"TensorArrayGatherV3", "%float[4,3]; int32[2]=1,3; float[]", "dtype=float"},
    {"TensorArrayScatterV3", "%float[2,3]; int32[0]; float[0,3]; float[]", ""},
    {"TensorArrayConcatV3", "%float[4,3,2]; float[]", "dtype=float"},
    {"TensorArraySplitV3", "%float[0,3]; float[0,3]; int64[0]; float[]", ""},
    {"TensorArraySizeV3", "%float[2,3]; float[]", ""},
    {"TensorArrayCloseV3", "%float[2,3]", ""},
    {"TensorArray", "int32[]=3", "dtype=float", "cannot be fetched"},
    {"TensorArrayWrite", "&string[2]; int32[]=0; float[3]; float[]", "", "is not a tensor array"},
    {"TensorArrayRead", "&string[2]; int32[]=1; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArrayGather", "&string[2]; int32[2]=1,3; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArrayScatter", "&string[2]; int32[2]=0,1; float[2,3]; float[]", "", "is not a tensor array"},
    {"TensorArrayConcat", "&string[2]; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArraySplit", "&string[2]; float[3,2]; int64[2]=1,2; float[]", "", "is not a tensor array"},
    {"TensorArraySize", "&string[2]; float[]", "", "is not a tensor array"},
    {"TensorArrayClose", "&string[2]", "", "is not a tensor array"},
    {"TensorArrayPack", "&string[2]; float[]", "dtype=float", "is not a tensor array"},
    {"TensorArrayUnpack", "&string[2]; float[2,3]; float[]", "", "is not a tensor array"})
/* clang-format on */

/* A node with these inputs and a dtype attr; unused inputs have no node. */
static mr_output add(mr_graph *g, const char *op, const char *dtype, mr_output a, mr_output b, mr_output c, mr_output d)
{
    mr_output inputs[] = {a, b, c, d};
    mr_node_builder builder = mr_node_begin(g, op, nullptr);
    for (int i = 0; i < 4; i++)
        if (inputs[i].node) mr_node_add_input(&builder, inputs[i]);
    if (dtype) mr_node_set_dtype(&builder, dtype, MR_FLOAT);
    if (strstr(op, "Grad")) mr_node_set_string(&builder, "source", "gradients");
    return mr_node_finish(&builder);
}

/* Each run has arrays of its own. What is written to a gradient twice is added. */
TEST(tensor_arrays_have_names_in_a_run)
{
    mr_error error = {0};
    mr_tensor results[4] = {0}, order = {0};
    mr_session *session = nullptr;
    mr_output none = {0};
    mr_graph *g = mr_graph_new();
    CHECK_OK(mr_tensor_init_copy(&order, MR_INT32, MR_SHAPE(2), (int32_t[]){1, 0}, &error));
    mr_output x = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){1, 2, 3, 4}, nullptr), zero = mr_constant_float(g, 0);
    mr_output size = mr_constant_int32(g, 2);
    mr_output one = mr_constant_int32(g, 1);
    mr_output array = add(g, "TensorArrayV2", "dtype", size, none, none, none);
    mr_node_builder unpack = mr_node_begin(g, "TensorArrayScatterV2", nullptr);
    mr_node_add_input(&unpack, array);
    mr_node_add_input(&unpack, mr_constant(g, &order, nullptr));
    mr_node_add_input(&unpack, x);
    mr_node_add_input(&unpack, zero);
    mr_output flow = mr_node_finish(&unpack);
    mr_output grad = add(g, "TensorArrayGradV2", nullptr, array, flow, none, none);
    mr_output row = mr_constant_floats(g, MR_SHAPE(2), (float[]){10, 20}, nullptr);
    mr_output first = add(g, "TensorArrayWriteV2", nullptr, grad, one, row, flow);
    mr_output second = add(g, "TensorArrayWriteV2", nullptr, grad, one, row, first);
    mr_output fetches[] = {add(g, "TensorArrayReadV2", "dtype", array, one, flow, none),
                           add(g, "TensorArrayReadV2", "dtype", grad, one, second, none),
                           add(g, "TensorArraySizeV2", nullptr, array, flow, none, none), array};
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    for (int run = 0; run < 2; run++) {
        CHECK_OK(mr_session_run(session, (mr_feeds){0}, MR_OUTPUTS_OF(fetches, 4), results, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&results[0])[1] == 2.0f);
        CHECK(mr_tensor_floats(&results[1])[1] == 40.0f);
        CHECK_EQ(mr_tensor_int32s(&results[2])[0], 2);
        CHECK_EQ(mr_tensor_count(&results[3]), 2);
        for (int i = 0; i < 4; i++) mr_tensor_deinit(&results[i]);
    }
    mr_tensor_deinit(&order);
    mr_session_free(session);
    mr_graph_free(g);
}
