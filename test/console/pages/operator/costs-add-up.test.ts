import { expect, onTestFinished, test } from 'vitest';
import { taskResult } from '../../../a2a/calls/support/raw-served.ts';
import { createTalk } from '../../../a2a/contract/client-calls.ts';
import { callTool, toolToml } from '../../../mcp/calls/modern-post.ts';
import { makePlace } from '../../../program/cli/tollgate.ts';
import { agentBlock, startCardedAgent } from '../../../support/a2a-agent/index.ts';
import { pauses } from '../../../support/pauses.ts';
import { imageBlock, png, startImageProvider } from '../../../media/support/image-provider.ts';
import { tinyMp4 } from '../../../media/support/tiny-mp4.ts';
import { startVideoProvider, videoBlock } from '../../../media/support/video-provider.ts';
import { startRawMcp } from '../../../support/raw-mcp.ts';
import { ask, modelBlock } from '../../../support/spine.ts';
import { askTunnel, startTunnelSpine } from '../../../support/tunnel-spine.ts';

// What was charged is the earnings of providers, the charges of calls whose cost is unknown, the cost and the margin.
// A margin of nothing is no unknown margin. Services of each kind have a `cost`.

interface Sums {
  readonly service: string;
  readonly requests: number;
  readonly charged_micro_usdc: number;
  readonly fee_micro_usdc: number;
  readonly providers_micro_usdc: number;
  readonly unknown_cost_requests: number;
  readonly unknown_cost_micro_usdc: number;
  readonly cost_micro_usd: number;
  readonly margin_micro_usd: number;
}

const PICTURE = [{ b64: png(64, 64).toString('base64') }];
/** Requests for images and films, and the micro-USD that their vendors bill. */
const IMAGES = [
  [{ resolution: '1K' }, 10_000],
  [{ resolution: '1K', quality: 'high' }, 10_000],
  [{ resolution: '2K', quality: 'low', n: 2 }, 140_000],
  [{ resolution: '2K', quality: 'high' }, 90_000],
  [{ images: PICTURE, resolution: '1K' }, 23_000],
  [{ images: PICTURE, resolution: '2K', quality: 'high' }, 83_000],
] as const;
const FILMS = [
  [{ resolution: '720p' }, 90_000],
  [{ resolution: '720p', generate_audio: true }, 130_000],
  // Its own cost is not known: as the dearest.
  [{ resolution: '1080p' }, 130_000],
] as const;
const CALLS = 7 + IMAGES.length + FILMS.length;

/** The block with these lines before its first table. */
const withLines = (block: string, lines: string): string => block.replace(/\n(\[\w+\.pricing\])/, `\n${lines}\n$1`);

