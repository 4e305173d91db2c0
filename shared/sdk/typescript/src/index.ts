export { CanvasClient, type WaitOptions } from "./client.js";
export { ApiError, CanvasError, ConnectionError, WaitTimeoutError, WebhookError, WorkFailedError, type Work } from "./errors.js";
export type { ClientOptions, Options } from "./transport.js";
export type * from "./types.js";
export { verifyWebhook, type WebhookOptions, type WebhookRequest } from "./webhook.js";
