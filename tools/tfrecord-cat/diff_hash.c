/* Hashes of records, 128 bits: folded 64-bit products; each half has its own multipliers. */
#include "tfrecord-cat/diff.h"

#include <string.h>

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

hash hash_of(mr_string record)
{
    static constexpr uint64_t A = 0x9e3779b97f4a7c15, B = 0xbf58476d1ce4e5b9, C = 0x94d049bb133111eb,
                              D = 0xd6e8feb86659fd93;
    hash hash = {record.size_bytes ^ A, record.size_bytes ^ C};
    for (size_t at = 0; at < record.size_bytes; at += 16) {
        uint64_t words[2] = {0};
        size_t left = record.size_bytes - at;
        memcpy(words, record.data + at, left < 16 ? left : 16);
        hash.high = fold(words[0] ^ hash.high ^ A, words[1] ^ B);
        hash.low = fold(words[1] ^ hash.low ^ C, (words[0] ^ D) + hash.high);
    }
    hash.high = fold(hash.high ^ C, hash.low ^ B);
    hash.low = fold(hash.low ^ A, hash.high ^ D);
    return hash;
}

bool hash_is_same(hash a, hash b)
{
    return a.high == b.high && a.low == b.low;
}
