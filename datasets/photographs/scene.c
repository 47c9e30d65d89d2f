/* Random generation of scenes. */
#include "scene.h"

#include <math.h>

const char *const class_names[CLASS_COUNT] = {"ball", "cone", "cube", "cylinder", "ring", "star"};

static float range(random_stream *random, double low, double high)
{
    return (float)random_range(random, low, high);
}

static bool chance(random_stream *random, double probability)
{
    return random_unit(random) < probability;
}

/* A color of the given brightness; saturation 0 is gray. */
static vector colour(random_stream *random, double brightness, double saturation)
{
    float hue = range(random, 0, 6.2831853), s = (float)saturation;
    vector c = {1 + s * cosf(hue), 1 + s * cosf(hue - 2.0944f), 1 + s * cosf(hue + 2.0944f)};
    return scaled(c, (float)brightness / (1 + s));
}

/* plain: from 0, the strongest contrast of table and wall, to 1, almost no pattern */
static surface draw_surface(random_stream *random, double frequency, double plain)
{
    surface surface = {.seed = random_next32(random)};
    double brightness = random_range(random, 0.15, 0.95), contrast = random_range(random, 0.5 + 0.3 * plain, 0.95);
    surface.light = colour(random, brightness, random_range(random, 0, 0.9));
    surface.dark = mixed(scaled(surface.light, (float)contrast), colour(random, brightness * contrast, 0.7),
                         range(random, 0, 0.5));
    surface.frequency = (float)frequency * range(random, 0.6, 1.8);
    surface.clouds = range(random, 0.2, 1);
    surface.stripes = chance(random, 0.4 - 0.2 * plain) ? range(random, 0.2, 1) : 0;
    surface.squares = chance(random, 0.2 - 0.2 * plain) ? range(random, 0.2, 1) : 0;
    surface.warp = range(random, 0, 2);
    float sum = surface.clouds + surface.stripes + surface.squares;
    surface.clouds /= sum;
    surface.stripes /= sum;
    surface.squares /= sum;
    return surface;
}

/* Upright, rotated about the vertical axis, then tilted by up to `tilt` in any direction. */
static void draw_rotation(scene *scene, random_stream *random, double tilt)
{
    float turn = range(random, 0, 6.2831853), lean = range(random, 0, tilt), toward = range(random, 0, 6.2831853);
    vector up = {sinf(lean) * cosf(toward), cosf(lean), sinf(lean) * sinf(toward)};
    vector side = unit(cross(up, (vector){cosf(turn), 0.01f, sinf(turn)}));
    scene->axes[0] = side;
    scene->axes[1] = up;
    scene->axes[2] = cross(side, up);
}

/* The axis (y of the object) points at the camera, except for a rotation of up to `turn`, so that rings and stars
 * show their faces. */
static void draw_facing(scene *scene, random_stream *random, double turn)
{
    vector to_eye = unit(add(scene->eye, scaled(scene->position, -1)));
    vector side = unit(cross(to_eye, (vector){0.02f, 1, 0})), over = cross(side, to_eye);
    float away = range(random, 0, turn), toward = range(random, 0, 6.2831853), roll = range(random, 0, 6.2831853);
    vector axis = add(scaled(to_eye, cosf(away)),
                      add(scaled(side, sinf(away) * cosf(toward)), scaled(over, sinf(away) * sinf(toward))));
    vector first = unit(cross(axis, add(scaled(side, cosf(roll)), scaled(over, sinf(roll)))));
    scene->axes[0] = first;
    scene->axes[1] = axis;
    scene->axes[2] = cross(first, axis);
}

/* The extent of the object below its center. */
static float reach_down(const scene *scene)
{
    float p = scene->proportion;
    float dx = fabsf(scene->axes[0].y), dy = scene->axes[1].y, dz = fabsf(scene->axes[2].y);
    float flat = sqrtf(fmaxf(0, 1 - dy * dy));
    switch (scene->class) {
    case BALL:
        return 1;
    case CUBE:
        return p * (dx + fabsf(dy) + dz);
    case CYLINDER:
        return p * fabsf(dy) + 0.6f * flat;
    case CONE:
        return fmaxf(p * dy + 0.75f * flat, -p * dy);
    case RING:
        return 0.85f * flat + p;
    default:
        return 1.1f * flat + p * fabsf(dy);
    }
}

static void draw_object(scene *scene, random_stream *random)
{
    static const float proportions[CLASS_COUNT][2] = {
        [BALL] = {1, 1},        [CONE] = {0.85f, 1.05f}, [CUBE] = {0.68f, 0.72f}, [CYLINDER] = {0.8f, 1.05f},
        [RING] = {0.16f, 0.3f}, [STAR] = {0.12f, 0.26f}};
    scene->proportion = range(random, proportions[scene->class][0], proportions[scene->class][1]);
    scene->skin = draw_surface(random, 1.6, 1);
    scene->gloss = chance(random, 0.5) ? range(random, 0.1, 0.7) : 0;
    if (scene->class == RING || scene->class == STAR)
        draw_facing(scene, random, 0.7);
    else
        draw_rotation(scene, random, scene->class == CUBE ? 0.5 : 0.35);
    /* It is on the table, or above it as if held. */
    float height = reach_down(scene) + (chance(random, 0.3) ? range(random, 0, 0.6) : 0);
    scene->eye.y += height - scene->position.y; /* keeps the camera pointed at it */
    scene->position.y = height;
}

