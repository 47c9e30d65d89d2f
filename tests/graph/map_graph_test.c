/* A graph as a map function: the same elements at any number of threads, and error messages. */
#include "tests/test.h"
#include <millrace/millrace.h>

/* Maps n to (n * n + 1, [n, n]). */
static mr_dataset *squares(int64_t count)
{
    mr_graph *g = mr_graph_new();
    mr_output n = mr_placeholder(g, MR_INT64, .shape = MR_SCALAR);
    mr_output square = mr_add_v2(g, mr_square(g, n), mr_constant_int64(g, 1));
    mr_output pair = mr_pack(g, MR_OUTPUTS(n, n));
    return mr_dataset_map_graph(mr_dataset_range(0, count, 1), g, MR_OUTPUTS(n), MR_OUTPUTS(square, pair));
}

TEST(map_graph_computes_each_element_at_any_number_of_threads)
{
    mr_error error = {0};
    static const int threads[] = {1, 2, 7};
    for (int t = 0; t < 3; t++) {
        mr_dataset *d = mr_dataset_batch(squares(500), 10);
        CHECK(mr_shape_equal(mr_dataset_spec(d)->shapes[1], MR_SHAPE(-1, 2)));
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads[t]), &iterator, &error));
        for (int64_t i = 0; i < 50; i++) {
            CHECK_OK(mr_iterator_next(iterator, &element, &error));
            for (int64_t j = 0; j < 10; j++) {
                int64_t n = i * 10 + j;
                CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[j], n * n + 1);
                CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[2 * j + 1], n);
            }
        }
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}

static void expect_refused(mr_dataset *d, const char *reason)
{
    mr_error error = {0};
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, reason);
    mr_dataset_free(d);
}

TEST(map_graph_refuses_what_is_not_a_function_of_the_element)
{
    mr_graph *g = mr_graph_new();
    mr_output n = mr_placeholder(g, MR_INT64, .shape = MR_SCALAR);
    mr_output noise = mr_random_uniform(g, mr_constant_ints(g, MR_INTS(2)), MR_FLOAT, .name = "noise");
    expect_refused(mr_dataset_map_graph(mr_dataset_range(0, 3, 1), g, MR_OUTPUTS(n), MR_OUTPUTS(noise)),
                   "noise (RandomUniform) is not stateless");

    g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    expect_refused(mr_dataset_map_graph(mr_dataset_range(0, 3, 1), g, MR_OUTPUTS(x), MR_OUTPUTS(x)),
                   "input x is float []");

    g = mr_graph_new();
    expect_refused(mr_dataset_map_graph(mr_dataset_range(0, 3, 1), g, (mr_outputs){0}, (mr_outputs){0}),
                   "takes 0 inputs");
}
