/* Variables by name: tf.compat.v1.get_variable with its checks, its messages and its order of creation. A partitioned
 * variable NAME consists of NAME/part_0, NAME/part_1, …, which are saved as slices of NAME. */
#include "base/options.h"
#include "graph/train/open_scopes.h"
#include "graph/train/variable_store.h"
#include "proto/meta_graph.pb-c.h"
#include <millrace/ops.h>

#include <math.h>
#include <string.h>

static mr_variable failed_variable(const mr_graph *graph)
{
    mr_output failed = mr_graph_failed_output(graph);
    return (mr_variable){.ref = failed, .value = failed, .initializer = failed.node, .initial_value = failed};
}

/* ---- One variable ---- */

/* A part of a partitioned variable. */
typedef struct slice {
    const char *full_name;
    mr_shape full_shape;
    int64_t offset[MR_RANK_MAX];
} slice;

/* Checks what an existing variable has against what is requested. */
static bool check_same(mr_graph *graph, const mr_stored_variable *found, mr_shape shape, mr_dtype dtype)
{
    const char *verb = found->parts != nullptr ? "reuse partitioned" : "share";
    char wanted[MR_SHAPE_TEXT_SIZE], present[MR_SHAPE_TEXT_SIZE];
    if (shape.rank != -2 && !mr_shape_compatible(shape, found->shape))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "Trying to %s variable %s, but specified shape %s and found shape %s.", verb, found->name,
                            mr_shape_text(shape, wanted, sizeof wanted),
                            mr_shape_text(found->shape, present, sizeof present));
    else if (dtype != found->dtype)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "Trying to %s variable %s, but specified dtype %s and found dtype %s.", verb, found->name,
                            mr_dtype_name(dtype), mr_dtype_name(found->dtype));
    else
        return true;
    return false;
}

static mr_initializer default_initializer(mr_dtype dtype)
{
    bool has_fractions = dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16;
    return (mr_initializer){.kind = has_fractions ? MR_INIT_GLOROT_UNIFORM : MR_INIT_ZEROS};
}

static int64_t *copy_sizes(mr_graph *graph, const int64_t *sizes, int32_t count)
{
    int64_t *copy = MR_ARENA_NEW(&graph->arena, int64_t, (size_t)count + 1);
    if (copy != nullptr && count > 0) memcpy(copy, sizes, (size_t)count * sizeof *copy);
    return copy;
}

/* The fields of the VariableDef that make the Saver write a slice. */
static mr_string pack_slice(mr_graph *graph, const slice *part, mr_shape shape)
{
    Mr__SaveSliceInfoDef info = MR__SAVE_SLICE_INFO_DEF__INIT;
    Mr__VariableDef def = MR__VARIABLE_DEF__INIT;
    size_t rank = (size_t)shape.rank;
    info.full_name = (char *)part->full_name;
    info.n_full_shape = info.n_var_offset = info.n_var_shape = rank;
    info.full_shape = copy_sizes(graph, part->full_shape.dims, shape.rank);
    info.var_offset = copy_sizes(graph, part->offset, shape.rank);
    info.var_shape = copy_sizes(graph, shape.dims, shape.rank);
    def.save_slice_info_def = &info;
    size_t size_bytes = mr__variable_def__get_packed_size(&def);
    uint8_t *bytes = mr_arena_alloc(&graph->arena, size_bytes);
    if (info.full_shape == nullptr || info.var_offset == nullptr || info.var_shape == nullptr || bytes == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a part of %s", part->full_name);
        return (mr_string){0};
    }
    return (mr_string){(const char *)bytes, mr__variable_def__pack(&def, bytes)};
}

/* The shape of the new variable: that of a given value, otherwise the specified one, which must be known. */
static bool settle_shape(mr_graph *graph, const mr_variable_request *request, const mr_initializer *initializer,
                         mr_shape *shape)
{
    char wanted[MR_SHAPE_TEXT_SIZE], present[MR_SHAPE_TEXT_SIZE];
    *shape = request->shape;
    if (initializer->kind == MR_INIT_VALUE && initializer->value.node != nullptr) {
        mr_shape given = mr_output_shape(initializer->value);
        if (shape->rank != -2 && !mr_shape_compatible(given, *shape)) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "variable %s has shape %s, but its initial value has %s",
                                request->name, mr_shape_text(*shape, wanted, sizeof wanted),
                                mr_shape_text(given, present, sizeof present));
            return false;
        }
        if (mr_shape_count(*shape) < 0 || shape->rank == -2) *shape = given;
        if (request->options.any_shape || mr_shape_count(*shape) >= 0) return true;
    } else if (request->options.any_shape) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "variable %s: any_shape has no effect without MR_INIT_VALUE",
                            request->name);
        return false;
    }
    if (mr_shape_count(*shape) >= 0 && shape->rank >= 0) return true;
    mr_shape shown = shape->rank == -2 ? MR_SHAPE_UNKNOWN : *shape;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "variable %s: its shape %s is not fully known or too large",
                        request->name, mr_shape_text(shown, wanted, sizeof wanted));
    return false;
}

