import { once } from 'node:events';
import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type Http2Server,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  bypassBuffer,
  readMore,
  resetStream,
  respondUnchanged,
  watchEnd,
} from '../../../../src/gateway/network/tunnel/http2-streams.ts';
import { checkedWith } from '../../../support/checked-with.ts';

checkedWith('node:http2', '26.10.0', '24.21.0');

const { NGHTTP2_CANCEL } = constants;
const WINDOW = 64 * 1024;

let server: Http2Server;
let session: ClientHttp2Session;
let serve: (stream: ServerHttp2Stream) => void;
beforeAll(async () => {
  server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    serve(stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: WINDOW },
  });
  await once(session, 'remoteSettings');
});
afterAll(() => {
  session.destroy();
  server.close();
});
beforeEach(() => {
  serve = (stream) => stream.respond({ ':status': 200 }, { endStream: true });
});

const open = () => {
  const stream = session.request({ ':path': '/' });
  stream.on('error', () => {});
  return stream;
};

test('a bypassed stream keeps nothing, gives each byte and its end, and closes', async () => {
  serve = (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('one');
    stream.end('two');
  };
  const stream = open();
  let text = '';
  let ended = false;
  bypassBuffer(stream, (chunk) => {
    if (chunk === null) ended = true;
    else text += chunk.toString();
    expect(stream.readableLength).toBe(0);
    return true;
  });
  await once(stream, 'close');
  expect([text, ended, stream.rstCode]).toEqual(['onetwo', true, 0]);
});

test('a bypassed stream that takes no more holds its sender back, until it reads more', async () => {
  let sender: ServerHttp2Stream | null = null;
  serve = (stream) => {
    sender = stream;
    stream.respond({ ':status': 200 });
    stream.end(Buffer.alloc(8 * WINDOW));
  };
  const stream = open();
  let received = 0;
  let isTaking = false;
  bypassBuffer(stream, (chunk) => {
    received += chunk?.byteLength ?? 0;
    return isTaking;
  });
  await once(stream, 'response');
  // A ping of the session passes the bytes that may still come, so none are on their way after a few of them.
  for (let pings = 0; pings < 5; pings += 1) await new Promise((resolve) => void session.ping(resolve));
  expect(received).toBeLessThanOrEqual(2 * WINDOW);
  expect(sender!.writableFinished).toBe(false);
  isTaking = true;
  readMore(stream);
  await once(stream, 'close');
  expect(received).toBe(8 * WINDOW);
});

test('an end that the other side sent is told from a stream that was closed', async () => {
  const whole = open();
  const isWhole = watchEnd(whole);
  whole.resume();
  await once(whole, 'close');
  serve = (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('begun', () => resetStream(stream, NGHTTP2_CANCEL));
  };
  const broken = open();
  const isBrokenWhole = watchEnd(broken);
  broken.resume();
  await once(broken, 'close');
  expect([isWhole(), isBrokenWhole(), broken.rstCode]).toEqual([true, false, NGHTTP2_CANCEL]);
});

test('a head is sent with no line but those that it has', async () => {
  const lines = [':status', '200', 'x-b', '2', 'x-a', '1', 'x-b', '3'];
  const heads: (readonly string[])[] = [];
  for (const endStream of [true, false]) {
    serve = (stream) => {
      // Node adds its lines to the list that it gets.
      respondUnchanged(stream, [...lines], endStream);
      if (!endStream) stream.end();
    };
    const stream = open();
    stream.on('response', (_headers, _flags, raw) => heads.push(raw));
    stream.resume();
    await once(stream, 'close');
  }
  expect(heads).toEqual([lines, lines]);
});
