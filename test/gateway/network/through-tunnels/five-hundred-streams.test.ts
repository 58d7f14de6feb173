import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { READY } from '../../../support/dial-in.ts';
import { startFirehose, type Firehose } from '../../../support/firehose.ts';
import { startGateway, type Gateway } from '../../../support/gateway.ts';
import { postLazily, type LazyReader } from '../../../support/lazy-reader.ts';
import { bytesInKernel, bytesRead, residentPeak, socketsOf } from '../../../support/process-figures.ts';
import { startProvide, type ProvideProcess } from '../../../support/provide-process.ts';
import { startProvider, type TestProvider } from '../../../support/provider.ts';
import { until } from '../../../support/tunnel-spine.ts';
import { SIGN_IN_TOML } from '../../../support/wallets.ts';

/*
 * One tunnel with five hundred streams at once, between a gateway and a proxy that are processes of their own, so
 * that the memory and the sockets of each can be told apart from those of the clients and upstreams here.
 */

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const KIB = 1024;
const MIB = 1024 * KIB;
const STREAMS = 500;
const TOKENS = DEEP ? 4_000 : 250;
const TIMEOUT_MS = DEEP ? 900_000 : 90_000;
const DRAIN_MS = 1_500;
const DRAIN_BYTES = 1_000_000;
/** Much more than the sockets between can hold. */
const FLOOD_BYTES = 256 * MIB;
const FLOOD_TOKENS = FLOOD_BYTES / 8;
const UPLOAD_BYTES = 12 * MIB;
/**
 * What one stalled reply may hold in the gateway, in the proxy and in its upstream here together, and a stalled
 * upload in the proxy. The kernel's buffers are not in it.
 */
const REPLY_HELD_MAX = 640 * KIB;
const UPLOAD_HELD_MAX = 768 * KIB;
/** Of processes that carry five hundred streams anyway. */
const GROWTH_MAX = 96 * MIB;

let upstream: TestProvider;
let flood: Firehose;
/** Takes requests and reads nothing of their bodies. */
let deaf: Server;
let gateway: Gateway;
let proxy: ProvideProcess;
let clients: Agent;
/** Clients that stall. */
let lazy: LazyReader[] = [];
let before: { readonly gateway: number; readonly proxy: number };

const model = (name: string, url: string, tokensMax: number) => `
[[models]]
name = "${name}"
display_name = "${name}"
provider_name = "Crowd"
context_length = 100000000
max_output_tokens = ${tokensMax}
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "upstream-model"
api_base = "${url}"
`;

beforeAll(async () => {
  upstream = await startProvider();
  flood = await startFirehose({ events: FLOOD_BYTES / 16_384, eventBytes: 16_384 });
  deaf = createServer((asked) => asked.pause()).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  gateway = await startGateway({
    toml: `${SIGN_IN_TOML}
[limits]
requests_per_minute = 10000000
burst = 10000000
tokens_per_minute = 1000000000000
chat_body_bytes_max = ${2 * UPLOAD_BYTES}
client_stall_ms = 600000
[billing]
drain_ms = ${DRAIN_MS}
drain_bytes = ${DRAIN_BYTES}
[upstream]
reply_bytes_max = ${2 * FLOOD_BYTES}
`,
  });
  const services = [
    model('crowd/model', upstream.url, TOKENS),
    model('crowd/flood', flood.url, FLOOD_TOKENS),
    model('crowd/deaf', portUrl(deaf), TOKENS),
  ];
  proxy = await startProvide({ router: gateway.baseUrl, services: services.join('') });
  clients = new Agent({ connections: null, keepAliveTimeout: 120_000 });
  before = { gateway: socketsOf(gateway.pid), proxy: socketsOf(proxy.pid) };
});
afterAll(async () => {
  await clients?.destroy();
  await proxy?.stop();
  await gateway?.stop();
  await upstream?.stop();
  await flood?.stop();
  deaf?.closeAllConnections();
  deaf?.close();
});
afterEach(async () => {
  for (const { socket } of lazy) socket.destroy();
  lazy = [];
  await until(
    async () =>
      (await gauge('tollgate_tunnel_streams')) +
        (await gauge('tollgate_calls_in_flight')) +
        (await gauge('tollgate_locks_held')) ===
      0,
  );
  const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
  // One proxy, that never lost its tunnel.
  expect(proxy.logs().split(READY)).toHaveLength(2);
  await clients.destroy();
  clients = new Agent({ connections: null, keepAliveTimeout: 120_000 });
  // Those of the requests that are made for the tests' own sake aside.
  await until(() => socketsOf(gateway.pid) <= before.gateway + 3);
  // It keeps idle connections to its upstream.
  await until(async () => socketsOf(proxy.pid) - (await upstream.connections()) <= before.proxy);
});

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const portUrl = (server: Server) => `http://127.0.0.1:${portOf(server)}/v1`;
const floodPort = () => Number(new URL(flood.url).port);

