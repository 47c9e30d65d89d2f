/* Samples and tests of the operators of graph/ops/random.c, random_stateless.c and candidate.c. The numbers themselves
 * are compared with TensorFlow's by the oracle. */
#include "graph/state/state.h"
#include "tests/ops/run.h"
#include "tests/ops/sample.h"
#include <millrace/ops.h>
#include <millrace/session.h>

/* clang-format off */
SAMPLES(
    {"NonDeterministicInts", "int64[2]=2,3", ""},
    {"StatefulRandomBinomial", "@int64[3]; int64[]=1; int32[2]=3,2; double[2]=5,20; double[2]", ""},
    {"StatefulStandardNormal", "@int64[4]=1; int64[2]=2,3", ""},
    {"StatefulStandardNormalV2", "@int64[3]; int64[]=1; int64[2]=2,3", ""},
    {"StatefulTruncatedNormal", "@int64[3]; int64[]=1; int64[2]=2,3", ""},
    {"StatefulUniform", "@int64[3]; int64[]=1; int64[2]=2,3", ""},
    {"StatefulUniformFullInt", "@int64[3]; int64[]=1; int64[2]=2,3", ""},
    {"StatefulUniformInt", "@int64[3]; int64[]=1; int64[2]=2,3; int64[]=0; int64[]=9", ""},
    {"Multinomial", "float[2,3]; int32[]=4", ""},
    {"ParameterizedTruncatedNormal", "int32[2]=2,3; float[]=0; float[2]=1,2; float[]=-1; float[2]=1,5", ""},
    {"RandomCrop", "float[5,4,3]; int64[2]=3,2", ""},
    {"RandomGamma", "int32[2]=2,3; float[2]=1,2", ""},
    {"RandomGammaGrad", "float[2,3]=1,2; float[3]=1,3", ""},
    {"RandomPoisson", "int32[2]=2,3; float[2]=1,12", ""},
    {"RandomPoissonV2", "int32[2]=2,3; float[2]=1,12", "dtype=int64"},
    {"RandomShuffle", "float[4,3]", ""},
    {"RandomStandardNormal", "int32[2]=2,3", "dtype=float"},
    {"RandomUniform", "int32[2]=2,3", "dtype=float"},
    {"RandomUniformInt", "int32[2]=2,3; int32[]=0; int32[]=9", ""},
    {"TruncatedNormal", "int32[2]=2,3", "dtype=double"},

    {"StatelessMultinomial", "float[2,3]; int32[]=4; int64[2]=1,2", ""},
    {"StatelessRandomGetAlg", "", ""},
    {"StatelessRandomGetKeyCounter", "int64[2]=1,2", ""},
    {"StatelessRandomGetKeyCounterAlg", "int64[2]=1,2", ""},
    {"StatelessRandomNormal", "int32[2]=2,3; int64[2]=1,2", ""},
    {"StatelessRandomNormalV2", "int32[2]=2,3; uint64[1]=5; uint64[2]=1,2; int32[]=1", ""},
    {"StatelessRandomGammaV2", "int32[2]=3,2; int32[2]=1,2; float[2]=1,2", ""},
    {"StatelessRandomGammaV3", "int32[2]=3,2; uint64[1]; uint64[2]; int32[]=1; float[2]=1,2", ""},
    {"StatelessRandomPoisson", "int32[2]=3,2; int32[2]=1,2; float[2]=1,2", "dtype=int32"},
    {"StatelessRandomBinomial", "int32[2]=3,2; int32[2]=1,2; float[2]=5,20; float[2]", ""},
    {"RngReadAndSkip", "@int64[3]; int32[]=1; uint64[]=4", ""},
    {"RngSkip", "@int64[3]; int64[]=1; int64[]=4", ""},
    {"StatelessRandomUniform", "int32[2]=2,3; int32[2]=1,2", "dtype=half"},
    {"StatelessRandomUniformFullInt", "int32[2]=2,3; int64[2]=1,2", "dtype=int32"},
    {"StatelessRandomUniformFullIntV2", "int32[2]=2,3; uint64[1]=5; uint64[2]=1,2; int32[]=3", ""},
    {"StatelessRandomUniformInt", "int32[2]=2,3; int64[2]=1,2; int64[]=0; int64[]=9", ""},
    {"StatelessRandomUniformIntV2", "int32[2]=2,3; uint64[1]=5; uint64[2]=1,2; int32[]=1; int32[]=0; int32[]=9", ""},
    {"StatelessRandomUniformV2", "int32[2]=2,3; uint64[1]=5; uint64[2]=1,2; int32[]=1", ""},
    {"StatelessTruncatedNormal", "int32[2]=2,3; int64[2]=1,2", ""},
    {"StatelessTruncatedNormalV2", "int32[2]=2,3; uint64[1]=5; uint64[2]=1,2; int32[]=1", ""},

    {"AllCandidateSampler", "int64[2,3]=0,1,2", "num_true=3; num_sampled=4; unique=true"},
    {"ComputeAccidentalHits", "int64[2,3]=0,1,2; int64[4]=5,1,0,7", "num_true=3"},
    {"FixedUnigramCandidateSampler", "int64[2,3]=0",
     "num_true=3; num_sampled=1; unique=true; range_max=1; unigrams=2"},
    {"LearnedUnigramCandidateSampler", "int64[2,3]=0,1,2", "num_true=3; num_sampled=4; unique=true; range_max=9"},
    {"LogUniformCandidateSampler", "int64[2,3]=0,1,2", "num_true=3; num_sampled=4; unique=false; range_max=9"},
    {"ThreadUnsafeUnigramCandidateSampler", "int64[2,3]=0,1,2", "num_true=3; num_sampled=4; unique=false; range_max=9"},
    {"UniformCandidateSampler", "int64[2,3]=0,1,2", "num_true=3; num_sampled=4; unique=true; range_max=9"})
