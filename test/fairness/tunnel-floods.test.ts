import { Agent } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { bystand, expectUnharmed, type Fare } from '../support/bystander.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { modelBlock } from '../support/spine.ts';
import { dialPeer, documentOf, type TunnelPeer } from '../support/tunnel-peer.ts';
import { DOMAIN, solanaWallet } from '../support/wallets.ts';
import { post } from './support/crowd.ts';

const FLOOD = 200_000;

let provider: TestProvider;
let gateway: Gateway;
let peer: TunnelPeer;
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  provider = await startProvider();
  gateway = await startGateway({
    toml: `[sign_in]\ndomains = ["${DOMAIN}"]\n${modelBlock({ name: 'market/small', provider: 'Small', url: provider.url })}`,
    env: { TEST_UPSTREAM_KEY: 'upstream-key' },
  });
});
afterAll(async () => {
  const audit = (await gateway?.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  agent.destroy();
  peer?.kill();
  await gateway?.stop();
  await provider?.stop();
  expect(audit.data.checks.filter(({ ok }) => !ok)).toEqual([]);
});

const askOf = (model: string) => ({ model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 });

let bystanders = 0;

/** Makes calls of one account, of its own because all tests together would reach the rate of one. */
async function bystander(): Promise<() => Promise<boolean>> {
  const { key } = await gateway.openAccount(`bystander-${(bystanders += 1)}`, 1);
  return async () =>
    (await post(agent, `${gateway.baseUrl}/api/v1/chat/completions`, key, askOf('market/small'))) === 200;
}

/** Sends bytes below the WebSocket: they are framed already. */
const send = (bytes: Buffer) =>
  (peer.socket as unknown as { readonly _socket: { write(bytes: Buffer): void } })._socket.write(bytes);

/** One account's calls while `flood` is sent; it is made before, so that sending costs this process little. */
async function beside(flood: Buffer): Promise<void> {
  const call = await bystander();
  peer = await dialPeer({ url: gateway.baseUrl, wallet: solanaWallet() });
  const before = await bystand({ call });
  send(flood);
  const during = await bystand({ call });
  expectUnharmed(before, during);
}

/** A proxy with a call that streams. Its reply has begun. */
async function streaming(): Promise<ServerHttp2Stream> {
  const begun = Promise.withResolvers<ServerHttp2Stream>();
  const serve = (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
    stream.write(
      'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}\n\n',
    );
    begun.resolve(stream);
  };
  peer = await dialPeer({ url: gateway.baseUrl, wallet: solanaWallet(), serve });
  const name = `peer/model-${(named += 1)}`;
  const registered = await peer.register(documentOf(name, `Peer ${named}`));
  expect(registered, JSON.stringify(registered)).toMatchObject({ type: 'registered' });
  const { key } = await gateway.openAccount(`caller-${named}`, 1);
  const { body } = await fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...askOf(name), stream: true }),
  });
  // Now the proxy's own session has sent the head of the reply.
  const reader = body!.getReader();
  await reader.read();
  const readOn = (): Promise<void> => reader.read().then(({ done }) => (done ? undefined : readOn()));
  readOn().catch(() => {});
  return begun.promise;
}
let named = 0;

/** The longest wait that a person hardly notices. */
const NOTICED_MS = 100;

/** No single call waits long, beside all calls together. */
function expectNoLongWait(before: Fare, during: Fare): void {
  expectUnharmed(before, during);
  process.stdout.write(`waits beside frames on a running call: ${JSON.stringify({ before, during })}\n`);
  expect(during.worstMs, JSON.stringify({ before, during })).toBeLessThanOrEqual(
    2 * Math.max(before.worstMs, atThisLoad(NOTICED_MS)),
  );
}

/** A frame with one byte of data, a line end, for a stream. */
function oneByteFor({ id }: ServerHttp2Stream): Buffer {
  const frame = Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 0, 0x0a]);
  frame.writeUInt32BE(id!, 5);
  return frame;
}

/** A masked WebSocket frame with a mask of zeros. */
function framed(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 6 : 8);
  head[0] = 0x80 | opcode;
  if (length < 126) head[1] = 0x80 | length;
  else {
    head[1] = 0x80 | 126;
    head.writeUInt16BE(length, 2);
  }
  return Buffer.concat([head, payload]);
}

/** Frames of HTTP/2 on the control stream, in WebSocket messages of some 60 KB. */
function http2Flood(frame: Buffer, frames = FLOOD): Buffer {
  const messages: Buffer[] = [];
  const perMessage = Math.floor(60_000 / frame.length);
  for (let sent = 0; sent < frames; sent += perMessage)
    messages.push(framed(2, Buffer.concat(Array.from({ length: perMessage }, () => frame))));
  return Buffer.concat(messages);
}

