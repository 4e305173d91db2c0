
// What the samples have made. Their names are those of the samples.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";

assert.equal(resized.images?.[0]?.width, 32);
assert.equal(images.length, 1);

async function delivered(secret: string): Promise<Response> {
  const body = '{"type":"image_job.succeeded","data":{"run":{"status":"succeeded"}}}';
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  const headers = { "Service-Webhook-Timestamp": timestamp, "Service-Webhook-Signature": `v1=${signature}` };
  return POST(new Request("https://hooks.example.com/canvas", { method: "POST", body, headers }));
}
assert.equal((await delivered(process.env.WEBHOOK_SECRET!)).status, 204);
await assert.rejects(delivered("another secret of the same length"), { name: "WebhookError" });
