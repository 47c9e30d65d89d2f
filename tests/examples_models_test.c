/* The example programs that follow TensorFlow 1's classic tutorials, run with the arguments that a user would give. */
#include "tests/examples.h"
#include <unistd.h>

/* Each mistake in a number of steps is one sentence and status 2. */
static void check_mistakes(const char *program)
{
    static const char *const mistakes[] = {"0", "-3", "many", "10x", "''", "99999999999999999999", "10 10", "--help"};
    char expected[64];
    snprintf(expected, sizeof expected, "usage: %s [STEPS]\n", program);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        CHECK_STR(example_run(program, mistakes[i], 2), expected);
    example_run(program, "1", 0);
}

/* The generated points form the ring of the true ones: radius 2, standard deviation 0.1. */
TEST(example_gan)
{
    if (example_run_shortly("gan", "20")) return;
    const char *text = example_run("gan", "2000", 0);
    CHECK_CONTAINS(text, "step 2000  discriminator ");
    CHECK_NEAR(example_number(text, "center "), 0, 0.4);
    CHECK_NEAR(example_number(text, "distance "), 2, 0.2);
    CHECK(example_number(text, "spread ") < 0.3);
    /* Without training they do not. */
    CHECK(example_number(example_run("gan", "1", 0), "distance ") < 1);
    check_mistakes("gan");
}

/* The loss that the towers print at a step, after a line of the output. */
static double loss_after(const char *text, const char *line, const char *step)
{
    const char *at = strstr(text, line);
    if (at == nullptr) test_fail(__FILE__, __LINE__, "\"%s\" is not in: %s", line, text);
    return example_number(at, step);
}

/* Two towers with half of the batch each compute what one computes. */
TEST(example_towers)
{
    const char *text = example_run("towers", "200", 0);
    for (int i = 0; i < 2; i++) {
        const char *step = i == 0 ? "step 1  loss " : "step 200  loss ";
        const double one = loss_after(text, "tower_0 of 1: ", step), two = loss_after(text, "tower_1 of 2: ", step);
        CHECK_NEAR(one, two, 1e-3);
        CHECK(i == 0 ? one > 0.9 : one < 0.3);
    }
    CHECK(example_number(text, "largest difference of 1251 weights: ") < 1e-3);
    check_mistakes("towers");
}

TEST(example_wide_and_deep)
{
    const char *text = example_run("wide-and-deep", "750", 0);
    CHECK(example_number(text, "accuracy ") < 75); /* before the training */
    CHECK(example_number(text, "AUC ") < 0.75);
    const char *last = strstr(text, "step 750  loss ");
    CHECK(last != nullptr);
    CHECK(example_number(last, "accuracy ") > 90);
    CHECK(example_number(last, "AUC ") > 0.96);
    CHECK(example_number(last, "AUC ") <= 1);
    check_mistakes("wide-and-deep");
}

TEST(example_vae)
{
    if (example_run_shortly("vae", "20")) return;
    const char *text = example_run("vae", "1200", 0);
    CHECK(example_number(text, "step 0  bound ") < -90); /* of 144 pixels, log 2 each */
    CHECK(example_number(text, "step 1200  bound ") > -16);
    int rows = 0, black = 0, white = 0;
    for (const char *at = strstr(text, "step 1200"); at != nullptr && *at != '\0'; at++) {
        rows += *at == '|';
        black += *at == '@';
        white += *at == ' ';
    }
    CHECK_EQ(rows, 2 * 12); /* three images, side by side */
    CHECK(black > 20);
    CHECK(white > 3 * black);
    check_mistakes("vae");
}

/* The records are read several times, and the temporary directory is removed. */
TEST(example_queue_training)
{
    char command[4096];
    snprintf(command, sizeof command, "mkdir -p %s", test_path("temporary"));
    CHECK_EQ(system(command), 0);
    CHECK_EQ(setenv("TMPDIR", test_path("temporary"), 1), 0);
    const char *text = example_run("queue-training", "300", 0);
    const char *last = strstr(text, "step 300  loss ");
    CHECK(last != nullptr);
    CHECK(example_number(last, "accuracy ") > 80);
    /* 300 batches of 100; the queue has room for 500 more, and each of two threads waits with one. */
    const double records = example_number(text, "read: ");
    CHECK(records >= 300 * 100 && records <= 300 * 100 + 500 + 2);
    check_mistakes("queue-training");
    CHECK_EQ(rmdir(test_path("temporary")), 0);
    CHECK_CONTAINS(example_run("queue-training", "10", 1), "/flowers-");
}
