import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { sendRaw } from '../support/raw-http.ts';
import { ask, MODEL, UNHURRIED } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { spineOfFile } from '../support/of-file.ts';

// How large and how odd a body may be: what is too much is refused quickly, and nobody else waits for it.

const MIB = 1024 * 1024;
/** How large a bomb is, of the 10 MiB that a body may have. A quarter of it may take a quarter of the time. */
const PART = process.env['TOLLGATE_DEEP'] === '1' ? 1 : 0.25;
const spine = spineOfFile(() => ({ toml: UNHURRIED }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const post = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) => {
  const response = await fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
    body,
  });
  return {
    status: response.status,
    body: (await response.json()) as { error: { type: string; code: number; message: string; param: string | null } },
  };
};
/** A request whose JSON is exactly so many bytes. */
const sized = (bytes: number) => {
  const empty = JSON.stringify(ask(''));
  return empty.replace('"content":""', `"content":"${'x'.repeat(bytes - empty.length)}"`);
};

describe('size', () => {
  test('10 MiB pass, one byte more is 413', async () => {
    const rich = sized(10 * MIB);
    expect(rich.length).toBe(10 * MIB);
    expect((await post(rich)).status).not.toBe(413);
    const { status, body } = await post(sized(10 * MIB + 1));
    expect(status).toBe(413);
    expect(body.error).toMatchObject({ type: 'payload_too_large', code: 413 });
  });

  test('a length that is announced too large is refused before it is sent', async () => {
    const head = `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\n`;
    const answer = await sendRaw(spine.origin, `${head}content-length: 99999999999\r\n\r\n{`);
    expect(answer.status).toBe(413);
  });

  test('a chunked body is counted as it comes', async () => {
    const chunk = `${(64 * 1024).toString(16)}\r\n${' '.repeat(64 * 1024)}\r\n`;
    const head = `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(spine.origin, head + chunk.repeat(170));
    expect(answer.status).toBe(413);
  });

  test('other endpoints take 1 MiB', async () => {
    const response = await spine.post('/keys', { name: 'x', padding: 'y'.repeat(MIB) });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { type: 'payload_too_large' } });
  });

  test('messages: 2,048 pass, 2,049 do not', async () => {
    const many = (count: number) =>
      ask('', { messages: Array.from({ length: count }, () => ({ role: 'user', content: 'x' })) });
    expect((await spine.post('/chat/completions', many(2048))).status).toBe(200);
    const response = await spine.post('/chat/completions', many(2049));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { param: 'messages', message: expect.stringContaining('2048') as string },
    });
  });
});

describe('structure', () => {
  const nested = (depth: number) =>
    JSON.stringify(ask('hello')).replace(/}$/, `,"deep":${'['.repeat(depth)}${']'.repeat(depth)}}`);
  const keyed = (keys: number) =>
    JSON.stringify(ask('hello')).replace(
      /}$/,
      `,"wide":{${Array.from({ length: keys }, (_, index) => `"k${index}":1`).join(',')}}}`,
    );

  test('64 levels pass, 65 do not', async () => {
    expect((await post(nested(63))).status).toBe(200);
    expect((await post(nested(64))).status).toBe(400);
  });

  test('10,000 keys pass, 10,001 do not', async () => {
    // model, messages, role, content, max_tokens, wide.
    expect((await post(keyed(10_000 - 6))).status).toBe(200);
    expect((await post(keyed(10_000 - 5))).status).toBe(400);
  });

  test.each([
    ['open brackets', () => '['.repeat(10 * PART * MIB)],
    ['open objects', () => '{"a":'.repeat(2 * PART * MIB)],
    ['many keys', () => `{${Array.from({ length: 700_000 * PART }, (_, index) => `"${index}":0`).join(',')}}`],
    ['many empty objects', () => `[${'{},'.repeat(3 * PART * MIB)}{}]`],
    ['long numbers', () => `{"model":"${MODEL}","messages":[${'12345678901234567890,'.repeat(400_000 * PART)}1]}`],
    ['one number of many digits', () => `{"model":"${MODEL}","messages":${'9'.repeat(9 * PART * MIB)}}`],
    ['quotes that are escaped', () => `{"model":"${'\\"'.repeat(4 * PART * MIB)}"}`],
    ['escapes', () => `{"model":"${'\\u0041'.repeat(1_600_000 * PART)}"}`],
    ['a string without end', () => `{"model":"${'x'.repeat(9 * PART * MIB)}`],
    ['keys that are all the same', () => `{${'"a":1,'.repeat(1_500_000 * PART)}"a":1}`],
    ['keys of the prototype', () => `{${'"__proto__":{},'.repeat(600_000 * PART)}"a":1}`],
    ['spaces', () => ' '.repeat(10 * PART * MIB)],
    ['zero bytes', () => '\0'.repeat(10 * PART * MIB)],
    ['stop sequences', () => JSON.stringify(ask('hello', { stop: Array.from({ length: 900_000 * PART }, () => 'x') }))],
  ])('a bomb of %s is refused, and a good call beside it does not wait', async (_name, make) => {
    const bomb = Buffer.from(make());
    const beside = async () => {
      const before = process.cpuUsage();
      // What keeps the event loop meanwhile is counted as well.
      await pause(20);
      const response = await spine.get('/key');
      await response.text();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    const sent = post(bomb);
    let slowest = 0;
    let done = false;
    void sent.finally(() => (done = true));
    while (!done) slowest = Math.max(slowest, await beside());
    const { status, body } = await sent;
    expect(status).toBe(400);
    expect(body.error.type).toBe('invalid_request');
    expect(body.error.message.length).toBeLessThan(500);
    // Of the processor's time, which other processes cannot stretch; the client of this test is in it, and a collection
    // of all that this worker holds, which a smaller bomb does not make shorter.
    expect(slowest).toBeLessThan(atThisLoad(Math.max(500, 1_000 * PART)));
  });
});

