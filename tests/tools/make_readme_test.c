/* Every tfrecord-make command of README.md, run exactly as printed there. */
#include "tests/tools/make_inputs.h"

static void make_inputs(void)
{
    CHECK_EQ(program_run("cd '%s' && mkdir -p photos/cat/raw photos/dog scans/a scans/b", test_directory())->exit_code,
             0);
    for (int i = 0; i < 20; i++) {
        make_png(test_path("photos/%s/%03d.png", i % 2 ? "cat" : "dog", i), i, 12, 10);
        make_png(test_path("scans/%s/patient%d_%d.png", i % 2 ? "a" : "b", i / 4, i), 100 + i, 12, 10);
    }
    make_png(test_path("photos/cat/001_thumb.png"), 50, 4, 4);
    make_png(test_path("photos/cat/raw/1.png"), 51, 4, 4);
    save_text("labels.txt", "ape\ncat\n");
    save_text("list.csv", "made by hand\n\"\npath,label,n\nphotos/cat/001.png,1,5\nphotos/dog/000.png,0,6\n");
    save_text("plain.csv", "path,label,n\nphotos/cat/001.png,1,5\nphotos/dog/000.png,0,6\n");
    save_text("table.csv", "a,b\n1,2\n3,x\n");
    save_text(
        "annotations.json",
        "{\"images\": [{\"id\": 1, \"file_name\": \"cat/001.png\"}], \"categories\": [{\"id\": 1, \"name\": \"cat\", "
        "\"keypoints\": [\"nose\"]}], \"annotations\": [{\"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 1, 5, 5], "
        "\"keypoints\": [2, 2, 1], \"segmentation\": [[1, 1, 5, 1, 5, 5]]}]}");
    CHECK_EQ(
        program_run("cd '%s' && python3 -c \"import zipfile; d = b'\\x93NUMPY\\x01\\x00v\\x00' + "
                    "(\\\"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\\\".ljust(117) + '\\n').encode(); "
                    "zipfile.ZipFile('arrays.npz', 'w').writestr('n.npy', d + b'abc')\"",
                    test_directory())
            ->exit_code,
        0);
}

TEST(make_readme_commands_run)
{
    const char *root = getenv("MILLRACE_ROOT");
    char line[1000];
    int count = 0;
    if (!root) test_skip("MILLRACE_ROOT is not set");
    snprintf(line, sizeof line, "%s/README.md", root);
    FILE *readme = fopen(line, "r");
    CHECK(readme != nullptr);
    make_inputs();
    while (fgets(line, sizeof line, readme)) {
        char *comment = strstr(line, "  #");
        if (strncmp(line, "    tfrecord-make ", 18) != 0) continue;
        line[comment ? (size_t)(comment - line) : strcspn(line, "\n")] = '\0';
        /* The commands of README.md need list.csv both with and without lines before its header. */
        const char *list = strstr(line, "--skip-rows") ? "list.csv" : "plain.csv";
        const program_result *result = program_run(
            "cd '%s' && rm -rf run && mkdir run && cp -r photos scans labels.txt table.csv annotations.json "
            "arrays.npz run && cp %s run/list.csv && cd run &&%s",
            test_directory(), list, line + 3);
        if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s: %s", line, result->output);
        if (strstr(line, "--survey") || strstr(line, "--dry-run")) continue;
        CHECK_EQ(program_run("cd '%s/run' && tfrecord-cat --verify records", test_directory())->exit_code, 0);
        count++;
    }
    fclose(readme);
    CHECK(count > 12);
}
