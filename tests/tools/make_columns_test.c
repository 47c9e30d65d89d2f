/* Columns of tfrecord-make's lists and tables: the columns' meanings, headers that are numbers, detected types, and
 * splits. */
#include "tests/tools/make_inputs.h"

TEST(make_columns_are_found_in_capitals_and_blanks)
{
    make_pngs("p", 2);
    save_text("a.csv", "\xef\xbb\xbf"
                       "Path,Label\r\np/0.png,dog\r\np/1.png,cat\r\n");
    save_text("b.csv", " File_Name , CLASS\np/0.png,dog\np/1.png,cat\n");
    save_text("c.jsonl",
              "{\"Image\": \"p/0.png\", \"Class\": \"dog\"}\n{\"Image\": \"p/1.png\", \"Class\": \"cat\"}\n");
    static const char *const lists[] = {"a.csv", "b.csv", "c.jsonl"};
    for (int i = 0; i < 3; i++) {
        CHECK_CONTAINS(make("--split all %s", lists[i])->output, "2 images in 2 classes");
        CHECK_CONTAINS(records("image/class/text,image/width"), "\"cat\"]}, \"image/width\": {\"int64\": [21]}");
    }
    /* A column with the exact name takes precedence, in any order of columns. */
    save_text("d.csv", "PATH,path,label\nno,p/0.png,dog\n");
    CHECK_EQ(make("--split all d.csv")->exit_code, 0);
    CHECK_CONTAINS(records("PATH"), "\"no\"");
}

TEST(make_columns_of_images_in_a_table_are_pointed_out)
{
    make_pngs("p", 1);
    save_text("a.csv", "photo,label\np/0.png,dog\n");
    const program_result *result = make("a.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output,
                   "warning: photo contains names of images and is stored as text; --path-column photo");
    CHECK(!strstr(make("--format table a.csv")->output, "warning"));
    CHECK_CONTAINS(make("--path-column photo a.csv")->output, "1 image ");
}

TEST(make_columns_after_a_header_of_numbers)
{
    save_text("a.csv", "0,1,2,label\n5,6,7,1\n8,9,10,0\n");
    const program_result *result = make("a.csv");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output,
                   "a.csv: line 1 contains values, not column names; name the columns with --columns A,B,…, and "
                   "add --skip-rows 1 to skip this line if it is a header of numbers");
    CHECK_EQ(make("--split all --columns a,b,c,label --skip-rows 1 a.csv")->exit_code, 0);
    CHECK_STR(records("*"), "{\"a\": {\"int64\": [5]}, \"b\": {\"int64\": [6]}, \"c\": {\"int64\": [7]}, \"label\": "
                            "{\"int64\": [1]}}\n"
                            "{\"a\": {\"int64\": [8]}, \"b\": {\"int64\": [9]}, \"c\": {\"int64\": [10]}, \"label\": "
                            "{\"int64\": [0]}}\n");
    /* Skipped rows may precede a header, with any number of cells. */
    save_text("b.csv", "made by hand\n\nx,y,z,1\na,b\n1,2\n3,4\n");
    CHECK_EQ(make("--split all --skip-rows 2 b.csv")->exit_code, 0);
    CHECK_STR(records("*"), "{\"a\": {\"int64\": [1]}, \"b\": {\"int64\": [2]}}\n{\"a\": {\"int64\": [3]}, \"b\": "
                            "{\"int64\": [4]}}\n");
    /* Skipped lines need not be valid CSV, with or without a header. */
    save_text("c.csv", "\"a quote that is not closed\n\r\n x\"y\"z,\"\n7,8\na,b\n1,2\n");
    CHECK_EQ(make("--split all --skip-rows 3 c.csv")->exit_code, 0);
    CHECK_STR(records("*"), "{\"a\": {\"int64\": [1]}, \"b\": {\"int64\": [2]}}\n");
    CHECK_EQ(make("--split all --skip-rows 4 --columns x,y c.csv")->exit_code, 0);
    CHECK_STR(records("*"), "{\"x\": {\"int64\": [1]}, \"y\": {\"int64\": [2]}}\n");
    CHECK_CONTAINS(make("--skip-rows 1 c.csv")->output, "c.csv: line 3");
    CHECK_CONTAINS(make("--skip-rows 4 --columns x,y,z c.csv")->output, "line 6: the row has 2 cells");
    CHECK_CONTAINS(make("--skip-rows 9 b.csv")->output, "b.csv: contains no rows");
    CHECK_CONTAINS(make("--columns a,b --skip-rows 5 b.csv")->output, "b.csv: contains no rows");
    CHECK_EQ(make("--skip-rows 0 b.csv")->exit_code, 2);
    CHECK_EQ(make("--skip-rows x b.csv")->exit_code, 2);
    CHECK_EQ(make("--skip-rows -1 b.csv")->exit_code, 2);
}

