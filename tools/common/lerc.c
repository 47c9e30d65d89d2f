/* Stubs of the LERC functions that Debian's libtiff.a calls. LERC is a C++ library for a rare compression, which is not
 * supported: every call fails. libtiff passes arguments, which C's calling convention lets a function ignore. */
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