/* clang-format on */

/* Without seeds, the session's seeds are used; the sampler then also continues where the last run ended. */
TEST(random_candidates_are_different_and_counted)
{
    mr_tensor outputs[3];
    mr_error error = {0};
    mr_tensor trues = {0};
    CHECK_OK(mr_tensor_init_copy(&trues, MR_INT64, MR_SHAPE(2, 1), (int64_t[]){0, 3}, &error));
    (void)kept(trues);
    run_op(&(op_run){.op = "UniformCandidateSampler",
                     .inputs = {trues},
                     .attrs = {{"num_true", 'i', .ints = {1}},
                               {"num_sampled", 'i', .ints = {5}},
                               {"unique", 'b', .ints = {1}},
                               {"range_max", 'i', .ints = {5}},
                               {"seed", 'i', .ints = {3}}},
                     .output_count = 3,
                     .output_dtypes = {MR_INT64, MR_FLOAT, MR_FLOAT}},
           outputs);
    unsigned seen = 0;
    for (int i = 0; i < 5; i++) seen |= 1u << ((const int64_t *)outputs[0].data)[i];
    CHECK_EQ(seen, 31u);
    run_op(&(op_run){.op = "LogUniformCandidateSampler",
                     .inputs = {trues},
                     .attrs = {{"num_true", 'i', .ints = {1}},
                               {"num_sampled", 'i', .ints = {5}},
                               {"unique", 'b', .ints = {1}},
                               {"range_max", 'i', .ints = {3}}},
                     .output_count = 3,
                     .output_dtypes = {MR_INT64, MR_FLOAT, MR_FLOAT},
                     .expect_error = "Sampler's range is too small."},
           outputs);
}

/* In later runs the classes of earlier runs are more probable: (1 + 3) / (4 + 3) after one run, (1 + 6) / (4 + 6) after
 * two. */
TEST(random_learned_sampler_learns_in_a_session)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_tensor trues = {0};
    CHECK_OK(mr_tensor_init_copy(&trues, MR_INT64, MR_SHAPE(3, 1), (int64_t[]){2, 2, 2}, &error));
    mr_output classes = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(3, 1));
    mr_node_builder builder = mr_node_begin(g, "LearnedUnigramCandidateSampler", "sampler");
    mr_node_add_input(&builder, classes);
    mr_node_set_int(&builder, "num_true", 1);
    mr_node_set_int(&builder, "num_sampled", 1);
    mr_node_set_bool(&builder, "unique", false);
    mr_node_set_int(&builder, "range_max", 4);
    mr_output sampler = mr_node_finish(&builder);
    sampler.index = 1;
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    const float expected[3] = {1.0f / 4, 4.0f / 7, 7.0f / 10};
    for (int run = 0; run < 3; run++) {
        mr_tensor counts = {0};
        CHECK_OK(mr_session_run(session, MR_FEEDS({classes, trues}), MR_OUTPUTS(sampler), &counts, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&counts)[0] == expected[run]);
        mr_tensor_deinit(&counts);
    }
    mr_tensor_deinit(&trues);
    mr_session_free(session);
    mr_graph_free(g);
}
