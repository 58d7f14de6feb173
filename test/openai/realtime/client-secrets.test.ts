import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { escrowOf } from '#billing';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../../support/wallets.ts';
import { openRealtime, type Json } from './support/realtime-client.ts';
import { usage } from './support/realtime-provider.ts';
import { startVoiceGateway, voiceBlock, type VoiceGateway } from './support/voice-gateway.ts';

// A server gets a short-lived secret with its API key. With it, a browser opens sessions of one model, nothing else.

const OTHER = modelBlock({ name: 'other', provider: 'Others', url: 'http://127.0.0.1:1/v1' });
/** Of the gateway, while a test has stopped its clock. */
let stoppedAt: number | null = null;
let gateway: VoiceGateway;
let spine: Spine;
let anonymousUrl: string;
beforeAll(async () => {
  gateway = await startVoiceGateway({
    toml: `${UNHURRIED}${SIGN_IN_TOML}[billing]\ndrain_ms = 2000\n${OTHER}`,
    now: () => stoppedAt ?? Date.now(),
    elapsed: () => performance.now(),
  });
  ({ spine } = gateway);
  anonymousUrl = gateway.url.replace('?model=voice', '');
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await gateway.stop();
});

interface Made {
  readonly value: string;
  readonly expires_at: number;
  readonly session: Json;
}
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const ask = (key: string, session: Json, more: object = {}) =>
  spine.post('/realtime/client_secrets', { session, ...more }, bearer(key));
async function make(key: string, session: Json = {}, more: object = {}): Promise<Made> {
  const response = await ask(key, { type: 'realtime', model: 'voice', ...session }, more);
  const made = (await response.json()) as Made;
  expect(response.status, JSON.stringify(made)).toBe(200);
  return made;
}
const withSession = (url: string, secret: string) =>
  Promise.all([openRealtime(url, secret), gateway.provider.session()]);
const balanceOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))!.available;

describe('a secret of the official SDK', () => {
  it('opens sessions with its configuration, which the account of the key pays', async () => {
    const { account, key } = await spine.tenant('shop', '10');
    const { host, port, hostname } = new URL(spine.origin);
    const { realtime } = new OpenAI({ apiKey: key, baseURL: `${spine.origin}/v1` });
    const before = Math.floor(Date.now() / 1000);
    const secret = await realtime.clientSecrets.create({
      expires_after: { anchor: 'created_at', seconds: 60 },
      session: {
        type: 'realtime',
        model: 'voice',
        instructions: 'Be brief.',
        max_output_tokens: 100,
        output_modalities: ['text'],
        audio: { input: { transcription: { model: 'whisper-1' }, turn_detection: null }, output: { voice: 'cedar' } },
      },
    });
    expect(secret.value).toMatch(/^ek_[\w-]+$/);
    expect(secret.expires_at).toBeGreaterThanOrEqual(before + 60);
    expect(secret.expires_at).toBeLessThan(before + 120);
    expect(secret.session).toMatchObject({
      object: 'realtime.session',
      type: 'realtime',
      model: 'voice',
      instructions: 'Be brief.',
      max_output_tokens: 100,
    });
    expect(JSON.stringify(secret.session)).not.toContain('whisper');

    const browser = new OpenAI({ apiKey: secret.value, baseURL: `https://${host}/v1` });
    const session = new OpenAIRealtimeWS(
      { model: 'voice', options: { createConnection: () => connect(Number(port), hostname) } },
      browser,
    );
    const side = await gateway.provider.session();
    const created = await new Promise<Json>((resolve) =>
      session.once('session.created', (event) => resolve(event as never)),
    );
    expect(created['session']).toMatchObject({ model: 'voice', instructions: 'Be brief.', max_output_tokens: 100 });
    expect((await side.take('session.update'))['session']).toEqual({
      type: 'realtime',
      instructions: 'Be brief.',
      max_output_tokens: 100,
      output_modalities: ['text'],
      audio: { input: { turn_detection: null }, output: { voice: 'cedar' } },
    });
    // Nobody with the secret raises the cap that its maker set.
    session.send({
      type: 'session.update',
      session: { type: 'realtime', instructions: 'Sing.', max_output_tokens: 'inf' },
    });
    expect((await side.take('session.update'))['session']).toMatchObject({
      instructions: 'Sing.',
      max_output_tokens: 100,
    });
    session.send({ type: 'response.create' });
    await side.take('response.create');
    const done = new Promise<Json>((resolve) => session.once('response.done', (event) => resolve(event as never)));
    side.say('resp_1', 'x'.repeat(50), usage(20, 10));
    const { tollgate, usage: billed } = (await done)['response'] as {
      readonly tollgate: { readonly generation_id: string };
      readonly usage: { readonly cost: number };
    };
    // 20 × 4 + 10 × 16
    expect(billed.cost).toBe(0.00024);
    session.close();
    await side.closed;
    expect(await spine.faults()).toEqual([]);
    expect(await balanceOf(account)).toBe(10_000_000n - 240n);
    expect(await spine.generation(tollgate.generation_id, key)).toMatchObject({ cost_micro_usdc: 240 });
  });

  it('opens several sessions as a subprotocol, without a model in the address', async () => {
    const { value } = await make(spine.key, { instructions: 'Hi' });
    const protocols = ['realtime', `openai-insecure-api-key.${value}`];
    for (const url of [gateway.url, anonymousUrl]) {
      const [client, side] = await Promise.all([openRealtime(url, null, { protocols }), gateway.provider.session()]);
      expect(client.socket.protocol).toBe('realtime');
      expect(new URL(side.url, 'ws://x').searchParams.get('model')).toBe('upstream-of-Voices');
      expect(JSON.stringify(side.headers)).not.toContain(value);
      expect(await client.take('session.created')).toMatchObject({ session: { model: 'voice', instructions: 'Hi' } });
      client.socket.close();
      await side.closed;
    }
  });

  it('is not stored, and says nothing of what it grants', async () => {
    const { account, key, hash } = await spine.tenant('quiet', '1');
    const { value } = await make(key, { instructions: 'The password is rose.' });
    const seen = Buffer.from(value.slice(3), 'base64url').toString('latin1');
    for (const part of [account, hash, 'rose', 'voice']) expect(seen).not.toContain(part);
    const listed = await (await spine.get('/keys', bearer(key))).text();
    expect(listed).not.toContain('ek_');
    expect((await ask(key, { model: 'voice' })).headers.get('cache-control')).toBe('no-store');
  });
});

