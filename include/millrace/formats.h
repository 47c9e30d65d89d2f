/* Other file formats: CSV, tar, NumPy's .npy and .npz (zip), read in pieces from files that may be hostile.
 *
 * ```c
 * mr_error error = {0};
 * mr_input_file *file = nullptr;
 * mr_csv_reader *reader = nullptr;
 * const mr_csv_row *row = nullptr;
 * if (mr_input_file_open("flowers.csv", true, &file, &error) != MR_OK) return 1;
 * if (mr_csv_reader_new(file, 0, &reader, &error) != MR_OK) return 1;
 * while (mr_csv_reader_next(reader, &row, &error) == MR_OK)
 *     printf("%d cells, the first is %.*s\n", row->count, (int)row->cells[0].size_bytes, row->cells[0].data);
 * mr_csv_reader_free(reader);
 * mr_input_file_close(file);
 * ```
 *
 * Only requested data is read. Memory holds one row, one header or the requested rows of an array. Error messages name
 * the file, the position and the reason. MR_DATA_LOSS is damage, MR_UNIMPLEMENTED a variant that is not supported, and
 * MR_OUT_OF_RANGE the end. */
#ifndef MILLRACE_FORMATS_H
#define MILLRACE_FORMATS_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Input files ---- */

/* A file, a part of a file, bytes in memory, or decompressed data. Reading is safe from any thread. */
typedef struct mr_input_file mr_input_file;

/* Opens a regular file.
 * gunzip  decompress the file first if its contents are GZIP, into an unnamed file in $TMPDIR or /var/tmp, to allow
 *         random access
 * errors  as mr_record_reader_open's for files; MR_DATA_LOSS for damaged GZIP */
MR_API mr_status mr_input_file_open(const char *path, bool gunzip, mr_input_file **file, mr_error *error);
/* Uses bytes in memory, borrowed for the life of the file.
 * name  used in messages; copied */
MR_API mr_status mr_input_file_from(mr_string bytes, const char *name, mr_input_file **file, mr_error *error);
/* Reads size_bytes at an offset, or fewer at the end of the file. *done is the number of bytes read. */
MR_API mr_status mr_input_file_read(const mr_input_file *file, uint64_t offset, void *bytes, size_t size_bytes,
                                    size_t *done, mr_error *error);
MR_API uint64_t mr_input_file_size(const mr_input_file *file);
MR_API int64_t mr_input_file_modified_ns(const mr_input_file *file); /* 0 when unknown */
MR_API const char *mr_input_file_name(const mr_input_file *file);
MR_API void mr_input_file_close(mr_input_file *file); /* null is allowed */

/* ---- CSV ---- */

/* RFC 4180, as TensorFlow's CsvDataset reads it: cells between separators; a quoted cell may contain separators, line
 * breaks and doubled quotes; lines end in LF, CRLF or CR. A quote inside an unquoted cell is an error. Empty lines are
 * skipped unless keeps_blank is set. A UTF-8 byte order mark at the start is skipped. UTF-16 and NUL bytes are errors.
 * Bytes above 127 are passed through unchanged. */

/* Limits of a row, in bytes and in cells. A larger row is an error. */
#define MR_CSV_ROW_SIZE_MAX ((size_t)16 << 20)
#define MR_CSV_CELLS_MAX ((int32_t)1 << 20)

/* {0} is an empty row. Its memory is reused for the next row. */
typedef struct mr_csv_row {
    mr_string *cells; /* borrowed until the row is filled again; data is null for an empty cell without quotes (not for
                         "") */
    int32_t count;
    int32_t capacity;
    char *text; /* contents of cells with doubled quotes */
    size_t text_capacity;
    char *buffer; /* used by mr_csv_row_at */
    size_t buffer_capacity;
    /* Set by the caller: */
    bool keep_empty_lines; /* an empty line is a row of one empty cell */
    bool no_quotes;        /* quotes are ordinary characters */
} mr_csv_row;

/* Splits the first row of text.
 * is_end  nothing follows text
 * used    bytes of text that the row occupies, including its line end and the empty lines before it
 * errors  MR_OUT_OF_RANGE: no row (is_end), or an incomplete row that needs more text; MR_DATA_LOSS with the cell's
 *         number; used is 0 if the damage makes the end of the row unknown */
MR_API mr_status mr_csv_split(mr_csv_row *row, mr_string text, bool is_end, char separator, size_t *used,
                              mr_error *error);
/* Reads the row that starts at an offset, as returned by mr_csv_reader_offset. Safe from any thread.
 * separator  0: comma */
MR_API mr_status mr_csv_row_at(const mr_input_file *file, uint64_t offset, char separator, mr_csv_row *row,
                               mr_error *error);
MR_API void mr_csv_row_deinit(mr_csv_row *row);

/* Reads row by row. A header row is returned like any other row. One thread at a time; file is borrowed. */
typedef struct mr_csv_reader mr_csv_reader;
MR_API mr_status mr_csv_reader_new(const mr_input_file *file, char separator, mr_csv_reader **reader, mr_error *error);
/* row     borrowed from the reader until the next call
 * errors  MR_OUT_OF_RANGE at the end */
MR_API mr_status mr_csv_reader_next(mr_csv_reader *reader, const mr_csv_row **row, mr_error *error);
/* Skips the next line that is not empty without parsing it. errors: MR_OUT_OF_RANGE at the end */
MR_API mr_status mr_csv_reader_skip_line(mr_csv_reader *reader, mr_error *error);
/* The last row's offset, its bytes, and the number of its first line, counted from 1. */
MR_API uint64_t mr_csv_reader_offset(const mr_csv_reader *reader);
MR_API mr_string mr_csv_reader_text(const mr_csv_reader *reader);
MR_API uint64_t mr_csv_reader_line(const mr_csv_reader *reader);
MR_API void mr_csv_reader_free(mr_csv_reader *reader);

