/* Resources that datasets refer to: generators of seeds for shuffling, caches in memory and pools of threads. Datasets
 * have caches and threads of their own here, so the last two are only names. */
#include "graph/data/dataset.h"

typedef struct seed_generator {
    mr_resource resource;
    mr_data_seeds seeds;
    bool has_seeds;
} seed_generator;

static void deinit_nothing(mr_resource *)
{
}

static const mr_resource_class seed_class = {
    .name = "seed generator", .size_bytes = sizeof(seed_generator), .deinit = deinit_nothing};
static const mr_resource_class cache_class = {
    .name = "memory cache", .size_bytes = sizeof(mr_resource), .deinit = deinit_nothing};
static const mr_resource_class threads_class = {
    .name = "thread pool", .size_bytes = sizeof(mr_resource), .deinit = deinit_nothing};

/* The resource, and the value that deletes it. */
static void put(mr_kernel_call *call, mr_resource *resource)
{
    call->outputs[0] = mr_tensor_take_resource(MR_RESOURCE, resource);
    if (call->node->output_count > 1) call->outputs[1] = (mr_tensor){.dtype = MR_VARIANT, .shape = MR_SCALAR};
}

/* ---- Seeds ---- */

static mr_status dummy_seeds(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(&seed_class, &resource, error));
    put(call, resource);
    return MR_OK;
}

static mr_status make_seeds(mr_kernel_call *call, mr_error *error)
{
    mr_data_seeds seeds = {.reshuffles = true};
    mr_resource *resource;
    MR_TRY(mr_data_int(call, 0, "seed", &seeds.seed, error));
    MR_TRY(mr_data_int(call, 1, "seed2", &seeds.seed2, error));
    if (call->node->input_count > 2) MR_TRY(mr_data_bool(call, 2, "reshuffle", &seeds.reshuffles, error));
    MR_TRY(mr_resource_new(&seed_class, &resource, error));
    ((seed_generator *)resource)->seeds = seeds;
    ((seed_generator *)resource)->has_seeds = true;
    put(call, resource);
    return MR_OK;
}

mr_status mr_data_seed_generator(const mr_kernel_call *call, int32_t input, mr_data_seeds *seeds, bool *found,
                                 mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, input, &seed_class, &resource, error));
    *seeds = ((const seed_generator *)resource)->seeds;
    *found = ((const seed_generator *)resource)->has_seeds;
    return MR_OK;
}

/* The last handle frees the resource. */
static mr_status delete_seeds(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    return mr_handle_get(call, 0, &seed_class, &resource, error);
}

/* ---- Caches ---- */

static mr_status make_cache(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(&cache_class, &resource, error));
    put(call, resource);
    return MR_OK;
}

static mr_status delete_cache(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    return mr_handle_get(call, 0, &cache_class, &resource, error);
}

static const mr_kernel kernels[] = {
    {.op = "DummySeedGenerator", .run = dummy_seeds},          {.op = "AnonymousSeedGenerator", .run = make_seeds},
    {.op = "AnonymousRandomSeedGenerator", .run = make_seeds}, {.op = "DeleteSeedGenerator", .run = delete_seeds},
    {.op = "DeleteRandomSeedGenerator", .run = delete_seeds},  {.op = "DummyMemoryCache", .run = make_cache},
    {.op = "AnonymousMemoryCache", .run = make_cache},         {.op = "DeleteMemoryCache", .run = delete_cache},
};
const mr_kernel_table mr_data_kernels_resources = {kernels, sizeof kernels / sizeof kernels[0]};

/* ---- Pools of threads ---- */

static mr_status make_threads(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,
                              mr_error *error)
{
    bool made;
    return mr_resource_of_node(resources, &threads_class, node, resource, &made, error);
}

static const mr_state_row rows[] = {
    {.op = "ThreadPoolHandle", .make = make_threads},
    {.op = "ExperimentalThreadPoolHandle", .make = make_threads},
};
const mr_state_table mr_state_thread_pool = {rows, sizeof rows / sizeof rows[0]};
