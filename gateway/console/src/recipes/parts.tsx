/** What a Recipe makes, from what, and for which price. */
import { priceOf } from "../format.ts";
import { Icon } from "../ui/parts.tsx";
import type { Recipe } from "./calls.ts";
import styles from "./recipes.module.css";


/** The names of the models that make the outputs. */
export const modelsOf = ({ outputs }: Recipe): string[] => [...new Set(outputs.flatMap(({ model }) => model?.name ?? []))];

/** The name of a type of node, which is that of its icon, too. */
export const kindOf = (type: "image" | "text" | "sticky") => (type === "sticky" ? "note" : type);

export const KindIcon = ({ kind, size = 15 }: { kind: Parameters<typeof kindOf>[0]; size?: number }) => <Icon name={kindOf(kind)} size={size} />;

/** The ports of a Recipe: from what it makes what. */
export function Ports({ recipe: { inputs, outputs } }: { recipe: Recipe }) {
  return (
    <div className={styles.ports}>
      <ul aria-label="From">
        {inputs.map(({ key, label, nodeType, useAsPreset }) => (
          <li key={key} title={`${kindOf(nodeType)}${useAsPreset ? ", optional" : ""}`} data-optional={useAsPreset}>
            <KindIcon kind={nodeType} />
            <bdi>{label}</bdi>
          </li>
        ))}
      </ul>
      <span aria-hidden="true">→</span>
      <ul aria-label="Makes">
        {outputs.map(({ key, label, nodeType }) => (
          <li key={key} title={kindOf(nodeType)}>
            <KindIcon kind={nodeType} />
            <bdi>{label}</bdi>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Price, models, and whether the results only stand in for those of a provider. */
export function Terms({ recipe }: { recipe: Recipe }) {
  const models = modelsOf(recipe);
  return (
    <p className={styles.terms}>
      <strong>{priceOf(recipe.creditCost)}</strong>
      <bdi>{models.length > 0 ? models.join(", ") : "no model for it"}</bdi>
      {recipe.outputs.some(({ standIn }) => standIn) && <StandIn />}
    </p>
  );
}

export const StandIn = () => (
  <span className={styles.standIn} title="Draft models draw where text and images will be. Connect a provider for real ones.">
    Draft
  </span>
);
