/* From a scene to pixels.
 *
 * First the surroundings: each pixel's ray meets the table or the wall, whose pattern is a formula of the place, in loops
 * that vectorise. Then the things that lie about, as lit bars in the plane of the picture. Then the object: a ray is
 * followed through its distance field in steps that cannot miss it, within the rectangle of its bounding ball; its shadow
 * on the table by rays to the light. Last the lens and the film: blur, vignette, exposure, gamma, noise. */
#include "scene.h"

#include <math.h>
#include <string.h>

constexpr float bound = 1.3f; /* radius of the ball around the object */

/* A cheap mixing of 32 bits; in loops it vectorises, which the library's counter-based generator does not. */
static inline uint32_t scramble(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static inline float lattice(int32_t x, int32_t y, uint32_t seed)
{
    return (float)(scramble((uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca77u ^ seed) >> 8) * 0x1p-24f;
}

/* Random values at whole numbers, smoothly joined. */
static inline float value_noise(float x, float y, uint32_t seed)
{
    float fx = floorf(x), fy = floorf(y);
    int32_t ix = (int32_t)fx, iy = (int32_t)fy;
    x -= fx;
    y -= fy;
    x = x * x * (3 - 2 * x);
    y = y * y * (3 - 2 * y);
    float a = lattice(ix, iy, seed), b = lattice(ix + 1, iy, seed);
    float c = lattice(ix, iy + 1, seed), d = lattice(ix + 1, iy + 1, seed);
    float top = a + x * (b - a), bottom = c + x * (d - c);
    return top + y * (bottom - top);
}

static inline float triangle(float x)
{
    return fabsf(2 * (x - floorf(x)) - 1);
}

/* 0 dark … 1 light */
static inline float pattern(const surface *surface, float x, float y)
{
    x *= surface->frequency;
    y *= surface->frequency;
    float cloud = 0.55f * value_noise(x * 1.3f, y * 1.3f, surface->seed) +
                  0.3f * value_noise(x * 3.7f, y * 3.7f, surface->seed + 1) +
                  0.15f * value_noise(x * 11, y * 11, surface->seed + 2);
    float stripe = triangle(x * 1.7f + surface->warp * cloud);
    float square = (triangle(x) - 0.5f) * (triangle(y) - 0.5f) > 0 ? 1.0f : 0.0f;
    return surface->clouds * cloud + surface->stripes * stripe + surface->squares * square;
}

static inline float box_distance(float x, float y, float z)
{
    float ox = x > 0 ? x : 0, oy = y > 0 ? y : 0, oz = z > 0 ? z : 0;
    float inside = fmaxf(x, fmaxf(y, z));
    return sqrtf(ox * ox + oy * oy + oz * oz) + (inside < 0 ? inside : 0);
}

static inline float disc_distance(float radial, float along)
{
    return box_distance(radial, along, -1e9f);
}

/* Five mirrors fold the plane onto the sector between a tip and the notch beside it, where the outline is one line. */
static float star_outline(float x, float y)
{
    static const float normals[3][2] = {
        {-0.95105652f, -0.30901699f}, {-0.95105652f, 0.30901699f}, {-0.58778525f, 0.80901699f}};
    y = fabsf(y);
    for (int i = 0; i < 3; i++) {
        float side = normals[i][0] * x + normals[i][1] * y;
        if (side > 0) {
            x -= 2 * side * normals[i][0];
            y -= 2 * side * normals[i][1];
        }
    }
    constexpr float tip = 1.1f, notch = 0.5f;
    constexpr float notch_x = notch * 0.80901699f, notch_y = notch * 0.58778525f;
    float nx = notch_y, ny = tip - notch_x, length = sqrtf(nx * nx + ny * ny);
    return ((x - tip) * nx + y * ny) / length;
}

float object_distance(const scene *scene, vector p)
{
    float size = scene->proportion;
    constexpr float edge = 0.03f; /* edges are a little round */
    switch (scene->class) {
    case BALL:
        return sqrtf(dot(p, p)) - 1;
    case CUBE:
        return box_distance(fabsf(p.x) - size + edge, fabsf(p.y) - size + edge, fabsf(p.z) - size + edge) - edge;
    case CYLINDER:
        return disc_distance(sqrtf(p.x * p.x + p.z * p.z) - 0.6f + edge, fabsf(p.y) - size + edge) - edge;
    case CONE: {
        /* Base of radius 0.75 at -size, tip at +size. */
        float radial = sqrtf(p.x * p.x + p.z * p.z), length = sqrtf(4 * size * size + 0.75f * 0.75f);
        float slope = (radial * 2 * size + (p.y - size) * 0.75f) / length;
        return fmaxf(slope + edge, -p.y - size + edge) - edge;
    }
    case RING: {
        float radial = sqrtf(p.x * p.x + p.z * p.z) - 0.85f;
        return sqrtf(radial * radial + p.y * p.y) - size;
    }
    default:
        return disc_distance(star_outline(p.x, p.z) + edge, fabsf(p.y) - size + edge) - edge;
    }
}

static vector to_object(const scene *scene, vector direction)
{
    return (vector){dot(scene->axes[0], direction), dot(scene->axes[1], direction), dot(scene->axes[2], direction)};
}

static vector object_normal(const scene *scene, vector p)
{
    static const vector corners[4] = {{1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {1, 1, 1}};
    vector sum = {0};
    for (int i = 0; i < 4; i++)
        sum = add(sum, scaled(corners[i], object_distance(scene, add(p, scaled(corners[i], 0.004f)))));
    return unit(sum);
}

static vector pixel_ray(const scene *scene, float x, float y)
{
    float across = (x - scene->centre_x) / scene->focus, over = (scene->centre_y - y) / scene->focus;
    return add(scene->forward, add(scaled(scene->right, across), scaled(scene->up, over)));
}

/* 1 in the light … 0 in the object's shadow, for a point in the world. */
static float sunlight(const scene *scene, vector point)
{
    vector from = add(point, scaled(scene->position, -1));
    float along = -dot(from, scene->sun), apart = dot(from, from) - along * along;
    if (along < -bound || apart > (bound + 0.2f) * (bound + 0.2f)) return 1;
    vector start = to_object(scene, from), step = to_object(scene, scene->sun);
    float light = 1, end = along + bound + 0.3f;
    float t = fmaxf(0.02f, along - bound - 0.2f);
    for (int i = 0; i < 24 && t < end; i++) {
        float distance = object_distance(scene, add(start, scaled(step, t)));
        light = fminf(light, 0.5f + 5 * distance / (t + 0.3f));
        if (light <= 0) return 0;
        t += fmaxf(0.03f, distance);
    }
    return fminf(1, light);
}

/* One row of table and wall, without the object. Planes of red, green, blue. */
static void render_surroundings(const scene *scene, int y, float *red, float *green, float *blue)
{
    vector first = pixel_ray(scene, 0.5f, (float)y + 0.5f), step = scaled(scene->right, 1 / scene->focus);
    vector eye = scene->eye, sun = scene->sun;
    float table_light = fmaxf(sun.y, 0), wall_light = fmaxf(-sun.z, 0) * 0.8f + 0.1f;
    for (int x = 0; x < scene->width; x++) {
        vector ray = add(first, scaled(step, (float)x));
        float to_table = ray.y < -1e-4f ? -eye.y / ray.y : 1e6f,
              to_wall = ray.z > 1e-4f ? (scene->wall - eye.z) / ray.z : 1e6f;
        bool table = to_table < to_wall;
        float t = table ? to_table : to_wall;
        float px = eye.x + t * ray.x, py = eye.y + t * ray.y, pz = eye.z + t * ray.z;
        const surface *a = &scene->table, *b = &scene->wall_paper;
        float on_table = pattern(a, px, pz), on_wall = pattern(b, px, py);
        float share = table ? on_table : on_wall, light = table ? table_light : wall_light;
        /* Where table and wall meet it is darker. */
        float corner = fminf(1, 0.6f + 0.4f * (table ? scene->wall - pz : py));
#define CHANNEL(c, target)                                                                                             \
    {                                                                                                                  \
        float dark = table ? a->dark.c : b->dark.c, bright = table ? a->light.c : b->light.c;                          \
        target[x] = (dark + share * (bright - dark)) * corner * (scene->sky_colour.c + light * scene->sun_colour.c);   \
    }
        CHANNEL(x, red)
        CHANNEL(y, green)
        CHANNEL(z, blue)
#undef CHANNEL
    }
}

typedef struct film {
    int width, height;
    float *planes[3];
} film;

static void darken(film *film, int x, int y, float by)
{
    for (int c = 0; c < 3; c++) film->planes[c][(size_t)y * (size_t)film->width + (size_t)x] *= by;
}

static void paint(film *film, int x, int y, vector colour, float share)
{
    size_t at = (size_t)y * (size_t)film->width + (size_t)x;
    const float channels[3] = {colour.x, colour.y, colour.z};
    for (int c = 0; c < 3; c++) film->planes[c][at] += share * (channels[c] - film->planes[c][at]);
}

typedef struct span {
    int left, top, right, bottom;
} span;

static span clipped(const film *film, float x, float y, float reach)
{
    return (span){.left = x - reach > 0 ? (int)(x - reach) : 0,
                  .top = y - reach > 0 ? (int)(y - reach) : 0,
                  .right = x + reach + 1 < (float)film->width ? (int)(x + reach + 1) : film->width,
                  .bottom = y + reach + 1 < (float)film->height ? (int)(y + reach + 1) : film->height};
}

/* A bar with round ends: across is -1 … 1 over its width. */
static float bar_distance(const scrap_shape *scrap, float x, float y, float *across)
{
    float c = cosf(scrap->angle), s = sinf(scrap->angle);
    float along = x * c + y * s, side = y * c - x * s, beyond = fabsf(along) - scrap->length / 2;
    *across = side / scrap->radius;
    return beyond > 0 ? sqrtf(beyond * beyond + side * side) : fabsf(side);
}

static void render_scrap(const scene *scene, const scrap_shape *scrap, film *film)
{
    float drop = scrap->radius * 0.6f, reach = scrap->radius * 2 + scrap->length / 2 + drop, across;
    span area = clipped(film, scrap->x, scrap->y, reach);
    for (int y = area.top; y < area.bottom; y++)
        for (int x = area.left; x < area.right; x++) {
            float dx = (float)x - scrap->x, dy = (float)y - scrap->y;
            float shadow = bar_distance(scrap, dx + drop * scene->sun.x, dy - drop, &across) / scrap->radius;
            if (shadow < 1.5f) darken(film, x, y, 0.55f + 0.3f * shadow);
            float distance = bar_distance(scrap, dx, dy, &across);
            float cover = fminf(1, scrap->radius - distance + 0.5f);
            if (cover <= 0) continue;
            float round = 1 - (1 - scrap->flatness) * (across + 0.4f) * (across + 0.4f) * 0.5f;
            vector light = add(scene->sky_colour, scaled(scene->sun_colour, fmaxf(0.1f, round) * 0.8f));
            paint(film, x, y, times(scrap->colour, light), cover);
        }
}

static void render_shadow(const scene *scene, film *film)
{
    for (int y = 0; y < film->height; y++)
        for (int x = 0; x < film->width; x++) {
            vector ray = pixel_ray(scene, (float)x + 0.5f, (float)y + 0.5f);
            if (ray.y >= -1e-4f) continue;
            float t = -scene->eye.y / ray.y;
            vector point = add(scene->eye, scaled(ray, t));
            if (point.z > scene->wall) continue;
            float light = sunlight(scene, point);
            /* Under the object the sky is hidden too. */
            vector from = add(point, scaled(scene->position, -1));
            float near = dot(from, from) / (scene->position.y * scene->position.y + 0.8f);
            float open = near < 1.8f ? fminf(1, 0.55f + 0.25f * near) : 1;
            float sun = fmaxf(scene->sun.y, 0) * scene->sun_colour.y, sky = scene->sky_colour.y;
            if (light < 1 || open < 1) darken(film, x, y, (sky * open + sun * light) / (sky + sun));
        }
}

static vector object_colour(const scene *scene, vector p, vector ray)
{
    vector normal = object_normal(scene, p);
    float share = pattern(&scene->skin, p.x + 0.6f * p.y + 7, p.z - 0.8f * p.y + 9);
    vector skin = mixed(scene->skin.dark, scene->skin.light, share);
    vector sun = to_object(scene, scene->sun), up = to_object(scene, (vector){0, 1, 0});
    float facing = fmaxf(0, dot(normal, sun)), sky = 0.6f + 0.4f * dot(normal, up);
    vector light = add(scaled(scene->sky_colour, sky), scaled(scene->sun_colour, facing));
    vector half = unit(add(sun, scaled(unit(ray), -1)));
    float shine = fmaxf(0, dot(normal, half));
    for (int i = 0; i < 5; i++) shine *= shine;
    return add(times(skin, light), scaled(scene->sun_colour, scene->gloss * shine));
}

/* Follows a ray through the distance field; where it passes close by, the pixel is covered in part. */
static float trace(const scene *scene, vector start, vector ray, float footprint, vector *hit)
{
    float along = -dot(start, ray), apart = dot(start, start) - along * along;
    if (apart > bound * bound) return 0;
    float half = sqrtf(bound * bound - apart), t = along - half, end = along + half, closest = 1e9f;
    for (int i = 0; i < 64 && t < end; i++) {
        vector point = add(start, scaled(ray, t));
        float distance = object_distance(scene, point);
        if (distance < closest) {
            closest = distance;
            *hit = point;
        }
        if (distance < 0.1f * footprint) break;
        t += fmaxf(distance, 0.3f * footprint);
    }
    return fmaxf(0, fminf(1, 1 - closest / footprint));
}

static void render_object(const scene *scene, film *film)
{
    vector centre = add(scene->position, scaled(scene->eye, -1));
    float depth = dot(centre, scene->forward);
    float x = scene->centre_x + scene->focus * dot(centre, scene->right) / depth;
    float y = scene->centre_y - scene->focus * dot(centre, scene->up) / depth;
    span area = clipped(film, x, y, scene->focus * bound * 1.15f / depth);
    vector start = to_object(scene, scaled(centre, -1));
    float footprint = depth / scene->focus;
    for (int row = area.top; row < area.bottom; row++)
        for (int column = area.left; column < area.right; column++) {
            vector ray = to_object(scene, unit(pixel_ray(scene, (float)column + 0.5f, (float)row + 0.5f))), hit;
            float cover = trace(scene, start, ray, footprint, &hit);
            if (cover > 0) paint(film, column, row, object_colour(scene, hit, ray), cover);
        }
}

static void blur_plane(float *plane, int width, int height, float amount, float *rows)
{
    float keep = 1 - 2 * amount;
    float *above = rows, *here = rows + width;
    memcpy(above, plane, (size_t)width * sizeof(float));
    for (int y = 0; y < height; y++) {
        float *row = plane + (size_t)y * (size_t)width, *below = y + 1 < height ? row + width : row;
        memcpy(here, row, (size_t)width * sizeof(float));
        for (int x = 0; x < width; x++) row[x] = keep * here[x] + amount * (above[x] + below[x]);
        float *kept = above;
        above = here;
        here = kept;
        float left = row[0];
        for (int x = 0; x + 1 < width; x++) {
            float middle = row[x];
            row[x] = keep * middle + amount * (left + row[x + 1]);
            left = middle;
        }
    }
}

/* Gamma, and noise that is the sum of four uniform bytes: nearly normal, deviation 148 of 510. */
static void develop(const scene *scene, const film *film, unsigned char *pixels)
{
    size_t width = (size_t)film->width;
    float middle_x = (float)film->width / 2, middle_y = (float)film->height / 2;
    float edge = scene->vignette / (middle_x * middle_x + middle_y * middle_y);
    for (int y = 0; y < film->height; y++) {
        size_t start = (size_t)y * width;
        float dy = (float)y - middle_y;
        for (size_t x = 0; x < width; x++) {
            float dx = (float)x - middle_x, gain = scene->exposure * (1 - edge * (dx * dx + dy * dy));
            float c[3];
            for (int i = 0; i < 3; i++) c[i] = film->planes[i][start + x] * gain;
            if (scene->gray) c[0] = c[1] = c[2] = 0.3f * c[0] + 0.59f * c[1] + 0.11f * c[2];
            for (uint32_t i = 0; i < 3; i++) {
                uint32_t bits = scramble((uint32_t)(start + x) * 3 + (scene->gray ? 0 : i) + scene->noise_seed);
                float sum = (float)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24));
                float value = 255 * sqrtf(fmaxf(0, c[i])) + scene->noise * (sum - 510) * (1.0f / 148);
                pixels[3 * (start + x) + i] = (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5f);
            }
        }
    }
}

size_t scene_scratch_count(int width, int height)
{
    return 3 * (size_t)width * (size_t)height + 2 * (size_t)width;
}

void scene_render(const scene *scene, float *scratch, unsigned char *pixels)
{
    size_t count = (size_t)scene->width * (size_t)scene->height;
    film film = {.width = scene->width, .height = scene->height};
    for (int c = 0; c < 3; c++) film.planes[c] = scratch + (size_t)c * count;
    for (int y = 0; y < scene->height; y++) {
        size_t start = (size_t)y * (size_t)scene->width;
        render_surroundings(scene, y, film.planes[0] + start, film.planes[1] + start, film.planes[2] + start);
    }
    for (int i = 0; i < scene->scrap_count; i++) render_scrap(scene, &scene->scraps[i], &film);
    render_shadow(scene, &film);
    render_object(scene, &film);
    for (int c = 0; c < 3 && scene->blur > 0; c++)
        blur_plane(film.planes[c], film.width, film.height, scene->blur, scratch + 3 * count);
    develop(scene, &film, pixels);
}
