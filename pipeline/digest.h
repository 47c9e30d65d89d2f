/* Digest: 64 bits that identify what a dataset delivers: the kinds and settings of its tree and the content of its
 * sources. A state, a cache or a snapshot holds the digest of the dataset it was written by, and no other dataset accepts
 * it.
 *
 * The content counts, never the paths or the times of files, so that a copied data set has the digest of the original.
 * Tensors are read completely. Of files, the sizes and evenly spaced blocks are read: all of it where there is little.
 * Functions of the user cannot be seen; a dataset option stands for them (mr_dataset_options.version). */
#ifndef MR_PIPELINE_DIGEST_H
#define MR_PIPELINE_DIGEST_H

#include <millrace/dataset.h>
#include <millrace/formats.h>

/* The digest with one more value, or with bytes, which are hashed one by one: for settings, not for data. */
uint64_t mr_digest(uint64_t digest, uint64_t value);
uint64_t mr_digest_bytes(uint64_t digest, const void *bytes, size_t size_bytes);
uint64_t mr_digest_float(uint64_t digest, float number);
/* Null is allowed and differs from "". */
uint64_t mr_digest_text(uint64_t digest, const char *text);
uint64_t mr_digest_shape(uint64_t digest, mr_shape shape);
/* dtype, shape and elements, in host memory. A tensor without elements is allowed, {0} too. */
uint64_t mr_digest_tensor(uint64_t digest, const mr_tensor *tensor);
/* Name, dtype, form and every other option, pointers followed. */
uint64_t mr_digest_features(uint64_t digest, const mr_feature *features, int32_t count);

/* Size and content of one of file_count files, which share what is read. */
mr_status mr_digest_file(uint64_t *digest, const mr_input_file *file, size_t file_count, mr_error *error);
/* The same of files by name. What is not a regular file has no content. */
mr_status mr_digest_paths(uint64_t *digest, const char *const *paths, int32_t count, mr_error *error);

/* The digest of the tree. The content of each source is read once, and kept in its dataset.
 * errors   those of reading the sources' files
 * threads  safe from any thread */
mr_status mr_dataset_digest(const mr_dataset *dataset, uint64_t *digest, mr_error *error);

#endif
