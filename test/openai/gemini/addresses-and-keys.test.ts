import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { describe, expect, test } from 'vitest';
import { MODEL, UNHURRIED } from '../../support/spine.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { spineOfFile } from '../../support/of-file.ts';

// Addresses and keys of the Gemini API as no SDK would send them.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

const BODY = { contents: [{ parts: [{ text: 'hello !tokens:4' }] }] };
const post = (address: string, headers: Record<string, string> = {}, body: unknown = BODY) =>
  fetch(spine.origin + address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const key = () => ({ 'x-goog-api-key': spine.key });

describe('a key', () => {
  test.each([
    ['x-goog-api-key', () => ({ 'x-goog-api-key': spine.key })],
    ['x-api-key', () => ({ 'x-api-key': spine.key })],
    ['Authorization', () => ({ authorization: `Bearer ${spine.key}` })],
    ['beside a dummy', () => ({ 'x-goog-api-key': 'AIzaDummy', authorization: `Bearer ${spine.key}` })],
    ['with a dummy beside it', () => ({ 'x-goog-api-key': spine.key, 'x-api-key': 'dummy' })],
  ])('is taken in %s', async (_name, headers) => {
    expect((await post(`/v1beta/models/${MODEL}:generateContent`, headers())).status).toBe(200);
  });

  test('in the address is not read, and not logged', async () => {
    const reply = await post(`/v1beta/models/${MODEL}:generateContent?key=${spine.key}`);
    expect(reply.status).toBe(401);
    expect(spine.logs.join('')).not.toContain(spine.key);
  });

  test('of another account beside it is refused', async () => {
    const other = await spine.tenant('other', '1');
    for (const headers of [
      { ...key(), authorization: `Bearer ${other.key}` },
      { ...key(), 'x-api-key': other.key },
    ]) {
      const reply = await post(`/v1beta/models/${MODEL}:generateContent`, headers);
      expect(reply.status).toBe(401);
      expect(await reply.text()).toContain('contain two different API keys');
    }
  });

  test('that is sent twice is refused', async () => {
    const body = JSON.stringify(BODY);
    const { status } = await sendRaw(
      spine.origin,
      `POST /v1beta/models/${MODEL}:generateContent HTTP/1.1\r\nhost: x\r\nx-goog-api-key: ${spine.key}\r\nX-Goog-Api-Key: other\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    );
    expect(status).toBe(401);
  });
});

describe('the lists of models', () => {
  const get = async (address: string, headers: Record<string, string> = {}) =>
    (await (await fetch(spine.origin + address, { headers })).json()) as { models?: object[]; data?: object[] };

  test('at the addresses of OpenAI’s API have the form that the client’s header names', async () => {
    for (const address of ['/v1/models', '/api/v1/models']) {
      expect((await get(address)).data?.length, address).toBeGreaterThan(0);
      expect((await get(address, { 'x-goog-api-key': 'any' })).models?.length, address).toBeGreaterThan(0);
    }
    expect((await get('/v1beta/models')).models?.length).toBeGreaterThan(0);
  });

  test('have pages', async () => {
    const first = (await get('/v1beta/models?pageSize=1')) as { models: object[]; nextPageToken?: string };
    expect(first.models).toHaveLength(1);
    for (const query of ['pageSize=0', 'pageSize=x', 'pageToken=x']) {
      const reply = await fetch(`${spine.origin}/v1beta/models?${query}`);
      expect([reply.status, (await reply.json()) as object]).toMatchObject([
        400,
        { error: { status: 'INVALID_ARGUMENT' } },
      ]);
    }
  });
});

test('the same body for another model, or in another form, is no repeat', async () => {
  const once = { ...key(), 'idempotency-key': 'one' };
  const at = (rest: string) => post(`/v1beta/models/${MODEL}${rest}`, once);
  const first = await at(':generateContent');
  expect(first.status).toBe(200);
  const again = await at(':generateContent');
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(await again.json()).toEqual(await first.json());
  for (const rest of [':floor:generateContent', ':streamGenerateContent', ':streamGenerateContent?alt=sse'])
    expect((await at(rest)).status, rest).toBe(409);
});

test('a model without `models/` before its name, as the AI SDK calls it, is called by all methods', async () => {
  for (const prefix of ['/v1beta', '/api/v1beta', '/api/v1'])
    for (const method of ['generateContent', 'streamGenerateContent?alt=sse', 'countTokens'])
      expect((await post(`${prefix}/${MODEL}:${method}`, key())).status, `${prefix} ${method}`).toBe(200);
  const embedded = await post(`/v1beta/${MODEL}:embedContent`, key(), { content: { parts: [{ text: 'x' }] } });
  expect(await embedded.text()).toContain('makes no embeddings');
  expect((await post(`/v1beta/${MODEL}:predict`, key())).status).toBe(404);
  const model = createGoogleGenerativeAI({ baseURL: `${spine.url}beta`, apiKey: spine.key })(MODEL);
  const { content } = await model.doGenerate({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello !tokens:4' }] }],
  });
  expect(content).toMatchObject([{ type: 'text', text: 'the toll is paid ' }]);
});

test('an unknown method of a model is refused in the form of the API, with those that there are', async () => {
  const reply = await post(`/v1beta/models/${MODEL}:predict`, key());
  const message =
    `"${MODEL}" has no method "predict". ` +
    'Its methods are generateContent, streamGenerateContent, countTokens, embedContent, batchEmbedContents';
  expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: 404, message } }]);
  const entry = await post(`/v1beta/models/${MODEL}`, key());
  expect([entry.status, entry.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  for (const method of ['GET', 'HEAD', 'PUT']) {
    const asked = await fetch(`${spine.origin}/v1beta/models/${MODEL}:generateContent`, { method, headers: key() });
    expect([asked.status, asked.headers.get('allow')], method).toEqual([405, 'POST']);
  }
  expect((await fetch(`${spine.origin}/v1beta/files`, { headers: key() })).status).toBe(404);
});

test('an array of events is whole JSON, also when it is cut', async () => {
  const reply = await post(`/v1beta/models/${MODEL}:streamGenerateContent`, key());
  expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
  const events = (await reply.json()) as { candidates: { content: { parts: { text: string }[] } }[] }[];
  expect(events.flatMap(({ candidates }) => candidates[0]!.content.parts.map(({ text }) => text)).join('')).toBe(
    'the toll is paid ',
  );
  const cut = { contents: [{ parts: [{ text: 'hello !tokens:40 !cut:2500' }] }] };
  const broken = await post(`/v1beta/models/${MODEL}:streamGenerateContent`, key(), cut);
  const last = ((await broken.json()) as object[]).at(-1);
  expect(JSON.stringify(last)).toMatch(/MAX_TOKENS|"error"/);
});
