import { init } from "/docs/redoc.js";

const options = { disableTelemetry: true, router: "hash" };
init("/api/canvas-agent/v1/openapi.json", options, document.getElementById("reference"));
