/* Samples of the operators of graph/ops/table.c, and tests of tables in a session. */
#include "records/io/file.h"
#include "tests/ops/sample.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

/* clang-format off */
SAMPLES(
    {"HashTable", "", "key_dtype=int64; value_dtype=string", "cannot be fetched"},
    {"MutableHashTable", "", "key_dtype=int64; value_dtype=float", "cannot be fetched"},
    {"MutableHashTableOfTensors", "", "key_dtype=int64; value_dtype=float; value_shape=[3]", "cannot be fetched"},
    {"MutableDenseHashTable",
     "int64[2]=7,8",
     "value_dtype=float; value_shape=[3]; initial_num_buckets=8",
     "cannot be fetched"},
    {"InitializeTable", "&string[2]; int64[3]=1,2,3; float[3]", "", "is not a table"},
    {"InitializeTableFromTextFile",
     "&string[2]; string[]=$DIR/words",
     "key_index=-2; value_index=-1",
     "is not a table"},
    {"LookupTableFind", "&string[2]; int64[3]=1,2,3; float[]", "", "is not a table"},
    {"LookupTableInsert", "&string[2]; int64[3]=1,2,3; float[3]", "", "is not a table"},
    {"LookupTableSize", "&string[2]", "", "is not a table"},
    {"LookupTableExport", "&string[2]", "Tkeys=int64; Tvalues=float", "is not a table"},
    {"LookupTableImport", "&string[2]; int64[3]=1,2,3; float[3]", "", "is not a table"},
    {"HashTableV2", "", "key_dtype=int64; value_dtype=string"},
    {"MutableHashTableV2", "", "key_dtype=int64; value_dtype=float"},
    {"MutableHashTableOfTensorsV2", "", "key_dtype=int64; value_dtype=float; value_shape=[3]"},
    {"MutableDenseHashTableV2",
     "int64[2]=7,8; int64[2]=9,9",
     "value_dtype=float; value_shape=[3]; initial_num_buckets=8"},
    {"InitializeTableV2", "@float[]; int64[3]=1,2,3; float[3]", "", "is not a table"},
    {"InitializeTableFromTextFileV2",
     "@float[]; string[]=$DIR/words",
     "key_index=-2; value_index=-1",
     "is not a table"},
    {"LookupTableFindV2", "@float[]; int64[3]=1,2,3; float[]", "", "is not a table"},
    {"LookupTableInsertV2", "@float[]; int64[3]=1,2,3; float[3]", "", "is not a table"},
    {"LookupTableRemoveV2", "@float[]; int64[3]=1,2,3", "", "is not a table"},
    {"LookupTableSizeV2", "@float[]", "", "is not a table"},
    {"LookupTableExportV2", "@float[]", "Tkeys=int64; Tvalues=float", "is not a table"},
    {"LookupTableImportV2", "@float[]; int64[3]=1,2,3; float[3]", "", "is not a table"},
    {"AnonymousHashTable", "", "key_dtype=string; value_dtype=int64"},
    {"AnonymousMutableHashTable", "", "key_dtype=string; value_dtype=int64"},
    {"AnonymousMutableHashTableOfTensors", "", "key_dtype=string; value_dtype=int64; value_shape=[3]"},
    {"AnonymousMutableDenseHashTable",
     "int64[]=7; int64[]=8",
     "value_dtype=int64; value_shape=[3]; initial_num_buckets=8"})
/* clang-format on */

/* ---- Tables in a session ---- */

typedef struct fixture {
    mr_graph *graph;
    mr_session *session;
} fixture;

static mr_output strings_of(mr_graph *g, const char *first, const char *second)
{
    mr_error error = {0};
    mr_tensor value = {0};
    mr_string words[2] = {mr_string_from(first), mr_string_from(second)};
    CHECK_OK(mr_tensor_init_strings(&value, MR_SHAPE(2), words, &error));
    mr_output output = mr_constant(g, &value, nullptr);
    mr_tensor_deinit(&value);
    return output;
}

static mr_output int64s_of(mr_graph *g, int64_t first, int64_t second)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_copy(&value, MR_INT64, MR_SHAPE(2), (int64_t[]){first, second}, &error));
    mr_output output = mr_constant(g, &value, nullptr);
    mr_tensor_deinit(&value);
    return output;
}

static mr_output make_table(mr_graph *g, const char *op, mr_dtype key, mr_dtype value)
{
    mr_node_builder b = mr_node_begin(g, op, nullptr);
    mr_node_set_dtype(&b, "key_dtype", key);
    mr_node_set_dtype(&b, "value_dtype", value);
    return mr_node_finish(&b);
}

