import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { escrowOf } from '#billing';
import { dialIn, type DialledIn } from '../../support/dial-in.ts';
import { findFreePort } from '../../support/free-port.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { openRealtime, type Json, type RawClient } from './support/realtime-client.ts';
import { startRealtimeProvider, usage, type ProviderSide, type RealtimeProvider } from './support/realtime-provider.ts';
import { voiceBlock } from './support/voice-gateway.ts';

// Sessions through the tunnel of a provider's proxy, which opens them at the provider's own service. What such a
// provider claims is paid only as far as its client can check it.

let provider: RealtimeProvider;
let spine: Spine;
let proxy: DialledIn;
let url: string;
/** A block of a provider's own file, `NAME/voice`. */
const voiceOf = (name: string, at: string) =>
  voiceBlock(at).replace('"voice"', `"${name}/voice"`).replaceAll('Voices', name);
beforeAll(async () => {
  provider = await startRealtimeProvider();
  spine = await startSpine({ toml: `${UNHURRIED}[billing]\ndrain_ms = 2000\n` });
  proxy = await dialIn({ router: spine.origin, services: voiceOf('far', provider.url) });
  url = `${spine.origin.replace('http', 'ws')}/v1/realtime?model=far/voice`;
});
afterAll(async () => {
  try {
    await proxy.close();
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await provider.stop();
  }
});

const REFUSED = 'the upstream answered with an error';

const balanceOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))!.available;
const pcm = (seconds: number, size = 48_000) => Buffer.alloc(size * seconds).toString('base64');

async function open(key = spine.key): Promise<{ client: RawClient; side: ProviderSide }> {
  const [client, side] = await Promise.all([openRealtime(url, key), provider.session()]);
  await client.take('session.created');
  return { client, side };
}

async function close({ client, side }: { client: RawClient; side: ProviderSide }): Promise<void> {
  client.socket.close();
  await Promise.all([client.closed, side.closed]);
}

/** Asks for a response, which the provider then begins. */
async function begin({ client, side }: { client: RawClient; side: ProviderSide }, id: string): Promise<void> {
  client.send({ type: 'response.create' });
  await side.take('response.create');
  side.begin(id);
  await client.take('response.created');
}

const delta = (id: string, text: string, type = 'response.output_text.delta') => ({
  type,
  response_id: id,
  item_id: 'item_1',
  delta: text,
});

