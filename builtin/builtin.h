/* The parts that a program is built with: devices, kernels and operators, each a table of one file.
 *
 * builtin.c lists them and defines the public functions that begin to use them, so that everything below is registered
 * by then and refers only to what is below it. Code that uses a registry without a graph or a device, such as a test,
 * calls mr_builtin_register itself. */
#ifndef MR_BUILTIN_BUILTIN_H
#define MR_BUILTIN_BUILTIN_H

/* Registers everything. Thread-safe; only the first call has an effect. */
void mr_builtin_register(void);
/* Registers the rows of operators alone, for the generator of <millrace/ops.h>. Call it once. */
void mr_builtin_register_operators(void);

#endif
