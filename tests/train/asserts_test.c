/* Assertions: what holds and what fails a run, with which message; what is known before; wrong arguments. */
#include "tests/train/refused.h"

#include <math.h>
#include <string.h>

typedef struct run {
    mr_graph *g;
    mr_output x, y, u; /* u: of an unknown rank */
} run;

static run begin(void)
{
    run r = {.g = mr_graph_new()};
    r.x = mr_placeholder(r.g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    r.y = mr_placeholder(r.g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "y");
    r.u = mr_placeholder(r.g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN, .name = "u");
    return r;
}

static mr_tensor vector(const float *values, int32_t count)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_FLOAT, MR_SHAPE(count), values, &error));
    return tensor;
}

/* Runs the assertion with x, y and u = x. Frees the graph.
 * expected  a part of the message; null: it holds */
static void check(run r, mr_node *assertion, const float *x, const float *y, int32_t count, const char *expected)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_graph_status(r.g, &error));
    CHECK_OK(mr_session_new(r.g, nullptr, &session, &error));
    mr_tensor a = vector(x, count), b = vector(y != nullptr ? y : x, count);
    const mr_status status = mr_session_run(session, MR_FEEDS({r.x, a}, {r.y, b}, {r.u, a}), (mr_outputs){0}, nullptr,
                                            &assertion, 1, &error);
    if (expected == nullptr) {
        CHECK_OK(status);
    } else {
        CHECK_EQ(status, MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, expected);
    }
    mr_tensor_deinit(&a);
    mr_tensor_deinit(&b);
    mr_session_free(session);
    mr_graph_free(r.g);
}

