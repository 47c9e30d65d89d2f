/* graph-run with files of all kinds; feeds, results, checkpoints, events and times in files. */
#include "tests/tools/graph_run_graphs.h"

static void save_text(const char *name, const char *text)
{
    file_save(test_path("%s", name), text, strlen(text));
}

#define ATTR(key, value) "attr { key: \"" key "\" value { " value " } } "
#define NODE(name, op, rest) "node { name: \"" name "\" op: \"" op "\" " rest "}\n"
#define TEXT_CONST(name, count, values)                                                                                \
    NODE(name, "Const",                                                                                                \
         ATTR("dtype", "type: DT_STRING")                                                                              \
             ATTR("value", "tensor { dtype: DT_STRING tensor_shape { " count " } " values " }"))

/* A placeholder from a producer before 21, whose shape {} means that it is unknown, doubled. */
static const char doubled[] = "# a graph\n" NODE("x", "Placeholder",
                                                 ATTR("dtype", "type: DT_FLOAT") ATTR("shape", "shape { }"))
    NODE("two", "Const",
         ATTR("dtype", "type: DT_FLOAT") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2.0 }"))
        NODE("y", "Mul", "input: \"x\" input: \"two\" " ATTR("T", "type: DT_FLOAT")) "versions { producer: 17 }\n";

TEST(graph_run_reads_text_graphs_of_old_producers)
{
    save_text("old.pbtxt", doubled);
    CHECK_CONTAINS(graph_run("old.pbtxt --feed 'x=[1, 2]' --fetch y", 0), "y float[2] [2, 4]");
    const char *list = graph_run("old.pbtxt --list", 0);
    CHECK_CONTAINS(list, "format: GraphDef in text format\nfeeds: 1\n  x float");
    save_text("bad.pbtxt", "node { name: \"x\"\n  ops: \"NoOp\" }");
    CHECK_CONTAINS(graph_run("bad.pbtxt --list", 1), "bad.pbtxt: line 2, column 3: NodeDef has no field ops");
    save_text("bad.pbtxt", "node { name: \"x\" op: \"NoOp\"");
    CHECK_CONTAINS(graph_run("bad.pbtxt --list", 1), "NodeDef does not end");
    save_text("bad.pbtxt", "node { name: \"x op: }");
    CHECK_CONTAINS(graph_run("bad.pbtxt --list", 1), "a string without closing quote");
    save_text("bad.pbtxt", "versions { producer: 99999999999 }");
    CHECK_CONTAINS(graph_run("bad.pbtxt --list", 1), "producer: 99999999999 is out of range");
}

TEST(graph_run_runs_saved_models)
{
    char text[4096];
    snprintf(text, sizeof text,
             "saved_model_schema_version: 1\nmeta_graphs { meta_info_def { tags: \"serve\" } graph_def {\n%s}\n"
             "signature_def { key: \"serving_default\" value { inputs { key: \"a\" value { name: \"x:0\" "
             "dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } } outputs { key: \"b\" value { name: \"y:0\" "
             "dtype: DT_FLOAT } } method_name: \"predict\" } } }\n"
             "meta_graphs { meta_info_def { tags: \"serve\" tags: \"gpu\" } graph_def {\n%s} }\n",
             strchr(doubled, '\n') + 1, strchr(doubled, '\n') + 1);
    CHECK_EQ(program_run("mkdir %s", test_path("saved"))->exit_code, 0);
    save_text("saved/saved_model.pbtxt", text);
    CHECK_CONTAINS(graph_run("saved --feed x=3 --fetch y:0", 0), "y:0 float[] 6");
    CHECK_CONTAINS(graph_run("saved --tags gpu,serve --feed x=3 --fetch y", 0), "6");
    CHECK_CONTAINS(graph_run("saved --tags none --list", 1), "no graph with the tags none; it has: serve; serve,gpu");
    CHECK_CONTAINS(graph_run("saved/saved_model.pbtxt --list", 0),
                   "signatures: 1\n  serving_default (predict)\n    input a = x:0 float[?]\n    output b = y:0 float");
    CHECK_CONTAINS(graph_run("saved", 0), "graph-run saved \\\n      --feed x=@x.npy \\\n      --fetch y:0");
}

