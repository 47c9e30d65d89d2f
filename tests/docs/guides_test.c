/* The shell examples and the names in the guides of docs/. */
#include "tests/docs/guide.h"
#include "tests/tools/program.h"

#include <ctype.h>
#include <glob.h>

constexpr size_t block_size_max = 1 << 14;

typedef struct guide_block {
    char kind[128]; /* the words after ``` */
    int line;       /* of the opening fence, from 1 */
    char text[block_size_max];
} guide_block;

/* Reads the next fenced block; false at the end of the file. */
static bool next_block(FILE *guide, int *line_number, guide_block *block)
{
    char line[1024];
    size_t used = 0;
    bool is_inside = false;
    while (fgets(line, sizeof line, guide)) {
        ++*line_number;
        if (strncmp(line, "```", 3) == 0) {
            if (is_inside) return true;
            is_inside = true;
            block->line = *line_number;
            block->text[0] = '\0';
            snprintf(block->kind, sizeof block->kind, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
        } else if (is_inside) {
            size_t length = strlen(line);
            CHECK(used + length < block_size_max);
            memcpy(block->text + used, line, length + 1);
            used += length;
        }
    }
    CHECK(!is_inside);
    return false;
}

/* Replaces, in place, every run of white space by one space. */
static void squeeze(char *text)
{
    char *end = text;
    for (const char *at = text; *at; at++) {
        bool is_space = isspace((unsigned char)*at);
        if (is_space && (end == text || end[-1] == ' ')) continue;
        *end++ = is_space ? ' ' : *at;
    }
    if (end > text && end[-1] == ' ') end--;
    *end = '\0';
}

/* Whether the parts of expected between "…" appear in output, in order. Otherwise *missing is set to the first missing
 * part. */
static bool output_matches(char *expected, char *output, const char **missing)
{
    constexpr char any[] = "…";
    squeeze(expected);
    squeeze(output);
    while (expected) {
        char *end = strstr(expected, any);
        if (end) *end = '\0';
        squeeze(expected);
        char *found = strstr(output, expected);
        *missing = expected;
        if (!found) return false;
        output = found + strlen(expected);
        expected = end ? end + strlen(any) : nullptr;
    }
    return true;
}

/* Static storage; the last 4 results are valid. */
static const char *repository_path(const char *name)
{
    static char paths[4][1024];
    static unsigned next;
    char *path = paths[next++ % 4];
    const char *root = getenv("MILLRACE_ROOT");
    if (!root) test_skip("MILLRACE_ROOT is not set");
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static bool file_contains(const char *name, const char *part)
{
    static char text[1 << 16];
    FILE *file = fopen(repository_path(name), "r");
    CHECK(file != nullptr);
    size_t size = fread(text, 1, sizeof text - 1, file);
    CHECK(size < sizeof text - 1);
    text[size] = '\0';
    fclose(file);
    return strstr(text, part) != nullptr;
}

void guide_run(const char *name)
{
    static guide_block block;
    static char script[block_size_max], output[sizeof((program_result){}).output];
    const char *missing = nullptr;
    int line = 0, run_count = 0;
    FILE *guide = fopen(repository_path(name), "r");
    CHECK(guide != nullptr);
    while (next_block(guide, &line, &block)) {
        if (strcmp(block.kind, "sh") == 0) {
            memcpy(script, block.text, sizeof script);
            FILE *file = fopen(test_path(".block"), "w");
            CHECK(file && fputs(script, file) >= 0 && fclose(file) == 0);
            const program_result *result = program_run("cd '%s' && sh -eu .block", test_directory());
            memcpy(output, result->output, sizeof output);
            if (result->exit_code != 0)
                test_fail(__FILE__, __LINE__, "%s:%d: exit status %d\n%s-- output:\n%s", name, block.line,
                          result->exit_code, script, output);
            run_count++;
        } else if (strcmp(block.kind, "text") == 0 && !output_matches(block.text, output, &missing)) {
            test_fail(__FILE__, __LINE__, "%s:%d: \"%s\" is missing in the output of\n%s-- output:\n%s", name,
                      block.line, missing, script, output);
        } else if (strncmp(block.kind, "c ", 2) == 0 && !file_contains(block.kind + 2, block.text)) {
            test_fail(__FILE__, __LINE__, "%s:%d: not in %s:\n%s", name, block.line, block.kind + 2, block.text);
        }
    }
    fclose(guide);
    CHECK(run_count > 0);
}

TEST(guide_records_cookbook)
{
    guide_run("docs/records-cookbook.md");
}

TEST(guide_images_to_network)
{
    guide_run("docs/images-to-network.md");
}

TEST(guide_performance)
{
    guide_run("docs/performance.md");
}

/* Appends a file to text; *size is the number of bytes used. */
static void append_file(const char *path, char *text, size_t capacity, size_t *size)
{
    FILE *file = fopen(path, "r");
    CHECK(file != nullptr);
    *size += fread(text + *size, 1, capacity - 1 - *size, file);
    CHECK(*size < capacity - 1);
    text[*size] = '\0';
    fclose(file);
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether name, which is not zero-terminated, occurs in text as a word. */
static bool has_word(const char *text, const char *name, size_t length)
{
    char word[128];
    CHECK(length < sizeof word);
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    for (const char *at = text; (at = strstr(at, word)) != nullptr; at++)
        if (!is_name(at[length]) && (at == text || !is_name(at[-1]))) return true;
    return false;
}

/* Checks that every name in text that starts with mr_ is declared in the headers. */
static void check_names(const char *guide, const char *text, const char *headers)
{
    for (const char *at = text; (at = strstr(at, "mr_")) != nullptr;) {
        size_t length = strlen("mr_");
        while (is_name(at[length])) length++;
        bool is_start = at == text || !is_name(at[-1]);
        if (is_start && !has_word(headers, at, length))
            test_fail(__FILE__, __LINE__, "%s: no header declares %.*s", guide, (int)length, at);
        at += length;
    }
}

TEST(guides_name_what_the_headers_declare)
{
    static const char *const guides[] = {"docs/pipeline.md",          "docs/datasets-cookbook.md",
                                         "docs/coming-from.md",       "docs/tensorflow-graphs.md",
                                         "docs/images-to-network.md", "docs/performance.md"};
    static char headers[4 << 20], text[1 << 18];
    size_t size = 0;
    glob_t found = {0};
    CHECK_EQ(glob(repository_path("include/millrace/*.h"), 0, nullptr, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) append_file(found.gl_pathv[i], headers, sizeof headers, &size);
    globfree(&found);
    append_file(repository_path("generated/millrace/ops.h"), headers, sizeof headers, &size);
    for (size_t i = 0; i < sizeof guides / sizeof *guides; i++) {
        size = 0;
        append_file(repository_path(guides[i]), text, sizeof text, &size);
        check_names(guides[i], text, headers);
    }
}

TEST(reference_describes_every_declaration)
{
    if (getenv("MILLRACE_REFERENCE") == nullptr) test_skip("this build does not make the program for the reference");
    const program_result *result =
        program_run("\"$MILLRACE_REFERENCE\" '%s' '%s'/*.h '%s'", test_path("reference"),
                    repository_path("include/millrace"), repository_path("generated/millrace/ops.h"));
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s", result->output);
    result = program_run("grep -q 'href=\"tensor.html#mr_tensor\"' '%s'", test_path("reference/dataset.html"));
    CHECK_EQ(result->exit_code, 0);
}
