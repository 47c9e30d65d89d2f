/* Flags in files: read in place of --flagfile, and written. */
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/flags.h"
#include "records/io/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of all files of one command line. */
constexpr size_t BYTES_MAX = 1 << 20;
constexpr int DEPTH_MAX = 32;

typedef struct expansion {
    mr_flags *flags;
    const char **items;
    int32_t count, capacity;
    size_t rest_bytes;           /* that may still be read */
    const char *open[DEPTH_MAX]; /* the files that are being read */
    int depth;
} expansion;

static mr_status add(expansion *e, const char *argument, mr_error *error)
{
    const char **slot = mr_flags_push(&e->flags->arena, &e->items, &e->count, &e->capacity, sizeof *slot);
    if (slot == nullptr) return mr_fail_memory(error, sizeof *slot);
    *slot = argument;
    return MR_OK;
}

/* The text after "--flagfile=" or "-flagfile="; "" for --flagfile alone; null: another argument. */
static const char *file_of(const char *argument, bool *is_alone)
{
    static const char name[] = "flagfile";
    if (*argument != '-') return nullptr;
    argument += argument[1] == '-' ? 2 : 1;
    if (strncmp(argument, name, sizeof name - 1) != 0) return nullptr;
    argument += sizeof name - 1;
    *is_alone = *argument == '\0';
    return *is_alone ? argument : *argument == '=' ? argument + 1 : nullptr;
}

static char *stripped(char *text)
{
    static const char space[] = " \t\n\v\f\r";
    size_t length = strlen(text);
    while (length > 0 && strchr(space, text[length - 1]) != nullptr) text[--length] = '\0';
    return text + strspn(text, space);
}

/* "~/" is the home directory. */
static const char *path_of(mr_flags *flags, const char *text)
{
    char *copy = mr_arena_strdup(&flags->arena, text);
    const char *path = copy != nullptr ? stripped(copy) : nullptr, *home = getenv("HOME");
    if (path == nullptr || strncmp(path, "~/", 2) != 0 || home == nullptr) return path;
    return mr_arena_printf(&flags->arena, "%s%s", home, path + 1);
}

static mr_status add_file(expansion *e, const char *name, mr_error *error);

static mr_status add_line(expansion *e, char *line, mr_error *error)
{
    bool is_alone = false;
    const char *file = file_of(line, &is_alone);
    char *text = stripped(line);
    if (*text == '\0' || *line == '#' || strncmp(line, "//", 2) == 0) return MR_OK;
    if (file == nullptr) return add(e, text, error);
    if (is_alone) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: --flagfile without a file", e->open[e->depth - 1]);
    return add_file(e, file, error);
}

static mr_status add_file(expansion *e, const char *name, mr_error *error)
{
    char *bytes = nullptr;
    size_t size_bytes = 0;
    const char *path = path_of(e->flags, name);
    if (path == nullptr) return mr_fail_memory(error, strlen(name));
    if (*path == '\0') return MR_OK;
    for (int i = 0; i < e->depth; i++)
        if (strcmp(e->open[i], path) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "the file of flags %.200s includes itself", path);
    if (e->depth == DEPTH_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%.200s: files of flags include others more than %d levels deep",
                       path, DEPTH_MAX);
    MR_TRY(mr_file_read_all(path, BYTES_MAX, &bytes, &size_bytes, error));
    if (size_bytes > e->rest_bytes) {
        free(bytes);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%.200s: the files of flags have more than %zu bytes in all", path,
                       BYTES_MAX);
    }
    e->rest_bytes -= size_bytes;
    char *text = mr_arena_strndup(&e->flags->arena, bytes, size_bytes);
    free(bytes);
    if (text == nullptr) return mr_fail_memory(error, size_bytes);
    if (strlen(text) != size_bytes)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the file of flags %.200s contains a null byte", path);
    e->open[e->depth++] = path;
    mr_status status = MR_OK;
    for (char *rest = text, *line; status == MR_OK && (line = strsep(&rest, "\n")) != nullptr;)
        status = add_line(e, line, error);
    e->depth--;
    return status;
}

/* Whether the next argument is the value of this one. */
static bool takes_next(const mr_flags *flags, const char *argument)
{
    if (*argument != '-' || strchr(argument, '=') != nullptr) return false;
    const mr_flag *flag = mr_flag_find(flags, argument + strspn(argument, "-"));
    return flag != nullptr && flag->kind != MR_FLAG_BOOL;
}

