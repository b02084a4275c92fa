"""Hostile image files, by name. Each of BAD has to be refused with a message; each of HARMLESS has to be decoded."""

import random
import re
import struct
import zlib
from pathlib import Path

SAMPLES_HEADER = Path(__file__).parents[2] / "src/vision/testing/image_samples.h"


def samples() -> dict[str, bytes]:
    """The valid images of the unit tests."""
    entries = re.findall(r'\{"(\w+)",\s+((?:"[0-9a-f]*"\s*)+)\}', SAMPLES_HEADER.read_text())
    return {name: bytes.fromhex("".join(re.findall(r'"([0-9a-f]*)"', hexadecimal))) for name, hexadecimal in entries}


SAMPLES = samples()
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


# PNG


def chunk(name: bytes, data: bytes = b"", crc: int | None = None, length: int | None = None) -> bytes:
    checksum = zlib.crc32(name + data) if crc is None else crc
    return struct.pack(">I", len(data) if length is None else length) + name + data + struct.pack(">I", checksum)


def ihdr(width=8, height=8, bits=8, color=2, compression=0, filtering=0, interlace=0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, compression, filtering, interlace))


def rows(width=8, height=8, channels=3, filtering=0) -> bytes:
    return (bytes([filtering]) + bytes(width * channels)) * height


def png(*chunks: bytes) -> bytes:
    return PNG_MAGIC + b"".join(chunks)


def idat(raw: bytes) -> bytes:
    return chunk(b"IDAT", zlib.compress(raw, 9))


IEND = chunk(b"IEND")
GOOD_PNG = png(ihdr(), idat(rows()), IEND)


def text_bomb(name: bytes, prefix: bytes) -> bytes:
    """A compressed text of 64 MB before broken pixels: a decoder that inflates it takes too much memory or time."""
    packed = zlib.compressobj(9)
    bomb = b"".join(packed.compress(bytes(1 << 20)) for _ in range(64)) + packed.flush()
    return png(ihdr(), *[chunk(name, prefix + bomb)] * 8, chunk(b"IDAT", b"broken"), IEND)


PNGS = {
    "no header": png(idat(rows()), IEND),
    "two headers": png(ihdr(), ihdr(), idat(rows()), IEND),
    "no pixels": png(ihdr(), IEND),
    "the end first": png(IEND),
    "width 0": png(ihdr(width=0), idat(rows()), IEND),
    "height 0": png(ihdr(height=0), idat(rows()), IEND),
    "width 2^31 - 1": png(ihdr(width=2**31 - 1, height=1), idat(rows()), IEND),
    "width 2^32 - 1": png(ihdr(width=2**32 - 1, height=2**32 - 1), idat(rows()), IEND),
    "16385 wide": png(ihdr(width=16385, height=1), idat(rows(16385, 1)), IEND),
    "16385 high": png(ihdr(width=1, height=16385), idat(rows(1, 16385)), IEND),
    "8001 x 8001": png(ihdr(width=8001, height=8001, bits=1, color=0), idat(bytes(1002 * 8001)), IEND),
    "lying size": png(ihdr(width=8000, height=8000), idat(rows()), IEND),
    "lying size in 16 bits": png(ihdr(width=8000, height=8000, bits=16, color=6, interlace=1), idat(rows()), IEND),
    "bomb of 20000 x 20000": png(ihdr(width=20000, height=20000, bits=1, color=0), idat(bytes(2501 * 20000)), IEND),
    "bits 3": png(ihdr(bits=3), idat(rows()), IEND),
    "bits 0": png(ihdr(bits=0), idat(rows()), IEND),
    "color 1": png(ihdr(color=1), idat(rows()), IEND),
    "palette of 16 bits": png(ihdr(bits=16, color=3), idat(rows()), IEND),
    "palette missing": png(ihdr(color=3), idat(rows(channels=1)), IEND),
    "palette too long": png(ihdr(color=3), chunk(b"PLTE", bytes(3 * 300)), idat(rows(channels=1)), IEND),
    "palette of 7 bytes": png(ihdr(color=3), chunk(b"PLTE", bytes(7)), idat(rows(channels=1)), IEND),
    "compression 1": png(ihdr(compression=1), idat(rows()), IEND),
    "filter method 1": png(ihdr(filtering=1), idat(rows()), IEND),
    "interlace 2": png(ihdr(interlace=2), idat(rows()), IEND),
    "interlaced without the last pass": png(ihdr(interlace=1), idat(rows(8, 5)), IEND),
    "row filter 5": png(ihdr(), idat(rows(filtering=5)), IEND),
    "checksum of the header": png(chunk(b"IHDR", ihdr()[8:-4], crc=1), idat(rows()), IEND),
    "checksum of the pixels": png(ihdr(), chunk(b"IDAT", zlib.compress(rows()), crc=1), IEND),
    "pixels are no deflate": png(ihdr(), chunk(b"IDAT", b"x" * 99), IEND),
    "too few rows": png(ihdr(), idat(rows(8, 3)), IEND),
    "chunk of 4 GB": png(ihdr(), chunk(b"IDAT", zlib.compress(rows()), length=0xFFFFFFFF)),
    "chunk of 2 GB": png(ihdr(), chunk(b"eXIf", b"II", length=0x7FFFFFFF)),
    "unknown critical chunk": png(ihdr(), chunk(b"ABCD", b"x"), idat(rows()), IEND),
    "100,000 empty chunks": png(ihdr(), chunk(b"tEXt", b"a\0b") * 100_000, chunk(b"IDAT", b"x"), IEND),
    "100,000 empty IDAT": png(ihdr(), chunk(b"IDAT") * 100_000, IEND),
    "text bomb": text_bomb(b"zTXt", b"a\0\0"),
    "profile bomb": text_bomb(b"iCCP", b"a\0\0"),
    "animation": png(ihdr(), chunk(b"acTL", struct.pack(">II", 2, 0)), idat(rows()), IEND),
    "no end": png(ihdr(), idat(rows())),
    "noise": PNG_MAGIC + random.Random(1).randbytes(5000),
}


