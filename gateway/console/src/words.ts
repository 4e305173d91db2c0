/** What the console says in place of names of the contract. */
import type { components } from "./contract.ts";

export type ErrorCode = components["schemas"]["ErrorCode"];

/** What has happened, and what a person can do, by the code of an answer. */
const ERRORS: Record<ErrorCode, readonly [happened: string, remedy: string]> = {
  input_validation_error: ["Some of what was entered is not possible.", "Change it and try again."],
  invalid_json: ["The service could not read what this page has sent.", "Reload the page. If it happens again, tell the operator."],
  unauthorized: ["Your session has ended.", "Sign in again. What you changed is kept in this browser."],
  payment_required: ["Your credit does not cover this.", "Make less at once, choose a cheaper model, or ask for more credit."],
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

/** What has happened and what to do, as two sentences; undefined for a code that this console does not know. */
export function errorWords(code: string | undefined): string | undefined {
  const words = ERRORS[code as ErrorCode] as readonly [string, string] | undefined;
  return words?.join(" ");
}
