/* Exchange by DLPack: random tensors against a plain model, reference counts, threads, and structs with one fault. */
#include "base/buffer.h"
#include "base/dlpack.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>

static const mr_dtype dtypes[] = {MR_FLOAT,      MR_DOUBLE, MR_HALF,   MR_BFLOAT16, MR_COMPLEX64,
                                  MR_COMPLEX128, MR_BOOL,   MR_INT8,   MR_INT16,    MR_INT32,
                                  MR_INT64,      MR_UINT8,  MR_UINT16, MR_UINT32,   MR_UINT64};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static atomic_int deleted;

static void count_delete(struct DLManagedTensorVersioned *self)
{
    (void)self;
    deleted++;
}

static void count_delete_unversioned(struct DLManagedTensor *self)
{
    (void)self;
    deleted++;
}

static uint64_t random_state;

static int64_t draw(int64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)below);
}

/* ---- Export, and back ---- */

static mr_tensor numbered(mr_dtype dtype, mr_shape shape)
{
    mr_error error = {0};
    mr_tensor tensor;
    CHECK_OK(mr_tensor_init(&tensor, dtype, shape, &error));
    unsigned char *bytes = tensor.data;
    for (size_t i = 0; i < mr_tensor_size_bytes(&tensor); i++)
        bytes[i] = (unsigned char)(dtype == MR_BOOL ? draw(2) : draw(256));
    return tensor;
}

static mr_shape random_shape(int32_t rank, int64_t size_max)
{
    mr_shape shape = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) shape.dims[i] = draw(12) == 0 ? 0 : 1 + draw(size_max);
    return shape;
}

static void check_equal(const mr_tensor *found, const mr_tensor *expected)
{
    CHECK_EQ(found->dtype, expected->dtype);
    CHECK(mr_shape_equal(found->shape, expected->shape));
    size_t size_bytes = mr_tensor_size_bytes(expected);
    CHECK(size_bytes == 0 || memcmp(found->data, expected->data, size_bytes) == 0);
}

TEST(dlpack_round_trip_shares_the_buffer)
{
    mr_error error = {0};
    random_state = test_seed();
    for (int i = 0; i < 600; i++) {
        mr_tensor tensor = numbered(dtypes[i % DTYPES], random_shape((int32_t)draw(MR_RANK_MAX + 1), 4)), back;
        struct DLManagedTensorVersioned *managed = nullptr;
        CHECK_OK(mr_tensor_to_dlpack(&tensor, &managed, &error));
        CHECK_EQ(managed->major, 1);
        CHECK_EQ(managed->flags, 0);
        CHECK_EQ(managed->tensor.device_type, MR_DLPACK_CPU);
        CHECK_EQ(managed->tensor.rank, tensor.shape.rank);
        bool has_elements = mr_tensor_count(&tensor) > 0;
        CHECK(managed->tensor.data == (has_elements ? tensor.data : nullptr));
        CHECK(!mr_buffer_is_unique(tensor.buffer));
        CHECK_OK(mr_tensor_from_dlpack(managed, &back, &error));
        check_equal(&back, &tensor);
        if (has_elements) CHECK(back.data == tensor.data);
        CHECK(mr_buffer_is_unique(tensor.buffer) == !has_elements);
        mr_tensor_deinit(&tensor);
        if (has_elements) CHECK(!mr_buffer_is_unique(back.buffer)); /* never changed in place */
        mr_tensor_deinit(&back);
    }
}

