# Turns the ```c blocks of a guide, which are complete functions, into a C file that is compiled with the tests:
# awk -f tests/docs/recipes.awk docs/datasets-cookbook.md
BEGIN {
    print "#include <millrace/millrace.h>"
    print "#include <stdio.h>"
    print "#include <stdlib.h>"
    print "#include <string.h>"
}
/^```c$/ { inside = 1; printf "#line %d \"%s\"\n", FNR + 1, FILENAME; next }
/^```$/ { inside = 0 }
inside