/** The figures are up to a second old, so wait for a value with `until`. */
async function gauge(name: string): Promise<number> {
  const text = await (
    await fetch(`${gateway.baseUrl}/metrics`, { headers: { authorization: `Bearer ${gateway.adminKey}` } })
  ).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))!;
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}

/** What an account has spent, once nothing is locked any more. */
async function spent(account: string, credit: number): Promise<number> {
  const { data } = (await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`)) as {
    data: { balance_micro_usdc: number; locked_micro_usdc: number };
  };
  expect(data.locked_micro_usdc).toBe(0);
  return credit * 1_000_000 - data.balance_micro_usdc;
}

const chat = (content: string, more: object = {}) => ({
  model: 'crowd/model',
  stream: true,
  max_tokens: TOKENS,
  messages: [{ role: 'user', content }],
  ...more,
});

const post = (key: string, body: object) =>
  request(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    dispatcher: clients,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

/** A client that sends its request and reads nothing. */
async function stall(key: string, body: object): Promise<LazyReader> {
  const client = await postLazily(gateway.baseUrl, key, body);
  lazy.push(client);
  return client;
}

/**
 * Opens so many streams, holds their upstream's answers back until all are there, beside `beside` others, and lets
 * them go. Every one has to come whole. Resolves with how long that took from there.
 */
async function flow(key: string, count: number, { beside = 0, padding = '' } = {}): Promise<number> {
  const gate = Promise.withResolvers<void>();
  upstream.log.length = 0;
  upstream.hold(gate.promise);
  const calls = Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const response = await post(key, chat(`${index} !tokens:${TOKENS} ${padding}`));
      return { status: response.statusCode, text: await response.body.text() };
    }),
  );
  calls.catch(() => {});
  let begun: number;
  try {
    await until(() => upstream.log.length === count);
    await until(async () => (await gauge('tollgate_tunnel_streams')) === count + beside);
  } finally {
    begun = performance.now();
    gate.resolve();
    upstream.hold(null);
  }
  const replies = await calls;
  const took = performance.now() - begun;
  for (const { status, text } of replies) {
    expect(status, text).toBe(200);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    // The first, with the role, has a text too, which is empty.
    expect(text.split('"content":"').length - 2).toBe(TOKENS);
  }
  return took;
}

/**
 * Resolves when this does not move any more, with what it is then. The calls in between show that all could have
 * moved it, on a busy machine too.
 */
async function still(key: string, figure: () => number): Promise<number> {
  for (let last = figure(), turns = 0; ; last = figure()) {
    for (let turn = 0; turn < 5; turn++) await (await post(key, chat('!tokens:1'))).body.dump();
    await new Promise((resolve) => setTimeout(resolve, 40));
    turns = figure() === last ? turns + 1 : 0;
    if (turns === 5) return last;
  }
}

const peaks = () => ({ gateway: residentPeak(gateway.pid), proxy: residentPeak(proxy.pid) });

test(
  'a client that never reads stalls its own stream of five hundred, and no other',
  async () => {
    const crowd = await gateway.openAccount('crowd', 100);
    const staller = await gateway.openAccount('staller', 1_000);
    const alone = await flow(crowd.key, STREAMS - 1);
    const peaksAlone = peaks();

    const client = await stall(staller.key, chat('hello', { model: 'crowd/flood', max_tokens: FLOOD_TOKENS }));
    await until(() => flood.sent.bytes > 0);
    const sent = await still(crowd.key, () => flood.sent.bytes);
    const withClient = bytesInKernel(client.socket.localPort!);
    const held = sent - bytesInKernel(floodPort()) - withClient;
    expect(held).toBeLessThan(REPLY_HELD_MAX);

    const beside = await flow(crowd.key, STREAMS - 1, { beside: 1 });
    const peaksBeside = peaks();
    // It stalled all that time.
    expect(flood.sent).toEqual({ bytes: sent, finished: 0, left: 0 });
    console.log(
      `  499 streams: ${Math.round(alone)} ms alone, ${Math.round(beside)} ms beside a stalled one, which holds ${Math.round(held / KIB)} KiB (and ${Math.round(sent / KIB)} KiB went out in all); peaks in MiB ${JSON.stringify(
        [peaksAlone, peaksBeside].map((peak) => [Math.round(peak.gateway / MIB), Math.round(peak.proxy / MIB)]),
      )}`,
    );
    expect(beside).toBeLessThan(3 * alone + 1_000);
    expect(peaksBeside.gateway - peaksAlone.gateway).toBeLessThan(GROWTH_MAX);
    expect(peaksBeside.proxy - peaksAlone.proxy).toBeLessThan(GROWTH_MAX);

    client.socket.destroy();
    await until(() => flood.sent.left === 1);
    await until(async () => (await gauge('tollgate_locks_held')) === 0);
    // A token for each 4 bytes, at 2 micro-USD: of what the client could have read, of what was held for it, and of
    // what was read on until the bound.
    const cost = await spent(staller.account, 1_000);
    expect(cost).toBeGreaterThan(((withClient + DRAIN_BYTES / 2) / 4) * 2);
    expect(cost).toBeLessThan(((withClient + REPLY_HELD_MAX + 2 * DRAIN_BYTES) / 4) * 2);
  },
  TIMEOUT_MS,
);

test(
  'an upload that its upstream does not read is held back, and others go beside it',
  async () => {
    const { key, account } = await gateway.openAccount('uploader', 100);
    const other = await gateway.openAccount('beside-uploader', 100);
    const read = bytesRead(proxy.pid);
    const client = await stall(key, chat('x'.repeat(UPLOAD_BYTES), { model: 'crowd/deaf' }));
    await until(() => bytesInKernel(portOf(deaf)) > 0);
    const inKernel = await still(other.key, () => bytesInKernel(portOf(deaf)));
    const taken = bytesRead(proxy.pid) - read;
    console.log(
      `  of an upload the proxy took ${Math.round(taken / KIB)} KiB, of which it passed on ${Math.round(inKernel / KIB)} KiB`,
    );
    expect(taken).toBeLessThan(UPLOAD_BYTES / 2);
    expect(taken - inKernel).toBeLessThan(UPLOAD_HELD_MAX);

    const peaksBefore = peaks();
    await flow(other.key, STREAMS / 5, { beside: 1, padding: 'x'.repeat(100 * KIB) });
    expect(bytesInKernel(portOf(deaf)) - inKernel).toBeLessThan(UPLOAD_HELD_MAX);
    expect(peaks().proxy - peaksBefore.proxy).toBeLessThan(GROWTH_MAX);

    client.socket.destroy();
    await until(async () => (await gauge('tollgate_locks_held')) === 0);
    expect(await spent(account, 100)).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  'five hundred clients that leave at once leave nothing behind',
  async () => {
    const { key, account } = await gateway.openAccount('leavers', 100);
    upstream.log.length = 0;
    const half = STREAMS / 2;
    // One half has begun and would never end, the other has not begun.
    await Promise.all(
      Array.from({ length: half }, async () => {
        const { body } = await post(key, chat('!tokens:50 !stall:3000:forever', { max_tokens: 60 }));
        body.on('error', () => {});
        await once(body, 'readable');
      }),
    );
    const gate = Promise.withResolvers<void>();
    upstream.hold(gate.promise);
    const waiting = Array.from({ length: half }, () => post(key, chat('!tokens:50', { max_tokens: 60 })));
    await until(() => upstream.log.length === STREAMS);
    await until(async () => (await gauge('tollgate_tunnel_streams')) === STREAMS);

    const left = Promise.allSettled(waiting);
    await clients.destroy();
    expect((await left).filter(({ status }) => status === 'fulfilled')).toEqual([]);
    clients = new Agent({ connections: null });
    gate.resolve();
    upstream.hold(null);
    const { log } = upstream;
    await upstream.settled(STREAMS);
    await until(async () => (await gauge('tollgate_tunnel_streams')) === 0);
    await until(async () => (await gauge('tollgate_locks_held')) === 0);

    const [finished, cancelled] = ['finished', 'client_closed'].map((end) => log.filter((call) => call.end === end));
    expect(finished!.length + cancelled!.length).toBe(STREAMS);
    expect(cancelled!.length).toBeGreaterThanOrEqual(half);
    // What was finished costs what it used, what was cut what was counted of it: more than nothing, and not more
    // than was asked for.
    const exact = finished!.reduce((sum, call) => sum + call.promptTokens + 2 * call.plannedTokens, 0);
    const cost = await spent(account, 100);
    expect(cost).toBeGreaterThan(exact + half);
    expect(cost).toBeLessThan(exact + cancelled!.reduce((sum, call) => sum + 2 * call.promptTokens + 2 * 60, 0));

    await flow(key, 20);
  },
  TIMEOUT_MS,
);
