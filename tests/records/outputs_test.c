/* Output files: only regular files are replaced, and a failed write leaves the existing file unchanged. */
#include "records/io/file.h"
#include "records/io/input_file.h"
#include "records/io/open_file.h"
#include "tests/records/record_data.h"

#include <fcntl.h>
#include <millrace/formats.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static void make_socket(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(name) < sizeof address.sun_path);
    memcpy(address.sun_path, name, strlen(name) + 1);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(descriptor >= 0);
    CHECK_EQ(bind(descriptor, (const struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(close(descriptor), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat about;
    CHECK_EQ(lstat(path, &about), 0);
    return about.st_mode;
}

TEST(file_outputs_replace_regular_files_only)
{
    mr_error error = {0};
    CHECK_EQ(chdir(test_directory()), 0);
    CHECK_EQ(mkfifo("fifo", 0600), 0);
    CHECK_EQ(mkdir("directory", 0700), 0);
    make_socket("socket");
    file_save("source", "x", 1);
    static const char *const names[] = {"fifo", "directory", "socket"};
    for (size_t i = 0; i < 3; i++) {
        mode_t before = mode_of(names[i]);
        CHECK_STATUS(mr_file_replace("source", names[i], &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "not a regular file");
        CHECK_STATUS(mr_file_rename("source", names[i], &error), MR_INVALID_ARGUMENT);
        CHECK_STATUS(mr_file_write_no_sync(names[i], "x", 1, &error), MR_INVALID_ARGUMENT);
        if (i > 0) CHECK(mr_file_write_all(names[i], "x", 1, &error) != MR_OK);
        CHECK_EQ(mode_of(names[i]), before);
    }
    /* A pipe is written directly, whether the output is atomic or not. */
    int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    char text[8] = {0};
    CHECK_OK(mr_file_write_all("fifo", "whole", 5, &error));
    CHECK_EQ(read(reader, text, sizeof text), 5);
    CHECK_STR(text, "whole");
    CHECK_EQ(close(reader), 0);
    CHECK(S_ISFIFO(mode_of("fifo")));
    /* A pipe with the name of the partial file is not a partial file, and the writer does not wait for its reader. */
    CHECK_EQ(mkfifo("new.partial", 0600), 0);
    CHECK_STATUS(mr_file_write_all("new", "x", 1, &error), MR_INVALID_ARGUMENT);
    CHECK(S_ISFIFO(mode_of("new.partial")));
    CHECK_OK(mr_file_write_all("source", "y", 1, &error));
    CHECK_OK(mr_file_write_no_sync("source", "z", 1, &error));
    CHECK(!mr_file_exists("source.partial"));
}

TEST(record_index_does_not_replace_a_pipe)
{
    mr_error error = {0};
    mr_record_index index = {0};
    const char *path = test_path("r.tfrecord");
    record_write(path, 10, 100, (mr_record_writer_options){0});
    CHECK_OK(mr_record_index_build(path, 1, &index, &error));
    CHECK_EQ(mkfifo(test_path("r.tfrecord.index"), 0600), 0);
    CHECK_STATUS(mr_record_index_write(path, &index, &error), MR_INVALID_ARGUMENT);
    CHECK(S_ISFIFO(mode_of(test_path("r.tfrecord.index"))));
    mr_record_index_deinit(&index);
}

TEST(record_writer_makes_no_index_of_a_device)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    for (int atomic = 0; atomic < 2; atomic++) {
        const mr_record_writer_options indexed = {.size = sizeof indexed, .index = true, .atomic = atomic},
                                       plain = {.size = sizeof plain, .atomic = atomic};
        CHECK_STATUS(mr_record_writer_open("/dev/null", &indexed, &writer, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "/dev/null: not a regular file, so it cannot have an index");
        CHECK_OK(mr_record_writer_open("/dev/null", &plain, &writer, &error));
        CHECK_OK(mr_record_writer_append(writer, "x", 1, &error));
        CHECK_OK(mr_record_writer_close(writer, &error));
        CHECK(S_ISCHR(mode_of("/dev/null")));
    }
}

/* In a child process, because limits are permanent. */
static int save_limited(const mr_tensor *tensor)
{
    const struct rlimit limit = {4096, 4096};
    mr_error error = {0};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    if (mr_npy_save(test_path("a.npy"), tensor, &error) != MR_RESOURCE_EXHAUSTED) return 3;
    if (mr_npy_save(test_path("new.npy"), tensor, &error) != MR_RESOURCE_EXHAUSTED) return 4;
    return strstr(error.message, "new.npy") ? 0 : 5;
}

TEST(npy_save_leaves_no_partial_file)
{
    mr_error error = {0};
    mr_tensor small = {0}, large = {0}, loaded = {0};
    CHECK_OK(mr_tensor_init(&small, MR_FLOAT, MR_SHAPE(3), &error));
    CHECK_OK(mr_tensor_init(&large, MR_FLOAT, MR_SHAPE(100, 100), &error));
    mr_tensor_floats(&small)[2] = 7;
    CHECK_OK(mr_npy_save(test_path("a.npy"), &small, &error));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(save_limited(&large));
    int state = 0;
    CHECK_EQ(waitpid(child, &state, 0), child);
    CHECK_EQ(WEXITSTATUS(state), 0);
    CHECK_OK(mr_npy_load(test_path("a.npy"), &loaded, &error));
    CHECK(loaded.shape.rank == 1 && mr_tensor_floats(&loaded)[2] == 7.0f);
    CHECK(!mr_file_exists(test_path("new.npy")));
    CHECK(!mr_file_exists(test_path("a.npy.partial")) && !mr_file_exists(test_path("new.npy.partial")));
    CHECK_OK(mr_npy_save("/dev/null", &small, &error));
    mr_tensor_deinit(&loaded);
    mr_tensor_deinit(&large);
    mr_tensor_deinit(&small);
}

/* Many files are open and idle; then the process's limit is set below their number. */
static int open_under_lower_limit(void)
{
    enum { FILES = 100 };
    mr_record_file *files[FILES];
    mr_error error = {0};
    mr_string record;
    char bytes[200];
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 400 + FILES) return 77;
    for (int i = 0; i < FILES; i++)
        if (mr_record_file_open(test_path("%d", i % 10), &files[i], &error) != MR_OK) return 2;
    if (mr_open_file_count() != FILES) return 3;
    limit.rlim_cur = 40;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 4;
    mr_record_file *more = nullptr;
    if (mr_record_file_open(test_path("3"), &more, &error) != MR_OK) return 5;
    mr_record_file_close(more);
    if (mr_open_file_count() > 40) return 6;
    for (int i = 0; i < FILES; i++)
        if (mr_record_file_read(files[i], 5, bytes, &record, &error) != MR_OK) return 7;
    if (mr_file_write_all(test_path("made"), "x", 1, &error) != MR_OK) return 8;
    for (int i = 0; i < FILES; i++) mr_record_file_close(files[i]);
    return mr_open_file_count() == 0 ? 0 : 9;
}

TEST(open_files_give_way_when_the_limit_is_lowered)
{
    for (int i = 0; i < 10; i++) record_write(test_path("%d", i), 20, 100, (mr_record_writer_options){.index = true});
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(open_under_lower_limit());
    int state = 0;
    CHECK_EQ(waitpid(child, &state, 0), child);
    CHECK(WIFEXITED(state));
    if (WEXITSTATUS(state) == 77) test_skip("the limit of open files is too low");
    CHECK_EQ(WEXITSTATUS(state), 0);
}

/* Extra bytes after the end of a raw deflate stream, at all positions relative to pieces of 256 KiB. */
TEST(raw_deflate_with_trailing_bytes_is_rejected)
{
    enum { SIZE = 600 << 10 };
    unsigned char *plain = malloc(SIZE), *packed = calloc(1, SIZE + (SIZE >> 3));
    uint64_t state = test_seed();
    for (int i = 0; i < SIZE; i++) plain[i] = (unsigned char)((state = state * 6364136223846793005u + 1) >> 56);
    static const int sizes[] = {0, 1, 1000, (256 << 10) - 100, 256 << 10, SIZE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        z_stream zlib = {
            .next_in = plain, .avail_in = (uInt)sizes[i], .next_out = packed, .avail_out = SIZE + (SIZE >> 3)};
        CHECK_EQ(deflateInit2(&zlib, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        CHECK_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
        size_t whole = zlib.total_out;
        (void)deflateEnd(&zlib);
        static const int behind[] = {0, 1, 2, 5000};
        for (size_t j = 0; j < sizeof behind / sizeof *behind; j++) {
            mr_error error = {0};
            mr_input_file *file = nullptr, *part = nullptr;
            uint32_t crc = 0;
            size_t size = whole + (size_t)behind[j];
            memset(packed + whole, 0, (size_t)behind[j]);
            CHECK_OK(mr_input_file_from((mr_string){(char *)packed, size}, "m.zip", &file, &error));
            mr_status status = mr_input_file_inflate(file, 0, size, MR_DEFLATE_RAW, SIZE, "m.zip", &part, &crc, &error);
            CHECK_STATUS(status, j == 0 ? MR_OK : MR_DATA_LOSS);
            if (j > 0) CHECK_CONTAINS(error.message, "extra bytes after the end of the compressed data");
            if (j == 0) CHECK_EQ(crc, crc32(0, plain, (uInt)sizes[i]));
            mr_input_file_close(part);
            mr_input_file_close(file);
        }
    }
    free(packed);
    free(plain);
}