describe('a secret', () => {
  const refusal = (url: string, secret: string) =>
    openRealtime(url, secret).then(
      () => null,
      (error: Error & { status: number }) => ({ status: error.status, message: error.message }),
    );

  it('expires, and what it has opened goes on', async () => {
    onTestFinished(() => void (stoppedAt = null));
    stoppedAt = Date.now();
    const { value, expires_at: until } = await make(spine.key, {}, { expires_after: { seconds: 10 } });
    const [client, side] = await withSession(gateway.url, value);
    await client.take('session.created');
    stoppedAt = until * 1000 - 500;
    const [second] = await withSession(gateway.url, value);
    second.socket.close();
    stoppedAt = until * 1000;
    expect(await refusal(gateway.url, value)).toMatchObject({
      status: 401,
      message: expect.stringContaining('expired'),
    });
    client.send({ type: 'response.create' });
    await side.take('response.create');
    side.say('resp_1', 'hello');
    expect((await client.done()).usage.cost).toBeGreaterThan(0);
    client.socket.close();
    await side.closed;
  });

  it('ends with its key: when the key is disabled, and when it is deleted', async () => {
    const { account, key, hash } = await spine.tenant('fired', '10');
    const { value } = await make(key);
    const [client] = await withSession(gateway.url, value);
    await client.take('session.created');
    await spine.app.keys.update(account, hash, { disabled: true });
    expect(await refusal(gateway.url, value)).toMatchObject({ status: 401 });
    client.send({ type: 'response.create' });
    client.send({ type: 'response.create' });
    expect((await client.closed).code).toBe(1008);
    await spine.app.keys.update(account, hash, { disabled: false });
    const [again] = await withSession(gateway.url, value);
    again.socket.close();
    await spine.app.keys.delete(account, hash);
    expect(await refusal(gateway.url, value)).toMatchObject({ status: 401 });
  });

  it('that was changed, made elsewhere or made up opens nothing', async () => {
    const { value } = await make(spine.key);
    const flipped = (at: number) => value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
    const other = await startSpine({ toml: UNHURRIED + voiceBlock(gateway.provider.url) });
    onTestFinished(() => other.stop());
    const made = await other.post('/realtime/client_secrets', { session: { model: 'voice' } });
    const foreign = ((await made.json()) as Made).value;
    // The gateways of the tests have the same identity, so here its key is not known.
    for (const forged of [
      flipped(5),
      flipped(40),
      flipped(value.length - 2),
      value.slice(0, -4),
      'ek_',
      foreign,
      `ek_${'A'.repeat(9_000)}`,
    ])
      expect(await refusal(gateway.url, forged), forged.slice(0, 20)).toMatchObject({ status: 401 });
    expect(await refusal(gateway.url, `${value}, svc-sk-v2-x`)).toMatchObject({ status: 401 });
  });

  it('is of no use at another route', async () => {
    const { value } = await make(spine.key);
    for (const [method, path, body] of [
      ['POST', '/chat/completions', { model: 'other', messages: [{ role: 'user', content: 'x' }] }],
      ['POST', '/realtime/client_secrets', { session: { model: 'voice' } }],
      ['GET', '/credits', null],
      ['GET', '/keys', null],
      ['GET', '/realtime', null],
    ] as const)
      for (const headers of [bearer(value), { 'x-api-key': value }]) {
        const response = await fetch(`${spine.url}${path}`, {
          method,
          headers: { ...headers, 'content-type': 'application/json' },
          ...(body === null ? {} : { body: JSON.stringify(body) }),
        });
        const { error } = (await response.json()) as { error: { message: string } };
        expect(response.status, `${path} ${error.message}`).toBe(401);
        expect(error.message).toContain('A client secret (ek_…) opens sessions at /realtime alone');
      }
  });

  it('is for its model alone, and for what its key may use', async () => {
    const { account, key, hash } = await spine.tenant('narrow', '10', { allowedServices: ['voice'] });
    const { value } = await make(key);
    const whole = await make(spine.key);
    expect(await refusal(`${anonymousUrl}?model=other`, whole.value)).toMatchObject({
      status: 403,
      message: expect.stringContaining('for voice alone'),
    });
    expect(await refusal(`${anonymousUrl}?model=voice&model=other`, value)).toMatchObject({ status: 400 });
    const wider = await ask(key, { model: 'other' });
    expect(wider.status).toBe(403);
    await spine.app.keys.update(account, hash, { allowedServices: ['other'] });
    expect(await refusal(gateway.url, value)).toMatchObject({ status: 403 });
  });

  it('spends no more than its key may', async () => {
    const { key } = await spine.tenant('thrifty', '10', { limit: 1_000n });
    const { value } = await make(key);
    expect(await refusal(gateway.url, value)).toMatchObject({ status: 402, message: expect.stringContaining('limit') });
  });
});

