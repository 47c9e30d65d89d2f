/* The watchdog, with notes that change continuously: number and kind belong to the same element, and a source's
 * describe function is called only for elements that exist. */
#include "pipeline/pipeline.h"

#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>

/* A source of 100 elements that counts invalid requests. */
constexpr int64_t ELEMENTS = 100;
static atomic_int described, outside;

static void describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    atomic_fetch_add(&described, 1);
    if (number >= (uint64_t)dataset->count) atomic_fetch_add(&outside, 1);
    snprintf(text, size_bytes, "record %llu", (unsigned long long)number);
}

static const mr_dataset_kind kind = {.name = "counted", .role = MR_ROLE_SOURCE, .describe = describe};
static const mr_dataset source = {.kind = &kind, .count = ELEMENTS};

typedef struct observed {
    atomic_int calls, mixed;
    atomic_bool is_over;
} observed;

/* Here records have odd numbers, batches multiples of 4, and pulled positions all other numbers. */
static void look(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count)
{
    (void)waited_ns;
    observed *o = context;
    for (int32_t i = 0; i < count; i++) {
        if (threads[i].stage == nullptr) continue;
        const char *expected = threads[i].number % 2 == 1 && threads[i].number < (uint64_t)ELEMENTS ? "record "
                               : threads[i].number % 4 == 0                                         ? "batch "
                                                                                                    : "element ";
        bool is_pull = threads[i].number % 4 == 2;
        if (strncmp(threads[i].where, expected, strlen(expected)) != 0 || threads[i].is_waiting != is_pull)
            atomic_fetch_add(&o->mixed, 1);
    }
    atomic_fetch_add(&o->calls, 1);
}

typedef struct writer {
    mr_note note;
    const observed *observed;
} writer;

static void *write_notes(void *argument)
{
    writer *w = argument;
    for (uint64_t i = 0; !atomic_load(&w->observed->is_over); i++) {
        mr_note_element(&w->note, i % 50 * 2 + 1, MR_NOTE_RECORD);
        mr_note_stage(&w->note, "counted");
        mr_note_element(&w->note, i * 4, MR_NOTE_BATCH);
        mr_note_since(&w->note, i);
        mr_note_element(&w->note, ((uint64_t)1 << 40) + i * 4 + 2, MR_NOTE_PULL);
        if (i % 8 == 0) mr_note_stage(&w->note, nullptr);
        /* A row that failed before it was read. */
        mr_note_element(&w->note, ((uint64_t)1 << 50) + i * 4 + 1, MR_NOTE_RECORD);
    }
    return nullptr;
}

TEST(watch_reads_number_and_kind_of_one_element)
{
    constexpr int WRITERS = 3, CALLS = 3000;
    mr_error error = {0};
    observed seen = {0};
    mr_watch *watch = nullptr;
    mr_iterator_options options = {
        .size = sizeof options, .watchdog_ns = 4, .watchdog = look, .watchdog_context = &seen};
    CHECK_OK(mr_watch_new(&options, &watch, &error));
    writer writers[WRITERS];
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.note = {.source = &source, .is_thread = true}, .observed = &seen};
        mr_note_element(&writers[i].note, 1, MR_NOTE_RECORD);
        mr_watch_add(watch, &writers[i].note);
        CHECK_EQ(pthread_create(&threads[i], nullptr, write_notes, &writers[i]), 0);
    }
    mr_watch_wait(watch, mr_now_ns() - 1000);
    while (atomic_load(&seen.calls) < CALLS) {
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, nullptr);
    }
    atomic_store(&seen.is_over, true);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], nullptr);
        mr_watch_remove(watch, &writers[i].note);
    }
    mr_watch_free(watch);
    CHECK(atomic_load(&described) > 0);
    CHECK_EQ(atomic_load(&outside), 0);
    CHECK_EQ(atomic_load(&seen.mixed), 0);
}

/* ---- The list of notes ---- */

/* Adds and removes notes in random order, for more threads than a report lists, while the watchdog reads the list. */
static void *come_and_go(void *argument)
{
    constexpr int NOTES = 300, STEPS = 3000;
    mr_watch *watch = argument;
    mr_note *notes = calloc(NOTES, sizeof *notes);
    bool is_in[NOTES] = {false};
    CHECK(notes != nullptr);
    uint64_t draw = test_seed() * 0x9e3779b97f4a7c15u + (uintptr_t)argument;
    for (int i = 0; i < NOTES; i++) notes[i].is_thread = true;
    for (int step = 0; step < STEPS; step++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        int which = (int)(draw >> 33) % NOTES;
        if (is_in[which])
            mr_watch_remove(watch, &notes[which]);
        else
            mr_watch_add(watch, &notes[which]);
        is_in[which] = !is_in[which];
    }
    for (int i = 0; i < NOTES; i++)
        if (is_in[i]) mr_watch_remove(watch, &notes[i]);
    free(notes);
    return nullptr;
}

TEST(watch_list_changes_while_it_is_read)
{
    constexpr int THREADS = 4;
    mr_error error = {0};
    observed seen = {0};
    mr_watch *watch = nullptr;
    mr_iterator_options options = {
        .size = sizeof options, .watchdog_ns = 4, .watchdog = look, .watchdog_context = &seen};
    CHECK_OK(mr_watch_new(&options, &watch, &error));
    mr_watch_wait(watch, mr_now_ns() - 1000);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, come_and_go, watch), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], nullptr);
    mr_watch_free(watch);
}