# JPEG


def segment(marker: int, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2 if length is None else length) + data


def jpeg_parts(name: str) -> list[bytes]:
    """SOI, the segments, and the scans with the end marker."""
    data, at, parts = SAMPLES[name], 2, [SAMPLES[name][:2]]
    while data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        parts.append(data[at:end])
        at = end
    return [*parts, data[at:]]


def jpeg(name="jpeg_444", change=lambda part: part, drop: int | None = None) -> bytes:
    return b"".join(change(part) for part in jpeg_parts(name) if part[1] != drop)


def frame(**fields):
    """Changes SOF: height, width, precision, components, sampling (of the first component), marker."""
    def change(part: bytes) -> bytes:
        if part[1] not in (0xC0, 0xC1, 0xC2):
            return part
        new = bytearray(part)
        if "height" in fields:
            new[5:7] = struct.pack(">H", fields["height"])
        if "width" in fields:
            new[7:9] = struct.pack(">H", fields["width"])
        for field, at in {"marker": 1, "precision": 4, "components": 9, "sampling": 11}.items():
            new[at] = fields.get(field, new[at])
        return bytes(new)
    return change


def last_scan_repeated(count: int) -> bytes:
    *head, scans = jpeg_parts("jpeg_progressive")
    first = scans.index(b"\xff\xda", 2)
    return b"".join(head) + scans[:first] + (scans[:first] * count) + b"\xff\xd9"


JPEGS = {
    "no frame": jpeg(drop=0xC0),
    "no quantisation tables": jpeg(drop=0xDB),
    "no Huffman tables": jpeg(drop=0xC4),
    "width 0": jpeg(change=frame(width=0)),
    "height 0": jpeg(change=frame(height=0)),
    "65535 x 65535": jpeg(change=frame(width=65535, height=65535)),
    "16385 wide": jpeg(change=frame(width=16385, height=1)),
    "lying size": jpeg(change=frame(width=8000, height=8000)),
    "lying size, progressive": jpeg("jpeg_progressive", change=frame(width=8000, height=8000)),
    "lying size of 1600 x 1600": jpeg(change=frame(width=1600, height=1600)),
    "lying size, CMYK": jpeg("jpeg_cmyk", change=frame(width=8000, height=8000)),
    "12 bits": jpeg(change=frame(precision=12)),
    "arithmetic coding": jpeg(change=frame(marker=0xC9)),
    "lossless": jpeg(change=frame(marker=0xC3)),
    "no components": jpeg(change=frame(components=0)),
    "255 components": jpeg(change=frame(components=255)),
    "sampling 0": jpeg(change=frame(sampling=0)),
    "sampling 15": jpeg(change=frame(sampling=0xFF)),
    "two frames": jpeg(change=lambda part: part * 2 if part[1] == 0xC0 else part),
    "segment of length 0": jpeg(change=lambda part: part + segment(0xE1, length=0) if part[1] == 0xDB else part),
    "segment of length 1": jpeg(change=lambda part: part + segment(0xE1, length=1) if part[1] == 0xDB else part),
    "segment past the end": jpeg(change=lambda part: part + segment(0xE1, length=65535) if part[1] == 0xDB else part),
    "Huffman codes too many": jpeg(change=lambda part: segment(0xC4, b"\0" + b"\xff" * 300) if part[1] == 0xC4 else part),
    "1000 scans": last_scan_repeated(1000),
    "no end": SAMPLES["jpeg_444"][:-2],
    "only markers": b"\xff\xd8" + b"\xff\xd8" * 50_000,
    "only fill bytes": b"\xff\xd8" + b"\xff" * 1_000_000,
    "10,000 comments": b"\xff\xd8" + segment(0xFE, b"x") * 10_000,
    "noise": b"\xff\xd8\xff" + random.Random(2).randbytes(5000),
}


