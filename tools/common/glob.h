/* Patterns of paths, as --include and --exclude have them. In names, * is any text, ? is any character, [ab], [a-z] and [!a-z] are one of
 * a set or none of it, and \ takes the next character as it is.
 *
 *     *.jpg          the name of a file or of a directory, anywhere
 *     raw            likewise: all that is in a directory of that name
 *     raw/           the same, and no file of that name
 *     2024/cat_*     a path from the top; * and ? and [a-z] stop at a slash
 *     2024/ ** /x    (without the blanks) any number of directories between, also none
 *
 * A pattern that matches a directory matches everything in it. Matching takes at most the product of the lengths. */
#ifndef MR_TOOLS_GLOB_H
#define MR_TOOLS_GLOB_H

/* path: with slashes between names, without one at its beginning; with one at its end if it is a directory's. */
bool glob_match(const char *pattern, const char *path);

#endif
