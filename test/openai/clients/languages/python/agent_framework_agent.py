"""An agent of agent-framework: its default client (Responses), tools by MCP, and a second turn of its session."""

import asyncio
import json
import os

from agent_framework import Agent, MCPStreamableHTTPTool
from agent_framework.openai import OpenAIChatClient
from httpx2 import AsyncClient


async def main() -> None:
    key = os.environ["KEY"]
    client = OpenAIChatClient("test/plays", base_url=os.environ["BASE_URL"], api_key=key)
    http = AsyncClient(headers={"Authorization": f"Bearer {key}"})
    async with MCPStreamableHTTPTool(name="tools", url=os.environ["MCP_URL"], http_client=http) as tools:
        agent = Agent(client, tools=tools)
        session = agent.create_session()
        first = await agent.run("Use the tool", session=session)
        second = await agent.run("And again", session=session)
    await http.aclose()
    print(json.dumps({"answers": [first.text, second.text]}))


asyncio.run(main())