# WebP


def riff(*chunks: tuple[bytes, bytes], form: bytes = b"WEBP") -> bytes:
    body = b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + form + body


def webp_chunk(name: str, chunk_name: bytes) -> bytes:
    data = SAMPLES[name]
    at = data.index(chunk_name)
    return data[at + 8 : at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")]


LOSSY, LOSSLESS = webp_chunk("webp_lossy", b"VP8 "), webp_chunk("webp_lossless", b"VP8L")


def canvas(width: int, height: int, flags: int = 0) -> tuple[bytes, bytes]:
    return b"VP8X", struct.pack("<I", flags) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def lossy(width: int, height: int) -> bytes:
    return LOSSY[:6] + struct.pack("<HH", width, height) + LOSSY[10:]


def lossless(width: int, height: int) -> bytes:
    return b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + LOSSLESS[5:]


WEBPS = {
    "no chunk": riff(),
    "lossy of 0 x 0": riff((b"VP8 ", lossy(0, 0))),
    "lossy of 16383 x 16383": riff((b"VP8 ", lossy(16383, 16383))),
    "lossless of 16384 x 16384": riff((b"VP8L", lossless(16384, 16384))),
    "lying lossy size": riff((b"VP8 ", lossy(8000, 8000))),
    "lying lossless size": riff((b"VP8L", lossless(8000, 8000))),
    "canvas of 2^24 x 2^24": riff(canvas(1 << 24, 1 << 24), (b"VP8 ", LOSSY)),
    "large image on a small canvas": riff(canvas(1, 1), (b"VP8 ", lossy(16383, 16383))),
    "large lossless image on a small canvas": riff(canvas(1, 1), (b"VP8L", lossless(16384, 16384))),
    "small image on a large canvas": riff(canvas(8000, 8000), (b"VP8 ", LOSSY)),
    "both kinds": riff(canvas(21, 18), (b"VP8 ", LOSSY), (b"VP8L", LOSSLESS)),
    "no pixels": riff(canvas(21, 18)),
    "animation": riff(canvas(21, 18, flags=2), (b"ANIM", bytes(6)), (b"ANMF", bytes(16) + b"VP8 " + struct.pack("<I", len(LOSSY)) + LOSSY)),
    "animation in animations": riff(canvas(21, 18, flags=2), (b"ANIM", bytes(6)), (b"ANMF", b"ANMF" * 10_000)),
    "EXIF chunk of 4 GB": riff(canvas(21, 18, flags=8), (b"VP8 ", LOSSY))[:-2] + b"EXIF\xff\xff\xff\xff",
    "EXIF missing": riff(canvas(21, 18, flags=8), (b"VP8 ", LOSSY)),
    "signature of the lossless image": riff((b"VP8L", b"\x30" + LOSSLESS[1:])),
    "version of the lossless image": riff((b"VP8L", LOSSLESS[:4] + b"\xf0" + LOSSLESS[5:])),
    "no key frame": riff((b"VP8 ", bytes([LOSSY[0] | 1]) + LOSSY[1:])),
    "noise": b"RIFF\xff\xff\0\0WEBPVP8L" + random.Random(3).randbytes(5000),
}


# GIF


def gif(*blocks: bytes, width=21, height=18, flags=0x80, palette=bytes(6)) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + palette + b"".join(blocks)


def gif_frame(width=21, height=18, left=0, top=0, code_size=2, data=b"\x84\x8f\xa9") -> bytes:
    return b"," + struct.pack("<HHHHB", left, top, width, height, 0) + bytes([code_size, len(data)]) + data + b"\0"


GIFS = {
    "no frame": gif(b";"),
    "screen of 0 x 0": gif(gif_frame(), b";", width=0, height=0),
    "screen of 65535 x 65535": gif(gif_frame(), b";", width=65535, height=65535),
    "frame of 0 x 0": gif(gif_frame(0, 0), b";"),
    "frame of 65535 x 65535": gif(gif_frame(65535, 65535), b";"),
    "frame far outside": gif(gif_frame(left=65535, top=65535), b";"),
    "lying size": gif(gif_frame(8000, 8000), b";", width=8000, height=8000),
    "no palette": gif(gif_frame(), b";", flags=0, palette=b""),
    "code size 13": gif(gif_frame(code_size=13), b";"),
    "code size 255": gif(gif_frame(code_size=255), b";"),
    "no codes": gif(gif_frame(data=b""), b";"),
    "codes that do not exist": gif(gif_frame(data=b"\xff" * 200), b";"),
    "extension without an end": gif(b"!\xf9" + b"\xff" * 70_000),
    "10,000 comments": gif(b"!\xfe\1x\0" * 10_000, b";"),
    "unknown block": gif(b"?" * 100),
    "two frames": SAMPLES["gif"][:-1] + SAMPLES["gif"][SAMPLES["gif"].index(b"!\xf9") :],
    "noise": b"GIF89a" + random.Random(4).randbytes(5000),
}

OTHERS = {
    "nothing": b"", "one byte": b"\x89", "text": b"hello", "zeros": bytes(10_000), "BMP": b"BM" + bytes(60), "TIFF": b"II*\0" + bytes(60),
    "HEIC": b"\0\0\0\x18ftypheic" + bytes(60), "AVIF": b"\0\0\0\x18ftypavif" + bytes(60), "JPEG XL": b"\xff\x0a" + bytes(60),
    "SVG": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "PDF": b"%PDF-1.7", "AVI": riff(form=b"AVI "), "GIF88a": b"GIF88a" + bytes(60),
    "only PNG's magic": PNG_MAGIC, "only JPEG's magic": b"\xff\xd8\xff", "only WebP's magic": b"RIFF\0\0\0\0WEBP", "only GIF's magic": b"GIF89a",
    "PNG's magic before a JPEG": PNG_MAGIC + SAMPLES["jpeg_444"], "JPEG's magic before a PNG": b"\xff\xd8\xff" + GOOD_PNG,
}

BAD = {
    **{f"PNG: {name}": data for name, data in PNGS.items()},
    **{f"JPEG: {name}": data for name, data in JPEGS.items()},
    **{f"WebP: {name}": data for name, data in WEBPS.items()},
    **{f"GIF: {name}": data for name, data in GIFS.items()},
    **{f"other: {name}": data for name, data in OTHERS.items()},
    **{f"{name} cut in half": data[: len(data) // 2] for name, data in SAMPLES.items()},
    **{f"{name} without the last tenth": data[: -len(data) // 10] for name, data in SAMPLES.items()},
}


# EXIF data that is damaged is ignored.


def tiff(entries: bytes, order: bytes = b"II", offset: int = 8) -> bytes:
    return order + struct.pack("<HI" if order == b"II" else ">HI", 42, offset) + entries


def with_exif(exif: bytes) -> bytes:
    return png(ihdr(width=4, height=2), chunk(b"eXIf", exif), idat(rows(4, 2)), IEND)


HARMLESS = {
    "empty EXIF": with_exif(b""),
    "EXIF of one byte": with_exif(b"I"),
    "EXIF noise": with_exif(random.Random(5).randbytes(500)),
    "directory past the end": with_exif(tiff(b"", offset=0xFFFFFFFF)),
    "directory at the header": with_exif(tiff(b"", offset=0)),
    "65535 entries": with_exif(tiff(b"\xff\xff" + bytes(12))),
    "orientation 0": with_exif(tiff(struct.pack("<HHHII", 1, 0x0112, 3, 1, 0))),
    "orientation 9": with_exif(tiff(struct.pack("<HHHII", 1, 0x0112, 3, 1, 9))),
    "orientation as text": with_exif(tiff(struct.pack("<HHHII", 1, 0x0112, 2, 1, 6))),
    "checksum of a text": png(ihdr(width=4, height=2), chunk(b"tEXt", b"a\0b", crc=1), idat(rows(4, 2)), IEND),
    "animation of 2^32 - 1 frames": png(ihdr(width=4, height=2), chunk(b"acTL", b"\xff" * 8), idat(rows(4, 2)), IEND),
    "bytes after the PNG": png(ihdr(width=4, height=2), idat(rows(4, 2)), IEND) + b"x" * 1000,
}
