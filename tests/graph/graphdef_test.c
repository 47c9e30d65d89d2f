/* Import and export of GraphDef: nothing is lost; invalid bytes are reported and leave the graph unchanged. */
#include "graph/ir/graph.h"
#include "proto/graph.pb-c.h"
#include "proto/proto.h"
#include "tests/test.h"
#include <millrace/ops.h>

static mr_graph *example(void)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4), .name = "x");
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(4, 2), (float[8]){1, 2, 3}, "start"));
    mr_graph_push_device(g, "/gpu:0");
    mr_output y = mr_mat_mul(g, x, w.value, .name = "y");
    mr_graph_pop_device(g);
    mr_output_range parts = mr_split(g, mr_constant_int32(g, 1), y, .num_split = 2, .name = "parts");
    mr_output text = mr_constant_string(g, "a text");
    mr_output z = mr_add(g, mr_output_at(parts, 0), mr_output_at(parts, 1), .name = "z");
    mr_node_add_control(z.node, text.node);
    mr_graph_add_to_collection(g, MR_LOSSES, z);
    mr_graph_add_to_collection(g, MR_UPDATE_OPS, (mr_output){mr_no_op(g, .name = "step"), 0});
    return g;
}

static mr_string exported(mr_graph *g, mr_tensor *holder)
{
    mr_error error = {0};
    CHECK_OK(mr_graph_export(g, holder, &error));
    return mr_tensor_strings(holder)[0];
}

TEST(a_graph_survives_export_and_import)
{
    mr_error error = {0};
    mr_graph *g = example(), *copy = mr_graph_new();
    mr_tensor first = {0}, second = {0};
    CHECK_OK(mr_graph_status(g, &error));
    mr_string bytes = exported(g, &first);
    CHECK_OK(mr_graph_import(copy, bytes.data, bytes.size_bytes, nullptr, &error));
    CHECK_EQ(mr_graph_node_count(copy), mr_graph_node_count(g));
    CHECK(mr_string_equal(bytes, exported(copy, &second)));
    mr_output z = mr_graph_find_output(copy, "z");
    CHECK(mr_shape_equal(mr_output_shape(z), MR_SHAPE(-1, 1)));
    CHECK_EQ(mr_node_control_count(z.node), 1);
    CHECK_EQ(mr_node_input(z.node, 1).index, 1);
    CHECK_STR(mr_node_device(mr_graph_find(copy, "y")), "/device:GPU:0");
    CHECK(mr_output_is_ref(mr_graph_find_output(copy, "w")));
    /* Imported names are in use. */
    CHECK_STR(mr_node_name(mr_no_op(copy, .name = "Z")), "Z_1");
    mr_tensor_deinit(&first);
    mr_tensor_deinit(&second);
    mr_graph_free(g);
    mr_graph_free(copy);
}

TEST(import_under_a_prefix_renames_nodes_and_colocations)
{
    mr_error error = {0};
    mr_graph *g = example();
    mr_tensor holder = {0};
    mr_string bytes = exported(g, &holder);
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, "copy", &error));
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, "copy", &error));
    CHECK_EQ(mr_graph_find_output(g, "copy/parts:1").index, 1);
    CHECK(mr_graph_find(g, "copy_1/z") != nullptr);
    const mr_attr *class = mr_attrs_find(&mr_graph_find(g, "copy/w/read")->attrs, "_class");
    CHECK(class != nullptr && mr_string_equal(class->values[0].string, MR_STR("loc:@copy/w")));
    /* Without a prefix, all names already exist. */
    int32_t count = mr_graph_node_count(g);
    CHECK_STATUS(mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error), MR_ALREADY_EXISTS);
    CHECK_STR(error.message, "node x already exists in the graph");
    CHECK_EQ(mr_graph_node_count(g), count);
    mr_tensor_deinit(&holder);
    mr_graph_free(g);
}

