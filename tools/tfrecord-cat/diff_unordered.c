/* --diff --unordered: compares the records of both sides regardless of their order.
 *
 * First each side's records are hashed to 128 bits and the hashes are summed: sides with equal sums and counts are
 * equal. If they are not, hashes are listed, sorted and compared. If they do not fit into memory, this takes several
 * passes over the files, each for one range of hashes. */
#include "tfrecord-cat/diff.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Records with one hash. */
typedef struct listed {
    hash hash;
    int64_t balance;   /* count on side a minus count on side b */
    uint64_t first[2]; /* number of the first record on each side; UINT64_MAX: none */
} listed;

typedef struct sum {
    hash hash;
    uint64_t count;
} sum;

static void add(sum *sum, hash hash)
{
    sum->hash.low += hash.low;
    sum->hash.high += hash.high + (sum->hash.low < hash.low);
    sum->count++;
}

/* ---- Passes ---- */

/* Selects hashes whose upper half is in [first, last]. */
typedef struct listing {
    uint64_t first, last;
    listed *entries; /* null: compute only sums */
    uint64_t count, capacity;
} listing;

static int by_hash(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    if (x->hash.high != y->hash.high) return x->hash.high < y->hash.high ? -1 : 1;
    if (x->hash.low != y->hash.low) return x->hash.low < y->hash.low ? -1 : 1;
    return 0;
}

/* Merges entries with the same hash and optionally drops those with balance 0; sorts by hash. */
static void compact(listing *listing, bool drops_even)
{
    uint64_t kept = 0;
    qsort(listing->entries, listing->count, sizeof(listed), by_hash);
    for (uint64_t i = 0; i < listing->count;) {
        listed entry = listing->entries[i];
        for (i++; i < listing->count && hash_is_same(entry.hash, listing->entries[i].hash); i++) {
            entry.balance += listing->entries[i].balance;
            for (int s = 0; s < 2; s++)
                if (listing->entries[i].first[s] < entry.first[s]) entry.first[s] = listing->entries[i].first[s];
        }
        if (entry.balance != 0 || !drops_even) listing->entries[kept++] = entry;
    }
    assert(kept <= listing->count);
    listing->count = kept;
}

static mr_status list(listing *listing, hash hash, int which, uint64_t number, mr_error *error)
{
    if (hash.high < listing->first || hash.high > listing->last) return MR_OK;
    if (listing->count == listing->capacity) {
        compact(listing, false);
        /* Hashes are spread evenly over the passes, so the list is full only if many records are duplicates. */
        if (listing->count > listing->capacity / 16 * 15)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "too many distinct records; increase --memory");
    }
    listed entry = {.hash = hash, .balance = which == 0 ? 1 : -1, .first = {UINT64_MAX, UINT64_MAX}};
    entry.first[which] = number;
    assert(listing->count < listing->capacity);
    listing->entries[listing->count++] = entry;
    return MR_OK;
}

