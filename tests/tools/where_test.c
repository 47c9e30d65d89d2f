/* --where: which records an expression selects, and how errors in it are reported. */
#include "tests/test.h"
#include "tools/common/query/where.h"

#include <stdlib.h>
#include <string.h>

static mr_string make_record(void)
{
    static mr_example_encoder encoder;
    static const int64_t ids[] = {7, -3, INT64_MAX};
    static const float scores[] = {0.1f, 0.9f}, xmin[] = {0.5f, 0.2f}, xmax[] = {0.6f, 0.1f};
    static const mr_string words[] = {{"cat", 3}, {"grüß dich", 11}, {"a\0b\xff", 4}};
    mr_error error = {0};
    mr_string record;
    mr_example_add_int64(&encoder, "image/width", 640);
    mr_example_add_int64(&encoder, "big", INT64_MAX);
    mr_example_add_int64_list(&encoder, "ids", ids, 3);
    mr_example_add_int64_list(&encoder, "none", ids, 0);
    mr_example_add_float(&encoder, "odd", NAN);
    mr_example_add_float_list(&encoder, "scores", scores, 2);
    mr_example_add_float_list(&encoder, "xmin", xmin, 2);
    mr_example_add_float_list(&encoder, "xmax", xmax, 2);
    mr_example_add_bytes_list(&encoder, "words", words, 3);
    mr_example_add_bytes(&encoder, "a name, \"quoted\"", MR_STR("here"));
    mr_example_add_bytes(&encoder, "empty", MR_STR(""));
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    return record;
}

/* 1: selected, 0: not selected, -1: not a valid expression. */
static int try_record(const char *text, mr_string record)
{
    where_error error;
    where *where = where_parse(text, &error);
    if (!where) {
        printf("%s: %s at %zu\n", text, error.message, error.at);
        return -1;
    }
    where_state *state = where_state_new(where);
    CHECK(state != nullptr);
    bool first = where_matches(state, record), second = where_matches(state, record);
    CHECK(first == second);
    where_state_free(state);
    where_free(where);
    return first;
}

static void check_all(const char *const *texts, size_t count, int expected, mr_string record)
{
    for (size_t i = 0; i < count; i++) {
        int got = try_record(texts[i], record);
        if (got != expected) test_fail(__FILE__, __LINE__, "%s gives %d", texts[i], got);
    }
}

TEST(where_selects_matching_records)
{
    static const char *const texts[] = {
        "image/width == 640",
        "image/width > 500 && image/width<641",
        "image/width != 5",
        "image/width == 640.0",
        "640 <= image/width",
        "!(image/width == 641)",
        "!!exists(image/width)",
        "nothing == 3 || image/width >= 640",
        "image/width == 1 && image/width == 2 || exists(ids)",
        "ids == -3",
        "ids == 7 && ids == -3 && ids > 100",
        "ids == 9223372036854775807",
        "big != 9223372036854775808.0",
        "big < 9223372036854775808.0",
        "ids == 0x7",
        "ids == - 7 + 14",
        "scores == 0.9",
        "0.1 == scores",
        "scores * 2 > 1.7",
        "image/width / 2 == 320",
        "image/width % 100 == 40",
        "7 / 2 == 3.5",
        "-ids == 3",
        "big + 1 > 9.2e18",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 4 - 3 == 3",
        "xmin < xmax",
        "xmax < xmin",
        "xmin - xmax < 0",
        "odd != 3",
        "odd != odd",
        "words == 'cat'",
        "words == \"a\\x00b\\xff\"",
        "words =~ '^c.t$'",
        "words =~ \"gr\u00fc\u00df\"",
        "words =~ '^a' && !(words =~ 'xyz')",
        "words contains 'dich'",
        "words contains ''",
        "words > 'b'",
        "words < 'b'",
        "feature(\"a name, \\\"quoted\\\"\") == 'here'",
        "exists('a name, \"quoted\"')",
        "size(ids) == 3 && size(nothing) == 0 && size(none) == 0",
        "exists(none) && !exists(nothing)",
        "!(nothing == 3) && !(nothing != 3)",
        "!(none == 3) && !(none != 3)",
        "bytes(words) == 11",
        "bytes(empty) == 0",
        "empty == ''",
        "words=='cat'&&ids==7",
        "  ( ( exists ( ids ) ) )  ",
        "'b' > 'abc'",
    };
    check_all(texts, sizeof texts / sizeof texts[0], 1, make_record());
}

