import { createHash, randomBytes, randomInt } from 'node:crypto';
import type { ServerStreamResponseOptions } from 'node:http2';
import { afterEach, describe, expect, it } from 'vitest';
import { CONNECTION_HEADER } from '../../../../src/gateway/network/peers.ts';
import { PROXY_FAILURE_HEADER } from '../../../../src/gateway/network/tunnel-wire.ts';
import { createScene, open, reply } from './far-gateway.ts';

const scene = createScene();
afterEach(() => scene.end());

const HEAD = [
  ':status',
  '207',
  'x-one',
  '1',
  'set-cookie',
  'a',
  'date',
  'Tue, 01 Jan 2030 00:00:00 GMT',
  'set-cookie',
  'b',
  'etag',
  'a',
  'etag',
  'b',
  'x-one',
  '3',
];

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

describe('a call for a tunnel of another gateway', () => {
  it('is the same at the other end, byte by byte, both ways', async () => {
    const far = await scene.far((stream, headers) => {
      const size = Number(headers['x-size']);
      const answer = randomBytes(size);
      const hash = createHash('sha256');
      stream.on('data', (chunk: Buffer) => hash.update(chunk));
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'x-received': hash.digest('hex'), 'x-sent': digest(answer) });
        for (let at = 0; at < size;) {
          const end = at + randomInt(1, 40_000);
          stream.write(answer.subarray(at, end));
          at = end;
        }
        stream.end();
      });
    });
    const peers = scene.peers();
    const sizes = [
      0,
      1,
      16_383,
      16_385,
      65_535,
      65_537,
      1_000_003,
      ...Array.from({ length: 60 }, () => randomInt(200_000)),
    ];
    await Promise.all(
      sizes.map(async (size) => {
        const sent = randomBytes(size);
        const stream = open(peers, far.listener.url, { 'x-size': String(size) });
        const arriving = reply(stream);
        for (let at = 0; at < size;) {
          const end = at + randomInt(1, 40_000);
          stream.write(sent.subarray(at, end));
          at = end;
        }
        stream.end();
        const { headers, body } = await arriving;
        expect([headers['x-received'], headers['x-sent'], body.byteLength]).toEqual([digest(sent), digest(body), size]);
      }),
    );
  });

  it('keeps its method, its path, and its header lines in their order, also those that come twice', async () => {
    let seen: readonly string[] = [];
    const far = await scene.far((stream, _headers, rawHeaders) => {
      seen = rawHeaders;
      stream.respond(HEAD);
      stream.end('done');
    });
    const stream = open(
      scene.peers(),
      far.listener.url,
      { ':method': 'PUT', ':path': '/tool/a%2Fb?x=1&y=%20', 'x-one': ['1', '2'], 'x-two': '' },
      true,
    );
    const { status, rawHeaders, body } = await reply(stream);
    expect([status, String(body)]).toEqual([207, 'done']);
    expect(rawHeaders).toEqual(HEAD);
    const own = seen.filter((_, index) => ![':scheme', ':authority'].includes(seen[index - (index % 2)]!));
    expect(own).toEqual([':method', 'PUT', ':path', '/tool/a%2Fb?x=1&y=%20', 'x-one', '1', 'x-one', '2', 'x-two', '']);
    expect(seen).not.toContain(CONNECTION_HEADER);
    expect(seen[seen.indexOf(':authority') + 1]).not.toBe(new URL(far.listener.url).host);
  });

  it('is not given a date that it did not have', async () => {
    const far = await scene.far((stream) => {
      stream.respond([':status', '200', 'x-only', '1'], { sendDate: false } as ServerStreamResponseOptions);
      stream.end();
    });
    const { rawHeaders } = await reply(open(scene.peers(), far.listener.url, {}, true));
    expect(rawHeaders).toEqual([':status', '200', 'x-only', '1']);
  });

  it.each([200, 204, 304, 404, 500, 599])('passes on a reply of %i that has no body', async (status) => {
    const far = await scene.far((stream) => stream.respond({ ':status': status }, { endStream: true }));
    const answer = await reply(open(scene.peers(), far.listener.url, {}, true));
    expect([answer.status, answer.body.byteLength]).toEqual([status, 0]);
  });

  it('passes on a reply that comes while the request is still being sent', async () => {
    const far = await scene.far((stream) => {
      stream.respond({ ':status': 413, [PROXY_FAILURE_HEADER]: 'upstream_broken' });
      stream.end('too large');
    });
    const stream = open(scene.peers(), far.listener.url);
    stream.write(randomBytes(1_000));
    const { status, headers, body } = await reply(stream);
    expect([status, headers[PROXY_FAILURE_HEADER], String(body)]).toEqual([413, 'upstream_broken', 'too large']);
  });

  it('is answered with a failure when its connection is not there, and sent nowhere', async () => {
    let streams = 0;
    const far = await scene.far(() => (streams += 1));
    const peers = scene.peers();
    for (const connection of ['c2', '', 'x'.repeat(10_000), '__proto__', undefined]) {
      const { status, headers } = await reply(open(peers, far.listener.url, { [CONNECTION_HEADER]: connection }, true));
      expect([status, headers[PROXY_FAILURE_HEADER]]).toEqual([404, 'unknown_connection']);
    }
    expect(streams).toBe(0);
  });

  it('is answered with a failure when the session of its tunnel has ended', async () => {
    const far = await scene.far((stream) => stream.respond({ ':status': 200 }, { endStream: true }));
    far.tunnel.close();
    const { status, headers } = await reply(open(scene.peers(), far.listener.url, {}, true));
    expect([status, headers[PROXY_FAILURE_HEADER]]).toEqual([404, 'unknown_connection']);
  });
});
