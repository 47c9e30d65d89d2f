/* Other people's formats: CSV, tar, NumPy's .npy and .npz (zip), read piece by piece from files that may be hostile.
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
 * mr_input_file_free(file);
 * ```
 *
 * Nothing is read that is not asked for, and memory holds one row, one header or the rows of an array that are wanted.
 * Errors name the file, the place in it and the reason; MR_DATA_LOSS is damage, MR_UNIMPLEMENTED a form that is not
 * read, and MR_OUT_OF_RANGE the end. */
#ifndef MILLRACE_FORMATS_H
#define MILLRACE_FORMATS_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where the bytes are ---- */

/* A file, a part of one, bytes in memory, or what a compressed part came to. Reading is safe from any thread. */
typedef struct mr_input_file mr_input_file;

/* Opens a regular file. gunzip: one that is GZIP by its content is inflated first, into a file without a name in $TMPDIR
 * or /var/tmp, so that any place in it can be read.
 * errors  as mr_record_reader_open's for files; MR_DATA_LOSS for damaged GZIP */
mr_status mr_input_file_open(const char *path, bool gunzip, mr_input_file **file, mr_error *error);
/* Bytes in memory, borrowed for the life of the file; name is for messages and copied. */
mr_status mr_input_file_from(mr_string bytes, const char *name, mr_input_file **file, mr_error *error);
/* Reads size_bytes at an offset, or as many as there are before the end: *done says how many. */
mr_status mr_input_file_read(const mr_input_file *file, uint64_t offset, void *bytes, size_t size_bytes, size_t *done,
                             mr_error *error);
uint64_t mr_input_file_size(const mr_input_file *file);
int64_t mr_input_file_modified_ns(const mr_input_file *file); /* 0 when unknown */
const char *mr_input_file_name(const mr_input_file *file);
void mr_input_file_free(mr_input_file *file); /* null is allowed */

/* ---- CSV ---- */

/* RFC 4180, as TensorFlow's CsvDataset reads it: cells between separators; a cell in quotes holds separators, line breaks
 * and doubled quotes; lines end in LF, CRLF or CR. Quotes inside a cell that does not begin with one are an error. Lines
 * without a character are passed over, unless keeps_blank. A UTF-8 mark at the begin is skipped; UTF-16 and NUL are refused. Bytes above 127
 * are taken as they are. */

#define MR_CSV_ROW_SIZE_MAX ((size_t)16 << 20)
#define MR_CSV_CELLS_MAX ((int32_t)1 << 20)

/* {0} is empty; kept between rows. */
typedef struct mr_csv_row {
    mr_string *cells; /* borrowed until the row is filled anew; data null: nothing between the separators, also no "" */
    int32_t count;
    int32_t capacity;
    char *text; /* of cells that held doubled quotes */
    size_t text_capacity;
    char *buffer; /* of mr_csv_row_at */
    size_t buffer_capacity;
    /* Set by the caller: */
    bool keeps_blank; /* a line without a character is a row of one empty cell */
    bool no_quotes;   /* quotes are characters as any other */
} mr_csv_row;

/* Splits the first row of text. is_end: nothing follows text.
 * used    bytes of text that the row took, its line end and lines without a character before it included
 * errors  MR_OUT_OF_RANGE: no row (is_end), or it is not whole and wants more text; MR_DATA_LOSS: with the cell's number;
 *         used is 0 when the damage hides where the row ends */
mr_status mr_csv_split(mr_csv_row *row, mr_string text, bool is_end, char separator, size_t *used, mr_error *error);
/* Fills row with the row that begins at an offset, as mr_csv_reader_offset gave it; safe from any thread.
 * separator  0: a comma */
mr_status mr_csv_row_at(const mr_input_file *file, uint64_t offset, char separator, mr_csv_row *row, mr_error *error);
void mr_csv_row_deinit(mr_csv_row *row);

/* Reads row by row; the first row (a header, perhaps) is as any other. One thread at a time; file is borrowed. */
typedef struct mr_csv_reader mr_csv_reader;
mr_status mr_csv_reader_new(const mr_input_file *file, char separator, mr_csv_reader **reader, mr_error *error);
/* row: borrowed from the reader until the next call. errors: MR_OUT_OF_RANGE at the end */
mr_status mr_csv_reader_next(mr_csv_reader *reader, const mr_csv_row **row, mr_error *error);
/* Skips the next line that is not empty, whatever it holds. errors  MR_OUT_OF_RANGE: there is none */
mr_status mr_csv_reader_skip_line(mr_csv_reader *reader, mr_error *error);
/* Of the last row: where it begins, its bytes, and its first line, from 1. */
uint64_t mr_csv_reader_offset(const mr_csv_reader *reader);
mr_string mr_csv_reader_text(const mr_csv_reader *reader);
uint64_t mr_csv_reader_line(const mr_csv_reader *reader);
void mr_csv_reader_free(mr_csv_reader *reader);

