# Finds cycles between the library's files, and symbols used against the layers:
#
#     awk -f tests/tidy/code.awk -f tests/tidy/symbols.awk [-v list=1] base/*.[ch] records/io/*.[ch] …
#
# A unit is a .c file with the header of the same name. A unit uses another if a function in it names an mr_… function
# or object that the other defines. The sources are read as text, so nothing has to be compiled; they must be formatted
# by clang-format, since a definition is recognized by its column. Prints a line for each fault; with list=1 all uses.

BEGIN {
    # What each directory may use besides itself; tests/tidy/run checks includes by the same rules.
    may["base"] = ""
    may["proto"] = "base"
    may["records"] = "base proto"
    may["queue"] = "base"
    may["kernels"] = "base"
    may["cuda"] = "base kernels"
    may["pipeline"] = "base records queue kernels"
    may["graph"] = "base proto records queue kernels pipeline"
    may["builtin"] = "base kernels cuda pipeline graph"
    # Modules: several units that are one state machine, which count as one unit here.
    while ((getline line < "tests/tidy/modules") > 0) {
        if (line ~ /^(#|$)/) continue
        split(line, word, " ")
        module[++modules] = word[1]
    }
}

function directory(unit) {
    sub(/\/.*/, "", unit)
    return unit
}

function unit_of(file, i) {
    sub(/\.[a-z]+$/, "", file)
    for (i = 1; i <= modules; i++) if (index(file, module[i]) == 1) return module[i] "*"
    return file
}

function define(symbol) {
    if (symbol in defined && defined[symbol] != unit) defined_twice[symbol] = 1
    defined[symbol] = unit
}

FNR == 1 {
    unit = unit_of(FILENAME)
    is_header = FILENAME ~ /\.h$/
    in_body = 0
    head = ""
}

{
    text = code($0)
    # A function: its head begins in the first column, and its body with "{" in the first column.
    if (text ~ /^[A-Za-z_]/) head = text ~ /mr_[a-z0-9_]+\(/ ? text : ""
    if (text ~ /^\{/ && head != "") {
        if (head !~ /^static / || head ~ /^static inline/) {
            match(head, /mr_[a-z0-9_]+\(/)
            define(substr(head, RSTART, RLENGTH - 1))
        }
        in_body = 1
        head = ""
    }
    if (text ~ /;$/ && text !~ /^[ {]/) head = ""
    if (text ~ /^\}/) in_body = 0
    # An object: "const mr_stage_class mr_batch_class = {".
    if (text ~ /^[a-z].*[ *]mr_[a-z0-9_]+(\[[^=]*\])*( = .*|;)$/ && text !~ /\(/ &&
        text !~ /^(static|typedef|extern|return|(struct|union|enum) [a-z_]+( \{|;))/) {
        symbol = text
        sub(/(\[[^=]*\])*( = .*|;)$/, "", symbol)
        sub(/.*[ *]/, "", symbol)
        define(symbol)
    }
    if (is_header && !in_body) next
    while (match(text, /(^|[^A-Za-z0-9_>.])mr_[a-z0-9_]+/)) {
        symbol = substr(text, RSTART, RLENGTH)
        sub(/^[^m]/, "", symbol)
        used[unit, symbol] = FILENAME ":" FNR
        text = substr(text, RSTART + RLENGTH)
    }
}

END {
    for (key in used) {
        split(key, part, SUBSEP)
        if (!(part[2] in defined) || part[2] in defined_twice) continue
        from = part[1]
        to = defined[part[2]]
        if (from == to) continue
        if (list) print from, to, part[2]
        if (!((from, to) in edge)) {
            out[from]++
            into[to]++
            edge[from, to] = part[2]
        }
        top = directory(from)
        other = directory(to)
        if (top in may && top != other && index(" " may[top] " ", " " other " ") == 0)
            print used[key] " uses " part[2] " of " to ", which its layer does not allow"
    }
    # A unit that uses none, or that none uses, is on no cycle. Without it, that holds for others.
    do {
        removed = 0
        for (key in edge) {
            split(key, part, SUBSEP)
            if (out[part[2]] > 0 && into[part[1]] > 0) continue
            out[part[1]]--
            into[part[2]]--
            delete edge[key]
            removed = 1
        }
    } while (removed)
    for (key in edge) {
        split(key, part, SUBSEP)
        print part[1] " uses " part[2] " (" edge[key] "): part of a cycle between files"
    }
}
