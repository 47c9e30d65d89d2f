/* Samples of the operators of graph/ops/iterator.c. */
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <millrace/ops.h>
#include <millrace/session.h>

/* clang-format off */
SAMPLES(
    {"SerializeIterator", "!resource[]", "", "has not been initialized"},
    {"DeserializeIterator", "!resource[]; variant[]", "", "not the state of an iterator"},
    {"Iterator", "", "shared_name=i; container=; output_types=float; output_shapes=[2]"},
    {"IteratorGetNext", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"IteratorToStringHandle", "!resource[]", ""},
    {"IteratorV2", "", "shared_name=i; container=; output_types=float; output_shapes=[2]"},
    {"IteratorFromStringHandle", "string[]=none", "output_types=float; output_shapes=[2]", "not the handle"},
    {"IteratorFromStringHandleV2", "string[]=none", "output_types=float; output_shapes=[2]", "not the handle"},
    {"IteratorGetNextSync", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"IteratorGetNextAsOptional", "!resource[]", "output_types=float; output_shapes=[2]", "has not been initialized"},
    {"AnonymousIterator", "", "output_types=float; output_shapes=[2]", "cannot be fetched"},
    {"AnonymousIteratorV2", "", "output_types=float; output_shapes=[2]", "cannot be fetched"},
    {"AnonymousIteratorV3", "", "output_types=float; output_shapes=[2]", "cannot be fetched"},
    {"DeleteIterator", "!resource[]; variant[]", "", "cannot be fed"},
    {"MakeIterator", "#variant[]=RangeDataset; !resource[]", ""},
    {"OneShotIterator", "", "dataset_factory=f; output_types=float; output_shapes=[2]"})
/* clang-format on */

typedef struct pipeline {
    mr_output next, state;
    mr_node *start, *restore;
} pipeline;

/* An iterator over the numbers from 0 to stop, whose state is a string. */
static pipeline add_pipeline(mr_graph *g, const char *name, int64_t stop, mr_output saved)
{
    pipeline p = {0};
    mr_node_builder range = mr_node_begin(g, "RangeDataset", nullptr), handle = mr_node_begin(g, "IteratorV2", name);
    mr_node_add_input(&range, mr_constant_int64(g, 0));
    mr_node_add_input(&range, mr_constant_int64(g, stop));
    mr_node_add_input(&range, mr_constant_int64(g, 1));
    mr_node_set_dtypes(&range, "output_types", MR_DTYPES(MR_INT64));
    mr_node_set_shapes(&range, "output_shapes", MR_SHAPES(MR_SCALAR));
    mr_output dataset = mr_node_finish(&range);
    mr_node_set_string(&handle, "shared_name", "");
    mr_node_set_string(&handle, "container", "");
    mr_node_set_dtypes(&handle, "output_types", MR_DTYPES(MR_INT64));
    mr_node_set_shapes(&handle, "output_shapes", MR_SHAPES(MR_SCALAR));
    mr_output iterator = mr_node_finish(&handle);
    p.start = mr_make_iterator(g, dataset, iterator);
    mr_node_builder next = mr_node_begin(g, "IteratorGetNext", nullptr),
                    parse = mr_node_begin(g, "ParseTensor", nullptr);
    mr_node_add_input(&next, iterator);
    mr_node_set_dtypes(&next, "output_types", MR_DTYPES(MR_INT64));
    mr_node_set_shapes(&next, "output_shapes", MR_SHAPES(MR_SCALAR));
    p.next = mr_node_finish(&next);
    p.state = mr_serialize_tensor(g, mr_serialize_iterator(g, iterator));
    mr_node_add_input(&parse, saved);
    mr_node_set_dtype(&parse, "out_type", MR_VARIANT);
    p.restore = mr_deserialize_iterator(g, iterator, mr_node_finish(&parse));
    return p;
}

static int64_t next_of(mr_session *session, const pipeline *p)
{
    mr_error error = {0};
    mr_tensor number = {0};
    CHECK_OK(mr_session_run(session, (mr_feeds){0}, MR_OUTPUTS(p->next), &number, nullptr, 0, &error));
    int64_t value = mr_tensor_int64s(&number)[0];
    mr_tensor_deinit(&number);
    return value;
}

TEST(iterator_state_is_a_variant_that_strings_store)
{
    mr_error error = {0};
    mr_tensor state = {0};
    mr_session *session = nullptr;
    mr_graph *g = mr_graph_new();
    mr_output saved = mr_placeholder(g, MR_STRING, .shape = MR_SCALAR);
    pipeline p = add_pipeline(g, "numbers", 20, saved), other = add_pipeline(g, "others", 30, saved);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_node *starts[] = {p.start, other.start};
    CHECK_OK(mr_session_run(session, (mr_feeds){0}, (mr_outputs){0}, nullptr, starts, 2, &error));
    for (int64_t i = 0; i < 5; i++) CHECK_EQ(next_of(session, &p), i);
    CHECK_OK(mr_session_run(session, (mr_feeds){0}, MR_OUTPUTS(p.state), &state, nullptr, 0, &error));
    for (int64_t i = 5; i < 9; i++) CHECK_EQ(next_of(session, &p), i);
    CHECK_OK(mr_session_run(session, MR_FEEDS({saved, state}), (mr_outputs){0}, nullptr, &p.restore, 1, &error));
    CHECK_EQ(next_of(session, &p), 5);
    mr_status status =
        mr_session_run(session, MR_FEEDS({saved, state}), (mr_outputs){0}, nullptr, &other.restore, 1, &error);
    CHECK_EQ(status, MR_INVALID_ARGUMENT);
    CHECK_EQ(next_of(session, &other), 0);
    mr_tensor_deinit(&state);
    mr_session_free(session);
    mr_graph_free(g);
}