TEST(graph_run_explains_a_graph)
{
    graph_run_make_model();
    const char *text = graph_run("model.meta", 0);
    CHECK_CONTAINS(text, "model.meta: MetaGraphDef");
    CHECK_CONTAINS(text, "initializers: init");
    CHECK_CONTAINS(text, "what to try next");
    CHECK_CONTAINS(graph_run("run/m-2.meta", 0), "--restore run/m-2");
    static const char *const others[] = {"run", "run/", "run/m-2", "run/m-2.index", "run/checkpoint"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_CONTAINS(graph_run(others[i], 1), "(the graph of this checkpoint is in run/m-2.meta)\n");
    CHECK_CONTAINS(graph_run("run/m-3", 1), "no such file or directory\n");
}

/* A product that takes many seconds: the program does not wait for it. */
TEST(graph_run_ends_in_the_middle_of_an_operator)
{
    save_text("long.pbtxt",
              NODE("n", "Placeholder", ATTR("dtype", "type: DT_INT32") ATTR("shape", "shape { dim { size: 2 } }"))
                  NODE("zero", "Const",
                       ATTR("dtype", "type: DT_FLOAT")
                           ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 }"))
                      NODE("x", "Fill", "input: \"n\" input: \"zero\" " ATTR("T", "type: DT_FLOAT"))
                          NODE("y", "MatMul", "input: \"x\" input: \"x\" " ATTR("T", "type: DT_FLOAT"))
                              NODE("shape", "Shape", "input: \"y\" " ATTR("T", "type: DT_FLOAT")));
    const char *text = graph_run("long.pbtxt --feed n=[12000,12000] --fetch shape --timeout 3 --threads 1", 1);
    if (strstr(text,
               "graph-run: not finished after 3 s (--timeout 3)\n")) /* a busy machine was still at the first one */
        text = graph_run("long.pbtxt --feed n=[12000,12000] --fetch shape --timeout 12 --threads 1", 1);
    CHECK_CONTAINS(text, " s (--timeout ");
    CHECK_CONTAINS(text, "), in the middle of an operator, after 0 ");
}

TEST(graph_run_feeds_and_writes_npz)
{
    graph_run_make_model();
    graph_run("model.meta --restore run --feed x=[1,2] --fetch x --fetch string --feed string=[\\\"a\\\",\\\"bcd\\\"] "
              "--out one.npz",
              0);
    CHECK_CONTAINS(graph_run("model.meta --restore run --feeds one.npz --fetch y --fetch string_out", 0),
                   "y float[2] [5, 7]\nstring_out string[2] [\"a\", \"bcd\"]");
    graph_run("model.meta --restore run --feed x=[1,2] --target train --fetch w --fetch x --steps 3 --out w.npz", 0);
    CHECK_CONTAINS(graph_run("model.meta --restore run --feeds w.npz --fetch y", 0), "3 y float[2] ");
    CHECK_CONTAINS(graph_run("model.meta --restore run --feeds w.npz --fetch y --steps 4", 1),
                   "has no value for step 4");
    CHECK(!strstr(graph_run("model.meta --restore run --feeds w.npz --fetch y --steps 4", 1), "1 y"));
    CHECK_CONTAINS(graph_run("model.meta --restore run --feeds w.npz --feed x=[1,2] --fetch y", 1), "x is fed twice");
    CHECK_CONTAINS(graph_run("model.pb --feeds model.pb --fetch y", 1), "model.pb");
}

/* Replaces a name in a .npz by one of the same length, which makes names that no single graph has. */
static void rename_array(const char *file, const char *before, const char *after)
{
    CHECK_EQ(strlen(before), strlen(after));
    CHECK_EQ(program_run("cd %s && sed -i 's/%s/%s/g' %s", test_directory(), before, after, file)->exit_code, 0);
}

TEST(graph_run_names_an_output_with_and_without_its_number)
{
    graph_run_make_model();
    graph_run("model.meta --feed x=[1,2] --feed float=[5,6] --fetch x --fetch float --out a.npz", 0);
    rename_array("a.npz", "float", "x:0@2");
    CHECK_CONTAINS(graph_run("model.meta --restore run --feeds a.npz --fetch y", 0),
                   "1 y float[2] [5, 7]\n2 y float[2] [13, 15]");
    graph_run("model.meta --feed x=[1,2] --fetch x --fetch x:0 --out b.npz", 0);
    CHECK_CONTAINS(graph_run("model.meta --restore run --feeds b.npz --fetch y", 1), "b.npz: x is fed twice\n");
}

/* The dtypes that NumPy gives to Python's numbers are fed to others, if every element fits. */
TEST(graph_run_converts_arrays)
{
    static const struct {
        const char *from, *value, *to, *part;
        int exit_code;
    } cases[] = {
        {"int64", "[1,-2]", "float", "float_out float[2] [1, -2]", 0},
        {"int64", "[1,-2]", "int32", "[1, -2]", 0},
        {"int64", "[1,-2]", "half", "[1, -2]", 0},
        {"int64", "[-128,127]", "int8", "[-128, 127]", 0},
        {"int64", "[0,1]", "bool", "[false, true]", 0},
        {"uint64", "[18446744073709551615]", "double", "1.8446744073709552e+19", 0},
        {"double", "[0.1,nan]", "float", "[0.100000001, nan]", 0},
        {"double", "[0.5,-inf]", "bfloat16", "[0.5, -inf]", 0},
        {"int64", "[1,128]", "int8", "int64.npy: element 1, 128, is out of range for int8", 1},
        {"int64", "-1", "uint64", "element 0, -1, is out of range for uint64", 1},
        {"int64", "-129", "int8", "element 0, -129, is out of range", 1},
        {"uint64", "[18446744073709551615]", "int64", "element 0, 18446744073709551615, is out of range", 1},
        {"int64", "2", "bool", "element 0, 2, is out of range for bool", 1},
        {"double", "1e300", "float", "element 0, 1e+300, is too large for float", 1},
        {"int64", "70000", "half", "element 0, 70000, is out of range for half", 1},
        {"double", "1", "int32", "dtype double; int32 is required", 1},
        {"bool", "1", "float", "dtype bool; float is required", 1},
    };
    graph_run_make_model();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "model.pb --feed %s=%s --fetch %s --write .", cases[i].from,
                 cases[i].value, cases[i].from);
        graph_run(arguments, 0);
        snprintf(arguments, sizeof arguments, "model.pb --feed %s=@%s.npy --fetch %s_out", cases[i].to, cases[i].from,
                 cases[i].to);
        CHECK_CONTAINS(graph_run(arguments, cases[i].exit_code), cases[i].part);
    }
    graph_run("model.pb --feed int64=[3,4] --fetch int64 --out a.npz", 0);
    rename_array("a.npz", "int64", "float");
    CHECK_CONTAINS(graph_run("model.pb --feeds a.npz --fetch float_out", 0), "float[2] [3, 4]");
}

