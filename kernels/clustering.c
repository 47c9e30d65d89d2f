/* k-means clustering: the choice of the first centers, and the nearest centers of points. */
#include "kernels/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More attempts for a sample than this are an error. */
constexpr int64_t RETRIES_MAX = 10000;

static mr_words words_of(int64_t seed)
{
    uint64_t bits = (uint64_t)seed;
    return (mr_words){.philox = {.key = {(uint32_t)bits, (uint32_t)(bits >> 32)}}, .used = 4};
}

static mr_status matrix_at(const mr_kernel_call *call, int input, const char *name, mr_error *error)
{
    if (call->inputs[input].shape.rank == 2) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input %s should be a matrix.", name);
}

static float half_norm(const float *row, int64_t size)
{
    float sum = 0;
    for (int64_t i = 0; i < size; i++) sum += row[i] * row[i];
    return 0.5f * sum;
}

static float product(const float *a, const float *b, int64_t size)
{
    float sum = 0;
    for (int64_t i = 0; i < size; i++) sum += a[i] * b[i];
    return sum;
}

/* ---- k-means++ ---- */

typedef struct sampler {
    const float *points;
    int64_t count, size, retries;
    mr_words words;
    float *norms;            /* half the squared norm of each point */
    float *distances, *sums; /* half the squared distance from the nearest sample, and the sums of these */
    float *tried, *best;
    bool *is_sampled;
    bool has_samples;
} sampler;

