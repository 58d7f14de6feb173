import { expect, test } from 'vitest';
import { valueToNotify } from '../../../src/a2a/protocol/notifications.ts';
import { exactly, exactValue } from '../../../src/a2a/wire/edit-json.ts';
import { translateEvent } from '../../../src/a2a/wire/translate.ts';
import { useCallsWorld } from './support/calls-world.ts';
import { serveRaw } from './support/raw-served.ts';

const calls = useCallsWorld();

/** A double holds none of these. */
const [SENT, SAID, BARE] = ['12345678901234567890', '-9223372036854775807', '9007199254740993'] as const;

const artifact = (taskId: string) =>
  `{"artifactUpdate":{"taskId":"${taskId}","contextId":"c","artifact":{"artifactId":"a","parts":[{"data":{"n":${SAID}}},{"data":${BARE}}]}}}`;
const task = (taskId: string) =>
  `{"task":{"id":"${taskId}","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"data":{"n":${SAID}}},{"data":${BARE}}]}],"metadata":{"n":${SAID}}}}`;
const working = (taskId: string) =>
  `{"task":{"id":"${taskId}","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`;

const rpc = (method: string) => (message: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"message":${message}}}`;
const whole = (message: string) => `{"message":${message}}`;
const legacy = `{"kind":"message","role":"user","messageId":"ID","parts":[{"kind":"data","data":{"n":${SENT}}}],"metadata":{"n":${SENT}}}`;
const proto = `{"role":"ROLE_USER","message_id":"ID","content":[{"data":{"data":{"n":${SENT}}}}],"metadata":{"n":${SENT}}}`;

test.each([
  ['message/send', '', rpc('message/send'), legacy],
  ['message/stream', '', rpc('message/stream'), legacy],
  ['0.3 over HTTP+JSON', '/v1/message:send', whole, proto],
  ['a stream of 0.3 over HTTP+JSON', '/v1/message:stream', whole, proto],
])(
  "an agent of 1.0 and a client of 0.3 get each other's integers with all digits: %s",
  async (name, path, bodyOf, message) => {
    const id = `large-${name.replaceAll(/\W+/g, '-')}`;
    const { agent, url } = await serveRaw(
      calls.world,
      ({ request, response, id: rpcId }) => {
        const result = (text: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(rpcId)},"result":${text}}`;
        if (request.method === 'SendMessage')
          return void response.writeHead(200, { 'content-type': 'application/json' }).end(result(task(id)));
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const event of [working(id), artifact(id), task(id)]) response.write(`data: ${result(event)}\n\n`);
        response.end();
      },
      { modern: true },
    );
    const reply = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${calls.world.spine.key}`,
        'content-type': 'application/json',
        'a2a-version': '0.3',
      },
      body: bodyOf(message.replace('ID', id)),
    });
    const text = await reply.text();
    expect(reply.status, text).toBe(200);
    const sent = agent.received.find(({ method }) => method?.startsWith('Send'))!.body;
    expect(sent).toContain(`"data":{"n":${SENT}}`);
    expect(sent).toContain(`"metadata":{"n":${SENT}}`);
    expect(text).toContain(`{"n":${SAID}}`);
    // Data of 0.3 is an object.
    expect(text).toContain(`{"value":${BARE}}`);
    await calls.world.spine.quiet();
  },
);

test('texts without long numbers are not parsed again', () => {
  const text = '{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"metadata":{"n":1.5}}}';
  const value: unknown = JSON.parse(text);
  expect(exactValue(text, value)).toBe(value);
  const long = text.replace('1.5', SENT);
  expect(JSON.stringify(translateEvent('1.0', '0.3', exactValue(long, JSON.parse(long))))).toContain(`{"n":${SENT}}`);
});

test('a notification has them, too', () => {
  const text = artifact('t');
  const told = valueToNotify('1.0', { text, value: JSON.parse(text), large: null });
  expect(JSON.stringify(told)).toBe(text);
});

test('a part of a UUID is not a long number, and a number with a large exponent is kept', () => {
  const text = '{"id":"0b1e4005-7c1f-4e3a-9d2e-400512e45678","n":[1.5e3,42]}';
  const value: unknown = JSON.parse(text);
  expect(exactValue(text, value)).toBe(value);
  for (const number of ['1e400', '-2.5E+999', '9007199254740993'])
    for (const around of [`{"n":${number}}`, `[0, ${number}]`, `[${number}]`])
      expect(JSON.stringify(exactly(around))).toBe(around.replace(' ', ''));
});
