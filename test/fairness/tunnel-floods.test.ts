import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { modelBlock } from '../support/spine.ts';
import { dialPeer, type TunnelPeer } from '../support/tunnel-peer.ts';
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

/** One account's calls while `flood` is sent; it is made before, so that sending costs this process little. */
async function beside(flood: Buffer): Promise<void> {
  const { key } = await gateway.openAccount('bystander', 1);
  const body = { model: 'market/small', messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 };
  const call = async () => (await post(agent, `${gateway.baseUrl}/api/v1/chat/completions`, key, body)) === 200;
  peer = await dialPeer({ url: gateway.baseUrl, wallet: solanaWallet() });
  const before = await bystand({ call });
  // Below the WebSocket: what it sends is framed already.
  (peer.socket as unknown as { readonly _socket: { write(bytes: Buffer): void } })._socket.write(flood);
  const during = await bystand({ call });
  expectUnharmed(before, during);
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
function http2Flood(frame: Buffer): Buffer {
  const messages: Buffer[] = [];
  const perMessage = Math.floor(60_000 / frame.length);
  for (let sent = 0; sent < FLOOD; sent += perMessage)
    messages.push(framed(2, Buffer.concat(Array.from({ length: perMessage }, () => frame))));
  return Buffer.concat(messages);
}

describe('a proxy that floods its tunnel holds nobody up', () => {
  it('with frames of one byte of data', () => beside(http2Flood(Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 1, 0x20]))));
  it('with HTTP/2 pings', () => beside(http2Flood(Buffer.from([0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))));
  it('with messages of one byte', () =>
    beside(Buffer.concat(Array.from({ length: FLOOD }, () => framed(2, Buffer.from([0]))))));
  it('with WebSocket pings, for which it is sent away with the reason', async () => {
    await beside(Buffer.concat(Array.from({ length: FLOOD }, () => framed(9, Buffer.alloc(0)))));
    await peer.closed;
    expect(gateway.logs()).toContain('it sent more than 100 WebSocket pings at once');
  });
});