/* ---- tar ---- */

typedef enum mr_tar_kind { MR_TAR_FILE = 0, MR_TAR_DIRECTORY, MR_TAR_LINK, MR_TAR_OTHER } mr_tar_kind;

/* name is stored as in the archive: it may contain "..", start with '/', or be any bytes except NUL. Validate it before
 * using it as a path. */
typedef struct mr_tar_member {
    const char *name;       /* borrowed from the reader until the next call */
    uint64_t header_offset; /* start of the member; a reader can be started here */
    uint64_t offset;        /* of the contents */
    uint64_t size_bytes;    /* 0 except for MR_TAR_FILE */
    int64_t modified_ns;
    mr_tar_kind kind;
    uint32_t archive; /* archives that ended between the reader's start and the member; 0 in a file of one archive */
} mr_tar_member;

/* Iterates over the members of one archive or of several concatenated ones: ustar and its predecessors, pax, and GNU's
 * long names and numbers. Sparse files and parts of multi-volume archives are errors. One thread at a time; file is
 * borrowed; offset 0 is the first member. */
typedef struct mr_tar_reader mr_tar_reader;
MR_API mr_status mr_tar_reader_new(const mr_input_file *file, uint64_t offset, mr_tar_reader **reader, mr_error *error);
/* errors  MR_OUT_OF_RANGE at the end of the file; MR_DATA_LOSS: a wrong checksum, an invalid number, a member that is
 *         longer than the file, or bytes after the end of an archive that are not a header */
MR_API mr_status mr_tar_reader_next(mr_tar_reader *reader, mr_tar_member *member, mr_error *error);
MR_API void mr_tar_reader_free(mr_tar_reader *reader);

/* ---- NumPy's .npy ---- */

/* An array in a file: format versions 1.0 to 3.0; numbers of either byte order, booleans, bytes ('S') and text
 * ('U'). */
typedef struct mr_npy {
    char kind; /* NumPy's: 'b' boolean, 'i', 'u', 'f', 'c', 'S' bytes, 'U' text */
    bool is_big_endian;
    bool fortran_order; /* the first index varies fastest; tensors are in C order nevertheless */
    uint32_t item_bytes;
    mr_dtype dtype; /* of tensors: MR_STRING for 'S' (without trailing zeros, as in NumPy) and 'U' (as UTF-8) */
    mr_shape shape;
    uint64_t offset; /* of the elements */
} mr_npy;

/* Reads the header of the array that starts at an offset, and checks that the file contains all its elements.
 * errors  MR_DATA_LOSS; MR_UNIMPLEMENTED: pickled objects, structured arrays, dates and times, long doubles, rank above
 *         8 */
MR_API mr_status mr_npy_open(const mr_input_file *file, uint64_t offset, mr_npy *array, mr_error *error);
/* Reads rows [begin, end) of dimension 0 as a tensor with that dimension. Safe from any thread. With Fortran order,
 * every element of a row is a separate read: request many rows at once. */
MR_API mr_status mr_npy_read_rows(const mr_input_file *file, const mr_npy *array, int64_t begin, int64_t end,
                                  mr_tensor *tensor, mr_error *error);
/* Reads the complete array, of any rank. */
MR_API mr_status mr_npy_read(const mr_input_file *file, const mr_npy *array, mr_tensor *tensor, mr_error *error);
/* Copies an array in Fortran order to C order, into an unnamed file as mr_input_file_open uses, so that its rows can be
 * read one by one.
 * array   on return describes the new file
 * turned  the new file, owned by the caller */
MR_API mr_status mr_npy_to_c_order(const mr_input_file *file, mr_npy *array, mr_input_file **turned, mr_error *error);
/* Load and save a complete file. Saving writes format version 1.0, numbers and booleans; on an error an existing file
 * is unchanged. */
MR_API mr_status mr_npy_load(const char *path, mr_tensor *tensor, mr_error *error);
MR_API mr_status mr_npy_save(const char *path, const mr_tensor *tensor, mr_error *error);

/* ---- zip, as needed for .npz ---- */

typedef struct mr_zip_member {
    char *name;             /* owned by the zip; as stored in the archive, see mr_tar_member */
    uint64_t header_offset; /* of the local header */
    uint64_t size_bytes, compressed_bytes;
    uint32_t crc32;
    uint16_t method; /* 0 stored, 8 deflated; extract fails for others */
} mr_zip_member;

/* The central directory of an archive; {0} is empty. zip64 is supported; encryption and multi-disk archives are
 * errors. */
typedef struct mr_zip {
    mr_zip_member *members; /* owned */
    int64_t count;
} mr_zip;
MR_API mr_status mr_zip_open(const mr_input_file *file, mr_zip *zip, mr_error *error);
MR_API void mr_zip_deinit(mr_zip *zip);
/* Opens a member as a file. A stored member is a part of file, which must outlive it. A deflated member is decompressed
 * as by mr_input_file_open. The checksum is verified, so the member is read once completely.
 * errors  MR_DATA_LOSS: damage, or a size or checksum other than in the directory */
MR_API mr_status mr_zip_extract(const mr_input_file *file, const mr_zip_member *member, mr_input_file **part,
                                mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
