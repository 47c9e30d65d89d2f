/* Pooling of 1 to 3 dimensions, as in tf.compat.v1.layers; and global pooling. */
#include "graph/train/layers.h"
#include <millrace/ops.h>

typedef struct plan {
    mr_graph *graph;
    const mr_pool_layer *layer;
    int32_t rank;
    bool is_max;
    int64_t sizes[3], strides[3];
} plan;

static bool settle(plan *p)
{
    const mr_pool_layer *layer = p->layer;
    if (!mr_layer_sizes(p->graph, "pool_size", layer->pool_size, "pool_sizes", layer->pool_sizes, p->rank, 0, p->sizes))
        return false;
    if (layer->strides != 0 || layer->strides_each.count > 0)
        return mr_layer_sizes(p->graph, "strides", layer->strides, "strides_each", layer->strides_each, p->rank, 0,
                              p->strides);
    for (int32_t i = 0; i < p->rank; i++) p->strides[i] = p->sizes[i];
    return true;
}

static mr_output pool_images(const plan *p, mr_output input, const int64_t *sizes, const int64_t *strides, bool first)
{
    int64_t size_items[5], stride_items[5];
    mr_ints window = mr_layer_attr(size_items, sizes, 2, first), step = mr_layer_attr(stride_items, strides, 2, first);
    if (p->is_max)
        return mr_max_pool(p->graph, input, .ksize = window, .strides = step,
                           .padding = p->layer->same ? MR_SAME : MR_VALID, .data_format = first ? MR_NCHW : MR_NHWC);
    return mr_avg_pool(p->graph, input, .ksize = window, .strides = step,
                       .padding = p->layer->same ? MR_SAME : MR_VALID, .data_format = first ? MR_NCHW : MR_NHWC);
}

static mr_output pool_volumes(const plan *p, mr_output input)
{
    bool first = p->layer->channels_first;
    int64_t size_items[5], stride_items[5];
    mr_ints window = mr_layer_attr(size_items, p->sizes, 3, first);
    mr_ints step = mr_layer_attr(stride_items, p->strides, 3, first);
    if (p->is_max)
        return mr_max_pool3d(p->graph, input, .ksize = window, .strides = step,
                             .padding = p->layer->same ? MR_SAME : MR_VALID,
                             .data_format = first ? MR_NCDHW : MR_NDHWC);
    return mr_avg_pool3d(p->graph, input, .ksize = window, .strides = step,
                         .padding = p->layer->same ? MR_SAME : MR_VALID, .data_format = first ? MR_NCDHW : MR_NDHWC);
}

/* As an image of width 1. */
static mr_output pool_rows(const plan *p, mr_output input)
{
    mr_graph *graph = p->graph;
    bool first = p->layer->channels_first;
    int32_t axis = first ? 3 : 2;
    int64_t sizes[2] = {p->sizes[0], 1}, strides[2] = {p->strides[0], 1};
    mr_output image = mr_expand_dims(graph, input, mr_constant_int32s(graph, MR_SCALAR, &axis, "ExpandDims/dim"));
    return mr_squeeze(graph, pool_images(p, image, sizes, strides, first), .squeeze_dims = MR_INTS(axis));
}

static mr_output pool(mr_graph *graph, mr_output input, const mr_pool_layer *given, int32_t rank, bool is_max)
{
    static const char *const names[2][3] = {
        {"average_pooling1d", "average_pooling2d", "average_pooling3d"},
        {"max_pooling1d", "max_pooling2d", "max_pooling3d"},
    };
    mr_pool_layer layer;
    if (!MR_LAYER_READ(mr_pool_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    plan p = {.graph = graph, .layer = &layer, .rank = rank, .is_max = is_max};
    mr_layer_begin(graph, layer.name, names[is_max][rank - 1], MR_REUSE_NONE);
    mr_output output = mr_graph_failed_output(graph);
    if (settle(&p))
        output = rank == 1   ? pool_rows(&p, input)
                 : rank == 2 ? pool_images(&p, input, p.sizes, p.strides, layer.channels_first)
                             : pool_volumes(&p, input);
    mr_graph_pop_variable_scope(graph);
    return output;
}

mr_output mr_layer_max_pool1d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer)
{
    return pool(graph, input, layer, 1, true);
}

mr_output mr_layer_max_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer)
{
    return pool(graph, input, layer, 2, true);
}

mr_output mr_layer_max_pool3d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer)
{
    return pool(graph, input, layer, 3, true);
}

mr_output mr_layer_average_pool1d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer)
{
    return pool(graph, input, layer, 1, false);
}

mr_output mr_layer_average_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer)
{
    return pool(graph, input, layer, 2, false);
}

mr_output mr_layer_average_pool3d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer)
{
    return pool(graph, input, layer, 3, false);
}

/* ---- Global pooling ---- */

static mr_output pool_all(mr_graph *graph, mr_output input, bool is_max)
{
    static const char *const names[2][3] = {
        {"global_average_pooling1d", "global_average_pooling2d", "global_average_pooling3d"},
        {"global_max_pooling1d", "global_max_pooling2d", "global_max_pooling3d"},
    };
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    mr_shape shape = mr_output_shape(input);
    if (shape.rank < 3 || shape.rank > 5) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "global pooling needs an input of 3 to 5 dimensions, not %s",
                             mr_shape_text(shape, text, sizeof text));
    }
    mr_graph_push_scope(graph, names[is_max][shape.rank - 3]);
    const char *name = is_max ? "Max/reduction_indices" : "Mean/reduction_indices";
    mr_output axes = mr_constant_int32s(graph, MR_SHAPE(shape.rank - 2), (int32_t[]){1, 2, 3}, name);
    mr_output output = is_max ? mr_max(graph, input, axes) : mr_mean(graph, input, axes);
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_layer_global_average_pool(mr_graph *graph, mr_output input)
{
    return pool_all(graph, input, false);
}

mr_output mr_layer_global_max_pool(mr_graph *graph, mr_output input)
{
    return pool_all(graph, input, true);
}
