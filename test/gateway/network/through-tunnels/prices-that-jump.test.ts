import { expect, onTestFinished, test } from 'vitest';
import { agentBlock } from '../../../support/a2a-agent/agent-spine.ts';
import { startAgent } from '../../../support/a2a-agent/start-agent.ts';
import { imageBlock, startImageProvider } from '../../../media/support/image-provider.ts';
import { startRawMcp } from '../../../support/raw-mcp.ts';
import { askTunnel, startTunnelSpine, until, type TunnelSpine } from '../../../support/tunnel-spine.ts';
import { solanaWallet } from '../../../support/wallets.ts';
import { callTool } from '../../../mcp/calls/modern-post.ts';

// A provider that dialled in raises its price ×1,000 between a client's look at the list and its call.

const RAISED = /raised the price of/;

async function chat({ spine }: TunnelSpine, model: string, more: object = {}, headers: Record<string, string> = {}) {
  const response = await spine.post('/chat/completions', askTunnel('!tokens:5', { model, ...more }), headers);
  const body = (await response.json()) as { error?: { message: string; param?: string } };
  return { status: response.status, message: body.error?.message ?? '', provider: response.headers.get('x-provider') };
}

test('a model: refused without a word on cost, called with one, and listed with both prices', async () => {
  let skew = 0;
  const world = await startTunnelSpine('', { now: () => Date.now() + skew });
  const first = await world.supply('Jumpy', { prompt: 1, completion: 2 });
  const { pinned } = first;
  expect((await chat(world, pinned)).status).toBe(200);
  const wallet = first.proxy.wallet;
  const second = await world.supply('Jumpy', { wallet, prompt: 1_000, completion: 2_000 });
  expect(
    await second.proxy.logged('its price has more than doubled: until then calls need a max_cost, and others get 422'),
  ).toMatchObject({
    service: 'tunnel/model',
    until: expect.any(String),
  });

  const { available } = await world.spine.balance();
  for (const name of [pinned, 'tunnel/model']) {
    const refused = await chat(world, name);
    expect(refused).toMatchObject({ status: 422 });
    expect(refused.message).toMatch(RAISED);
    expect(refused.message).toContain(
      'prompt from 1 to 1000 USD per 1M tokens, completion from 2 to 2000 USD per 1M tokens',
    );
    expect(refused.message).toContain('max_cost');
  }
  expect(second.upstream.log).toHaveLength(0);
  expect((await world.spine.balance()).available).toBe(available);
  expect((await chat(world, pinned, { provider: { max_price: { prompt: 2_000 } } })).message).toMatch(RAISED);

  const [listed] = (await world.endpoints())!;
  expect(listed).toMatchObject({
    pricing: { prompt: '0.001' },
    price_raised: { before: { prompt: 1, completion: 2 } },
  });
  expect(await world.ownPage('/services', wallet)).toMatchObject({
    services: [{ price_raised: { before: { prompt: 1, completion: 2 } } }],
  });

  expect((await chat(world, pinned, { max_cost: 0.0001 })).message).toContain('max_cost is 0.0001 USD');
  expect((await chat(world, pinned, { max_cost: 5 })).status).toBe(200);
  expect((await chat(world, pinned, {}, { 'x-max-cost': '5' })).status).toBe(200);
  expect((await chat(world, pinned, { provider: { max_price: { prompt: 2_000, completion: 2_000 } } })).status).toBe(
    200,
  );

  skew = 10 * 60_000;
  expect((await chat(world, pinned)).status).toBe(200);
});

test('a call by the name of the model goes to whoever did not raise', async () => {
  const world = await startTunnelSpine();
  const jumpy = await world.supply('Jumpy', { prompt: 0.001, completion: 0.001 });
  await world.supply('Steady', { prompt: 1, completion: 1 });
  await world.supply('Jumpy', { wallet: jumpy.proxy.wallet, prompt: 0.9, completion: 0.9 });
  for (let call = 0; call < 10; call++)
    expect(await chat(world, 'tunnel/model')).toMatchObject({ status: 200, provider: 'Steady' });
});

test('a raise of no more than twice the price is called at once, and none where no notice is asked for', async () => {
  const world = await startTunnelSpine();
  const first = await world.supply('Fair', { prompt: 1, completion: 2 });
  await world.supply('Fair', { wallet: first.proxy.wallet, prompt: 2, completion: 4 });
  expect((await chat(world, first.pinned)).status).toBe(200);
  const lax = await startTunnelSpine('[tunnel]\nprice_notice_ms = 0');
  const low = await lax.supply('Free', { prompt: 1, completion: 2 });
  await lax.supply('Free', { wallet: low.proxy.wallet, prompt: 500, completion: 500 });
  expect((await chat(lax, low.pinned)).status).toBe(200);
});

