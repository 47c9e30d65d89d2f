/* The fused path from an image file to a batch row, for augment_oracle.py. Reads one image per line from stdin:
 *
 *     FILE TENSOR name=value…
 *
 * The names are those of mr_image_options and mr_image_region. A tensor file contains "dtype rank dims…", a newline and
 * the elements; after a failure, "error: " and the message. */
#include <millrace/image.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_file(const char *path, const char *head, const void *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == nullptr) exit(2);
    fputs(head, file);
    if (fwrite(bytes, 1, size_bytes, file) != size_bytes || fclose(file) != 0) exit(2);
}

static void set(mr_image_options *options, mr_image_region *region, const char *name, const char *value)
{
    const struct {
        const char *name;
        int32_t *whole;
        float *real;
    } fields[] = {
        {"height", &options->height, nullptr},
        {"width", &options->width, nullptr},
        {"channels", &options->channels, nullptr},
        {"crop", (int32_t *)&options->crop, nullptr},
        {"padding", &options->padding, nullptr},
        {"pad", (int32_t *)&options->padding_mode, nullptr},
        {"layout", (int32_t *)&options->layout, nullptr},
        {"x", &region->x, nullptr},
        {"y", &region->y, nullptr},
        {"w", &region->width, nullptr},
        {"h", &region->height, nullptr},
        {"std", nullptr, &options->std[0]},
        {"first", (int32_t *)&options->color.order[0], nullptr},
        {"second", (int32_t *)&options->color.order[1], nullptr},
        {"third", (int32_t *)&options->color.order[2], nullptr},
        {"fourth", (int32_t *)&options->color.order[3], nullptr},
        {"brightness", nullptr, &region->brightness},
        {"contrast", nullptr, &region->contrast},
        {"saturation", nullptr, &region->saturation},
        {"hue", nullptr, &region->hue},
    };
    if (strcmp(name, "dtype") == 0) options->dtype = mr_dtype_parse(value);
    if (strcmp(name, "flip") == 0) region->flip = value[0] == '1';
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (strcmp(name, fields[i].name) != 0) continue;
        if (fields[i].whole != nullptr) *fields[i].whole = (int32_t)strtol(value, nullptr, 10);
        if (fields[i].real != nullptr) *fields[i].real = strtof(value, nullptr);
    }
    options->std[1] = options->std[2] = options->std[0];
}

static void *read_file(const char *path, size_t *size_bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == nullptr) exit(2);
    fseek(file, 0, SEEK_END);
    *size_bytes = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size_bytes + 1);
    if (fread(bytes, 1, *size_bytes, file) != *size_bytes) exit(2);
    fclose(file);
    return bytes;
}

int main(void)
{
    char line[4096];
    mr_error error = {0};
    mr_image_scratch *scratch = nullptr;
    if (mr_image_scratch_new(&scratch, &error) != MR_OK) return 2;
    while (fgets(line, sizeof(line), stdin) != nullptr) {
        mr_image_options options = {.size = sizeof options, .dtype = MR_FLOAT, .channels = 3};
        mr_image_region region = {0};
        const char *from = strtok(line, " \n"), *to = strtok(nullptr, " \n");
        if (to == nullptr) return 2;
        for (char *word; (word = strtok(nullptr, " \n")) != nullptr;) {
            char *equals = strchr(word, '=');
            if (equals == nullptr) return 2;
            *equals = '\0';
            set(&options, &region, word, equals + 1);
        }
        size_t size_bytes = 0;
        void *bytes = read_file(from, &size_bytes);
        mr_tensor target = {0};
        mr_shape shape = options.layout == MR_LAYOUT_NCHW ? MR_SHAPE(options.channels, options.height, options.width)
                                                          : MR_SHAPE(options.height, options.width, options.channels);
        if (mr_tensor_init(&target, options.dtype, shape, &error) != MR_OK) return 2;
        char head[1200];
        if (mr_image_decode_region(bytes, size_bytes, &options, region, target.data, scratch, &error) == MR_OK) {
            snprintf(head, sizeof(head), "%s 3 %d %d %d\n", mr_dtype_name(options.dtype), (int)shape.dims[0],
                     (int)shape.dims[1], (int)shape.dims[2]);
            write_file(to, head, target.data, mr_tensor_size_bytes(&target));
        } else {
            snprintf(head, sizeof(head), "error: %s", error.message);
            write_file(to, head, "", 0);
        }
        mr_tensor_deinit(&target);
        free(bytes);
    }
    mr_image_scratch_free(scratch);
    return 0;
}
