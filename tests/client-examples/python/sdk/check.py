
# What the samples have made. Their names are those of the samples.
import hashlib
import hmac
import time

assert resized["images"][0]["width"] == 32
assert len(generated["images"]) == 1


def delivered(secret: str) -> int:
    body = b'{"type":"image_job.succeeded","data":{"run":{"status":"succeeded"}}}'
    timestamp = str(int(time.time()))
    signature = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return receive({"Service-Webhook-Timestamp": timestamp, "Service-Webhook-Signature": f"v1={signature}"}, body)


assert delivered(os.environ["WEBHOOK_SECRET"]) == 204
try:
    delivered("another secret of the same length")
except Exception as error:
    assert type(error).__name__ == "WebhookError"
else:
    raise AssertionError("a signature of another secret is accepted")
