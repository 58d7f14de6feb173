import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { UNHURRIED, type Spine } from '../../support/spine.ts';
import { openRealtime, type Json, type RawClient } from './support/realtime-client.ts';
import { usage, type ProviderSide } from './support/realtime-provider.ts';
import { startVoiceGateway, type VoiceGateway } from './support/voice-gateway.ts';

let gateway: VoiceGateway;
let spine: Spine;
beforeAll(async () => {
  // A session that asked for a response waits for it, although its client has left.
  gateway = await startVoiceGateway({ toml: `${UNHURRIED}[billing]\ndrain_ms = 500\n` });
  ({ spine } = gateway);
});
afterAll(() => gateway.stop());

async function open(): Promise<{ client: RawClient; side: ProviderSide }> {
  const [client, side] = await Promise.all([openRealtime(gateway.url, spine.key), gateway.provider.session()]);
  // A case that fails leaves no call behind, for which the next ones would wait.
  onTestFinished(() => client.socket.terminate());
  await client.take('session.created');
  return { client, side };
}

/** Waits until the provider has everything that was sent before. */
async function settled({ client, side }: { client: RawClient; side: ProviderSide }): Promise<void> {
  client.send({ type: 'input_audio_buffer.clear' });
  await side.take('input_audio_buffer.clear');
}

const update = (session: Json) => ({ type: 'session.update', event_id: 'mine', session });
const message = (part: Json) => ({
  type: 'conversation.item.create',
  event_id: 'mine',
  item: { type: 'message', role: 'user', content: [part] },
});

