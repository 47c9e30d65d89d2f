/* SIGINT, SIGTERM and SIGHUP: the program reports where it stopped and ends by the signal, as shells expect.
 *
 * ```c
 * interrupt_install("tool: interrupted; nothing was written\n");
 * …what may end at any moment…
 * interrupt_defer();
 * while (work is left && !interrupt_signal()) work();
 * if (interrupt_signal()) …clean up, print where it stopped, interrupt_exit()…
 * ```
 *
 * After interrupt_defer the first signal only sets a flag, which the program polls; a second one ends it at once. */
#ifndef MR_TOOLS_INTERRUPT_H
#define MR_TOOLS_INTERRUPT_H

/* message  static; printed to the standard error when a signal arrives; the program then ends */
void interrupt_install(const char *message);
/* From now on signals are left to the caller. */
void interrupt_defer(void);
/* interrupt_defer also for SIGPIPE, which otherwise ends the program at once: a write to a closed standard output then
 * fails with EPIPE, and the program can still write its files. */
void interrupt_defer_pipe(void);
/* The signal received since interrupt_defer; 0: none. Safe from any thread. */
int interrupt_signal(void);
/* Ends the program by the signal received. stdout and stderr are flushed. */
[[noreturn]] void interrupt_exit(void);

#endif
