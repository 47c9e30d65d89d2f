/* The example programs that train small models on data of their own, and those for a CSV file or a text. */
#include "base/random.h"
#include "tests/examples.h"

/* A program whose output is one line, which contains `message`. */
static void check_mistake(const char *program, const char *arguments, int status, const char *message)
{
    const char *text = example_run(program, arguments, status);
    CHECK_CONTAINS(text, message);
    CHECK(strchr(text, '\n') == text + strlen(text) - 1);
}

/* ---- word2vec ---- */

/* The kind of a word of the invented language; -1: not such a word. */
static int kind_of(const char *word)
{
    static const char *const kinds[] = {
        " two three four six ",  " red green black white ",   " cats dogs birds mice ",
        " eat steal find hide ", " plums apples pears nuts ",
    };
    char key[64];
    snprintf(key, sizeof key, " %s ", word);
    for (int i = 0; i < 5; i++)
        if (strstr(kinds[i], key) != nullptr) return i;
    return -1;
}

TEST(example_word2vec)
{
    const char *text = example_run("word2vec", "", 0);
    CHECK(example_number(text, "step 3000  loss ") < 4);
    int lines = 0;
    char words[4][32];
    for (; text != nullptr; text = strchr(text + 1, '\n')) {
        if (sscanf(text, " %31[a-z]: %31s %31s %31s", words[0], words[1], words[2], words[3]) != 4) continue;
        lines++;
        const int kind = kind_of(words[0]);
        CHECK(kind >= 0);
        for (int i = 1; i < 4; i++) {
            CHECK_EQ(kind_of(words[i]), kind);
            CHECK(strcmp(words[i], words[0]) != 0);
        }
    }
    CHECK_EQ(lines, 12);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(test_path("%s", name), "w");
    CHECK(file != nullptr);
    fputs(text, file);
    fclose(file);
}

TEST(example_word2vec_text)
{
    char arguments[2048];
    write_file("text", "a b c d e f\tg\nh i j k l\r\n\r\nm a\n");
    snprintf(arguments, sizeof arguments, "20 %s", test_path("text"));
    CHECK_CONTAINS(example_run("word2vec", arguments, 0), "           a: ");
    write_file("text", "few words");
    check_mistake("word2vec", arguments, 1, "the text has 2 different words; at least 12 are needed");
    check_mistake("word2vec", "20 nowhere", 1, "cannot open nowhere: no such file");
    check_mistake("word2vec", "20x", 2, "usage: word2vec [STEPS [TEXT]]");
    check_mistake("word2vec", "0", 2, "usage: word2vec [STEPS [TEXT]]");
}

/* ---- regression ---- */

TEST(example_regression)
{
    mr_random random = mr_random_at(3, 5, 0, 0);
    FILE *file = fopen(test_path("flats.csv"), "w");
    CHECK(file != nullptr);
    fprintf(file, "size,rooms,price,\"age, in years\"\r\n");
    for (int i = 0; i < 300; i++) {
        const double size = 20 + (double)mr_random_below(&random, 1000) / 10;
        const double rooms = 1 + (double)mr_random_below(&random, 6), age = (double)mr_random_below(&random, 100);
        fprintf(file, "%.1f,%.0f,%.4f,%.0f\r\n", size, rooms, 3.5 * size + 20 * rooms - 0.7 * age + 50, age);
    }
    fclose(file);
    char arguments[2048];
    snprintf(arguments, sizeof arguments, "%s price", test_path("flats.csv"));
    const char *text = example_run("regression", arguments, 0);
    CHECK(example_number(text, "step = 1000, loss = ") < 1e-6);
    const char *at = strstr(text, "price =\n");
    CHECK(at != nullptr);
    double values[4];
    CHECK_EQ(sscanf(at, "price = %lf * size %lf * rooms %lf * age, in years %lf", &values[0], &values[1], &values[2],
                    &values[3]),
             4);
    static const double expected[4] = {3.5, 20, -0.7, 50};
    for (int i = 0; i < 4; i++) CHECK_NEAR(values[i], expected[i], 1e-2);
}

TEST(example_regression_mistakes)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "is empty"},
        {"a,b\n", "has a header, but no rows"},
        {"b\n1\n", "has 1 columns; expected 2 to 32"},
        {"b,c\n1,2\n", "no column is named \"a\""},
        {"a,b\n1,2\n1,3\n", "column \"a\" has the same number in every row"},
        {"a,b\n1,2\n3,nan\n", "column \"b\" has a number that is not finite"},
        {"a,b\n1,2\n3,many\n", "\"many\" is not a valid float"},
        {"a,b\n1,2\n3\n", "has 1 cells, expected 2"},
    };
    char arguments[2048];
    snprintf(arguments, sizeof arguments, "%s a", test_path("table.csv"));
    check_mistake("regression", arguments, 1, "no such file or directory");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file("table.csv", cases[i].text);
        check_mistake("regression", arguments, 1, cases[i].message);
    }
    check_mistake("regression", "table.csv", 2, "usage: regression FILE TARGET [STEPS]");
    check_mistake("regression", "table.csv a 0", 2, "usage: regression FILE TARGET [STEPS]");
}

/* ---- autoencoder, transfer ---- */

TEST(example_autoencoder)
{
    const char *text = example_run("autoencoder", "300", 0);
    const double before = example_number(text, "before: error "), after = example_number(text, "after: error ");
    CHECK(after < before / 5);
    CHECK_CONTAINS(text, " | ");
    check_mistake("autoencoder", "many", 2, "usage: autoencoder [STEPS]");
    check_mistake("autoencoder", "1 2", 2, "usage: autoencoder [STEPS]");
}

TEST(example_transfer)
{
    const char *text = example_run("transfer", test_path("run"), 0);
    CHECK(example_number(text, "0 to 4, all layers, 2000 images: accuracy ") > 95);
    const double restored = example_number(text, "others restored, 100 images: accuracy ");
    CHECK(restored > 70);
    CHECK(example_number(text, "others random, 100 images: accuracy ") < restored - 10);
    write_file("file", "");
    check_mistake("transfer", "", 2, "usage: transfer DIRECTORY [STEPS]");
    check_mistake("transfer", "''", 2, "usage: transfer DIRECTORY [STEPS]");
    char arguments[2048];
    snprintf(arguments, sizeof arguments, "%s 1", test_path("file"));
    CHECK_CONTAINS(example_run("transfer", arguments, 1), "transfer: cannot create directory ");
}
