import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../support/spine.ts';
import { imageBlock, type ImageProvider, png, startImageProvider } from './support/image-provider.ts';

// `webhooks.allow_private` decides whether the gateway fetches pictures of this machine, and the mode only its default.

let fetched = 0;
let base: string;
let provider: ImageProvider;
const web = createServer((_request, response) => {
  fetched += 1;
  response.end(png(64, 64));
});
beforeAll(async () => {
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  base = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  provider = await startImageProvider();
});
afterAll(async () => {
  await provider.close();
  web.close();
});

test.each([
  ['production', null, 400],
  ['production', true, 200],
  ['development', null, 200],
  ['development', false, 400],
] as const)('in %s with allow_private %s the answer is %i', async (mode, allowed, status) => {
  const webhooks = allowed === null ? '' : `[webhooks]\nallow_private = ${allowed}\n`;
  const spine = await startSpine({
    mode,
    toml: UNHURRIED + webhooks + imageBlock({ url: provider.url, params: 'edits = true' }),
  });
  onTestFinished(() => spine.stop());
  const before = fetched;
  const body = { model: 'test/paint', prompt: 'Lower the bar', images: [{ url: `${base}/a.png` }] };
  const response = await spine.post('/image/edit', body);
  expect([response.status, await response.text()]).toEqual([status, expect.any(String)]);
  expect(fetched - before).toBe(status === 200 ? 1 : 0);
  expect(await spine.faults()).toEqual([]);
});
