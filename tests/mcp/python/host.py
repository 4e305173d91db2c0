"""A host that connects from the address alone, with the SDK for Python of the protocol's own makers, version 1 or 2.

    host.py URL

It prints the address to which it sends the person, reads the one to which the person comes back, and prints what it got as JSON.
"""

import json
import sys
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import anyio
import mcp
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

IS_FIRST = not hasattr(mcp, "Client")
if IS_FIRST:
    import httpx
else:
    import httpx2 as httpx
    from mcp.client.auth import AuthorizationCodeResult

REDIRECT = "http://127.0.0.1:33418/callback"


class Storage:
    """What a host keeps from one start to the next."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


asked = 0


async def redirect(url):
    global asked
    asked += 1
    print(url, flush=True)


async def come_back():
    line = await anyio.to_thread.run_sync(sys.stdin.readline)
    answer = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    if IS_FIRST:
        return answer["code"], answer["state"]
    return AuthorizationCodeResult(**answer)


@asynccontextmanager
async def connection(url, provider):
    async with httpx.AsyncClient(auth=provider, timeout=30) as client:
        transport = streamable_http_client(url, http_client=client)
        if not IS_FIRST:
            async with mcp.Client(transport) as session:
                yield session
            return
        async with transport as (read, write, _), mcp.ClientSession(read, write) as session:
            await session.initialize()
            yield session


async def main(url):
    storage = Storage()

    def provider():
        metadata = OAuthClientMetadata(client_name="MCP test host", redirect_uris=[REDIRECT])
        return OAuthClientProvider(url, metadata, storage, redirect, come_back)

    first = provider()
    async with connection(url, first) as session:
        tools = [tool.name for tool in (await session.list_tools()).tools]
        created = await session.call_tool("canvas_create", {"title": "From Python"})
        before = storage.tokens.access_token
        # It has expired.
        first.context.token_expiry_time = 1
        await session.call_tool("status", {})
        refreshed = storage.tokens.access_token != before

    # The next start of the host.
    async with connection(url, provider()) as session:
        again = [tool.name for tool in (await session.list_tools()).tools]

    print(json.dumps({
        "client": storage.client.client_id,
        "asked": asked,
        "tools": tools,
        "again": again == tools,
        "refreshed": refreshed,
        "created": created.model_dump(by_alias=True, mode="json"),
    }))


anyio.run(main, sys.argv[1])
