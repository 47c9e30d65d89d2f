/* Read-ahead: every way of reading returns the same bytes, from the page cache or not, with and without io_uring. */
#include "records/io/read_ring.h"
#include "tests/records/record_data.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static constexpr size_t SIZE = 1'000'003;

static unsigned char byte_at(size_t offset)
{
    return (unsigned char)(offset * 2654435761u >> 24 ^ offset);
}

static const char *make_file(void)
{
    const char *path = test_path("bytes");
    unsigned char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) bytes[i] = byte_at(i);
    file_save(path, bytes, SIZE);
    free(bytes);
    return path;
}

/* Drops the file from the page cache, if the file system supports it. */
static int open_cold(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(descriptor >= 0);
    CHECK_EQ(fsync(descriptor), 0);
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    return descriptor;
}

static bool uring_is_there(void)
{
    struct io_uring uring;
    if (io_uring_queue_init(2, &uring, 0) != 0) return false;
    io_uring_queue_exit(&uring);
    return true;
}

/* As in many containers: the system calls of io_uring fail. */
static void forbid_uring(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_io_uring_setup, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_io_uring_register, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Reads the complete file, keeping some bytes at each boundary; returns whether it ever read ahead. */
static bool read_whole(const char *path, mr_read_options options)
{
    mr_error error = {0};
    mr_read_ring *ring = nullptr;
    int descriptor = open_cold(path);
    bool was_ahead = false;
    CHECK_OK(mr_read_ring_open(descriptor, path, &options, &ring, &error));
    CHECK(mr_read_ring_is_seekable(ring));
    char *bytes = nullptr;
    size_t offset = 0, kept = 0, size;
    for (int round = 0;; round++) {
        const char *tail = kept > 0 ? bytes : nullptr;
        CHECK_OK(mr_read_ring_next(ring, tail, kept, &bytes, &size, &error));
        for (size_t i = 0; i < size; i++) CHECK_EQ((unsigned char)bytes[i], byte_at(offset + i));
        was_ahead |= mr_read_ring_is_ahead(ring);
        if (size == kept) break;
        size_t wanted = (size_t)round * 1237 % 6000;
        if (wanted > mr_read_ring_headroom(ring)) wanted = mr_read_ring_headroom(ring);
        kept = wanted < size ? wanted : size;
        offset += size - kept;
        bytes += size - kept;
    }
    CHECK_EQ(offset + kept, SIZE);
    CHECK_EQ(mr_read_ring_offset(ring), SIZE);
    mr_read_ring_free(ring);
    close(descriptor);
    return was_ahead;
}

static void read_in_every_way(const char *path)
{
    const size_t blocks[] = {0, 1, 8192, 100'000};
    for (size_t i = 0; i < 4; i++)
        for (int32_t count = 1; count <= 5; count += 2) {
            (void)read_whole(path, (mr_read_options){.block_bytes = blocks[i], .count = count});
            (void)read_whole(path, (mr_read_options){.block_bytes = blocks[i], .count = count, .direct = true});
        }
}

TEST(read_ring_reads_the_file)
{
    read_in_every_way(make_file());
}

TEST(read_ring_reads_the_file_without_io_uring)
{
    setenv("MILLRACE_IO_URING", "off", 1);
    const char *path = make_file();
    read_in_every_way(path);
    CHECK(!read_whole(path, (mr_read_options){.block_bytes = 65536, .direct = true}));
}

TEST(read_ring_reads_the_file_where_io_uring_is_forbidden)
{
    forbid_uring();
    CHECK(!uring_is_there());
    const char *path = make_file();
    read_in_every_way(path);
    CHECK(!read_whole(path, (mr_read_options){.block_bytes = 65536, .direct = true}));
}

TEST(read_ring_reads_ahead_what_is_not_cached)
{
    if (!uring_is_there()) test_skip("io_uring is not allowed here");
    const char *path = make_file();
    int descriptor = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (descriptor < 0) test_skip("no O_DIRECT on this file system");
    close(descriptor);
    CHECK(read_whole(path, (mr_read_options){.block_bytes = 65536, .direct = true}));
}

TEST(read_ring_copies_and_seeks)
{
    const char *path = make_file();
    for (int way = 0; way < 4; way++) {
        mr_error error = {0};
        mr_read_ring *ring = nullptr;
        int descriptor = way & 1 ? open_cold(path) : open(path, O_RDONLY | O_CLOEXEC);
        CHECK_OK(mr_read_ring_open(descriptor, path, &(mr_read_options){.block_bytes = 8192, .direct = way >= 2}, &ring,
                                   &error));
        static char target[50'000];
        uint32_t state = (uint32_t)test_seed() + (uint32_t)way;
        size_t offset = 0, done, size;
        for (int round = 0; round < 400; round++) {
            state = state * 1664525 + 1013904223;
            if (state >> 28 == 0) mr_read_ring_seek(ring, offset = (state >> 4) % (SIZE + 100));
            size_t wanted = (state >> 8) % sizeof target;
            size_t left = offset < SIZE ? SIZE - offset : 0, expected = wanted < left ? wanted : left;
            if (state >> 31) {
                CHECK_OK(mr_read_ring_copy(ring, target, wanted, &done, &error));
                CHECK(done <= expected && (done > 0) == (expected > 0));
                for (size_t i = 0; i < done; i++) CHECK_EQ((unsigned char)target[i], byte_at(offset + i));
                offset += done;
            } else {
                char *bytes;
                CHECK_OK(mr_read_ring_next(ring, nullptr, 0, &bytes, &size, &error));
                CHECK(size <= left && (size > 0 || left == 0));
                for (size_t i = 0; i < size; i++) CHECK_EQ((unsigned char)bytes[i], byte_at(offset + i));
                offset += size;
            }
            if (offset >= SIZE) mr_read_ring_seek(ring, offset = 0);
        }
        mr_read_ring_free(ring);
        close(descriptor);
    }
}

TEST(read_ring_ends_where_a_file_was_cut_meanwhile)
{
    const char *path = make_file();
    for (int direct = 0; direct < 2; direct++) {
        mr_error error = {0};
        mr_read_ring *ring = nullptr;
        int descriptor = open_cold(path);
        CHECK_OK(mr_read_ring_open(descriptor, path, &(mr_read_options){.block_bytes = 8192, .direct = direct}, &ring,
                                   &error));
        char *bytes;
        size_t size, offset = 0;
        for (int i = 0; i < 3; i++) {
            CHECK_OK(mr_read_ring_next(ring, nullptr, 0, &bytes, &size, &error));
            offset += size;
        }
        CHECK_EQ(truncate(path, 70'001 - direct * 20'000), 0);
        do {
            CHECK_OK(mr_read_ring_next(ring, nullptr, 0, &bytes, &size, &error));
            offset += size;
        } while (size > 0);
        /* Reads that were started before the file was truncated may still return data. */
        CHECK(offset >= 50'001 && offset <= 24'576 + 5 * 8192 + 70'001);
        mr_read_ring_free(ring);
        close(descriptor);
    }
}
