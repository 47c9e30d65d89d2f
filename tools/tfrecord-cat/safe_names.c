/* See safe_names.h. Names are distinguished by 64 bits of their SHA-256, for which collisions cannot be constructed;
 * only a table of these hashes is kept. */
#include "tfrecord-cat/safe_names.h"

#include "common/sha256.h"
#include "common/text.h"

#include <assert.h>
#include <stdlib.h>

struct given_name {
    uint64_t hash; /* 0: free */
    uint64_t count;
};

/* The length of the UTF-8 character at the start; 0: none. */
static size_t character_length(mr_string bytes)
{
    for (size_t length = 1; length <= 4 && length <= bytes.size_bytes; length++)
        if (text_is_utf8((mr_string){bytes.data, length})) return length;
    return 0;
}

bool safe_name(out *out, mr_string name, size_t max)
{
    size_t begin = out->size;
    for (size_t i = 0, length; i < name.size_bytes; i += length) {
        unsigned char byte = (unsigned char)name.data[i];
        length = character_length((mr_string){name.data + i, name.size_bytes - i});
        bool is_plain = length > 0 && byte >= 0x20 && text_is_readable((mr_string){name.data + i, length}) &&
                        byte != '/' && byte != '\\' && byte != ':' && !(byte == '.' && i == 0);
        if (length == 0) length = 1;
        if (out->size - begin + (is_plain ? length : 3) > max) break;
        if (is_plain) {
            out_bytes(out, name.data + i, length);
        } else {
            char escape[4];
            snprintf(escape, sizeof(escape), "%%%02X", byte);
            out_text(out, escape);
        }
    }
    return out->size > begin;
}

static uint64_t hash_of(mr_string name)
{
    char text[SHA256_TEXT_SIZE];
    sha256_text(name.data, name.size_bytes, text);
    text[16] = '\0';
    return strtoull(text, nullptr, 16) | 1;
}

/* The slot of a hash, or the free slot for it. */
static struct given_name *slot_of(const given_names *names, uint64_t hash)
{
    assert(hash != 0 && names->count < names->capacity);
    size_t at = (size_t)(hash >> 1) & (names->capacity - 1);
    while (names->slots[at].hash && names->slots[at].hash != hash) at = (at + 1) & (names->capacity - 1);
    return &names->slots[at];
}

static bool grow(given_names *names)
{
    given_names grown = {.capacity = names->capacity ? 2 * names->capacity : 256, .count = names->count};
    grown.slots = calloc(grown.capacity, sizeof(struct given_name));
    if (!grown.slots) return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].hash) *slot_of(&grown, names->slots[i].hash) = names->slots[i];
    free(names->slots);
    *names = grown;
    return true;
}

uint64_t given_names_add(given_names *names, mr_string name)
{
    if (2 * (names->count + 1) > names->capacity && !grow(names)) return UINT64_MAX;
    assert(2 * names->count <= names->capacity);
    uint64_t hash = hash_of(name);
    struct given_name *slot = slot_of(names, hash);
    names->count += slot->hash == 0;
    slot->hash = hash;
    return slot->count++;
}

void given_names_deinit(given_names *names)
{
    free(names->slots);
    *names = (given_names){};
}
