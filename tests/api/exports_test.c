/* The symbols of libmillrace.so: it exports exactly the functions that the installed headers declare, each with the
 * library's symbol version. */
#include "tests/test.h"

#include <millrace/api.h>

#include <ctype.h>
#include <elf.h>
#include <glob.h>
#include <unistd.h>

constexpr int names_max = 2000;

typedef struct names {
    char *items[names_max];
    int count;
} names;

static void add(names *names, const char *name, size_t length)
{
    CHECK(names->count < names_max);
    names->items[names->count++] = strndup(name, length);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_deinit(names *names)
{
    for (int i = 0; i < names->count; i++) free(names->items[i]);
}

/* Reads a file whose path is relative to the installed programs; adds a terminating zero. */
static char *read_installed(const char *path, size_t *size_bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == nullptr) test_skip("%s is not installed", path);
    fseek(file, 0, SEEK_END);
    *size_bytes = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size_bytes + 1);
    CHECK(bytes != nullptr && fread(bytes, 1, *size_bytes, file) == *size_bytes);
    bytes[*size_bytes] = '\0';
    fclose(file);
    return bytes;
}

/* ---- The functions that a header declares ---- */

/* Replaces everything that is not a top-level declaration by spaces: comments, directives, and the contents of braces
 * except those of extern "C". */
static void keep_declarations(char *text)
{
    int depth = 0;
    for (char *at = text; *at != '\0';) {
        char *end = at + 1;
        bool line_start = at == text || at[-1] == '\n';
        if (strncmp(at, "/*", 2) == 0) {
            end = strstr(at, "*/") + 2;
        } else if (line_start && *at == '#') {
            while (*end != '\0' && (*end != '\n' || end[-1] == '\\')) end++;
        } else if (strncmp(at, "extern \"C\" {", 12) == 0) {
            end = at + 12;
        } else if (*at == '{' || *at == '}') {
            if (*at == '{' || depth > 0) depth += *at == '{' ? 1 : -1;
        } else if (depth == 0) {
            at = end;
            continue;
        }
        for (; at < end; at++)
            if (*at != '\n') *at = depth == 0 && *at == '}' ? ';' : ' ';
    }
}

/* Adds the name of each function that is declared and not defined: the first mr_ name before a parenthesis. */
static void add_declared(names *declared, char *text)
{
    keep_declarations(text);
    for (char *statement = text, *end; (end = strchr(statement, ';')) != nullptr; statement = end + 1) {
        *end = '\0';
        while (isspace((unsigned char)*statement)) statement++;
        if (strncmp(statement, "typedef", 7) == 0 || strncmp(statement, "static", 6) == 0 ||
            strncmp(statement, "template", 8) == 0)
            continue;
        for (char *open = strchr(statement, '('); open != nullptr; open = strchr(open + 1, '(')) {
            char *begin = open;
            while (begin > statement && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
            if (strncmp(begin, "mr_", 3) != 0) continue;
            add(declared, begin, (size_t)(open - begin));
            break;
        }
    }
}

/* ---- The symbols that a shared library defines ---- */

static const Elf64_Shdr *section(const char *bytes, uint32_t type)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(bytes + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == type) return &sections[i];
    test_fail(__FILE__, __LINE__, "no section of type %u", type);
}

/* The name of a version number, from the version definitions, not from the versions needed from other libraries. */
static const char *version_name(const char *bytes, const char *strings, unsigned number)
{
    const char *at = bytes + section(bytes, SHT_GNU_verdef)->sh_offset;
    while (true) {
        const Elf64_Verdef *definition = (const Elf64_Verdef *)at;
        const Elf64_Verdaux *name = (const Elf64_Verdaux *)(at + definition->vd_aux);
        if (definition->vd_ndx == number) return strings + name->vda_name;
        if (definition->vd_next == 0) return "";
        at += definition->vd_next;
    }
}

static void add_exported(names *exported, const char *bytes)
{
    const Elf64_Shdr *table = section(bytes, SHT_DYNSYM);
    const Elf64_Half *versions = (const Elf64_Half *)(bytes + section(bytes, SHT_GNU_versym)->sh_offset);
    const char *strings =
        bytes + ((const Elf64_Shdr *)(bytes + ((const Elf64_Ehdr *)bytes)->e_shoff))[table->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(bytes + table->sh_offset);
    char expected[32];
    snprintf(expected, sizeof expected, "MILLRACE_%d", MR_VERSION_MAJOR);
    for (size_t i = 1; i < table->sh_size / sizeof *symbols; i++) {
        const char *name = strings + symbols[i].st_name;
        if (symbols[i].st_shndx == SHN_UNDEF || strcmp(name, expected) == 0) continue;
        const char *version = version_name(bytes, strings, versions[i] & 0x7fff);
        if (strcmp(version, expected) != 0)
            test_fail(__FILE__, __LINE__, "%s has the version \"%s\", not %s", name, version, expected);
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC) test_fail(__FILE__, __LINE__, "%s is not a function", name);
        add(exported, name, strlen(name));
    }
}

TEST(shared_library_exports_the_declared_functions)
{
    if (sizeof(void *) != 8) test_skip("the library is not a 64-bit ELF file");
    static names declared, exported;
    glob_t headers = {0};
    CHECK(glob(test_bin("../include/millrace/*.h"), 0, nullptr, &headers) == 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        size_t size_bytes;
        char *text = read_installed(headers.gl_pathv[i], &size_bytes);
        add_declared(&declared, text);
        free(text);
    }
    globfree(&headers);
    CHECK(declared.count > 300);
    size_t size_bytes;
    char *library = read_installed(test_bin("../lib/libmillrace.so"), &size_bytes);
    CHECK(size_bytes > sizeof(Elf64_Ehdr) && memcmp(library, ELFMAG, SELFMAG) == 0);
    add_exported(&exported, library);

    qsort(declared.items, (size_t)declared.count, sizeof(char *), by_name);
    qsort(exported.items, (size_t)exported.count, sizeof(char *), by_name);
    for (int i = 0, j = 0; i < declared.count || j < exported.count;) {
        int order = i == declared.count ? 1 : j == exported.count ? -1 : strcmp(declared.items[i], exported.items[j]);
        if (order < 0) test_fail(__FILE__, __LINE__, "%s is declared, but not exported", declared.items[i]);
        if (order > 0) test_fail(__FILE__, __LINE__, "%s is exported, but not declared", exported.items[j]);
        i++, j++;
    }
    names_deinit(&declared);
    names_deinit(&exported);
    free(library);
}

TEST(version_is_that_of_the_header)
{
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", MR_VERSION_MAJOR, MR_VERSION_MINOR, MR_VERSION_PATCH);
    CHECK_STR(MR_VERSION, text);
    CHECK_STR(mr_version(), text);
    char path[64];
    snprintf(path, sizeof path, "../lib/libmillrace.so.%s", text);
    if (access(test_bin("../lib/libmillrace.so"), F_OK) != 0) test_skip("libmillrace.so is not installed");
    CHECK(access(test_bin(path), F_OK) == 0);
}
