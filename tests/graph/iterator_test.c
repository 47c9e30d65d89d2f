/* Iterators in the graph: elements pass through a session without a copy, and the position in the data is saved
 * together with the states of random operators. */
#include "graph/run/session_state.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/train.h>

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_session_options options = {.size = sizeof options, .threads = 2};
    CHECK_OK(mr_session_new(g, &options, &session, &error));
    return session;
}

typedef struct numbers {
    mr_graph *g;
    mr_node *iterator;
    mr_output number;
} numbers;

/* 0 to 9 in the order determined by the seed. */
static numbers shuffled_numbers(void)
{
    numbers n = {.g = mr_graph_new()};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_range(0, 10, 1), .seed = 7), 3);
    n.iterator = mr_graph_iterator(n.g, "numbers", d, MR_OPTIONS(mr_iterator_options, .threads = 1), &n.number);
    mr_dataset_free(d); /* the graph retains a reference */
    return n;
}

static int64_t next_number(mr_session *session, mr_output number)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(number), &result, nullptr, 0, &error));
    int64_t value = mr_tensor_int64s(&result)[0];
    mr_tensor_deinit(&result);
    return value;
}

TEST(graph_iterator_returns_one_element_per_run)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output rows;
    mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 5, 1), 2);
    mr_node *iterator = mr_graph_iterator(g, "rows", d, nullptr, &rows);
    mr_dataset_free(d);
    CHECK_STR(mr_node_name(iterator), "rows");
    CHECK_STR(mr_node_op(iterator), "IteratorV2");
    CHECK_STR(mr_node_op(rows.node), "IteratorGetNext");
    CHECK_EQ(mr_output_dtype(rows), MR_INT64);
    CHECK_EQ(mr_output_shape(rows).rank, 1);
    mr_output twice = mr_add(g, rows, rows), same = mr_neg(g, rows);
    mr_session *session = open_session(g);
    CHECK(mr_session_iterator(session, iterator) == nullptr);
    const int expected[] = {2, 2, 1};
    for (int i = 0; i < 3; i++) {
        mr_tensor results[2] = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(twice, same), results, nullptr, 0, &error));
        CHECK_EQ(mr_tensor_count(&results[0]), expected[i]);
        CHECK_EQ(mr_tensor_int64s(&results[0])[0], 4 * i);
        CHECK_EQ(mr_tensor_int64s(&results[1])[0], -2 * i);
        mr_tensor_deinit(&results[0]);
        mr_tensor_deinit(&results[1]);
    }
    CHECK(mr_session_iterator(session, iterator) != nullptr);
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(twice), &result, nullptr, 0, &error), MR_OUT_OF_RANGE);
    CHECK(strstr(error.message, "End of sequence") != nullptr);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Batches that the pipeline fills pass through the step and are returned to the pipeline, which reuses their memory. */
TEST(graph_iterator_allocates_nothing_in_the_steady_state)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_dataset *d = mr_dataset_batch(mr_dataset_repeat(mr_dataset_range(0, 1000, 1), MR_INFINITE), 500);
    mr_output rows;
    mr_graph_iterator(g, "rows", d, MR_OPTIONS(mr_iterator_options, .threads = 1), &rows);
    mr_dataset_free(d);
    mr_output y = mr_neg(g, rows);
    mr_session *session = open_session(g);
    long long before = 0;
    for (int i = 0; i < 60; i++) {
        if (i == 40) before = test_allocations();
        mr_tensor result = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &result, nullptr, 0, &error));
        CHECK_EQ(mr_tensor_int64s(&result)[0], i % 2 ? -500 : 0);
        mr_tensor_deinit(&result);
    }
    CHECK_EQ(test_allocations(), before);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(graph_iterator_state_is_saved_and_restored)
{
    mr_error error = {0};
    numbers n = shuffled_numbers();
    mr_session *session = open_session(n.g);
    for (int i = 0; i < 13; i++) next_number(session, n.number);
    mr_tensor state = {0};
    CHECK_OK(mr_session_save_state(session, &state, &error));
    int64_t expected[17];
    for (int i = 0; i < 17; i++) expected[i] = next_number(session, n.number);
    mr_session_free(session);

    session = open_session(n.g); /* one that has not requested an element yet */
    CHECK_OK(mr_session_restore_state(session, &state, &error));
    for (int i = 0; i < 17; i++) CHECK_EQ(next_number(session, n.number), expected[i]);
    CHECK_OK(mr_session_restore_state(session, &state, &error)); /* one at another position */
    CHECK_EQ(next_number(session, n.number), expected[0]);
    mr_session_free(session);
    mr_tensor_deinit(&state);
    mr_graph_free(n.g);
}

