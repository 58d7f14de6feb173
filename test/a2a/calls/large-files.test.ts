import { expect, test } from 'vitest';
import { heldBy, LEGACY_REST, LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, taskResult, writeEvent } from './support/raw-served.ts';

// Files in an answer may be as large as images. Its other text has the limit of any reply.

const TEXT_MAX = 256 * 1024;
const FILES_MAX = 4 * 1024 * 1024;
const calls = useCallsWorld(
  `[upstream]\nreply_bytes_max = ${TEXT_MAX}\nimages_reply_bytes_max = ${FILES_MAX}\n[media]\nfree_bytes_min = 1\n`,
);
/** The end of each file tells it apart from the others. */
const fileOf = (bytes: number, name: string) => `${'A'.repeat(bytes)}${Buffer.from(name).toString('base64')}`;
const FIRST = fileOf(2 * 1024 * 1024, 'the first');
const SECOND = fileOf(1024 * 1024, 'the second');

const inForm = (legacy: boolean, raw: string, name: string): object =>
  legacy
    ? { kind: 'file', file: { bytes: raw, name, mimeType: 'image/png' } }
    : { raw, filename: name, mediaType: 'image/png' };
const textPart = (legacy: boolean, text: string) => (legacy ? { kind: 'text', text } : { text });

/** An agent whose answers have two files, or what the words of the message ask for. */
const serveFiles = (pricing = 'per_call = 0.001') =>
  serveRaw(
    calls.world,
    (exchange) => {
      const { request, response, id, error } = exchange;
      const method = request.method ?? '';
      const legacy = /^(?:message|tasks)\//.test(method);
      const streams = method === 'message/stream' || method === 'SendStreamingMessage';
      const result = (value: object) => (streams ? writeEvent(exchange, value) : exchange.result(value));
      if (method === 'CancelTask' || method === 'tasks/cancel') return error(-32002, 'it is completed');
      const parts = request.body.includes('long text')
        ? [textPart(legacy, 'é'.repeat(TEXT_MAX))]
        : request.body.includes('too large')
          ? [inForm(legacy, fileOf(FILES_MAX, 'x'), 'x.png')]
          : [inForm(legacy, FIRST, 'a.png'), textPart(legacy, 'Here they are'), inForm(legacy, SECOND, 'b.png')];
      if (request.body.includes('an error')) {
        const failed = { code: -32603, message: 'it failed', data: { raw: fileOf(1024 * 1024, 'secret') } };
        return void response.end(JSON.stringify({ jsonrpc: '2.0', id, error: failed }));
      }
      const artifacts = [{ artifactId: 'a', parts }];
      if (!request.body.includes('a message')) {
        const { task } = taskResult('files', 'COMPLETED', { artifacts });
        const shown = legacy ? { ...task, kind: 'task', status: { state: 'completed' } } : task;
        if (streams) {
          const update = { taskId: 'files', contextId: 'context-of-files', artifact: artifacts[0]! };
          const status = { ...task, artifacts: undefined, kind: 'task', status: { state: 'working' } };
          writeEvent(exchange, legacy ? status : taskResult('files', 'WORKING'));
          writeEvent(exchange, legacy ? { kind: 'artifact-update', ...update } : { artifactUpdate: update });
        }
        result(legacy || method === 'GetTask' ? shown : { task: shown });
        return void response.end();
      }
      const used = request.body.includes('priced') ? { 'tollgate/usage': { completion: 100_000 } } : {};
      const message = { messageId: 'answer', role: legacy ? 'agent' : 'ROLE_AGENT', parts, metadata: used };
      result(legacy ? { kind: 'message', ...message } : { message });
      response.end();
    },
    { pricing },
  );

const filesIn = (value: unknown): string[] => {
  const found: string[] = [];
  JSON.stringify(value, (name, member: unknown) => {
    if ((name === 'raw' || name === 'bytes' || name === 'fileWithBytes') && typeof member === 'string')
      found.push(member);
    return member;
  });
  return found;
};
/** Compared without a diff, which would be of megabytes. */
const same = (value: unknown) => filesIn(value).map((file) => (file === FIRST ? 1 : file === SECOND ? 2 : file.length));

test.each([RPC, REST, LEGACY_RPC, LEGACY_REST])('are delivered, kept and shown: $name', async (wire) => {
  const { url, agent } = await serveFiles();
  const talk = calls.talk(url, wire);
  const saying = (messageId: string) => ({ message: { messageId } });
  expect(
    await calls.spent(async () => {
      const message = await talk.sent('a message', saying('message'));
      expect(same(message.json)).toEqual([1, 2]);
      expect(heldBy(message)['metadata']).toMatchObject({ 'tollgate/generation': { cost: '0.001' } });
      const task = await talk.sent('a task', saying('task'));
      expect(same(task.json)).toEqual([1, 2]);
      expect(new Set(same(await talk.get('files')))).toEqual(new Set([1, 2]));
      const again = await talk.sent('a message', saying('message'));
      expect(again.text.slice(-100)).toBe(message.text.slice(-100));
      expect(same(again.json)).toEqual([1, 2]);
    }),
  ).toBe(2n * MESSAGE_PRICE);
  expect(agent.received.filter(({ body }) => body.includes('"parts"'))).toHaveLength(2);
});

test.each([RPC, REST, LEGACY_RPC])('are delivered in the events of a stream: $name', async (wire) => {
  const { url } = await serveFiles();
  expect(
    await calls.spent(async () => {
      const stream = await calls.talk(url, wire).stream('a task');
      await stream.rest();
      expect(stream.wire.map(({ data }) => same(JSON.parse(data)))).toEqual([[], [1, 2], [1, 2]]);
      expect(stream.wire.at(-1)!.data.slice(-400)).toContain(`"cost":"0.001"`);
    }),
  ).toBe(MESSAGE_PRICE);
});

test.each(['long text', 'too large'])('what is still too large is charged and told: %s', async (words) => {
  const { url } = await serveFiles();
  const told = await calls.talk(url).sent(`a message, ${words}`);
  expect(told.text).toContain('is charged but cannot be delivered');
  expect(told.text.length).toBeLessThan(2_000);
});

test('a reported use is held against the files too', async () => {
  const { url } = await serveFiles('per_call = 0.001\ncompletion = 1\nper_call_max = 10');
  expect(await calls.spent(() => calls.talk(url).sent('a message, priced'))).toBe(1_000n + 100_000n);
});

test('an error with a file reaches nobody, because the secrets of its provider could be in it', async () => {
  const { url } = await serveFiles();
  expect(
    await calls.spent(async () => {
      const told = await calls.talk(url).sent('an error');
      expect(told.text).not.toContain('AAAA');
      expect(told.text.length).toBeLessThan(2_000);
    }),
  ).toBe(0n);
});
