/* Fuzz target: Pascal VOC's XML. Every parsed object must have a name and a complete box. Corpus: formats_corpus.py. */
#include "tools/common/arena.c"
#include "tools/tfrecord-make/voc.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    arena arena = {0};
    voc_annotation annotation;
    mr_error error = {0};
    mr_status status = voc_parse((mr_string){(const char *)bytes, size_bytes}, &arena, &annotation, &error);
    need(status == MR_OK || error.message[0]);
    for (size_t i = 0; status == MR_OK && i < annotation.count; i++) {
        const voc_object *object = &annotation.objects[i];
        need(object->name[0] && object->pose);
        need(isfinite(object->xmin) && isfinite(object->ymin) && isfinite(object->xmax) && isfinite(object->ymax));
    }
    need(annotation.width >= 0 && annotation.width <= INT32_MAX && annotation.height >= 0);
    arena_deinit(&arena);
    return 0;
}
