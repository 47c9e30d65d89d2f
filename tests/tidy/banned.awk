# Prints the lines that call one of the functions of -v calls='a|b'.
{
    line = code($0)
    if (line ~ "(^|[^A-Za-z0-9_])(" calls ")\\(") print FILENAME ":" FNR ": " line "   (banned: " why ")"
}
