/* SIGINT and SIGTERM: tfrecord-make reports where it stopped, leaves no partial file, dies from the signal, and resumes
 * when it is run again. */
#include "tests/kill.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/image.h>

#include <fcntl.h>

static void make_photos(int count)
{
    mr_error error = {0};
    mr_tensor pixels = {0}, bytes = {0};
    CHECK_EQ(program_run("mkdir -p %s/photos/a %s/photos/b", test_directory(), test_directory())->exit_code, 0);
    CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(40, 40, 3), &error));
    for (int i = 0; i < count; i++) {
        memset(pixels.data, i, 4800);
        memcpy(pixels.data, &i, sizeof i);
        CHECK_OK(mr_image_encode_png(&pixels, &bytes, &error));
        file_save(test_path("photos/%s/%d.png", i % 2 ? "a" : "b", i), mr_tensor_strings(&bytes)[0].data,
                  mr_tensor_strings(&bytes)[0].size_bytes);
        mr_tensor_deinit(&bytes);
    }
    mr_tensor_deinit(&pixels);
}

/* Starts a run, sends it signal `number` after `change` changes in out/, and returns the status of waitpid. Standard
 * error goes to the file "errors". */
static int run_and_signal(int number, int change)
{
    char program[1024], out[1024], photos[1024], errors[1024];
    snprintf(program, sizeof program, "%s", test_bin("tfrecord-make"));
    snprintf(out, sizeof out, "%s", test_path("out"));
    snprintf(photos, sizeof photos, "%s", test_path("photos"));
    snprintf(errors, sizeof errors, "%s", test_path("errors"));
    int watch = kill_watch(out), status = 0, count = 0;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen(errors, "w", stderr)) _exit(3);
        execl(program, program, "--out", out, "--shards", "20", "-j", "2", "--encode", "jpeg", photos, nullptr);
        _exit(2);
    }
    int process = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd ready[2] = {{.fd = watch, .events = POLLIN}, {.fd = process, .events = POLLIN}};
    while (count < change && !ready[1].revents) {
        CHECK(poll(ready, 2, -1) > 0);
        count += kill_read_changes(watch);
    }
    (void)kill(child, number);
    CHECK_EQ(waitpid(child, &status, 0), child);
    close(process);
    close(watch);
    return status;
}

static void check_interrupted(int number)
{
    make_photos(1200);
    int status = 0, tries = 0;
    /* A fast machine may finish before the signal is delivered. */
    do {
        CHECK_EQ(program_run("rm -rf %s/out", test_directory())->exit_code, 0);
        status = run_and_signal(number, 6);
    } while (WIFEXITED(status) && ++tries < 10);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) test_skip("the program was always done before the signal");
    if (!WIFSIGNALED(status))
        test_fail(__FILE__, __LINE__, "ended with exit code %d %d times: %s", WEXITSTATUS(status), tries,
                  program_run("cat %s/errors", test_directory())->output);
    CHECK_EQ(WTERMSIG(status), number);
    const program_result *result = program_run("cat %s/errors", test_directory());
    CHECK_CONTAINS(result->output, "tfrecord-make: interrupted at ");
    CHECK_CONTAINS(result->output, " of 1200 images; ");
    CHECK_CONTAINS(result->output, " of 40 files are finished in ");
    CHECK_CONTAINS(result->output, "; run the same command again to resume\n");
    CHECK_EQ(program_run("ls %s/out | grep partial", test_directory())->exit_code, 1);
    /* The same command resumes and creates the same files as an undisturbed run. */
    static const char options[] = "--shards 20 --encode jpeg photos";
    CHECK_EQ(program_run("cd %s; tfrecord-make --out out %s", test_directory(), options)->exit_code, 0);
    CHECK_EQ(program_run("cd %s; tfrecord-make --out whole %s", test_directory(), options)->exit_code, 0);
    CHECK_EQ(
        program_run("cd %s; for f in whole/*.tfrecord; do cmp $f out/${f#whole/} || exit 1; done", test_directory())
            ->exit_code,
        0);
}

TEST(make_interrupted_reports_its_position_and_resumes)
{
    check_interrupted(SIGINT);
}

TEST(make_terminated_reports_its_position_and_resumes)
{
    check_interrupted(SIGTERM);
}

TEST(make_interrupted_before_writing_reports_it)
{
    /* The list is a FIFO without a writer, so the program blocks. The signal is sent once its handler is installed. */
    CHECK_EQ(mkfifo(test_path("list.csv"), 0600), 0);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out list.csv & p=$!; "
                    "until grep -q 'SigCgt:.*[4567c-f]...$' /proc/$p/status; do sleep 0.01; done; "
                    "kill -TERM $p; exec 3<>list.csv; wait $p; echo $?; ls",
                    test_directory());
    CHECK_CONTAINS(result->output, "tfrecord-make: interrupted while reading the input; nothing was written\n");
    CHECK_CONTAINS(result->output, "143\n");
    CHECK(strstr(result->output, "\nout\n") == nullptr);
}
