#!/usr/bin/env python3
"""An HTTPS server for a test: a product page with two images, and a receiver of webhooks.

    tests/lib/receiver.py HOST:PORT CERTIFICATE KEY PHOTO FILE

GET /product is the page, GET /1.jpg and so on the image in PHOTO. A POST is answered with 204 and adds a line to FILE: the handle of the
run, and "signed" if the signature is that of the secret in $WEBHOOK_SECRET, otherwise "unsigned".
"""

import hashlib
import hmac
import http.server
import json
import os
import ssl
import sys
from pathlib import Path

ADDRESS, CERTIFICATE, KEY, PHOTO, FILE = sys.argv[1:]
HOST, _, PORT = ADDRESS.rpartition(":")
PRODUCT = {"@context": "https://schema.org", "@type": "Product", "name": "Espresso", "image": [f"https://{ADDRESS}/1.jpg"]}
PAGE = f'<!doctype html><title>Espresso</title><script type="application/ld+json">{json.dumps(PRODUCT)}</script>'


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        is_page = self.path == "/product"
        body = PAGE.encode() if is_page else Path(PHOTO).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if is_page else "image/jpeg")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signed = (self.headers["Service-Webhook-Timestamp"] or "").encode() + b"." + body
        wanted = "v1=" + hmac.new(os.environ["WEBHOOK_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
        is_signed = wanted in (self.headers["Service-Webhook-Signature"] or "").replace(" ", "").split(",")
        with open(FILE, "a", encoding="utf-8") as file:
            file.write(f"{json.loads(body)['data']['run']['run']} {'signed' if is_signed else 'unsigned'}\n")
        self.send_response(204)
        self.end_headers()


server = http.server.ThreadingHTTPServer((HOST, int(PORT)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
