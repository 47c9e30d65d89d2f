/* Damage at 10,000 random positions: intact records are returned, nothing hangs, and records and losses add up to the
 * file.
 *
 * Bytes of a file of known records are flipped, removed, inserted and zeroed. A record is intact if all its bytes still
 * exist and are contiguous. Each file is read twice, by the reader and by a scan, one of them with a block size of 4096
 * bytes, so that damage crosses block boundaries. */
#include "tests/records/record_data.h"

#include <sys/mman.h>
#include <unistd.h>

static constexpr int COUNT = 60;
static constexpr int ROUNDS = 10'000;
static constexpr size_t LONGEST = 5000;
static constexpr size_t ROOM = 64 << 10;

typedef struct original {
    size_t begin[61];
    size_t size_bytes;
    unsigned char bytes[ROOM];
} original;

static size_t size_of(int number)
{
    /* Mostly short, some of equal length, one longer than a block. */
    return number == 41 ? LONGEST : number % 3 == 0 ? 100 : record_size(number, 300);
}

static void make_original(original *o)
{
    size_t at = 0;
    for (int i = 0; i < COUNT; i++) {
        size_t size = size_of(i);
        unsigned char *header = o->bytes + at, *data = header + 12;
        CHECK(at + 16 + size <= ROOM);
        o->begin[i] = at;
        for (int j = 0; j < 8; j++) header[j] = (unsigned char)((uint64_t)size >> 8 * j);
        uint32_t crc = mr_crc32c_mask(mr_crc32c(0, header, 8));
        memcpy(header + 8, &crc, 4);
        record_fill(i, data, size);
        crc = mr_crc32c_mask(mr_crc32c(0, data, size));
        memcpy(data + size, &crc, 4);
        at += 16 + size;
    }
    o->begin[COUNT] = o->size_bytes = at;
}

typedef struct damaged {
    unsigned char bytes[ROOM];
    size_t size_bytes;
    size_t from, to; /* range of original bytes that were changed or removed */
    char what[80];
} damaged;

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void damage(const original *o, uint64_t *state, damaged *d)
{
    uint32_t kind = draw(state) % 4;
    size_t at = draw(state) % o->size_bytes, length = 1 + draw(state) % (draw(state) % 2 ? 20 : 700);
    const char *const names[] = {"flip", "cut", "insert", "zero"};
    if (kind == 0) length = 1;
    if (kind != 2 && length > o->size_bytes - at) length = o->size_bytes - at;
    snprintf(d->what, sizeof d->what, "%s of %zu bytes at byte %zu", names[kind], length, at);
    memcpy(d->bytes, o->bytes, o->size_bytes);
    d->size_bytes = o->size_bytes;
    d->from = at;
    d->to = at + length;
    if (kind == 0) {
        d->bytes[at] ^= (unsigned char)(1 << draw(state) % 8);
    } else if (kind == 1) {
        memmove(d->bytes + at, d->bytes + at + length, o->size_bytes - at - length);
        d->size_bytes -= length;
    } else if (kind == 2) {
        memmove(d->bytes + at + length, d->bytes + at, o->size_bytes - at);
        for (size_t i = 0; i < length; i++) d->bytes[at + i] = (unsigned char)draw(state);
        d->size_bytes += length;
        d->to = at;
    } else {
        memset(d->bytes + at, 0, length);
    }
}

/* The result of one way of reading. */
typedef struct found {
    bool came[61];
    int next;
    uint64_t records, lost, good_bytes, lost_bytes;
    uint64_t hash; /* of all numbers, offsets and kinds, in order */
    const original *original;
    uint64_t shift;
    const char *what;
} found;

static void mix(found *f, uint64_t a, uint64_t b, uint64_t c)
{
    f->hash = (f->hash ^ a * 3 ^ b * 5 ^ c * 7) * 1099511628211u;
}

static void take_record(found *f, mr_string record, uint64_t number, uint64_t offset)
{
    /* At its original offset, or moved by the bytes that were removed or inserted before it. */
    const original *o = f->original;
    while (f->next < COUNT && ((offset != o->begin[f->next] && offset != o->begin[f->next] + f->shift) ||
                               record.size_bytes != size_of(f->next) ||
                               memcmp(record.data, o->bytes + o->begin[f->next] + 12, record.size_bytes) != 0))
        f->next++;
    if (f->next == COUNT)
        test_fail(__FILE__, __LINE__, "%s: a record at byte %llu is none of ours", f->what, (unsigned long long)offset);
    CHECK_EQ(number, f->records + f->lost);
    f->came[f->next++] = true;
    f->records++;
    f->good_bytes += 16 + record.size_bytes;
    mix(f, number, offset, 0);
}