mr_status mr_flags_expand(mr_flags *flags, mr_names arguments, bool stops_at_first, mr_names *expanded, mr_error *error)
{
    expansion e = {.flags = flags, .rest_bytes = BYTES_MAX};
    int32_t at = 0;
    for (bool is_at_end = false; at < arguments.count && !is_at_end;) {
        bool is_alone = false;
        const char *argument = arguments.items[at++], *file = file_of(argument, &is_alone);
        if (file != nullptr && is_alone && at == arguments.count)
            return mr_fail(error, MR_INVALID_ARGUMENT, "flag %s: no value", argument);
        if (file != nullptr) {
            MR_TRY(add_file(&e, is_alone ? arguments.items[at++] : file, error));
            continue;
        }
        MR_TRY(add(&e, argument, error));
        is_at_end = strcmp(argument, "--") == 0 || (*argument != '-' && stops_at_first);
        if (takes_next(flags, argument) && at < arguments.count && arguments.items[at][0] != '-')
            MR_TRY(add(&e, arguments.items[at++], error));
    }
    while (at < arguments.count) MR_TRY(add(&e, arguments.items[at++], error));
    *expanded = (mr_names){e.items, e.count};
    return MR_OK;
}

/* ---- Writing ---- */

static mr_status append(char **text, size_t *used, const char *part, mr_error *error)
{
    const size_t length = strlen(part);
    char *grown = realloc(*text, *used + length + 1);
    if (grown == nullptr) return mr_fail_memory(error, *used + length);
    memcpy(grown + *used, part, length + 1);
    *text = grown;
    *used += length;
    return MR_OK;
}

static mr_status append_flag(const mr_flag *flag, mr_arena *arena, char **text, size_t *used, mr_error *error)
{
    if (flag->is_special) return MR_OK;
    const bool may_lack = flag->kind == MR_FLAG_STRING || flag->kind == MR_FLAG_ENUM || flag->kind == MR_FLAG_LIST;
    if (!flag->is_multi && may_lack && !mr_flag_is_given(flag)) return MR_OK;
    for (int32_t i = 0; i < mr_flag_value_count(flag); i++) {
        const char *value = mr_flag_value_text(flag, i, arena);
        const bool is_bool = flag->kind == MR_FLAG_BOOL;
        if (value != nullptr && strpbrk(value, "\n\r") != nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "flag --%s: a value with a line break cannot be written to a file of flags", flag->name);
        const char *line = value == nullptr ? nullptr
                           : is_bool        ? mr_arena_printf(arena, "--%s%s\n", *value == 't' ? "" : "no", flag->name)
                                            : mr_arena_printf(arena, "--%s=%s\n", flag->name, value);
        if (line == nullptr) return mr_fail_memory(error, 1);
        MR_TRY(append(text, used, line, error));
    }
    return MR_OK;
}

mr_status mr_flags_into_string(const mr_flags *flags, char **text, mr_error *error)
{
    mr_arena arena = {0};
    size_t used = 0;
    if (text == nullptr) return mr_session_null("mr_flags_into_string: text", error);
    *text = nullptr;
    if (flags == nullptr) return mr_session_null("mr_flags_into_string: flags", error);
    if (flags->error.status != MR_OK) return mr_fail(error, flags->error.status, "%s", flags->error.message);
    mr_status status = append(text, &used, "", error);
    for (int32_t i = 0; i < flags->flag_count && status == MR_OK; i++)
        status = append_flag(flags->flags[i], &arena, text, &used, error);
    mr_arena_deinit(&arena);
    if (status == MR_OK) return MR_OK;
    free(*text);
    *text = nullptr;
    return status;
}

static mr_status append_file(const char *path, const char *text, mr_error *error)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0) return mr_file_fail(error, errno, "open", path);
    mr_status status = MR_OK;
    for (size_t rest = strlen(text); rest > 0 && status == MR_OK;) {
        const ssize_t written = write(descriptor, text, rest);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) status = mr_file_fail(error, errno, "write", path);
        if (written < 0) break;
        text += written;
        rest -= (size_t)written;
    }
    if (close(descriptor) != 0 && status == MR_OK) status = mr_file_fail(error, errno, "write", path);
    return status;
}

mr_status mr_flags_append_to_file(const mr_flags *flags, const char *path, mr_error *error)
{
    char *text = nullptr;
    if (flags == nullptr) return mr_session_null("mr_flags_append_to_file: flags", error);
    if (path == nullptr) return mr_session_null("mr_flags_append_to_file: path", error);
    MR_TRY(mr_flags_into_string(flags, &text, error));
    assert(text != nullptr);
    mr_status status = append_file(path, text, error);
    free(text);
    return status;
}
