/** Images that come with the console: `README.md`. */
import styles from "./sample.module.css";

const FILES = import.meta.glob<string>("./*.jpg", { eager: true, query: "?url", import: "default" });

/** The address of an image. It has a hash of the content. */
export const urlOf = (name: string): string | undefined => FILES[`./${name}.jpg`];

/** What a template or a Recipe makes, in the colors of the page; nothing if there is no picture of it. */
export function Picture({ name }: { name: string }) {
  if (urlOf(`${name}-light`) === undefined) return null;
  return (
    <span className={styles.picture}>
      {(["light", "dark"] as const).map((theme) => (
        <img key={theme} className={styles[theme]} src={urlOf(`${name}-${theme}`)} alt="" aria-hidden="true" loading="lazy" decoding="async" />
      ))}
    </span>
  );
}
