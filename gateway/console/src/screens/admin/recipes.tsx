import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ChangeEvent, useRef } from "react";
import { admin } from "../../admin.ts";
import { Problem } from "../../errors.ts";
import { ago } from "../../format.ts";
import { useClock, usePages } from "../../ui/hooks.ts";
import { Button, Notice } from "../../ui/parts.tsx";
import { Listed } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

export function Recipes() {
  useClock();
  const queries = useQueryClient();
  const file = useRef<HTMLInputElement>(null);
  const list = usePages(["admin", "recipes"], (cursor, signal) => admin.recipes(cursor, signal), { staleTime: 0 });
  const recipes = list.data?.pages.flatMap((page) => page.recipes) ?? [];
  const publish = useMutation({
    mutationFn: async (chosen: File) => {
      const text = await chosen.text();
      try {
        return await admin.publish(JSON.parse(text));
      } catch (error) {
        throw error instanceof SyntaxError ? new Problem(400, `${chosen.name} is not JSON.`) : error;
      }
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["admin", "recipes"] }),
  });

  function choose({ target }: ChangeEvent<HTMLInputElement>) {
    const [chosen] = target.files ?? [];
    target.value = "";
    if (chosen) publish.mutate(chosen);
  }

  const { error } = publish;
  return (
    <Section
      title="Recipes"
      lead="The catalog that everybody sees. A file is published as a new Recipe, or as the next version of the one with its id or name."
      action={
        <Button look="primary" isBusy={publish.isPending} onClick={() => file.current?.click()}>
          Publish a file…
        </Button>
      }
    >
      <input ref={file} type="file" accept=".json,application/json" hidden aria-label="Recipe file" onChange={choose} />
      {error && <Notice error={error} />}
      {error instanceof Problem && error.fields.length > 0 && (
        <ul>
          {error.fields.map(({ field, message }) => (
            <li key={field}>
              <code>{field}</code> {message}
            </li>
          ))}
        </ul>
      )}
      <p role="status" className="unseen">
        {publish.data && `${publish.data.id} has version ${publish.data.version}`}
      </p>
      <Listed list={list} noun="Recipes" isEmpty={recipes.length === 0}>
        <ul className={styles.rows} aria-label="Recipes">
          {recipes.map((recipe) => (
            <li key={recipe.id} className={styles.row}>
              <div className={styles.what}>
                <h3>
                  <bdi>{recipe.name}</bdi>
                </h3>
                <p className={styles.meta}>
                  <span>{recipe.id}</span>
                  <span>version {recipe.version}</span>
                  <span>published {ago(recipe.updatedAt)}</span>
                </p>
              </div>
            </li>
          ))}
        </ul>
      </Listed>
    </Section>
  );
}
