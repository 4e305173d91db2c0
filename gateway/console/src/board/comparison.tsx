/** About what an Action will make, in Inspect. */
import { useQuery } from "@tanstack/react-query";
import type { ComponentProps, CSSProperties } from "react";
import { type Action, api } from "../api.ts";
import styles from "./comparison.module.css";
import type { Entries } from "./forms.ts";
import { useImage } from "./images.ts";
import { isPreviewed, type Preview, previewOf, shares } from "./preview.ts";
import { allParams } from "./shapes.ts";

/** The width of the panel, in pixels of the screen. */
const WIDTH = 340;

const usePanelImage = (asset: string | undefined) => useImage(asset, WIDTH * devicePixelRatio);
const percent = (part: number, whole: number) => `${(part / whole) * 100}%`;

/** About what the Action will make. It follows the form at once, and asks the service for nothing but the image. */
export function ActionPreview({ action, entries, asset }: { action: Action; entries: Entries; asset: string }) {
  const { data } = useQuery({ queryKey: ["asset", asset], queryFn: ({ signal }) => api.asset(asset, signal), staleTime: Infinity });
  const { url } = usePanelImage(asset);
  const params = allParams(action, entries);
  if (!data || url === undefined || !isPreviewed(action.slug)) return null;
  const preview = previewOf(action.slug, params, data);
  // The image as it is, so that the form does not jump while a number is typed.
  const whole: Preview = { size: data, image: { x: 0, y: 0, width: data.width, height: data.height } };
  const { size } = preview ?? whole;
  const isText = action.slug === "add-text-to-image";
  return (
    <figure className={`${styles.figure} ${styles.preview}`}>
      <div className={styles.stage}>
        <div className={styles.result} style={{ aspectRatio: `${size.width} / ${size.height}`, width: `min(100%, ${(200 * size.width) / size.height}px)` }}>
          <Result preview={preview ?? whole} url={url} />
          {isText && <TextBox params={params} height={size.height} />}
        </div>
      </div>
      <figcaption>
        {preview ? `About ${Math.round(size.width)} × ${Math.round(size.height)} pixels. The result can differ a little.` : "The image as it is: a value is missing or not possible."}
      </figcaption>
    </figure>
  );
}

/** The image as it is in what is made, which fills the element around it. */
export function Result({ preview: { size, image, degrees, flip, background, isBlurred }, url }: { preview: Preview; url: string }) {
  const turn = [degrees && `rotate(${degrees}deg)`, flip?.x && "scaleX(-1)", flip?.y && "scaleY(-1)"].filter(Boolean).join(" ");
  return (
    <div className={styles.made} style={background ? { background } : undefined}>
      {isBlurred && <img className={styles.blurred} src={url} alt="" aria-hidden="true" />}
      <img
        src={url}
        alt="About what the Action makes"
        draggable={false}
        style={{
          left: percent(image.x, size.width),
          top: percent(image.y, size.height),
          width: percent(image.width, size.width),
          height: percent(image.height, size.height),
          ...(turn && { transform: turn }),
        }}
      />
    </div>
  );
}

interface TextBoxProps extends Omit<ComponentProps<"div">, "style"> {
  params: Record<string, string | number>;
  height: number;
}

/** The text on the image, in the fonts of the service. Its sizes are relative to the image's height, as those of the Action are. */
export function TextBox({ params, height, className, children, ...rest }: TextBoxProps) {
  const number = (name: string) => Number(params[name] ?? 0);
  const { x, y } = shares(String(params.anchor));
  const cqh = (pixels: number) => `${(pixels / height) * 100}cqh`;
  const style: CSSProperties = {
    left: `calc(${x * 100}% + ${cqh(number("offsetX"))})`,
    top: `calc(${y * 100}% + ${cqh(number("offsetY"))})`,
    transform: `translate(${-x * 100}%, ${-y * 100}%)`,
    maxWidth: `${number("maxWidth")}%`,
    padding: `${number("padding") / 100}em`,
    background: String(params.background ?? ""),
    color: String(params.color ?? ""),
    fontFamily: { serif: '"Text serif", serif', mono: '"Text mono", monospace' }[String(params.font)] ?? '"Text sans", sans-serif',
    fontSize: `${number("size")}cqh`,
    fontWeight: params.weight === "regular" ? 400 : 700,
    lineHeight: number("lineHeight"),
    textAlign: params.align === "left" || params.align === "right" ? params.align : "center",
    WebkitTextStroke: `${number("strokeWidth") / 100}em ${String(params.strokeColor ?? "")}`,
  };
  return (
    <div className={[styles.text, className].filter(Boolean).join(" ")} dir="auto" style={style} {...rest}>
      {params.text || "Text"}
      {children}
    </div>
  );
}