TEST(dlpack_marks_shared_buffers_as_read_only)
{
    mr_error error = {0};
    mr_tensor tensor = numbered(MR_INT32, MR_SHAPE(6, 2)), rows, back;
    CHECK_OK(mr_tensor_rows(&tensor, 2, 5, &rows, &error));
    struct DLManagedTensorVersioned *managed = nullptr;
    CHECK_OK(mr_tensor_to_dlpack(&rows, &managed, &error));
    CHECK_EQ(managed->flags, MR_DLPACK_READ_ONLY);
    CHECK(managed->tensor.data == rows.data);
    managed->deleter(managed);
    /* The unversioned form has no such mark. */
    struct DLManagedTensor *unversioned = nullptr;
    CHECK_OK(mr_tensor_to_dlpack_unversioned(&rows, &unversioned, &error));
    CHECK(unversioned->tensor.data != rows.data);
    CHECK_OK(mr_tensor_from_dlpack_unversioned(unversioned, &back, &error));
    check_equal(&back, &rows);
    mr_tensor_deinit(&back);
    mr_tensor_deinit(&tensor);
    CHECK_OK(mr_tensor_to_dlpack_unversioned(&rows, &unversioned, &error));
    CHECK(unversioned->tensor.data == rows.data);
    CHECK_OK(mr_tensor_from_dlpack_unversioned(unversioned, &back, &error));
    /* What came from elsewhere is passed on as read-only. */
    CHECK_OK(mr_tensor_to_dlpack(&back, &managed, &error));
    CHECK_EQ(managed->flags, MR_DLPACK_READ_ONLY);
    managed->deleter(managed);
    mr_tensor_deinit(&back);
    CHECK(mr_buffer_is_unique(rows.buffer));
    mr_tensor_deinit(&rows);
}

