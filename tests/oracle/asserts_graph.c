/* Writes a graph with assertions for asserts_oracle.py, and prints their nodes, one a line: "NODE NAME".
 *
 *     asserts_graph FILE */
#include <millrace/millrace.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc != 2) return 2;
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "y");
    mr_output u = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN, .name = "u");
    const struct {
        const char *name;
        mr_node *node;
    } nodes[] = {
        {"equal", mr_assert_equal(g, x, y)},
        {"equal_message", mr_assert_equal(g, x, y, .message = "M")},
        {"equal_empty", mr_assert_equal(g, x, y, .message = "")},
        {"equal_data", mr_assert_equal(g, x, y, .data = MR_OUTPUTS(x, mr_constant_string(g, "text")), .summarize = 1)},
        {"equal_unknown", mr_assert_equal(g, u, u)},
        {"none_equal", mr_assert_none_equal(g, x, y)},
        {"less", mr_assert_less(g, x, y, .summarize = 2)},
        {"less_equal", mr_assert_less_equal(g, x, y, .summarize = -1)},
        {"greater", mr_assert_greater(g, x, y)},
        {"greater_equal", mr_assert_greater_equal(g, x, y)},
        {"near", mr_assert_near(g, x, y)},
        {"near_limits", mr_assert_near(g, x, y, .rtol = 0.25f, .atol = 0.5f)},
        {"positive", mr_assert_positive(g, x)},
        {"positive_message", mr_assert_positive(g, x, .message = "M")},
        {"negative", mr_assert_negative(g, x)},
        {"non_negative", mr_assert_non_negative(g, x)},
        {"non_positive", mr_assert_non_positive(g, x)},
        {"rank", mr_assert_rank(g, u, 1)},
        {"rank_message", mr_assert_rank(g, u, 1, .message = "M")},
        {"rank_at_least", mr_assert_rank_at_least(g, u, 2)},
        {"rank_in", mr_assert_rank_in(g, u, MR_INTS(0, 2))},
        {"finite", mr_verify_all_finite(g, x, "M").node},
        {"non_decreasing", mr_is_non_decreasing(g, x).node},
        {"strictly_increasing", mr_is_strictly_increasing(g, u).node},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        printf("%s %s\n", nodes[i].name, mr_node_name(nodes[i].node));
    if (mr_graph_write_file(g, argv[1], MR_GRAPH_FILE_META, &error) == MR_OK) return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