TEST(a_meta_graph_brings_variables_and_collections)
{
    mr_error error = {0};
    mr_graph *g = example(), *copy = mr_graph_new();
    mr_tensor first = {0}, second = {0};
    CHECK_OK(mr_graph_export_meta(g, &first, &error));
    mr_string bytes = mr_tensor_strings(&first)[0];
    CHECK_OK(mr_graph_import_meta(copy, bytes.data, bytes.size_bytes, &error));
    CHECK_EQ(mr_graph_variable_count(copy, MR_TRAINABLE_VARIABLES), 1);
    mr_variable w = mr_graph_variable(copy, MR_GLOBAL_VARIABLES, 0);
    CHECK_STR(mr_node_name(w.ref.node), "w");
    CHECK_STR(mr_node_name(w.initializer), "w/Assign");
    CHECK_STR(mr_node_name(w.value.node), "w/read");
    CHECK_STR(mr_node_name(w.initial_value.node), "start");
    CHECK_STR(mr_node_name(mr_graph_collection_item(copy, MR_UPDATE_OPS, 0).node), "step");
    CHECK_OK(mr_graph_export_meta(copy, &second, &error));
    CHECK(mr_string_equal(bytes, mr_tensor_strings(&second)[0]));
    mr_tensor_deinit(&first);
    mr_tensor_deinit(&second);
    mr_graph_free(g);
    mr_graph_free(copy);
}

/* ---- Files encoded by the test ---- */

typedef struct file {
    mr_arena arena;
    Mr__GraphDef def;
    Mr__NodeDef *nodes[16];
} file;

static void begin(file *f)
{
    *f = (file){.def = MR__GRAPH_DEF__INIT};
    f->def.node = f->nodes;
}

static Mr__NodeDef *add(file *f, const char *name, const char *op, int count, const char **inputs)
{
    Mr__NodeDef *node = MR_ARENA_NEW(&f->arena, Mr__NodeDef, 1);
    mr__node_def__init(node);
    node->name = (char *)name;
    node->op = (char *)op;
    node->input = MR_ARENA_NEW(&f->arena, char *, 4);
    for (int i = 0; i < count; i++) node->input[i] = (char *)inputs[i];
    node->n_input = (size_t)count;
    node->attr = MR_ARENA_NEW(&f->arena, Mr__AttrEntry *, 8);
    f->nodes[f->def.n_node++] = node;
    return node;
}

static Mr__AttrValue *attr(file *f, Mr__NodeDef *node, const char *name, Mr__AttrValue__ValueCase kind)
{
    Mr__AttrEntry *entry = MR_ARENA_NEW(&f->arena, Mr__AttrEntry, 1);
    mr__attr_entry__init(entry);
    entry->key = (char *)name;
    entry->value = MR_ARENA_NEW(&f->arena, Mr__AttrValue, 1);
    mr__attr_value__init(entry->value);
    entry->value->value_case = kind;
    node->attr[node->n_attr++] = entry;
    return entry->value;
}

static void type(file *f, Mr__NodeDef *node, const char *name, int dtype)
{
    attr(f, node, name, MR__ATTR_VALUE__VALUE_TYPE)->type = dtype;
}

static mr_string pack(file *f)
{
    mr_error error = {0};
    mr_string bytes = {0};
    CHECK_OK(mr_proto_pack(&f->def, &f->arena, &bytes, &error));
    return bytes;
}

static void check_refused(int line, file *f, const char *message)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .name = "before");
    mr_string bytes = pack(f);
    if (mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error) == MR_OK)
        test_fail(__FILE__, line, "imported: %s", message);
    if (strcmp(error.message, message) != 0) test_fail(__FILE__, line, "\"%s\" is not \"%s\"", error.message, message);
    CHECK_EQ(mr_graph_node_count(g), 1);
    CHECK_EQ(mr_graph_status(g, nullptr), MR_OK);
    CHECK_STR(mr_node_name(mr_relu(g, x, .name = "a").node), "a");
    mr_graph_free(g);
    mr_arena_deinit(&f->arena);
}
#define CHECK_REFUSED(file, message) check_refused(__LINE__, (file), (message))

