/* ArgMax and ArgMin with every output type. The output sizes are chosen so that elements of a wider type would overflow
 * the output buffer. */
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

static int64_t element(const mr_tensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case MR_INT16:
        return ((const int16_t *)tensor->data)[i];
    case MR_UINT16:
        return ((const uint16_t *)tensor->data)[i];
    case MR_INT32:
        return mr_tensor_int32s(tensor)[i];
    default:
        return mr_tensor_int64s(tensor)[i];
    }
}

static void check(mr_dtype dtype, bool largest, int64_t rows)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3)), axis = mr_constant_int32(g, 1);
    mr_output index =
        largest ? mr_arg_max(g, x, axis, .output_type = dtype) : mr_arg_min(g, x, axis, .output_type = dtype);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 2), &session, &error));
    mr_tensor value = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&value, MR_FLOAT, MR_SHAPE(rows, 3), &error));
    for (int64_t i = 0; i < 3 * rows; i++) mr_tensor_floats(&value)[i] = (i % 3 == i / 3 % 3) == largest;
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, value}), MR_OUTPUTS(index), &result, nullptr, 0, &error));
    CHECK_EQ(result.dtype, dtype);
    for (int64_t i = 0; i < rows; i++) CHECK_EQ(element(&result, i), i % 3);
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(arg_max_writes_its_output_type)
{
    static const mr_dtype dtypes[] = {MR_INT16, MR_UINT16, MR_INT32, MR_INT64};
    static const int64_t rows[] = {0, 1, 12, 2000};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            check(dtypes[i], true, rows[j]);
            if (dtypes[i] == MR_INT32 || dtypes[i] == MR_INT64) check(dtypes[i], false, rows[j]);
        }
}
