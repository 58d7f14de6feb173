"""An agent of openai-agents: its default model (Responses), tools by MCP, and a second turn by previous_response_id."""

import asyncio
import json
import os

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI


async def main() -> None:
    set_tracing_disabled(True)
    key = os.environ["KEY"]
    client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key=key, max_retries=0)
    # A name with a slash would be taken for a provider of the package and its model.
    model = OpenAIResponsesModel(model="test/plays", openai_client=client)
    params = {"url": os.environ["MCP_URL"], "headers": {"Authorization": f"Bearer {key}"}}
    async with MCPServerStreamableHttp(params=params, client_session_timeout_seconds=60) as tools:
        settings = ModelSettings(store=True)
        agent = Agent(name="agent", model=model, mcp_servers=[tools], model_settings=settings)
        first = await Runner.run(agent, "Use the tool")
        second = await Runner.run(agent, "And again", previous_response_id=first.last_response_id)
        streamed = Runner.run_streamed(agent, "Use the tool")
        async for _ in streamed.stream_events():
            pass
    answers = [str(result.final_output) for result in (first, second, streamed)]
    print(json.dumps({"answers": answers}))


asyncio.run(main())
