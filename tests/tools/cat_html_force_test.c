/* tfrecord-cat --html --force: a smaller page removes all files of a larger one, but no files of others. */
#include "tests/tools/make_inputs.h"

TEST(cat_html_force_removes_the_earlier_page)
{
    mkdir(test_path("d"), 0777);
    make_pngs("d/a", 30);
    make_pngs("d/b", 2);
    CHECK_EQ(make("--split all d")->exit_code, 0);
    CHECK_EQ(
        program_run(
            "cd '%s' && tfrecord-cat --html h out && tfrecord-cat --html small --where \"image/class/text == 'b'\" "
            "out && touch h/images/mine.png h/thumbs/00000/mine.jpg h/data/mine.js h/mine.html",
            test_directory())
            ->exit_code,
        0);
    const program_result *result = program_run("cd '%s' && tfrecord-cat --html h out", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_EQ(program_run("cd '%s' && find h -name '0000*.png' | wc -l", test_directory())->output[0], '3');
    CHECK_EQ(program_run("cd '%s' && tfrecord-cat --html h --force --where \"image/class/text == 'b'\" out",
                         test_directory())
                 ->exit_code,
             0);
    CHECK_STR(program_run("cd '%s' && diff -r h small | sort", test_directory())->output,
              "Only in h/data: mine.js\nOnly in h/images: mine.png\nOnly in h/thumbs/00000: mine.jpg\nOnly in h: "
              "mine.html\n");
    /* A run that fails at its start removes nothing. */
    CHECK_EQ(program_run("cd '%s' && tfrecord-cat --html h --force nosuch", test_directory())->exit_code != 0, true);
    CHECK_CONTAINS(program_run("cd '%s' && tfrecord-cat --help html", test_directory())->output,
                   "A record shows one image");
}
