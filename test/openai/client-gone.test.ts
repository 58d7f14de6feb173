import { connect } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { gate, startGateway, until, type GatewayOptions } from './support/gateway.ts';
import { makeOffer } from './support/offers.ts';
import { chunkOf, delta, events, usualStream } from './support/replies.ts';

let gateway: Awaited<ReturnType<typeof startGateway>>;
afterEach(() => gateway.close());

const endless = makeOffer({ model: { maxOutputTokens: 100_000_000, contextLength: 1_000_000_000 } });
const ask = { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }] };

/** A client that sends one request and can leave at any time. */
async function raw(body: unknown) {
  const socket = connect(gateway.port, '127.0.0.1');
  await once(socket, 'connect');
  const text = JSON.stringify(body);
  socket.write(
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  return socket;
}

const start = async (options: GatewayOptions) => (gateway = await startGateway(options));

describe('a client that leaves', () => {
  it('in the middle of a stream aborts the call, whose run goes on to its settlement', async () => {
    const rest = gate();
    await start({
      reply: () => ({
        chunks: (async function* () {
          yield events(chunkOf([delta('half')]));
          await rest.opened;
          yield usualStream();
        })(),
      }),
    });
    const socket = await raw({ ...ask, stream: true });
    await once(socket, 'data');
    socket.destroy();
    await until(() => gateway.state.aborted.length === 1);
    expect(gateway.state.returned).toBe(0);
    rest.open();
    await until(() => gateway.state.returned === 1);
    expect(gateway.state.errors).toEqual([]);
  });

  it('before the head aborts the call', async () => {
    const head = gate();
    await start({
      reply: () => ({
        chunks: (async function* () {
          await head.opened;
          yield '{}';
        })(),
      }),
    });
    const socket = await raw(ask);
    await until(() => gateway.state.upstream.length === 1);
    socket.destroy();
    await until(() => gateway.state.aborted.length === 1);
    head.open();
    await until(() => gateway.state.returned === 1);
    expect(gateway.state.errors).toEqual([]);
  });

  it('after the end is no abort', async () => {
    await start({ reply: () => ({ chunks: [usualStream()] }) });
    const socket = await raw({ ...ask, stream: true });
    let text = '';
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
    await until(() => text.includes('[DONE]'));
    socket.destroy();
    await until(() => gateway.state.returned === 1);
    await (await gateway.post({ ...ask, stream: true })).text();
    expect(gateway.state.aborted).toEqual([]);
  });
});

describe('a client that reads slowly', () => {
  it('stops the reading of the upstream, and gets everything in the end', async () => {
    const word = 'x'.repeat(16_384);
    const wanted = 2_000;
    let pulled = 0;
    await start({
      reply: () => ({
        chunks: (async function* () {
          for (; pulled < wanted; pulled++) yield events(chunkOf([delta(word)]));
          yield usualStream([]);
        })(),
      }),
      offer: endless,
    });
    const socket = await raw({ ...ask, stream: true });
    await once(socket, 'readable');
    // Nothing is read: what fits into the sockets' buffers goes, then the run stands still.
    let before = -1;
    while (before !== pulled) {
      before = pulled;
      for (let turn = 0; turn < 2_000; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(pulled).toBeLessThan(wanted / 2);
    let bytes = 0;
    let tail = '';
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      tail = (tail + chunk.toString('latin1')).slice(-64);
    });
    await until(() => tail.includes('[DONE]'));
    expect(bytes).toBeGreaterThan(wanted * word.length);
    socket.destroy();
  });

  it('and then leaves, ends the wait', async () => {
    const word = 'x'.repeat(65_536);
    await start({
      reply: () => ({
        chunks: (async function* () {
          for (let i = 0; i < 5_000; i++) yield events(chunkOf([delta(word)]));
        })(),
      }),
      offer: endless,
    });
    const socket = await raw({ ...ask, stream: true });
    await once(socket, 'readable');
    socket.destroy();
    await until(() => gateway.state.returned === 1);
    expect(gateway.state.aborted).toEqual(['gen-1']);
  });
});
