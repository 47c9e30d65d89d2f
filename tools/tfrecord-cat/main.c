/* The command table of tfrecord-cat; see cat.h and --help. */
#include "common/output.h"
#include "tfrecord-cat/cat.h"

const command commands[] = {
    {nullptr, 0, GROUP_SHOW, nullptr, show_run, "print each record as a readable block", nullptr, .knows_labels = true},
    {"json", 'j', GROUP_SHOW, nullptr, json_run, "print each record as a line of JSON (JSON Lines)",
     "Each line has file, record, offset and features; a feature is {\"int64\": […]}, {\"float\": […]} or "
     "{\"bytes\": […]}. Bytes that are not valid UTF-8 are under \"base64\" instead. Numbers that JSON cannot "
     "represent are \"NaN\", \"Infinity\" and \"-Infinity\". A SequenceExample has context and feature_lists; a "
     "record of any other kind has \"base64\".\n"
     "\n"
     "Memory: per processor, 8 MiB and twice the longest record; 120 bytes for each feature of a record, which "
     "may have up to 1,000,000."},
    {"csv", 0, GROUP_SHOW, nullptr, csv_run, "print scalar features as CSV with a header",
     "The columns are the text and number features with at most one value in the first 1,000 records (or 16 MiB); "
     "a message lists the features left out. With --features, the columns are the features it selects, including "
     "lists, whose values are joined with \";\". Binary bytes are \"base64:…\"; --bytes hex or base64 encodes all "
     "bytes. A missing feature is an empty cell, an empty text is \"\". Numbers that are not finite are nan, inf "
     "and -inf, as tfrecord-make, pandas and TensorFlow read them.\n"
     "\n"
     "Memory: 20 MiB and three times the longest record."},
    {"about", 0, GROUP_SHOW, nullptr, about_run, "describe a tfds directory: splits, features, labels",
     "Reads dataset_info.json, features.json and the label files that tensorflow_datasets stores in the directory "
     "of the record files. Record blocks of such a directory also show label names.\n"
     "\n"
     "Memory: 64 MiB for each directory.",
     .knows_labels = true},

    {"dump", 0, GROUP_SHOW, nullptr, dump_run, "list the values of a tensor dump: graph-run --dump, tfdbg",
     "FILE is the directory of one run. A line has the time since the first value, node and output, dtype and shape, "
     "how many elements are NaN or infinite, and the first elements. --features selects nodes by name.\n"
     "\n"
     "Memory: 200 bytes for each value, and twice the largest one.",
     .takes_dumps = true},

    {"count", 'c', GROUP_SUMMARY, nullptr, count_run, "count the records of each file",
     "Counts by the index or by record headers, on all processors (--jobs); record data is not read. Compressed "
     "files are read completely.\n"
     "\n"
     "Memory: 1 MiB for each thread."},
    {"schema", 0, GROUP_SUMMARY, nullptr, schema_run,
     "list features, types, lengths, presence; C and Python to parse them",
     "The specifications parse these records as they are: a feature with the same number of values in every "
     "record has a fixed length, all others have a variable length. --spec c or --spec python prints only that "
     "specification, to be included or imported.\n"
     "\n"
     "Memory: 24 MiB and twice the longest record; at most 10,000 names of 16 MiB in total are distinguished."},
    {"stats", 0, GROUP_SUMMARY, nullptr, stats_run,
     "summarize features: ranges, quantiles, frequent values, classes, images",
     "For each feature: the number of records that have it and the number of values. For numbers: minimum, "
     "maximum, mean, standard deviation (of the population), quantiles, most frequent values, zeros, NaN and "
     "infinities. For bytes: lengths, and the most frequent values of up to 64 bytes. Feature lists are "
     "summarized over all steps. Then class balance (image/class/label and text, image/object/class/label, label, "
     "objects/label) and image properties, as histograms. --svg FILE writes charts, --json prints all statistics "
     "as one object.\n"
     "\n"
     "Counts, minimum, maximum, mean and standard deviation are exact. Quantiles are exact up to 512 values or "
     "2,048 distinct values; beyond that, the rank of a quantile is accurate within 1 % (99 times out of 100). "
     "Frequent values are exact up to 2,048 distinct values (65,536 classes); beyond that they are estimates, "
     "marked ≈. The results do not depend on --jobs.\n"
     "\n"
     "Memory: at most 1.2 MiB for each of at most 1,000 features (if there are more, the first by name are "
     "reported), and 12 MiB for classes; per thread, thirty times the longest record or 4 MiB, whichever is "
     "larger.",
     .takes_json = true, .knows_labels = true},

    {"verify", 0, GROUP_CHECK, nullptr, verify_run, "check every checksum, every Example and every image header",
     "Each error is a line with file, record, byte offset and kind; the exit status is then 1. Bad data under a "
     "good header counts as one record; after a bad header, reading resumes at the next record whose two checksums "
     "match. A bytes value is checked as an image if it starts like one; image/encoded must be an image. --decode "
     "decodes every pixel; --raw checks only checksums.\n"
     "\n"
     "Memory: per thread, twice the sum of 1 MiB and the longest record; with --decode also the pixels of the "
     "largest image."},
    {"salvage", 0, GROUP_CHECK, "OUT", salvage_run, "save all good records of damaged files to a new file",
     "Writes every record whose checksums match to OUT, with an index. Losses are printed and also written to "
     "OUT.report. OUT gets its name only when it is complete. The exit status is 1 if anything was lost.\n"
     "\n"
     "Memory: per thread, twice the sum of 1 MiB and the longest record; 8 bytes for each record saved."},

    {"index", 0, GROUP_CHECK, nullptr, index_run, "create or update FILE.index, the offsets of all records",
     "With an index, records are read by number and counted at once. The index stores the size and samples of its "
     "file, so a stale index is detected and rebuilt. If a plain file was modified after its index, every header is "
     "compared with the index, here and wherever records are read by number; a compressed file is checked "
     "only by size and samples. "
     "For compressed files the index stores the number of records, and for seekable GZIP (--compress seekable) the "
     "entry "
     "points. --dali also writes FILE.idx, as DALI's tfrecord2idx does; --from-dali reads it.\n"
     "\n"
     "Memory: 12 bytes for each record of a file."},
    {"repair-index", 0, GROUP_CHECK, nullptr, repair_index_run,
     "compare FILE.index and FILE.idx with the file; repair them",
     "Unlike --index, this does not rely on size and time: it reads every header.\n"
     "\n"
     "Memory: 24 bytes for each record of a file."},
    {"diff", 0, GROUP_CHECK, nullptr, diff_run, "compare the records of two FILEs (directories, patterns)",
     "Shows the first 10 differences, for Examples by feature, and counts all. An inserted or deleted record is "
     "one difference: matching resumes after it, across at most 4,095 consecutive insertions or "
     "deletions. With --unordered, records may be in any order, and records that only one side has are listed by "
     "number. Compression, and how records are divided into files, are ignored. The exit status is 0 if the records "
     "are "
     "the same, else 1.\n"
     "\n"
     "Memory: 64 MiB and four times the longest record; with --unordered, --memory (default: 512M)."},

    {"extract", 0, GROUP_EXPORT, "DIR", extract_run, "write images as files DIR/CLASS/NAME, bytes unchanged",
     "The directory is image/class/text (or label, or the number), the name is image/filename, and the extension "
     "follows from the contents. Without a class the directory is \"no class\"; without a name, the numbers of "
     "file and record are used. Characters that are not allowed in a name become %2F and so on; a duplicate name "
     "becomes NAME~2. Other images of a record, and frames, are NAME.FEATURE. With --features A,B* the bytes of "
     "these features are written, images or not; other bytes are DIR/FEATURE/FILE-NUMBER. With --raw complete "
     "records are written.\n"
     "\n"
     "A file appears when it is complete. An existing file with the same bytes is kept, so an interrupted run can "
     "be resumed; one with other bytes is an error, or is replaced with --force.\n"
     "\n"
     "Memory: 24 MiB and three times the longest record; 100 bytes for each file; 300 MiB more if records consist "
     "only of small files.",
     .knows_labels = true},
    {"html", 0, GROUP_EXPORT, "DIR", html_run, "create browsable pages: thumbnails, labels, boxes, search",
     "Open DIR/index.html in a browser; no server and no network are needed. Each page shows 200 records with "
     "thumbnails (DIR/thumbs, at most 320 pixels), labels and boxes (image/object/bbox/*, objects/bbox); a record "
     "opens with its full image and all features, or those of --features. Search by label, class of boxes, file "
     "name, record number or any text. Records without images are a table. Keys: / search, arrows and Enter, [ "
     "and ] pages, Esc.\n"
     "\n"
     "A record shows one image: image/encoded, else image, else the largest; --extract writes them all. --force "
     "removes the pages and images of an earlier run in DIR, and no other files.\n"
     "\n"
     "Full images are copied to DIR/images in record order, up to 16 MiB each and 1 GiB in total, unless EXIF "
     "rotates them; otherwise the thumbnail is shown.\n"
     "\n"
     "EXIF rotation is not applied: images are shown as decoders return them. In place of an image that cannot "
     "be decoded, the reason is shown. The same records give the same bytes at any --jobs.\n"
     "\n"
     "Memory: 80 MiB and three times the longest record, or 300 MiB if records consist only of characters that "
     "must be escaped; per thread, the pixels of the largest image (for a large JPEG, at one eighth of its size).",
     .knows_labels = true},

    {"merge", 0, GROUP_REWRITE, nullptr, merge_run, "write the records of all FILEs, in order, to --out",
     "--where, --range, --sample and --head select records; --shards or --shard-size writes several files. "
     "Damaged input is an error. The files get their names when all are complete; files that a "
     "killed run left in the same directory (.partial) are removed by the next run with the same --out.\n"
     "\n"
     "Memory: 4 MiB and twice the longest record; for --compress seekable, per processor 2 MiB and the longest "
     "record."},
    {"split", 0, GROUP_REWRITE, "N", split_run, "like --merge, into N files of nearly the same size",
     "Keeps the order: concatenating the shards gives the input. The input is read twice; a pipe is first copied "
     "to a temporary file in the directory of --out.\n"
     "\n"
     "Memory: as for --merge."},
    {"shuffle", 0, GROUP_REWRITE, nullptr, shuffle_run, "like --merge, in an order determined by --seed",
     "A global shuffle at any size: every record can move to every position. The order depends only on the seed "
     "and the number of records. Input larger than half of --memory is distributed via an unnamed "
     "temporary file in the directory of --out, as large as the input.\n"
     "\n"
     "Memory: --memory (default: 512M) and three times the longest record."},

    {}};

int main(int argc, char **argv)
{
    options options;
    int exit_code;
    output_open();
    if (!options_parse(argc, argv, &options, &exit_code)) return output_close("tfrecord-cat", exit_code);
    exit_code = options.command->run(&options);
    if (exit_code == 0 && options.has_missing) exit_code = 1;
    options_deinit(&options);
    return output_close("tfrecord-cat", exit_code);
}