test('the lines of the overview add up, for services of each kind and with providers', async () => {
  const server = await startRawMcp(() => JSON.stringify({ resultType: 'complete', content: [] }));
  onTestFinished(() => server.close());
  const agent = await startCardedAgent((exchange) => exchange.result(taskResult('task', 'COMPLETED')));
  onTestFinished(() => agent.close());
  const costed = withLines(
    toolToml({ name: 'own/tools', url: server.url, pricing: 'per_call = 0.001' }),
    'cost = { per_call = 0.0004, tools = { dear = 0.003 } }',
  );
  const uncosted = toolToml({ name: 'own/uncosted', url: server.url, provider: 'Un', pricing: 'per_call = 0.002' });
  const even = withLines(
    toolToml({ name: 'own/even', url: server.url, provider: 'Even', pricing: 'per_call = 0.001' }),
    'cost = { per_call = 0.001 }',
  );
  const agents = withLines(
    agentBlock({ name: 'own/agent', endpoint: agent.url, pricing: 'per_task = 0.01' }),
    'cost = { per_task = 0.007 }',
  );
  const painter = await startImageProvider();
  onTestFinished(() => painter.close());
  const filmer = await startVideoProvider();
  onTestFinished(() => filmer.close());
  // Sold at one price, and bought at others.
  const images = imageBlock({
    url: painter.url,
    name: 'own/paint',
    lines:
      'resolutions = ["1K", "2K"]\nsupported_params = ["quality"]\ncost = { generation = 0.01, resolutions = { 2K = 0.07 }, edit = 0.02, input_image = 0.003, variants = { "2K/high" = 0.09, "edit/2K/high" = 0.08 } }',
    params: 'edits = true',
  });
  const films = videoBlock({
    url: filmer.url,
    name: 'own/film',
    lines:
      'durations = ["4s"]\nsupported_params = ["generate_audio"]\ncost = { per_second = { "720p" = 0.02 }, base = 0.01, audio_multiplier = 1.5 }',
    pricing: 'per_second = { "720p" = 0.1, "1080p" = 0.1 }',
  });
  const free = modelBlock({ name: 'own/free', provider: 'Free', url: '{provider}', prompt: 0, completion: 0 });
  const { spine, supply } = await startTunnelSpine(
    `[billing]\nfee_bps = 1000\n[analytics]\nevery_ms = 50\n[media]\nfree_bytes_min = 0\n${images}${films}${costed}${uncosted}${even}${agents}${free}`,
  );
  await supply('Seller', { prompt: 1000, completion: 1000 });

  await callTool(spine, 'own/tools', 'cheap');
  await callTool(spine, 'own/tools', 'dear');
  await callTool(spine, 'own/uncosted', 'any');
  await callTool(spine, 'own/even', 'any');
  const headers = { authorization: `Bearer ${spine.key}` };
  await createTalk({ url: `${spine.origin}/a2a/own/agent`, headers }, '1.0', 'JSONRPC').sent('do it');
  await (await spine.post('/chat/completions', ask('hello', { model: 'own/free' }))).text();
  await (await spine.post('/chat/completions', askTunnel('hello'))).text();
  const image = { model: 'own/paint', prompt: 'A tollgate' };
  for (const more of IMAGES.map(([body]) => body)) {
    const isEdit = 'images' in more;
    const answer = await spine.post(isEdit ? '/image/edit' : '/image/generate', { ...image, ...more });
    expect(answer.status, await answer.text()).toBe(200);
  }
  for (const more of FILMS.map(([body]) => body)) {
    filmer.begin(() => ({ file: tinyMp4(4) }));
    const body = { model: 'own/film', prompt: 'A tollgate', duration: '4s', ...more };
    const queued = await spine.post('/video/queue', body);
    const { id } = (await queued.json()) as { readonly id: string };
    expect(queued.status).toBe(200);
    await (await spine.post('/video/retrieve', { task_id: id, wait_for_final: true })).arrayBuffer();
  }
  await spine.quiet();

  const overview = async () => {
    const answer = await fetch(`${spine.origin}/admin/v1/overview`, {
      headers: { authorization: `Bearer ${spine.adminKey}` },
    });
    return ((await answer.json()) as { readonly data: { readonly totals: Sums; readonly services: readonly Sums[] } })
      .data;
  };
  let { totals, services } = await overview();
  for (const pause of pauses()) {
    if (totals.requests === CALLS) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
    ({ totals, services } = await overview());
  }
  for (const sums of [totals, ...services])
    expect(
      sums.providers_micro_usdc + sums.unknown_cost_micro_usdc + sums.cost_micro_usd + sums.margin_micro_usd,
      sums.service,
    ).toBe(sums.charged_micro_usdc);
  const of = (name: string) => services.find(({ service }) => service === name)!;
  expect(of('own/tools')).toMatchObject({ cost_micro_usd: 3_400, unknown_cost_requests: 0, margin_micro_usd: -1_400 });
  expect(of('own/even')).toMatchObject({ cost_micro_usd: 1_000, unknown_cost_requests: 0, margin_micro_usd: 0 });
  expect(of('own/agent')).toMatchObject({ cost_micro_usd: 7_000, unknown_cost_requests: 0, margin_micro_usd: 3_000 });
  const sum = (cases: readonly (readonly [object, number])[]) => cases.reduce((all, [, cost]) => all + cost, 0);
  expect(of('own/paint')).toMatchObject({ cost_micro_usd: sum(IMAGES), unknown_cost_requests: 0 });
  expect(of('own/film')).toMatchObject({ cost_micro_usd: sum(FILMS), unknown_cost_requests: 0 });
  const [unpriced, gratis, sold] = [of('own/uncosted'), of('own/free'), of('tunnel/model')];
  expect(unpriced.unknown_cost_requests).toBe(1);
  expect(unpriced.unknown_cost_micro_usdc).toBe(unpriced.charged_micro_usdc - unpriced.fee_micro_usdc);
  expect(gratis).toMatchObject({ unknown_cost_requests: 1, unknown_cost_micro_usdc: 0, margin_micro_usd: 0 });
  expect(sold.providers_micro_usdc).toBe(sold.charged_micro_usdc - sold.fee_micro_usdc);
  expect(sold.unknown_cost_requests).toBe(0);
  expect(totals.unknown_cost_requests).toBe(2);

  const place = await makePlace();
  onTestFinished(() => place.clear());
  const run = async (...args: readonly string[]) =>
    (await place.run([...args, '--url', spine.origin], { TOLLGATE_ADMIN_KEY: spine.adminKey })).stdout;
  const shown = await run('status');
  const usd = (micro: number) => `${micro / 1e6}`;
  expect(shown).toMatch(
    new RegExp(
      `^24h +${CALLS} +0 +1 +${usd(totals.charged_micro_usdc)} +${usd(totals.providers_micro_usdc)} +${usd(totals.unknown_cost_micro_usdc)} of 2 calls +${usd(totals.cost_micro_usd)} +${usd(totals.margin_micro_usd)}$`,
      'm',
    ),
  );
  const listed = await run('services');
  expect(listed).toMatch(/^own\/free .* unknown +unknown /m);
  expect(listed).toMatch(/^own\/even .* 0\.001 +0\.001 +0 /m);
});
