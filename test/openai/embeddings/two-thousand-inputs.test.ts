import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { modelBlock } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';

// The largest request for embeddings that OpenAI takes, by its SDK, with numbers instead of base64.

const INPUTS = 2_048;
const NUMBERS = 3_072;
const TOKENS = 8_192;
const VECTOR = `[${Array.from({ length: NUMBERS }, (_, at) => ((at % 997) / 997).toFixed(16)).join(',')}]`;

/** Answers with all vectors, or breaks off after some of them. */
async function startVendor(until: number) {
  let asked = 0;
  function* parts() {
    yield '{"object":"list","data":[';
    for (let at = 0; at < until; at++)
      yield `${at === 0 ? '' : ','}{"object":"embedding","index":${at},"embedding":${VECTOR}}`;
    if (until < INPUTS) throw new Error('it breaks off');
    yield `],"model":"m","usage":{"prompt_tokens":${TOKENS},"total_tokens":${TOKENS}}}`;
  }
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      asked++;
      response.writeHead(200, { 'content-type': 'application/json' });
      pipeline(Readable.from(parts()), response).catch(() => {});
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked: () => asked };
}

async function start(until: number) {
  const vendor = await startVendor(until);
  const { spine } = await startTunnelSpine(
    modelBlock({ name: 'vectors', provider: 'own', url: vendor.url, lines: 'output_modalities = ["embeddings"]' }),
  );
  const client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
  const input = Array.from({ length: INPUTS }, (_, at) => `a text of some words, number ${at}`);
  const create = () => client.embeddings.create({ model: 'vectors', input, encoding_format: 'float' });
  return { vendor, spine, create };
}

test('pass, and are charged once', async () => {
  const { vendor, spine, create } = await start(INPUTS);
  const before = await spine.balance();
  const { data, usage } = await create();
  expect(data).toHaveLength(INPUTS);
  expect(data.at(-1)!.embedding).toHaveLength(NUMBERS);
  expect(usage).toMatchObject({ prompt_tokens: TOKENS, cost: TOKENS / 1e6 });
  expect(before.available - (await spine.balance()).available).toBe(BigInt(TOKENS));
  expect(vendor.asked()).toBe(1);
  expect(await spine.faults()).toEqual([]);
}, 120_000);

test('that break off midway by the fault of their provider are free, and do not look whole', async () => {
  const { vendor, spine, create } = await start(INPUTS / 2);
  const before = await spine.balance();
  await expect(create()).rejects.toThrow();
  expect(await spine.faults()).toEqual([]);
  expect((await spine.balance()).available).toBe(before.available);
  expect(vendor.asked()).toBe(1);
}, 120_000);
