"""The jobs of shared/raster/examples/peers implemented with Pillow; see sharp.mjs for the protocol."""
import io, pathlib, sys, time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, sys.argv[1])
from PIL import Image, ImageDraw, ImageEnhance, ImageFont  # noqa: E402

NAMES = ["photo.jpg", "progressive.jpg", "large.jpg", "photo.png", "flat.png", "photo.webp", "logo.png"]
FILES = {name: open(f"{sys.argv[2]}/{name}", "rb").read() for name in NAMES}

# The font that is embedded in the engine, at 6 % of 3000 rows.
FONT = pathlib.Path(__file__).resolve().parents[2] / "shared/raster/fonts/NotoSans-Bold.ttf"


def load(name):
    return Image.open(io.BytesIO(FILES[name]))


def save(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpeg(image):
    return save(image, "JPEG", quality=85, subsampling="4:2:0", optimize=True)


def resized(name, width):
    image = load(name)
    size = (width, round(image.height * width / image.width))
    if image.format == "JPEG":
        image.draft("RGB", size)
    return image.resize(size, Image.Resampling.LANCZOS)


def overlay():
    image, logo = load("photo.jpg").convert("RGB"), resized("logo.png", 1000)
    image.paste(logo, (image.width - logo.width, image.height - logo.height), logo)
    return jpeg(image)


def side_by_side():
    first, second = load("photo.jpg"), load("photo.jpg")
    canvas = Image.new("RGB", (first.width + second.width, first.height), "white")
    canvas.paste(first, (0, 0))
    canvas.paste(second, (first.width, 0))
    return jpeg(canvas)


def grade():
    image = ImageEnhance.Brightness(load("photo.jpg")).enhance(1.1)
    return jpeg(ImageEnhance.Color(ImageEnhance.Contrast(image).enhance(1.15)).enhance(1.2))


def text():
    image = load("photo.jpg").convert("RGB")
    place = (image.width // 2, image.height - 54)
    ImageDraw.Draw(image).text(place, "The quick brown fox", "white", ImageFont.truetype(FONT, 180), anchor="md")
    return jpeg(image)


def change_ratio():
    image = load("photo.jpg")
    canvas = Image.new("RGB", (5334, image.height), "white")
    canvas.paste(image, (667, 0))
    return jpeg(canvas)


JOBS = {
    "resize": lambda: jpeg(resized("photo.jpg", 1024)),
    "resize-progressive": lambda: jpeg(resized("progressive.jpg", 1024)),
    "resize-png": lambda: save(resized("photo.png", 512), "PNG"),
    "resize-flat-png": lambda: save(resized("flat.png", 512), "PNG"),
    "crop": lambda: jpeg(load("photo.jpg").crop((1000, 750, 3000, 2250))),
    "rotate-90": lambda: jpeg(load("photo.jpg").transpose(Image.Transpose.ROTATE_270)),
    "rotate-12": lambda: jpeg(load("photo.jpg").rotate(-12, Image.Resampling.BICUBIC, True, fillcolor="white")),
    "overlay": overlay,
    "side-by-side": side_by_side,
    "grade": grade,
    "webp": lambda: save(resized("large.jpg", 1600), "WEBP", quality=80, method=2),
    "from-webp": lambda: jpeg(load("photo.webp")),
    "text": text,
    "change-ratio": change_ratio,
}

for line in sys.stdin:
    job, at_once, count, *out = line.split()
    began = time.perf_counter()
    if int(at_once) == 1:
        for _ in range(int(count)):
            result = JOBS[job]()
    else:
        with ThreadPoolExecutor(int(at_once)) as pool:
            result = list(pool.map(lambda _: JOBS[job](), range(int(count))))[-1]
    print((time.perf_counter() - began) * 1e3, flush=True)
    if out:
        with open(out[0], "wb") as file:
            file.write(result)