TEST(graph_iterator_without_data_is_tensorflows_error)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_node_builder b = mr_node_begin(g, "IteratorV2", "empty");
    mr_node_set_string(&b, "shared_name", "");
    mr_node_set_string(&b, "container", "");
    mr_node_set_dtypes(&b, "output_types", MR_DTYPES(MR_FLOAT));
    mr_node_set_shapes(&b, "output_shapes", MR_SHAPES(MR_SCALAR));
    mr_output handle = mr_node_finish(&b);
    b = mr_node_begin(g, "IteratorGetNext", "next");
    mr_node_add_input(&b, handle);
    mr_node_set_dtypes(&b, "output_types", MR_DTYPES(MR_FLOAT));
    mr_node_set_shapes(&b, "output_shapes", MR_SHAPES(MR_SCALAR));
    mr_output next = mr_node_finish(&b);
    mr_session *session = open_session(g);
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(next), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    CHECK(strstr(error.message, "next (IteratorGetNext): GetNext() failed because the iterator has not been "
                                "initialized") == error.message);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(graph_iterator_passes_on_a_datasets_error)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 5, 1), -1);
    mr_output rows;
    mr_graph_iterator(g, "rows", d, nullptr, &rows);
    mr_dataset_free(d);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK(strncmp(error.message, "rows", 4) == 0);
    mr_graph_free(g);
}

/* ---- Random operators ---- */

static float draw(mr_session *session, mr_output output)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(output), &result, nullptr, 0, &error));
    float value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    return value;
}

/* Each run draws new numbers; two sessions draw the same ones; a restored session continues the sequence. */
TEST(session_state_contains_random_operators)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output shape = mr_constant_ints(g, MR_INTS(5));
    mr_output seeded = mr_random_uniform(g, shape, MR_FLOAT, .seed = 3, .seed2 = 4, .name = "seeded");
    mr_output unseeded = mr_random_uniform(g, shape, MR_FLOAT, .name = "unseeded");
    mr_session *session = open_session(g), *other = open_session(g);
    float first = draw(session, seeded);
    CHECK(draw(other, seeded) == first);
    CHECK(draw(session, seeded) != first);
    CHECK(draw(session, unseeded) != draw(other, unseeded));
    mr_tensor state = {0};
    CHECK_OK(mr_session_save_state(session, &state, &error));
    float a = draw(session, seeded), b = draw(session, unseeded);
    mr_session_free(session);
    session = open_session(g);
    CHECK_OK(mr_session_restore_state(session, &state, &error));
    CHECK(draw(session, seeded) == a);
    CHECK(draw(session, unseeded) == b);
    CHECK_OK(mr_session_restore_state(other, &state, &error));
    CHECK(draw(other, unseeded) == b);
    mr_tensor_deinit(&state);
    mr_session_free(session);
    mr_session_free(other);
    mr_graph_free(g);
}

/* A state that is truncated anywhere, or has any byte changed, is rejected or restored without causing damage. */
TEST(session_state_may_be_damaged)
{
    mr_error error = {0};
    numbers n = shuffled_numbers();
    mr_output noise = mr_random_uniform(n.g, mr_constant_ints(n.g, MR_INTS(2)), MR_FLOAT, .seed = 1);
    mr_session *session = open_session(n.g);
    next_number(session, n.number);
    draw(session, noise);
    mr_tensor state = {0};
    CHECK_OK(mr_session_save_state(session, &state, &error));
    mr_string bytes = mr_tensor_strings(&state)[0];
    for (size_t length = 0; length < bytes.size_bytes; length++) {
        mr_tensor cut = {0};
        CHECK_OK(mr_tensor_init_string(&cut, (mr_string){bytes.data, length}, &error));
        (void)mr_session_restore_state(session, &cut, &error);
        mr_tensor_deinit(&cut);
        char *changed = malloc(bytes.size_bytes);
        memcpy(changed, bytes.data, bytes.size_bytes);
        changed[length] ^= (char)0xff;
        CHECK_OK(mr_tensor_init_string(&cut, (mr_string){changed, bytes.size_bytes}, &error));
        (void)mr_session_restore_state(session, &cut, &error);
        mr_tensor_deinit(&cut);
        free(changed);
    }
    CHECK_OK(mr_session_restore_state(session, &state, &error));
    mr_tensor_deinit(&state);
    mr_session_free(session);
    mr_graph_free(n.g);
}

/* Names are those of a class: a variable and an iterator may have the same one. */
TEST(graph_iterator_and_variable_may_share_a_name)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_variable_v2(g, MR_INT64, .shape = MR_SCALAR, .shared_name = "both", .name = "x");
    mr_output handle = mr_iterator_v2(g, .shared_name = "both", .container = "", .output_types = MR_DTYPES(MR_INT64),
                                      .output_shapes = MR_SHAPES(MR_SCALAR));
    mr_output_range element =
        mr_iterator_get_next(g, handle, .output_types = MR_DTYPES(MR_INT64), .output_shapes = MR_SHAPES(MR_SCALAR));
    mr_output set = mr_assign(g, x, mr_constant_int64(g, 7));
    mr_output next = mr_output_at(element, 0);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(set), &result, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_int64s(&result)[0], 7);
    mr_tensor_deinit(&result);
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(next), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    mr_session_free(session);
    mr_graph_free(g);
}
