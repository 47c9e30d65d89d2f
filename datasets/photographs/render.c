/* The renderer: computes pixels from a scene.
 *
 * First the surroundings: each pixel's ray meets the table or the wall, whose pattern is a function of the position, in
 * loops that vectorize. Then the scraps, as lit bars in the image plane. Then the object: within the rectangle of its
 * bounding sphere, rays are followed through its distance field in steps that cannot pass through it; its shadow on the
 * table is computed with rays towards the light. Finally lens and film: blur, vignette, exposure, gamma and noise. */
#include "scene.h"

#include <math.h>
#include <string.h>

constexpr float bound = 1.3f; /* radius of the object's bounding sphere */

/* A cheap 32-bit mixing function. It vectorizes in loops, which the library's counter-based generator does not. */
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

/* Random values at integer coordinates, smoothly interpolated. */
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

/* From 0, dark, to 1, light. Always inlined, so that the loop over a row vectorizes with it. */
[[gnu::always_inline]] static inline float pattern(surface surface, float x, float y)
{
    x *= surface.frequency;
    y *= surface.frequency;
    float cloud = 0.55f * value_noise(x * 1.3f, y * 1.3f, surface.seed) +
                  0.3f * value_noise(x * 3.7f, y * 3.7f, surface.seed + 1) +
                  0.15f * value_noise(x * 11, y * 11, surface.seed + 2);
    float stripe = triangle(x * 1.7f + surface.warp * cloud);
    float square = (triangle(x) - 0.5f) * (triangle(y) - 0.5f) > 0 ? 1.0f : 0.0f;
    return surface.clouds * cloud + surface.stripes * stripe + surface.squares * square;
}

[[gnu::always_inline]] static inline float box_distance(float x, float y, float z)
{
    float ox = x > 0 ? x : 0, oy = y > 0 ? y : 0, oz = z > 0 ? z : 0;
    float inside = x > y ? x : y;
    inside = inside > z ? inside : z;
    return sqrtf(ox * ox + oy * oy + oz * oz) + (inside < 0 ? inside : 0);
}

[[gnu::always_inline]] static inline float disc_distance(float radial, float along)
{
    return box_distance(radial, along, -1e9f);
}

/* Five reflections fold the plane onto the sector between a tip and the adjacent notch, where the outline is one
 * line. */
[[gnu::always_inline]] static inline float star_outline(float x, float y)
{
    static const float normals[3][2] = {
        {-0.95105652f, -0.30901699f}, {-0.95105652f, 0.30901699f}, {-0.58778525f, 0.80901699f}};
    y = fabsf(y);
    for (int i = 0; i < 3; i++) {
        float side = normals[i][0] * x + normals[i][1] * y;
        side = side > 0 ? 2 * side : 0;
        x -= side * normals[i][0];
        y -= side * normals[i][1];
    }
    constexpr float tip = 1.1f, notch = 0.5f;
    constexpr float notch_x = notch * 0.80901699f, notch_y = notch * 0.58778525f;
    float nx = notch_y, ny = tip - notch_x, length = sqrtf(nx * nx + ny * ny);
    return ((x - tip) * nx + y * ny) / length;
}

/* A lower bound of the distance to the object; negative inside. In the object's coordinates, in which it fits into a
 * sphere of radius 1.3. */
[[gnu::always_inline]] static inline float shape_distance(object_class class, float size, float x, float y, float z)
{
    constexpr float edge = 0.03f; /* edges are slightly rounded */
    float radial = sqrtf(x * x + z * z);
    switch (class) {
    case BALL:
        return sqrtf(x * x + y * y + z * z) - 1;
    case CUBE:
        return box_distance(fabsf(x) - size + edge, fabsf(y) - size + edge, fabsf(z) - size + edge) - edge;
    case CYLINDER:
        return disc_distance(radial - 0.6f + edge, fabsf(y) - size + edge) - edge;
    case CONE: {
        /* Base of radius 0.75 at -size, tip at +size. */
        float slope = (radial * 2 * size + (y - size) * 0.75f) / sqrtf(4 * size * size + 0.75f * 0.75f);
        float base = -y - size;
        return slope > base ? slope : base;
    }
    case RING:
        return sqrtf((radial - 0.85f) * (radial - 0.85f) + y * y) - size;
    default:
        return disc_distance(star_outline(x, z) + edge, fabsf(y) - size + edge) - edge;
    }
}

/* Sixteen rays are followed at a time. They take nearly all of an image's time. */
constexpr int lane_count = 16;
typedef struct lanes {
    alignas(64) float x[lane_count], y[lane_count], z[lane_count];
} lanes;

static void distances(const scene *scene, const lanes *points, float *target)
{
    float size = scene->proportion;
    switch (scene->class) {
#define CASE(class)                                                                                                    \
    case class:                                                                                                        \
        for (int i = 0; i < lane_count; i++)                                                                           \
            target[i] = shape_distance(class, size, points->x[i], points->y[i], points->z[i]);                         \
        break;
        CASE(BALL)
        CASE(CONE)
        CASE(CUBE)
        CASE(CYLINDER)
        CASE(RING)
        CASE(STAR)
#undef CASE
    default:
        break;
    }
}