describe('a session through a tunnel', () => {
  it('is opened by the official SDK, and each response is charged', async () => {
    const { account, key } = await spine.tenant('caller', '10');
    const { host, port, hostname } = new URL(spine.origin);
    const client = new OpenAI({ apiKey: key, baseURL: `https://${host}/v1` });
    const session = new OpenAIRealtimeWS(
      { model: 'far/voice', options: { createConnection: () => connect(Number(port), hostname) } },
      client,
    );
    const side = await provider.session();
    await new Promise((resolve) => session.once('session.created', resolve));
    expect(new URL(side.url, 'ws://x').href).toBe('ws://x/v1/realtime?model=upstream-of-far');
    // The proxy has the key of the service. The consumer's own stays at the gateway.
    expect(side.headers.authorization).toBe('Bearer upstream-secret-canary');
    expect(JSON.stringify(side.headers)).not.toContain(key);
    session.send({ type: 'response.create' });
    await side.take('response.create');
    const done = new Promise<{ response: Json }>((resolve) => session.once('response.done', resolve as never));
    side.say('resp_1', 'x'.repeat(400), usage(8, 100));
    expect((await done).response['usage']).toMatchObject({ input_tokens: 8, output_tokens: 100, cost: 0.001632 });
    session.close();
    await side.closed;
    await spine.quiet();
    // 8 × 4 + 100 × 16
    expect(await balanceOf(account)).toBe(10_000_000n - 1_632n);
  });

  it('passes large events in both directions, with a client that reads slowly', async () => {
    const session = await open();
    const { client, side } = session;
    await begin(session, 'resp_1');
    client.socket.pause();
    const sound = pcm(10);
    for (let at = 0; at < 8; at++) side.send(delta('resp_1', sound, 'response.output_audio.delta'));
    for (let at = 0; at < 8; at++) client.send({ type: 'input_audio_buffer.append', audio: sound });
    for (let at = 0; at < 8; at++) expect((await side.take('input_audio_buffer.append'))['audio'] === sound).toBe(true);
    client.socket.resume();
    for (let at = 0; at < 8; at++)
      expect((await client.take('response.output_audio.delta'))['delta'] === sound).toBe(true);
    side.done('resp_1', usage(8, 100));
    await client.done();
    await close(session);
  });

  it('is refused with the reason if its service is down, or refuses it', async () => {
    const nowhere = `http://127.0.0.1:${await findFreePort()}/v1`;
    const other = await dialIn({ router: spine.origin, services: voiceOf('down', nowhere) });
    onTestFinished(() => other.kill());
    const down = url.replace('far', 'down');
    const refusal = (at: string) =>
      openRealtime(at, spine.key).then(
        () => null,
        ({ status, message }: Error & { readonly status: number }) => ({ status, message }),
      );
    expect(await refusal(down)).toMatchObject({ status: 500, message: expect.stringContaining('cannot be reached') });
    expect(other.lines.find(({ msg }) => msg === 'the upstream failed')).toMatchObject({
      failure: 'upstream_unreachable',
    });
    provider.refuse = { status: 400, body: '{"error":{"message":"no such voice"}}' };
    onTestFinished(() => void (provider.refuse = null));
    expect(await refusal(url)).toMatchObject({ status: 400, message: expect.stringContaining('no such voice') });
    const lineOf = (status: number) => proxy.lines.find((line) => line['msg'] === REFUSED && line['status'] === status);
    const logged = async (status: number) => {
      await expect.poll(() => lineOf(status)).toMatchObject({ service: 'far/voice', request_id: expect.any(String) });
    };
    await logged(400);
    expect(proxy.lines.find(({ msg }) => msg === REFUSED)!['said']).toContain('no such voice');
    provider.refuse = { status: 301, body: '' };
    expect(await refusal(url)).toMatchObject({ status: 500 });
    await logged(301);
  });

  it('ends with the tunnel, and what came of a response is paid', async () => {
    const other = await startRealtimeProvider();
    onTestFinished(() => other.stop());
    const dialled = await dialIn({
      router: spine.origin,
      services: voiceOf('short', other.url),
    });
    const { account, key } = await spine.tenant('cut', '10');
    const [client, side] = await Promise.all([openRealtime(url.replace('far', 'short'), key), other.session()]);
    await client.take('session.created');
    await begin({ client, side }, 'resp_1');
    side.send(delta('resp_1', 'x'.repeat(400)));
    await client.take('response.output_text.delta');
    dialled.kill();
    expect(await client.take('error')).toMatchObject({ error: { code: 'provider_unavailable' } });
    expect((await client.closed).code).toBe(1011);
    await side.closed;
    await spine.quiet();
    // 400 bytes of text are 100 tokens. Nothing was sent, so there is no prompt: what the provider shows is not paid.
    expect(await balanceOf(account)).toBe(10_000_000n - 100n * 16n);
  });

  it('ends soon after its proxy drains, once its response has', async () => {
    const other = await startRealtimeProvider();
    onTestFinished(() => other.stop());
    const dialled = await dialIn({ router: spine.origin, services: voiceOf('drained', other.url) });
    const [client, side] = await Promise.all([openRealtime(url.replace('far', 'drained'), spine.key), other.session()]);
    await begin({ client, side }, 'resp_1');
    const closing = dialled.close();
    side.send(delta('resp_1', 'hello'));
    side.done('resp_1', usage(8, 2));
    expect((await client.done()).usage.output_tokens).toBe(2);
    expect(await client.take('error')).toMatchObject({ error: { message: expect.stringContaining('leaving') } });
    expect((await client.closed).code).toBe(1011);
    await closing;
  });

  it('is not an ordinary request, nor a socket to another path', async () => {
    const answer = await spine.post('/chat/completions', {
      model: 'far/voice',
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(answer.status).toBe(422);
  });
});

describe('a provider that dialled in', () => {
  it('is not paid for a prompt that nobody sent, whatever it shows and claims', async () => {
    const { account, key } = await spine.tenant('prompted', '10');
    provider.shown = {
      instructions: 'x'.repeat(20_000),
      audio: {
        input: { format: { type: 'audio/pcmu' }, turn_detection: null },
        output: { format: { type: 'audio/pcmu' } },
      },
    };
    const session = await open(key);
    provider.shown = {};
    const { client, side } = session;
    await begin(session, 'resp_1');
    side.send(delta('resp_1', 'hi'));
    side.done('resp_1', usage(20_000, 30_000, { input: 10_000 }));
    const { usage: billed, tollgate } = await client.done();
    // Text has at most a token for each of its bytes, and a little more around it.
    expect(billed.input_tokens).toBeLessThan(1_000);
    expect(billed.output_tokens).toBeLessThan(100);
    // A second of sound is 48,000 bytes in the format that the client has not changed: 50 tokens at most, and no more.
    await begin(session, 'resp_2');
    side.send(delta('resp_2', pcm(1), 'response.output_audio.delta'));
    side.done('resp_2', usage(0, 5_000, { output: 5_000 }));
    expect((await client.done()).usage.output_tokens).toBeLessThan(100);
    await close(session);
    await spine.quiet();
    expect(await spine.generation(tollgate.generation_id, key)).toMatchObject({ flags: ['usage_implausible'] });
    expect(await balanceOf(account)).toBeGreaterThan(10_000_000n - 20_000n);
  });

  it('is paid for all sound that it sends, whatever format its client asks for', async () => {
    const session = await open();
    const { client, side } = session;
    const format = { type: 'audio/pcmu' };
    const inFormat = { type: 'response.create', response: { audio: { output: { format } } } };
    // Sound would be measured as six times less than it is.
    client.send(inFormat);
    expect(await client.take('error')).toMatchObject({ error: { param: 'response.audio.output.format' } });
    client.send({ type: 'session.update', session: { type: 'realtime', audio: { output: { format } } } });
    await client.take('session.updated');
    client.send(inFormat);
    await side.take('response.create');
    side.begin('resp_1');
    side.send(delta('resp_1', pcm(10, 8_000), 'response.output_audio.delta'));
    side.done('resp_1', usage(0, 200, { output: 200 }));
    expect((await client.done()).usage.output_tokens).toBe(200);
    await close(session);
  });

  it('is not paid for parts of a response that no client reads', async () => {
    const session = await open();
    const { client, side } = session;
    await begin(session, 'resp_1');
    side.send(delta('resp_1', 'hi'));
    side.send(delta('resp_1', 'x'.repeat(10_000), 'response.padding.delta'));
    side.done('resp_1', usage(8, 2_000));
    expect((await client.done()).usage.output_tokens).toBeLessThan(100);
    await close(session);
  });

  it('begins no response that nobody asked for', async () => {
    const { account, key } = await spine.tenant('unasked', '10');
    const session = await open(key);
    const { client, side } = session;
    side.say('resp_1', 'x'.repeat(400), usage(8, 100));
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_1' });
    // Without turn detection, sound asks for nothing.
    client.send({ type: 'session.update', session: { type: 'realtime', audio: { input: { turn_detection: null } } } });
    await client.take('session.updated');
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    await side.take('input_audio_buffer.append');
    side.say('resp_2', 'x'.repeat(400), usage(8, 100));
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_2' });
    expect(client.events.filter(({ type }) => String(type).startsWith('response.'))).toEqual([]);
    await close(session);
    await spine.quiet();
    expect(await balanceOf(account)).toBe(10_000_000n);
  });

  it('may answer the turns that it hears, as many as there can be', async () => {
    const session = await open();
    const { client, side } = session;
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    await side.take('input_audio_buffer.append');
    for (const id of ['resp_1', 'resp_2']) {
      side.say(id, 'hello', usage(8, 2));
      expect((await client.done()).id).toBe(id);
    }
    side.say('resp_3', 'hello', usage(8, 2));
    expect(await side.take('response.cancel')).toMatchObject({ response_id: 'resp_3' });
    client.send({ type: 'input_audio_buffer.append', audio: pcm(1) });
    await side.take('input_audio_buffer.append');
    side.say('resp_4', 'hello', usage(8, 2));
    expect((await client.done()).id).toBe('resp_4');
    await close(session);
  });
});