test('a tool: the tool that was raised alone is refused', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const server = await startRawMcp(
    () => '{"resultType":"complete","content":[{"type":"text","text":"done"}]}',
    ['cheap', 'dear'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
  );
  onTestFinished(() => server.close());
  const wallet = solanaWallet();
  const offer = (dear: string) =>
    world.dialIn({
      wallet,
      services: `[[tools]]\nname = "jumpy/tools"\nprovider_name = "Jumpy"\nendpoint = "${server.url}"\n[tools.pricing]\nper_call = 0.001\ntools = { dear = ${dear} }\n`,
    });
  await offer('0.002');
  expect((await callTool(spine, 'jumpy/tools', 'dear')).status).toBe(200);
  await offer('2');
  const text = async (tool: string, options = {}) =>
    JSON.stringify(await callTool(spine, 'jumpy/tools', tool, {}, options));
  expect(await text('dear')).toMatch(RAISED);
  expect(await text('dear')).toContain('call from 0.002 to 2 USD');
  expect(await text('dear', { headers: { 'x-max-cost': '1' } })).toContain('x-max-cost is 1 USD');
  expect(await text('cheap')).toContain('done');
  const { available } = await spine.balance();
  expect(await text('dear', { headers: { 'x-max-cost': '2' } })).toContain('done');
  expect(await text('dear', { meta: { 'tollgate/max_cost': '2.5' } })).toContain('done');
  expect(available - (await spine.balance()).available).toBe(4_000_000n);
  expect(await text('dear', { headers: { 'x-max-cost': 'much' } })).toContain('x-max-cost');
});

test('an image: its tier is compared with what the same image cost before', async () => {
  const world = await startTunnelSpine('[tunnel]\nshared_names = ["test/*"]');
  const { spine } = world;
  const provider = await startImageProvider();
  onTestFinished(() => provider.close());
  const wallet = solanaWallet();
  const lines = 'resolutions = ["1K", "4K"]';
  const offer = (pricing: string) =>
    world.dialIn({ wallet, services: imageBlock({ url: provider.url, generation: 0.4, lines, pricing }) });
  const paint = async (more: object) => {
    const response = await spine.post('/image/generate', { model: 'test/paint', prompt: 'A tollgate', ...more });
    return `${response.status} ${await response.text()}`;
  };
  const small = { resolution: '1K' };
  await offer('resolutions = { "1K" = 0.004 }');
  expect(await paint(small)).toMatch(/^200/);
  // The tier has no price of its own any more, so it costs as much as any image.
  await offer('');
  const dropped = await paint(small);
  expect(dropped).toMatch(RAISED);
  expect(dropped).toContain('image from 0.004 to 0.4 USD');
  expect(await paint({ resolution: '4K' })).toMatch(/^200/);
  expect(await paint({ ...small, max_cost: 0.4 })).toMatch(/^200/);
  // A quality gets its first price. Before, it would have cost as much as its tier.
  await offer('resolutions = { "1K" = 0.004 }');
  await offer('resolutions = { "1K" = 0.004 }\nvariants = { "1K/high" = 0.4 }');
  const fine = await paint({ ...small, quality: 'high' });
  expect(fine).toMatch(RAISED);
  expect(fine).toContain('image from 0.004 to 0.4 USD');
  expect(await paint(small)).toMatch(/^200/);
});

test('an agent: what it may spend counts as its price', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const agent = await startAgent();
  onTestFinished(() => agent.close());
  const wallet = solanaWallet();
  const offer = (pricing: string) =>
    world.dialIn({
      wallet,
      services: agentBlock({ name: 'jumpy/agent', provider: 'Jumpy', endpoint: agent.url, pricing }),
    });
  let sent = 0;
  const send = async (headers: Record<string, string> = {}) => {
    sent += 1;
    const message = { kind: 'message', messageId: `m-${sent}`, role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
    const response = await fetch(`${spine.origin}/a2a/jumpy/agent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
    });
    return response.text();
  };
  await offer('per_call = 0.001\nnested_max = 0.01');
  expect(await send()).toContain('"result"');
  await offer('per_call = 0.001\nnested_max = 10');
  const refused = await send();
  expect(refused).toMatch(RAISED);
  expect(refused).toContain('nested_max from 0.01 to 10 USD');
  await offer('per_call = 1\nnested_max = 10');
  expect(await send()).toContain('call from 0.001 to 1 USD');
  expect(await send({ 'x-max-cost': '2' })).toContain('"result"');
  await until(async () => (await spine.balance()).locked === 0n);
});