static float object_distance(const scene *scene, vector p)
{
    return shape_distance(scene->class, scene->proportion, p.x, p.y, p.z);
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

/* From 0, in the object's shadow, to 1, fully lit, for points in the world relative to the object. */
static void sunlight(const scene *scene, const lanes *from, float *light)
{
    alignas(64) float t[lane_count], end[lane_count], past[lane_count], distance[lane_count];
    vector sun = scene->sun, step = to_object(scene, sun);
    const vector *axes = scene->axes;
    lanes start, point;
    bool any = false;
    for (int i = 0; i < lane_count; i++) {
        vector at = {from->x[i], from->y[i], from->z[i]};
        float along = -dot(at, sun), apart = dot(at, at) - along * along;
        bool meets = along > -bound && apart < (bound + 0.2f) * (bound + 0.2f);
        start.x[i] = dot(axes[0], at);
        start.y[i] = dot(axes[1], at);
        start.z[i] = dot(axes[2], at);
        float near = along - bound - 0.2f;
        t[i] = near > 0.02f ? near : 0.02f;
        past[i] = along;
        end[i] = meets ? along + bound + 0.3f : -1;
        light[i] = 1;
        any |= meets;
    }
    for (int k = 0; k < 24 && any; k++) {
        for (int i = 0; i < lane_count; i++) {
            point.x[i] = start.x[i] + t[i] * step.x;
            point.y[i] = start.y[i] + t[i] * step.y;
            point.z[i] = start.z[i] + t[i] * step.z;
        }
        distances(scene, &point, distance);
        int going = 0;
        for (int i = 0; i < lane_count; i++) {
            float seen = 0.5f + 5 * distance[i] / (t[i] + 0.3f);
            seen = seen < light[i] ? seen : light[i];
            light[i] = t[i] < end[i] ? (seen > 0 ? seen : 0) : light[i];
            bool leaving = t[i] > past[i] && distance[i] > 0.4f;
            end[i] = leaving || light[i] <= 0 ? -1 : end[i];
            t[i] += distance[i] > 0.04f ? distance[i] : 0.04f;
            going += t[i] < end[i];
        }
        any = going > 0;
    }
}

/* Renders one row of table and wall, without the object, to planes of red, green and blue. */
static void render_surroundings(const scene *scene, int y, float *restrict red, float *restrict green,
                                float *restrict blue)
{
    vector first = pixel_ray(scene, 0.5f, (float)y + 0.5f), step = scaled(scene->right, 1 / scene->focus);
    vector eye = scene->eye, sun = scene->sun, sky_colour = scene->sky_colour, sun_colour = scene->sun_colour;
    float table_light = fmaxf(sun.y, 0), wall_light = fmaxf(-sun.z, 0) * 0.8f + 0.1f, wall_z = scene->wall;
    const surface on_table = scene->table, on_wall = scene->wall_paper;
    for (int x = 0; x < scene->width; x++) {
        vector ray = add(first, scaled(step, (float)x));
        float to_table = ray.y < -1e-4f ? -eye.y / ray.y : 1e6f;
        float to_wall = ray.z > 1e-4f ? (wall_z - eye.z) / ray.z : 1e6f;
        bool table = to_table < to_wall;
        float t = table ? to_table : to_wall;
        float px = eye.x + t * ray.x, py = eye.y + t * ray.y, pz = eye.z + t * ray.z;
        surface s;
#define CHOOSE(field) s.field = table ? on_table.field : on_wall.field
        CHOOSE(frequency);
        CHOOSE(clouds);
        CHOOSE(stripes);
        CHOOSE(squares);
        CHOOSE(warp);
        CHOOSE(seed);
        float share = pattern(s, px, table ? pz : py), light = table ? table_light : wall_light;
        /* The corner between table and wall is darker. */
        float corner = 0.6f + 0.4f * (table ? wall_z - pz : py);
        corner = corner < 1 ? corner : 1;
#define CHANNEL(c, target)                                                                                             \
    CHOOSE(dark.c);                                                                                                    \
    CHOOSE(light.c);                                                                                                   \
    target[x] = (s.dark.c + share * (s.light.c - s.dark.c)) * corner * (sky_colour.c + light * sun_colour.c)
        CHANNEL(x, red);
        CHANNEL(y, green);
        CHANNEL(z, blue);
#undef CHANNEL
#undef CHOOSE
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

/* Distance to a bar with round ends. across is -1 … 1 over its width. */
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

static void render_shadow_at(const scene *scene, film *film, int left, int y)
{
    lanes from;
    alignas(64) float light[lane_count];
    vector first = pixel_ray(scene, (float)left + 0.5f, (float)y + 0.5f), step = scaled(scene->right, 1 / scene->focus);
    vector eye = scene->eye, position = scene->position;
    for (int i = 0; i < lane_count; i++) {
        vector ray = add(first, scaled(step, (float)i));
        float t = ray.y < -1e-4f ? -eye.y / ray.y : 1e6f;
        from.x[i] = eye.x + t * ray.x - position.x;
        from.y[i] = -position.y;
        from.z[i] = eye.z + t * ray.z - position.z;
    }
    sunlight(scene, &from, light);
    float sun = fmaxf(scene->sun.y, 0) * scene->sun_colour.y, sky = scene->sky_colour.y;
    for (int i = 0; i < lane_count && left + i < film->width; i++) {
        if (from.z[i] + position.z > scene->wall) continue;
        /* Under the object, the sky is also occluded. */
        float near = (from.x[i] * from.x[i] + position.y * position.y + from.z[i] * from.z[i]) /
                     (position.y * position.y + 0.8f);
        float open = near < 1.8f ? fminf(1, 0.55f + 0.25f * near) : 1;
        if (light[i] < 1 || open < 1) darken(film, left + i, y, (sky * open + sun * light[i]) / (sky + sun));
    }
}

static void render_shadow(const scene *scene, film *film)
{
    for (int y = 0; y < film->height; y++)
        for (int x = 0; x < film->width; x += lane_count) render_shadow_at(scene, film, x, y);
}

static vector object_colour(const scene *scene, vector p, vector ray)
{
    vector normal = object_normal(scene, p);
    float share = pattern(scene->skin, p.x + 0.6f * p.y + 7, p.z - 0.8f * p.y + 9);
    vector skin = mixed(scene->skin.dark, scene->skin.light, share);
    vector sun = to_object(scene, scene->sun), up = to_object(scene, (vector){0, 1, 0});
    float facing = fmaxf(0, dot(normal, sun)), sky = 0.6f + 0.4f * dot(normal, up);
    vector light = add(scaled(scene->sky_colour, sky), scaled(scene->sun_colour, facing));
    vector half = unit(add(sun, scaled(unit(ray), -1)));
    float shine = fmaxf(0, dot(normal, half));
    for (int i = 0; i < 5; i++) shine *= shine;
    return add(times(skin, light), scaled(scene->sun_colour, scene->gloss * shine));
}

/* Follows rays through the distance field. Where a ray passes close by, the pixel is partly covered. */
static void trace(const scene *scene, vector start, const lanes *rays, float footprint, lanes *hits, float *cover)
{
    alignas(64) float t[lane_count], end[lane_count], closest[lane_count], distance[lane_count];
    lanes point;
    bool any = false;
    for (int i = 0; i < lane_count; i++) {
        float along = -(start.x * rays->x[i] + start.y * rays->y[i] + start.z * rays->z[i]);
        float inside = bound * bound - (dot(start, start) - along * along);
        float half = inside > 0 ? sqrtf(inside) : 0;
        t[i] = along - half;
        end[i] = inside > 0 ? along + half : -1;
        closest[i] = 1e9f;
        any |= inside > 0;
    }
    for (int k = 0; k < 48 && any; k++) {
        for (int i = 0; i < lane_count; i++) {
            point.x[i] = start.x + t[i] * rays->x[i];
            point.y[i] = start.y + t[i] * rays->y[i];
            point.z[i] = start.z + t[i] * rays->z[i];
        }
        distances(scene, &point, distance);
        int going = 0;
        for (int i = 0; i < lane_count; i++) {
            bool closer = t[i] < end[i] && distance[i] < closest[i];
            closest[i] = closer ? distance[i] : closest[i];
            hits->x[i] = closer ? point.x[i] : hits->x[i];
            hits->y[i] = closer ? point.y[i] : hits->y[i];
            hits->z[i] = closer ? point.z[i] : hits->z[i];
            end[i] = distance[i] < 0.2f * footprint ? -1 : end[i];
            t[i] += distance[i] > 0.5f * footprint ? distance[i] : 0.5f * footprint;
            going += t[i] < end[i];
        }
        any = going > 0;
    }
    for (int i = 0; i < lane_count; i++) cover[i] = fmaxf(0, fminf(1, 1 - closest[i] / footprint));
}

static void render_object_at(const scene *scene, film *film, vector start, float footprint, int left, int right, int y)
{
    lanes rays, hits = {0};
    float cover[lane_count];
    for (int i = 0; i < lane_count; i++) {
        vector ray = to_object(scene, unit(pixel_ray(scene, (float)(left + i) + 0.5f, (float)y + 0.5f)));
        rays.x[i] = ray.x;
        rays.y[i] = ray.y;
        rays.z[i] = ray.z;
    }
    trace(scene, start, &rays, footprint, &hits, cover);
    for (int i = 0; i < lane_count && left + i < right; i++) {
        if (cover[i] <= 0) continue;
        vector hit = {hits.x[i], hits.y[i], hits.z[i]}, ray = {rays.x[i], rays.y[i], rays.z[i]};
        paint(film, left + i, y, object_colour(scene, hit, ray), cover[i]);
    }
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
        for (int column = area.left; column < area.right; column += lane_count)
            render_object_at(scene, film, start, footprint, column, area.right, row);
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

/* Applies gamma, and noise that is the sum of four uniform bytes: nearly normal, with a standard deviation of 148 out
 * of 510. */
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