TEST(where_rejects_other_records)
{
    static const char *const texts[] = {
        "image/width == 641",
        "image/width > 640",
        "image/width == '640'",
        "words == 3",
        "words + 1 == 3",
        "nothing != 3",
        "none != 3",
        "odd == odd || odd < 1 || odd >= 1",
        "1 / 0 == 1 || 5 % 0 == 0 || 1 / 0 != 1",
        "big == 9223372036854775808.0",
        "ids == 6",
        "image/width =~ '640'",
        "words =~ '^$'",
        "xmin == xmax",
        "steps(ids) == 3",
        "exists(image)",
        "ids * none == 7",
        "bytes(ids) > 0",
    };
    check_all(texts, sizeof texts / sizeof texts[0], 0, make_record());
    CHECK_EQ(try_record("exists(a) || a == 1 || size(a) > 0", MR_STR("no Example at all")), 0);
    CHECK_EQ(try_record("!exists(a)", MR_STR("no Example at all")), 1);
}

TEST(where_looks_into_feature_lists)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record;
    static const int64_t ones[] = {1, 2}, others[] = {30};
    mr_example_add_int64(&encoder.context, "length", 2);
    mr_sequence_add_int64_list(&encoder, "tokens", ones, 2);
    mr_sequence_add_int64_list(&encoder, "tokens", others, 1);
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    CHECK_EQ(try_record("length == 2 && tokens == 30 && tokens == 1", record), 1);
    CHECK_EQ(try_record("size(tokens) == 3 && steps(tokens) == 2 && exists(tokens)", record), 1);
    CHECK_EQ(try_record("tokens == 3 || steps(length) >= 0", record), 0);
    mr_sequence_encoder_deinit(&encoder);
}

TEST(where_reports_errors_with_their_position)
{
    static const struct {
        const char *text, *message;
        size_t at;
    } wrong[] = {
        {"", "unexpected end", 0},
        {"image/width", "expected a comparison", 0},
        {"a == 1 && b", "expected a comparison", 10},
        {"a = 3", "use == for equality", 2},
        {"a == 1 & b == 2", "use && for and", 7},
        {"a == 1 | b == 2", "use || for or", 7},
        {"(a == 1", "missing \")\"", 7},
        {"a == 1)", "unmatched", 6},
        {"a == 'x", "closing quote", 5},
        {"a == 'x\\", "closing quote", 5},
        {"a =~ '('", "invalid pattern", 5},
        {"a =~ b", "quoted text", 5},
        {"a =~ '(x{200}){200}'", "too many repetitions", 5},
        {"a =~ '((((((((((((((x+)+)+)+)+)+)+)+)+)+)+)+)+)+'", "too many repetitions", 5},
        {"a =~ 'x++++++++++++++++'", "too many repetitions", 5},
        {"a =~ '(x)\\1'", "back-references", 5},
        {"a == 3x", "not a number", 5},
        {"1 < a < 3", "cannot be chained", 6},
        {"a + 'x' == 1", "arithmetic with text", 2},
        {"(a == 1) + 1 == 2", "expected a value", 3},
        {"foo(a) == 1", "unknown function", 0},
        {"exists(3)", "missing feature name", 7},
        {"!a == 3", "expected a comparison", 1},
        {"a == 1 b == 2", "expected an operator", 7},
        {"a == 0x99999999999999999", "too large", 5},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        where_error error;
        if (where_parse(wrong[i].text, &error)) test_fail(__FILE__, __LINE__, "%s is taken", wrong[i].text);
        if (!strstr(error.message, wrong[i].message) || error.at != wrong[i].at)
            test_fail(__FILE__, __LINE__, "%s: %s at %zu", wrong[i].text, error.message, error.at);
    }
    static char deep[20'000];
    where_error error;
    memset(deep, '(', 5'000);
    CHECK(!where_parse(deep, &error));
    CHECK_CONTAINS(error.message, "too deep");
    memset(deep, '!', 15'000);
    CHECK(!where_parse(deep, &error));
    for (size_t i = 0; i + 10 < 16'000; i += 10) memcpy(deep + i, "a == 1 && ", 11);
    CHECK(!where_parse(deep, &error));
    CHECK_CONTAINS(error.message, "too long");
}

TEST(where_warns_about_likely_mistakes)
{
    where_error error;
    where *where = where_parse("image/widht > 5 || image/width == '640' || ids == 7 || words == 'cat'", &error);
    CHECK(where != nullptr);
    where_state *state = where_state_new(where), *other = where_state_new(where);
    CHECK(state && other);
    CHECK(where_matches(other, make_record()));
    CHECK(!where_matches(state, MR_STR("?")));
    where_state_merge(state, other);
    char notes[1000] = {0};
    FILE *file = fmemopen(notes, sizeof notes, "w");
    where_notes(state, file);
    fclose(file);
    CHECK_CONTAINS(notes, "no record has a feature \"image/widht\"");
    CHECK_CONTAINS(notes, "at character 32 text is compared with a number");
    CHECK_CONTAINS(notes, "1 record is not an Example");
    CHECK(!strstr(notes, "\"ids\""));
    where_state_free(state);
    where_free(where);
}
