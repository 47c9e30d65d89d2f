/* Path patterns of --include and --exclude. Within a name, * matches any text, ? any character, [ab], [a-z] and [!a-z]
 * one character in or not in a set; \ makes the next character literal.
 *
 *     *.jpg          the name of a file or directory, at any depth
 *     raw            likewise; a directory of that name matches with everything in it
 *     raw/           only directories of that name
 *     2024/cat_*     a path from the root; * and ? and [a-z] do not match a slash
 *     2024/ ** /x    (without the spaces) any number of directories in between, including none
 *
 * A pattern that matches a directory matches everything in it. Matching takes at most time proportional to the product
 * of the lengths. */
#ifndef MR_TOOLS_GLOB_H
#define MR_TOOLS_GLOB_H

/* path: names separated by slashes, without a leading slash; with a trailing slash if it is a directory. */
bool glob_match(const char *pattern, const char *path);

#endif