/* Commands can be pasted: names are quoted, and lines fit the terminal. */
TEST(graph_run_suggests_commands_that_a_shell_reads)
{
    static const char *const names[] = {"-dash",       "a b.meta",     "it's.meta",   "n\nl\\.meta",
                                        "\303\251 $x", "\377'\033[m1", "\342\200\256"};
    graph_run_make_model();
    size_t size_bytes;
    unsigned char *bytes = file_load(test_path("model.meta"), &size_bytes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        file_save(test_path("%s", names[i]), bytes, size_bytes);
        save_text("name", names[i]);
        const program_result *result = program_run(
            "cd %s && graph-run -- \"$(cat name)\" | grep -e ' --list$' > command && bash ./command", test_directory());
        if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s: %s", names[i], result->output);
        CHECK_CONTAINS(result->output, "format: MetaGraphDef");
    }
    free(bytes);
    const char *text = program_run("cd %s && COLUMNS=50 graph-run run/m-2.meta", test_directory())->output;
    CHECK_CONTAINS(text, "    graph-run run/m-2.meta --restore run/m-2 \\\n      --feed x=@x.npy \\\n      --fetch y");
    text = program_run("cd %s && COLUMNS=40 graph-run run/m-2.meta", test_directory())->output;
    CHECK_CONTAINS(text, "    graph-run run/m-2.meta \\\n      --restore run/m-2 \\\n      --feed x=@x.npy");
}

