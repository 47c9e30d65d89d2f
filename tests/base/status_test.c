/* Error messages: their text, replacement of control characters, and truncation at character boundaries. */
#include "tests/test.h"

TEST(status_names_are_tensorflows)
{
    CHECK_STR(mr_status_name(MR_DATA_LOSS), "DATA_LOSS");
    CHECK_STR(mr_status_name(MR_OK), "OK");
    CHECK_STR(mr_status_name((mr_status)99), "UNKNOWN");
    CHECK_STR(mr_status_name((mr_status)-1), "UNKNOWN");
}

TEST(status_fail_replaces_control_bytes)
{
    mr_error error = {0};
    CHECK_STATUS(mr_fail(&error, MR_NOT_FOUND, "%s: no such file", "a\x1b[2Jb\n\x7f"), MR_NOT_FOUND);
    CHECK_STR(error.message, "a?[2Jb??: no such file");
    CHECK_EQ(error.status, MR_NOT_FOUND);
    CHECK_STATUS(mr_fail(nullptr, MR_ABORTED, "nobody listens"), MR_ABORTED);
}

TEST(status_long_message_is_cut_at_a_character)
{
    char text[3 * MR_ERROR_SIZE + 3];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'a', shift);
        for (size_t i = 0; i < MR_ERROR_SIZE; i++) memcpy(text + shift + 3 * i, "\u20ac", 3);
        text[shift + 3 * MR_ERROR_SIZE] = '\0';
        mr_error error = {0};
        CHECK_STATUS(mr_fail(&error, MR_INTERNAL, "%s", text), MR_INTERNAL);
        size_t length = strlen(error.message);
        CHECK(length >= MR_ERROR_SIZE - 4);
        CHECK_EQ((length - shift) % 3, 0);
        CHECK(memcmp(error.message, text, length) == 0);
    }
}

TEST(status_fail_prefix_precedes_the_message)
{
    mr_error error = {0};
    CHECK_STATUS(mr_fail(&error, MR_DATA_LOSS, "record 3: truncated"), MR_DATA_LOSS);
    CHECK_STATUS(mr_fail_prefix(&error, MR_DATA_LOSS, "stage %s", "map"), MR_DATA_LOSS);
    CHECK_STR(error.message, "stage map: record 3: truncated");
    CHECK_STATUS(mr_fail(&error, MR_DATA_LOSS, "again %s", error.message), MR_DATA_LOSS);
    CHECK_STR(error.message, "again stage map: record 3: truncated");
}