TEST(wrong_files_are_refused_with_the_node_and_the_reason)
{
    file f;
    const char *a[] = {"a"}, *out[] = {"a:1"}, *gone[] = {"gone"}, *twice[] = {"a", "a"}, *late[] = {"^a", "a"};
    const char *b[] = {"b"};
    begin(&f);
    add(&f, "a b", "NoOp", 0, nullptr);
    CHECK_REFUSED(&f, "node 0: \"a b\" is not a valid node name");
    begin(&f);
    type(&f, add(&f, "a", "Placeholder", 0, nullptr), "dtype", MR_FLOAT);
    add(&f, "a", "NoOp", 0, nullptr);
    CHECK_REFUSED(&f, "duplicate node a");
    begin(&f);
    type(&f, add(&f, "r", "Relu", 1, gone), "T", MR_FLOAT);
    CHECK_REFUSED(&f, "node r (Relu): input gone does not exist");
    begin(&f);
    type(&f, add(&f, "a", "Placeholder", 0, nullptr), "dtype", MR_FLOAT);
    type(&f, add(&f, "r", "Relu", 1, out), "T", MR_FLOAT);
    CHECK_REFUSED(&f, "node r (Relu): input 0 is output 1 of a (Placeholder), which has 1 outputs");
    begin(&f);
    type(&f, add(&f, "a", "Placeholder", 0, nullptr), "dtype", MR_FLOAT);
    type(&f, add(&f, "r", "Relu", 2, twice), "T", MR_FLOAT);
    CHECK_REFUSED(&f, "node r (Relu): the operator takes 1 inputs, but has 2");
    begin(&f);
    type(&f, add(&f, "a", "Placeholder", 0, nullptr), "dtype", MR_FLOAT);
    type(&f, add(&f, "r", "Relu", 2, late), "T", MR_FLOAT);
    CHECK_REFUSED(&f, "node r (Relu): input a follows a control input");
    begin(&f);
    add(&f, "a", "Placeholder", 0, nullptr);
    CHECK_REFUSED(&f, "node a (Placeholder): attr dtype is missing");
    begin(&f);
    type(&f, add(&f, "a", "Placeholder", 0, nullptr), "dtype", 99);
    CHECK_REFUSED(&f, "node a (Placeholder): attr dtype has the unknown type 99");
    begin(&f);
    type(&f, add(&f, "a", "Relu", 1, b), "T", MR_FLOAT);
    type(&f, add(&f, "b", "Relu", 1, a), "T", MR_FLOAT);
    CHECK_REFUSED(&f, "node a (Relu) is part of a cycle");
}

TEST(bytes_that_are_no_graph_are_refused)
{
    mr_graph *g = example();
    mr_tensor holder = {0};
    mr_string bytes = exported(g, &holder);
    for (size_t size = 1; size < bytes.size_bytes; size += 7) {
        mr_error error = {0};
        mr_graph *other = mr_graph_new();
        mr_status status = mr_graph_import(other, bytes.data, size, nullptr, &error);
        CHECK(status == MR_OK || *error.message != '\0');
        if (status != MR_OK) CHECK_EQ(mr_graph_node_count(other), 0);
        mr_graph_free(other);
    }
    mr_tensor_deinit(&holder);
    mr_graph_free(g);
}

