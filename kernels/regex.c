/* Regular expressions, with PCRE2 and the syntax of RE2, which TensorFlow uses.
 *
 * A pattern is first checked against RE2's syntax: what only PCRE2 understands (references to groups, conditions, look
 * around, atomic groups, comments) is an error, with RE2's text. \s and \v mean in PCRE2 more characters than in RE2,
 * and are translated. \C is not supported. PCRE2 backtracks, so the number of steps of a match has a limit. */
#include "kernels/regex.h"

#include "base/status.h"
#include "kernels/text.h"

#include <stdio.h>
#include <string.h>

/* ---- The syntax of RE2 ---- */

typedef struct scanner {
    mr_string pattern;
    size_t at;
    mr_text_builder result; /* the pattern for PCRE2 */
    const char *reason;     /* of the first error */
    mr_string argument;
} scanner;

static bool fail(scanner *s, const char *reason, size_t begin, size_t end)
{
    if (s->reason == nullptr) {
        s->reason = reason;
        s->argument = (mr_string){s->pattern.data + begin, MR_MIN(end, s->pattern.size_bytes) - begin};
    }
    return false;
}

static int peek(const scanner *s, size_t ahead)
{
    return s->at + ahead < s->pattern.size_bytes ? (unsigned char)s->pattern.data[s->at + ahead] : -1;
}

static void copy(scanner *s, size_t count)
{
    mr_text_add(&s->result, s->pattern.data + s->at, count);
    s->at += count;
}