TEST(comparisons_of_two_values_are_asserted)
{
    static const float low[] = {1, 2}, high[] = {1, 3}, other[] = {2, 3};
    static const struct {
        mr_comparison comparison;
        bool same, higher, above, below; /* holds for low and low, low and high, low and other, other and low */
        const char *text;
    } cases[] = {
        {MR_COMPARE_EQUAL, true, false, false, false, "x == y"},
        {MR_COMPARE_NONE_EQUAL, false, false, true, true, "x != y"},
        {MR_COMPARE_LESS, false, false, true, false, "x < y"},
        {MR_COMPARE_LESS_EQUAL, true, true, true, false, "x <= y"},
        {MR_COMPARE_GREATER, false, false, false, true, "x > y"},
        {MR_COMPARE_GREATER_EQUAL, true, false, false, true, "x >= y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float *const pairs[][2] = {{low, low}, {low, high}, {low, other}, {other, low}};
        const bool holds[] = {cases[i].same, cases[i].higher, cases[i].above, cases[i].below};
        char text[200];
        snprintf(text, sizeof text, "assertion failed: [Condition %s did not hold element-wise:] [x (x:0) = ] [",
                 cases[i].text);
        for (int j = 0; j < 4; j++) {
            run r = begin();
            check(r, mr_assert_compare(r.g, cases[i].comparison, r.x, r.y), pairs[j][0], pairs[j][1], 2,
                  holds[j] ? nullptr : text);
        }
    }
}

TEST(values_near_each_other_are_asserted)
{
    static const float x[] = {1, 100}, y[] = {1, 101};
    run r = begin();
    check(r, mr_assert_near(r.g, r.x, r.y), x, x, 2, nullptr);
    r = begin();
    check(r, mr_assert_near(r.g, r.x, r.y, .message = "M"), x, y, 2, "[M.  ] [x and y not equal to tolerance] [x (x:0");
    r = begin();
    check(r, mr_assert_near(r.g, r.x, r.y, .rtol = 0.02f), x, y, 2, nullptr);
    r = begin();
    check(r, mr_assert_near(r.g, r.x, r.y, .rtol = 0, .atol = 2), x, y, 2, nullptr);
    r = begin();
    check(r, mr_assert_near(r.g, r.x, r.y, .rtol = 0, .atol = 0), x, x, 2, "not equal to tolerance"); /* 0 < 0 */
    const float nan[] = {NAN, 1};
    r = begin();
    check(r, mr_assert_near(r.g, r.x, r.y), nan, nan, 2, "not equal to tolerance");
}

TEST(signs_are_asserted)
{
    static const float mixed[] = {1, 0, -1}, zero[] = {0, 0, 0};
    run r = begin();
    check(r, mr_assert_positive(r.g, r.x), mixed, nullptr, 1, nullptr);
    r = begin();
    check(r, mr_assert_positive(r.g, r.x, .message = "a length"), mixed, nullptr, 3,
          "assertion failed: [a length.  ] [Condition x > 0 did not hold element-wise:] [x (x:0) = ] [1 0 -1]");
    r = begin();
    check(r, mr_assert_non_negative(r.g, r.x), mixed, nullptr, 2, nullptr);
    r = begin();
    check(r, mr_assert_non_negative(r.g, r.x), mixed, nullptr, 3, "[] [Condition x >= 0 did not hold");
    r = begin();
    check(r, mr_assert_negative(r.g, r.x), mixed + 2, nullptr, 1, nullptr);
    r = begin();
    check(r, mr_assert_negative(r.g, r.x), mixed + 1, nullptr, 2, "[] [Condition x < 0 did not hold");
    r = begin();
    check(r, mr_assert_non_positive(r.g, r.x), mixed + 1, nullptr, 2, nullptr);
    r = begin();
    check(r, mr_assert_non_positive(r.g, r.x), mixed, nullptr, 3, "[] [Condition x <= 0 did not hold");
    r = begin();
    check(r, mr_assert_non_positive(r.g, r.u), zero, nullptr, 3, nullptr);
    r = begin();
    check(r, mr_assert_positive(r.g, r.u, .summarize = 1), mixed, nullptr, 3, "[x (u:0) = ] [1...]");
    r = begin();
    check(r, mr_assert_positive(r.g, r.x, .data = MR_OUTPUTS(mr_constant_string(r.g, "own"))), mixed, nullptr, 3,
          "assertion failed: [own]");
    r = begin();
    check(r, mr_assert_positive(r.g, r.x), mixed, nullptr, 0, nullptr); /* no elements */
}

TEST(ranks_are_asserted_at_once_or_in_the_run)
{
    static const float x[] = {1, 2};
    run r = begin();
    mr_node *known = mr_assert_rank(r.g, r.x, 1);
    CHECK_STR(mr_node_op(known), "NoOp");
    check(r, known, x, nullptr, 2, nullptr);
    r = begin();
    check(r, mr_assert_rank(r.g, r.u, 1), x, nullptr, 2, nullptr);
    r = begin();
    check(r, mr_assert_rank(r.g, r.u, 2, .message = "M"), x, nullptr, 2,
          "assertion failed: [M.  ] [Tensor u:0 must have rank] [2] [Received shape: ] [2]");
    r = begin();
    check(r, mr_assert_rank_at_least(r.g, r.u, 3), x, nullptr, 2,
          "assertion failed: [] [Tensor u:0 must have rank at least] [3] [Received shape: ] [2]");
    r = begin();
    check(r, mr_assert_rank_at_least(r.g, r.u, 0), x, nullptr, 2, nullptr);
    r = begin();
    check(r, mr_assert_rank_in(r.g, r.u, MR_INTS(0, 2)), x, nullptr, 2,
          "assertion failed: [] [Tensor u:0 must have rank in] [0] [2] [Received shape: ] [2]");
    r = begin();
    check(r, mr_assert_rank_in(r.g, r.u, MR_INTS(0, 1)), x, nullptr, 2, nullptr);
    r = begin();
    (void)mr_assert_rank(r.g, r.x, 2, .message = "M");
    check_refused(r.g, "assert_rank: M.  Tensor x:0 must have rank 2.  Received rank 1, shape [?]");
    r = begin();
    (void)mr_assert_rank_at_least(r.g, r.x, 2);
    check_refused(r.g, "must have rank at least 2.  Received rank 1");
    r = begin();
    (void)mr_assert_rank_in(r.g, r.x, MR_INTS(0, 3));
    check_refused(r.g, "must have rank in 0, 3.  Received rank 1");
}

static void check_order(mr_output (*is_ordered)(mr_graph *, mr_output), const float *values, int32_t count, bool holds)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    run r = begin();
    mr_output result = is_ordered(r.g, r.u);
    CHECK_OK(mr_session_new(r.g, nullptr, &session, &error));
    mr_tensor value = vector(values, count), found = {0};
    CHECK_OK(mr_session_run(session, MR_FEEDS({r.u, value}), MR_OUTPUTS(result), &found, nullptr, 0, &error));
    CHECK_EQ(*(const bool *)mr_tensor_data(&found), holds);
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&found);
    mr_session_free(session);
    mr_graph_free(r.g);
}