/* A checkpoint has the variables, but not the iterator; the collection names the loss. */
TEST(graph_run_suggests_what_a_checkpoint_lacks)
{
#define ATTRS_ELEMENTS ATTR("output_types", "list { type: DT_FLOAT }") ATTR("output_shapes", "list { shape { } }")
    static const char graph[] = "graph_def {\n" NODE(
        "values", "Const",
        ATTR("dtype", "type: DT_FLOAT")
            ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 2 }"))
        NODE("data", "TensorSliceDataset",
             "input: \"values\" " ATTR("Toutput_types", "list { type: DT_FLOAT }")
                 ATTR("output_shapes", "list { shape { } }"))
            NODE("iterator", "IteratorV2", ATTRS_ELEMENTS ATTR("shared_name", "s: \"\"") ATTR("container", "s: \"\""))
                NODE("make", "MakeIterator", "input: \"data\" input: \"iterator\" ")
                    NODE("next", "IteratorGetNext", "input: \"iterator\" " ATTRS_ELEMENTS)
                        NODE("error", "Square", "input: \"next\" " ATTR("T", "type: DT_FLOAT"))
                            NODE("value", "Square", "input: \"next\" " ATTR("T", "type: DT_FLOAT"))
                                NODE("nothing", "NoOp", "")
                                    NODE("checked", "NoOp",
                                         "input: \"^nothing\" ") "}\ncollection_def { key: \"losses\" value { "
                                                                 "node_list { value: \"value:0\" } } }\n";
    save_text("it.pbtxt", graph);
    const char *text = graph_run("it.pbtxt", 0);
    CHECK_CONTAINS(text, "initializers: make\n");
    CHECK_CONTAINS(text, "losses: value, error\n");
    CHECK_CONTAINS(graph_run("it.pbtxt --fetch next", 1), "has not been initialized");
    CHECK_CONTAINS(graph_run("it.pbtxt --fetch next", 1), " (--first make)\n");
    CHECK_CONTAINS(graph_run("it.pbtxt --first make --fetch next --profile --steps 9", 0), "IteratorGetNext");
    graph_run_make_model();
    CHECK(!strstr(graph_run("run/m-2.meta", 0), "--first"));
    CHECK_CONTAINS(graph_run("model.pb --fetch w/read", 1), " (--first init, or --restore a checkpoint)\n");
}

TEST(graph_run_saves_what_it_trained)
{
    graph_run_make_model();
    graph_run("model.meta --restore run --target train --steps 5 --save new/m", 0);
    CHECK_CONTAINS(graph_run("new/m.meta --restore new --fetch w", 0), "[8, 8]");
    graph_run("model.pb --first init --target train --save by-name/m", 0);
    CHECK_CONTAINS(graph_run("model.pb --restore by-name --fetch w", 0), "[2, 2]");
    CHECK_CONTAINS(graph_run("model.meta --save a/m", 1), "w");
    CHECK_CONTAINS(graph_run("model.meta --restore run --fetch w --save model.pb/m", 1), "model.pb");
}

TEST(graph_run_writes_events_and_times)
{
    graph_run_make_model();
    graph_run("model.meta --restore run --feed x=[1,2] --fetch y --fetch w --logdir logs --trace t.json --steps 2", 0);
    CHECK_CONTAINS(program_run("ls %s", test_path("logs"))->output, "events.out.tfevents.");
    CHECK_CONTAINS(program_run("cat %s", test_path("t.json"))->output, "\"traceEvents\": [\n{\"ph\": \"M\"");
    CHECK_CONTAINS(program_run("cat %s", test_path("t.json"))->output, "\"args\": {\"name\": \"y\", \"op\": \"");
    CHECK_CONTAINS(graph_run("model.meta --restore run --fetch w --trace /nowhere/t.json", 1), "/nowhere/t.json");
    CHECK_CONTAINS(graph_run("model.meta --restore run --fetch w --out /dev/full", 1), "full");
}

