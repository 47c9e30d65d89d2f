/* Several tfrecord-make processes at the same time: parts that are joined, ranks of a launcher, and workers that do not
 * finish. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <sys/stat.h>

static void make_directory(int count)
{
    mkdir(test_path("photos"), 0777);
    for (int c = 0; c < 2; c++) {
        mkdir(test_path("photos/%c", 'a' + c), 0777);
        for (int i = 0; i < count; i++) {
            test_bytes bytes = test_jpeg(20 + i, 20 + c, (test_jpeg_options){.horizontal = 2, .vertical = 2});
            file_save(test_path("photos/%c/%d.jpg", 'a' + c, i), bytes.bytes, bytes.size_bytes);
            free(bytes.bytes);
        }
    }
    CHECK_EQ(program_run("cd %s; tfrecord-make --out alone --shards 4 photos", test_directory())->exit_code, 0);
}

static void check_as_alone(const char *out)
{
    const program_result *result = program_run("cd %s; for i in alone/*; do case $i in *.index) ;; *) cmp $i "
                                               "%s/${i#alone/} || exit 1;; esac; done; ls -A %s | grep -v "
                                               "-e photos- -e labels.txt -e '^.photos.journal$'",
                                               test_directory(), out, out);
    CHECK_STR(result->output, "");
    result = program_run("cd %s; tfrecord-make --out %s --shards 4 photos", test_directory(), out);
    CHECK_CONTAINS(result->output, "0 images written");
}

TEST(make_workers_make_the_bytes_of_one)
{
    make_directory(20);
    const program_result *result = program_run(
        "cd %s; for i in 3 1 2; do tfrecord-make --out out --shards 4 --worker $i/3 photos & p=\"$p $!\"; done; "
        "for i in $p; do wait $i || exit 1; done",
        test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "worker 2 of 3: 3 of the 8 files");
    CHECK(access(test_path("out/labels.txt"), F_OK) != 0);
    result = program_run("cd %s; tfrecord-make --out out --shards 4 --finish photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "out/labels.txt");
    check_as_alone("out");
}

TEST(make_finish_names_the_worker_that_is_missing)
{
    make_directory(20);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --shards 4 --finish photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no worker has started");
    CHECK_EQ(program_run("cd %s; tfrecord-make --out out --shards 4 --worker 1/2 photos", test_directory())->exit_code,
             0);
    result = program_run("cd %s; tfrecord-make --out out --shards 4 --finish photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "worker 2 of 2 has not started");
    CHECK_CONTAINS(result->output, "--worker 2/2");
    /* Other options result in a different plan. */
    CHECK_EQ(
        program_run("cd %s; tfrecord-make --out out --shards 4 -s 7 --worker 2/2 photos", test_directory())->exit_code,
        0);
    result = program_run("cd %s; tfrecord-make --out out --shards 4 --finish photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "worker 2 of 2 used a different plan");
    /* Worker 2 may have overwritten files of worker 1, which detects that and writes them again. */
    CHECK_EQ(
        program_run("cd %s; for i in 2 1; do tfrecord-make --out out --shards 4 --worker $i/2 photos || exit 1; done",
                    test_directory())
            ->exit_code,
        0);
    CHECK_EQ(program_run("cd %s; tfrecord-make --out out --shards 4 --finish photos", test_directory())->exit_code, 0);
    check_as_alone("out");
}

TEST(make_finish_detects_changed_files)
{
    make_directory(20);
    CHECK_EQ(program_run(
                 "cd %s; for i in 1 2; do tfrecord-make --out out --shards 4 --worker $i/2 photos || exit 1; done; rm "
                 "out/photos-train-00002-of-00004.tfrecord",
                 test_directory())
                 ->exit_code,
             0);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --shards 4 --finish photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photos-train-00002-of-00004.tfrecord is missing");
    /* Input files with new modification times: the plan and the shards are the same. */
    CHECK_EQ(
        program_run("cd %s; for i in 1 2; do tfrecord-make --out out --shards 4 --worker $i/2 photos || exit 1; done; "
                    "touch photos/a/*; tfrecord-make --out out --shards 4 --finish photos",
                    test_directory())
            ->exit_code,
        0);
}

TEST(make_ranks_of_a_launch_join_by_themselves)
{
    make_directory(20);
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (int i = 0; i < 3; i++) {
        const program_result *result = program_run("cd %s; for i in 0 1 2; do PMIX_NAMESPACE=job%d %s=$i %s=3 "
                                                   "tfrecord-make --out out%d --shards 4 photos & p=\"$p $!\"; "
                                                   "done; for i in $p; do wait $i || exit 1; done",
                                                   test_directory(), i, names[i][0], names[i][1], i);
        CHECK_EQ(result->exit_code, 0);
        CHECK_CONTAINS(result->output, "/labels.txt");
        char out[8];
        snprintf(out, sizeof out, "out%d", i);
        check_as_alone(out);
    }
}

TEST(make_rank_0_names_missing_workers)
{
    make_directory(20);
    const program_result *result =
        program_run("cd %s; OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 tfrecord-make --wait 1 "
                    "--out out --shards 4 photos",
                    test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "worker 2 of 2 has not responded for 1 s");
    /* A failed worker is reported at once, with its reason. */
    file_save(test_path("photos/a/bad.jpg"), "x", 1);
    result =
        program_run("cd %s; for i in 1 0; do OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=2 tfrecord-make --out fail "
                    "--shards 4 photos; done",
                    test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "bad.jpg: not an image");
}

TEST(make_workers_do_not_disturb_each_other)
{
    make_directory(20);
    /* The lock prevents a single run and a worker at the same time, and the same worker twice. */
    const program_result *result = program_run(
        "cd %s; mkdir out; exec 9<out; flock -s 9; tfrecord-make --out out --shards 4 photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "another tfrecord-make is writing to this directory");
    result = program_run(
        "cd %s; tfrecord-make --out out --shards 4 --worker 1/2 photos && exec 9<out/.photos.worker-1-of-2.journal; "
        "flock 9; tfrecord-make --out out --shards 4 --worker 1/2 photos",
        test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "worker 1 of 2 is already running in this directory");
    /* Partial files of other workers are not removed. */
    CHECK_EQ(
        program_run(
            "cd %s; for i in 0 1 2 3; do : > out/photos-train-0000$i-of-00004.tfrecord.partial; done; tfrecord-make "
            "--out out --shards 4 --worker 1/2 photos; ls out/*.partial | wc -l | grep 2",
            test_directory())
            ->exit_code,
        0);
    CHECK_EQ(program_run("cd %s; tfrecord-make --out out --shards 4 photos; ls -A out | grep -e partial -e worker",
                         test_directory())
                 ->exit_code,
             1);
}
