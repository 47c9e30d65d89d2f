/* The file "checkpoint" in a directory: a CheckpointState in protobuf's text format, one field for each line, as
 * TensorFlow's Saver writes and reads it. */
#include "records/checkpoint/checkpoint_part.h"
#include "records/io/file.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t STATE_BYTES_MAX = (size_t)16 << 20;
constexpr int32_t PATHS_MAX = 1 << 20;

/* ---- Read ---- */

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/* One character of a string in text format, after the backslash. */
static char unescape(const char **at)
{
    char letter = *(*at)++;
    switch (letter) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'x': {
        int value = 0;
        for (int i = 0; i < 2 && hex(**at) >= 0; i++) value = value * 16 + hex(*(*at)++);
        return (char)value;
    }
    default:
        break;
    }
    if (letter < '0' || letter > '7') return letter;
    int value = letter - '0';
    for (int i = 0; i < 2 && **at >= '0' && **at <= '7'; i++) value = value * 8 + *(*at)++ - '0';
    return (char)value;
}

/* Parses `field: "text"` and returns the text, joined with the directory; null if the line is something else. Sets *bad
 * if the text is not terminated. */
static const char *path_of(const char *line, const char *field, const char *directory, mr_arena *arena, bool *bad)
{
    size_t length = strlen(field);
    if (strncmp(line, field, length) != 0) return nullptr;
    const char *at = line + length;
    at += strspn(at, " \t");
    if (*at != ':') return nullptr;
    at++;
    at += strspn(at, " \t");
    char quote = *at;
    *bad = true;
    if (quote != '"' && quote != '\'') return nullptr;
    char *text = mr_arena_alloc(arena, strlen(at) + 1);
    size_t size_bytes = 0;
    if (text == nullptr) return nullptr;
    for (at++; *at != '\0' && *at != quote;) {
        char byte = *at++;
        if (byte == '\\' && *at != '\0') byte = unescape(&at);
        if (byte == '\0') return nullptr;
        text[size_bytes++] = byte;
    }
    assert(text + size_bytes <= text + (at - line));
    if (*at != quote || size_bytes == 0) return nullptr;
    const char *path = text[0] == '/' ? text : mr_arena_printf(arena, "%s/%s", directory, text);
    *bad = path == nullptr;
    return path;
}

static mr_status read_lines(char *text, const char *directory, const char *file, mr_checkpoint_state *state,
                            mr_error *error)
{
    int32_t lines = 1, number = 0;
    for (const char *at = text; *at != '\0'; at++) lines += *at == '\n';
    if (lines > PATHS_MAX) return mr_fail(error, MR_DATA_LOSS, "%s/%s: too many lines", directory, file);
    state->paths = MR_ARENA_NEW(&state->arena, const char *, (size_t)lines);
    if (state->paths == nullptr) return mr_fail_memory(error, (size_t)lines * sizeof(char *));
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != nullptr;) {
        bool bad = false;
        number++;
        line += strspn(line, " \t");
        const char *path = path_of(line, "model_checkpoint_path", directory, &state->arena, &bad);
        if (path != nullptr) state->latest = path;
        if (path == nullptr && !bad)
            path = path_of(line, "all_model_checkpoint_paths", directory, &state->arena, &bad);
        else
            path = nullptr;
        assert(state->count < lines && number <= lines);
        if (path != nullptr) state->paths[state->count++] = path;
        if (bad)
            return mr_fail(error, MR_DATA_LOSS, "%s/%s: line %d is not a quoted path: %.100s", directory, file, number,
                           line);
    }
    return MR_OK;
}

mr_status mr_checkpoint_state_read(const char *directory, const char *file, mr_checkpoint_state *state, mr_error *error)
{
    *state = (mr_checkpoint_state){0};
    if (file == nullptr) file = MR_CHECKPOINT_STATE_FILE;
    char *path = mr_arena_printf(&state->arena, "%s/%s", directory, file), *text = nullptr;
    size_t size_bytes = 0;
    mr_status status = path == nullptr ? mr_fail_memory(error, strlen(directory))
                                       : mr_file_read_regular(path, STATE_BYTES_MAX, &text, &size_bytes, error);
    if (status == MR_OK) status = read_lines(text, directory, file, state, error);
    free(text);
    if (status != MR_OK) mr_checkpoint_state_deinit(state);
    return status;
}

void mr_checkpoint_state_deinit(mr_checkpoint_state *state)
{
    mr_arena_deinit(&state->arena);
    *state = (mr_checkpoint_state){0};
}

/* ---- The latest ---- */

