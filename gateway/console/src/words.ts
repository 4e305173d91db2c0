/** What the console says in place of names of the contract. */
import type { components } from "./contract.ts";
import { priceOf } from "./format.ts";

type Schemas = components["schemas"];
export type ErrorCode = Schemas["ErrorCode"];

/** What has happened, and what a person can do, by the code of an answer. */
const ERRORS: Record<ErrorCode, readonly [happened: string, remedy: string]> = {
  input_validation_error: ["Some of what was entered is not possible.", "Change it and try again."],
  invalid_json: ["The service could not read what this page has sent.", "Reload the page. If it happens again, tell the operator."],
  unauthorized: ["Your session has ended.", "Sign in again. What you changed is kept in this browser."],
  payment_required: ["Your credit, or a limit of what may be spent, does not cover this.", "Make less at once, choose a cheaper model, or ask for more."],
  forbidden: ["You may not do this.", "Ask the owner of the canvas for another role, or sign in with a link instead of a token."],
  not_found: ["It is not there any more, or it is not shared with you.", "Ask who has sent you here."],
  conflict: ["It was changed in the meantime.", "Look at what it is now, and try again."],
  gone: ["This is not offered any more.", "Reload the page."],
  payload_too_large: ["It is too large.", "Choose a smaller file, or a shorter text."],
  unsupported_media_type: ["A file of this kind is not accepted.", "Use PNG, JPEG, WebP, GIF, AVIF or MP4."],
  unprocessable_entity: ["This is not possible here.", "Change it and try again."],
  rate_limited: ["That was too much in a short time.", "Wait a moment and try again."],
  internal_error: ["The service has failed.", "Try again. If it happens again, tell the operator the number in the details."],
  upstream_error: ["A part of the service does not answer.", "Wait a moment and try again."],
  service_unavailable: ["The service cannot do this now.", "Wait a moment and try again."],
  upstream_timeout: ["This took too long.", "Try again in a moment."],
  request_failed: ["This did not work.", "Try again. If it happens again, tell the operator the number in the details."],
};

/** What is said of a result that the embedded runtime has made in place of a model. */
export const DRAFT = { mark: "draft", sentence: "Made by a draft model. Choose a model to make the real one." };

/** What is to be looked at, by the code of a finding. */
const FINDINGS: Record<Schemas["FindingCode"], string> = {
  agent_overlap: "Two things cover each other.",
  user_overlap: "Two things cover each other.",
  frames_touch: "This is too near to something else.",
  sections_staggered: "This Section is in line with none of the others.",
  section_overflow: "This reaches beyond its Section.",
  text_truncated: "The end of this text is cut off.",
  reference_source_empty: "This is to be made from a place that has no image yet.",
  reference_source_missing: "What this was made from is gone.",
  reference_cycle: "These are made from each other in a circle.",
  stand_in_output: DRAFT.sentence,
  empty_slot: "This place is empty. Fill it, or delete it.",
  line_crosses_node: "A line runs behind something else, or over a title.",
  picture_cropped: "The edges of this image are cut off.",
  upscaled_output: "This was enlarged so much that it may look soft.",
  mask_not_applied: "The mask was not used: the model made an image of another shape.",
};

/** What a finding says to a person; what the service says, for one that this console does not know. */
export const findingWords = ({ code, message }: { code: string; message: string }): string => (FINDINGS as Record<string, string>)[code] ?? `${message}.`;

/** What a connection says of where it leads: from what this comes, and so on. */
export const PURPOSE_WORDS: Record<Schemas["Connection"]["purpose"], string> = {
  flow: "Comes from",
  reference: "Guides it",
  list: "Belongs together",
  "first-frame": "Begins with",
  "last-frame": "Ends with",
};

/** What of an image guides another one. */
export const ROLE_WORDS: Record<NonNullable<Schemas["Connection"]["role"]>, string> = {
  identity: "same person or product",
  construction: "same build",
  texture: "same material",
  fit: "same fit",
  style: "same style",
};

/** The name of an Action: "Color grade" for "action:color-grade". */
export function actionName(handle: string): string {
  const words = handle.replace("action:", "").replaceAll("-", " ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** Who pays for a model: the service, or a key of one's own. */
export const payerOf = ({ connectionId, connectionName }: Pick<Schemas["Model"], "connectionId" | "connectionName">): string =>
  typeof connectionId === "string" ? `your ${connectionName} key` : "included";

/** Who pays for a result of a model, and what the account is charged. */
export const termsOf = ({ creditCost, ...model }: Pick<Schemas["Model"], "creditCost" | "connectionId" | "connectionName">): string =>
  creditCost === 0 && typeof model.connectionId === "string" ? payerOf(model) : `${payerOf(model)} · ${priceOf(creditCost)}`;

/** What has happened and what to do, as two sentences; undefined for a code that this console does not know. */
export function errorWords(code: string | undefined): string | undefined {
  const words = ERRORS[code as ErrorCode] as readonly [string, string] | undefined;
  return words?.join(" ");
}
