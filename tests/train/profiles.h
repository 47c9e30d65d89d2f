/* A small graph and RunMetadata for the tests of profiles. */
#ifndef MR_TESTS_TRAIN_PROFILES_H
#define MR_TESTS_TRAIN_PROFILES_H

#include "tests/test.h"

#include "proto/proto.h"
#include "proto/run.pb-c.h"
#include <millrace/millrace.h>

#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"
#define GPU "/job:localhost/replica:0/task:0/device:GPU:0"

/* out = (x · net/w + net/b) · s, where x is [rows, 3], net/w [3, 2] and trainable, net/b [2] and s a scalar. */
static inline mr_graph *small_graph(int64_t rows)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(rows, 3), .name = "x");
    mr_output s = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "s");
    mr_graph_push_scope(g, "net");
    mr_variable w = {.ref = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(3, 2), .name = "w")};
    mr_output b = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "b");
    mr_output product = mr_mat_mul(g, x, w.ref, .name = "product");
    mr_output sum = mr_add_v2(g, product, b, .name = "sum");
    mr_graph_pop_scope(g);
    (void)mr_mul(g, sum, s, .name = "out");
    mr_graph_add_variable_to_collection(g, MR_TRAINABLE_VARIABLES, w);
    CHECK(mr_graph_status(g, nullptr) == MR_OK);
    return g;
}

/* A call of a RunMetadata. */
typedef struct call {
    const char *node;
    int64_t start_micros, micros;
    int64_t output_bytes;                /* 0: it has no output */
    int64_t rows;                        /* of the output, [rows, 2] */
    int64_t requested_bytes, live_bytes; /* of `memory`; 0: none */
} call;

/* Adds the calls of a device to stats. */
static inline void add_device(mr_arena *arena, Mr__StepStats *stats, const char *name, const call *calls, int count)
{
    Mr__DeviceStepStats *device = MR_ARENA_NEW(arena, Mr__DeviceStepStats, 1);
    mr__device_step_stats__init(device);
    device->device = (char *)name;
    device->node_stats = MR_ARENA_NEW(arena, Mr__NodeExecStats *, (size_t)count + 1);
    for (int i = 0; i < count; i++) {
        Mr__NodeExecStats *stat = device->node_stats[device->n_node_stats++] =
            MR_ARENA_NEW(arena, Mr__NodeExecStats, 1);
        mr__node_exec_stats__init(stat);
        stat->node_name = (char *)calls[i].node;
        stat->all_start_micros = calls[i].start_micros;
        stat->op_end_rel_micros = calls[i].micros;
        if (calls[i].output_bytes != 0) {
            Mr__NodeOutput *output = MR_ARENA_NEW(arena, Mr__NodeOutput, 1);
            Mr__TensorDescription *tensor = MR_ARENA_NEW(arena, Mr__TensorDescription, 1);
            Mr__AllocationDescription *allocation = MR_ARENA_NEW(arena, Mr__AllocationDescription, 1);
            Mr__TensorShapeProto *shape = MR_ARENA_NEW(arena, Mr__TensorShapeProto, 1);
            mr__node_output__init(output);
            mr__tensor_description__init(tensor);
            mr__allocation_description__init(allocation);
            mr__tensor_shape_proto__init(shape);
            shape->dim = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim *, 2);
            for (int j = 0; j < 2; j++) {
                shape->dim[j] = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim, 1);
                mr__tensor_shape_proto__dim__init(shape->dim[j]);
                shape->dim[j]->size = j == 0 ? calls[i].rows : 2;
            }
            shape->n_dim = 2;
            allocation->requested_bytes = calls[i].output_bytes;
            tensor->shape = shape;
            tensor->allocation_description = allocation;
            output->tensor_description = tensor;
            stat->output = MR_ARENA_NEW(arena, Mr__NodeOutput *, 1);
            stat->output[stat->n_output++] = output;
        }
        if (calls[i].requested_bytes != 0) {
            Mr__AllocatorMemoryUsed *used = MR_ARENA_NEW(arena, Mr__AllocatorMemoryUsed, 1);
            mr__allocator_memory_used__init(used);
            used->total_bytes = calls[i].requested_bytes;
            used->peak_bytes = calls[i].requested_bytes / 2;
            used->live_bytes = calls[i].live_bytes;
            stat->memory = MR_ARENA_NEW(arena, Mr__AllocatorMemoryUsed *, 1);
            stat->memory[stat->n_memory++] = used;
        }
    }
    stats->dev_stats[stats->n_dev_stats++] = device;
}

constexpr size_t DEVICES_MAX = 4;

/* Starts a RunMetadata. */
static inline void begin_run(mr_arena *arena, Mr__StepStats *stats)
{
    mr__step_stats__init(stats);
    stats->dev_stats = MR_ARENA_NEW(arena, Mr__DeviceStepStats *, DEVICES_MAX);
}

/* The bytes, in the arena. */
static inline mr_string end_run(mr_arena *arena, Mr__StepStats *stats)
{
    mr_error error = {0};
    mr_string bytes = {0};
    Mr__RunMetadata metadata = MR__RUN_METADATA__INIT;
    metadata.step_stats = stats;
    CHECK_OK(mr_proto_pack(&metadata, arena, &bytes, &error));
    return bytes;
}

/* Adds a run on the CPU to a profile. */
static inline void add_cpu_run(mr_profile *profile, int64_t step, const call *calls, int count)
{
    mr_error error = {0};
    mr_arena arena = {0};
    Mr__StepStats stats;
    begin_run(&arena, &stats);
    add_device(&arena, &stats, CPU, calls, count);
    CHECK_OK(mr_profile_add_run(profile, step, end_run(&arena, &stats), &error));
    mr_arena_deinit(&arena);
}

/* Step 3 has two calls of net/sum; step 5 has one. x has 4 rows. _SOURCE is ignored, extra is no node of the graph. */
static inline mr_profile *small_profile(int64_t rows)
{
    static const call first[] = {{"_SOURCE", 100, 7, 0, 0, 0, 0},
                                 {"net/w", 100, 0, 24, 3, 0, 0},
                                 {"net/product", 110, 40, 32, 4, 64, 16},
                                 {"net/sum", 160, 10, 32, 4, 0, 0},
                                 {"net/sum:detail", 180, 20, 32, 4, 0, 0},
                                 {"out", 210, 6, 32, 4, 0, 0},
                                 {"extra", 220, 3, 0, 0, 0, 0}};
    static const call second[] = {{"net/product", 300, 20, 32, 4, 64, 16}, {"net/sum", 330, 10, 32, 4, 0, 0}};
    mr_error error = {0};
    mr_profile *profile;
    mr_graph *g = small_graph(rows);
    CHECK_OK(mr_profile_new(g, &profile, &error));
    mr_graph_free(g);
    add_cpu_run(profile, 5, second, 2);
    add_cpu_run(profile, 3, first, 7);
    return profile;
}

/* The view, which must be freed. */
static inline mr_profile_view *make_view(const mr_profile *profile, mr_profile_kind kind, mr_profile_options options)
{
    mr_error error = {0};
    mr_profile_view *view;
    options.size = sizeof options;
    CHECK_OK(mr_profile_view_new(profile, kind, &options, &view, &error));
    return view;
}

static inline void check_text(const mr_profile *profile, mr_profile_kind kind, mr_profile_options options,
                              const char *expected)
{
    mr_profile_view *view = make_view(profile, kind, options);
    CHECK_STR(mr_profile_view_text(view), expected);
    mr_profile_view_free(view);
}

#endif
