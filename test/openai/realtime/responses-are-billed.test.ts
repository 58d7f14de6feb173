import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Spine } from '../../support/spine.ts';
import { openRealtime, type BilledResponse, type Json } from './support/realtime-client.ts';
import { usage, type RealtimeProvider } from './support/realtime-provider.ts';
import { startVoiceGateway, type VoiceGateway } from './support/voice-gateway.ts';

/** Seconds of silence as PCM of 16 bits at 24 kHz, in base64. */
const pcm = (seconds: number) => Buffer.alloc(48_000 * seconds).toString('base64');

interface Done {
  readonly response: BilledResponse;
}

let gateway: VoiceGateway;
let provider: RealtimeProvider;
let spine: Spine;

beforeAll(async () => {
  gateway = await startVoiceGateway();
  ({ provider, spine } = gateway);
});
afterAll(() => gateway.stop());

describe('a session of the openai SDK', () => {
  it('gets text and sound, and pays each response by its own usage', async () => {
    const before = await spine.balance();
    const session = gateway.sdk();
    const errors: unknown[] = [];
    session.on('error', (error) => errors.push(error));
    const on = <T>(type: string) => new Promise<T>((resolve) => session.once(type as never, resolve as never));
    const [created, side] = await Promise.all([on<Json>('session.created'), provider.session()]);
    expect(side.url).toBe('/v1/realtime?model=upstream-of-Voices');
    expect(side.headers.authorization).toBe('Bearer upstream-secret-canary');
    expect(created['session']).toMatchObject({ model: 'voice', max_output_tokens: 4096, instructions: 'Be kind.' });
    expect(JSON.stringify(created)).not.toContain('ek_secret');

    session.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Say hello' }] },
    });
    session.send({ type: 'response.create' });
    await side.take('response.create');
    const done = on<Done>('response.done');
    side.say('resp_1', 'hello', usage(100, 20, { cached: 50 }));
    const first = await done;
    // 50 × 4 + 50 × 0.4 + 20 × 16
    expect(first.response.usage).toMatchObject({ input_tokens: 100, output_tokens: 20, cost: 0.00054 });

    session.send({ type: 'response.create', response: { output_modalities: ['audio'], max_output_tokens: 'inf' } });
    const asked = await side.take('response.create');
    expect((asked['response'] as Json)['max_output_tokens']).toBe(4096);
    const second = on<Done>('response.done');
    const sounds: string[] = [];
    session.on('response.output_audio.delta', ({ delta }) => sounds.push(delta));
    side.begin('resp_2');
    side.send({
      type: 'response.output_audio.delta',
      response_id: 'resp_2',
      item_id: 'i',
      output_index: 0,
      content_index: 0,
      delta: pcm(2),
    });
    side.send({
      type: 'response.output_audio_transcript.delta',
      response_id: 'resp_2',
      item_id: 'i',
      output_index: 0,
      content_index: 0,
      delta: 'hello again',
    });
    side.done('resp_2', usage(150, 50, { output: 40 }));
    // 150 × 4 + 10 × 16 + 40 × 64
    expect((await second).response.usage.cost).toBe(0.00332);
    expect(sounds).toEqual([pcm(2)]);
    expect(errors).toEqual([]);

    const closed = new Promise((resolve) => session.socket.once('close', resolve));
    session.close();
    await closed;
    await side.closed;
    expect(await spine.faults()).toEqual([]);
    const after = await spine.balance();
    expect(before.available - after.available).toBe(540n + 3320n);
    const record = await spine.generation((await second).response.tollgate.generation_id);
    expect(record).toMatchObject({
      state: 'settled',
      cost_micro_usdc: 3320,
      tokens_prompt: 150,
      tokens_completion: 50,
      flags: [],
    });
    const sessionId = record.session_id;
    expect(sessionId).toBeTruthy();
    const other = await spine.generation(first.response.tollgate.generation_id);
    expect(other.session_id).toBe(sessionId);
  });
});

describe('raw clients', () => {
  it('tag each response by their header, and budgets of tags hold', async () => {
    const limits = (tag_budgets: readonly object[]) =>
      fetch(`${spine.url}/limits`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ tag_budgets }),
      });
    const open = () => openRealtime(gateway.url, spine.key, { headers: { 'x-tollgate-tags': 'team=voice' } });
    const client = await open();
    const side = await provider.session();
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_tagged', 'hello', usage(10, 2));
    const { response } = (await client.take('response.done')) as unknown as Done;
    const record = await spine.generation(response.tollgate.generation_id);
    expect(record).toMatchObject({ state: 'settled', tags: { team: 'voice' } });
    client.socket.close();
    await client.closed;
    expect((await limits([{ tag: 'team=voice', limit: 0.000001, limit_reset: 'daily' }])).status).toBe(200);
    const refused = await open().then(
      (other) => other.take('error').finally(() => other.socket.close()),
      (error: unknown) => error,
    );
    expect(JSON.stringify(refused)).toContain('for calls tagged team=voice is too low');
    expect((await limits([])).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  });

  it('pay what came of a response that ends in a word that nobody knows', async () => {
    const client = await openRealtime(gateway.url, spine.key);
    const side = await provider.session();
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.begin('resp_odd');
    side.send({ type: 'response.output_text.delta', response_id: 'resp_odd', delta: 'hello' });
    side.done('resp_odd', usage(10, 2), { status: 'pondered' });
    const { response } = (await client.take('response.done')) as unknown as Done;
    const record = await spine.generation(response.tollgate.generation_id);
    expect(record).toMatchObject({
      outcome: 'cut',
      finish_reason: 'pondered',
      tokens_prompt: 10,
      tokens_completion: 2,
    });
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
  });

  it('may send their key as a subprotocol, as browsers do', async () => {
    const client = await openRealtime(gateway.url, null, {
      protocols: ['realtime', `openai-insecure-api-key.${spine.key}`],
    });
    expect(client.socket.protocol).toBe('realtime');
    const side = await provider.session();
    expect(JSON.stringify(side.headers)).not.toContain(spine.key);
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
  });

  it('are refused with a status where there is no session', async () => {
    const base = spine.origin.replace('http', 'ws');
    await expect(openRealtime(gateway.url, null)).rejects.toMatchObject({ status: 401 });
    await expect(openRealtime(`${base}/v1/realtime`, spine.key)).rejects.toMatchObject({ status: 400 });
    await expect(openRealtime(`${base}/v1/realtime?model=nobody`, spine.key)).rejects.toMatchObject({ status: 404 });
    await expect(openRealtime(`${base}/v1/realtime?model=test/model`, spine.key)).rejects.toMatchObject({
      status: 422,
    });
    await expect(openRealtime(`${base}/v1/other?model=voice`, spine.key)).rejects.toMatchObject({ status: 404 });
    const poor = await spine.tenant('poor', '0.01');
    await expect(openRealtime(gateway.url, poor.key)).rejects.toMatchObject({ status: 402 });
    provider.refuse = { status: 401, body: '{"error":{"message":"bad key upstream-secret-canary"}}' };
    await expect(openRealtime(gateway.url, spine.key)).rejects.toSatisfy(
      (error: Json) => error['status'] === 500 && !String(error['body']).includes('canary'),
    );
    provider.refuse = null;
    expect((await spine.get('/realtime')).status).toBe(426);
    const chat = await spine.post('/chat/completions', { model: 'voice', messages: [{ role: 'user', content: 'x' }] });
    expect(chat.status).toBe(422);
    expect(await spine.faults()).toEqual([]);
  });
});