TEST(dlpack_refuses_tensors_that_it_cannot_describe)
{
    mr_error error = {0};
    struct DLManagedTensorVersioned *managed = nullptr;
    struct DLManagedTensor *unversioned = nullptr;
    mr_tensor empty = {0}, string = {0};
    float number = 0;
    mr_tensor borrowed = {.dtype = MR_FLOAT, .shape = MR_SCALAR, .data = &number};
    CHECK_OK(mr_tensor_init_string(&string, MR_STR("a"), &error));
    CHECK_STATUS(mr_tensor_to_dlpack(&empty, &managed, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack(&borrowed, &managed, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack(&string, &managed, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "string");
    CHECK(managed == nullptr);
    CHECK_STATUS(mr_tensor_to_dlpack_unversioned(&empty, &unversioned, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack_unversioned(&borrowed, &unversioned, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack_unversioned(&string, &unversioned, &error), MR_UNIMPLEMENTED);
    CHECK(unversioned == nullptr);
    CHECK_STATUS(mr_tensor_to_dlpack(nullptr, &managed, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack(&string, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack_unversioned(nullptr, &unversioned, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_to_dlpack_unversioned(&string, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_from_dlpack(nullptr, &empty, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_tensor_from_dlpack_unversioned(nullptr, &empty, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&string);
}

/* ---- Import of any strides ---- */

/* A view of bytes: element (i, j, …) is at bytes + offset + sum of index × step. */
typedef struct view {
    mr_dtype dtype;
    mr_shape shape;
    int64_t strides[MR_RANK_MAX]; /* in elements */
    unsigned char *bytes;         /* allocated */
    int64_t offset_bytes;         /* of the element whose indices are all 0 */
} view;

/* Steps over the elements of a larger array, in random order of dimensions, forwards or backwards, or 0. */
static view random_view(mr_dtype dtype)
{
    view v = {.dtype = dtype, .shape = random_shape((int32_t)draw(5), 4)};
    int64_t size = (int64_t)mr_dtype_size(dtype), stride = 1, low = 0, high = 0;
    int32_t order[MR_RANK_MAX], rank = v.shape.rank;
    bool is_plain = draw(4) == 0;
    for (int32_t i = 0; i < rank; i++) order[i] = i;
    for (int32_t i = rank; i-- > 1 && !is_plain;) {
        int32_t j = (int32_t)draw(i + 1), k = order[i];
        order[i] = order[j];
        order[j] = k;
    }
    for (int32_t i = rank; i-- > 0;) {
        int64_t count = v.shape.dims[order[i]], gap = is_plain ? 1 : 1 + draw(2);
        int64_t way = is_plain ? 1 : draw(8) == 0 ? 0 : draw(3) == 0 ? -1 : 1;
        v.strides[order[i]] = way * stride * gap;
        int64_t extent = v.strides[order[i]] * (count > 0 ? count - 1 : 0);
        *(extent < 0 ? &low : &high) += extent;
        if (count > 0) stride *= count * gap;
    }
    int64_t misalignment = draw(6) == 0 ? 1 : 0;
    v.offset_bytes = -low * size + misalignment;
    size_t total = (size_t)((high - low + 1) * size + misalignment);
    v.bytes = malloc(total);
    CHECK(v.bytes != nullptr);
    for (size_t i = 0; i < total; i++) v.bytes[i] = (unsigned char)(dtype == MR_BOOL ? draw(2) : draw(256));
    return v;
}

static mr_dlpack_tensor tensor_of(view *v, bool has_offset)
{
    uint8_t code = 0;
    CHECK(mr_dlpack_dtype_code(v->dtype, &code));
    return (mr_dlpack_tensor){.data = has_offset ? v->bytes : v->bytes + v->offset_bytes,
                              .device_type = MR_DLPACK_CPU,
                              .rank = v->shape.rank,
                              .code = code,
                              .bits = (uint8_t)(8 * mr_dtype_size(v->dtype)),
                              .lanes = 1,
                              .dims = v->shape.dims,
                              .strides = v->strides,
                              .byte_offset = has_offset ? (uint64_t)v->offset_bytes : 0};
}

static void check_view(const view *v, const mr_tensor *found)
{
    size_t size = mr_dtype_size(v->dtype);
    CHECK_EQ(found->dtype, v->dtype);
    CHECK(mr_shape_equal(found->shape, v->shape));
    for (int64_t i = 0; i < mr_shape_count(v->shape); i++) {
        int64_t rest = i, at = 0;
        for (int32_t d = v->shape.rank; d-- > 0; rest /= v->shape.dims[d])
            at += rest % v->shape.dims[d] * v->strides[d];
        CHECK(memcmp((char *)found->data + (size_t)i * size, v->bytes + v->offset_bytes + at * (int64_t)size, size) ==
              0);
    }
}

TEST(dlpack_import_equals_a_model)
{
    mr_error error = {0};
    random_state = test_seed();
    int copies = 0, references = 0;
    for (int i = 0; i < 3000; i++) {
        view v = random_view(dtypes[draw(DTYPES)]);
        mr_tensor tensor;
        deleted = 0;
        struct DLManagedTensorVersioned versioned = {
            .major = 1, .minor = 7, .deleter = count_delete, .flags = 6, .tensor = tensor_of(&v, draw(2) == 0)};
        struct DLManagedTensor unversioned = {.deleter = count_delete_unversioned, .tensor = versioned.tensor};
        if (draw(2) == 0)
            CHECK_OK(mr_tensor_from_dlpack(&versioned, &tensor, &error));
        else
            CHECK_OK(mr_tensor_from_dlpack_unversioned(&unversioned, &tensor, &error));
        check_view(&v, &tensor);
        bool is_copy = tensor.data != v.bytes + v.offset_bytes;
        CHECK_EQ(deleted, is_copy);
        copies += is_copy;
        references += !is_copy;
        mr_tensor more = mr_tensor_ref(&tensor);
        mr_tensor_deinit(&tensor);
        CHECK_EQ(deleted, is_copy);
        mr_tensor_deinit(&more);
        CHECK_EQ(deleted, 1);
        free(v.bytes);
    }
    CHECK(copies > 100 && references > 100);
}

/* ---- Structs with one fault ---- */

static int64_t dims[13] = {2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static int64_t strides[13] = {3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static float elements[6];

static struct DLManagedTensorVersioned good(void)
{
    dims[0] = 2;
    dims[1] = 3;
    strides[0] = 3;
    strides[1] = 1;
    return (struct DLManagedTensorVersioned){.major = 1,
                                             .deleter = count_delete,
                                             .tensor = {.data = elements,
                                                        .device_type = MR_DLPACK_CPU,
                                                        .rank = 2,
                                                        .code = MR_DLPACK_FLOAT,
                                                        .bits = 32,
                                                        .lanes = 1,
                                                        .dims = dims,
                                                        .strides = strides}};
}

static void check_refused(struct DLManagedTensorVersioned managed, mr_status status, const char *text)
{
    mr_error error = {0};
    mr_tensor tensor = {.dtype = MR_FLOAT};
    deleted = 0;
    CHECK_STATUS(mr_tensor_from_dlpack(&managed, &tensor, &error), status);
    CHECK_CONTAINS(error.message, text);
    CHECK(tensor.buffer == nullptr && tensor.dtype == MR_DTYPE_INVALID);
    struct DLManagedTensor unversioned = {.deleter = count_delete_unversioned, .tensor = managed.tensor};
    if (managed.major == 1) CHECK_STATUS(mr_tensor_from_dlpack_unversioned(&unversioned, &tensor, &error), status);
    CHECK_EQ(deleted, 0);
}

#define REFUSED(status, text, ...)                                                                                     \
    do {                                                                                                               \
        struct DLManagedTensorVersioned m = good();                                                                    \
        __VA_ARGS__;                                                                                                   \
        check_refused(m, (status), (text));                                                                            \
    } while (0)

TEST(dlpack_refuses_invalid_structs)
{
    mr_error error = {0};
    mr_tensor tensor;
    struct DLManagedTensorVersioned valid = good();
    CHECK_OK(mr_tensor_from_dlpack(&valid, &tensor, &error));
    CHECK(tensor.data == elements);
    mr_tensor_deinit(&tensor);
    REFUSED(MR_INVALID_ARGUMENT, "major version 0", m.major = 0);
    REFUSED(MR_INVALID_ARGUMENT, "major version 2", m.major = 2);
    REFUSED(MR_INVALID_ARGUMENT, "ndim is -1", m.tensor.rank = -1);
    REFUSED(MR_INVALID_ARGUMENT, "ndim is -2147483648", m.tensor.rank = INT32_MIN);
    REFUSED(MR_UNIMPLEMENTED, "ndim is 13", m.tensor.rank = 13);
    REFUSED(MR_UNIMPLEMENTED, "ndim is 2147483647", m.tensor.rank = INT32_MAX);
    REFUSED(MR_INVALID_ARGUMENT, "shape is null", m.tensor.dims = nullptr);
    REFUSED(MR_INVALID_ARGUMENT, "dimension 1 has size -3", dims[1] = -3);
    REFUSED(MR_INVALID_ARGUMENT, "dimension 0 has size -9223372036854775808", dims[0] = INT64_MIN);
    REFUSED(MR_INVALID_ARGUMENT, "too many elements", dims[0] = dims[1] = INT64_MAX);
    REFUSED(MR_INVALID_ARGUMENT, "too many elements", dims[0] = INT64_MAX / 3);
    REFUSED(MR_INVALID_ARGUMENT, "data is null", m.tensor.data = nullptr);
    REFUSED(MR_INVALID_ARGUMENT, "byte_offset", m.tensor.byte_offset = UINT64_MAX);
    REFUSED(MR_INVALID_ARGUMENT, "strides", strides[0] = INT64_MAX);
    REFUSED(MR_INVALID_ARGUMENT, "strides", strides[0] = INT64_MIN);
    REFUSED(MR_INVALID_ARGUMENT, "strides", strides[0] = INT64_MAX / 4);
    REFUSED(MR_INVALID_ARGUMENT, "strides", strides[1] = INT64_MIN / 16);
    REFUSED(MR_UNIMPLEMENTED, "code 3", m.tensor.code = 3);
    REFUSED(MR_UNIMPLEMENTED, "code 255", m.tensor.code = 255);
    REFUSED(MR_UNIMPLEMENTED, "8 bits", m.tensor.bits = 8);
    REFUSED(MR_UNIMPLEMENTED, "0 bits", m.tensor.bits = 0);
    REFUSED(MR_UNIMPLEMENTED, "4 lanes", m.tensor.lanes = 4);
    REFUSED(MR_UNIMPLEMENTED, "0 lanes", m.tensor.lanes = 0);
    REFUSED(MR_UNIMPLEMENTED, "device type 10", m.tensor.device_type = 10);
    REFUSED(MR_UNIMPLEMENTED, "device type -1", m.tensor.device_type = -1);
    REFUSED(MR_UNAVAILABLE, "", (m.tensor.device_type = MR_DLPACK_CUDA, m.tensor.device_id = -1));
    REFUSED(MR_UNAVAILABLE, "", (m.tensor.device_type = MR_DLPACK_CUDA, m.tensor.device_id = INT32_MAX));
    unsigned char bools[6] = {0, 1, 1, 0, 2, 1};
    REFUSED(MR_INVALID_ARGUMENT, "element 4 is a bool with the value 2",
            (m.tensor.code = MR_DLPACK_BOOL, m.tensor.bits = 8, m.tensor.data = bools));
    REFUSED(MR_INVALID_ARGUMENT, "is a bool with the value 2",
            (m.tensor.code = MR_DLPACK_BOOL, m.tensor.bits = 8, m.tensor.data = bools, strides[0] = 1, strides[1] = 2));
}

TEST(dlpack_allows_what_the_specification_leaves_open)
{
    mr_error error = {0};
    mr_tensor tensor;
    struct DLManagedTensorVersioned m = good();
    m.tensor.strides = nullptr;
    m.deleter = nullptr;
    CHECK_OK(mr_tensor_from_dlpack(&m, &tensor, &error));
    CHECK(tensor.data == elements);
    mr_tensor_deinit(&tensor);
    m = good(); /* sizes and strides of an empty tensor do not matter, nor does the stride of a size of 1 */
    m.tensor.data = nullptr;
    dims[0] = 0;
    strides[1] = INT64_MAX;
    CHECK_OK(mr_tensor_from_dlpack(&m, &tensor, &error));
    CHECK_EQ(mr_tensor_count(&tensor), 0);
    mr_tensor_deinit(&tensor);
    m = good();
    dims[0] = 1;
    strides[0] = INT64_MIN;
    CHECK_OK(mr_tensor_from_dlpack(&m, &tensor, &error));
    CHECK(tensor.data == elements);
    mr_tensor_deinit(&tensor);
    m = good();
    m.tensor.rank = 0;
    m.tensor.dims = m.tensor.strides = nullptr;
    m.tensor.device_type = MR_DLPACK_CUDA_HOST;
    CHECK_OK(mr_tensor_from_dlpack(&m, &tensor, &error));
    CHECK_EQ(mr_tensor_rank(&tensor), 0);
    mr_tensor_deinit(&tensor);
}

/* ---- Lack of memory, threads ---- */

TEST(dlpack_without_memory_changes_nothing)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_tensor whole = numbered(MR_INT32, MR_SHAPE(4, 3)), rows, back;
    CHECK_OK(mr_tensor_rows(&whole, 0, 2, &rows, &error));
    struct DLManagedTensorVersioned *managed = nullptr;
    struct DLManagedTensor *unversioned = nullptr;
    test_fail_allocation(test_allocations() + 1);
    CHECK_STATUS(mr_tensor_to_dlpack(&whole, &managed, &error), MR_RESOURCE_EXHAUSTED);
    for (int i = 1; i <= 2; i++) {
        test_fail_allocation(test_allocations() + i);
        CHECK_STATUS(mr_tensor_to_dlpack_unversioned(&rows, &unversioned, &error), MR_RESOURCE_EXHAUSTED);
    }
    mr_tensor_deinit(&rows);
    CHECK(mr_buffer_is_unique(whole.buffer));
    for (int is_strided = 0; is_strided < 2; is_strided++)
        for (int i = 1; i <= 2 - is_strided; i++) {
            struct DLManagedTensorVersioned m = good();
            if (is_strided) strides[0] = -3;
            m.tensor.data = elements + (is_strided ? 3 : 0);
            deleted = 0;
            test_fail_allocation(test_allocations() + i);
            CHECK_STATUS(mr_tensor_from_dlpack(&m, &back, &error), MR_RESOURCE_EXHAUSTED);
            CHECK_EQ(deleted, 0);
            CHECK_OK(mr_tensor_from_dlpack(&m, &back, &error));
            mr_tensor_deinit(&back);
            CHECK_EQ(deleted, 1);
        }
    mr_tensor_deinit(&whole);
}

/* Exports, imports and releases the same tensor concurrently. */
static void *exchange(void *context)
{
    const mr_tensor *tensor = context;
    mr_error error = {0};
    for (int i = 0; i < 2000; i++) {
        struct DLManagedTensorVersioned *managed = nullptr;
        mr_tensor back;
        CHECK_OK(mr_tensor_to_dlpack(tensor, &managed, &error));
        if (i % 3 == 0) {
            managed->deleter(managed);
            continue;
        }
        CHECK_OK(mr_tensor_from_dlpack(managed, &back, &error));
        CHECK_EQ(mr_tensor_int32s(&back)[5], mr_tensor_int32s(tensor)[5]);
        mr_tensor_deinit(&back);
    }
    return nullptr;
}

TEST(dlpack_is_thread_safe)
{
    mr_tensor tensor = numbered(MR_INT32, MR_SHAPE(2, 3));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, exchange, &tensor), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
    CHECK(mr_buffer_is_unique(tensor.buffer));
    mr_tensor_deinit(&tensor);
}
