/* --shard-size: no file is larger, except a file with a single larger record, and there are no more files than
 * necessary. */
#include "tests/tools/make_inputs.h"

typedef struct dice {
    uint64_t state;
} dice;

static int roll(dice *dice, int end)
{
    dice->state = dice->state * 6364136223846793005 + 1442695040888963407;
    return (int)((dice->state >> 33) % (uint64_t)end);
}

/* Saves an image of noise, which PNG cannot compress, so that sizes differ much. Names have any length. */
static void save_image(dice *dice, const char *path, bool is_large)
{
    mr_error error = {0};
    mr_tensor pixels = {0}, bytes = {0};
    int side = is_large ? 100 : 1 + roll(dice, 30);
    CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(side, 1 + roll(dice, 30), 3), &error));
    for (int64_t i = 0; i < mr_tensor_count(&pixels); i++) mr_tensor_uint8s(&pixels)[i] = (uint8_t)roll(dice, 256);
    CHECK_OK(mr_image_encode_png(&pixels, &bytes, &error));
    file_save(path, mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&pixels);
    mr_tensor_deinit(&bytes);
}

static const char *long_name(dice *dice, int number)
{
    static char name[200];
    int size = snprintf(name, sizeof name, "%d_", number);
    for (int i = roll(dice, 5) ? roll(dice, 20) : roll(dice, 150); i > 0; i--)
        name[size++] = (char)('a' + roll(dice, 26));
    name[size] = '\0';
    return name;
}

static void make_inputs(dice *dice)
{
    static const char *const classes[] = {"cat", "a dog with a much longer name than any cat can have", "x"};
    FILE *list = fopen(test_path("l.csv"), "w"), *table = fopen(test_path("t.csv"), "w"),
         *lines = fopen(test_path("t.jsonl"), "w"), *coco = fopen(test_path("c.json"), "w");
    CHECK_EQ(program_run("cd '%s' && mkdir d t", test_directory())->exit_code, 0);
    fputs("path,label,text,n\n", list);
    fputs("a,b,text,empty\n", table);
    fputs("{\"categories\": [{\"id\": 1, \"name\": \"dog\"}], \"annotations\": [], \"images\": [", coco);
    for (int i = 0; i < 3; i++) mkdir(test_path("d/%s", classes[i]), 0777);
    for (int i = 0; i < 120; i++) {
        char path[400];
        snprintf(path, sizeof path, "d/%s/%s.png", classes[roll(dice, 3)], long_name(dice, i));
        save_image(dice, test_path("%s", path), roll(dice, 40) == 0);
        fprintf(list, "%s,%d,%s,%d\n", path, roll(dice, 20), &"some text"[roll(dice, 9)], roll(dice, 1 << 30));
        fprintf(coco, "%s{\"id\": %d, \"file_name\": \"%s\"}", i ? "," : "", i, path);
        save_image(dice, test_path("t/%s.png", long_name(dice, i)), false);
    }
    fputs("]}", coco);
    for (int i = 0; i < 2000; i++) {
        fprintf(table, "%d,%d,%s,\n", i, roll(dice, 1 << 30), roll(dice, 9) ? "x" : long_name(dice, i));
        fprintf(lines, "{\"n\": %d, \"list\": [1, 2, %d], \"text\": \"%s\"}\n", i, roll(dice, 100), long_name(dice, i));
    }
    CHECK(fclose(list) == 0 && fclose(table) == 0 && fclose(lines) == 0 && fclose(coco) == 0);
    CHECK_EQ(program_run("cd '%s/t' && tar --sort=name -cf ../x.tar *", test_directory())->exit_code, 0);
}

/* The size of the largest file with several records, of the largest with a single record, the number of files, and
 * their total size. */
typedef struct sizes {
    long many, one, files, sum;
} sizes;

static sizes measure(void)
{
    sizes sizes = {0};
    const program_result *result =
        program_run("cd '%s/out' && for f in *.tfrecord; do stat -c %%s $f; tfrecord-cat --count $f | tail -1; done",
                    test_directory());
    const char *next = result->output;
    for (long size, records; sscanf(next, "%ld %ld", &size, &records) == 2;) {
        long *largest = records > 1 ? &sizes.many : &sizes.one;
        if (size > *largest) *largest = size;
        sizes.files++;
        sizes.sum += size;
        for (int i = 0; i < 2; i++) next = strchr(next, '\n') + 1;
    }
    return sizes;
}

TEST(make_shard_size_is_kept)
{
    dice dice = {.state = test_seed()};
    static const char *const inputs[] = {"d", "l.csv", "t.csv", "t.jsonl", "--images . c.json", "x.tar"};
    make_inputs(&dice);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        for (int limit = 2; limit <= 128; limit *= 4) {
            const char *compress = roll(&dice, 3) ? "" : "--compress gzip";
            const program_result *result =
                make("--name x --split all --shard-size %dK %s %s", limit, compress, inputs[i]);
            if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s: %s", inputs[i], result->output);
            sizes sizes = measure();
            if (sizes.many > limit * 1024)
                test_fail(__FILE__, __LINE__, "%s %s: %ld in %d KiB (seed %llu)", compress, inputs[i], sizes.many,
                          limit, (unsigned long long)test_seed());
            if (limit >= 32 && !*compress && sizes.files > 1 + 2 * sizes.sum / (limit * 1024))
                test_fail(__FILE__, __LINE__, "%s: %ld files of %ld bytes in %d KiB", inputs[i], sizes.files, sizes.sum,
                          limit);
        }
}

TEST(make_shard_size_of_one_record)
{
    dice dice = {.state = 5};
    make_inputs(&dice);
    CHECK_CONTAINS(make("--split all --shard-size 1 d")->output, "@120.tfrecord");
    sizes sizes = measure();
    CHECK(sizes.files == 120 && sizes.many == 0);
    CHECK_CONTAINS(make("--split all --shard-size 1T d")->output, "@1.tfrecord");
    CHECK_EQ(make("--shard-size 0 d")->exit_code, 2);
}
