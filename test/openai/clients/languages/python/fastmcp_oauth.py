"""Signs in at MCP_URL by OAuth, and calls a tool for each line of its input. Writes one line of JSON for each.

A line says by how many seconds the clock is ahead: FastMCP refreshes by its clock, and signs in anew after a 401.
"""

import asyncio
import json
import os
import sys
import time

from fastmcp import Client
from fastmcp.client.auth import OAuth
from key_value.aio.stores.memory import MemoryStore


async def main() -> None:
    # The same as auth="oauth", with a store that outlives a connection, as its documentation advises.
    auth = OAuth(token_storage=MemoryStore())
    clock = time.time
    for line in iter(sys.stdin.readline, ""):
        ahead = float(line)
        time.time = lambda: clock() + ahead
        said = {}
        try:
            async with Client(os.environ["MCP_URL"], auth=auth) as client:
                result = await client.call_tool("test_simple_text", {})
                said["text"] = result.content[0].text
        except Exception as error:  # noqa: BLE001
            said["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(said), flush=True)


asyncio.run(main())