static void draw_size(scene *scene, random_stream *random)
{
    static const float aspects[] = {1, 4.0f / 3, 3.0f / 2, 16.0f / 9, 5.0f / 4, 7.0f / 5};
    float aspect = chance(random, 0.2) ? range(random, 1, 2) : aspects[random_below(random, 6)];
    int shorter = (int)range(random, 240, fmin(640 / aspect, 480) + 0.5), longer = (int)lrintf((float)shorter * aspect);
    if (longer > 640) longer = 640;
    bool upright = chance(random, 0.35);
    scene->width = upright ? shorter : longer;
    scene->height = upright ? longer : shorter;
}

static void draw_camera(scene *scene, random_stream *random)
{
    float pitch = range(random, 0.12, 0.75), distance = range(random, 5, 9), turn = range(random, -0.08, 0.08);
    scene->position = (vector){0, 1, 0};
    scene->eye = (vector){0, 1 + distance * sinf(pitch), -distance * cosf(pitch)};
    scene->forward = unit(add(scene->position, scaled(scene->eye, -1)));
    vector level = {cosf(turn), sinf(turn), 0};
    scene->right = unit(add(level, scaled(scene->forward, -dot(level, scene->forward))));
    scene->up = cross(scene->forward, scene->right);
    float shorter = (float)(scene->width < scene->height ? scene->width : scene->height);
    /* The object is about 2 wide. */
    scene->focus = shorter * range(random, 0.55, 0.85) * distance / 2;
    scene->centre_x = (float)scene->width / 2 + shorter * range(random, -0.08, 0.08);
    scene->centre_y = (float)scene->height / 2 + shorter * range(random, -0.08, 0.08);
    scene->wall = range(random, 2, 9);
}

static void draw_light(scene *scene, random_stream *random)
{
    float around = range(random, 0, 6.2831853), above = range(random, 0.5, 1.3);
    scene->sun = (vector){cosf(above) * cosf(around), sinf(above), cosf(above) * sinf(around)};
    if (scene->sun.z > 0.3f) scene->sun.z = -scene->sun.z; /* the sun is not behind the wall */
    scene->sun_colour = scaled(colour(random, 1, random_range(random, 0, 0.12)), range(random, 0.7, 1.2));
    scene->sky_colour = scaled(colour(random, 1, random_range(random, 0, 0.15)), range(random, 0.25, 0.55));
}

static void draw_scraps(scene *scene, random_stream *random)
{
    float shorter = (float)(scene->width < scene->height ? scene->width : scene->height);
    scene->scrap_count = (int)random_below(random, (uint64_t)scrap_count_max + 1);
    for (int i = 0; i < scene->scrap_count; i++) {
        scene->scraps[i] = (scrap_shape){.x = range(random, 0, scene->width),
                                         .y = range(random, 0, scene->height),
                                         .radius = shorter * range(random, 0.008, 0.04),
                                         .length = chance(random, 0.6) ? shorter * range(random, 0.03, 0.22) : 0,
                                         .angle = range(random, 0, 3.1415927),
                                         .flatness = range(random, 0, 1),
                                         .colour = colour(random, random_range(random, 0.1, 0.9), 0.8)};
    }
}

static void draw_film(scene *scene, random_stream *random)
{
    static const int samplings[][2] = {{2, 2}, {2, 2}, {2, 2}, {2, 1}, {1, 1}, {1, 2}};
    scene->exposure = range(random, 0.7, 1.25);
    scene->vignette = range(random, 0, 0.35);
    scene->blur = chance(random, 0.6) ? range(random, 0, 0.25) : 0;
    scene->noise = range(random, 1, 9);
    scene->noise_seed = random_next32(random);
    scene->gray = chance(random, 0.05);
    scene->format = chance(random, 0.15) ? PNG : chance(random, 0.12) ? JPEG_PROGRESSIVE : JPEG_BASELINE;
    scene->quality = (int)range(random, 62, 97);
    uint64_t sampling = random_below(random, sizeof(samplings) / sizeof(samplings[0]));
    scene->horizontal = samplings[sampling][0];
    scene->vertical = samplings[sampling][1];
    scene->png_channels = chance(random, 0.15) ? 4 : 3;
}

void scene_draw(scene *scene, uint64_t seed, uint64_t index)
{
    *scene = (struct scene){.class = (object_class)(index % CLASS_COUNT)};
    random_stream random = random_at(seed, index, 0);
    draw_size(scene, &random);
    draw_camera(scene, &random);
    draw_light(scene, &random);
    scene->table = draw_surface(&random, 0.8, 0);
    scene->wall_paper = draw_surface(&random, 0.6, 0);
    draw_scraps(scene, &random);
    draw_film(scene, &random);
    draw_object(scene, &random);
}
