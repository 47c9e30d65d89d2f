/* Random input of every kind: tfrecord-make writes each row or counts it as left out. */
#include "tests/tools/make_inputs.h"

typedef struct random_text {
    uint64_t state;
    char text[128];
} random_text;

static uint64_t draw(random_text *random, uint64_t end)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (random->state >> 33) % end;
}

/* An unusual name, with blanks, capitals, other scripts, quotes and dots. The number makes it unique. */
static const char *odd_name(random_text *random, int number)
{
    static const char *const parts[] = {"a", "B", " ", "é", "日本", "'", "ß", "-", "_", "0", "(1)", "&", "#", "%"};
    size_t used = 0;
    random->text[0] = '\0';
    for (uint64_t i = draw(random, 5); i > 0; i--)
        used += (size_t)snprintf(random->text + used, sizeof random->text - used, "%s", parts[draw(random, 14)]);
    snprintf(random->text + used, sizeof random->text - used, "%d", number);
    return random->text;
}

/* Converts the input and checks the counts. in: the number of rows of the input */
static void check_kept(uint64_t seed, int in, const char *arguments)
{
    const program_result *result = make("--split all --on-error skip %s", arguments);
    static char output[sizeof result->output];
    snprintf(output, sizeof output, "%s", result->output);
    int skipped = count_skipped(output), exit_code = result->exit_code;
    bool is_nothing = strstr(output, "can be used; no files were written") || strstr(output, "contains no rows") ||
                      strstr(output, "lists no images") || strstr(output, "no images (") ||
                      strstr(output, "no Pascal VOC .xml");
    if (is_nothing && exit_code == 1) return;
    int out = count_records("*.tfrecord");
    if (exit_code != 0 || out + skipped != in)
        test_fail(__FILE__, __LINE__, "seed %llu, %s: exit %d, %d of %d came out and %d were left out:\n%s",
                  (unsigned long long)seed, arguments, exit_code, out, in, skipped, output);
}

static int rounds(void)
{
    return test_is_sanitized() ? 4 : 12;
}

/* Saves an image, an empty file, or text under an image's name. */
static void save_image(random_text *random, const char *path)
{
    uint64_t what = draw(random, 8);
    if (what == 0)
        file_save(path, "", 0);
    else if (what == 1)
        file_save(path, "text", 4);
    else
        make_png(path, (int)draw(random, 50), 1 + (int)draw(random, 20), 1 + (int)draw(random, 20));
}

TEST(make_random_directories)
{
    for (int round = 0; round < rounds(); round++) {
        uint64_t seed = test_seed() * 1000 + (uint64_t)round;
        random_text random = {.state = seed};
        int count = (int)draw(&random, 12), in = 0;
        CHECK_EQ(program_run("cd '%s' && rm -rf d && mkdir -p d/one d/Two\\ 2 d/empty", test_directory())->exit_code,
                 0);
        for (int i = 0; i < count; i++) {
            static const char *const endings[] = {".png", ".PNG", ".jpg", ".Jpeg", ".txt", ""};
            uint64_t ending = draw(&random, 6);
            const char *directory = draw(&random, 2) ? "one" : "Two 2";
            save_image(&random, test_path("d/%s/%s%s", directory, odd_name(&random, i), endings[ending]));
            in += ending < 4;
        }
        check_kept(seed, in, "d");
    }
}

/* Writes a CSV cell, quoted if necessary or by chance. */
static void put_cell(random_text *random, FILE *file, const char *text)
{
    if (strpbrk(text, ",\"\r\n") || draw(random, 4) == 0) {
        fputc('"', file);
        for (; *text; text++) fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
        fputc('"', file);
    } else {
        fputs(text, file);
    }
}

