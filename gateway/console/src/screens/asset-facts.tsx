/** The file of an asset, as parts of a list. */
import { type Asset, formatOf, removedOf, sizeOf } from "../assets.ts";
import { bytes, day } from "../format.ts";

const MADE: Record<Asset["aiGenerated"] & string, string | undefined> = { yes: "Made with AI", partly: "Made with AI in part", no: "Made without AI", unknown: undefined };

export function FileFacts({ asset }: { asset: Asset }) {
  const cleaned = removedOf([asset]);
  const made = MADE[asset.aiGenerated ?? "unknown"];
  const facts: [name: string, value: string | undefined][] = [
    ["Size", asset.kind === "video" ? sizeOf(asset) : `${asset.width} × ${asset.height} pixels`],
    ["File", `${formatOf(asset.mimeType)}, ${bytes(asset.bytes)}${asset.animated ? ", animated" : ""}`],
    ["Stored", asset.createdAt && day(asset.createdAt)],
    ["Origin", made && `${made}${asset.originFrom === "metadata" ? ", as its file says" : ""}`],
    ["Removed", cleaned],
  ];
  return facts.map(
    ([name, value]) =>
      value !== undefined && (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ),
  );
}
