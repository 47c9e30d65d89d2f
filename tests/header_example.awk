# Turns the loop of use that opens a public header (the lines between ```c and ```) into a C function, which the tests
# compile: awk -v name=dataset -f tests/header_example.awk include/millrace/dataset.h
BEGIN {
    print "#include <millrace/millrace.h>"
    print "#include <stdio.h>"
    print "int header_example_" name "(void);"
    print "int header_example_" name "(void)\n{"
}
/^ \* ```c$/ { inside = 1; next }
/^ \* ```$/ { inside = 0; next }
inside { sub(/^ \* ?/, "    "); print }
END { print "    return 0;\n}" }
