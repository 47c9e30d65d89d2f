/* The example programs, run with the arguments that a user would give. */
#include "base/random.h"
#include "tests/examples.h"

TEST(example_line_fit)
{
    const char *text = example_run("line-fit", "", 0);
    const char *last = strstr(text, "step 300");
    CHECK(last != nullptr);
    CHECK_NEAR(example_number(last, "y = "), 3, 0.05);
    CHECK_NEAR(example_number(last, "x "), -2, 0.05);
}

/* Creates a data set of digits in the test's directory; returns its path. */
static const char *draw_digits(void)
{
    char arguments[2048];
    snprintf(arguments, sizeof arguments, "--out %s", test_path("digits"));
    example_run("digits", arguments, 0);
    return test_path("digits");
}

TEST(example_mnist_softmax)
{
    CHECK(example_number(example_run("mnist-softmax", draw_digits(), 0), "test accuracy: ") > 80);
}

TEST(example_mnist_conv)
{
    CHECK(example_number(example_run("mnist-conv", draw_digits(), 0), "test accuracy: ") > 95);
}

TEST(example_mnist_without_digits)
{
    char command[4096];
    snprintf(command, sizeof command, "mkdir -p %s && %s %s 2>&1", test_path("empty"), test_bin("mnist-softmax"),
             test_path("empty"));
    FILE *pipe = popen(command, "r");
    CHECK(pipe != nullptr);
    char text[4096];
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    CHECK(pclose(pipe) != 0);
    CHECK_CONTAINS(text, "train-images-idx3-ubyte: no such file or directory");
}

TEST(example_train_images)
{
    char arguments[2048];
    snprintf(arguments, sizeof arguments, "--out %s --count 120", test_path("photos"));
    example_run("photographs", arguments, 0);
    snprintf(arguments, sizeof arguments, "--out %s --split train=0.8,validation=0.2 %s", test_path("records"),
             test_path("photos"));
    example_run("tfrecord-make", arguments, 0);
    snprintf(arguments, sizeof arguments, "%s %s --steps 4", test_path("records"), test_path("run"));
    CHECK_CONTAINS(example_run("train-images", arguments, 0), "step 4/4");
    snprintf(arguments, sizeof arguments, "%s %s --steps 6", test_path("records"), test_path("run"));
    CHECK_CONTAINS(example_run("train-images", arguments, 0), "step 6/6");
    snprintf(arguments, sizeof arguments, "%s %s --evaluate", test_path("records"), test_path("run"));
    double accuracy = example_number(example_run("train-images", arguments, 0), "validation accuracy: ");
    CHECK(accuracy >= 0 && accuracy <= 100);
}

TEST(example_feed_images)
{
    char arguments[2048], first[64] = "";
    snprintf(arguments, sizeof arguments, "--out %s --count 40", test_path("photos"));
    example_run("photographs", arguments, 0);
    snprintf(arguments, sizeof arguments, "--out %s %s", test_path("records"), test_path("photos"));
    example_run("tfrecord-make", arguments, 0);
    for (int threads = 0; threads < 4; threads += 3) {
        snprintf(arguments, sizeof arguments, "'%s/*.tfrecord' --epochs 2 --threads %d", test_path("records"), threads);
        const char *output = example_run("feed-images", arguments, 0);
        CHECK_CONTAINS(output, "80 images in ");
        CHECK_CONTAINS(output, " 0 records skipped, ");
        const char *digest = strstr(output, "digest ");
        CHECK(digest != nullptr && (first[0] == '\0' || strncmp(first, digest, 23) == 0));
        snprintf(first, sizeof first, "%.23s", digest);
    }
    /* A directory stands for the record files in it. */
    snprintf(arguments, sizeof arguments, "%s --epochs 2", test_path("records"));
    CHECK_CONTAINS(example_run("feed-images", arguments, 0), first);
    CHECK_CONTAINS(example_run("feed-images", "--help", 0), "--epochs N");
    /* Compressed records are shuffled with a buffer, and both programs report it. */
    snprintf(arguments, sizeof arguments, "--out %s --compress gzip --split train=0.8,validation=0.2 %s",
             test_path("packed"), test_path("photos"));
    example_run("tfrecord-make", arguments, 0);
    snprintf(arguments, sizeof arguments, "%s --epochs 2", test_path("packed"));
    const char *packed = example_run("feed-images", arguments, 0);
    CHECK_CONTAINS(packed, "shuffling 1000 at a time");
    CHECK_CONTAINS(packed, "80 images in ");
    snprintf(arguments, sizeof arguments, "%s %s --steps 2", test_path("packed"), test_path("run"));
    packed = example_run("train-images", arguments, 0);
    CHECK_CONTAINS(packed, "shuffling 1000 at a time");
    CHECK_CONTAINS(packed, "step 2/2");
}

TEST(example_translate)
{
    if (example_run_shortly("translate", "3")) return;
    const char *text = example_run("translate", "400", 0);
    CHECK(example_number(text, "step 400  loss ") < 0.2);
    CHECK_CONTAINS(text, " -> ");
    CHECK(example_number(text, "right: ") > 50); /* of 64 */
}

/* A text of few sentences: what follows a word soon is known, except where the text itself is random. */
TEST(example_language_model)
{
    static const char *const subjects[] = {"the cat", "the dog", "a bird", "my friend", "an old man"};
    static const char *const verbs[] = {"sees", "likes", "follows", "hears"};
    mr_random random = mr_random_at(3, 5, 0, 0);
    FILE *file = fopen(test_path("text"), "w");
    CHECK(file != nullptr);
    for (int i = 0; i < 3000; i++)
        fprintf(file, "%s %s  %s\n", subjects[mr_random_below(&random, 5)], verbs[mr_random_below(&random, 4)],
                subjects[mr_random_below(&random, 5)]);
    fclose(file);
    char arguments[4096];
    snprintf(arguments, sizeof arguments, "%s 5 32", test_path("text"));
    const char *text = example_run("language-model", arguments, 0);
    CHECK(example_number(text, "epoch 1  rate 1.000  perplexity ") > 5);
    CHECK(example_number(text, "test perplexity: ") < 3);
}