static mr_variable make_variable(const mr_variable_request *request, const slice *part)
{
    mr_graph *graph = request->graph;
    const mr_get_variable_options *o = &request->options;
    mr_initializer initializer = o->initializer;
    if (mr_initializer_is_omitted(&initializer)) initializer = default_initializer(o->dtype);
    if (initializer.kind == MR_INIT_DEFAULT) initializer.kind = MR_INIT_GLOROT_UNIFORM;
    mr_initial initial = {.initializer = &initializer, .dtype = o->dtype};
    if (!settle_shape(graph, request, &initializer, &initial.shape)) return failed_variable(graph);
    initial.full = part != nullptr ? part->full_shape : initial.shape;
    initial.offset = part != nullptr ? (int64_t *)part->offset : nullptr;
    if (!mr_initializer_check(graph, request->name, &initializer, initial.full, o->dtype))
        return failed_variable(graph);
    mr_variable_options options = {.size = sizeof options,
                                   .trainable = o->trainable == 1,
                                   .use_resource = o->use_resource == 1,
                                   .any_shape = o->any_shape,
                                   .collections = o->collections,
                                   .caching_device = o->caching_device,
                                   .constraint = o->constraint};
    mr_string packed = part != nullptr ? pack_slice(graph, part, initial.shape) : (mr_string){0};
    return mr_variable_build(graph, request->name, mr_initial_value, &initial, &options, packed);
}

static mr_variable get_single(const mr_variable_request *request, const slice *part)
{
    mr_graph *graph = request->graph;
    const char *name = request->name;
    const mr_stored_variable *found = mr_variable_store_find(graph, name);
    if (found != nullptr && request->reuse == MR_REUSE_NONE) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "Variable %s already exists, disallowed. Did you mean to set reuse=True or "
                            "reuse=tf.AUTO_REUSE in VarScope?",
                            name);
        return failed_variable(graph);
    }
    if (found != nullptr)
        return check_same(graph, found, request->shape, request->options.dtype) ? found->variable
                                                                                : failed_variable(graph);
    if (request->reuse == MR_REUSE) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "Variable %s does not exist, or was not created with tf.get_variable(). Did you mean to "
                            "set reuse=tf.AUTO_REUSE in VarScope?",
                            name);
        return failed_variable(graph);
    }
    mr_variable variable = make_variable(request, part);
    if (graph->status != MR_OK) return variable;
    mr_stored_variable stored = {.name = mr_arena_strdup(&graph->arena, name),
                                 .variable = variable,
                                 .shape = mr_output_shape(variable.value),
                                 .dtype = request->options.dtype};
    if (stored.name == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for variable %s", name);
        return failed_variable(graph);
    }
    if (!mr_variable_store_add(graph, stored)) return failed_variable(graph);
    mr_train_regularize(graph, name, variable.value, request->options.regularizer);
    return variable;
}

/* ---- Partitioned variables ---- */

/* A partitioned variable's value: the parts, concatenated, under the variable's name. */
static mr_output concatenate(mr_graph *graph, const char *name, const mr_variable *parts, int32_t count, int32_t axis)
{
    mr_output *values = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)count);
    const char *scope = mr_arena_printf(&graph->arena, "%s/ConcatPartitions/", name);
    if (values == nullptr || scope == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for the parts of %s", name);
    for (int32_t i = 0; i < count; i++) values[i] = parts[i].value;
    mr_output all = values[0];
    if (count > 1) {
        mr_graph_push_scope(graph, scope);
        mr_graph_push_scope(graph, "concat");
        mr_output at = mr_constant_int32s(graph, MR_SCALAR, &axis, "axis");
        all = mr_concat_v2(graph, MR_OUTPUTS_OF(values, count), at, .name = mr_train_own_name(graph));
        mr_graph_pop_scope(graph);
        mr_graph_pop_scope(graph);
    }
    return mr_identity(graph, all, .name = name);
}