/* The first point whose sum is above the number. */
static int64_t upper_bound(const float *sums, int64_t count, float number)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (number < sums[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return MR_MIN(low, count - 1);
}

/* Distances of 0, also of points that are equal to a sample, cannot be drawn; after many attempts, the next point
 * that is not a sample is used. */
static int64_t draw(sampler *s)
{
    if (!s->has_samples) return (int64_t)mr_words_below64(&s->words, (uint64_t)s->count);
    float total = s->sums[s->count - 1];
    int64_t index = 0;
    for (int attempts = 0; attempts < 1000; attempts++) {
        if (total > 0)
            index = upper_bound(s->sums, s->count, mr_random_float(mr_words_next(&s->words)) * total);
        else
            index = (int64_t)mr_words_below64(&s->words, (uint64_t)s->count);
        if (!s->is_sampled[index]) return index;
    }
    while (s->is_sampled[index]) index = (index + 1) % s->count;
    return index;
}

/* The distances after one more sample, and their sum. */
static float distances_with(const sampler *s, int64_t index, float *distances)
{
    const float *sample = s->points + index * s->size;
    float sum = 0;
    for (int64_t i = 0; i < s->count; i++) {
        float distance = s->norms[i] - product(s->points + i * s->size, sample, s->size) + s->norms[index];
        distances[i] = MR_MIN(s->distances[i], distance);
        sum += distances[i];
    }
    return sum;
}

static int64_t sample_one(sampler *s)
{
    float best = INFINITY;
    int64_t chosen = -1;
    for (int64_t i = 0; i <= s->retries; i++) {
        int64_t index = draw(s);
        float sum = distances_with(s, index, s->tried);
        if (chosen >= 0 && !(sum < best)) continue;
        best = sum;
        chosen = index;
        float *swap = s->best;
        s->best = s->tried;
        s->tried = swap;
    }
    float *swap = s->best;
    s->best = s->distances;
    s->distances = swap;
    return chosen;
}

static void sample_all(sampler *s, int64_t samples, float *output)
{
    for (int64_t i = 0; i < s->count; i++) {
        s->norms[i] = half_norm(s->points + i * s->size, s->size);
        s->distances[i] = INFINITY;
    }
    for (int64_t i = 0; i < samples; i++) {
        float sum = 0;
        for (int64_t j = 0; j < s->count && i > 0; j++) s->sums[j] = sum += s->distances[j];
        int64_t index = sample_one(s);
        s->is_sampled[index] = s->has_samples = true;
        if (s->size > 0) memcpy(output + i * s->size, s->points + index * s->size, (size_t)s->size * sizeof *output);
    }
}

static mr_status plus_plus(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *points = &call->inputs[0];
    int64_t samples, seed, retries;
    MR_TRY(matrix_at(call, 0, "points", error));
    MR_TRY(mr_kernel_int(call, 1, "num_to_sample", &samples, error));
    MR_TRY(mr_kernel_int(call, 2, "seed", &seed, error));
    MR_TRY(mr_kernel_int(call, 3, "num_retries_per_sample", &retries, error));
    int64_t count = points->shape.dims[0], size = points->shape.dims[1];
    if (count <= 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected points.rows() > 0.");
    if (samples <= 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected num_to_sample > 0.");
    if (samples > count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected num_to_sample <= points.rows(). %" PRId64 " vs %" PRId64 ".", samples, count);
    if (retries < 0) retries = 2 + (int64_t)log((double)samples);
    if (retries > RETRIES_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "num_retries_per_sample is %" PRId64 ", more than %" PRId64, retries, RETRIES_MAX);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(samples, size), error));
    float *memory = count < INT32_MAX ? calloc((size_t)count * 5, sizeof *memory) : nullptr;
    bool *is_sampled = memory ? calloc((size_t)count, sizeof *is_sampled) : nullptr;
    mr_status status = MR_OK;
    sampler s = {.points = points->data,
                 .count = count,
                 .size = size,
                 .retries = retries,
                 .words = words_of(seed),
                 .norms = memory,
                 .is_sampled = is_sampled};
    if (is_sampled) {
        s.distances = memory + count;
        s.sums = memory + 2 * count;
        s.tried = memory + 3 * count;
        s.best = memory + 4 * count;
        sample_all(&s, samples, call->outputs[0].data);
    } else {
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " points", count);
    }
    free(memory);
    free(is_sampled);
    return status;
}

static mr_status chain(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *distances = &call->inputs[0];
    int64_t seed, chosen = 0, count = mr_tensor_count(distances);
    if (distances->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input distances should be a vector.");
    if (count == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected distances_tensor.size() > 0.");
    MR_TRY(mr_kernel_int(call, 1, "seed", &seed, error));
    mr_words words = words_of(seed);
    const float *distance = distances->data;
    for (int64_t i = 1; i < count; i++)
        if (distance[i] > mr_random_float(mr_words_next(&words)) * distance[chosen]) chosen = i;
    return mr_kernel_put_ints(call, 0, MR_SCALAR, &chosen, error);
}

/* ---- Nearest neighbors ---- */

typedef struct neighbors {
    const float *points, *centers, *norms; /* half the squared norms of the centers */
    int64_t count, size, k;
    int64_t *indices;
    float *distances;
} neighbors;

/* Inserts each center into the sorted list of the nearest ones. Equal ones keep their order. */
static void find_neighbors(void *context, int64_t begin, int64_t end)
{
    const neighbors *n = context;
    for (int64_t p = begin; p < end; p++) {
        const float *point = n->points + p * n->size;
        int64_t *indices = n->indices + p * n->k, found = 0;
        float *distances = n->distances + p * n->k, norm = half_norm(point, n->size);
        for (int64_t c = 0; c < n->count; c++) {
            float distance = n->norms[c] - product(point, n->centers + c * n->size, n->size);
            int64_t at = found;
            while (at > 0 && distance < distances[at - 1]) at--;
            if (at == n->k) continue;
            if (found < n->k) found++;
            for (int64_t i = found - 1; i > at; i--) {
                distances[i] = distances[i - 1];
                indices[i] = indices[i - 1];
            }
            distances[at] = distance;
            indices[at] = c;
        }
        for (int64_t i = 0; i < n->k; i++) distances[i] = 2 * (distances[i] + norm);
    }
}

static mr_status nearest(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *points = &call->inputs[0], *centers = &call->inputs[1];
    int64_t k;
    MR_TRY(matrix_at(call, 0, "points", error));
    MR_TRY(matrix_at(call, 1, "centers", error));
    MR_TRY(mr_kernel_int(call, 2, "k", &k, error));
    int64_t rows = points->shape.dims[0], size = points->shape.dims[1], count = centers->shape.dims[0];
    if (rows <= 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected points.rows() > 0.");
    if (size != centers->shape.dims[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected point_dimensions == center_dimensions: %" PRId64 " vs %" PRId64 ".", size,
                              centers->shape.dims[1]);
    if (k < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected k >= 0.");
    k = MR_MIN(k, count);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows, k), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(rows, k), error));
    if (k == 0) return MR_OK;
    float *norms = count < INT32_MAX ? calloc((size_t)count, sizeof *norms) : nullptr;
    if (!norms)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " centers", count);
    neighbors n = {.points = points->data,
                   .centers = centers->data,
                   .norms = norms,
                   .count = count,
                   .size = size,
                   .k = k,
                   .indices = call->outputs[0].data,
                   .distances = call->outputs[1].data};
    for (int64_t i = 0; i < count; i++) norms[i] = half_norm(n.centers + i * size, size);
    mr_pool_for(call->device->pool, rows, MR_MAX(1, MR_GRAIN / 4 / (count * MR_MAX(size, 1))), find_neighbors, &n);
    free(norms);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "KmeansPlusPlusInitialization", .run = plus_plus},
    {.op = "KMC2ChainInitialization", .run = chain},
    {.op = "NearestNeighbors", .run = nearest},
};
MR_KERNEL_FAMILY(clustering);
