/* tfrecord-cat: see cat.h and --help. */
#include "tools/common/output.h"
#include "tools/tfrecord-cat/cat.h"

const command commands[] = {
    {nullptr, 0, GROUP_SHOW, nullptr, show_run, "each record as a readable block", nullptr, .knows_labels = true},
    {"json", 'j', GROUP_SHOW, nullptr, json_run, "each record as a line of JSON (JSON Lines)",
     "A line has file, record, offset and features, each as {\"int64\": […]}, {\"float\": […]} or {\"bytes\":"
     " […]}. Bytes that are not all UTF-8 text are under \"base64\" instead; numbers JSON does not have are"
     " \"NaN\", \"Infinity\" and \"-Infinity\". A SequenceExample has context and feature_lists, a record that is"
     " neither \"base64\".\n"
     "\n"
     "Memory: for each processor the longest record, twice, and 8 MiB; 120 bytes for each of its features, of"
     " which there may be 1,000,000."},
    {"csv", 0, GROUP_SHOW, nullptr, csv_run, "scalar features as CSV with a header",
     "The columns are the features of the first 1,000 records (or 16 MiB) that have at most one value and are text"
     " or numbers; what is left out is told. With --features they are what it names, lists too: their values are"
     " joined with \";\". Bytes that are no text are \"base64:…\"; --bytes hex or base64 writes all bytes so. A"
     " missing feature is an empty cell, an empty text is \"\". Numbers that are none are nan, inf and -inf, as "
     "tfrecord-make,"
     " pandas and TensorFlow read them.\n"
     "\n"
     "Memory: the longest record, three times, and 20 MiB."},
    {"about", 0, GROUP_SHOW, nullptr, about_run, "what a tfds directory says of itself: splits, features, labels",
     "Reads dataset_info.json, features.json and the label files of tensorflow_datasets beside the record files."
     " Blocks of such a directory show the names of labels too.\n"
     "\n"
     "Memory: 64 MiB for each directory.",
     .knows_labels = true},

    {"count", 'c', GROUP_SUMMARY, nullptr, count_run, "how many records each file has",
     "Counts by the index or the headers of records, with all processors (--jobs); their data is not read. Compressed "
     "files"
     " are read through.\n"
     "\n"
     "Memory: 1 MiB for each thread."},
    {"schema", 0, GROUP_SUMMARY, nullptr, schema_run,
     "all features: types, lengths, presence; and the C and Python to parse them",
     "The specifications parse these records as they are: a feature that has the same number of values everywhere is of"
     " fixed length, all others are of variable length. --spec c or --spec python prints one alone, to be included or"
     " imported.\n"
     "\n"
     "Memory: the longest record, twice, and 24 MiB: at most 10,000 names of 16 MiB together are told apart."},
    {"stats", 0, GROUP_SUMMARY, nullptr, stats_run,
     "what the features hold: ranges, quantiles, frequent values, classes, images",
     "For each feature: in how many records it is, how many values it has; of numbers the least, the greatest, mean,"
     " deviation (of the population), quantiles and most frequent values, zeros, NaN and infinities; of bytes their"
     " lengths and most frequent values up to 64 bytes. Of feature lists, all steps. Then class balance"
     " (image/class/label and text, image/object/class/label, label, objects/label) and what images there are, as"
     " histograms. --svg FILE writes charts, --json all figures as one object.\n"
     "\n"
     "Counts, extremes, mean and deviation are exact. Quantiles are too, up to 512 values or 2,048 different ones; "
     "beyond, the rank of what is"
     " given is right within 1 % (99 times of 100). Frequent values are exact up to 2,048 different ones (65,536"
     " classes), else estimates, marked ≈. The figures do not depend on --jobs.\n"
     "\n"
     "Memory: at most 1.2 MiB for each feature, of which there are at most 1,000 (of more, the first by name are "
     "told), and 12 MiB for classes; for each thread the longest record or 4 MiB, thirty times.",
     .takes_json = true, .knows_labels = true},

    {"verify", 0, GROUP_CHECK, nullptr, verify_run, "check every checksum, every Example, every image's header",
     "Each fault is a line with file, record, byte and kind; the exit code is then 1. Bad data under a good header is "
     "one"
     " record; behind a bad header the next record is searched whose both checksums hold. A bytes value is an image "
     "when"
     " it begins like one; image/encoded must be one. With --decode every pixel is decoded, with --raw only checksums "
     "are"
     " looked at.\n"
     "\n"
     "Memory: for each thread, twice, 1 MiB and the longest record; with --decode the largest image's pixels too."},
    {"salvage", 0, GROUP_CHECK, "OUT", salvage_run, "save all good records of damaged files to a new one",
     "Every record whose checksums hold goes to OUT, which gets an index; what was lost is told, and OUT.report says it"
     " too. OUT has its name only when it is whole. The exit code is 1 when something was lost.\n"
     "\n"
     "Memory: for each thread, twice, 1 MiB and the longest record; 8 bytes for each record saved."},

    {"index", 0, GROUP_CHECK, nullptr, index_run, "make or refresh FILE.index, which says where each record lies",
     "With an index, records are read by number and counted at once. It knows the size and samples of its file, so a "
     "stale"
     " one is noticed and made anew; one that is older than its file is compared with every header. Of compressed "
     "files it holds the number of records, and for seekable GZIP "
     "(--compress"
     " seekable) the points at which they are entered. --dali writes FILE.idx as well, as DALI's tfrecord2idx does;"
     " --from-dali reads it.\n"
     "\n"
     "Memory: 12 bytes for each record of one file."},
    {"repair-index", 0, GROUP_CHECK, nullptr, repair_index_run,
     "compare FILE.index and FILE.idx with the file; mend them",
     "Other than --index it does not go by size and time: every header is read.\n"
     "\n"
     "Memory: 24 bytes for each record of one file."},
    {"diff", 0, GROUP_CHECK, nullptr, diff_run, "whether two FILEs (directories, patterns) hold the same records",
     "Shows the first 10 differences, and of Examples the features; counts all. A record that was put in or taken out "
     "is"
     " one difference: those behind it are compared with their own again, after at most 4,095 in one place. With"
     " --unordered, records may be in any order and those that only one side has are told by number. How records are "
     "put"
     " into files and compressed makes no difference. The exit code is 0 when they are the same, else 1.\n"
     "\n"
     "Memory: the longest record, four times, and 64 MiB; with --unordered --memory, 512M."},

    {"extract", 0, GROUP_EXPORT, "DIR", extract_run, "images as files again, DIR/CLASS/NAME, bytes as they are",
     "The directory is image/class/text (or label, or the number), the name image/filename, the ending what the bytes "
     "are;"
     " without a class the directory is \"no class\", without a name the file's and record's numbers are it. What "
     "cannot "
     "be in"
     " a name is %2F and so on; a name that is taken becomes NAME~2. Other images of a record, and frames, are"
     " NAME.FEATURE. With --features A,B* the bytes of these, images or not: others are DIR/FEATURE/FILE-NUMBER. With"
     " --raw whole records.\n"
     "\n"
     "A file appears when it is whole. One that is there with the same bytes is left, so that an interrupted run goes "
     "on"
     " where it was; with other bytes it is a fault, or replaced with --force.\n"
     "\n"
     "Memory: the longest record, three times, and 24 MiB; 100 bytes for each file; 300 MiB more where records are "
     "nothing"
     " but small files.",
     .knows_labels = true},
    {"html", 0, GROUP_EXPORT, "DIR", html_run, "pages to look through: thumbnails, labels, boxes, search",
     "Open DIR/index.html in a browser; nothing else is needed, no server and no network. 200 records a page with"
     " thumbnails (DIR/thumbs, at most 320 pixels), labels and boxes (image/object/bbox/*, objects/bbox); a record "
     "opens"
     " with its full image and all its features, or those of --features. Search is by label, class of boxes, file name,"
     " record number and any text. Records without images are a table. Keys: / search, arrows and Enter, [ and ] "
     "pages,"
     " Esc.\n"
     "\n"
     "A record shows one image: image/encoded, else image, else the largest; --extract writes them all. --force "
     "removes the"
     " pages and images of an earlier page in DIR, and no other files.\n"
     "\n"
     "Full images are copied to DIR/images as long as they are at most 16 MiB each and 1 GiB together, in the order of "
     "the"
     " records, unless EXIF turns them; of others the thumbnail is shown.\n"
     "\n"
     "Turning by EXIF is left out: images stand as decoders see them. One that does not decode shows why. The same"
     " records give the same bytes, at any --jobs.\n"
     "\n"
     "Memory: the longest record, three times, and 80 MiB, or 300 MiB where they are nothing but signs to be escaped; "
     "for each thread the pixels of the largest image (of a "
     "large"
     " JPEG those at an eighth).",
     .knows_labels = true},

    {"merge", 0, GROUP_REWRITE, nullptr, merge_run, "the records of all FILEs, in order, to --out",
     "With --where, --range, --sample and --head only the selected ones; with --shards and --shard-size into several"
     " files. Damaged input is refused. The files get their names when all are whole; what a run that was killed left"
     " beside them (.partial) the next one with the same --out removes.\n"
     "\n"
     "Memory: the longest record, twice, and 4 MiB; for --compress seekable 2 MiB and the longest record more for each"
     " processor."},
    {"split", 0, GROUP_REWRITE, "N", split_run, "the same into N files of nearly the same size",
     "The order stays: the shards one after the other are what was split. The input is read twice; of a pipe a copy is"
     " made beside --out.\n"
     "\n"
     "Memory: as --merge."},
    {"shuffle", 0, GROUP_REWRITE, nullptr, shuffle_run, "the same in an order that follows from --seed",
     "A whole shuffle, whatever the size: every record can come to every place. The order follows from the seed and the"
     " number of records alone. What does not fit into half of --memory is dealt to a file without a name beside --out,"
     " which is as large as the input.\n"
     "\n"
     "Memory: --memory, 512M, and the longest record, three times."},

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
