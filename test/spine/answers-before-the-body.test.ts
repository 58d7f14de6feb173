import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../support/spine.ts';

// Who is refused while he still sends is told so: the rest of the body is read for a while before the connection may end.

const MIB = 1024 * 1024;
const TRIES = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 15;

let spine: Spine;
let slow: string;
beforeAll(async () => {
  spine = await startSpine({ toml: '[limits]\nchat_body_bytes_max = 2097152\nrequests_per_minute = 100000\nburst = 100000\n' });
  ({ key: slow } = await spine.tenant('poor', '1'));
});
afterAll(() => spine.stop());

/** What fetch got of each try: the status, or what it failed with. */
async function outcomes(path: string, bytes: number, headers: Record<string, string>) {
  const body = JSON.stringify({ model: 'test/model', text: 'x'.repeat(bytes) });
  const found = new Map<string, number>();
  const texts: string[] = [];
  for (let round = 0; round < TRIES / 5; round += 1)
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        const outcome = await fetch(spine.origin + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }).then(
          async (response) => {
            texts.push(await response.text());
            return String(response.status);
          },
          (error: Error) => String((error.cause as NodeJS.ErrnoException | undefined)?.code ?? error),
        );
        found.set(outcome, (found.get(outcome) ?? 0) + 1);
      }),
    );
  return { found: Object.fromEntries(found), text: texts[0] ?? '' };
}

test.each([
  ['/api/v1/chat/completions', 2, 'limits.chat_body_bytes_max'],
  ['/a2a/test/agent', 1, 'limits.body_bytes_max'],
  ['/mcp/test/tool', 1, 'limits.body_bytes_max'],
  ['/api/v1/keys', 1, 'limits.body_bytes_max'],
])('a body that is too large for %s: 413 that names the limit and the option', async (path, mib, option) => {
  const { found, text } = await outcomes(path, mib * MIB + 400_000, { authorization: `Bearer ${slow}` });
  expect(found).toEqual({ 413: TRIES });
  expect(text).toContain(`${mib * MIB} bytes`);
  expect(text).toContain(option);
});

test('a large body with a wrong key: 401', async () => {
  expect((await outcomes('/api/v1/chat/completions', 2 * MIB - 1000, { authorization: 'Bearer svc-sk-v2-wrong' })).found).toEqual({ 401: TRIES });
});

test('a body without an end is not read for ever', async () => {
  const { hostname, port } = new URL(spine.origin);
  const asked = request({
    hostname,
    port,
    method: 'POST',
    path: '/api/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${slow}` },
  });
  const chunk = Buffer.alloc(65_536, 'x');
  let sent = 0;
  let over = false;
  const more = () => {
    while (!over && sent < 256 * MIB) {
      sent += chunk.length;
      if (!asked.write(chunk)) return void asked.once('drain', more);
    }
  };
  asked.on('error', () => (over = true));
  asked.on('close', () => (over = true));
  const answered = once(asked, 'response');
  more();
  const [response] = (await answered) as [IncomingMessage];
  expect(response.statusCode).toBe(413);
  response.resume();
  await expect.poll(() => over, { timeout: 20_000 }).toBe(true);
  expect(sent).toBeLessThan(128 * MIB);
});