static void take_damage(void *context, const mr_record_damage *damage, const mr_error *error)
{
    found *f = context;
    CHECK_EQ(damage->record, f->records + f->lost);
    CHECK(error->status == MR_DATA_LOSS && damage->path != nullptr && damage->kind != MR_DAMAGE_NONE);
    f->lost++;
    f->lost_bytes += damage->size_bytes;
    mix(f, damage->record, damage->offset, (uint64_t)damage->kind);
}

static mr_status take_batch(void *context, const mr_record_batch *batch, mr_error *error)
{
    for (size_t i = 0; i < batch->count; i++)
        take_record(context, batch->records[i], batch->first + i, mr_record_batch_offset(batch, i));
    return MR_OK;
}

static void check_found(const found *f, const damaged *d, const char *way)
{
    const original *o = f->original;
    for (int i = 0; i < COUNT; i++) {
        bool is_whole = o->begin[i + 1] <= d->from || o->begin[i] >= d->to;
        if (is_whole && !f->came[i])
            test_fail(__FILE__, __LINE__, "%s, %s: record %d at byte %zu is whole and did not come", d->what, way, i,
                      o->begin[i]);
    }
    if (f->good_bytes + f->lost_bytes != d->size_bytes)
        test_fail(__FILE__, __LINE__, "%s, %s: %llu bytes of records and %llu lost make not %zu", d->what, way,
                  (unsigned long long)f->good_bytes, (unsigned long long)f->lost_bytes, d->size_bytes);
}

static found read_with_reader(const char *path, const original *o, const damaged *d, int round)
{
    found f = {.original = o, .shift = d->size_bytes - o->size_bytes, .what = d->what};
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    bool stops = round % 7 == 0;
    CHECK_OK(mr_record_reader_open(path,
                                   MR_OPTIONS(mr_record_reader_options,
                                              .damage = stops ? MR_DAMAGE_STOP : MR_DAMAGE_SKIP, .damaged = take_damage,
                                              .context = &f, .buffer_bytes = round % 2 ? 4096 : 0, .buffer_count = 1),
                                   &reader, &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) != MR_OUT_OF_RANGE) {
        if (status == MR_OK)
            take_record(&f, record, mr_record_reader_number(reader), mr_record_reader_offset(reader));
        else
            CHECK(stops && status == MR_DATA_LOSS && f.lost++ < 1000);
    }
    CHECK_EQ(mr_record_reader_lost(reader), f.lost);
    mr_record_reader_close(reader);
    if (stops) f.lost_bytes = d->size_bytes - f.good_bytes;
    check_found(&f, d, "reader");
    return f;
}

static found read_with_scan(const char *path, const original *o, const damaged *d, int round)
{
    found f = {.original = o, .shift = d->size_bytes - o->size_bytes, .what = d->what};
    mr_error error = {0};
    mr_record_totals totals;
    CHECK_OK(mr_record_scan(&path, 1,
                            MR_OPTIONS(mr_record_scan_options, .threads = round % 16 == 0 ? 3 : 1,
                                       .damage = MR_DAMAGE_SKIP, .block_bytes = round % 2 ? 0 : 4096, .context = &f,
                                       .take = take_batch, .damaged = take_damage),
                            &totals, &error));
    check_found(&f, d, "scan");
    CHECK_EQ(totals.records, f.records);
    CHECK_EQ(totals.lost, f.lost);
    CHECK_EQ(totals.lost_bytes, f.lost_bytes);
    return f;
}

TEST(salvage_recovers_complete_records)
{
    static original o;
    static damaged d;
    make_original(&o);
    uint64_t state = test_seed();
    int file = memfd_create("salvage", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (int round = 0; round < ROUNDS; round++) {
        damage(&o, &state, &d);
        CHECK_EQ(pwrite(file, d.bytes, d.size_bytes, 0), d.size_bytes);
        CHECK_EQ(ftruncate(file, (off_t)d.size_bytes), 0);
        found by_reader = read_with_reader(path, &o, &d, round);
        found by_scan = read_with_scan(path, &o, &d, round);
        CHECK_EQ(by_scan.records, by_reader.records);
        CHECK_EQ(by_scan.lost, by_reader.lost);
        if (round % 7 != 0 && by_scan.hash != by_reader.hash)
            test_fail(__FILE__, __LINE__, "%s: reader and scan do not say the same", d.what);
    }
    close(file);
}
