import { describe, expect, it } from 'vitest';
import { viewForOtherClients } from '../../../src/console/pages/account/generation-view.ts';
import { openWorld, type ErrorBody, type World } from './gateway-world.ts';

interface Generation {
  readonly data: Record<string, unknown> & {
    readonly entries: readonly { readonly type: string; readonly amount_micro_usdc: number }[];
  };
}

const DETAIL = JSON.stringify({
  service: 'author/model',
  primitive: 'model',
  key: 'key-hash',
  requestId: 'req-1',
  stream: true,
});

async function lock({ ledger, price, clock }: World, id: string, account: string, detail = DETAIL) {
  await ledger.lock({ id, account, amount: 1_000n, prices: [price], expiresAt: clock.now + 1_000, detail });
}

const lines = (body: Generation) => body.data.entries.map(({ type, amount_micro_usdc: amount }) => [type, amount]);

describe('the record of a call', () => {
  it('shows what was done, what it cost and where the money went', async () => {
    const world = await openWorld();
    const { key, account } = await world.tenant('alice');
    await lock(world, 'gen-1', account);
    world.clock.now += 1_500;
    await world.ledger.settle({
      id: 'gen-1',
      price: world.price,
      provider: 'provider',
      charge: 300n,
      draw: false,
      feeBps: 1_000,
      usage: '{"prompt":12,"completion":34}',
      detail: JSON.stringify({
        outcome: 'complete',
        model: 'author/model',
        providerName: 'The Provider',
        firstByteMs: 12.4,
        durationMs: 345,
        finishReason: 'stop',
        flags: ['slow'],
        claims: [{ meter: 'completion', claimed: 90, most: 40 }],
        estimated: false,
        cached: 7,
      }),
    });
    const { status, body } = await world.call<Generation>(key, 'GET', '/api/v1/generation?id=gen-1');
    expect(status).toBe(200);
    expect(body.data).toEqual({
      waiting: false,
      ...viewForOtherClients({
        primitive: 'model',
        usage_details: { prompt: 12, completion: 34 },
        tokens_prompt: 12,
        tokens_completion: 34,
        tokens_cached: 7,
        tokens_reasoning: null,
        finish_reason: 'stop',
      }),
      id: 'gen-1',
      object: 'generation',
      state: 'settled',
      outcome: 'complete',
      account,
      api_key: 'key-hash',
      request_id: 'req-1',
      primitive: 'model',
      model: 'author/model',
      service: 'author/model',
      tool: null,
      continues: null,
      provider: 'provider',
      provider_name: 'The Provider',
      streamed: true,
      usage: 0.0003,
      usage_details: { prompt: 12, completion: 34 },
      tokens_prompt: 12,
      tokens_completion: 34,
      tokens_cached: 7,
      tokens_cache_written: null,
      tokens_reasoning: null,
      is_byok: false,
      is_batch: false,
      service_tier: null,
      session_id: null,
      tags: {},
      total_cost: 0.0003,
      cost_micro_usdc: 300,
      fee_micro_usdc: 30,
      shortfall_micro_usdc: 0,
      price: world.price,
      entries: [
        { type: 'lock', amount_micro_usdc: 1_000, amount_usd: '0.001', at: '2026-03-04T05:06:07.089Z' },
        { type: 'settle', amount_micro_usdc: 300, amount_usd: '0.0003', at: '2026-03-04T05:06:08.589Z' },
        { type: 'refund', amount_micro_usdc: 700, amount_usd: '0.0007', at: '2026-03-04T05:06:08.589Z' },
      ],
      latency: 12,
      generation_time: 345,
      finish_reason: 'stop',
      estimated: false,
      failed: false,
      cancelled: false,
      error: null,
      error_code: null,
      failed_attempts: [],
      status: 200,
      flags: ['slow'],
      claims: [{ meter: 'completion', claimed: 90, most: 40 }],
      receipt: 'receipt-of-gen-1',
      parent: null,
      cost_lines: [{ meter: 'prompt', units: 12, usd_per_unit: '0.000001', amount_usd: '0.000012' }],
      refund: null,
      run_cost: 0.0003,
      children: [],
      created_at: '2026-03-04T05:06:07.089Z',
      resolved_at: '2026-03-04T05:06:08.589Z',
    });
  });

  it('shows every state of the money', async () => {
    const world = await openWorld();
    const { key, account } = await world.tenant('alice');
    const show = async (id: string) => (await world.call<Generation>(key, 'GET', `/api/v1/generation?id=${id}`)).body;
    for (const id of ['held', 'released', 'expired', 'drawn']) await lock(world, id, account);
    await world.ledger.release({ id: 'released', detail: '{"error":"the provider failed"}' });
    await world.ledger.settle({
      id: 'drawn',
      price: world.price,
      provider: 'p',
      charge: 1_200n,
      draw: true,
      feeBps: 0,
      usage: '{}',
      detail: '{}',
    });

    const held = await show('held');
    expect([held.data['state'], held.data['total_cost'], held.data['resolved_at'], held.data['receipt']]).toEqual([
      'held',
      0,
      null,
      null,
    ]);
    expect(lines(held)).toEqual([['lock', 1_000]]);
    const released = await show('released');
    expect([released.data['state'], released.data['error']]).toEqual(['released', 'the provider failed']);
    expect(lines(released)).toEqual([
      ['lock', 1_000],
      ['refund', 1_000],
    ]);
    expect(lines(await show('drawn'))).toEqual([
      ['lock', 1_000],
      ['draw', 200],
      ['settle', 1_200],
    ]);

    await world.ledger.expire(world.clock.now + 2_000);
    const expired = await show('expired');
    expect(expired.data['state']).toBe('expired');
    expect(lines(expired)).toEqual([
      ['lock', 1_000],
      ['refund', 1_000],
    ]);
  });

  it.each(['', '{}', 'null', '[1]', 'no json', '{"key":7,"stream":"yes","flags":3,"claims":3}'])(
    'can be shown though its details are %j',
    async (detail) => {
      const world = await openWorld();
      const { key, account } = await world.tenant('alice');
      await lock(world, 'gen-1', account, detail);
      await world.ledger.settle({
        id: 'gen-1',
        price: world.price,
        provider: 'p',
        charge: 1n,
        draw: false,
        feeBps: 0,
        usage: detail,
        detail,
      });
      const { status, body } = await world.call<Generation>(key, 'GET', '/api/v1/generation?id=gen-1');
      expect(status).toBe(200);
      expect(body.data).toMatchObject({
        id: 'gen-1',
        model: null,
        streamed: null,
        flags: [],
        claims: [],
        usage_details: {},
      });
    },
  );

  it('is as unknown to others as one that does not exist', async () => {
    const world = await openWorld();
    const [alice, bob] = [await world.tenant('alice'), await world.tenant('bob')];
    await lock(world, 'gen-1', alice.account);
    expect((await world.call(alice.key, 'GET', '/api/v1/generation?id=gen-1')).status).toBe(200);
    const foreign = await world.call<ErrorBody>(bob.key, 'GET', '/api/v1/generation?id=gen-1');
    const unknown = await world.call<ErrorBody>(bob.key, 'GET', '/api/v1/generation?id=gen-2');
    expect(foreign.status).toBe(404);
    expect(foreign.body).toEqual(unknown.body);
    expect((await world.call(bob.key, 'GET', '/api/v1/generation')).status).toBe(400);
    expect((await world.call(bob.key, 'GET', `/api/v1/generation?id=${'x'.repeat(200)}`)).status).toBe(400);
  });
});
