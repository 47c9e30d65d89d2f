/* Timelines: arrows between rows, memory, and labels that no run has written. */
#include "proto/run.pb-c.h"
#include "tests/test.h"

#include <jansson.h>
#include <millrace/hooks.h>
#include <stdlib.h>

typedef struct call {
    const char *name, *label;
    int device;
    int64_t start_us, duration_us, bytes;
} call;

constexpr int CALLS_MAX = 16;

/* Writes the timeline of these calls, on up to two devices, and returns its events. */
static json_t *events_of(const call *calls, int count, bool show_dataflow, bool show_memory)
{
    static const char *const names[] = {"/device:CPU:0", "/device:GPU:0"};
    static Mr__NodeExecStats stats[CALLS_MAX];
    static Mr__NodeOutput outputs[CALLS_MAX], *output_lists[CALLS_MAX];
    static Mr__TensorDescription tensors[CALLS_MAX];
    static Mr__AllocationDescription allocations[CALLS_MAX];
    Mr__NodeExecStats *lists[2][CALLS_MAX];
    Mr__DeviceStepStats devices[2], *device_list[] = {&devices[0], &devices[1]};
    Mr__StepStats steps = MR__STEP_STATS__INIT;
    Mr__RunMetadata metadata = MR__RUN_METADATA__INIT;
    CHECK(count <= CALLS_MAX);
    for (int d = 0; d < 2; d++) {
        mr__device_step_stats__init(&devices[d]);
        devices[d].device = (char *)names[d];
        devices[d].node_stats = lists[d];
    }
    for (int i = 0; i < count; i++) {
        mr__node_exec_stats__init(&stats[i]);
        stats[i].node_name = (char *)calls[i].name;
        stats[i].timeline_label = (char *)calls[i].label;
        stats[i].all_start_micros = calls[i].start_us;
        stats[i].all_end_rel_micros = calls[i].duration_us;
        if (calls[i].bytes != 0) {
            mr__node_output__init(&outputs[i]);
            mr__tensor_description__init(&tensors[i]);
            mr__allocation_description__init(&allocations[i]);
            outputs[i].tensor_description = &tensors[i];
            tensors[i].allocation_description = &allocations[i];
            allocations[i].requested_bytes = calls[i].bytes;
            allocations[i].allocator_name = calls[i].device == 0 ? "cpu" : "gpu";
            output_lists[i] = &outputs[i];
            stats[i].output = &output_lists[i];
            stats[i].n_output = 1;
        }
        Mr__DeviceStepStats *device = &devices[calls[i].device];
        lists[calls[i].device][device->n_node_stats++] = &stats[i];
    }
    steps.dev_stats = device_list;
    steps.n_dev_stats = 2;
    metadata.step_stats = &steps;
    static uint8_t bytes[1 << 16];
    const size_t size = mr__run_metadata__get_packed_size(&metadata);
    CHECK(size <= sizeof bytes);
    mr__run_metadata__pack(&metadata, bytes);
    mr_error error = {0};
    const mr_string text = {(const char *)bytes, size};
    CHECK_OK(mr_timeline_write(text, test_path("t.json"), &error, .show_dataflow = show_dataflow,
                               .show_memory = show_memory));
    json_error_t mistake;
    json_t *root = json_load_file(test_path("t.json"), 0, &mistake);
    if (root == nullptr) test_fail(__FILE__, __LINE__, "%s", mistake.text);
    json_t *events = json_incref(json_object_get(root, "traceEvents"));
    json_decref(root);
    return events;
}

/* The events of a kind, as "name@pid:ts[=bytes] ". */
static const char *listed(const json_t *events, const char *kind)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(json_string_value(json_object_get(event, "ph")), kind) != 0) continue;
        const char *name = json_string_value(json_object_get(event, "name"));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s@%d:%g", name,
                                 (int)json_integer_value(json_object_get(event, "pid")),
                                 json_number_value(json_object_get(event, "ts")));
        const json_t *bytes = json_object_get(json_object_get(event, "args"), name);
        if (bytes != nullptr)
            used += (size_t)snprintf(text + used, sizeof text - used, "=%d", (int)json_integer_value(bytes));
        used += (size_t)snprintf(text + used, sizeof text - used, " ");
    }
    return text;
}

/* a is computed twice, as in a loop; b reads the first on another device; c overlaps a's second call, on another
 * row. */
static const call calls[] = {
    {"a", "a = Square(x)", 0, 10, 5, 100},    {"b", "b = Neg(a, ^c)", 1, 20, 5, 40},
    {"a", "a = Square(b:0)", 0, 30, 10, 100}, {"c", "c = Add(a, a:1)", 0, 35, 10, 0},
    {"d", "d = Mul(a, c)", 0, 50, 1, 7},
};

TEST(timeline_arrows)
{
    json_t *events = events_of(calls, 5, true, false);
    CHECK_STR(listed(events, "s"), "b@1:25 a@0:15 a@0:40 a@0:40 c@0:45 ");
    CHECK_STR(listed(events, "t"), "b@0:30 a@1:20 a@0:35 a@0:35 c@0:50 ");
    CHECK_STR(listed(events, "C"), "");
    json_decref(events);
    events = events_of(calls, 5, false, false);
    CHECK_STR(listed(events, "s"), "");
    CHECK_EQ(json_array_size(events), 7);
    json_decref(events);
}

/* An output takes memory until its last reader ends; the counters are those of a third process. */
TEST(timeline_memory)
{
    json_t *events = events_of(calls, 5, false, true);
    CHECK_STR(listed(events, "s"), "");
    CHECK_STR(listed(events, "C"),
              "cpu@2:10=100 gpu@2:20=40 cpu@2:25=0 cpu@2:30=100 gpu@2:40=0 cpu@2:50=107 cpu@2:51=7 cpu@2:51=0 ");
    json_decref(events);
}

TEST(timeline_labels_are_not_trusted)
{
    static const char *const labels[] = {
        "",           " = ",       "a = (",    "a = x(",      "a = x(a",
        "a = x(,,,)", "a = x(^)",  "a = x(:)", "a = x(^:1)",  "a = x(::::)",
        "a = )(a)",   "a = x(a:)", "= (a)",    "a = x((((a)", "a = x(a:9999999999999)"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        const call hostile[] = {{"a", labels[i], 0, 0, -5, -7},
                                {"", labels[i], 1, INT64_MAX, INT64_MAX, INT64_MAX},
                                {"a", labels[i], 1, INT64_MIN, 1, INT64_MAX}};
        json_decref(events_of(hostile, 3, true, true));
    }
}
