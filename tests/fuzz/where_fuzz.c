/* Fuzz target: the --where option of tfrecord-cat. The bytes before the first zero are the expression; the bytes after
 * it are a record. If the expression parses, evaluating it twice on the record must return the same result. */
#include "tools/common/query/tfds_find.c"
#include "tools/common/query/values.c"
#include "tools/common/query/where.c"
#include "tools/common/query/where_parse.c"
#include "tools/common/regex_cost.c"
#include "tools/common/text.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    size_t length = strnlen((const char *)bytes, size_bytes);
    char *text = strndup((const char *)bytes, size_bytes);
    need(text != nullptr);
    /* A copy of exactly this size, so that a sanitizer detects reads past the end. */
    size_t left = length < size_bytes ? size_bytes - length - 1 : 0;
    char *copy = malloc(left ? left : 1);
    need(copy != nullptr);
    if (left > 0) memcpy(copy, bytes + length + 1, left);
    where_error error;
    where *where = where_parse(text, &error);
    if (where) {
        where_state *state = where_state_new(where);
        need(state != nullptr);
        bool first = where_matches(state, (mr_string){copy, left});
        need(where_matches(state, (mr_string){copy, left}) == first);
        (void)where_matches(state, (mr_string){"", 0});
        where_state_free(state);
    } else {
        need(error.at <= length && error.message[0]);
    }
    where_free(where);
    free(copy);
    free(text);
    return 0;
}
