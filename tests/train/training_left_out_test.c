/* Layers with options that only training uses: an error if training is omitted, so that a forgotten .training is
 * detected; valid if it is false, so that one function can build the graphs of training and evaluation. */
#include "tests/test.h"

#include <millrace/millrace.h>

static void check(mr_graph *g, const char *failure)
{
    mr_error error = {0};
    mr_status status = mr_graph_status(g, &error);
    if (failure == nullptr) {
        CHECK_OK(status);
    } else {
        CHECK_EQ(status, MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, failure);
    }
    mr_graph_free(g);
}

#define LAYER(failure, layer)                                                                                          \
    {                                                                                                                  \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4, 4, 3));                                      \
        (void)layer;                                                                                                   \
        check(g, failure);                                                                                             \
    }

TEST(training_left_out)
{
    LAYER(nullptr, mr_layer_dropout(g, x))
    LAYER(nullptr, mr_layer_dropout(g, x, .training = false, .rate = 0.3f, .seed = 7))
    LAYER(nullptr, mr_layer_dropout(g, x, .training = true, .rate = 0.3f, .seed = 7))
    LAYER("rate has no effect without training", mr_layer_dropout(g, x, .rate = 0.3f))
    LAYER("rate has no effect without training", mr_layer_dropout(g, x, .rate = 0))
    LAYER("seed has no effect without training", mr_layer_dropout(g, x, .seed = 7))
    LAYER("training is 2, but must be true or false", mr_layer_dropout(g, x, .training = 2))
    LAYER("rate is 1.5", mr_layer_dropout(g, x, .training = false, .rate = 1.5f))
    LAYER(nullptr, mr_layer_batch_normalization(g, x))
    LAYER(nullptr, mr_layer_batch_normalization(g, x, .epsilon = 0.1f))
    LAYER(nullptr, mr_layer_batch_normalization(g, x, .training = false, .momentum = 0.9f))
    LAYER(nullptr, mr_layer_batch_normalization(g, x, .training = true, .momentum = 0.9f))
    LAYER("momentum has no effect without training", mr_layer_batch_normalization(g, x, .momentum = 0.9f))
    LAYER("momentum is 1.5", mr_layer_batch_normalization(g, x, .training = true, .momentum = 1.5f))
}
