/* Dilated convolutions as TensorFlow builds them: SpaceToBatchND, a convolution without dilation, BatchToSpaceND. */
#include "graph/train/layers.h"
#include <millrace/ops.h>

/* Padding of the dilated convolution before and after dimension i of its input. */
static void base_padding(const mr_dilation *d, int32_t i, int64_t *before, int64_t *after)
{
    int64_t extra = d->same ? (d->kernel[i] - 1) * d->rates[i] : 0;
    *before = extra / 2;
    *after = extra - *before;
}

/* Rows of (before, after); the first is (0, 0) if the channels come before the spatial dimensions. */
static mr_output constant_pairs(mr_graph *graph, const mr_dilation *d, const int64_t (*pairs)[2], const char *name)
{
    int32_t values[4][2] = {0}, skipped = d->channels_first;
    for (int32_t i = 0; i < d->rank; i++) {
        values[i + skipped][0] = (int32_t)pairs[i][0];
        values[i + skipped][1] = (int32_t)pairs[i][1];
    }
    return mr_constant_int32s(graph, MR_SHAPE(d->rank + skipped, 2), &values[0][0], name);
}

/* Sizes that the graph computes: as many more elements at the end as make the padded size divisible. */
static void computed_pairs(mr_graph *graph, mr_dilation *d, mr_output input, const int64_t (*base)[2],
                           mr_output *paddings)
{
    int32_t count = d->rank + d->channels_first, first[4] = {0}, sums[4] = {0}, ends[4] = {0}, zeros[4] = {0};
    for (int32_t i = 0; i < d->rank; i++) {
        first[i + d->channels_first] = (int32_t)base[i][0];
        ends[i + d->channels_first] = (int32_t)base[i][1];
        sums[i + d->channels_first] = (int32_t)(base[i][0] + base[i][1]);
    }
    mr_shape vector = MR_SHAPE(count);
    mr_output sizes = mr_slice(graph, mr_shape_of(graph, input), mr_constant_ints(graph, MR_INTS(1)),
                               mr_constant_ints(graph, MR_INTS(count)));
    mr_output full = mr_add_v2(graph, sizes, mr_constant_int32s(graph, vector, sums, nullptr));
    mr_output rest = mr_floor_mod(graph, mr_sub(graph, d->block, mr_floor_mod(graph, full, d->block)), d->block);
    mr_output after = mr_add_v2(graph, rest, mr_constant_int32s(graph, vector, ends, nullptr));
    *paddings = mr_pack(graph, MR_OUTPUTS(mr_constant_int32s(graph, vector, first, nullptr), after), .axis = 1);
    d->crops = mr_pack(graph, MR_OUTPUTS(mr_constant_int32s(graph, vector, zeros, nullptr), rest), .axis = 1);
}

mr_output mr_dilation_begin(mr_graph *graph, mr_dilation *d, mr_output input)
{
    mr_shape shape = mr_output_shape(input);
    int64_t base[3][2], paddings[3][2], crops[3][2] = {0};
    int32_t block[4] = {1}, skipped = d->channels_first;
    bool known = shape.rank == d->rank + 2;
    for (int32_t i = 0; i < d->rank; i++) {
        base_padding(d, i, &base[i][0], &base[i][1]);
        block[i + skipped] = (int32_t)d->rates[i];
        int64_t size = known ? shape.dims[1 + skipped + i] : -1, full = size + base[i][0] + base[i][1];
        known = known && size >= 0;
        int64_t rest = known ? (d->rates[i] - full % d->rates[i]) % d->rates[i] : 0;
        paddings[i][0] = base[i][0];
        paddings[i][1] = base[i][1] + rest;
        crops[i][1] = rest;
    }
    d->block = mr_constant_int32s(graph, MR_SHAPE(d->rank + skipped), block, "SpaceToBatchND/block_shape");
    mr_output padding;
    if (known) {
        padding = constant_pairs(graph, d, paddings, "SpaceToBatchND/paddings");
        d->crops = constant_pairs(graph, d, crops, "BatchToSpaceND/crops");
    } else {
        computed_pairs(graph, d, input, base, &padding);
    }
    return mr_space_to_batch_nd(graph, input, d->block, padding);
}

mr_output mr_dilation_end(mr_graph *graph, const mr_dilation *d, mr_output output)
{
    return mr_batch_to_space_nd(graph, output, d->block, d->crops);
}
