/* The default graph of a thread, and names of collections. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <pthread.h>

static const char *message_of(const mr_graph *g)
{
    static mr_error error;
    (void)mr_graph_status(g, &error);
    return error.message;
}

/* ---- The default graph ---- */

TEST(default_graph_is_created_once_and_reset)
{
    mr_error error = {0};
    CHECK_OK(mr_graph_reset_default(&error)); /* there is none yet */
    mr_graph *g = mr_graph_default();
    CHECK(g != nullptr && mr_graph_default() == g);
    (void)mr_constant_float(mr_graph_default(), 1);
    CHECK_EQ(mr_graph_node_count(g), 1);
    CHECK_OK(mr_graph_reset_default(&error));
    CHECK_EQ(mr_graph_node_count(mr_graph_default()), 0);
    mr_graph_free(mr_graph_default());
    CHECK_EQ(mr_graph_node_count(mr_graph_default()), 0);
    CHECK_OK(mr_graph_reset_default(&error));
    CHECK_OK(mr_graph_reset_default(&error));
}

TEST(default_graphs_are_a_stack)
{
    mr_error error = {0};
    mr_graph *own = mr_graph_default(), *a = mr_graph_new(), *b = mr_graph_new();
    mr_graph_push_default(a);
    CHECK(mr_graph_default() == a);
    mr_graph_push_default(b);
    mr_graph_push_default(a); /* again */
    CHECK(mr_graph_default() == a);
    mr_graph_pop_default(a);
    CHECK(mr_graph_default() == b);
    CHECK_STATUS(mr_graph_reset_default(&error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "2 graphs are pushed");
    mr_graph_pop_default(b);
    mr_graph_pop_default(a);
    CHECK(mr_graph_default() == own);
    CHECK_OK(mr_graph_status(a, &error));
    CHECK_OK(mr_graph_status(b, &error));
    mr_graph_free(a);
    mr_graph_free(b);
    CHECK(mr_graph_default() == own);
}

TEST(default_graphs_are_popped_in_order)
{
    mr_graph *a = mr_graph_new(), *b = mr_graph_new(), *c = mr_graph_new();
    mr_graph_pop_default(c);
    CHECK_STATUS(mr_graph_status(c, nullptr), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(message_of(c), "no default graph is pushed");
    mr_graph_push_default(a);
    mr_graph_push_default(b);
    mr_graph_pop_default(a);
    CHECK_STATUS(mr_graph_status(a, nullptr), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(message_of(a), "pushed last first");
    CHECK(mr_graph_default() == b); /* nothing was popped */
    mr_graph_pop_default(b);
    CHECK(mr_graph_default() == a);
    mr_graph_pop_default(nullptr);
    CHECK(mr_graph_default() == a);
    mr_graph_free(a);
    mr_graph_free(b);
    mr_graph_free(c);
}

TEST(default_graphs_that_are_freed_are_popped)
{
    mr_error error = {0};
    mr_graph *a = mr_graph_new(), *b = mr_graph_new();
    mr_graph_push_default(a);
    mr_graph_push_default(b);
    mr_graph_push_default(a);
    mr_graph_free(a);
    CHECK(mr_graph_default() == b);
    mr_graph_pop_default(b);
    CHECK_OK(mr_graph_status(b, &error));
    CHECK_OK(mr_graph_reset_default(&error));
    mr_graph_free(b);
}

/* A graph that could not be created is pushed too, so that push and pop stay paired. */
TEST(default_graph_may_be_null)
{
    mr_graph *own = mr_graph_default();
    mr_graph_push_default(nullptr);
    CHECK(mr_graph_default() == nullptr);
    mr_graph_pop_default(nullptr);
    CHECK(mr_graph_default() == own);
}

TEST(default_graphs_have_a_limit)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new(), *last = mr_graph_new();
    for (int i = 0; i < 64; i++) mr_graph_push_default(g);
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_push_default(last);
    CHECK_STATUS(mr_graph_status(last, nullptr), MR_RESOURCE_EXHAUSTED);
    CHECK_CONTAINS(message_of(last), "64 graphs are pushed already");
    CHECK(mr_graph_default() == g);
    for (int i = 0; i < 64; i++) mr_graph_pop_default(g);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_graph_reset_default(&error));
    mr_graph_free(g);
    mr_graph_free(last);
}

TEST(default_graph_without_memory_is_null)
{
    mr_graph *g = mr_graph_new();
    const long long before = test_allocations();
    if (before < 0) test_skip("allocations are not counted");
    test_fail_allocations(before + 1, 1);
    CHECK(mr_graph_default() == nullptr);
    test_fail_allocations(test_allocations() + 1, 1);
    mr_graph_push_default(g);
    test_fail_allocations(0, 0);
    CHECK_STATUS(mr_graph_status(g, nullptr), MR_RESOURCE_EXHAUSTED);
    CHECK(mr_graph_default() != nullptr);
    mr_graph_free(g);
}

/* ---- Threads ---- */

typedef struct visit {
    mr_graph *shared, *of_caller, *seen;
    bool resets;
} visit;

/* The graphs are freed when the thread ends, which the leak checker of sanitizer builds sees. */
static void *visit_thread(void *context)
{
    visit *v = context;
    v->seen = mr_graph_default();
    (void)mr_constant_float(v->seen, 2);
    CHECK(v->seen != v->of_caller && mr_graph_node_count(v->seen) == 1);
    mr_graph_push_default(v->shared); /* not popped */
    CHECK(mr_graph_default() == v->shared);
    if (!v->resets) return nullptr;
    mr_graph_pop_default(v->shared);
    CHECK(mr_graph_reset_default(nullptr) == MR_OK);
    return nullptr;
}

TEST(default_graph_is_one_of_the_thread)
{
    mr_error error = {0};
    mr_graph *shared = mr_graph_new();
    mr_graph_push_default(shared);
    for (int i = 0; i < 8; i++) {
        visit v = {.shared = shared, .of_caller = mr_graph_default(), .resets = i % 2 == 1};
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, nullptr, visit_thread, &v), 0);
        CHECK_EQ(pthread_join(thread, nullptr), 0);
        CHECK(mr_graph_default() == shared);
    }
    mr_graph_pop_default(shared);
    CHECK_OK(mr_graph_status(shared, &error));
    mr_graph_free(shared);
}

