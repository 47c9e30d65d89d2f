/* Creates variables with every initializer, in several dtypes and kinds, for variables_oracle.py, which creates the
 * same ones with TensorFlow.
 *
 *     variables_graphs FILE.meta
 *
 * Writes the MetaGraphDef. Prints "NAME VALUE…" for each variable after its initialization, and the names of nodes. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float given[] = {1.5f, -2, 3, 0.25f, 5, 6};

/* Names, shapes and options; the Python program has the same list. */
static void create(mr_graph *g)
{
#define V(name, shape, ...) (void)mr_get_variable(g, name, MR_SHAPE shape, __VA_ARGS__);
#define INIT(KIND, ...) .initializer = {.kind = MR_INIT_##KIND, __VA_ARGS__}
    V("zeros", (2, 3), INIT(ZEROS, ))
    V("zeros_large", (40, 50), INIT(ZEROS, ))
    V("ones", (3), INIT(ONES, ))
    V("ones_int", (3), .dtype = MR_INT64, INIT(ONES, ))
    V("constant", (2, 2), INIT(CONSTANT, .scale = 2.5f))
    V("default", (3, 4), INIT(DEFAULT, .seed = 7))
    V("default_int", (3), .dtype = MR_INT32)
    V("default_bool", (3), .dtype = MR_BOOL)
    V("uniform", (3, 4), INIT(UNIFORM, .min = -1, .max = 3, .seed = 7))
    V("uniform_int", (3, 4), .dtype = MR_INT32, INIT(UNIFORM, .min = -10, .max = 30, .seed = 7))
    V("normal", (3, 4), INIT(NORMAL, .mean = 1, .scale = 2, .seed = 7))
    V("truncated", (3, 4), INIT(TRUNCATED_NORMAL, .mean = 1, .scale = 2, .seed = 7))
    V("glorot_uniform", (3, 3, 2, 4), INIT(GLOROT_UNIFORM, .seed = 7))
    V("glorot_normal", (5, 4), INIT(GLOROT_NORMAL, .seed = 7))
    V("he_normal", (5, 4), INIT(HE_NORMAL, .seed = 7))
    V("he_uniform", (5, 4), INIT(HE_UNIFORM, .seed = 7))
    V("lecun_normal", (5, 4), INIT(LECUN_NORMAL, .seed = 7))
    V("lecun_uniform", (6), INIT(LECUN_UNIFORM, .seed = 7))
    V("scaling", (5, 4), INIT(VARIANCE_SCALING, .scale = 3, .mode = MR_FAN_OUT, .seed = 7))
    V("scaling_normal", (5, 4),
      INIT(VARIANCE_SCALING, .scale = 3, .mode = MR_FAN_AVG, .distribution = MR_DISTRIBUTION_UNTRUNCATED_NORMAL,
           .seed = 7))
    V("scaling_uniform", (5, 4), INIT(VARIANCE_SCALING, .distribution = MR_DISTRIBUTION_UNIFORM, .seed = 7))
    V("unit_scaling", (5, 2, 4), INIT(UNIFORM_UNIT_SCALING, .scale = 1.5f, .seed = 7))
    V("orthogonal", (5, 4), INIT(ORTHOGONAL, .seed = 7))
    V("orthogonal_wide", (2, 2, 6), INIT(ORTHOGONAL, .scale = 2, .seed = 7))
    V("identity", (3, 3), INIT(IDENTITY, .scale = 2))
    V("identity_wide", (3, 5), INIT(IDENTITY, ))
    V("delta1", (3, 2, 4), INIT(DELTA_ORTHOGONAL, .seed = 7))
    V("delta2", (3, 2, 2, 3), INIT(DELTA_ORTHOGONAL, .scale = 2, .seed = 7))
    V("delta3", (2, 3, 1, 2, 2), INIT(DELTA_ORTHOGONAL, .seed = 7))
    V("convolution1", (4, 2, 3), INIT(CONVOLUTION_ORTHOGONAL, .scale = 2, .seed = 7))
    V("convolution2", (3, 3, 2, 3), INIT(CONVOLUTION_ORTHOGONAL, .seed = 7))
    V("convolution3", (3, 3, 3, 2, 2), INIT(CONVOLUTION_ORTHOGONAL, .seed = 7))
    V("convolution_small", (1, 1, 2, 3), INIT(CONVOLUTION_ORTHOGONAL, .seed = 7))
    V("double", (3, 4), .dtype = MR_DOUBLE, INIT(HE_NORMAL, .seed = 7))
    V("half", (3, 4), .dtype = MR_HALF, INIT(GLOROT_UNIFORM, .seed = 7))
    V("bfloat", (3, 4), .dtype = MR_BFLOAT16, INIT(NORMAL, .scale = 1, .seed = 7))
    V("value", (2, 3), INIT(VALUE, .value = mr_constant_floats(g, MR_SHAPE(2, 3), given, "given")))
    V("parts", (7, 3), INIT(GLOROT_UNIFORM, .seed = 7),
      .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 3})
    V("parts_axis", (4, 6), INIT(IDENTITY, ),
      .partitioner = {.kind = MR_PARTITION_AXIS_SIZE, .axis = 1, .size_bytes = 40})
    V("resource", (3, 4), INIT(HE_UNIFORM, .seed = 7), .use_resource = true)
    V("local", (2), INIT(ONES, ), .collections = MR_NAMES(MR_LOCAL_VARIABLES, MR_METRIC_VARIABLES), .trainable = false)
    V("model", (2), INIT(ONES, ), .collections = MR_NAMES(MR_GLOBAL_VARIABLES, MR_MODEL_VARIABLES))
    (void)mr_get_local_variable(g, "local_too", MR_SHAPE(2), INIT(ZEROS, ));
}