/* The request for part `index`; the first parts are longer by one if the length is not divisible. */
static mr_variable_request part_request(const mr_variable_request *whole, int32_t axis, int32_t parts, int32_t index,
                                        slice *part)
{
    mr_graph *graph = whole->graph;
    int64_t length = whole->shape.dims[axis], shorter = length / parts, longer = length % parts;
    mr_variable_request request = *whole;
    request.name = mr_arena_printf(&graph->arena, "%s/part_%d", whole->name, index);
    if (request.name == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for the parts of %s", whole->name);
        return request;
    }
    request.shape.dims[axis] = shorter + (index < longer);
    *part = (slice){.full_name = whole->name, .full_shape = whole->shape};
    part->offset[axis] = shorter * index + (index < longer ? index : longer);
    if (whole->options.initializer.kind == MR_INIT_VALUE) {
        int64_t rank = whole->shape.rank;
        int32_t sizes[MR_RANK_MAX], offset[MR_RANK_MAX];
        for (int32_t i = 0; i < rank; i++) {
            sizes[i] = (int32_t)request.shape.dims[i];
            offset[i] = (int32_t)part->offset[i];
        }
        const char *scope = mr_arena_printf(&graph->arena, "%s/PartitionedInitializer", request.name);
        mr_graph_push_scope(graph, scope != nullptr ? scope : "PartitionedInitializer");
        mr_output begin = mr_constant_int32s(graph, MR_SHAPE(rank), offset, "Slice/begin");
        mr_output size = mr_constant_int32s(graph, MR_SHAPE(rank), sizes, "Slice/size");
        request.options.initializer.value = mr_slice(graph, whole->options.initializer.value, begin, size);
        mr_graph_pop_scope(graph);
    }
    return request;
}

static mr_variable make_partitioned(const mr_variable_request *request, int32_t axis, int32_t parts)
{
    mr_graph *graph = request->graph;
    mr_stored_variable stored = {.name = mr_arena_strdup(&graph->arena, request->name),
                                 .parts = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)parts),
                                 .part_count = parts,
                                 .shape = request->shape,
                                 .dtype = request->options.dtype};
    if (stored.name == nullptr || stored.parts == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for the parts of %s", request->name);
        return failed_variable(graph);
    }
    for (int32_t i = 0; i < parts && graph->status == MR_OK; i++) {
        slice part;
        mr_variable_request one = part_request(request, axis, parts, i, &part);
        if (graph->status == MR_OK) stored.parts[i] = get_single(&one, &part);
    }
    if (graph->status != MR_OK) return failed_variable(graph);
    stored.variable.value = concatenate(graph, request->name, stored.parts, parts, axis);
    return mr_variable_store_add(graph, stored) ? stored.variable : failed_variable(graph);
}

static mr_variable get_partitioned(const mr_variable_request *request)
{
    mr_graph *graph = request->graph;
    const char *name = request->name;
    const mr_stored_variable *found = mr_variable_store_find(graph, name);
    int32_t axis = 0, parts = 1;
    const mr_partitioner *partitioner = &request->options.partitioner;
    if (found != nullptr && found->parts == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "A partitioner was provided, but an unpartitioned version of the variable was found: %s. "
                            "Perhaps a variable of the same name was already created without partitioning?",
                            name);
    else if (found != nullptr && request->reuse == MR_REUSE_NONE)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "Partitioned variable with name %s already exists. Did you mean to set reuse=True or "
                            "reuse=tf.AUTO_REUSE in VarScope?",
                            name);
    else if (found == nullptr && request->reuse == MR_REUSE)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "PartitionedVariable %s does not exist, or was not created with tf.get_variable(). Did you "
                            "mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?",
                            name);
    if (graph->status != MR_OK) return failed_variable(graph);
    if (partitioner->kind != MR_PARTITION_DEFAULT &&
        !mr_partitioner_apply(graph, name, partitioner, request->shape, request->options.dtype, &axis, &parts))
        return failed_variable(graph);
    if (found == nullptr) return make_partitioned(request, axis, parts);
    if (!check_same(graph, found, request->shape, request->options.dtype)) return failed_variable(graph);
    if (partitioner->kind == MR_PARTITION_DEFAULT || parts == found->part_count) return found->variable;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "Trying to reuse partitioned variable %s, but specified %d partitions and found %d.", name,
                        parts, found->part_count);
    return failed_variable(graph);
}

/* ---- Requests ---- */

mr_variable mr_variable_request_get(const mr_variable_request *request)
{
    if (request == nullptr || request->graph == nullptr) return (mr_variable){0};
    mr_graph *graph = request->graph;
    if (graph->status != MR_OK) return failed_variable(graph);
    if (request->next != nullptr) {
        mr_variable_request inner = *request;
        inner.next = request->next->next;
        const mr_callback callback = mr_callback_begin(graph);
        const mr_variable variable = request->next->get(request->next->context, &inner);
        return mr_callback_end(graph, &callback, request->name, "custom_getter") ? variable : failed_variable(graph);
    }
    const mr_stored_variable *found = mr_variable_store_find(graph, request->name);
    bool is_scalar = request->shape.rank == 0;
    if (request->options.partitioner.kind != MR_PARTITION_DEFAULT && !is_scalar) return get_partitioned(request);
    if (found != nullptr && found->parts != nullptr && request->reuse != MR_REUSE_NONE) return get_partitioned(request);
    if (found == nullptr || found->parts == nullptr) return get_single(request, nullptr);
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "No partitioner was provided, but a partitioned version of the variable was found: %s/part_0. "
                        "Perhaps a variable of the same name was already created with partitioning?",
                        request->name);
    return failed_variable(graph);
}

