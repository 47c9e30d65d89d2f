/* The examples of the guides in docs/, in fenced blocks:
 *
 *   ```sh      All of a guide's run in order, each by a shell of its own (sh -eu), in the test's directory, with the
 *              built programs on the PATH.
 *   ```text    Must appear in what the commands before it printed, regardless of the amount of white space. "…" stands
 *              for any text.
 *   ```c FILE  Must appear in this file of the repository. */
#ifndef MR_TESTS_DOCS_GUIDE_H
#define MR_TESTS_DOCS_GUIDE_H

/* Runs and checks the examples of a guide, "docs/records-cookbook.md", in the test's directory. A failure ends the
 * test, with the block and what it printed. */
void guide_run(const char *name);

#endif
