/* The functions of the LERC library that Debian's libtiff.a calls. LERC is C++ and a rare compression, which is refused: every
 * call fails. libtiff passes arguments, which the calling convention of C lets a function ignore. */
static constexpr unsigned FAILED = 1;

unsigned lerc_decode(void);
unsigned lerc_encodeForVersion(void);
unsigned lerc_getBlobInfo(void);

unsigned lerc_decode(void)
{
    return FAILED;
}

unsigned lerc_encodeForVersion(void)
{
    return FAILED;
}

unsigned lerc_getBlobInfo(void)
{
    return FAILED;
}
