import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { modelBlock, type Spine } from '../support/spine.ts';
import { startTunnelSpine } from '../support/tunnel-spine.ts';

// An account whose share of the memory for replies is used up does not get work of providers for nothing.

const KIB = 1024;
/** Micro-USD: so many tokens of a prompt. */
const REPORTED = 20;

/** A vendor of rerank: `hold` begins a large reply and stays, everything else is answered with one of 150 KiB. */
async function startVendor() {
  const holding = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    void (async () => {
      const body = await text(request);
      response.writeHead(200, { 'content-type': 'application/json' });
      if (body.includes('hold')) {
        response.write(`{"padding":"${'x'.repeat(200 * KIB)}`, () => holding.resolve());
        return;
      }
      const chat = body.includes('chat') ? '"choices":[{"message":{"content":"hello"}}],' : '"results":[],';
      const usage = body.includes('reports') ? `,"usage":{"total_tokens":${REPORTED}}` : '';
      response.end(`{${chat}"padding":"${'x'.repeat(150 * KIB)}"${usage}}`);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, holding: holding.promise };
}

async function rerank({ post, generation }: Spine, model: string, query: string) {
  const answer = await post('/rerank', { model, query, documents: ['one'] });
  const said = await answer.text();
  const id = answer.headers.get('x-generation-id');
  return { status: answer.status, said, cost: (await generation(id)).cost_micro_usdc };
}

test('a reply for which there is no memory costs what its provider took', async () => {
  const vendor = await startVendor();
  const lines = 'output_modalities = ["rerank"]';
  const { spine, dialIn } = await startTunnelSpine(
    `[billing]\ndrain_ms = 500\n[upstream]\ncooldown_ms = 0\nreply_bytes_max = ${256 * KIB}\nreplies_bytes_max = ${1024 * KIB}\n` +
      ['own', 'other'].map((name) => modelBlock({ name, provider: name, url: vendor.url, lines })).join('') +
      modelBlock({ name: 'own/chat', provider: 'other', url: vendor.url }),
  );
  await dialIn({ services: modelBlock({ name: 'far', provider: 'far', url: vendor.url, lines }) });
  const leaving = new AbortController();
  const held = spine.post('/rerank', { model: 'own', query: 'hold', documents: ['one'] }, {}, leaving.signal);
  held.catch(() => {});
  await vendor.holding;
  const [told, untold, far, chat] = await Promise.all([
    rerank(spine, 'other', 'reports'),
    rerank(spine, 'other', 'quiet'),
    rerank(spine, 'far', 'reports'),
    spine.post('/chat/completions', {
      model: 'own/chat',
      max_tokens: 50,
      messages: [{ role: 'user', content: 'chat' }],
    }),
  ]);
  expect(told).toMatchObject({ status: 422, cost: REPORTED });
  expect(told.said).toContain('memory of this gateway for large replies is full');
  expect(untold.status).toBe(422);
  expect(untold.cost).toBeGreaterThan(0);
  expect(far).toMatchObject({ status: 503, cost: 0 });
  // What came of a chat is delivered and charged.
  const body = (await chat.json()) as { choices: [{ message: { content: string } }]; usage: { cost: number } };
  expect(body.choices[0].message.content).toBe('hello');
  expect(body.usage.cost).toBeGreaterThan(0);
  leaving.abort();
  expect(await spine.faults()).toEqual([]);
  const { data } = (await (await spine.get('/providers')).json()) as { data: { uptime: number | null }[] };
  expect(data.map(({ uptime }) => uptime).filter((one) => one !== null && one < 1)).toEqual([]);
});
