import assert from "node:assert/strict";
import { test } from "node:test";
import type { Action, Parameter } from "../api.ts";
import { entryOf, paramsOf, problemsOf } from "./forms.ts";

const parameter = (id: string, rest: Partial<Parameter>): Parameter => ({ id, title: id, type: "text", required: false, ...rest });
const action = (...parameters: Parameter[]): Action => ({
  id: "action:resize", slug: "resize", version: "1.0.0", title: "", summary: "", estimatedSeconds: 1, medium: "image", inputs: [], output: { title: "", description: "" }, parameters,
}); // prettier-ignore

const width = parameter("width", { type: "number", integer: true, required: true });
const fit = parameter("fit", { type: "select", default: "inside", options: [{ value: "inside", label: "Inside" }, { value: "cover", label: "Cover" }] });
const angle = parameter("angle", { type: "select", default: 0, options: [{ value: 0, label: "0" }, { value: 90, label: "90" }] });
const text = parameter("text", { maxLength: 500 });

test("what is left at its default is not sent", () => {
  assert.deepEqual(paramsOf(action(width, fit, angle, text), { width: "640", fit: "inside", text: "" }), { width: 640 });
  assert.equal(entryOf(angle), "0");
});

test("numbers, options and texts have the types of their parameters", () => {
  const entries = { width: "25", fit: "cover", angle: "90", text: "a\r\nb 1" };
  assert.deepEqual(paramsOf(action(width, fit, angle, text), entries), { width: 25, fit: "cover", angle: 90, text: "a\nb 1" });
});

test("a required parameter that is empty is sent, so that the service says what is wrong", () => {
  assert.deepEqual(paramsOf(action(parameter("ratio", { required: true, default: "1:1" })), { ratio: "" }), { ratio: "" });
});

test("refusals are found at their parameters", () => {
  const fields = [
    { field: "params.width", message: "is too large" },
    { field: "params.width", message: "must be whole" },
    { field: "inputs[0]", message: "shows no image" },
  ];
  assert.deepEqual(problemsOf(fields), { width: "is too large; must be whole", "": "inputs[0] shows no image" });
});
