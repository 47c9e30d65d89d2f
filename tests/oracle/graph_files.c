/* Graph files written and read by millrace, for graph_oracle.py:
 *   ops OUT          writes every operator's row as a serialized OpList
 *   build OUT META   writes a graph built with the typed builders, as GraphDef and MetaGraphDef
 *   copy IN OUT      imports and exports a GraphDef
 *   meta IN OUT      imports and exports a MetaGraphDef
 *   scoped IN OUT    the same under the prefix "in" and without devices
 *   part IN OUT      imports a MetaGraphDef, and exports it with only the scope "layer" and without other savers
 *   shapes IN        imports a GraphDef and prints one line for each output: NAME:INDEX SHAPE */
#include "builtin/builtin.h"
#include "graph/ir/convert.h"
#include "graph/ir/graph.h"
#include "graph/ir/signature.h"
#include <millrace/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_error error;

static int fail(void)
{
    fprintf(stderr, "%s\n", error.message);
    return 1;
}

static int write_file(const char *path, mr_string bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == nullptr) return 1;
    size_t written = fwrite(bytes.data, 1, bytes.size_bytes, file);
    return fclose(file) == 0 && written == bytes.size_bytes ? 0 : 1;
}

static mr_string read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == nullptr) exit(1);
    fseek(file, 0, SEEK_END);
    size_t size_bytes = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(size_bytes + 1);
    if (bytes == nullptr || fread(bytes, 1, size_bytes, file) != size_bytes) exit(1);
    fclose(file);
    return (mr_string){bytes, size_bytes};
}

/* ---- ops ---- */

static int write_ops(const char *path)
{
    mr_arena arena = {0};
    Mr__OpList list = MR__OP_LIST__INIT;
    mr_string bytes = {0};
    mr_builtin_register();
    list.op = MR_ARENA_NEW(&arena, Mr__OpDef *, (size_t)mr_op_count());
    for (int32_t i = 0; i < mr_op_count(); i++)
        if (mr_op_def_write(mr_op_at(i), &arena, &list.op[list.n_op++], &error) != MR_OK) return fail();
    if (mr_proto_pack(&list, &arena, &bytes, &error) != MR_OK) return fail();
    int result = write_file(path, bytes);
    mr_arena_deinit(&arena);
    return result;
}

/* ---- build ---- */

/* The same graph as build_graph of graph_oracle.py, with the same names. */
static void build_graph(mr_graph *g)
{
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4, 4, 1), .name = "x");
    mr_graph_push_scope(g, "layer");
    float filter[18];
    for (int i = 0; i < 18; i++) filter[i] = (float)i / 16;
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(3, 3, 1, 2), filter, "start"));
    mr_variable b = mr_variable_new(g, "b", mr_constant_floats(g, MR_SHAPE(2), (float[]){0, 0}, "zeros"));
    mr_output h = mr_conv2d(g, x, w.value, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_SAME);
    h = mr_relu(g, mr_bias_add(g, h, b.value));
    h = mr_max_pool(g, h, .ksize = MR_INTS(1, 2, 2, 1), .strides = MR_INTS(1, 2, 2, 1), .padding = MR_VALID);
    mr_graph_pop_scope(g);
    mr_output flat = mr_reshape(g, h, mr_constant_ints(g, MR_INTS(-1, 8)), .name = "flat");
    mr_output both = mr_concat_v2(g, MR_OUTPUTS(flat, flat), mr_constant_int32(g, 1));
    mr_output sum = mr_sum(g, both, mr_constant_ints(g, MR_INTS(1)), .keep_dims = true, .name = "sum");
    mr_output_range halves = mr_split(g, mr_constant_int32(g, 1), both, .num_split = 2);
    mr_output n = mr_add_n(g, MR_OUTPUTS(mr_output_at(halves, 0), mr_output_at(halves, 1)));
    mr_output out = mr_mul(g, n, sum, .name = "out");
    mr_output step =
        mr_assign_add(g, b.ref, mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, nullptr), .name = "step");
    mr_graph_push_control_dependencies(g, &step.node, 1);
    mr_identity(g, out, .name = "after");
    mr_graph_pop_control_dependencies(g);
    mr_graph_add_to_collection(g, MR_LOSSES, out);
    mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
}

