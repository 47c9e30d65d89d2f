/* Sessions on the fake GPU: a complete network trains as on the CPU, and batches and variables on any device are used
 * or copied as needed. */
#include "tests/cuda/emulator.h"
#include "tests/cuda/fake.h"
#include "tests/cuda/model.h"
#include "tests/test.h"

#include <millrace/millrace.h>

static void use_fake(void)
{
    if (!emulator_works()) test_skip("the emulator cannot run under this sanitizer");
    fake_register();
}

static const model_size small = {.batch = 4, .side = 12, .filters = 4, .classes = 5};

TEST(cuda_network_trains_as_on_the_cpu)
{
    mr_error error = {0};
    float ours[4], theirs[4];
    static char notes[1 << 16];
    use_fake();
    CHECK_OK(model_train(small, nullptr, 4, theirs, nullptr, nullptr, 0, &error));
    CHECK_OK(model_train(small, "/device:GPU:0", 4, ours, nullptr, notes, sizeof notes, &error));
    for (int i = 0; i < 4; i++) CHECK_NEAR((double)ours[i], (double)theirs[i], 1e-4);
    CHECK(fake.launches > 100 && fake.dnn_runs > 0);
    /* All training computation runs on the GPU, except step counters and constants, which are on the CPU. */
    CHECK(strstr(notes, "dropout/SelectV2 (SelectV2): /device:GPU:0") != nullptr);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_EQ(fake.contexts, 0);
}

TEST(cuda_absence_falls_back_to_the_cpu)
{
    mr_error error = {0};
    float losses[2];
    static char notes[1 << 16];
    use_fake();
    fake.device_count = 0;
    CHECK_OK(model_train(small, "/device:GPU:0", 2, losses, nullptr, notes, sizeof notes, &error));
    CHECK_CONTAINS(notes, "there is no GPU 0");
    CHECK_EQ(fake.launches, 0);
}

TEST(cuda_error_in_a_step_is_reported)
{
    mr_error error = {0};
    float losses[1];
    use_fake();
    fake.fail_launch = 700;
    CHECK_STATUS(model_train(small, "/device:GPU:0", 1, losses, nullptr, nullptr, 0, &error), MR_INTERNAL);
    CHECK_CONTAINS(error.message, "illegal memory access");
    CHECK_EQ(fake.live_allocations, 0);
}

/* ---- Batches that are already on a GPU ---- */

static constexpr int64_t WIDTH = 200;

static mr_dataset *batches(const char *device)
{
    mr_error error = {0};
    mr_tensor tensors[2];
    CHECK_OK(mr_tensor_init(&tensors[0], MR_FLOAT, MR_SHAPE(12, WIDTH), &error));
    CHECK_OK(mr_tensor_init(&tensors[1], MR_INT64, MR_SHAPE(12), &error));
    for (int64_t i = 0; i < 12 * WIDTH; i++) mr_tensor_floats(&tensors[0])[i] = (float)(i / WIDTH);
    for (int64_t i = 0; i < 12; i++) mr_tensor_int64s(&tensors[1])[i] = i;
    mr_dataset *d = mr_dataset_batch(mr_dataset_from_slices(tensors, 2), 3, .drop_remainder = true);
    mr_tensor_deinit(&tensors[0]);
    mr_tensor_deinit(&tensors[1]);
    return device ? mr_dataset_prefetch_to_device(d, device, 2) : d;
}

typedef struct program {
    mr_graph *g;
    mr_session *session;
    mr_node *iterator;
    mr_output sums, numbers; /* sums: of the rows, on the session's device; numbers: unchanged */
} program;

static program open_program(const char *data_device, const char *session_device)
{
    mr_error error = {0};
    program p = {.g = mr_graph_new()};
    mr_output outputs[2];
    mr_dataset *d = batches(data_device);
    p.iterator = mr_graph_iterator(p.g, "data", d, MR_OPTIONS(mr_iterator_options, .threads = 1), outputs);
    mr_dataset_free(d);
    p.sums = mr_square(p.g, outputs[0]);
    p.numbers = outputs[1];
    CHECK_OK(mr_session_new(p.g, MR_OPTIONS(mr_session_options, .device = session_device), &p.session, &error));
    return p;
}

static void close_program(program *p)
{
    mr_session_free(p->session);
    mr_graph_free(p->g);
    CHECK_EQ(fake.contexts, 0);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_EQ(fake.live_pinned, 0);
}

static void check_step(const program *p, int64_t step)
{
    mr_error error = {0};
    mr_tensor results[2];
    CHECK_OK(mr_session_run(p->session, MR_NO_FEEDS, MR_OUTPUTS(p->sums, p->numbers), results, nullptr, 0, &error));
    for (int i = 0; i < 2; i++) CHECK(mr_tensor_device(&results[i]) == nullptr);
    for (int64_t r = 0; r < 3; r++) {
        int64_t number = 3 * step + r;
        CHECK_EQ(mr_tensor_int64s(&results[1])[r], number);
        CHECK(mr_tensor_floats(&results[0])[r * WIDTH + 7] == number * number);
    }
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
}

