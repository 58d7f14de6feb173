import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { agentBlock, startAgent, type Agent } from '../../support/a2a-agent/index.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startSpine, UNHURRIED, type Spine, type SpineOptions } from '../../support/spine.ts';

/** The tool service and the agent of every world, and what one call of each costs in micro-USD. */
export const TOOLS = 'fixture/tools';
export const AGENT = 'fixture/agent';
export const TOOL_COST = 2_000n;
export const AGENT_COST = 3_000n;

/** A reply to one entry. */
export interface RpcReply {
  readonly jsonrpc: '2.0';
  readonly id: string | number | null;
  readonly result?: Record<string, unknown> & { readonly _meta?: Record<string, unknown> };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> };
}

export interface RpcWorld {
  readonly spine: Spine;
  readonly agent: Agent;
  /**
   * Posts a body, or what is to be JSON, with the key of the spine's account; an empty `authorization` takes it away.
   */
  post(body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  /** The reply to one request. */
  call(method: string, params?: object, headers?: Record<string, string>): Promise<RpcReply>;
  /** The replies to a batch. */
  batch(entries: readonly unknown[], headers?: Record<string, string>): Promise<RpcReply[]>;
  /** What the account was charged for what `run` did, in micro-USD. */
  charged(run: () => Promise<unknown>): Promise<bigint>;
}

export const request = (id: unknown, method: string, params?: object) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params ? { params } : {}),
});

/** A message of A2A 0.3 that the agent answers by its text. */
export const message = (text: string) => ({
  kind: 'message',
  messageId: crypto.randomUUID(),
  role: 'user',
  parts: [{ kind: 'text', text }],
});

/**
 * A gateway with a model, a tool service and an agent for the file that calls this. The books have to be in order
 * after each test.
 */
export function useRpcWorld(toml: string = UNHURRIED, options: Omit<SpineOptions, 'toml'> = {}): RpcWorld {
  let spine: Spine;
  let agent: Agent;
  let tools: McpFixture;
  beforeAll(async () => {
    tools = await startMcpFixture();
    agent = await startAgent({ version: 'both' });
    const tool = `
[[tools]]
name = "${TOOLS}"
display_name = "Fixture: Tools"
provider_name = "Fixture"
endpoint = "${tools.url}"
[tools.pricing]
per_call = 0.002
`;
    spine = await startSpine({
      ...options,
      toml: `${toml}\n${tool}${agentBlock({ name: AGENT, endpoint: agent.url, pricing: 'per_call = 0.003' })}`,
    });
  });
  afterAll(async () => {
    await spine.stop();
    await agent.close();
    await tools.close();
  });
  afterEach(async () => {
    expect(await spine.faults()).toEqual([]);
  });
  const post = async (body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) =>
    spine.post('/rpc', body, headers, signal);
  return {
    get spine() {
      return spine;
    },
    get agent() {
      return agent;
    },
    post,
    async call(method, params, headers) {
      return (await (await post(request(1, method, params), headers)).json()) as RpcReply;
    },
    async batch(entries, headers) {
      return (await (await post(entries, headers)).json()) as RpcReply[];
    },
    async charged(run) {
      const before = await spine.balance();
      await run();
      await spine.quiet();
      return before.available - (await spine.balance()).available;
    },
  };
}
