# code(text): a line of C without comments, and with empty strings and character constants. Lines are given in order; a
# comment that is still open at the end of a line is remembered until the next file begins.

FNR == 1 { in_comment = 0 }

function code(text, result, end, token) {
    result = ""
    while (1) {
        if (in_comment) {
            if (!(end = index(text, "*/"))) return result
            text = substr(text, end + 2)
            in_comment = 0
        }
        if (!match(text, /"([^"\\]|\\.)*"|'([^'\\]|\\.)+'|\/\*|\/\//)) return result text
        token = substr(text, RSTART, RLENGTH)
        result = result substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + RLENGTH)
        if (token == "//") return result
        if (token == "/*") in_comment = 1
        else result = result (token ~ /^"/ ? "\"\"" : "0")
    }
}