describe('a request for a secret', () => {
  it.for([
    ['without a model', { session: {} }, 'session.model'],
    ['without a session', {}, 'session'],
    ['of a transcription', { session: { type: 'transcription', model: 'voice' } }, 'session.type'],
    ['with a template', { session: { model: 'voice', prompt: { id: 'p' } } }, 'session.prompt'],
    ['with a tool server', { session: { model: 'voice', tools: [{ type: 'mcp' }] } }, 'session.tools'],
    ['with an unknown field', { session: { model: 'voice', voice: 'x' } }, 'session.voice'],
    ['for too short a time', { session: { model: 'voice' }, expires_after: { seconds: 9 } }, 'expires_after.seconds'],
    ['for too long', { session: { model: 'voice' }, expires_after: { seconds: 7_201 } }, 'expires_after.seconds'],
    ['from another moment', { session: { model: 'voice' }, expires_after: { anchor: 'x' } }, 'expires_after.anchor'],
    ['too long for a header', { session: { model: 'voice', instructions: 'x'.repeat(8_000) } }, 'session'],
  ] as const)('%s is refused', async ([, body, param]) => {
    const response = await spine.post('/realtime/client_secrets', body);
    expect(await response.json()).toMatchObject({ error: { code: 400, param } });
  });

  it('needs a model that is served here', async () => {
    expect((await ask(spine.key, { model: 'nobody' })).status).toBe(404);
    expect((await ask(spine.key, { model: 'other' })).status).toBe(422);
  });

  it('needs a key', async () => {
    const { url } = spine;
    const body = JSON.stringify({ session: { model: 'voice' } });
    const headers = { 'content-type': 'application/json' };
    expect((await fetch(`${url}/realtime/client_secrets`, { method: 'POST', headers, body })).status).toBe(401);
    const wallet = await signInHeaders(solanaWallet());
    const signedIn = await fetch(`${url}/realtime/client_secrets`, {
      method: 'POST',
      headers: { ...headers, ...wallet },
      body,
    });
    expect(signedIn.status).toBe(403);
    expect(await signedIn.json()).toMatchObject({ error: { message: expect.stringContaining('Only an API key') } });
  });
});