TEST(cuda_session_takes_batches_where_they_are)
{
    static const struct {
        const char *data, *session;
        bool is_there;
    } cases[] = {{"/gpu:0", "/gpu:0", true},
                 {"/gpu:1", "/gpu:0", false},
                 {"/gpu:0", nullptr, false},
                 {"/cpu:0", "/gpu:0", false},
                 {nullptr, "/gpu:0", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        use_fake();
        fake.device_count = 2;
        program p = open_program(cases[i].data, cases[i].session);
        for (int64_t step = 0; step < 4; step++) check_step(&p, step);
        /* If the batches are already on the device, the only copies are those of the pipeline, on the copy stream. */
        const fake_gpu state = fake_state();
        if (cases[i].is_there) CHECK_EQ(state.copies_in, state.async_copies);
        close_program(&p);
    }
}

/* The plan expects elements on the GPU; elements of another dataset are copied there. */
TEST(cuda_session_brings_elements_of_another_dataset)
{
    mr_error error = {0};
    use_fake();
    program p = open_program("/gpu:0", "/gpu:0");
    check_step(&p, 0);
    mr_dataset *d = batches(nullptr);
    CHECK_OK(mr_iterator_initialize(mr_session_iterator(p.session, p.iterator), d, &error));
    mr_dataset_free(d);
    for (int64_t step = 0; step < 4; step++) check_step(&p, step);
    close_program(&p);
}

TEST(cuda_session_is_fed_with_batches_on_a_device)
{
    mr_error error = {0};
    for (int kind = 0; kind < 3; kind++) {
        use_fake();
        fake.device_count = 2;
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3, WIDTH));
        mr_output y = mr_square(g, x);
        const char *device = kind == 0 ? "/gpu:0" : kind == 1 ? nullptr : "/gpu:1";
        CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .device = device), &session, &error));
        mr_dataset *d = batches("/gpu:0");
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        mr_dataset_free(d);
        for (int64_t step = 0; step < 4; step++) {
            mr_tensor results[2];
            CHECK_OK(mr_iterator_next(iterator, &element, &error));
            CHECK_OK(mr_session_run(session, MR_FEEDS({x, element.tensors[0]}), MR_OUTPUTS(y, x), results, nullptr, 0,
                                    &error));
            CHECK(mr_tensor_floats(&results[0])[2 * WIDTH] == (3 * step + 2) * (3 * step + 2));
            CHECK(mr_tensor_device(&results[1]) == nullptr);
            CHECK(mr_tensor_floats(&results[1])[2 * WIDTH] == 3 * step + 2);
            mr_tensor_deinit(&results[0]);
            mr_tensor_deinit(&results[1]);
            CHECK_OK(
                mr_session_run(session, MR_FEEDS({x, element.tensors[0]}), MR_OUTPUTS(y), results, nullptr, 0, &error));
            CHECK(mr_tensor_floats(&results[0])[2 * WIDTH] == (3 * step + 2) * (3 * step + 2));
            mr_tensor_deinit(&results[0]);
            if (kind == 0) CHECK(mr_tensor_device(&element.tensors[0]) != nullptr);
        }
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_session_free(session);
        mr_graph_free(g);
        CHECK_EQ(fake.contexts, 0);
        CHECK_EQ(fake.live_allocations, 0);
    }
}

TEST(cuda_variables_are_written_from_anywhere)
{
    mr_error error = {0};
    use_fake();
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_output v = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(3));
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .device = "/gpu:0"), &session, &error));
    mr_tensor here, there, back;
    mr_device *gpu = nullptr;
    CHECK_OK(mr_device_open("/gpu:0", &gpu, &error));
    CHECK_OK(mr_tensor_init_copy(&here, MR_FLOAT, MR_SHAPE(3), (float[]){1, 2, 3}, &error));
    CHECK_OK(mr_tensor_to_device(&here, gpu, &there, &error));
    CHECK_OK(mr_session_write_variable(session, v, &here, &error));
    CHECK_OK(mr_session_read_variable(session, v, &back, &error));
    CHECK(mr_tensor_floats(&back)[2] == 3);
    mr_tensor_deinit(&back);
    CHECK_OK(mr_session_write_variable(session, v, &there, &error));
    CHECK_OK(mr_session_read_variable(session, v, &back, &error));
    CHECK(mr_tensor_floats(&back)[1] == 2);
    mr_tensor_deinit(&back);
    mr_tensor_deinit(&here);
    mr_tensor_deinit(&there);
    mr_session_free(session);
    mr_graph_free(g);
    mr_device_close(gpu);
    CHECK_EQ(fake.contexts, 0);
}
