import { expect, test } from 'vitest';
import { imageBlock } from '../../media/support/image-provider.ts';
import { modelBlock } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';
import { ALL_KINDS } from './streamed-kinds.ts';
import { REPLY_BYTES_MAX, startVendor } from './vendor.ts';

/* A reply that cannot be delivered is charged once, and its repeat gets the same answer. */

const KINDS = ALL_KINDS.filter(({ padded, words, type }) => padded !== undefined && (!words || type.includes('json')));

test.each(KINDS)('the repeat of a charged $name costs nothing, and asks nobody', async (kind) => {
  const vendor = await startVendor();
  const { name, lines = '', params = '', pricing = '', images, noTokens } = kind;
  const block = images
    ? imageBlock({ url: vendor.url, name, provider: 'own', lines })
    : modelBlock({
        name,
        provider: 'own',
        url: vendor.url,
        lines,
        params,
        pricing,
        ...(noTokens ? { prompt: 0, completion: 0 } : {}),
      });
  const { spine } = await startTunnelSpine(
    `[upstream]\ncooldown_ms = 0\nreply_bytes_max = ${REPLY_BYTES_MAX}\nimages_reply_bytes_max = ${REPLY_BYTES_MAX}\n${block}`,
  );
  const ending = kind.words ? 'too_large_midway' : 'too_large';
  const { path, body } = kind.ask(name, `!k:${name} !e:${ending} !u:1 !n:once`);
  const isForm = body instanceof FormData;
  // The bytes of a form have a boundary, so a repeat has the same one.
  const sent = new Request('http://x', { method: 'POST', body: isForm ? body : JSON.stringify(body) });
  const bytes = await sent.arrayBuffer();
  const send = () =>
    fetch(spine.origin + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${spine.key}`,
        'idempotency-key': 'once',
        'content-type': isForm ? sent.headers.get('content-type')! : 'application/json',
      },
      body: bytes,
    });
  const before = await spine.balance();
  const first = await send();
  expect(first.status).toBe(kind.words ? 200 : 422);
  const text = await first.text();
  await spine.quiet();
  const paid = before.available - (await spine.balance()).available;
  expect(paid).toBeGreaterThan(0n);
  expect(Number(first.headers.get('x-cost-usd'))).toBe(Number(paid) / 1e6);
  const again = await send();
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect([again.status, await again.text()]).toEqual([first.status, text]);
  expect(before.available - (await spine.balance()).available).toBe(paid);
  expect(vendor.asked('once')).toBe(1);
  expect(await spine.faults()).toEqual([]);
});
