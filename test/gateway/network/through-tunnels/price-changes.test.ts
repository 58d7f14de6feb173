import { expect, onTestFinished, test } from 'vitest';
import { earningsOf } from '#billing';
import { dialPeer, documentOf } from '../../../support/tunnel-peer.ts';
import { askTunnel, readStream, startTunnelSpine, TUNNEL_MODEL, until } from '../../../support/tunnel-spine.ts';
import { solanaWallet } from '../../../support/wallets.ts';

// A call costs what its provider asked when it began. The audit computes both prices again, at the end of each test.

test('a proxy started again with other prices: calls that run keep the old ones, new calls have the new ones', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const before = await world.supply('Pricey', { prompt: 1, completion: 2 });
  const changed = Promise.withResolvers<void>();
  before.upstream.instruct(
    { stallAt: 1_000, stallUntil: changed.promise },
    { stallAt: 0, stallUntil: changed.promise },
  );
  const stream = await readStream(spine.post('/chat/completions', askTunnel('!tokens:20', { stream: true })));
  const whole = spine.post('/chat/completions', askTunnel('!tokens:7'));
  await stream.tokens(2);
  await until(() => before.upstream.log.length === 2);

  const stopped = before.proxy.close();
  const after = await world.supply('Pricey', { wallet: before.proxy.wallet, prompt: 30, completion: 40 });
  const dear = await spine.post('/chat/completions', askTunnel('!tokens:5', { max_cost: 1 }));
  await dear.text();
  expect(await spine.generation(dear.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 30 * after.upstream.log[0]!.promptTokens + 40 * 5,
  });
  expect((await world.endpoints())![0]!.pricing).toMatchObject({ prompt: '0.00003', completion: '0.00004' });
  expect(stream.text()).not.toContain('[DONE]');

  changed.resolve();
  expect(await stream.end).toContain('[DONE]');
  expect(await spine.generation(stream.response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: before.upstream.log[0]!.promptTokens + 2 * 20,
  });
  const cheap = await whole;
  await cheap.text();
  expect(await spine.generation(cheap.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: before.upstream.log[1]!.promptTokens + 2 * 7,
  });
  expect(await stopped).toBe(0);
  expect(await world.ownPage('/services', before.proxy.wallet)).toMatchObject({ connected: true, revision: 2 });
  const paid = 100_000_000n - (await spine.balance()).available;
  expect((await spine.app.ledger.balance(earningsOf(before.proxy.id)))?.available).toBe(paid);
});

test('other prices registered on the same connection: the same', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const answers: (() => void)[] = [];
  const reply = JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'so' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 10, total_tokens: 13 },
  });
  const peer = await dialPeer({
    url: spine.origin,
    wallet: solanaWallet(),
    serve(stream) {
      stream.resume();
      answers.push(() => {
        stream.respond({ ':status': 200, 'content-type': 'application/json' });
        stream.end(reply);
      });
    },
  });
  onTestFinished(() => peer.kill());
  const prices = ['1', '5', '0.25', '9000'];
  const calls: Promise<Response>[] = [];
  for (const [index, price] of prices.entries()) {
    expect(await peer.register(documentOf(TUNNEL_MODEL, 'Pricey', price))).toMatchObject({
      type: 'registered',
      revision: index + 1,
    });
    calls.push(spine.post('/chat/completions', askTunnel('hello hello', { max_tokens: 20, max_cost: 10 })));
    await until(() => answers.length === index + 1);
  }
  for (const answer of answers) answer();
  for (const [index, price] of prices.entries()) {
    const response = await calls[index]!;
    expect(response.status).toBe(200);
    await response.text();
    const { cost_micro_usdc: cost } = await spine.generation(response.headers.get('x-generation-id'));
    expect(cost).toBe(Math.ceil(3 * Number(price) + 10));
  }
});