bool mr_checkpoint_exists(const char *path)
{
    if (path == nullptr) return false;
    char *index = mr_checkpoint_index_path(path);
    const bool exists = index != nullptr && (mr_file_exists(index) || mr_checkpoint_is_v1(path));
    free(index);
    return exists;
}

bool mr_checkpoint_state_name_is_valid(const char *file)
{
    const size_t name_max = NAME_MAX - strlen(MR_FILE_PARTIAL);
    return *file != '\0' && strlen(file) <= name_max && strchr(file, '/') == nullptr && strcmp(file, ".") != 0 &&
           strcmp(file, "..") != 0;
}

mr_status mr_checkpoint_check_names(const char *function, const char *directory, const char *file, mr_error *error)
{
    if (directory == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: directory is null", function);
    if (file == nullptr || mr_checkpoint_state_name_is_valid(file)) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: latest_filename \"%.200s\" is not the name of a file", function,
                   file);
}

mr_status mr_checkpoint_copy_path(const char *from, char *path, size_t path_size, mr_error *error)
{
    if (strlen(from) >= path_size)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the path %.200s does not fit in %zu bytes", from, path_size);
    memmove(path, from, strlen(from) + 1);
    return MR_OK;
}

static mr_status find_latest(const char *function, const char *directory, const char *file, char *path,
                             size_t path_size, mr_error *error)
{
    mr_checkpoint_state state;
    MR_TRY(mr_checkpoint_check_names(function, directory, file, error));
    if (path == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: path is null", function);
    MR_TRY(mr_checkpoint_state_read(directory, file, &state, error));
    const char *name = file != nullptr ? file : MR_CHECKPOINT_STATE_FILE;
    mr_status status = MR_OK;
    if (state.latest == nullptr)
        status = mr_fail(error, MR_DATA_LOSS, "%s/%s names no checkpoint", directory, name);
    else
        status = mr_checkpoint_copy_path(state.latest, path, path_size, error);
    if (status == MR_OK && !mr_checkpoint_exists(path))
        status = mr_fail(error, MR_DATA_LOSS, "%s.index: named in %s/%s, but does not exist", path, directory, name);
    mr_checkpoint_state_deinit(&state);
    return status;
}

mr_status mr_latest_checkpoint(const char *directory, char *path, size_t path_size, mr_error *error)
{
    return find_latest("mr_latest_checkpoint", directory, nullptr, path, path_size, error);
}

mr_status mr_latest_checkpoint_in(const char *directory, const char *latest_filename, char *path, size_t path_size,
                                  mr_error *error)
{
    return find_latest("mr_latest_checkpoint_in", directory, latest_filename, path, path_size, error);
}

/* ---- Write ---- */

/* The path as it is written in the directory's file: relative if it is inside the directory. */
static const char *relative(const char *directory, const char *path)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') length--;
    if (strncmp(path, directory, length) != 0 || path[length] != '/') return path;
    path += length;
    return path + strspn(path, "/");
}

/* Appends `field: "path"` and a newline. target must have room for four bytes for each byte of the path. */
static char *put_path(char *target, const char *field, const char *path)
{
    target = stpcpy(stpcpy(target, field), ": \"");
    for (; *path != '\0'; path++) {
        unsigned char byte = (unsigned char)*path;
        if (byte >= 0x20 && byte < 0x7f) {
            if (byte == '"' || byte == '\\') *target++ = '\\';
            *target++ = (char)byte;
        } else {
            *target++ = '\\';
            for (int shift = 6; shift >= 0; shift -= 3) *target++ = (char)('0' + (byte >> shift & 7));
        }
    }
    return stpcpy(target, "\"\n");
}

mr_status mr_checkpoint_state_write(const char *directory, const char *file, const char *const *paths, int32_t count,
                                    mr_error *error)
{
    constexpr size_t field_bytes = 64;
    size_t room_bytes = field_bytes;
    for (int32_t i = 0; i < count; i++) room_bytes += 2 * (field_bytes + 4 * strlen(paths[i]));
    char *text = malloc(room_bytes), *path = nullptr, *end = text;
    bool failed =
        text == nullptr || asprintf(&path, "%s/%s", directory, file != nullptr ? file : MR_CHECKPOINT_STATE_FILE) < 0;
    if (failed) {
        free(text);
        return mr_fail_memory(error, room_bytes);
    }
    if (count > 0) end = put_path(end, "model_checkpoint_path", relative(directory, paths[count - 1]));
    for (int32_t i = 0; i < count; i++)
        end = put_path(end, "all_model_checkpoint_paths", relative(directory, paths[i]));
    assert((size_t)(end - text) <= room_bytes);
    mr_status status = mr_file_write_all(path, text, (size_t)(end - text), error);
    free(text);
    free(path);
    return status;
}
