// The jobs of shared/raster/examples/peers implemented with sharp (libvips). Each input line is "<job> <concurrency> <count> [<output file>]",
// and the output is the time in milliseconds. Nothing is cached between jobs; the input files are read once.
import { createInterface } from "node:readline";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [, , modules, directory] = process.argv;
const sharp = createRequire(`${modules}/`)("sharp");
sharp.cache(false);

const names = ["photo.jpg", "progressive.jpg", "large.jpg", "photo.png", "flat.png", "photo.webp", "logo.png"];
const files = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(`${directory}/${name}`)])));
const open = (name) => sharp(files[name]);
// By default, sharp reduces a JPEG by more while decoding than the engine does, so that fine patterns alias.
const reduced = (name, width) => open(name).resize(width, null, { fastShrinkOnLoad: false });
const jpeg = (image) => image.jpeg({ quality: 85, chromaSubsampling: "4:2:0", optimiseCoding: true }).toBuffer();

// The font that is embedded in the engine, rendered by Pango at 72 dpi, so that a point is a pixel.
const fontfile = fileURLToPath(new URL("../../shared/raster/fonts/NotoSans-Bold.ttf", import.meta.url));
const words = '<span foreground="white">The quick brown fox</span>';
const caption = { text: { text: words, font: "Noto Sans Bold 180", fontfile, rgba: true, dpi: 72 } };

const jobs = {
    "resize": () => jpeg(reduced("photo.jpg", 1024)),
    "resize-progressive": () => jpeg(reduced("progressive.jpg", 1024)),
    "resize-png": () => open("photo.png").resize(512).png().toBuffer(),
    "resize-flat-png": () => open("flat.png").resize(512).png().toBuffer(),
    "crop": () => jpeg(open("photo.jpg").extract({ left: 1000, top: 750, width: 2000, height: 1500 })),
    "rotate-90": () => jpeg(open("photo.jpg").rotate(90)),
    "rotate-12": () => jpeg(open("photo.jpg").rotate(12, { background: "#ffffff" })),
    "overlay": async () => {
        const { data, info } = await open("logo.png").resize(1000).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
        const raw = { width: info.width, height: info.height, channels: info.channels };
        return jpeg(open("photo.jpg").composite([{ input: data, raw, gravity: "southeast" }]));
    },
    "side-by-side": async () => {
        const left = await open("photo.jpg").raw().toBuffer({ resolveWithObject: true });
        const raw = { width: left.info.width, height: left.info.height, channels: left.info.channels };
        const canvas = sharp(left.data, { raw }).extend({ right: left.info.width, background: "#ffffff" });
        return jpeg(canvas.composite([{ input: files["photo.jpg"], left: left.info.width, top: 0 }]));
    },
    "grade": () => jpeg(open("photo.jpg").modulate({ brightness: 1.1, saturation: 1.2 }).linear(1.15, -0.15 * 127.5)),
    "webp": () => reduced("large.jpg", 1600).webp({ quality: 80, effort: 2 }).toBuffer(),
    "from-webp": () => jpeg(open("photo.webp")),
    "text": () => jpeg(open("photo.jpg").composite([{ input: caption, gravity: "south" }])),
    "change-ratio": () => jpeg(open("photo.jpg").extend({ left: 667, right: 667, background: "#ffffff" })),
};

for await (const line of createInterface({ input: process.stdin })) {
    const [job, atOnce, count, out] = line.split(" ");
    // One job uses one thread. Two concurrent jobs share two threads, and libvips decides how.
    sharp.concurrency(Number(atOnce));
    const began = process.hrtime.bigint();
    let left = Number(count);
    let result;
    const work = async () => { while (left-- > 0) result = await jobs[job](); };
    await Promise.all(Array.from({ length: Number(atOnce) }, work));
    console.log(Number(process.hrtime.bigint() - began) / 1e6);
    if (out) await writeFile(out, result);
}