static int write_built(const char *graph_path, const char *meta_path)
{
    mr_graph *g = mr_graph_new();
    mr_tensor graph_def = {0}, meta = {0};
    build_graph(g);
    if (mr_graph_export(g, &graph_def, &error) != MR_OK || mr_graph_export_meta(g, &meta, &error) != MR_OK)
        return fail();
    int result =
        write_file(graph_path, mr_tensor_strings(&graph_def)[0]) | write_file(meta_path, mr_tensor_strings(&meta)[0]);
    mr_tensor_deinit(&graph_def);
    mr_tensor_deinit(&meta);
    mr_graph_free(g);
    return result;
}

/* ---- TensorFlow's files ---- */

static int copy(const char *from, const char *to, bool is_meta)
{
    mr_graph *g = mr_graph_new();
    mr_string bytes = read_file(from);
    mr_tensor exported = {0};
    mr_status status = is_meta ? mr_graph_import_meta(g, bytes.data, bytes.size_bytes, &error)
                               : mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error);
    if (status == MR_OK)
        status = is_meta ? mr_graph_export_meta(g, &exported, &error) : mr_graph_export(g, &exported, &error);
    if (status != MR_OK) return fail();
    int result = write_file(to, mr_tensor_strings(&exported)[0]);
    mr_tensor_deinit(&exported);
    mr_graph_free(g);
    free((char *)bytes.data);
    return result;
}

static int copy_part(const char *from, const char *to)
{
    mr_graph *g = mr_graph_new();
    mr_string bytes = read_file(from);
    mr_tensor exported = {0};
    mr_status status = mr_graph_import_meta(g, bytes.data, bytes.size_bytes, &error);
    if (status == MR_OK)
        status = mr_graph_export_meta_with(
            g, MR_OPTIONS(mr_meta_export_options, .export_scope = "layer", .clear_extraneous_savers = true), &exported,
            &error);
    if (status != MR_OK) return fail();
    int result = write_file(to, mr_tensor_strings(&exported)[0]);
    mr_tensor_deinit(&exported);
    mr_graph_free(g);
    free((char *)bytes.data);
    return result;
}

static int copy_scoped(const char *from, const char *to)
{
    mr_graph *g = mr_graph_new();
    mr_string bytes = read_file(from);
    mr_tensor exported = {0};
    mr_status status =
        mr_graph_import_meta_with(g, bytes.data, bytes.size_bytes,
                                  MR_OPTIONS(mr_meta_import_options, .prefix = "in", .clear_devices = true), &error);
    if (status == MR_OK) status = mr_graph_export_meta(g, &exported, &error);
    if (status != MR_OK) return fail();
    int result = write_file(to, mr_tensor_strings(&exported)[0]);
    mr_tensor_deinit(&exported);
    mr_graph_free(g);
    free((char *)bytes.data);
    return result;
}

static int print_shapes(const char *from)
{
    mr_graph *g = mr_graph_new();
    mr_string bytes = read_file(from);
    if (mr_graph_import(g, bytes.data, bytes.size_bytes, nullptr, &error) != MR_OK) return fail();
    for (int32_t i = 0; i < mr_graph_node_count(g); i++) {
        mr_node *node = mr_graph_node(g, i);
        for (int32_t j = 0; j < mr_node_output_count(node); j++) {
            char text[MR_SHAPE_TEXT_SIZE];
            printf("%s:%d %s\n", mr_node_name(node), j,
                   mr_shape_text(mr_output_shape((mr_output){node, j}), text, sizeof text));
        }
    }
    mr_graph_free(g);
    free((char *)bytes.data);
    return 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 2 ? argv[1] : "";
    if (strcmp(command, "ops") == 0) return write_ops(argv[2]);
    if (strcmp(command, "shapes") == 0) return print_shapes(argv[2]);
    if (argc > 3 && strcmp(command, "build") == 0) return write_built(argv[2], argv[3]);
    if (argc > 3 && strcmp(command, "copy") == 0) return copy(argv[2], argv[3], false);
    if (argc > 3 && strcmp(command, "part") == 0) return copy_part(argv[2], argv[3]);
    if (argc > 3 && strcmp(command, "scoped") == 0) return copy_scoped(argv[2], argv[3]);
    if (argc > 3 && strcmp(command, "meta") == 0) return copy(argv[2], argv[3], true);
    return 1;
}
