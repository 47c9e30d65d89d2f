"""tfrecord-make's input formats, written by the usual programs (csv, json, numpy, tarfile), converted, and read back by
TensorFlow with the feature specification that --help documents."""
import csv
import glob
import gzip
import hashlib
import io
import json
import os
import random
import subprocess
import tarfile
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

PROGRAM = os.path.join(os.environ["MILLRACE_BIN"], "tfrecord-make")
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
rng = random.Random(SEED)
nrng = np.random.default_rng(SEED)
passed = failed = 0
INT, FLOAT, BYTES = tf.int64, tf.float32, tf.string


def check(name, good, why=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED", name, why, "seed", SEED)


def one(dtype, default=None):
    return tf.io.FixedLenFeature([], dtype, default_value=default)


def many(dtype):
    return tf.io.RaggedFeature(dtype)


def convert(name, source, spec, *options):
    """Runs tfrecord-make and returns the parsed records."""
    out = os.path.join(directory, "out-" + name)
    command = [PROGRAM, "--out", out, "--split", "all", *options, source]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    check(name + " runs", result.returncode == 0, result.stderr)
    if result.returncode != 0:
        return []
    files = sorted(glob.glob(out + "/*.tfrecord"))
    records = []
    for record in tf.data.TFRecordDataset(files):
        records.append({k: v.numpy() for k, v in tf.io.parse_single_example(record, spec).items()})
    return records


def labels(name):
    with open(os.path.join(directory, "out-" + name, "labels.txt"), encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def same_floats(a, b):
    return np.array_equal(np.asarray(a, np.float32), np.asarray(b, np.float32), equal_nan=True)


def make_images(path, count):
    os.makedirs(path, exist_ok=True)
    names = []
    for i in range(count):
        pixels = nrng.integers(0, 256, (16 + i % 7, 24 + i % 5, 3), np.uint8)
        png = i % 3 == 0
        data = (tf.io.encode_png(pixels) if png else tf.io.encode_jpeg(pixels)).numpy()
        name = f"{i:03d} \u00e9, {i}.{'png' if png else 'jpg'}"
        with open(os.path.join(path, name), "wb") as file:
            file.write(data)
        names.append((name, data, pixels.shape))
    return names


IMAGE = {"image/encoded": one(BYTES), "image/format": one(BYTES), "image/height": one(INT), "image/width": one(INT),
         "image/channels": one(INT), "image/colorspace": one(BYTES), "image/filename": one(BYTES)}


def check_images(name, records, images, prefix=""):
    by_name = {record["image/filename"].decode(): record for record in records}
    check(name + " has every image", sorted(by_name) == sorted(prefix + p[0] for p in images), sorted(by_name)[:3])
    for file_name, data, shape in images:
        record = by_name.get(prefix + file_name)
        check(name + " " + file_name, record is not None and record["image/encoded"] == data and
              (record["image/height"], record["image/width"], record["image/channels"]) == shape and
              tf.io.decode_image(record["image/encoded"]).shape == shape)
    return by_name


def lists():
    images = make_images(directory + "/images", 30)
    names = ["r\u00f6se, red", "daisy", 'say "hi"']
    rows = []
    for i, (name, _, _) in enumerate(images):
        rows.append({"path": "images/" + name, "label": names[i % 3], "age": rng.randint(-9, 10**12),
                     "weight": rng.choice([1.5, -0.0, 1e-30, 3.0, 7]), "code": f"{i:05d}",
                     "note": rng.choice(["", "two\nlines", 'quo"te', "x"])})
        if i % 4 == 0:
            rows[-1]["age"] = ""
    with open(directory + "/list.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    spec = {**IMAGE, "image/class/label": one(INT), "image/class/text": one(BYTES), "age": one(INT, -1),
            "weight": one(FLOAT), "code": one(BYTES), "note": one(BYTES, "none")}
    records = convert("list", directory + "/list.csv", spec)
    by_name = check_images("list", records, images, "images/")
    check("list labels", labels("list") == sorted(names, key=lambda n: n.encode()), labels("list"))
    for row in rows:
        record = by_name[row["path"]]
        check("list row", record["image/class/text"].decode() == row["label"] and
              labels("list")[record["image/class/label"]] == row["label"] and
              record["age"] == (-1 if row["age"] == "" else row["age"]) and
              record["weight"] == np.float32(row["weight"]) and record["code"].decode() == row["code"] and
              record["note"].decode() == (row["note"] or "none"), (row, record["note"]))

    # The same data as JSON Lines, with lists and nested objects, numeric labels, and renamed features.
    with gzip.open(directory + "/list.jsonl.gz", "wt", encoding="utf-8") as file:
        for i, row in enumerate(rows):
            file.write(json.dumps({"image": row["path"], "class": i % 3 + 5, "tags": ["a"] * (i % 3),
                                   "size": {"w": i, "h": i / 2}, "flag": i % 2 == 0, "none": None},
                                  ensure_ascii=i % 2 == 0) + "\n")
    spec = {**IMAGE, "label": one(INT), "tags": many(BYTES), "w": one(INT), "h": one(FLOAT), "flag": one(INT)}
    records = convert("jsonl", directory + "/list.jsonl.gz", spec, "--key", "image/class/label=label", "--key",
                      "size/w=w", "--key", "size/h=h")
    check_images("jsonl", records, images, "images/")
    for record in records:
        i = int(record["image/filename"][7:10])
        check("jsonl row", (record["label"], record["w"], record["h"], record["flag"]) ==
              (i % 3 + 5, i, np.float32(i / 2), i % 2 == 0) and list(record["tags"]) == [b"a"] * (i % 3))

    with open(directory + "/points.csv", "w", encoding="utf-8") as file:
        file.write("filename,x,y,fold\n")
        for i, (name, _, _) in enumerate(images):
            file.write(f'"{name}",{i / 7},{-i},{i % 5}\n')
    spec = {**IMAGE, "image/target": tf.io.FixedLenFeature([2], FLOAT), "fold": one(INT)}
    records = convert("points", directory + "/points.csv", spec, "--images", directory + "/images", "--target", "x,y")
    for record in check_images("points", records, images).values():
        i = int(record["image/filename"][:3])
        check("points row", same_floats(record["image/target"], [i / 7, -i]) and record["fold"] == i % 5)
    return images


def tables():
    rows = [(i, rng.choice(["", repr(rng.uniform(-1e9, 1e9)), "nan", "-inf", "12", "1e-42"]),
             rng.choice(["", "a,b", "\u20ac", '"']), i - 2**62) for i in range(500)]
    with open(directory + "/table.csv", "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(["i", "f", "text", "big"])
        writer.writerows(rows)
    spec = {"i": one(INT), "f": one(FLOAT, -7.0), "text": one(BYTES, "none"), "big": one(INT)}
    records = convert("table", directory + "/table.csv", spec)
    check("table count", len(records) == len(rows))
    for record in records:
        i, f, text, big = rows[record["i"]]
        check("table row", record["big"] == big and record["text"].decode() == (text or "none") and
              same_floats(record["f"], -7.0 if f == "" else float(f)), (rows[record["i"]], record))
    spec = {"i": one(BYTES), "f": one(FLOAT, -7.0)}
    records = convert("typed", directory + "/table.csv", spec, "--types", "i=bytes", "--missing", "nan,-inf")
    check("typed", all(np.isfinite(record["f"]) for record in records) and
          sorted(int(record["i"]) for record in records) == list(range(len(rows))))


def boxes(images):
    listed, annotations = [], []
    for i, (name, _, shape) in enumerate(images):
        listed.append({"id": 1000 - i, "file_name": name, "width": shape[1], "height": shape[0], "license": None})
        for _ in range(i % 4):
            x, y = rng.uniform(0, shape[1] - 4), rng.uniform(0, shape[0] - 4)
            annotations.append({"id": len(annotations), "image_id": 1000 - i, "category_id": rng.choice([1, 3, 90]),
                                "segmentation": [[x, y, x + 1, y, x, y + 1]], "iscrowd": rng.choice([0, 1]),
                                "bbox": [x, y, rng.uniform(1, 4), rng.uniform(1, 4)], "area": rng.uniform(1, 16)})
    rng.shuffle(annotations)
    categories = [{"id": 90, "name": "tooth brush", "supercategory": "x"}, {"id": 1, "name": 'per"son'},
                  {"id": 3, "name": "car"}]
    with open(directory + "/instances.json", "w", encoding="utf-8") as file:
        json.dump({"info": {"a": [1, {"b": "]}"}]}, "annotations": annotations, "images": listed,
                   "categories": categories}, file, indent=rng.choice([None, 1]))
    sides = ["xmin", "ymin", "xmax", "ymax"]
    spec = {**IMAGE, "image/source_id": one(BYTES), "image/key/sha256": one(BYTES),
            "image/object/class/label": many(INT), "image/object/class/text": many(BYTES),
            "image/object/is_crowd": many(INT), "image/object/area": many(FLOAT),
            **{"image/object/bbox/" + side: many(FLOAT) for side in sides}}
    records = convert("coco", directory + "/instances.json", spec, "--images", directory + "/images")
    by_name = check_images("coco", records, images)
    check("coco labels", labels("coco")[1] == 'per"son' and labels("coco")[90] == "tooth brush")
    with open(directory + "/out-coco/label_map.pbtxt", encoding="utf-8") as file:
        check("coco label map", 'id: 1\n  name: "per\\"son"' in file.read())
    for image in listed:
        record = by_name[image["file_name"]]
        own = [a for a in annotations if a["image_id"] == image["id"]]
        w, h = image["width"], image["height"]
        check("coco ids", record["image/source_id"].decode() == str(image["id"]) and
              record["image/key/sha256"].decode() == hashlib.sha256(record["image/encoded"]).hexdigest())
        # As computed by create_coco_tf_record.
        wanted = {"xmin": [a["bbox"][0] / w for a in own], "ymin": [a["bbox"][1] / h for a in own],
                  "xmax": [(a["bbox"][0] + a["bbox"][2]) / w for a in own],
                  "ymax": [(a["bbox"][1] + a["bbox"][3]) / h for a in own]}
        check("coco boxes", all(same_floats(record["image/object/bbox/" + s], wanted[s]) for s in sides))
        check("coco objects", list(record["image/object/class/label"]) == [a["category_id"] for a in own] and
              list(record["image/object/is_crowd"]) == [a["iscrowd"] for a in own] and
              same_floats(record["image/object/area"], [a["area"] for a in own]))

    os.makedirs(directory + "/voc/Annotations")
    os.makedirs(directory + "/voc/JPEGImages")
    objects = {}
    for i, (name, data, shape) in enumerate(images):
        with open(f"{directory}/voc/JPEGImages/{name}", "wb") as file:
            file.write(data)
        own = [
            (
                rng.choice(["dog", "cat", "a & b"]),
                rng.randint(0, 1),
                rng.randint(0, 1),
                rng.choice(["Left", "Frontal"]),
                sorted(rng.sample(range(1, shape[1] + 1), 2)),
                sorted(rng.sample(range(1, shape[0] + 1), 2)),
            )
            for _ in range(i % 3)
        ]
        objects[name] = own
        text = "".join(f"<object><name>{n.replace('&', '&amp;')}</name><pose>{p}</pose><truncated>{t}</truncated>"
                       f"<difficult>{d}</difficult><bndbox><xmin>{x[0]}</xmin><ymin>{y[0]}</ymin><xmax>{x[1]}</xmax>"
                       f"<ymax>{y[1]}</ymax></bndbox><part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"
                       "</object>\n" for n, t, d, p, x, y in own)
        with open(f"{directory}/voc/Annotations/{name[:-4]}.xml", "w", encoding="utf-8") as file:
            file.write(f"<annotation><folder>VOC</folder><filename>{name}</filename><size><width>{shape[1]}</width>"
                       f"<height>{shape[0]}</height><depth>3</depth></size>{text}</annotation>")
    spec.pop("image/object/is_crowd")
    spec.pop("image/object/area")
    spec.update({"image/object/" + k: many(t) for k, t in (("difficult", INT), ("truncated", INT), ("view", BYTES))})
    records = convert("voc", directory + "/voc", spec)
    by_name = check_images("voc", records, images)
    check("voc labels", labels("voc") == ["", "a & b", "cat", "dog"], labels("voc"))
    for name, own in objects.items():
        record = by_name[name]
        h, w = int(record["image/height"]), int(record["image/width"])
        check("voc objects", [t.decode() for t in record["image/object/class/text"]] == [o[0] for o in own] and
              [labels("voc")[n] for n in record["image/object/class/label"]] == [o[0] for o in own] and
              list(record["image/object/truncated"]) == [o[1] for o in own] and
              list(record["image/object/difficult"]) == [o[2] for o in own] and
              [v.decode() for v in record["image/object/view"]] == [o[3] for o in own])
        check("voc boxes", same_floats(record["image/object/bbox/xmin"], [o[4][0] / w for o in own]) and
              same_floats(record["image/object/bbox/xmax"], [o[4][1] / w for o in own]) and
              same_floats(record["image/object/bbox/ymin"], [o[5][0] / h for o in own]) and
              same_floats(record["image/object/bbox/ymax"], [o[5][1] / h for o in own]))


def arrays():
    count = 40
    data = {
        "id": np.arange(count),
        "half": nrng.standard_normal((count, 3)).astype(np.float16),
        "big": nrng.standard_normal((count, 2)).astype(">f8"),
        "bool": nrng.integers(0, 2, (count, 2)) > 0,
        "fortran": np.asfortranarray(nrng.integers(-9, 9, (count, 3, 2)).astype(np.int32)),
        "text": np.array(["\u20ac" * (i % 4) for i in range(count)]),
        "bytes": np.array([b"x" * (i % 3) for i in range(count)]),
        "pixels": nrng.integers(0, 256, (count, 8, 9, 3), np.uint8),
        "raw": nrng.standard_normal((count, 5)),
        "u8": nrng.integers(0, 2**63, count, np.uint64),
        "scalar": np.float32(3),
    }
    spec = {"id": one(INT), "half": tf.io.FixedLenFeature([3], FLOAT), "big": tf.io.FixedLenFeature([2], FLOAT),
            "bool": tf.io.FixedLenFeature([2], INT), "fortran": tf.io.FixedLenFeature([3, 2], INT), "text": one(BYTES),
            "bytes": one(BYTES), "raw": one(BYTES), "u8": one(INT), "image/encoded": one(BYTES),
            "image/height": one(INT), "image/class/label": one(INT)}
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        save(f"{directory}/{name}.npz", label=data["id"] % 7, **data)
        records = convert(name, f"{directory}/{name}.npz", spec, "--image", "pixels", "--raw", "raw", "--key",
                          "label=image/class/label")
        check(name + " count", sorted(r["id"] for r in records) == list(range(count)))
        for record in records:
            i = record["id"]
            check(
                name + " row",
                same_floats(record["half"], data["half"][i])
                and same_floats(record["big"], data["big"][i])
                and np.array_equal(record["bool"], data["bool"][i])
                and np.array_equal(record["fortran"], data["fortran"][i])
                and record["text"].decode() == data["text"][i]
                and record["bytes"] == data["bytes"][i]
                and np.array_equal(tf.io.decode_raw(record["raw"], tf.float64), data["raw"][i])
                and record["u8"] == data["u8"][i]
                and record["image/class/label"] == i % 7
                and np.array_equal(tf.io.decode_png(record["image/encoded"]), data["pixels"][i]),
            )
    np.save(directory + "/single.npy", data["fortran"])
    records = convert("single", directory + "/single.npy", {"single": tf.io.FixedLenFeature([3, 2], INT)})
    check("single", sorted(r["single"].tolist() for r in records) == sorted(data["fortran"].tolist()))
    objects = np.array([{}, []], dtype=object)
    np.save(directory + "/objects.npy", objects, allow_pickle=True)
    result = subprocess.run(
        [PROGRAM, "--out", directory + "/out-objects", directory + "/objects.npy"],
        capture_output=True,
        text=True,
        check=False,
    )
    check("pickled objects are refused", result.returncode == 1 and "pickled" in result.stderr, result.stderr)


def archives(images):
    meta = [
        {"age": i, "score": i / 3, "who": {"name": "n" * (i % 3)}, "tags": [1.5] * (i % 2)} for i in range(len(images))
    ]
    spec = {**IMAGE, "__key__": one(BYTES), "image/class/label": one(INT), "txt": one(BYTES), "json/age": one(INT),
            "json/score": one(FLOAT), "json/who/name": one(BYTES), "json/tags": many(FLOAT), "seg.png": one(BYTES),
            "npy": tf.io.FixedLenFeature([4], FLOAT)}
    for name, form, mode in (("ustar", tarfile.USTAR_FORMAT, "w"), ("gnu", tarfile.GNU_FORMAT, "w"),
                             ("pax", tarfile.PAX_FORMAT, "w:gz")):
        # Long names, which ustar does not support.
        deep = "" if name == "ustar" else "d" * 120 + "/"
        path = f"{directory}/{name}.tar" + (".gz" if mode == "w:gz" else "")
        with tarfile.open(path, mode, format=form) as archive:
            def add(member, content):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                info.mtime = 1.5 if name == "pax" else 1
                archive.addfile(info, io.BytesIO(content))
            for i, (file_name, data, _) in enumerate(images):
                key = f"{deep}\u00e9/{i:04d}"
                array = io.BytesIO()
                np.save(array, np.full((2, 2), i, np.float32))
                add(f"{key}.{file_name[-3:]}", data)
                add(f"{key}.cls", f"{i % 5}\n".encode())
                add(f"{key}.TXT", f"text {i}".encode())
                add(f"{key}.json", json.dumps(meta[i]).encode())
                add(f"{key}.seg.png", b"anything")
                add(f"{key}.npy", array.getvalue())
        records = convert(name, path, spec)
        check(name + " count", len(records) == len(images))
        for record in records:
            i = int(record["__key__"][-4:])
            check(name + " row", record["image/encoded"] == images[i][1] and record["image/class/label"] == i % 5 and
                  record["image/filename"].decode() == f"{deep}\u00e9/{i:04d}.{images[i][0][-3:]}" and
                  record["txt"].decode() == f"text {i}" and record["json/age"] == i and
                  record["json/score"] == np.float32(i / 3) and record["json/who/name"] == b"n" * (i % 3) and
                  list(record["json/tags"]) == [1.5] * (i % 2) and record["seg.png"] == b"anything" and
                  same_floats(record["npy"], [i] * 4), record["__key__"])


with tempfile.TemporaryDirectory() as directory:
    found = lists()
    tables()
    boxes(found)
    arrays()
    archives(found)
print(f"{passed} passed, {failed} failed")
raise SystemExit(failed != 0)
