/* The parts of the suite `input`. */
#ifndef MR_TOOLS_BENCH_INPUT_H
#define MR_TOOLS_BENCH_INPUT_H

#include "tools/bench/bench.h"

/* Rows on photographs of ImageNet's sizes, when the peers' are there. */
void bench_photos(bench_report *report);

#endif