/** Events that a provider must not get, with the field that their error names. */
const REFUSED: readonly (readonly [string, Json, string])[] = [
  ['another model', update({ model: 'gpt-5' }), 'session.model'],
  ['a session of another type', update({ type: 'transcription' }), 'session.type'],
  ['a template of the provider', update({ prompt: { id: 'pmpt_1' } }), 'session.prompt'],
  ['traces', update({ tracing: 'auto' }), 'session.tracing'],
  ['a tool server', update({ tools: [{ type: 'mcp', server_url: 'https://x.example' }] }), 'session.tools'],
  ['a tool that the provider runs', update({ tools: [{ type: 'web_search' }] }), 'session.tools'],
  ['a choice of such a tool', update({ tool_choice: { type: 'mcp', server_label: 'x' } }), 'session.tool_choice'],
  ['an unknown field', update({ webhook_url: 'https://x.example' }), 'session.webhook_url'],
  [
    'a field of the beta',
    update({ input_audio_transcription: { model: 'whisper-1' } }),
    'session.input_audio_transcription',
  ],
  ['a field inside', update({ audio: { input: { url: 'https://x.example' } } }), 'session.audio.input.url'],
  [
    'responses that nobody asks for',
    update({ audio: { input: { turn_detection: { type: 'server_vad', idle_timeout_ms: 5_000 } } } }),
    'session.audio.input.turn_detection.idle_timeout_ms',
  ],
  ['video', update({ output_modalities: ['video'] }), 'session.output_modalities'],
  ['a cap of 0', update({ max_output_tokens: 0 }), 'session.max_output_tokens'],
  [
    'a response by a tool server',
    { type: 'response.create', event_id: 'mine', response: { tools: [{ type: 'mcp' }] } },
    'response.tools',
  ],
  [
    'a response of another model',
    { type: 'response.create', event_id: 'mine', response: { model: 'x' } },
    'response.model',
  ],
  [
    'an item that is named twice',
    {
      type: 'response.create',
      event_id: 'mine',
      response: { conversation: 'none', input: ['a', 'b', 'a'].map((id) => ({ type: 'item_reference', id })) },
    },
    'response.input[2].id',
  ],
  [
    'a reference to an item of the same input',
    {
      type: 'response.create',
      event_id: 'mine',
      response: {
        input: [
          { type: 'message', id: 'a', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
          { type: 'item_reference', id: 'a' },
        ],
      },
    },
    'response.input[1].id',
  ],
  [
    'a reference to nothing',
    { type: 'response.create', event_id: 'mine', response: { input: [{ type: 'item_reference' }] } },
    'response.input[0].id',
  ],
  [
    'an approval',
    { type: 'conversation.item.create', event_id: 'mine', item: { type: 'mcp_approval_response' } },
    'item.type',
  ],
  [
    'a picture to fetch',
    message({ type: 'input_image', image_url: 'https://x.example/1.png' }),
    'item.content[0].image_url',
  ],
  ['a file', message({ type: 'input_file', file_id: 'file_1' }), 'item.content[0].file_id'],
  ['an event of nobody', { type: 'transcription_session.update', event_id: 'mine' }, 'type'],
  ['an event without a type', { event_id: 'mine' }, 'type'],
  ['a name of Object', { type: 'constructor', event_id: 'mine' }, 'type'],
  ['sound that is none', { type: 'input_audio_buffer.append', event_id: 'mine', audio: [1] }, 'audio'],
];

describe('events that cost or reach more than a response', () => {
  it.for(REFUSED)('refuses %s', async ([, event, param]) => {
    const session = await open();
    const { client, side } = session;
    client.send(event);
    // Looked at first: an event that passes gets no error, which would be a long wait.
    await settled(session);
    expect(side.received.map(({ type }) => type)).toEqual(['session.update', 'input_audio_buffer.clear']);
    expect(await client.take('error')).toMatchObject({
      error: { type: 'invalid_request', code: 'invalid_request', param, event_id: 'mine' },
    });
    client.socket.close();
    await client.closed;
  });

  it('leaves out a transcription, and says so', async () => {
    const { client, side } = await open();
    await side.take('session.update');
    client.send(
      update({
        instructions: 'Hi',
        audio: { input: { transcription: { model: 'whisper-1' }, noise_reduction: { type: 'near_field' } } },
      }),
    );
    expect(await client.take('error')).toMatchObject({
      error: { param: 'session.audio.input.transcription', event_id: 'mine' },
    });
    const sent = (await side.take('session.update'))['session'] as Json;
    expect(sent).toEqual({
      type: 'realtime',
      instructions: 'Hi',
      audio: { input: { noise_reduction: { type: 'near_field' } } },
    });
    const shown = (await client.take('session.updated'))['session'] as Json;
    expect(shown).toMatchObject({ model: 'voice', audio: { input: { transcription: null } } });
    expect(JSON.stringify(shown)).not.toContain('ek_secret');
    client.socket.close();
    await client.closed;
  });

  it('lowers caps, and names what is twice in an event once', async () => {
    const { client, side } = await open();
    await side.take('session.update');
    client.send(update({ model: 'voice', max_output_tokens: 'inf' }));
    expect((await side.take('session.update'))['session']).toEqual({ type: 'realtime', max_output_tokens: 4096 });
    client.socket.send(
      '{"type":"session.update","session":{"max_output_tokens":99999,"tools":[{"type":"mcp"}],"tools":[]}}',
    );
    const { session } = await side.take('session.update');
    expect(session).toEqual({ type: 'realtime', max_output_tokens: 4096, tools: [] });
    client.send({ type: 'response.create', response: { max_output_tokens: 100_000, metadata: { a: 'b' } } });
    expect((await side.take('response.create'))['response']).toEqual({ max_output_tokens: 4096, metadata: { a: 'b' } });
    side.send({
      type: 'error',
      error: { type: 'invalid_request_error', code: 'x', message: 'no upstream-secret-canary', event_id: null },
    });
    expect(JSON.stringify(await client.take('error'))).not.toContain('canary');
    client.socket.close();
    await client.closed;
  });
});

describe('frames that are no events', () => {
  it('are answered, and the session goes on', async () => {
    const session = await open();
    const { client, side } = session;
    for (const frame of ['{"type":', '[]', '1', 'null', '"x"', `{"type":${'['.repeat(500)}`, Buffer.from([0, 1, 2])]) {
      client.socket.send(frame);
      expect(await client.take('error')).toMatchObject({ error: { type: 'invalid_request' } });
    }
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_1', 'hi', usage(10, 1));
    await client.take('response.done');
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
  });

  it('of 100 MB end the session before they are read', async () => {
    const { client, side } = await open();
    client.socket.send(Buffer.alloc(100 * 1024 * 1024, 0x20));
    expect((await client.closed).code).toBe(1009);
    await side.closed;
    expect(await spine.faults()).toEqual([]);
  });

  it('of a provider that are too large end the session', async () => {
    const { client, side } = await open();
    side.send({ type: 'response.output_text.delta', response_id: 'x', delta: 'x'.repeat(9 * 1024 * 1024) });
    expect((await client.closed).code).toBe(1011);
    await side.closed;
    expect(await spine.faults()).toEqual([]);
  });

  it('are pings: a hundred are answered, and more end the session', async () => {
    const session = await open();
    const { socket } = session.client;
    let pongs = 0;
    socket.on('pong', () => pongs++);
    for (let i = 0; i < 90; i++) socket.ping();
    await settled(session);
    expect(pongs).toBeGreaterThan(0);
    for (let i = 0; i < 20_000; i++) socket.ping('x'.repeat(100));
    expect(await session.client.closed).toMatchObject({ code: 1008 });
    await session.side.closed;
    expect(await spine.faults()).toEqual([]);
  });
});

describe('a client that does not read', () => {
  it('holds its provider back', async () => {
    const session = await open();
    const { client, side } = session;
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.begin('resp_1');
    await client.take('response.created');
    client.socket.pause();
    const delta = 'x'.repeat(100_000);
    const written = () =>
      new Promise<boolean>((resolve) => {
        const late = setTimeout(() => resolve(false), 500);
        side.socket.send(JSON.stringify({ type: 'response.output_text.delta', response_id: 'resp_1', delta }), () => {
          clearTimeout(late);
          resolve(true);
        });
      });
    let parts = 0;
    while (parts < 2_000 && (await written())) parts++;
    // What the sockets of the machine and the bounds of the gateway hold is a few megabytes, not 200.
    expect(parts).toBeLessThan(500);
    client.socket.resume();
    side.done('resp_1', usage(10, 4_000));
    await client.take('response.done');
    expect(client.events.filter(({ type }) => type === 'response.output_text.delta')).toHaveLength(parts + 1);
    client.socket.close();
    await client.closed;
    expect(await spine.faults()).toEqual([]);
  });
});

describe('strangers', () => {
  it('are refused: pages of other origins, two credentials, accounts of others', async () => {
    const headers = { origin: 'https://evil.example' };
    await expect(openRealtime(gateway.url, spine.key, { headers })).rejects.toMatchObject({ status: 403 });
    const another = await spine.tenant('another', '10');
    const protocols = ['realtime', `openai-insecure-api-key.${another.key}`];
    await expect(openRealtime(gateway.url, spine.key, { protocols })).rejects.toMatchObject({ status: 401 });
    await expect(openRealtime(gateway.url, null, { headers: { cookie: 'tollgate=x' } })).rejects.toMatchObject({
      status: 401,
    });
    const other = { 'x-tollgate-account': 'tollgate:local:other' };
    await expect(openRealtime(gateway.url, spine.key, { headers: other })).rejects.toMatchObject({ status: 403 });
  });
});
