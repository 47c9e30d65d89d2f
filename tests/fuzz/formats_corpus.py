"""Writes the seed corpora of csv_fuzz, tar_fuzz, npy_fuzz, coco_fuzz and voc_fuzz to tests/fuzz/corpus.

    python3 tests/fuzz/formats_corpus.py

The arrays are written byte by byte, so NumPy is not required."""

import io
import json
import os
import struct
import tarfile
import zipfile
import zlib

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def save(target, name, data):
    directory = os.path.join(CORPUS, target)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as file:
        file.write(data)


def npy(descr, shape, data, fortran=False, version=1):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}"
    size = 10 if version == 1 else 12
    header += " " * (-(len(header) + 1 + size) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + data


def tar(members, form):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1700000000.25 if form == tarfile.PAX_FORMAT else 1700000000
            archive.addfile(info, io.BytesIO(data))
        directory = tarfile.TarInfo("directory")
        directory.type = tarfile.DIRTYPE
        archive.addfile(directory)
        link = tarfile.TarInfo("link")
        link.type = tarfile.SYMTYPE
        link.linkname = "x" * (90 if form == tarfile.USTAR_FORMAT else 130)
        archive.addfile(link)
    return out.getvalue()


save("csv", "plain", b"path,label,score\na.jpg,cat,1.5\nb.jpg,dog,\n")
save("csv", "quotes", b'\xef\xbb\xbfa,b\r\n"x, y","say ""hi"""\r\n"line\r\nbreak",""\r\n\r\n1,2')
save("csv", "tabs", b"a\tb\r1\t2\r\"3\"\t4\r\n\t")
save("csv", "utf16", "a,b\n1,2\n".encode("utf-16"))
save("csv", "open-quote", b'a,b\n1,"2\n3,4\n')
save("csv", "nul", b"a,b\n1,\x002\n")

MEMBERS = [("a/1.jpg", b"jpeg" * 200), ("a/1.cls", b"3"), ("long/" + "n" * 150 + ".txt", b"x" * 512), ("../up", b"")]
save("tar", "ustar", tar([member for member in MEMBERS if len(member[0]) < 100], tarfile.USTAR_FORMAT))
save("tar", "pax", tar(MEMBERS + [("caf\u00e9.txt", b"!")], tarfile.PAX_FORMAT))
save("tar", "gnu", tar(MEMBERS, tarfile.GNU_FORMAT))
save("tar", "cut", tar(MEMBERS, tarfile.GNU_FORMAT)[:1000])

FLOATS = npy("<f4", (2, 3), struct.pack("<6f", 0, 1, 2, 3, 4, 5))
TEXT = npy("<U3", (2,), "ab\0caf".encode("utf-32-le"))
save("npy", "float", FLOATS)
save("npy", "fortran", npy(">i2", (2, 3, 1), struct.pack(">6h", *range(6)), fortran=True))
save("npy", "text", TEXT)
save("npy", "bytes", npy("|S2", (3,), b"a\0bbc\0", version=2))
save("npy", "scalar", npy("|b1", (), b"\2", version=3))
save("npy", "objects", npy("|O", (1,), b"\x80\3."))
for name, form in (("stored.npz", zipfile.ZIP_STORED), ("deflated.npz", zipfile.ZIP_DEFLATED)):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", form) as archive:
        archive.writestr(zipfile.ZipInfo("x.npy"), FLOATS, compress_type=form)
        with archive.open(zipfile.ZipInfo("y.npy"), "w", force_zip64=True) as member:
            member.write(TEXT)
    save("npy", name, out.getvalue())

# A small zip archive in the form used above 4 GiB: the 32-bit fields are all ones, and the zip64 fields have the
# values.
def zip64(name, data):
    crc, full, size = struct.pack("<I", zlib.crc32(data)), b"\xff" * 4, struct.pack("<Q", len(data))
    local = b"PK\3\4" + struct.pack("<HHHHH", 45, 0, 0, 0, 0) + crc + full * 2 + struct.pack("<HH", len(name), 20)
    local += name + struct.pack("<HH", 1, 16) + size * 2 + data
    entry = b"PK\1\2" + struct.pack("<HHHHHH", 45, 45, 0, 0, 0, 0) + crc + full * 2 + struct.pack("<HH", len(name), 28)
    entry += struct.pack("<HHHI", 0, 0, 0, 0) + full + name + struct.pack("<HH", 1, 24) + size * 2 + bytes(8)
    end = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, len(entry), len(local))
    locator = b"PK\6\7" + struct.pack("<IQI", 0, len(local) + len(entry), 1)
    return local + entry + end + locator + b"PK\5\6" + struct.pack("<HH", 0, 0) + b"\xff" * 12 + b"\0\0"


save("npy", "zip64.npz", zip64(b"x.npy", FLOATS))

COCO = {"info": {"text": "\\u20ac ]}", "nothing": None, "deep": [[[{}]]]},
        "annotations": [{"image_id": 2, "category_id": 1, "bbox": [1.5, 2, 3e0, 4], "area": 12, "iscrowd": 0},
                        {"image_id": 1, "caption": "no box"}, {"image_id": 2, "category_id": 9, "bbox": []}],
        "images": [{"id": 1, "file_name": 'a ".jpg'}, {"id": 2, "file_name": "b.jpg", "width": 640, "height": 480}],
        "categories": [{"id": 1, "name": "cat"}], "licenses": [1, -2.5, True, "x"]}
save("coco", "compact", json.dumps(COCO, separators=(",", ":")).encode())
save("coco", "indented", b"\xef\xbb\xbf" + json.dumps(COCO, indent=1).encode())
save("coco", "cut", json.dumps(COCO).encode()[:150])
save("coco", "keypoints", json.dumps({
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9],
                     "keypoints": [5, 2.5, 2, 0, 0, 0], "num_keypoints": 1}],
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "categories": [{"id": 1, "name": "person", "keypoints": ["nose", "eye"]}]}).encode())
save("coco", "list", b'[{"image_id": 1}]')
save("coco", "empty", b'{"images": [], "annotations": [ ]}')

OBJECT = """<object><name>dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
<bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>
<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part></object>"""
VOC = f"""<?xml version="1.0"?><annotation><filename> a&amp;b.jpg </filename><!-- x --><size><width>50</width>
<height>60</height><depth>3</depth></size>{OBJECT}{OBJECT}<source><![CDATA[<x>]]></source></annotation>"""
save("voc", "plain", VOC.encode())
save("voc", "utf16", VOC.replace("?>", ' encoding="UTF-16"?>', 1).encode("utf-16"))
save("voc", "cut", VOC.encode()[:200])
save("voc", "entities", b'<!DOCTYPE a [<!ENTITY x "yyyy">]><annotation><filename>&x;</filename></annotation>')
save("voc", "no-box", b"<annotation><object><name>cat</name></object></annotation>")
