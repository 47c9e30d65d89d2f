/* Fuzz target: COCO's JSON. Values passed to the callbacks must be valid in COCO. The reader returns MR_OK, or
 * MR_DATA_LOSS with a message. Corpus: formats_corpus.py. */
#include "tools/common/arena.c"
#include "tools/tfrecord-make/coco.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

static mr_status check_image(void *context, const coco_image *image, mr_error *error)
{
    need(image->file_name.size_bytes > 0 && !memchr(image->file_name.data, 0, image->file_name.size_bytes));
    need(image->width >= 0 && image->width <= INT32_MAX && (image->width > 0) == (image->height > 0));
    return MR_OK;
}

static mr_status check_box(void *context, const coco_box *box, mr_error *error)
{
    need(isfinite(box->x) && isfinite(box->y) && isfinite(box->width) && isfinite(box->height));
    for (size_t i = 0; i < box->point_count; i++) {
        const coco_point *point = &box->points[i];
        need(isfinite(point->x) && isfinite(point->y) && point->visibility >= 0 && point->visibility <= 2);
        need(point->visibility > 0 || (point->x == 0 && point->y == 0));
    }
    return MR_OK;
}

static mr_status check_nothing(void *context, mr_error *error)
{
    return MR_OK;
}

static void check_name(mr_string name)
{
    need(name.size_bytes > 0 && !memchr(name.data, 0, name.size_bytes));
}

static mr_status check_category(void *context, const coco_category *category, mr_error *error)
{
    check_name(category->name);
    for (size_t i = 0; i < category->point_count; i++) check_name(category->points[i]);
    return MR_OK;
}

/* Invalid elements are reported, and the elements after them are still read. */
static mr_status check_fault(void *context, const coco_fault *fault, mr_error *error)
{
    need(fault->message[0] != '\0' && (fault->has_image || !fault->is_annotation));
    return MR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    static const coco_functions functions = {check_image, check_box, check_nothing, check_category, check_fault, true};
    mr_input_file *file = nullptr;
    mr_error error = {0};
    need(mr_input_file_from((mr_string){(const char *)bytes, size_bytes}, "fuzz", &file, &error) == MR_OK);
    mr_status status = coco_read(file, &functions, nullptr, &error);
    need(status == MR_OK || (status == MR_DATA_LOSS && error.message[0]));
    mr_input_file_close(file);
    return 0;
}
