/* The parts of the suite `input`. */
#ifndef MR_TOOLS_BENCH_INPUT_H
#define MR_TOOLS_BENCH_INPUT_H

#include "tools/bench/bench.h"

#include <millrace/dataset.h>

constexpr int BENCH_PHOTO_BATCH = 64;
/* The peers' photographs, as a pattern of record files; see bench_peers_path. */
const char *bench_photo_records(void);
/* Training batches from records of photographs: random-resized crops to 224, flipped, normalized. Takes ownership of
 * records. */
mr_dataset *bench_photo_batches(mr_dataset *records);

/* Rows for photographs of ImageNet's sizes, if the peers' photographs are available. */
void bench_photos(bench_report *report);
/* The same tasks against complete loaders; also millrace on one thread against all threads. */
void bench_loaders(bench_report *report);
/* Time to the first batch, and memory, for a shuffle of 10,000 photographs. */
void bench_first_batch(bench_report *report);

/* input_peers.c: complete loaders, by number, and ours from C. Images per second of training input; a loader that could
 * not run has 0. */
constexpr int BENCH_LOADERS = 7;
const char *bench_loader_name(int loader);
double bench_loader_images(int loader, const char *scripts, int threads);
mr_status bench_our_images(int threads, double *images, mr_error *error);

#endif