TEST(make_columns_report_their_types_and_odd_cells)
{
    FILE *file = fopen(test_path("a.csv"), "w");
    fputs("id,price,code,none,\n", file);
    for (int i = 0; i < 300; i++) fprintf(file, "%d,%s,c%d,,\n", i, i == 120 ? "n/a" : i == 121 ? "?" : "1.5", i);
    fclose(file);
    const program_result *result = program_run("cd '%s' && COLUMNS=300 tfrecord-make --out out a.csv | tr '\\n' ' ' | "
                                               "tr -s ' '",
                                               test_directory());
    CHECK_CONTAINS(result->output, "columns: id int64; price, code bytes; none without a value");
    CHECK_CONTAINS(result->output,
                   "warning: price is bytes, because 2 of its 300 values are not a number; the first is "
                   "'n/a' in line 122. --types price=float makes such rows an error");
    CHECK(!strstr(result->output, "warning: code"));
    result = make("--on-error skip --types price=float a.csv");
    CHECK_CONTAINS(result->output, "a.csv: line 122, column price: \"n/a\" is not a number");
    CHECK_EQ(count_skipped(result->output), 2);
    CHECK(!strstr(make("--missing 'n/a,?' a.csv")->output, "warning"));
    save_text("b.jsonl", "{\"n\": 1}\n{\"n\": 2}\n{\"n\": \"three\"}\n");
    CHECK_CONTAINS(make("b.jsonl")->output, "the first is 'three' in line 3");
}

TEST(make_columns_of_targets_want_numbers)
{
    make_pngs("p", 4);
    save_text("a.csv", "path,target\np/0.png,1\np/1.png,nan\np/2.png,\np/3.png,inf\n");
    const program_result *result = make("--split all --on-error skip --format regression a.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "a.csv: line 3, column target: \"nan\" is not a valid target");
    CHECK_CONTAINS(result->output, "a.csv: line 4, column target: the cell is empty");
    CHECK_CONTAINS(result->output, "a.csv: line 5, column target: \"inf\" is not a valid target");
    CHECK_EQ(count_skipped(result->output), 3);
    CHECK_EQ(count_records("*.tfrecord"), 1);
}

TEST(make_columns_of_parts_are_the_parts)
{
    make_pngs("p", 5);
    save_text("a.csv",
              "path,label,Split\np/0.png,a,train\np/1.png,b,train\np/2.png,a,test\np/3.png,a,\np/4.png,b,x/y\n");
    const program_result *result = make("--on-error skip a.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "a.csv: line 5: no valid split name");
    CHECK_CONTAINS(result->output, "a.csv: line 6: no valid split name");
    CHECK_EQ(count_skipped(result->output), 2);
    CHECK_EQ(count_records("a-train-*.tfrecord"), 2);
    CHECK_EQ(count_records("a-test-*.tfrecord"), 1);
    CHECK_STR(records("Split"), "{}\n{}\n{}\n");
    /* With --split the column is a feature. */
    result = make("--split all a.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "the column Split becomes a feature, not the split: --split is given");
    CHECK_CONTAINS(records("Split"), "{\"Split\": {\"bytes\": [\"test\"]}}");
    /* --split-column for tables, and for JSON Lines in which the key first occurs late. */
    save_text("b.csv", "n,part\n1,a\n2,b\n3,a\n4,\n");
    result = make("--split-column part --on-error skip b.csv");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "b.csv: line 5: no split name in the column part");
    CHECK_STR(records_of("b-a-*.tfrecord", "*"), "{\"n\": {\"int64\": [1]}}\n{\"n\": {\"int64\": [3]}}\n");
    save_text("c.jsonl", "{\"n\": 1}\n{\"n\": 2, \"split\": \"b\"}\n");
    CHECK_CONTAINS(make("--on-error skip c.jsonl")->output, "c.jsonl: line 1: no split name in the column split");
    CHECK_STR(records("*"), "{\"n\": {\"int64\": [2]}}\n");
    FILE *file = fopen(test_path("d.csv"), "w");
    fputs("n,split\n", file);
    for (int i = 0; i < 9; i++) fprintf(file, "%d,part%d\n", i, i);
    fclose(file);
    CHECK_CONTAINS(make("d.csv")->output, "names more than 8 splits");
}

/* CSV that tfrecord-cat writes is read back with the same features and kinds. */
TEST(make_columns_of_csv_that_was_written)
{
    save_text("a.jsonl", "{\"f\": 1.5, \"i\": 3, \"t\": \"x\"}\n{\"f\": 2, \"i\": -9, \"t\": \"a, \\\"b\\\"\"}\n"
                         "{\"f\": -0.25, \"i\": 0, \"t\": \"\"}\n");
    save_text("b.csv", "f,i\nnan,1\ninf,2\n-inf,3\n2.5,4\n");
    static const char *const inputs[] = {"a.jsonl", "b.csv"};
    for (int i = 0; i < 2; i++) {
        char before[1 << 12];
        CHECK_EQ(make("--split all %s", inputs[i])->exit_code, 0);
        snprintf(before, sizeof before, "%s", records("*"));
        CHECK_EQ(program_run("cd '%s' && tfrecord-cat --csv out/*.tfrecord >back.csv", test_directory())->exit_code, 0);
        CHECK_EQ(make("--split all back.csv")->exit_code, 0);
        CHECK_STR(records("f,i,t"), before);
    }
}

TEST(make_columns_of_numbers_are_lines_of_labels)
{
    make_pngs("p", 3);
    save_text("l.csv", "path,label\np/0.png,0\np/1.png,1\np/2.png,5\n");
    save_text("three.txt", "a\nb\nc\n");
    save_text("six.txt", "a\nb\nc\nd\ne\nf\n");
    const program_result *result = make("--labels three.txt l.csv");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "the label 5 has no line in three.txt, whose lines are counted from 0; add");
    CHECK(!strstr(result->output, "--append-labels"));
    result = make("--append-labels --labels three.txt l.csv");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--append-labels has no effect on labels that are numbers");
    result = make("--append-labels --labels six.txt l.csv");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--append-labels has no effect: the labels of l.csv are numbers");
    CHECK_EQ(make("--labels six.txt l.csv")->exit_code, 0);
}