TEST(constant_allocates_no_more_than_its_file_allows)
{
    file f;
    begin(&f);
    Mr__NodeDef *node = add(&f, "huge", "Const", 0, nullptr);
    type(&f, node, "dtype", MR_FLOAT);
    Mr__TensorProto tensor = MR__TENSOR_PROTO__INIT;
    Mr__TensorShapeProto shape = MR__TENSOR_SHAPE_PROTO__INIT;
    Mr__TensorShapeProto__Dim dim = MR__TENSOR_SHAPE_PROTO__DIM__INIT, *dims[] = {&dim};
    float one = 1;
    dim.size = 1ll << 40;
    shape.n_dim = 1;
    shape.dim = dims;
    tensor.dtype = MR_FLOAT;
    tensor.tensor_shape = &shape;
    tensor.n_float_val = 1;
    tensor.float_val = &one;
    attr(&f, node, "value", MR__ATTR_VALUE__VALUE_TENSOR)->tensor = &tensor;
    CHECK_REFUSED(&f,
                  "node huge (Const): attr value: a tensor of 1099511627776 elements is larger than its file allows");
}

TEST(unknown_operators_and_attrs_are_kept)
{
    mr_error error = {0};
    file f;
    begin(&f);
    const char *out[] = {"q:2"};
    Mr__NodeDef *node = add(&f, "q", "FromTheFuture", 0, nullptr);
    attr(&f, node, "power", MR__ATTR_VALUE__VALUE_F)->f = 11;
    Mr__AttrValue__ListValue mixed = MR__ATTR_VALUE__LIST_VALUE__INIT;
    int64_t number = 5;
    float fraction = 0.5f;
    mixed.n_i = mixed.n_f = 1;
    mixed.i = &number;
    mixed.f = &fraction;
    attr(&f, node, "mixed", MR__ATTR_VALUE__VALUE_LIST)->list = &mixed;
    Mr__NodeDef *relu = add(&f, "r", "Relu", 1, out);
    type(&f, relu, "T", MR_FLOAT);
    attr(&f, relu, "_note", MR__ATTR_VALUE__VALUE_I)->i = 3;
    mr_graph *g = mr_graph_new();
    mr_string bytes = pack(&f);
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error));
    CHECK_EQ(mr_node_output_count(mr_graph_find(g, "q")), 3);
    CHECK_EQ(mr_attr_int_or(&mr_graph_find(g, "r")->attrs, "_note", 0), 3);
    mr_tensor holder = {0};
    mr_string again = exported(g, &holder);
    Mr__GraphDef *def = nullptr;
    CHECK_OK(mr_proto_unpack_as(graph_def, again, &f.arena, &def, &error));
    CHECK_STR(def->node[0]->op, "FromTheFuture");
    CHECK_EQ(def->node[0]->n_attr, 2);
    CHECK_STR(def->node[0]->attr[0]->key, "mixed");
    CHECK_EQ(def->node[0]->attr[0]->value->list->i[0], 5);
    CHECK_STR(def->node[1]->input[0], "q:2");
    mr_tensor_deinit(&holder);
    mr_graph_free(g);
    mr_arena_deinit(&f.arena);
}

TEST(import_accepts_loops)
{
    mr_error error = {0};
    file f;
    const char *x[] = {"x"}, *both[] = {"enter", "next"}, *merge[] = {"merge"};
    begin(&f);
    type(&f, add(&f, "x", "Placeholder", 0, nullptr), "dtype", MR_FLOAT);
    Mr__NodeDef *enter = add(&f, "enter", "Enter", 1, x);
    type(&f, enter, "T", MR_FLOAT);
    Mr__AttrValue *frame = attr(&f, enter, "frame_name", MR__ATTR_VALUE__VALUE_S);
    frame->s = (ProtobufCBinaryData){4, (uint8_t *)"loop"};
    Mr__NodeDef *node = add(&f, "merge", "Merge", 2, both);
    type(&f, node, "T", MR_FLOAT);
    attr(&f, node, "N", MR__ATTR_VALUE__VALUE_I)->i = 2;
    type(&f, add(&f, "next", "NextIteration", 1, merge), "T", MR_FLOAT);
    mr_graph *g = mr_graph_new();
    mr_string bytes = pack(&f);
    CHECK_OK(mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error));
    CHECK(mr_node_input(mr_graph_find(g, "merge"), 1).node == mr_graph_find(g, "next"));
    mr_graph_free(g);
    mr_arena_deinit(&f.arena);
}
