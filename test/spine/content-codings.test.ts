import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import {
  brotliCompressSync,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  createZstdCompress,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HUGE_BYTES, type PeerProvider, startPeerProvider, USED } from '../peers/peer-provider.ts';
import { ENDPOINTS } from '../peers/routes.ts';
import { peerServices } from '../peers/services.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Bodies in content codings (RFC 9110, 8.4): requests of clients that compress, and replies of providers that compress
// although nobody asked them to.

const CODINGS = {
  gzip: [gzipSync, createGzip],
  deflate: [deflateSync, createDeflate],
  'deflate without the head of zlib': [deflateRawSync, createDeflateRaw],
  br: [brotliCompressSync, createBrotliCompress],
  zstd: [zstdCompressSync, createZstdCompress],
} as const;
type Coding = keyof typeof CODINGS;
const NAMES = Object.keys(CODINGS) as readonly Coding[];
const headerOf = (coding: Coding) => coding.split(' ')[0]!;

let coding: Coding = 'gzip';
const asked: (string | undefined)[] = [];

interface Proxy {
  readonly url: string;
  close(): void;
}

/** Passes requests on to `target`, and codes the bodies of requests or of replies. */
async function startCoder(target: () => string, codes: 'requests' | 'replies'): Promise<Proxy> {
  const pass = async (from: IncomingMessage, to: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of from) parts.push(part as Buffer);
    let body = Buffer.concat(parts);
    const { host: _, 'content-length': __, ...headers } = from.headers;
    if (codes === 'replies') asked.push(headers['accept-encoding']);
    if (codes === 'requests' && body.byteLength > 0) {
      body = CODINGS[coding][0](body);
      headers['content-encoding'] = headerOf(coding);
    }
    const onward = httpRequest(target() + from.url!, {
      method: from.method!,
      headers: { ...headers, 'content-length': body.byteLength },
    });
    onward.end(body);
    const [reply] = (await once(onward, 'response')) as [IncomingMessage];
    if (codes === 'requests')
      return pipeline(reply.setEncoding('latin1'), to.writeHead(reply.statusCode!, reply.headers), () => {});
    const { 'content-length': ___, ...given } = reply.headers;
    to.writeHead(reply.statusCode!, { ...given, 'content-encoding': headerOf(coding) });
    pipeline(reply, CODINGS[coding][1](), to, () => {});
  };
  const server = createServer((from, to) => void pass(from, to).catch(() => to.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

let provider: PeerProvider;
let coder: Proxy;
let client: Proxy;
let spine: Spine;

beforeAll(async () => {
  provider = await startPeerProvider();
  const origin = new URL(provider.modelUrl).origin;
  coder = await startCoder(() => origin, 'replies');
  const behind = Object.fromEntries(
    (['modelUrl', 'toolUrl', 'agentUrl'] as const).map((name) => [name, provider[name].replace(origin, coder.url)]),
  ) as Pick<PeerProvider, 'modelUrl' | 'toolUrl' | 'agentUrl'>;
  spine = await startSpine({
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 1\nreply_bytes_max = ${HUGE_BYTES / 4}\n${peerServices(behind)}`,
  });
  client = await startCoder(() => spine.origin, 'requests');
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await provider.close();
    client.close();
    coder.close();
  }
});

describe.each(NAMES)('%s', (name) => {
  test.each(ENDPOINTS)('requests and replies: $name', async (door) => {
    coding = name;
    asked.length = 0;
    const before = await spine.balance();
    const outcome = await door.call({ origin: client.url, key: spine.key, text: 'complete' });
    expect(outcome).toMatchObject({ kind: 'answered' });
    expect(outcome.said).toContain('complete');
    await spine.quiet();
    expect(before.available - (await spine.balance()).available).toBe(BigInt(USED));
    expect(new Set(asked)).toEqual(new Set(['identity']));
  });
});

test.each(NAMES)('the content of a reply is bounded, not its coded bytes: %s', async (name) => {
  coding = name;
  const [chat] = ENDPOINTS;
  const outcome = await chat!.call({ origin: spine.origin, key: spine.key, text: 'huge' });
  expect(outcome.raw).toContain('"finish_reason":"length"');
  expect(outcome.raw.length).toBeLessThan(HUGE_BYTES / 2);
});

const send = (path: string, body: Uint8Array, encoding: string) =>
  fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-encoding': encoding,
    },
    body: new Uint8Array(body),
  });

const PATHS = ['/v1/chat/completions', '/api/v1/messages', '/v1/responses', '/mcp', '/api/v1/rpc', '/api/v1/keys'];

test.each(PATHS)('%s: a coding that is not read is refused with those that are', async (path) => {
  for (const encoding of ['compress', 'gzip, zstd', 'x-unknown']) {
    const response = await send(path, Buffer.from('{}'), encoding);
    expect(response.status).toBe(415);
    expect(response.headers.get('accept-encoding')).toBe('gzip, deflate, br, zstd');
    expect(await response.text()).toContain(`content-encoding ${encoding}`);
  }
});

test('files of batches are read while they arrive, so uncoded alone', async () => {
  const form = new FormData();
  form.set('file', new Blob(['{}\n']), 'batch.jsonl');
  const plain = new Response(form);
  const response = await fetch(`${spine.origin}/v1/files`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': plain.headers.get('content-type')!,
      'content-encoding': 'gzip',
    },
    body: gzipSync(Buffer.from(await plain.arrayBuffer())),
  });
  expect(response.status).toBe(415);
  expect(response.headers.get('accept-encoding')).toBe('identity');
});

test.each(NAMES)('a small body of much content is refused once it is too large: %s', async (name) => {
  const bytes = Buffer.alloc(64 * 1024 * 1024, ' ');
  const bomb = CODINGS[name][0](bytes);
  expect(bomb.byteLength).toBeLessThan(128 * 1024);
  const response = await send('/v1/chat/completions', bomb, headerOf(name));
  expect(response.status).toBe(413);
  expect(await response.text()).toContain('limits.chat_body_bytes_max');
  expect(spine.app.server.requestBodies.heldBytes()).toBe(0);
});

test.each(NAMES)('a body that is not what its coding says is refused: %s', async (name) => {
  const whole = CODINGS[name][0](Buffer.from(JSON.stringify(ask('hello'))));
  for (const body of [Buffer.from('{}'), whole.subarray(0, whole.byteLength - 6)]) {
    const response = await send('/v1/chat/completions', body, headerOf(name));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: 'content-encoding' } });
  }
});