TEST(orders_are_found)
{
    static const float rising[] = {1, 2, 3}, flat[] = {1, 2, 2}, falling[] = {2, 1};
    check_order(mr_is_strictly_increasing, rising, 3, true);
    check_order(mr_is_strictly_increasing, flat, 3, false);
    check_order(mr_is_non_decreasing, flat, 3, true);
    check_order(mr_is_non_decreasing, falling, 2, false);
    for (int32_t count = 0; count < 2; count++) {
        check_order(mr_is_strictly_increasing, falling, count, true);
        check_order(mr_is_non_decreasing, falling, count, true);
    }
}

TEST(values_are_verified_to_be_finite)
{
    const float good[] = {1, 2}, bad[] = {1, INFINITY};
    run r = begin();
    check(r, mr_verify_all_finite(r.g, r.x, "x").node, good, nullptr, 2, nullptr);
    r = begin();
    check(r, mr_verify_all_finite(r.g, r.x, "bad lengths").node, bad, nullptr, 2, "bad lengths");
}

TEST(wrong_assertions_are_refused)
{
#define REFUSE(part, expression)                                                                                       \
    {                                                                                                                  \
        run r = begin();                                                                                               \
        (void)(expression);                                                                                            \
        check_refused(r.g, part);                                                                                      \
    }
    REFUSE("assert_equal: x is not an output of the graph", mr_assert_equal(r.g, (mr_output){0}, r.y))
    REFUSE("assert_less: y is not an output of the graph", mr_assert_less(r.g, r.x, (mr_output){0}))
    REFUSE("unknown comparison 7", mr_assert_compare(r.g, (mr_comparison)7, r.x, r.y))
    REFUSE("unknown comparison -1", mr_assert_compare(r.g, (mr_comparison)-1, r.x, r.y))
    REFUSE("unknown sign 4", mr_assert_sign(r.g, (mr_sign_kind)4, r.x))
    REFUSE("summarize must be at least -1", mr_assert_equal(r.g, r.x, r.y, .summarize = -2))
    REFUSE("message has no effect with data", mr_assert_equal(r.g, r.x, r.y, .message = "M", .data = MR_OUTPUTS(r.x)))
    REFUSE("data is not a list", mr_assert_equal(r.g, r.x, r.y, .data = {nullptr, 2}))
    REFUSE("data is not a list", mr_assert_equal(r.g, r.x, r.y, .data = {nullptr, -1}))
    REFUSE("rtol and atol have an effect on near only", mr_assert_equal(r.g, r.x, r.y, .rtol = 0.1f))
    REFUSE("rtol and atol must be finite", mr_assert_near(r.g, r.x, r.y, .atol = -1))
    REFUSE("rtol and atol must be finite", mr_assert_near(r.g, r.x, r.y, .rtol = INFINITY))
    REFUSE("x is int32, not floating point", mr_assert_near(r.g, mr_constant_int32(r.g, 1), r.y))
    REFUSE("rank is -1, but must be at least 0", mr_assert_rank(r.g, r.u, -1))
    REFUSE("there must be 1 to 64 ranks", mr_assert_rank_in(r.g, r.u, (mr_ints){0}))
    REFUSE("rank is 4294967296, but must be at least 0, and at most 2147483647",
           mr_assert_rank_in(r.g, r.u, MR_INTS(4294967296)))
    REFUSE("message is null", mr_verify_all_finite(r.g, r.x, nullptr))
    REFUSE("is_non_decreasing: x is not an output of the graph", mr_is_non_decreasing(r.g, (mr_output){0}))
    CHECK(mr_assert_equal(nullptr, (mr_output){0}, (mr_output){0}) == nullptr);
    CHECK(mr_assert_positive(nullptr, (mr_output){0}) == nullptr);
    CHECK(mr_assert_rank(nullptr, (mr_output){0}, 1) == nullptr);
    CHECK(mr_is_strictly_increasing(nullptr, (mr_output){0}).node == nullptr);
    mr_graph *other = mr_graph_new();
    REFUSE("assert_equal: y is not an output of the graph", mr_assert_equal(r.g, r.x, mr_constant_float(other, 1)))
    mr_graph_free(other);
}