static double element(const mr_tensor *value, int64_t i)
{
    switch (value->dtype) {
    case MR_FLOAT:
        return (double)mr_tensor_floats(value)[i];
    case MR_DOUBLE:
        return ((const double *)mr_tensor_data(value))[i];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)mr_tensor_data(value))[i]);
    case MR_BFLOAT16:
        return (double)mr_bfloat16_to_float(((const uint16_t *)mr_tensor_data(value))[i]);
    case MR_INT32:
        return mr_tensor_int32s(value)[i];
    case MR_INT64:
        return (double)mr_tensor_int64s(value)[i];
    default:
        return ((const uint8_t *)mr_tensor_data(value))[i];
    }
}

static mr_status print_variables(mr_graph *g, mr_session *session, const char *collection, mr_error *error)
{
    for (int32_t i = 0; i < mr_graph_variable_count(g, collection); i++) {
        mr_variable v = mr_graph_variable(g, collection, i);
        mr_tensor value = {0};
        MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(v.value), &value, nullptr, 0, error));
        printf("%s %s", collection, mr_node_name(v.ref.node));
        for (int64_t j = 0; j < mr_tensor_count(&value); j++) printf(" %.9g", element(&value, j));
        printf("\n");
        mr_tensor_deinit(&value);
    }
    return MR_OK;
}

static mr_status run(mr_graph *g, const char *path, mr_error *error)
{
    mr_session *session = nullptr;
    mr_tensor meta = {0};
    mr_graph_set_seed(g, 42);
    create(g);
    mr_node *inits[] = {mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init"),
                        mr_initialize_variables(g, MR_LOCAL_VARIABLES, "init_local")};
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, inits, 2, error));
    MR_TRY(print_variables(g, session, MR_GLOBAL_VARIABLES, error));
    MR_TRY(print_variables(g, session, MR_LOCAL_VARIABLES, error));
    for (int32_t i = 0; i < mr_graph_node_count(g); i++) printf("node %s\n", mr_node_name(mr_graph_node(g, i)));
    MR_TRY(mr_graph_export_meta(g, &meta, error));
    FILE *file = fopen(path, "wb");
    mr_string bytes = mr_tensor_strings(&meta)[0];
    bool done = file != nullptr && fwrite(bytes.data, 1, bytes.size_bytes, file) == bytes.size_bytes;
    if (file != nullptr) done = fclose(file) == 0 && done;
    mr_tensor_deinit(&meta);
    mr_session_free(session);
    return done ? MR_OK : mr_fail(error, MR_UNAVAILABLE, "%s: cannot be written", path);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_status status = run(g, argv[1], &error);
    if (status != MR_OK) fprintf(stderr, "variables_graphs: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