static mr_node *with_inputs(mr_graph *g, const char *op, mr_output table, mr_output a, mr_output b)
{
    mr_node_builder builder = mr_node_begin(g, op, nullptr);
    mr_node_add_input(&builder, table);
    if (a.node) mr_node_add_input(&builder, a);
    if (b.node) mr_node_add_input(&builder, b);
    return mr_node_finish(&builder).node;
}

static mr_status run(fixture *f, mr_node *node, mr_tensor *results, int32_t count, mr_error *error)
{
    mr_output fetches[2] = {{node, 0}, {node, 1}};
    if (!f->session && mr_session_new(f->graph, nullptr, &f->session, error) != MR_OK)
        test_fail(__FILE__, __LINE__, "%s", error->message);
    return mr_session_run(f->session, MR_NO_FEEDS, (mr_outputs){fetches, count}, results, &node, 1, error);
}

static void close_fixture(fixture *f)
{
    mr_session_free(f->session);
    mr_graph_free(f->graph);
}

/* The old forms with a reference, and the new ones with a resource. */
static void check_hash_table(const char *suffix)
{
    char names[4][32];
    static const char *const ops[] = {"HashTable", "InitializeTable", "LookupTableFind", "LookupTableSize"};
    for (int i = 0; i < 4; i++) snprintf(names[i], sizeof names[i], "%s%s", ops[i], suffix);
    mr_error error = {0};
    mr_tensor result = {0};
    fixture f = {.graph = mr_graph_new()};
    mr_output table = make_table(f.graph, names[0], MR_STRING, MR_INT64);
    mr_node *fill = with_inputs(f.graph, names[1], table, strings_of(f.graph, "a", "b"), int64s_of(f.graph, 10, 20));
    mr_node *other = with_inputs(f.graph, names[1], table, strings_of(f.graph, "a", "a"), int64s_of(f.graph, 1, 2));
    mr_node *find =
        with_inputs(f.graph, names[2], table, strings_of(f.graph, "b", "c"), mr_constant_int64(f.graph, -1));
    mr_node *size = with_inputs(f.graph, names[3], table, (mr_output){0}, (mr_output){0});
    CHECK_EQ(run(&f, find, &result, 1, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "Table not initialized.");
    CHECK_EQ(run(&f, other, nullptr, 0, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "HashTable has different value for same key. Key a has 1 and trying to add value 2");
    mr_session_free(f.session);
    f.session = nullptr;
    CHECK_OK(run(&f, fill, nullptr, 0, &error));
    CHECK_OK(run(&f, fill, nullptr, 0, &error));
    CHECK_OK(run(&f, find, &result, 1, &error));
    CHECK_EQ(mr_tensor_int64s(&result)[0], 20);
    CHECK_EQ(mr_tensor_int64s(&result)[1], -1);
    mr_tensor_deinit(&result);
    CHECK_OK(run(&f, size, &result, 1, &error));
    CHECK_EQ(mr_tensor_int64s(&result)[0], 2);
    mr_tensor_deinit(&result);
    close_fixture(&f);
}

TEST(ops_hash_table_is_filled_once)
{
    check_hash_table("");
    check_hash_table("V2");
}

TEST(ops_mutable_table_keeps_the_order_of_insertion)
{
    mr_error error = {0};
    mr_tensor results[2] = {0};
    fixture f = {.graph = mr_graph_new()};
    mr_output table = make_table(f.graph, "MutableHashTableV2", MR_INT64, MR_STRING);
    mr_output fed = mr_placeholder(f.graph, MR_INT64, .shape = MR_SHAPE(-1));
    mr_output texts = mr_placeholder(f.graph, MR_STRING, .shape = MR_SHAPE(-1));
    mr_node *insert = with_inputs(f.graph, "LookupTableInsertV2", table, fed, texts);
    mr_node *drop = with_inputs(f.graph, "LookupTableRemoveV2", table, fed, (mr_output){0});
    mr_node_builder b = mr_node_begin(f.graph, "LookupTableExportV2", nullptr);
    mr_node_add_input(&b, table);
    mr_node_set_dtype(&b, "Tkeys", MR_INT64);
    mr_node_set_dtype(&b, "Tvalues", MR_STRING);
    mr_node *export = mr_node_finish(&b).node;
    CHECK_OK(mr_session_new(f.graph, nullptr, &f.session, &error));
    for (int64_t i = 0; i < 1000; i++) {
        char text[32];
        mr_tensor key = {0}, value = {0};
        snprintf(text, sizeof text, "value %d", (int)i);
        mr_string word = mr_string_from(text);
        CHECK_OK(mr_tensor_init_copy(&key, MR_INT64, MR_SHAPE(1), (int64_t[]){i * 7919 % 1000}, &error));
        CHECK_OK(mr_tensor_init_strings(&value, MR_SHAPE(1), &word, &error));
        mr_feed feeds[2] = {{fed, key}, {texts, value}};
        CHECK_OK(mr_session_run(f.session, (mr_feeds){feeds, 2}, (mr_outputs){0}, nullptr, &insert, 1, &error));
        if (i % 2 == 0)
            CHECK_OK(mr_session_run(f.session, (mr_feeds){feeds, 1}, (mr_outputs){0}, nullptr, &drop, 1, &error));
        mr_tensor_deinit(&key);
        mr_tensor_deinit(&value);
    }
    CHECK_OK(run(&f, export, results, 2, &error));
    CHECK_EQ(mr_tensor_count(&results[0]), 500);
    for (int64_t i = 0; i < 500; i++) {
        char text[32];
        snprintf(text, sizeof text, "value %d", (int)(2 * i + 1));
        CHECK_EQ(mr_tensor_int64s(&results[0])[i], (2 * i + 1) * 7919 % 1000);
        CHECK(mr_string_equal(mr_tensor_strings(&results[1])[i], mr_string_from(text)));
    }
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
    close_fixture(&f);
}

TEST(ops_table_from_a_text_file)
{
    mr_error error = {0};
    mr_tensor result = {0};
    const char *path = test_path("words");
    CHECK_OK(mr_file_write_no_sync(path, "a\t5\r\nb\t-7\n", 10, &error));
    fixture f = {.graph = mr_graph_new()};
    mr_output table = make_table(f.graph, "HashTable", MR_STRING, MR_INT64);
    mr_node_builder b = mr_node_begin(f.graph, "InitializeTableFromTextFile", nullptr);
    mr_node_add_input(&b, table);
    mr_node_add_input(&b, mr_constant_string(f.graph, path));
    mr_node_set_int(&b, "key_index", 0);
    mr_node_set_int(&b, "value_index", 1);
    mr_node *fill = mr_node_finish(&b).node;
    mr_node *find =
        with_inputs(f.graph, "LookupTableFind", table, strings_of(f.graph, "b", "a"), mr_constant_int64(f.graph, 0));
    CHECK_OK(run(&f, fill, nullptr, 0, &error));
    CHECK_OK(run(&f, find, &result, 1, &error));
    CHECK_EQ(mr_tensor_int64s(&result)[0], -7);
    CHECK_EQ(mr_tensor_int64s(&result)[1], 5);
    mr_tensor_deinit(&result);
    close_fixture(&f);
}

TEST(ops_dense_table_has_vectors_as_keys)
{
    mr_error error = {0};
    mr_tensor result = {0}, key = {0}, value = {0};
    fixture f = {.graph = mr_graph_new()};
    CHECK_OK(mr_tensor_init_copy(&key, MR_INT64, MR_SHAPE(2, 2), (int64_t[]){1, 2, 3, 4}, &error));
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(2), (float[]){0.5f, 1.5f}, &error));
    mr_node_builder b = mr_node_begin(f.graph, "MutableDenseHashTableV2", nullptr);
    mr_node_add_input(&b, int64s_of(f.graph, 0, 0));
    mr_node_add_input(&b, int64s_of(f.graph, 0, 1));
    mr_node_set_dtype(&b, "value_dtype", MR_FLOAT);
    mr_output table = mr_node_finish(&b);
    mr_output keys = mr_constant(f.graph, &key, nullptr);
    mr_node *insert = with_inputs(f.graph, "LookupTableInsertV2", table, keys, mr_constant(f.graph, &value, nullptr));
    mr_node *find = with_inputs(f.graph, "LookupTableFindV2", table, keys, mr_constant_float(f.graph, -1));
    mr_tensor_deinit(&key);
    CHECK_OK(mr_tensor_init_copy(&key, MR_INT64, MR_SHAPE(2, 2), (int64_t[]){1, 2, 0, 0}, &error));
    mr_node *empty = with_inputs(f.graph, "LookupTableFindV2", table, mr_constant(f.graph, &key, nullptr),
                                 mr_constant_float(f.graph, -1));
    CHECK_OK(run(&f, insert, nullptr, 0, &error));
    CHECK_OK(run(&f, find, &result, 1, &error));
    CHECK(mr_tensor_floats(&result)[1] == 1.5f);
    mr_tensor_deinit(&result);
    CHECK_EQ(run(&f, empty, &result, 1, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "Using the empty_key as a table key is not allowed");
    mr_tensor_deinit(&key);
    mr_tensor_deinit(&value);
    close_fixture(&f);
}
