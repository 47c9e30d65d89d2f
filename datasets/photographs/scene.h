/* A scene, the contents of a photograph: one object of a class on a table in front of a wall, scraps on the table,
 * light, and a camera.
 *
 * Everything is drawn from (seed, index) alone, so an image does not depend on the thread or the order of rendering.
 * Nothing but the shape depends on the class: colors, textures, light and position carry no information about it. */
#ifndef MR_DATASETS_PHOTOGRAPHS_SCENE_H
#define MR_DATASETS_PHOTOGRAPHS_SCENE_H

#include "common/random.h"

#include <millrace/status.h>

typedef enum object_class { BALL, CONE, CUBE, CYLINDER, RING, STAR, CLASS_COUNT } object_class;
extern const char *const class_names[CLASS_COUNT];

typedef struct vector {
    float x, y, z;
} vector;

/* A pattern in two colors: clouds, stripes distorted by clouds, and squares, each with a weight. */
typedef struct surface {
    vector light, dark;
    float frequency, clouds, stripes, squares, warp;
    uint32_t seed;
} surface;

typedef struct scrap_shape {
    float x, y, radius, length, angle; /* in pixels; a bar with round ends, or a disc if length is 0 */
    float flatness;                    /* 0: shaded as a rod, 1: as a card */
    vector colour;
} scrap_shape;

constexpr int scrap_count_max = 7;

typedef enum image_format { JPEG_BASELINE, JPEG_PROGRESSIVE, PNG } image_format;

typedef struct scene {
    object_class class;
    int width, height;
    /* Object: shape parameters, and the rotation from world to object coordinates. */
    float proportion; /* by class: half height, ring thickness, star depth */
    vector axes[3];   /* rows of the rotation */
    vector position;
    surface skin;
    float gloss;
    /* Surroundings. y points up, the table is at y = 0, the wall at z = wall. */
    surface table, wall_paper;
    float wall;
    int scrap_count;
    scrap_shape scraps[scrap_count_max];
    vector sun; /* towards the light */
    vector sun_colour, sky_colour;
    /* Camera. */
    vector eye, forward, right, up;
    float focus; /* pixels for a slope of 1 */
    float centre_x, centre_y;
    /* Film. */
    float exposure, vignette, blur, noise;
    bool gray;
    uint32_t noise_seed;
    /* File. */
    image_format format;
    int quality, horizontal, vertical; /* JPEG: sampling of luma over chroma */
    int png_channels;                  /* 3, 4 */
} scene;

void scene_draw(scene *scene, uint64_t seed, uint64_t index);

/* pixels  width x height x 3 bytes; scratch  scene_scratch_count floats */
void scene_render(const scene *scene, float *scratch, unsigned char *pixels);
size_t scene_scratch_count(int width, int height);

/* Writes to a temporary name and renames the file. */
mr_status image_save(const scene *scene, const unsigned char *pixels, const char *path, mr_error *error);

static inline vector add(vector a, vector b)
{
    return (vector){a.x + b.x, a.y + b.y, a.z + b.z};
}
static inline vector scaled(vector a, float by)
{
    return (vector){a.x * by, a.y * by, a.z * by};
}
static inline vector times(vector a, vector b)
{
    return (vector){a.x * b.x, a.y * b.y, a.z * b.z};
}
static inline float dot(vector a, vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
static inline vector cross(vector a, vector b)
{
    return (vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static inline vector unit(vector a)
{
    return scaled(a, 1.0f / __builtin_sqrtf(dot(a, a)));
}
static inline vector mixed(vector a, vector b, float share)
{
    return add(a, scaled(add(b, scaled(a, -1)), share));
}

#endif
