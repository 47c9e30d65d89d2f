/* Runs the examples of the guides in docs/. They are fenced blocks:
 *
 *   ```sh      The blocks of a guide run in order, each in its own shell (sh -eu), in the test's directory, with the
 *              built programs on the PATH.
 *   ```text    Must appear in the output of the preceding commands, regardless of the amount of white space. "…"
 *              matches any text.
 *   ```c FILE  Must appear in this file of the repository. */
#ifndef MR_TESTS_DOCS_GUIDE_H
#define MR_TESTS_DOCS_GUIDE_H

/* Runs and checks the examples of a guide, such as "docs/records-cookbook.md", in the test's directory. On failure the
 * test ends and prints the block and its output. */
void guide_run(const char *name);

#endif