describe('form', () => {
  test.each([
    ['nothing', ''],
    ['spaces', '  \n'],
    ['an array', '[]'],
    ['null', 'null'],
    ['text', '"hello"'],
    ['a number', '7'],
    ['half an object', '{"model":"test/model"'],
    ['two objects', '{}{}'],
    ['single quotes', "{'model':'x'}"],
    ['a trailing comma', '{"model":"x",}'],
    ['a comment', '{/* */"model":"x"}'],
    ['NaN', '{"model":NaN}'],
    ['a control character in a string', '{"model":"a\nb"}'],
    ['a form', 'model=x&messages=y'],
  ])('%s', async (_name, text) => {
    const { status, body } = await post(text);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ type: 'invalid_request', code: 400 });
    expect(body.error.message).toMatch(/body|required/i);
  });

  test('a byte order mark before the object is no fault', async () => {
    expect((await post(`\u{FEFF}${JSON.stringify(ask('hello'))}`)).status).toBe(200);
  });

  test('bytes that are no UTF-8 are refused, not changed', async () => {
    for (const bad of [
      [0xff],
      [0xc3, 0x28],
      [0xed, 0xa0, 0x80],
      [0xf8, 0x88, 0x80, 0x80, 0x80],
      [0xc0, 0xaf],
      [0xe2, 0x82],
    ]) {
      const [before, after] = JSON.stringify(ask('MARK')).split('MARK') as [string, string];
      const { status, body } = await post(
        new Uint8Array(Buffer.concat([Buffer.from(before), Buffer.from(bad), Buffer.from(after)])),
      );
      expect(status).toBe(400);
      expect(body.error).toMatchObject({
        type: 'invalid_request',
        message: expect.stringContaining('UTF-8') as string,
      });
    }
    // All of what is UTF-8 passes, beyond the basic plane too.
    const fine = '\u{7f}\u{80}\u{7ff}\u{800}\u{fffd}\u{ffff}\u{10000}\u{10ffff}';
    expect((await post(JSON.stringify(ask(fine)))).status).toBe(200);
    expect(spine.provider.log.at(-1)!.body).toMatchObject({ messages: [{ content: fine }] });
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonx',
    'text/json',
  ])('content-type %s is refused', async (type) => {
    const { status, body } = await post(JSON.stringify(ask('hello')), { 'content-type': type });
    expect(status).toBe(400);
    expect(body.error.message).toContain('application/json');
  });

  test.each([
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON',
    'application/vnd.api+json',
    'application/json; x=y',
  ])('content-type %s is taken', async (type) => {
    expect((await post(JSON.stringify(ask('hello')), { 'content-type': type })).status).toBe(200);
  });

  test('a body without a content-type is refused in words', async () => {
    const body = JSON.stringify(ask('hello'));
    const answer = await sendRaw(
      spine.origin,
      `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({
      error: { type: 'invalid_request', message: expect.stringContaining('application/json') as string },
    });
  });

  test('no body at all is refused', async () => {
    const answer = await sendRaw(
      spine.origin,
      `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${spine.key}\r\ncontent-length: 0\r\n\r\n`,
    );
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { type: 'invalid_request', code: 400 } });
  });
});
