import { init } from "/docs/redoc.js";

const CONTRACT = "/api/canvas-agent/v1/openapi.json";

/** The viewer takes the descriptions of values by the values, and generators of clients take them in their order. */
function explain(schema) {
  if (schema === null || typeof schema !== "object") return;
  const { enum: values, "x-enum-descriptions": descriptions } = schema;
  if (Array.isArray(values) && Array.isArray(descriptions)) {
    schema["x-enumDescriptions"] = Object.fromEntries(values.map((value, at) => [value, descriptions[at]]));
    delete schema["x-enum-descriptions"];
  }
  Object.values(schema).forEach(explain);
}

const place = document.getElementById("reference");
const response = await fetch(CONTRACT).catch(() => undefined);
if (response?.ok) {
  const contract = await response.json();
  explain(contract);
  init(contract, { disableTelemetry: true, router: "hash" }, place);
} else place.textContent = "The contract could not be loaded. Reload the page.";