static bool is_alphanumeric(int c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

/* An escape sequence; in a class if in_class. */
static bool scan_escape(scanner *s, bool in_class)
{
    int c = peek(s, 1), following = peek(s, 2);
    if (c < 0) return fail(s, "trailing \\", s->at, s->at);
    if (c == 's' || c == 'S' || c == 'v') {
        const char *text = c == 'v'   ? "\\x0b"
                           : c == 's' ? (in_class ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]")
                           : in_class ? "\\S"
                                      : "[^\\t\\n\\f\\r\\x20]";
        mr_text_add(&s->result, text, strlen(text));
        s->at += 2;
        return true;
    }
    bool is_octal = c == '0' || (c >= '1' && c <= '7' && following >= '0' && following <= '7');
    if (is_octal) { /* \0 and at most three digits; PCRE2 would read some as references */
        int value = 0;
        char text[16];
        for (s->at++; peek(s, 0) >= '0' && peek(s, 0) <= '7' && value < 0100; s->at++)
            value = value * 8 + peek(s, 0) - '0';
        mr_text_add(&s->result, text, (size_t)snprintf(text, sizeof text, "\\x{%x}", value));
        return true;
    }
    static const char allowed[] = "aftnrxdDwWpPQ", outside[] = "AbBzE";
    if (is_alphanumeric(c) && c != '_' && !strchr(allowed, c) && (in_class || !strchr(outside, c)))
        return fail(s, "invalid escape sequence", s->at, s->at + 2);
    copy(s, 2);
    if ((c == 'p' || c == 'P' || c == 'x') && peek(s, 0) == '{') { /* "\p{Greek}", "\x{20ac}" */
        const char *name = s->pattern.data + s->at, *close = memchr(name, '}', s->pattern.size_bytes - s->at);
        if (close == nullptr) return fail(s, "invalid escape sequence", s->at - 2, s->pattern.size_bytes);
        copy(s, (size_t)(close - name) + 1);
    }
    if (c != 'Q') return true;
    const char *rest = s->pattern.data + s->at;
    const char *end = memmem(rest, s->pattern.size_bytes - s->at, "\\E", 2);
    copy(s, end ? (size_t)(end - rest) + 2 : s->pattern.size_bytes - s->at);
    return true;
}

static bool scan_class(scanner *s)
{
    size_t begin = s->at;
    copy(s, 1);
    if (peek(s, 0) == '^') copy(s, 1);
    for (bool is_first = true; is_first || peek(s, 0) != ']'; is_first = false) {
        if (peek(s, 0) < 0) return fail(s, "missing ]", begin, s->pattern.size_bytes);
        const char *rest = s->pattern.data + s->at;
        const char *end =
            peek(s, 0) == '[' && peek(s, 1) == ':' ? memmem(rest, s->pattern.size_bytes - s->at, ":]", 2) : nullptr;
        if (peek(s, 0) == '\\') {
            if (!scan_escape(s, true)) return false;
        } else if (end != nullptr) {
            copy(s, (size_t)(end - rest) + 2);
        } else if (peek(s, 0) == '[') {
            mr_text_add(&s->result, "\\", 1); /* PCRE2 reads "[.", "[=" */
            copy(s, 1);
        } else {
            copy(s, 1);
        }
    }
    copy(s, 1);
    return true;
}

/* "(", "(?:", "(?P<name>", "(?i)", "(?i:". */
static bool scan_group(scanner *s)
{
    size_t begin = s->at;
    if (peek(s, 1) != '?') {
        if (peek(s, 1) == '*') return fail(s, "no argument for repetition operator", s->at + 1, s->at + 2);
        copy(s, 1);
        return true;
    }
    if (peek(s, 2) == 'P') {
        size_t at = 4;
        while (is_alphanumeric(peek(s, at))) at++;
        if (peek(s, 3) != '<' || at == 4 || peek(s, at) != '>')
            return fail(s, "invalid named capture group", begin, begin + at + 1);
        copy(s, at + 1);
        return true;
    }
    size_t at = 2;
    bool is_negative = false;
    while (peek(s, at) >= 0 && strchr("imsU-", peek(s, at)) != nullptr) {
        if (peek(s, at) == '-' && is_negative) break;
        is_negative |= peek(s, at++) == '-';
    }
    if ((peek(s, at) != ':' && (peek(s, at) != ')' || at == 2)) || peek(s, at - 1) == '-')
        return fail(s, peek(s, at) < 0 ? "missing )" : "invalid perl operator", begin, begin + at + 1);
    copy(s, at + 1);
    return true;
}

/* The length of "{2}", "{2,}" or "{2,3}" at the position, or 0. */
static size_t repetition_length(const scanner *s, bool *is_too_large)
{
    size_t at = 1;
    int64_t numbers[2] = {0, 0};
    if (peek(s, 0) != '{' || peek(s, 1) < '0' || peek(s, 1) > '9') return 0;
    for (int i = 0; i < 2; i++) {
        for (; peek(s, at) >= '0' && peek(s, at) <= '9'; at++)
            if (numbers[i] < 100'000) numbers[i] = numbers[i] * 10 + peek(s, at) - '0';
        if (i == 1 || peek(s, at) != ',') break;
        at++;
        if (peek(s, at) == '}') numbers[1] = numbers[0];
    }
    if (peek(s, at) != '}') return 0;
    bool has_second = memchr(s->pattern.data + s->at, ',', at) != nullptr;
    *is_too_large = numbers[0] > 1000 || numbers[1] > 1000 || (has_second && numbers[1] < numbers[0]);
    return at + 1;
}

static bool scan_repetition(scanner *s, size_t length, bool has_operand, size_t *previous)
{
    if (!has_operand && *previous == SIZE_MAX)
        return fail(s, "no argument for repetition operator", s->at, s->at + length);
    if (*previous != SIZE_MAX) return fail(s, "bad repetition operator", *previous, s->at + length);
    *previous = s->at;
    copy(s, length);
    if (peek(s, 0) == '?') copy(s, 1);
    return true;
}

static bool scan(scanner *s)
{
    int64_t depth = 0;
    bool has_operand = false;
    size_t previous = SIZE_MAX; /* the start of the repetition operator just before */
    while (s->at < s->pattern.size_bytes) {
        int c = peek(s, 0);
        bool is_too_large = false;
        size_t repetition = c == '*' || c == '+' || c == '?' ? 1 : repetition_length(s, &is_too_large);
        if (is_too_large) return fail(s, "invalid repetition size", s->at, s->at + repetition);
        if (repetition > 0) {
            if (!scan_repetition(s, repetition, has_operand, &previous)) return false;
            continue;
        }
        previous = SIZE_MAX;
        has_operand = c != '(' && c != '|';
        if (c == '\\') {
            if (!scan_escape(s, false)) return false;
        } else if (c == '[') {
            if (!scan_class(s)) return false;
        } else if (c == '(') {
            size_t begin = s->result.size_bytes;
            if (!scan_group(s)) return false;
            depth += s->result.data == nullptr || s->result.data[s->result.size_bytes - 1] != ')' ||
                     s->result.size_bytes == begin;
        } else {
            if (c == ')' && --depth < 0) return fail(s, "unexpected )", 0, s->pattern.size_bytes);
            if (c == '{') mr_text_add(&s->result, "\\", 1); /* not a repetition */
            copy(s, 1);
        }
    }
    return depth == 0 || fail(s, "missing )", 0, s->pattern.size_bytes);
}

/* ---- Compiled patterns ---- */

void mr_regex_deinit(mr_regex *regex)
{
    pcre2_match_data_free(regex->match);
    pcre2_match_context_free(regex->context);
    pcre2_code_free(regex->code);
    *regex = (mr_regex){0};
}

static mr_status invalid_pattern(mr_string pattern, const char *reason, mr_string argument, mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s%s%.*s",
                   (int)MR_MIN(pattern.size_bytes, (size_t)200), pattern.data, reason,
                   argument.size_bytes > 0 ? ": " : "", (int)MR_MIN(argument.size_bytes, (size_t)200), argument.data);
}

static mr_status compile(mr_string pattern, mr_string translated, bool is_full, mr_regex *regex, mr_error *error)
{
    int number = 0;
    size_t offset = 0;
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX |
                       PCRE2_NEVER_BACKSLASH_C | (is_full ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
    pcre2_compile_context *settings = pcre2_compile_context_create(nullptr);
    if (settings == nullptr) return mr_fail_memory(error, 64);
    pcre2_set_newline(settings, PCRE2_NEWLINE_LF);
    regex->code = pcre2_compile((PCRE2_SPTR)(translated.data ? translated.data : ""), translated.size_bytes, options,
                                &number, &offset, settings);
    pcre2_compile_context_free(settings);
    if (regex->code == nullptr && number == PCRE2_ERROR_HEAP_FAILED) return mr_fail_memory(error, pattern.size_bytes);
    if (regex->code == nullptr) {
        unsigned char reason[160] = "";
        pcre2_get_error_message(number, reason, sizeof reason);
        return invalid_pattern(pattern, (const char *)reason, (mr_string){0}, error);
    }
    regex->match = pcre2_match_data_create_from_pattern(regex->code, nullptr);
    regex->context = pcre2_match_context_create(nullptr);
    if (regex->match == nullptr || regex->context == nullptr) {
        mr_regex_deinit(regex);
        return mr_fail_memory(error, 1024);
    }
    pcre2_set_match_limit(regex->context, 1'000'000);
    pcre2_set_heap_limit(regex->context, 64 * 1024); /* KiB */
    return MR_OK;
}

mr_status mr_regex_init(mr_regex *regex, mr_string pattern, bool is_full, mr_error *error)
{
    scanner s = {.pattern = pattern};
    *regex = (mr_regex){0};
    mr_status status = MR_OK;
    if (!scan(&s))
        status = invalid_pattern(pattern, s.reason, s.argument, error);
    else if (s.result.failed)
        status = mr_fail_memory(error, pattern.size_bytes);
    else
        status = compile(pattern, (mr_string){s.result.data, s.result.size_bytes}, is_full, regex, error);
    mr_text_deinit(&s.result);
    return status;
}

mr_status mr_regex_find(const mr_regex *regex, mr_string text, size_t start, bool *found, mr_error *error)
{
    const char *data = text.data ? text.data : "";
    int count = pcre2_match(regex->code, (PCRE2_SPTR)data, text.size_bytes, start, 0, regex->match, regex->context);
    *found = count >= 0;
    if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return MR_OK;
    unsigned char reason[160] = "";
    pcre2_get_error_message(count, reason, sizeof reason);
    bool is_limit = count == PCRE2_ERROR_MATCHLIMIT || count == PCRE2_ERROR_HEAPLIMIT ||
                    count == PCRE2_ERROR_DEPTHLIMIT || count == PCRE2_ERROR_NOMEMORY;
    return mr_fail(error, is_limit ? MR_RESOURCE_EXHAUSTED : MR_INTERNAL, "matching the regular expression: %s",
                   (const char *)reason);
}

mr_status mr_regex_matches_all(const mr_regex *regex, mr_string text, bool *matches, mr_error *error)
{
    const size_t *groups = mr_regex_groups(regex);
    bool found;
    *matches = false;
    MR_TRY(mr_regex_find(regex, text, 0, &found, error));
    /* In malformed text, PCRE2 may match a part that is well-formed. */
    *matches = found && groups[0] == 0 && groups[1] == text.size_bytes;
    return MR_OK;
}
