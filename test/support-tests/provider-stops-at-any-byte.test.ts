import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startProvider } from '../support/provider.ts';
import type { TestProvider } from '../support/provider.ts';
import { chatBody, postRaw } from './raw-client.ts';

let provider: TestProvider;
let url: string;
beforeAll(async () => {
  provider = await startProvider();
  url = `${provider.url}/chat/completions`;
});
afterAll(() => provider.stop());

it('cuts a stream after exactly so many bytes of body', async () => {
  const whole = await postRaw(url, chatBody(''));
  expect(whole.complete).toBe(true);
  // 37 is prime to the events' lengths, so that the cuts fall everywhere in them.
  for (let at = 0; at <= whole.body.length; at += 37) {
    const cut = await postRaw(url, chatBody(`!cut:${at}`));
    expect(cut).toMatchObject({ complete: false, error: null });
    // The ids differ in their last digits only.
    expect(cut.body.length).toBe(at);
    await provider.log.at(-1)?.ended;
    expect(provider.log.at(-1)).toMatchObject({ bytes: at, end: 'cut' });
  }
});

it('cuts an answer in one piece, and the head', async () => {
  expect((await postRaw(url, chatBody('!cut:120', { stream: false }))).body.length).toBe(120);
  for (const at of [0, 1, 17, 60]) expect((await postRaw(url, chatBody(`!cut-head:${at}`))).head.length).toBe(at);
});

it('counts only what was handed over whole', async () => {
  const before = await postRaw(url, chatBody('!tokens:2'));
  const usageAt = before.body.indexOf('"usage":{');
  expect(usageAt).toBeGreaterThan(0);
  await postRaw(url, chatBody(`!tokens:2 !cut:${usageAt + 5}`));
  await provider.log.at(-1)!.ended;
  expect(provider.log.at(-1)).toMatchObject({ completionTokens: 2, usages: [] });
  await postRaw(url, chatBody('!tokens:2 !cut:10'));
  await provider.log.at(-1)!.ended;
  expect(provider.log.at(-1)).toMatchObject({ completionTokens: 0, textBytes: 0 });
});

it('resets', async () => {
  expect(await postRaw(url, chatBody('!reset:50'))).toMatchObject({ complete: false, error: 'ECONNRESET' });
});

it('stalls until the client leaves, and says that it left', async () => {
  let socket: Socket | undefined;
  const reply = postRaw(url, chatBody('!stall:200'), (opened) => {
    socket = opened;
    let received = 0;
    opened.on('data', (part: Buffer) => {
      received += part.length;
      if (received > 200) opened.destroy();
    });
  });
  await reply;
  expect(socket?.destroyed).toBe(true);
  await provider.log.at(-1)?.ended;
  expect(provider.log.at(-1)).toMatchObject({ bytes: 200, end: 'client_closed' });
});

it('goes on after a stall with an end', async () => {
  expect((await postRaw(url, chatBody('!stall:200:50'))).complete).toBe(true);
});
