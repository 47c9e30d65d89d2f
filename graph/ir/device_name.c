/* Device names: "/job:worker/replica:0/task:1/device:GPU:0", where each part is optional; "/gpu:0" is the short form of
 * the last one. The parts of an inner name replace those of the outer name. */
#include "graph/ir/graph.h"

#include <string.h>
#include <strings.h>

enum { PART_JOB, PART_REPLICA, PART_TASK, PART_TYPE, PART_INDEX, PART_COUNT };

typedef struct parts {
    const char *text[PART_COUNT];
    int length[PART_COUNT]; /* 0: not specified */
} parts;

/* "*" means any, which is the same as an omitted part. */
static void set_part(parts *p, int part, const char *text, size_t length)
{
    if (length == 1 && *text == '*') return;
    p->text[part] = text;
    p->length[part] = (int)length;
}

static bool is_number(const char *text, size_t length)
{
    if (length == 1 && *text == '*') return true;
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return length > 0 && length < 10;
}

static bool is_key(const char *text, size_t length, const char *key)
{
    return length == strlen(key) && strncasecmp(text, key, length) == 0;
}

/* One part without its slash: "job:worker", "device:GPU:0", "cpu:0". */
static bool parse_part(parts *p, const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    if (colon == nullptr) return false;
    size_t key_length = (size_t)(colon - text);
    const char *value = colon + 1;
    size_t value_length = length - key_length - 1;
    if (value_length == 0) return false;
    if (is_key(text, key_length, "job")) {
        set_part(p, PART_JOB, value, value_length);
        return memchr(value, ':', value_length) == nullptr;
    }
    if (is_key(text, key_length, "replica") || is_key(text, key_length, "task")) {
        set_part(p, is_key(text, key_length, "task") ? PART_TASK : PART_REPLICA, value, value_length);
        return is_number(value, value_length);
    }
    if (is_key(text, key_length, "device")) {
        const char *second = memchr(value, ':', value_length);
        size_t type_length = second == nullptr ? value_length : (size_t)(second - value);
        if (type_length == 0) return false;
        set_part(p, PART_TYPE, value, type_length);
        if (second == nullptr) return true;
        value_length -= type_length + 1;
        set_part(p, PART_INDEX, second + 1, value_length);
        return is_number(second + 1, value_length);
    }
    if (!is_key(text, key_length, "cpu") && !is_key(text, key_length, "gpu")) return false;
    set_part(p, PART_TYPE, *text == 'c' || *text == 'C' ? "CPU" : "GPU", 3);
    set_part(p, PART_INDEX, value, value_length);
    return is_number(value, value_length);
}

static bool parse_name(parts *p, const char *name)
{
    while (*name != '\0') {
        if (*name != '/') return false;
        name++;
        size_t length = strcspn(name, "/");
        if (length > 256 || !parse_part(p, name, length)) return false;
        name += length;
    }
    return true;
}

const char *mr_device_name_merge(mr_arena *arena, const char *outer, const char *inner, mr_error *error)
{
    static const char *const keys[PART_COUNT] = {"/job:", "/replica:", "/task:", "/device:", ":"};
    parts p = {0};
    if (!parse_name(&p, outer) || !parse_name(&p, inner)) {
        (void)mr_fail(error, MR_INVALID_ARGUMENT,
                      "\"%.200s\" is not a device name such as \"/device:GPU:0\" "
                      "or \"/cpu:0\"",
                      inner);
        return nullptr;
    }
    const char *name = "";
    for (int part = 0; part < PART_COUNT && name != nullptr; part++)
        if (p.length[part] > 0 && (part != PART_INDEX || p.length[PART_TYPE] > 0))
            name = mr_arena_printf(arena, "%s%s%.*s", name, keys[part], p.length[part], p.text[part]);
    if (name == nullptr) (void)mr_fail_memory(error, 64);
    return name;
}
