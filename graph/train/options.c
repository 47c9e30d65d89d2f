/* The limits of options, with consistent messages. */
#include "graph/train/train.h"

#include <inttypes.h>
#include <math.h>

bool mr_train_check_count(mr_graph *graph, const char *option, int64_t value, int64_t min)
{
    if (value >= min) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is %" PRId64 ", but must be at least %" PRId64, option, value,
                        min);
    return false;
}

bool mr_train_check_required(mr_graph *graph, const char *option, int64_t value)
{
    if (value != 0) return mr_train_check_count(graph, option, value, 1);
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is required, and must be at least 1", option);
    return false;
}

bool mr_train_check_number(mr_graph *graph, const char *option, float value, float min)
{
    if (isfinite(value) && value >= min) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is %g, but must be finite and at least %g", option,
                        (double)value, (double)min);
    return false;
}

bool mr_train_check_range(mr_graph *graph, const char *option, float value, float min, float max, bool max_is_legal)
{
    if (value >= min && (value < max || (max_is_legal && value == max))) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is %g, but must be in [%g, %g%c", option, (double)value,
                        (double)min, (double)max, max_is_legal ? ']' : ')');
    return false;
}

void mr_train_seed_pair(mr_graph *graph, int64_t option, int64_t *seed, int64_t *seed2)
{
    int64_t own = option == MR_SEED_ZERO ? 0 : option;
    mr_graph_seed_pair(graph, option != 0 ? &own : nullptr, seed, seed2);
}
