/* The parts of the suite `input`. */
#ifndef MR_TOOLS_BENCH_INPUT_H
#define MR_TOOLS_BENCH_INPUT_H

#include "tools/bench/bench.h"

#include <millrace/dataset.h>

constexpr int BENCH_PHOTO_BATCH = 64;
/* The peers' photographs, as a pattern of record files; see bench_peers_path. */
const char *bench_photo_records(void);
/* Training batches of records of photographs: random-resized crops to 224, flipped, normalised. Takes records over. */
mr_dataset *bench_photo_batches(mr_dataset *records);

/* Rows on photographs of ImageNet's sizes, when the peers' are there. */
void bench_photos(bench_report *report);
/* The same beside whole loaders, and on one thread beside all. */
void bench_loaders(bench_report *report);
/* Time to the first batch, and memory, of a shuffle of 10,000 photographs. */
void bench_first_batch(bench_report *report);

#endif
