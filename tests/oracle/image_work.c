/* Image functions of millrace for images_oracle.py. Reads one command per line from stdin:
 *
 *     make DIRECTORY                        writes every kind of JPEG and PNG
 *     corpus DIRECTORY                      writes a small image of each kind to DIRECTORY/jpeg, crop_ready and png
 *     ready FILE FILE segment               makes a file crop-ready; segment: MCUs per segment
 *     decode FILE TENSOR channels bits ratio plain accurate recover
 *     resize TENSOR TENSOR method height width align half
 *     region FILE TENSOR method height width x y w h flip
 *     encode TENSOR FILE jpeg|png
 *
 * A tensor file contains "dtype rank dims…", a newline and the elements; after a failure, "error: " and the message. */
#include "tests/kernels/images.h"

#include <inttypes.h>

static void write_file(const char *path, const char *head, const void *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == nullptr) exit(2);
    fputs(head, file);
    if (fwrite(bytes, 1, size_bytes, file) != size_bytes || fclose(file) != 0) exit(2);
}

static test_bytes read_file(const char *path)
{
    test_bytes result = {0};
    FILE *file = fopen(path, "rb");
    if (file == nullptr) exit(2);
    fseek(file, 0, SEEK_END);
    result.size_bytes = (unsigned long)ftell(file);
    rewind(file);
    result.bytes = malloc(result.size_bytes + 1);
    if (fread(result.bytes, 1, result.size_bytes, file) != result.size_bytes) exit(2);
    result.bytes[result.size_bytes] = 0;
    fclose(file);
    return result;
}

static void write_tensor(const char *path, mr_status status, const mr_tensor *tensor, const mr_error *error)
{
    char head[1200];
    if (status != MR_OK) {
        snprintf(head, sizeof(head), "error: %s", error->message);
        write_file(path, head, "", 0);
        return;
    }
    int at = snprintf(head, sizeof(head), "%s %d", mr_dtype_name(tensor->dtype), tensor->shape.rank);
    for (int i = 0; i < tensor->shape.rank; i++)
        at += snprintf(head + at, sizeof(head) - (size_t)at, " %" PRId64, tensor->shape.dims[i]);
    snprintf(head + at, sizeof(head) - (size_t)at, "\n");
    write_file(path, head, tensor->data, mr_tensor_size_bytes(tensor));
}

static mr_tensor read_tensor(const char *path)
{
    test_bytes bytes = read_file(path);
    char *at = (char *)bytes.bytes, *space = strchr(at, ' ');
    *space = '\0';
    mr_dtype dtype = mr_dtype_parse(at);
    mr_shape shape = {.rank = (int32_t)strtol(space + 1, &at, 10)};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = strtoll(at, &at, 10);
    mr_tensor tensor = {0};
    mr_error error = {0};
    if (mr_tensor_init_copy(&tensor, dtype, shape, at + 1, &error) != MR_OK) exit(2);
    free(bytes.bytes);
    return tensor;
}

static void make(const char *directory)
{
    char path[1024];
    for (int i = 0; i < test_jpeg_kind_count; i++)
        for (int size = 0; size < 3; size++) {
            test_bytes file = test_jpeg(size == 0   ? 75
                                        : size == 1 ? 16
                                                    : 33,
                                        size == 0   ? 43
                                        : size == 1 ? 16
                                                    : 61,
                                        test_jpeg_kinds[i]);
            snprintf(path, sizeof(path), "%s/jpeg-%02d-%d.jpg", directory, i, size);
            write_file(path, "", file.bytes, file.size_bytes);
            free(file.bytes);
        }
    for (int i = 0; i < test_png_kind_count; i++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            test_png_options options = test_png_kinds[i];
            options.interlaced = interlaced != 0;
            test_bytes file = test_png(37, 21, options);
            snprintf(path, sizeof(path), "%s/png-%02d-%d.png", directory, i, interlaced);
            write_file(path, "", file.bytes, file.size_bytes);
            free(file.bytes);
        }
}

static test_bytes crop_ready(test_bytes file, int32_t segment_mcus)
{
    mr_error error = {0};
    mr_tensor ready = {0};
    mr_crop_ready_options options = {.size = sizeof options, .restart_interval = segment_mcus};
    if (mr_image_crop_ready(file.bytes, file.size_bytes, &options, &ready, nullptr, &error) != MR_OK) exit(2);
    mr_string made = mr_tensor_strings(&ready)[0];
    test_bytes result = {malloc(made.size_bytes), made.size_bytes};
    memcpy(result.bytes, made.data, made.size_bytes);
    mr_tensor_deinit(&ready);
    return result;
}

/* Inserts an orientation, a profile and a comment after the start marker. */
static test_bytes with_metadata(test_bytes file)
{
    static const unsigned char segments[] = {
        0xff, 0xe1, 0,   34,  'E', 'x', 'i', 'f', 0,   0, 'M', 'M', 0, 42, 0,    0,    0,    8, 0,   1,   1,
        0x12, 0,    3,   0,   0,   0,   1,   0,   6,   0, 0,   0,   0, 0,  0,    0xff, 0xe2, 0, 18,  'I', 'C',
        'C',  '_',  'P', 'R', 'O', 'F', 'I', 'L', 'E', 0, 1,   1,   1, 2,  0xff, 0xfe, 0,    4, 'o', 'k'};
    test_bytes result = {malloc(file.size_bytes + sizeof(segments)), file.size_bytes + sizeof(segments)};
    memcpy(result.bytes, file.bytes, 2);
    memcpy(result.bytes + 2, segments, sizeof(segments));
    memcpy(result.bytes + 2 + sizeof(segments), file.bytes + 2, file.size_bytes - 2);
    return result;
}

