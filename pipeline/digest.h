/* Digest: 64 bits that identify what a dataset delivers: the kinds and settings of its tree, and the content of its
 * sources. States, caches and snapshots contain the digest of the dataset that wrote them; other datasets reject them.
 *
 * Content counts, paths and times of files do not, so a copied data set has the digest of the original. Tensors are
 * read completely. Of files, the size and evenly spaced blocks are read; small files completely. User functions cannot
 * be inspected; mr_dataset_options.version represents them. */
#ifndef MR_PIPELINE_DIGEST_H
#define MR_PIPELINE_DIGEST_H

#include <millrace/dataset.h>
#include <millrace/formats.h>

/* Adds a value, or bytes, to the digest. Bytes are hashed one at a time: for settings, not for data. */
uint64_t mr_digest(uint64_t digest, uint64_t value);
uint64_t mr_digest_bytes(uint64_t digest, const void *bytes, size_t size_bytes);
uint64_t mr_digest_float(uint64_t digest, float number);
/* Null is allowed and differs from "". */
uint64_t mr_digest_text(uint64_t digest, const char *text);
uint64_t mr_digest_shape(uint64_t digest, mr_shape shape);
/* dtype, shape and elements. The tensor must be in host memory; one without elements, and {0}, are allowed. */
uint64_t mr_digest_tensor(uint64_t digest, const mr_tensor *tensor);
/* Name, dtype, form and all other options; pointers are followed. */
uint64_t mr_digest_features(uint64_t digest, const mr_feature *features, int32_t count);

/* Size and content of one of file_count files. The files share a limit on the bytes that are read. */
mr_status mr_digest_file(uint64_t *digest, const mr_input_file *file, size_t file_count, mr_error *error);
/* The same for files given by name. Anything but a regular file has no content. */
mr_status mr_digest_paths(uint64_t *digest, const char *const *paths, int32_t count, mr_error *error);

/* The digest of the tree. The content of each source is read once; the result is stored in its dataset.
 * errors   of reading the sources' files
 * threads  any */
mr_status mr_dataset_digest(const mr_dataset *dataset, uint64_t *digest, mr_error *error);

#endif
