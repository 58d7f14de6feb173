import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { PaymentPayload, PaymentRequired } from '@x402/fetch';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isTask, saying, stateName, type Asked } from '../../a2a/clients/sdk-client.ts';
import { toolToml } from '../../mcp/calls/modern-post.ts';
import { agentBlock } from '../../support/a2a-agent/agent-spine.ts';
import { startAgent, type Agent } from '../../support/a2a-agent/index.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { type ChainsSpine, startChainsSpine } from './support/chains-spine.ts';
import { fundPayer, PURSE } from './support/payer.ts';

// A wallet with USDC and no account, the official clients of MCP and of A2A, and the client of x402 that signs what
// their answers ask for: on two real chains.

const PRICE = 600_000n;

let world: ChainsSpine;
let server: McpFixture;
let agent: Agent;
beforeAll(async () => {
  [server, agent] = await Promise.all([startMcpFixture(), startAgent({})]);
  const pricing = 'per_call = 0.6';
  world = await startChainsSpine({
    toml:
      toolToml({ name: 'tools', url: server.url, pricing }) +
      agentBlock({ name: 'delphi/agent', endpoint: agent.url, pricing, provider: 'Delphi' }),
  });
});
afterEach(() => world.balanced());
afterAll(async () => {
  await world?.stop();
  await server?.close();
  await agent?.close();
});

describe.each(['evm', 'solana'] as const)('on %s', (family) => {
  it('a tool is called by a client of MCP that pays what its first answer asks for', async () => {
    const payer = await fundPayer(world[family]);
    const client = new Client({ name: 'payer', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${world.spine.origin}/mcp/tools`)));
    try {
      await client.listTools();
      const call = { name: 'test_simple_text', arguments: {} };
      const asked = await client.callTool(call);
      expect(asked.isError).toBe(true);
      const terms = asked.structuredContent as PaymentRequired;
      expect(terms.accepts).toMatchObject(
        [world.evm, world.solana].map(({ network, treasury }) => ({ network, payTo: treasury, amount: String(PRICE) })),
      );
      const payment = await payer.client.createPaymentPayload(terms);
      const paid = await client.callTool({ ...call, _meta: { 'x402/payment': payment } });
      expect(paid.isError ?? false, JSON.stringify(paid)).toBe(false);
      expect(paid._meta?.['x402/payment-response']).toMatchObject({
        success: true,
        payer: payer.address,
        network: payer.chain.network,
      });
    } finally {
      await client.close();
    }
    await world.spine.quiet();
    expect(await payer.held()).toBe(PURSE - PRICE);
    expect(await world.available(payer.account)).toBe(0n);
  });

  it('an agent is asked by a client of A2A that pays the task that waits for it', async () => {
    const payer = await fundPayer(world[family]);
    const client = await new ClientFactory(ClientFactoryOptions.default).createFromUrl(
      `${world.spine.origin}/a2a/delphi/agent/`,
    );
    const say = async (asked: Asked, payment?: PaymentPayload) => {
      const request = saying('task work', asked);
      const metadata = payment && { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payment };
      const answer = await client.sendMessage({ ...request, message: { ...request.message!, metadata } });
      if (!isTask(answer)) throw new Error(`a task should have come: ${JSON.stringify(answer)}`);
      return answer;
    };
    const waits = await say({});
    expect(stateName(waits)).toBe('TASK_STATE_INPUT_REQUIRED');
    const terms = waits.status!.message!.metadata!['x402.payment.required'] as PaymentRequired;
    const { id: taskId, contextId } = waits;
    const done = await say({ taskId, contextId }, await payer.client.createPaymentPayload(terms));
    expect(stateName(done), JSON.stringify(done)).toBe('TASK_STATE_COMPLETED');
    const receipt = { success: true, payer: payer.address, network: payer.chain.network, amount: String(PRICE) };
    expect(done.metadata).toMatchObject({
      'x402.payment.status': 'payment-completed',
      'x402.payment.receipts': [receipt],
    });
    await world.spine.quiet();
    expect(await payer.held()).toBe(PURSE - PRICE);
    expect(await world.available(payer.account)).toBe(0n);
  });
});