static void jpeg_corpus(const char *directory, int kind)
{
    char path[1024];
    test_bytes file = test_jpeg(43, 37, test_jpeg_kinds[kind]), ready = crop_ready(file, 1 + kind % 3);
    snprintf(path, sizeof(path), "%s/jpeg/segments-%02d.jpg", directory, kind);
    write_file(path, "", ready.bytes, ready.size_bytes);
    free(ready.bytes);
    test_bytes rich = with_metadata(file);
    snprintf(path, sizeof(path), "%s/crop_ready/%02d.jpg", directory, kind);
    write_file(path, "", rich.bytes, rich.size_bytes);
    free(rich.bytes);
    free(file.bytes);
}

static void ready(char **words)
{
    test_bytes file = read_file(words[1]), made = crop_ready(file, atoi(words[3]));
    write_file(words[2], "", made.bytes, made.size_bytes);
    free(made.bytes);
    free(file.bytes);
}

static void corpus(const char *directory)
{
    char path[1024];
    for (int i = 0; i < test_jpeg_kind_count; i++) {
        test_bytes file = test_jpeg(19, 17, test_jpeg_kinds[i]);
        snprintf(path, sizeof(path), "%s/jpeg/%02d.jpg", directory, i);
        write_file(path, "", file.bytes, file.size_bytes);
        free(file.bytes);
        jpeg_corpus(directory, i);
    }
    for (int i = 0; i < test_png_kind_count; i++) {
        test_png_options options = test_png_kinds[i];
        options.interlaced = i % 2 == 1;
        test_bytes file = test_png(11, 9, options);
        snprintf(path, sizeof(path), "%s/png/%02d.png", directory, i);
        write_file(path, "", file.bytes, file.size_bytes);
        free(file.bytes);
    }
}

static void decode(char **words)
{
    mr_error error = {0};
    mr_tensor image = {0};
    test_bytes file = read_file(words[1]);
    mr_image_decode_options options = {.size = sizeof options,
                                       .channels = atoi(words[3]),
                                       .dtype = atoi(words[4]) == 16 ? MR_UINT16 : MR_UINT8,
                                       .ratio = atoi(words[5]),
                                       .no_fancy_upsampling = atoi(words[6]) != 0,
                                       .accurate_dct = atoi(words[7]) != 0,
                                       .try_recover_truncated = atoi(words[8]) != 0,
                                       .accept_damaged = true};
    mr_status status = mr_image_decode(file.bytes, file.size_bytes, &options, &image, &error);
    write_tensor(words[2], status, &image, &error);
    mr_tensor_deinit(&image);
    free(file.bytes);
}

static void resize(char **words)
{
    mr_error error = {0};
    mr_tensor images = read_tensor(words[1]), resized = {0};
    mr_resize_options options = {.size = sizeof options,
                                 .method = (mr_resize_method)atoi(words[3]),
                                 .align_corners = atoi(words[6]) != 0,
                                 .half_pixel_centers = atoi(words[7]) != 0};
    mr_status status = mr_image_resize(&images, atoi(words[4]), atoi(words[5]), &options, &resized, &error);
    write_tensor(words[2], status, &resized, &error);
    mr_tensor_deinit(&images);
    mr_tensor_deinit(&resized);
}

static void region(char **words)
{
    mr_error error = {0};
    test_bytes file = read_file(words[1]);
    mr_image_options options = {.size = sizeof options,
                                .method = (mr_resize_method)atoi(words[3]),
                                .height = atoi(words[4]),
                                .width = atoi(words[5])};
    mr_image_region where = {atoi(words[6]), atoi(words[7]), atoi(words[8]), atoi(words[9]), atoi(words[10]) != 0};
    mr_tensor target = {0};
    mr_image_scratch *scratch = nullptr;
    if (mr_tensor_init(&target, MR_FLOAT, MR_SHAPE(options.height, options.width, 3), &error) != MR_OK ||
        mr_image_scratch_new(&scratch, &error) != MR_OK)
        exit(2);
    mr_status status =
        mr_image_decode_region(file.bytes, file.size_bytes, &options, where, target.data, scratch, &error);
    write_tensor(words[2], status, &target, &error);
    mr_image_scratch_free(scratch);
    mr_tensor_deinit(&target);
    free(file.bytes);
}

static void encode(char **words)
{
    mr_error error = {0};
    mr_tensor image = read_tensor(words[1]), bytes = {0};
    mr_status status = strcmp(words[3], "png") == 0 ? mr_image_encode_png(&image, &bytes, &error)
                                                    : mr_image_encode_jpeg(&image, 0, &bytes, &error);
    if (status != MR_OK)
        write_file(words[2], "error: ", error.message, strlen(error.message));
    else
        write_file(words[2], "", mr_tensor_strings(&bytes)->data, mr_tensor_strings(&bytes)->size_bytes);
    mr_tensor_deinit(&image);
    mr_tensor_deinit(&bytes);
}

int main(void)
{
    char line[4096], *words[16];
    while (fgets(line, sizeof(line), stdin) != nullptr) {
        int count = 0;
        for (char *word = strtok(line, " \n"); word != nullptr && count < 15; word = strtok(nullptr, " \n"))
            words[count++] = word;
        if (count == 0) continue;
        if (strcmp(words[0], "make") == 0) make(words[1]);
        if (strcmp(words[0], "corpus") == 0) corpus(words[1]);
        if (strcmp(words[0], "ready") == 0) ready(words);
        if (strcmp(words[0], "decode") == 0) decode(words);
        if (strcmp(words[0], "resize") == 0) resize(words);
        if (strcmp(words[0], "region") == 0) region(words);
        if (strcmp(words[0], "encode") == 0) encode(words);
    }
    return 0;
}