/* ---- tar ---- */

typedef enum mr_tar_kind { MR_TAR_FILE = 0, MR_TAR_FOLDER, MR_TAR_LINK, MR_TAR_OTHER } mr_tar_kind;

/* name is as the archive has it: it may hold "..", begin with '/', or be any bytes but NUL. Never use it as a path
 * without looking. */
typedef struct mr_tar_member {
    const char *name;       /* borrowed from the reader until the next call */
    uint64_t header_offset; /* where it begins: a reader may be started here */
    uint64_t offset;        /* of its bytes */
    uint64_t size_bytes;    /* 0 but for MR_TAR_FILE */
    int64_t modified_ns;
    mr_tar_kind kind;
    uint32_t
        archive; /* how many archives ended between the reader's start and the member; 0 in a file of one archive */
} mr_tar_member;

/* Walks headers: ustar, its old forms, pax and GNU's long names and numbers, of one archive or of several that were
 * concatenated. Sparse files and parts of multi-volume archives are refused. One thread at a time; file is borrowed,
 * offset 0 is the first member. */
typedef struct mr_tar_reader mr_tar_reader;
mr_status mr_tar_reader_new(const mr_input_file *file, uint64_t offset, mr_tar_reader **reader, mr_error *error);
/* errors  MR_OUT_OF_RANGE at the end of the file; MR_DATA_LOSS: a bad checksum or number, a member longer than the file,
 *         bytes behind the end of an archive that are no header */
mr_status mr_tar_reader_next(mr_tar_reader *reader, mr_tar_member *member, mr_error *error);
void mr_tar_reader_free(mr_tar_reader *reader);

/* ---- NumPy's .npy ---- */

/* An array in a file: formats 1.0 to 3.0, numbers of either byte order, booleans, bytes ('S') and text ('U'). */
typedef struct mr_npy {
    char kind; /* NumPy's: 'b' boolean, 'i', 'u', 'f', 'c', 'S' bytes, 'U' text */
    bool is_big_endian;
    bool is_fortran; /* the first index varies fastest; tensors are in C order all the same */
    uint32_t item_bytes;
    mr_dtype dtype; /* of tensors: MR_STRING for 'S' (zeros at the end cut, as NumPy does) and 'U' (as UTF-8) */
    mr_shape shape;
    uint64_t offset; /* of the elements */
} mr_npy;

/* Reads the header of the array that begins at an offset, and checks that its elements are there.
 * errors  MR_DATA_LOSS; MR_UNIMPLEMENTED: pickled objects, structures, times, long doubles, rank above 8 */
mr_status mr_npy_open(const mr_input_file *file, uint64_t offset, mr_npy *array, mr_error *error);
/* Rows [begin, end) of dimension 0, as a tensor with that dimension; safe from any thread. Of an array in Fortran's order
 * every element of a row is read by itself: take many rows at once. */
mr_status mr_npy_read_rows(const mr_input_file *file, const mr_npy *array, int64_t begin, int64_t end,
                           mr_tensor *tensor, mr_error *error);
/* The whole array, of any rank. */
mr_status mr_npy_read(const mr_input_file *file, const mr_npy *array, mr_tensor *tensor, mr_error *error);
/* Lays an array in Fortran's order out in C order, in a file as mr_input_file_open inflates into; array then speaks of that
 * file. So its rows can be read one by one. */
mr_status mr_npy_turn(const mr_input_file *file, mr_npy *array, mr_input_file **turned, mr_error *error);
/* A whole file, in and out: format 1.0, numbers and booleans. A file that cannot be written stays as it was. */
mr_status mr_npy_load(const char *path, mr_tensor *tensor, mr_error *error);
mr_status mr_npy_save(const char *path, const mr_tensor *tensor, mr_error *error);

/* ---- zip, as far as .npz wants it ---- */

typedef struct mr_zip_member {
    char *name;             /* owned by the zip; as the archive has it, see mr_tar_member */
    uint64_t header_offset; /* of the local header */
    uint64_t size_bytes, packed_bytes;
    uint32_t crc32;
    uint16_t method; /* 0 stored, 8 deflated; others are refused by extract */
} mr_zip_member;

/* The directory at the end of the file; {0} is empty. zip64 is read, encryption and several disks are refused. */
typedef struct mr_zip {
    mr_zip_member *members; /* owned */
    int64_t count;
} mr_zip;
mr_status mr_zip_open(const mr_input_file *file, mr_zip *zip, mr_error *error);
void mr_zip_deinit(mr_zip *zip);
/* A member as a file: a stored one is a part of file (which must outlive it), a deflated one is inflated as
 * mr_input_file_open does. The checksum is verified, so the member is read through once.
 * errors  MR_DATA_LOSS: damage, another size or checksum than the directory says */
mr_status mr_zip_extract(const mr_input_file *file, const mr_zip_member *member, mr_input_file **part, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