static mr_status read_side(const side *side, int which, sum *sum, listing *listing, pass *pass, mr_error *error)
{
    side_reader reader = {.side = side};
    mr_string record;
    mr_status status;
    *sum = (struct sum){0};
    while ((status = side_next(&reader, &record, error)) == MR_OK) {
        hash hash = hash_of(record);
        add(sum, hash);
        pass_add(pass, 1);
        if (listing && (status = list(listing, hash, which, reader.number, error)) != MR_OK) break;
    }
    side_deinit(&reader);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* The first records that only one side has, and their number. */
typedef struct lonely {
    uint64_t count, shown, numbers[SHOWN_MAX];
} lonely;

/* Counts records; keeps the smallest numbers in ascending order. */
static void keep(lonely *lonely, uint64_t number, uint64_t count)
{
    uint64_t shown_count = lonely->shown, at = shown_count;
    lonely->count += count;
    while (at > 0 && lonely->numbers[at - 1] > number) at--;
    if (at == SHOWN_MAX) return;
    uint64_t moved = (shown_count < SHOWN_MAX ? shown_count : SHOWN_MAX - 1) - at;
    memmove(&lonely->numbers[at + 1], &lonely->numbers[at], moved * sizeof(uint64_t));
    lonely->numbers[at] = number;
    if (shown_count < SHOWN_MAX) lonely->shown++;
    assert(lonely->shown <= SHOWN_MAX && lonely->shown <= lonely->count);
}

static void compare(listing *listing, lonely only[2])
{
    compact(listing, true);
    for (uint64_t i = 0; i < listing->count; i++) {
        const listed *entry = &listing->entries[i];
        int longer = entry->balance < 0;
        keep(&only[longer], entry->first[longer], (uint64_t)(longer ? -entry->balance : entry->balance));
    }
}

static void print_lonely(const side *side, const lonely *only)
{
    if (only->count == 0) return;
    printf("%" PRIu64 " record%s only in ", only->count, only->count == 1 ? " is" : "s are");
    print_path(stdout, side->name);
    printf(": ");
    for (uint64_t i = 0; i < only->shown; i++) printf("%s%" PRIu64, i > 0 ? ", " : "", only->numbers[i]);
    printf("%s\n", only->count > only->shown ? ", …" : "");
}

/* Lists the records that only one side has. */
static mr_status locate(const side sides[2], const sum sums[2], uint64_t memory_bytes, lonely only[2], mr_error *error)
{
    uint64_t total = sums[0].count + sums[1].count;
    /* A quarter more room than the even share, for random variation. */
    uint64_t room = memory_bytes / sizeof(listed), passes = total / (room - room / 4) + 1;
    listing listing = {.capacity = passes == 1 ? total : room};
    listing.entries = calloc(listing.capacity + 1, sizeof(listed));
    if (!listing.entries) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " hashes", room);
    mr_status status = MR_OK;
    uint64_t share = UINT64_MAX / passes;
    for (uint64_t i = 0; i < passes && status == MR_OK; i++) {
        listing.first = i * share;
        listing.last = i + 1 < passes ? (i + 1) * share - 1 : UINT64_MAX;
        listing.count = 0;
        pass pass;
        pass_begin(&pass, "locate", total);
        for (int s = 0; s < 2 && status == MR_OK; s++) {
            sum again;
            status = read_side(&sides[s], s, &again, &listing, &pass, error);
            if (status == MR_OK && (again.count != sums[s].count || !hash_is_same(again.hash, sums[s].hash)))
                status = mr_fail(error, MR_ABORTED, "the files changed while they were read");
        }
        pass_end(&pass);
        if (status == MR_OK) compare(&listing, only);
    }
    free(listing.entries);
    return status;
}

static bool can_be_read_twice(const side *side)
{
    for (int32_t i = 0; i < side->count; i++) {
        struct stat about;
        if (strcmp(side->paths[i], "-") == 0 || stat(side->paths[i], &about) != 0 || !S_ISREG(about.st_mode))
            return false;
    }
    return true;
}

int diff_unordered(const side *a, const side *b, uint64_t memory_bytes)
{
    side sides[2] = {*a, *b};
    sum sums[2] = {0};
    lonely only[2] = {0};
    mr_error error = {0};
    pass pass;
    pass_begin(&pass, "compare", 0);
    for (int s = 0; s < 2 && error.status == MR_OK; s++)
        (void)read_side(&sides[s], s, &sums[s], nullptr, &pass, &error);
    pass_end(&pass);
    if (error.status != MR_OK) return print_error(&error);
    if (sums[0].count == sums[1].count && hash_is_same(sums[0].hash, sums[1].hash)) {
        printf("the same %" PRIu64 " record%s\n", sums[0].count, sums[0].count == 1 ? "" : "s");
        return 0;
    }
    if (!can_be_read_twice(a) || !can_be_read_twice(b)) {
        printf("the records differ: %" PRIu64 " and %" PRIu64 "; to list them, neither FILE may be a pipe\n",
               sums[0].count, sums[1].count);
        return 1;
    }
    if (locate(sides, sums, memory_bytes, only, &error) != MR_OK) return print_error(&error);
    for (int s = 0; s < 2; s++) print_lonely(&sides[s], &only[s]);
    return 1;
}
