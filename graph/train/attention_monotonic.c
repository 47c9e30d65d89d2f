/* Attention that only moves forward: where it stops depends on where it has stopped before. */
#include "graph/train/attention.h"
#include <millrace/ops.h>

/* The smallest normal number. */
static double tiny(mr_dtype dtype)
{
    return dtype == MR_DOUBLE ? 0x1p-1022 : dtype == MR_HALF ? 0x1p-14 : 0x1p-126;
}

static mr_output number(mr_graph *graph, const mr_attention *a, double value)
{
    return mr_train_scalar(graph, "Const", a->dtype, value);
}

static mr_output clip(mr_graph *graph, const mr_attention *a, mr_output value, double min)
{
    return mr_clip_by_value(graph, value, number(graph, a, min), number(graph, a, 1), .name = "clip_by_value");
}

/* The probability that attention passes all places before each one, from the probabilities that it passes each: the
 * product as the sum of logarithms. */
static mr_output pass_all(mr_graph *graph, const mr_attention *a, mr_output passes, mr_output axis)
{
    mr_graph_push_scope(graph, "SafeCumprod");
    mr_output logarithms = mr_log(graph, clip(graph, a, passes, tiny(a->dtype)), .name = "Log");
    mr_output all = mr_exp(graph, mr_cumsum(graph, logarithms, axis, .exclusive = true, .name = "Cumsum"));
    mr_graph_pop_scope(graph);
    return all;
}

mr_output mr_attention_monotonic(mr_graph *graph, const mr_attention *a, mr_output score, mr_output previous)
{
    mr_output axis = mr_constant_int32(graph, 1), one = number(graph, a, 1);
    if (a->sigmoid_noise > 0) {
        int64_t first = 0, second = 0;
        mr_train_seed_pair(graph, a->sigmoid_noise_seed, &first, &second);
        mr_output noise = mr_random_standard_normal(graph, mr_shape_of(graph, score), a->dtype, .seed = first,
                                                    .seed2 = second, .name = "random_normal/RandomStandardNormal");
        score = mr_add_v2(graph, score, mr_mul(graph, number(graph, a, (double)a->sigmoid_noise), noise));
    }
    if (a->monotonic == MR_MONOTONIC_HARD) {
        mr_output stops = mr_cast(graph, mr_greater(graph, score, number(graph, a, 0)), a->dtype);
        stops = mr_mul(graph, stops, mr_cumsum(graph, previous, axis)); /* not before the place of the last step */
        mr_output passes = mr_cumprod(graph, mr_sub(graph, one, stops), axis, .exclusive = true);
        return mr_mul(graph, stops, passes, .name = "alignments");
    }
    mr_output stops = mr_sigmoid(graph, score, .name = "Sigmoid");
    mr_output passes = pass_all(graph, a, mr_sub(graph, one, stops), axis);
    mr_output begins = mr_real_div(graph, previous, clip(graph, a, passes, 1e-10));
    mr_output reaches = mr_mul(graph, mr_mul(graph, stops, passes), mr_cumsum(graph, begins, axis));
    return mr_identity(graph, reaches, .name = "alignments");
}
