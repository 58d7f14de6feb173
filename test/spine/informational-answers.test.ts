import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What a provider may send before its answer: 102 and 103 are passed over. 100 is an answer to what nobody asked,
// and the error says so.

const BODY = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

let provider: Server;
let spine: Spine;
let before = '';

beforeAll(async () => {
  provider = createServer((socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const length = /content-length: (\d+)/i.exec(text);
      const head = text.indexOf('\r\n\r\n');
      if (!length || head === -1 || text.length < head + 4 + Number(length[1])) return;
      text = '';
      socket.write(before + ANSWER);
    });
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  const { port } = provider.address() as AddressInfo;
  spine = await startSpine({
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 0\n${modelBlock({ name: 'test/raw', provider: 'Raw', url: `http://127.0.0.1:${port}/v1` })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  provider.close();
});

const call = async () => {
  const response = await spine.post('/chat/completions', ask('hello', { model: 'test/raw' }));
  const body = (await response.json()) as { error?: { message: string } };
  expect(await spine.faults()).toEqual([]);
  return { status: response.status, message: body.error?.message };
};

test.each(['102 Processing', '103 Early Hints\r\nlink: </a>'])('%s is passed over', async (status) => {
  before = `HTTP/1.1 ${status}\r\n\r\n`.repeat(2);
  expect(await call()).toEqual({ status: 200, message: undefined });
});

test('100 Continue fails the call, costs nothing and is named', async () => {
  before = 'HTTP/1.1 100 Continue\r\n\r\n';
  const balance = await spine.balance();
  expect(await call()).toEqual({
    status: 500,
    message: 'Provider Raw failed: the provider answered 100 Continue, which it was not asked for',
  });
  expect(await spine.balance()).toEqual(balance);
  before = '';
  expect((await call()).status).toBe(200);
});