TEST(make_random_lists_and_tables)
{
    static const char *const cells[] = {"",           "1",          "-2.5",    "nan", "text", "a,b",
                                        "say \"so\"", "two\nlines", " blank ", "é",   "007"};
    for (int round = 0; round < 2 * rounds(); round++) {
        uint64_t seed = test_seed() * 1000 + (uint64_t)round;
        random_text random = {.state = seed};
        bool is_list = round % 2 == 0;
        const char *end = draw(&random, 2) ? "\r\n" : "\n";
        int count = (int)draw(&random, 30);
        CHECK_EQ(program_run("cd '%s' && rm -rf i && mkdir i", test_directory())->exit_code, 0);
        FILE *file = fopen(test_path("l.csv"), "w");
        if (draw(&random, 2)) fputs("\xef\xbb\xbf", file);
        fprintf(file, "%s,%s,x,%s%s", is_list ? "Path" : "n", draw(&random, 2) ? "Label" : "CLASS",
                draw(&random, 2) ? "y" : "", end);
        for (int i = 0; i < count; i++) {
            char name[160];
            snprintf(name, sizeof name, "i/%s.png", odd_name(&random, i));
            /* Some images are missing, and some rows have too few or too many cells. */
            if (is_list && draw(&random, 6) > 0) save_image(&random, test_path("%s", name));
            put_cell(&random, file, is_list ? draw(&random, 9) ? name : "" : cells[draw(&random, 11)]);
            fputc(',', file);
            put_cell(&random, file, draw(&random, 9) ? draw(&random, 2) ? "dog" : "Cat" : "");
            for (uint64_t j = draw(&random, 9) ? 2 : draw(&random, 4); j > 0; j--) {
                fputc(',', file);
                put_cell(&random, file, cells[draw(&random, 11)]);
            }
            fputs(i == count - 1 && draw(&random, 2) ? "" : end, file);
            if (draw(&random, 6) == 0 && i < count - 1) fputs(end, file);
        }
        fclose(file);
        check_kept(seed, count, is_list ? "--format list l.csv" : "--format table l.csv");
    }
}

TEST(make_random_json_lines)
{
    static const char *const values[] = {"1", "2.5", "\"text\"", "true", "null", "[1, 2]", "[]", "{\"k\": 1}", "\"é\""};
    static const char *const faults[] = {"{", "[1]", "3", "{\"n\": 1, \"n\": 2}", "{\"n\": nan}"};
    for (int round = 0; round < rounds(); round++) {
        uint64_t seed = test_seed() * 1000 + (uint64_t)round;
        random_text random = {.state = seed};
        int count = (int)draw(&random, 30);
        FILE *file = fopen(test_path("l.jsonl"), "w");
        if (draw(&random, 2)) fputs("\xef\xbb\xbf", file);
        for (int i = 0; i < count; i++) {
            if (draw(&random, 7) == 0)
                fputs(faults[draw(&random, 5)], file);
            else
                fprintf(file, "{\"n\": %d, \"%s\": %s}", i, draw(&random, 2) ? "a" : "b", values[draw(&random, 9)]);
            fputs(i == count - 1 && draw(&random, 2) ? "" : draw(&random, 2) ? "\r\n" : "\n", file);
            if (draw(&random, 6) == 0 && i < count - 1) fputs("\n", file);
        }
        fclose(file);
        check_kept(seed, count, "l.jsonl");
    }
}