TEST(graph_run_prints_views_of_the_last_step)
{
    static const char command[] = "model.meta --restore run --feed x=[1,2] --fetch y --steps 3 --profile";
    char arguments[256];
    graph_run_make_model();
    static const struct {
        const char *option, *title, *line;
    } cases[] = {
        {"", " calls, ", " ms  "},
        {"=op", "node name | requested bytes | total execution time | ", "\nAdd "},
        {"=scope", "node name | # float_ops | requested bytes | ", "\n  y (2/2 flops, 8B/8B, "},
        {"=graph", "node name | # float_ops | requested bytes | ", "\n  y (2/4 flops, 8B/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(arguments, sizeof arguments, "%s%s --no-optimization", command, cases[i].option);
        const char *text = graph_run(arguments, 0);
        CHECK_CONTAINS(text, "3 y float[2] [");
        CHECK_CONTAINS(text, cases[i].title);
        CHECK_CONTAINS(text, cases[i].line);
    }
    CHECK_CONTAINS(graph_run("model.meta --restore run --target train --profile=scope -p --trace t.json", 0),
                   "\n  AssignAdd (2/2 flops, ");
}

/* The operators of V1 checkpoints write and read; a read-only session writes nothing. */
TEST(graph_run_can_forbid_writing)
{
    static const char graph[] = TEXT_CONST("path", "", "string_val: \"v1\"")
        TEXT_CONST("names", "dim { size: 1 }", "string_val: \"w\"") TEXT_CONST("name", "", "string_val: \"w\"") NODE(
            "w", "Const",
            ATTR("dtype", "type: DT_INT64")
                ATTR("value", "tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: [3, -4] }"))
            NODE("save", "Save", "input: \"path\" input: \"names\" input: \"w\" " ATTR("T", "list { type: DT_INT64 }"))
                NODE("restored", "Restore", "input: \"path\" input: \"name\" " ATTR("dt", "type: DT_INT64"));
    save_text("v1.pbtxt", graph);
    CHECK_CONTAINS(graph_run("v1.pbtxt --target save --read-only", 1), "the session is read-only: v1 is not written");
    CHECK_CONTAINS(graph_run("v1.pbtxt --fetch restored", 1), "v1");
    graph_run("v1.pbtxt --target save", 0);
    CHECK_CONTAINS(graph_run("v1.pbtxt --fetch restored --read-only", 0), "restored int64[2] [3, -4]");
    graph_run_make_model();
    CHECK_CONTAINS(graph_run("model.meta --restore run --target save/SaveV2 --feed save/Const=copy --read-only", 1),
                   "copy is not written");
}

/* A queue of three elements, filled by a thread; the run ends with it. */
TEST(graph_run_starts_queue_runners_and_ends_with_their_data)
{
    static const char graph[] = "graph_def {\n" NODE("q", "FIFOQueueV2",
                                                     ATTR("component_types", "list { type: DT_INT32 }"))
        NODE("v", "Const",
             ATTR("dtype", "type: DT_INT32")
                 ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: 7 }"))
            NODE("fill", "QueueEnqueueManyV2",
                 "input: \"q\" input: \"v\" " ATTR(
                     "Tcomponents", "list { type: DT_INT32 }")) NODE("close", "QueueCloseV2", "input: \"q\" ")
                NODE("end", "QueueCloseV2", "input: \"q\" input: \"^fill\" ") NODE(
                    "next", "QueueDequeueV2",
                    "input: \"q\" " ATTR(
                        "component_types",
                        "list { type: DT_INT32 }")) "}\ncollection_def { key: \"queue_runners\" value { bytes_list {\n"
                                                    "  value: "
                                                    "\"\\n\\001q\\022\\003end\\032\\005close\\\"\\005close*"
                                                    "\\002\\013\\001\" } } }\n";
    save_text("queue.pbtxt", graph);
    const char *text = graph_run("queue.pbtxt --queue-runners --fetch next --steps 100", 0);
    CHECK_CONTAINS(text, "3 next int32[] 7\n");
    CHECK_CONTAINS(text, "graph-run: the input ended after 3 steps\n");
    CHECK_CONTAINS(graph_run("queue.pbtxt --fetch next --timeout 0.1", 1),
                   "next (QueueDequeueV2): not finished after 0.1 s (--timeout 0.1)");
    CHECK_CONTAINS(graph_run("queue.pbtxt --fetch next --timeout 0.1", 1), "which --queue-runners starts\n");
    CHECK(!strstr(graph_run("queue.pbtxt --feed next=1 --fetch next", 0), "--queue-runners"));
    CHECK_CONTAINS(graph_run("queue.pbtxt", 0), "--queue-runners");
    text = graph_run("queue.pbtxt --queue-runners --fetch next --steps 100 --profile --trace t.json", 0);
    CHECK_CONTAINS(text, "QueueDequeueV2");
    CHECK(!strstr(text, "QueueCloseV2"));
    CHECK_CONTAINS(program_run("cat %s", test_path("t.json"))->output, "QueueDequeueV2");
    save_text("old.pbtxt", doubled);
    CHECK_CONTAINS(graph_run("old.pbtxt --queue-runners --feed x=1 --fetch y", 1), "has no queue runners");
}

TEST(graph_run_seeds_random_operators)
{
    save_text(
        "random.pbtxt",
        NODE("n", "Const",
             ATTR("dtype", "type: DT_INT32")
                 ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 4 }"))
            NODE("r", "RandomUniform", "input: \"n\" " ATTR("T", "type: DT_INT32") ATTR("dtype", "type: DT_FLOAT")));
    char first[256], second[256], other[256];
    snprintf(first, sizeof first, "%s", graph_run("random.pbtxt --fetch r --seed 5", 0));
    snprintf(second, sizeof second, "%s", graph_run("random.pbtxt --fetch r --seed 5", 0));
    snprintf(other, sizeof other, "%s", graph_run("random.pbtxt --fetch r --seed 6", 0));
    CHECK_STR(first, second);
    CHECK(strcmp(first, other) != 0);
}
