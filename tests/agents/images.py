"""Images for the tasks."""

import struct
import zlib


def png(width, height, tone):
    """A gradient of a tone from 0 to 255."""
    rows = b"".join(
        b"\0" + b"".join(bytes((255 * x // width, 255 * y // height, tone)) for x in range(width)) for y in range(height)
    )

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


PHOTOS = [("harbor.png", png(480, 320, 40)), ("boot.png", png(320, 480, 120)), ("rope.png", png(400, 400, 200))]