TEST(make_random_coco)
{
    for (int round = 0; round < rounds(); round++) {
        uint64_t seed = test_seed() * 1000 + (uint64_t)round;
        random_text random = {.state = seed};
        int count = 1 + (int)draw(&random, 10), in = 0;
        CHECK_EQ(program_run("cd '%s' && rm -rf i && mkdir i", test_directory())->exit_code, 0);
        FILE *file = fopen(test_path("c.json"), "w");
        fputs("{\"categories\": [{\"id\": 1, \"name\": \"é\"}, {\"id\": 7, \"name\": \"b\"}], \"images\": [", file);
        for (int i = 0; i < count; i++, in++) {
            char name[160];
            snprintf(name, sizeof name, "%s.png", odd_name(&random, i));
            if (draw(&random, 8)) save_image(&random, test_path("i/%s", name));
            int id = draw(&random, 9) ? i : 0;
            fprintf(file, i ? ", " : "");
            if (draw(&random, 9))
                fprintf(file, "{\"id\": %d, \"file_name\": \"%s\"}", id, name);
            else
                fprintf(file, "%s", draw(&random, 2) ? "{\"id\": 3}" : "4");
        }
        fputs("], \"annotations\": [", file);
        for (int i = 0, annotations = (int)draw(&random, 20); i < annotations; i++) {
            bool is_known = draw(&random, 6) > 0;
            fprintf(file, "%s{\"image_id\": %d, \"category_id\": %d, \"bbox\": [1, 1, 5, %s]}", i ? ", " : "",
                    (int)draw(&random, (uint64_t)count), is_known ? 7 : 5, draw(&random, 9) ? "5" : "\"5\"");
        }
        fputs("]}", file);
        fclose(file);
        /* A fault in an annotation of an image that cannot be used is counted separately. */
        const program_result *result = make("--split all --on-error skip --images i c.json");
        int listed = 0;
        const char *colon = strstr(result->output, "c.json: ");
        for (; colon; colon = strstr(colon + 1, "c.json: "))
            if (sscanf(colon, "c.json: %d image", &listed) == 1) break;
        CHECK(listed == 0 || listed >= in);
        check_kept(seed, listed, "--images i c.json");
    }
}

TEST(make_random_voc)
{
    for (int round = 0; round < rounds(); round++) {
        uint64_t seed = test_seed() * 1000 + (uint64_t)round;
        random_text random = {.state = seed};
        int count = (int)draw(&random, 10);
        CHECK_EQ(program_run("cd '%s' && rm -rf v && mkdir -p v/Annotations v/JPEGImages", test_directory())->exit_code,
                 0);
        for (int i = 0; i < count; i++) {
            static const char *const texts[] = {"<annotation/>",
                                                "<annotation><object><name>caf\xe9</name></object></annotation>", "",
                                                "<annotation>", "no xml"};
            char name[160];
            snprintf(name, sizeof name, "%s", odd_name(&random, i));
            const char *text = texts[draw(&random, 3) ? 0 : draw(&random, 5)];
            file_save(test_path("v/Annotations/%s.%s", name, draw(&random, 2) ? "xml" : "XML"), text, strlen(text));
            if (draw(&random, 8)) save_image(&random, test_path("v/JPEGImages/%s.png", name));
        }
        check_kept(seed, count, "v");
    }
}

TEST(make_random_archives)
{
    for (int round = 0; round < rounds(); round++) {
        uint64_t seed = test_seed() * 1000 + (uint64_t)round;
        random_text random = {.state = seed};
        int archives = 1 + (int)draw(&random, 3), in = 0;
        CHECK_EQ(program_run("cd '%s' && rm -f x.tar", test_directory())->exit_code, 0);
        for (int a = 0; a < archives; a++) {
            static const char *const order[] = {"--sort=name -cf ../part.tar .", "-cf ../part.tar *.txt *.json",
                                                "-cf ../part.tar *.json *.txt"};
            int count = 1 + (int)draw(&random, 8);
            CHECK_EQ(program_run("cd '%s' && rm -rf t && mkdir t", test_directory())->exit_code, 0);
            for (int i = 0; i < count; i++, in++) {
                char name[160];
                snprintf(name, sizeof name, "t/s%s", odd_name(&random, i));
                bool is_bad = draw(&random, 5) == 0;
                file_save(test_path("%s.json", name), is_bad ? "{" : "{\"a\": 1}", is_bad ? 1 : 8);
                file_save(test_path("%s.txt", name), "x", draw(&random, 2));
            }
            CHECK_EQ(program_run("cd '%s/t' && tar %s && cat ../part.tar >>../x.tar", test_directory(),
                                 order[draw(&random, 3)])
                         ->exit_code,
                     0);
        }
        check_kept(seed, in, "x.tar");
    }
}