/* Fills in what the scope has. */
static void add_defaults(const mr_variable_scope *scope, mr_get_variable_options *options)
{
    mr_initializer *own = &options->initializer;
    if (mr_initializer_is_omitted(own)) *own = scope->initializer;
    if (options->regularizer.l1 == 0 && options->regularizer.l2 == 0) options->regularizer = scope->regularizer;
    if (options->partitioner.kind == MR_PARTITION_DEFAULT) options->partitioner = scope->partitioner;
    if (options->caching_device == nullptr) options->caching_device = scope->caching_device;
    if (options->use_resource == MR_INHERIT) options->use_resource = scope->use_resource;
    if (options->constraint == nullptr) options->constraint = scope->constraint;
    if (options->dtype == MR_DTYPE_INVALID && own->kind == MR_INIT_VALUE && own->value.node != nullptr)
        options->dtype = mr_output_dtype(own->value);
    if (options->dtype == MR_DTYPE_INVALID) options->dtype = scope->dtype;
    if (options->dtype == MR_DTYPE_INVALID) options->dtype = MR_FLOAT;
    if (options->use_resource == MR_INHERIT) options->use_resource = false;
    if (options->trainable != MR_INHERIT) return;
    options->trainable = true;
    for (int32_t i = 0; i < options->collections.count; i++) {
        const char *name = options->collections.items[i];
        if (name != nullptr && strcmp(name, MR_LOCAL_VARIABLES) == 0) options->trainable = false;
    }
}

static const char *wrong_options(const mr_get_variable_options *options)
{
    if (options->trainable < MR_INHERIT || options->trainable > 1) return "trainable must be true or false";
    if (options->use_resource < MR_INHERIT || options->use_resource > 1)
        return "use_resource must be true, false or MR_INHERIT";
    if (!isfinite(options->regularizer.l1) || options->regularizer.l1 < 0 || !isfinite(options->regularizer.l2) ||
        options->regularizer.l2 < 0)
        return "l1 and l2 of the regularizer must be finite and at least 0";
    return nullptr;
}

mr_variable mr_get_variable_(mr_graph *graph, const char *name, mr_shape shape, const mr_get_variable_options *given)
{
    static const mr_get_variable_options defaults = {.size = sizeof defaults, MR_GET_VARIABLE_DEFAULTS};
    if (graph == nullptr) return (mr_variable){0};
    mr_variable_store *store = mr_variable_store_of(graph);
    if (store == nullptr || graph->status != MR_OK) return failed_variable(graph);
    const mr_variable_scope *scope = mr_variable_store_scope(store);
    mr_variable_request request = {
        .graph = graph, .shape = shape, .reuse = scope->reuse, .next = scope->getter, .name = name};
    mr_error error = {0};
    mr_status status =
        MR_OPTIONS_READ(mr_get_variable_options, &request.options, given != nullptr ? given : &defaults, &error);
    add_defaults(scope, &request.options);
    const char *wrong = status != MR_OK                    ? error.message
                        : name == nullptr || *name == '\0' ? "a name is required"
                                                           : wrong_options(&request.options);
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "variable %s: %s", name != nullptr ? name : "", wrong);
        return failed_variable(graph);
    }
    if (*scope->name != '\0') request.name = mr_arena_printf(&graph->arena, "%s/%s", scope->name, name);
    if (request.name == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for variable %s", name);
        return failed_variable(graph);
    }
    mr_graph_push_scope(graph, "");
    mr_variable variable = mr_variable_request_get(&request);
    mr_graph_pop_scope(graph);
    return variable;
}

/* Relative to the current name scope, and not in the store: for slots, whose names are unique without it. */
static mr_variable make_unstored(mr_graph *graph, const char *name, mr_shape shape,
                                 const mr_get_variable_options *options)
{
    if (graph->status != MR_OK) return failed_variable(graph);
    mr_variable_request request = {.graph = graph, .name = name, .shape = shape, .options = *options};
    return make_variable(&request, nullptr);
}

mr_variable mr_train_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer,
                              bool trainable)
{
    mr_get_variable_options options = {.initializer = initializer, .dtype = MR_FLOAT, .trainable = trainable};
    return make_unstored(graph, name, shape, &options);
}

mr_variable mr_train_slot(mr_graph *graph, const char *name, mr_variable primary, mr_initializer initializer)
{
    mr_get_variable_options options = {.initializer = initializer,
                                       .dtype = mr_variable_dtype_of(primary),
                                       .use_resource = mr_variable_is_resource(primary)};
    return make_unstored(graph, name, mr_variable_shape_of(primary), &options);
}