/** A frame with so many settings, each of the window of streams. */
function settingsOf(count: number): Buffer {
  const settings = Array.from({ length: count }, () => Buffer.from([0, 4, 0, 0, 255, 255]));
  const head = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  head.writeUIntBE(6 * count, 0, 3);
  return Buffer.concat([head, ...settings]);
}

/** The head of a reply on the control stream that goes on in so many empty frames, and does not end. */
function continued(frames: number): Buffer {
  const more = Array.from({ length: frames }, () => Buffer.from([0, 0, 0, 9, 0, 0, 0, 0, 1]));
  return Buffer.concat([Buffer.from([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88]), ...more]);
}

describe('a proxy that floods a running call with frames of one byte', () => {
  it('is sent away with the reason, and no call of others waits long', async () => {
    const call = await bystander();
    const before = await bystand({ call });
    const flood = http2Flood(oneByteFor(await streaming()));
    send(flood);
    expectNoLongWait(before, await bystand({ call }));
    await peer.closed;
    expect(gateway.logs()).toContain('frames of a few bytes');
  });

  it('and stays below what no honest proxy sends: no call of others waits long', async () => {
    const call = await bystander();
    const before = await bystand({ call });
    const frame = oneByteFor(await streaming());
    // 19,000 at once and then 900 in a second are below the bound.
    const some = (count: number) => framed(2, Buffer.concat(Array.from({ length: count }, () => frame)));
    for (let sent = 0; sent < 19_000; sent += 1_000) send(some(1_000));
    const more = setInterval(() => send(some(90)), 100);
    try {
      expectNoLongWait(before, await bystand({ call }));
    } finally {
      clearInterval(more);
    }
    expect(peer.socket.readyState).toBe(peer.socket.OPEN);
    peer.kill();
  });
});

describe('a proxy that floods its tunnel holds nobody up', () => {
  it('with frames of one byte of data', () => beside(http2Flood(Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 1, 0x20]))));
  it('with HTTP/2 pings', () => beside(http2Flood(Buffer.from([0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))));
  it('with settings', () => beside(http2Flood(Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 255, 255]))));
  it('with more room for data', () => beside(http2Flood(Buffer.from([0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1]))));
  it.each([
    ['empty data', FLOOD, Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 1])],
    ['resets', FLOOD, Buffer.from([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8])],
    ['settings of 16 KiB', 1_000, settingsOf(2_730)],
    ['continued headers', 1_000, continued(50)],
  ])('with %s, for which it is sent away', async (_name, frames, frame) => {
    await beside(http2Flood(frame, frames));
    await peer.closed;
  });
  it('with messages of one byte', () =>
    beside(Buffer.concat(Array.from({ length: FLOOD }, () => framed(2, Buffer.from([0]))))));
  it('with WebSocket pings, for which it is sent away with the reason', async () => {
    await beside(Buffer.concat(Array.from({ length: FLOOD }, () => framed(9, Buffer.alloc(0)))));
    await peer.closed;
    expect(gateway.logs()).toContain('it sent more than 100 WebSocket pings at once');
  });
});

/** The last of this file, because it uses up the dials of this machine. */
describe('a proxy that dials again as soon as it is sent away holds nobody up', () => {
  it.each([
    ['with nothing else', null],
    ['with resets', http2Flood(Buffer.from([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]), 20_000)],
    ['with continued headers', http2Flood(continued(50), 1_000)],
    ['with settings of 16 KiB', http2Flood(settingsOf(2_730), 1_000)],
  ])('%s', { timeout: 240_000 }, async (_name, flood) => {
    const fare = async () => bystand({ call: await bystander() });
    const before = await fare();
    let refused = 0;
    let isOver = false;
    const dial = async () => {
      while (!isOver) {
        const dialled = await dialPeer({ url: gateway.baseUrl, wallet: solanaWallet() }).catch((error: Error) => error);
        if (dialled instanceof Error) {
          refused += 1;
          expect(dialled.message).toMatch(/^429 .*dial too often/);
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        peer = dialled;
        if (flood === null) peer.kill();
        else send(flood);
        await peer.closed;
      }
    };
    const dialling = dial();
    const during: Fare[] = [];
    // Until its network has no dials left, and then once more. A tunnel that is sent away takes a second to close.
    do during.push(await fare());
    while (flood === null && refused === 0);
    during.push(await fare());
    isOver = true;
    await dialling;
    for (const one of during) expectUnharmed(before, one);
  });
});
