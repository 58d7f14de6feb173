import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createConsumerTag } from '#network';
import { COMPILED_ONCE } from '../../../support/compiled-once.ts';
import { dialIn, type DialledIn } from '../../../support/dial-in.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';

// One account that begins more sessions than a provided program has takes none from another account.

const SCRIPT = fileURLToPath(new URL('../../../support/stdio-mcp-server.ts', import.meta.url));

let spine: Spine;
let proxy: DialledIn;
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
  proxy = await dialIn({
    router: spine.origin,
    services: `[[tools]]\nname = "std/tool"\nprovider_name = "Std"\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify([COMPILED_ONCE, SCRIPT])}\nsessions_max = 3\npricing = { per_call = 0.001 }\n`,
  });
});
afterAll(async () => {
  await proxy?.close();
  await spine?.stop();
});

const post = (key: string, body: object, session: Record<string, string> = {}) =>
  fetch(`${spine.origin}/mcp/std/tool`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...session,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
  });
const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
const begin = async (key: string) => {
  const response = await post(key, { method: 'initialize', params });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return { 'mcp-session-id': response.headers.get('mcp-session-id')! };
};

test('sixteen sessions of one account leave another its own, and bare calls too', async () => {
  const [crowd, other] = await Promise.all([spine.tenant('crowd', '1'), spine.tenant('other', '1')]);
  const mine = await begin(other.key);
  const call = { method: 'tools/call', params: { name: 'echo', arguments: { text: 'hi' } } };
  for (let index = 0; index < 16; index += 1) await begin(crowd.key);
  for (const session of [mine, {}, await begin(other.key)]) {
    const response = await post(other.key, call, session);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(text).not.toContain('"error"');
  }
  await spine.quiet();
  expect(await spine.faults()).toEqual([]);
});

test('who a consumer is cannot be told from what tells it apart', () => {
  const tag = createConsumerTag(Buffer.alloc(32, 1));
  expect(tag('provider', 'tollgate:local:a')).toBe(tag('provider', 'tollgate:local:a'));
  const tags = [
    tag('provider', 'tollgate:local:a'),
    tag('provider', 'tollgate:local:b'),
    tag('other', 'tollgate:local:a'),
  ];
  expect(new Set([...tags, createConsumerTag(Buffer.alloc(32, 2))('provider', 'tollgate:local:a')]).size).toBe(4);
  for (const each of tags) expect(each).toMatch(/^[\w-]{22}$/);
});