/* ---- Collections ---- */

static const char *keys_of(const mr_graph *g)
{
    static char text[512];
    text[0] = '\0';
    for (int32_t i = 0; i < mr_graph_collection_key_count(g); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", mr_graph_collection_key(g, i));
    return text;
}

TEST(collections_are_listed_and_cleared)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    CHECK_EQ(mr_graph_collection_key_count(g), 0);
    CHECK(mr_graph_collection_key(g, 0) == nullptr && mr_graph_collection_key(g, -1) == nullptr);
    CHECK_EQ(mr_graph_collection_count(g, MR_LOSSES), 0); /* asking does not create it */
    CHECK_EQ(mr_graph_collection_key_count(g), 0);
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2));
    mr_graph_add_to_collection(g, "mine", w.value);
    for (int i = 0; i < 9; i++) mr_graph_add_to_collection(g, MR_LOSSES, w.value);
    CHECK_STR(keys_of(g), "variables trainable_variables mine losses ");
    mr_graph_clear_collection(g, "none");
    mr_graph_clear_collection(g, MR_TRAINABLE_VARIABLES);
    mr_graph_clear_collection(g, MR_TRAINABLE_VARIABLES); /* twice */
    CHECK_STR(keys_of(g), "variables mine losses ");
    CHECK_EQ(mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES), 0);
    CHECK_EQ(mr_graph_collection_count(g, MR_LOSSES), 9);
    mr_graph_clear_collection(g, MR_LOSSES);
    mr_graph_add_to_collection(g, MR_LOSSES, w.ref);
    mr_graph_add_variable_to_collection(g, MR_TRAINABLE_VARIABLES, w);
    CHECK_STR(keys_of(g), "variables mine losses trainable_variables ");
    CHECK_EQ(mr_graph_collection_count(g, MR_LOSSES), 1);
    CHECK_EQ(mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES), 1);
    CHECK(mr_graph_find(g, "w") == w.ref.node); /* nodes remain */
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_finalize(g);
    mr_graph_clear_collection(g, "mine");
    CHECK_STATUS(mr_graph_status(g, nullptr), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(message_of(g), "the graph is finalized");
    CHECK_EQ(mr_graph_collection_count(g, "mine"), 1);
    mr_graph_free(g);
    CHECK_EQ(mr_graph_collection_key_count(nullptr), 0);
}

/* Every order of adding and clearing, against arrays. */
TEST(collections_agree_with_a_model)
{
    mr_graph *g = mr_graph_new();
    mr_output item = mr_constant_float(g, 1);
    int counts[5] = {0};
    uint64_t state = test_seed();
    for (int step = 0; step < 4000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int which = (int)(state >> 33) % 5;
        char name[8];
        snprintf(name, sizeof name, "c%d", which);
        if ((state >> 60) == 0) {
            mr_graph_clear_collection(g, name);
            counts[which] = 0;
        } else {
            mr_graph_add_to_collection(g, name, item);
            counts[which]++;
        }
        int present = 0;
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "c%d", i);
            CHECK_EQ(mr_graph_collection_count(g, name), counts[i]);
            present += counts[i] > 0;
        }
        CHECK_EQ(mr_graph_collection_key_count(g), present);
    }
    mr_graph_free(g);
}

TEST(collections_that_were_imported_are_listed)
{
    mr_error error = {0};
    mr_tensor meta = {0};
    mr_graph *g = mr_graph_new(), *copy = mr_graph_new();
    (void)mr_get_variable(g, "w", MR_SHAPE(2));
    mr_saver *saver = mr_saver_new(g);
    CHECK_OK(mr_graph_export_meta(g, &meta, &error));
    const mr_string bytes = mr_tensor_strings(&meta)[0];
    CHECK_OK(mr_graph_import_meta(copy, bytes.data, bytes.size_bytes, &error));
    const int32_t count = mr_graph_collection_key_count(copy);
    CHECK_EQ(count, mr_graph_collection_key_count(g));
    while (mr_graph_collection_key_count(copy) > 0) mr_graph_clear_collection(copy, mr_graph_collection_key(copy, 0));
    CHECK_OK(mr_graph_status(copy, &error));
    mr_tensor_deinit(&meta);
    CHECK_OK(mr_graph_export_meta(copy, &meta, &error));
    mr_tensor_deinit(&meta);
    mr_saver_free(saver);
    mr_graph_free(g);
    mr_graph_free(copy);
}
