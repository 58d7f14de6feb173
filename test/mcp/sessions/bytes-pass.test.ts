import { expect, test } from 'vitest';
import { events, json, startScripted } from './scripted-server.ts';
import { INITIALIZE, open, post, startWorld } from './session-world.ts';

const CALL =
  '{ "jsonrpc":"2.0","params":{"arguments":{"n":1.0,"big":12345678901234567890},"name":"t","x":[ ]} ,"id" : 7,"method":"tools/call"}';

test('messages reach the server as they were written, with its session and the revision that was agreed on', async () => {
  const result =
    '{ "capabilities":{"tools":{}, "odd" : {"a":1.50}},"serverInfo":{"name":"s","version":"1"},"protocolVersion":"2025-06-18","_meta":{ }}';
  const server = await startScripted({
    initializeResult: result,
    answer: ({ message }, response) =>
      message.method === 'tools/call'
        ? json(response, `{"result":{"content":[] ,"z":1e2},"jsonrpc":"2.0" ,"id":7}`)
        : undefined,
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const initialize = JSON.stringify(INITIALIZE).replace('"id":0', '"id" : "a\\u0062" ');
  const opening = await post(gateway.url, 'alice', null, initialize);
  expect(await opening.text()).toBe(`{"jsonrpc":"2.0","id":"ab","result":${result}}`);
  const id = opening.headers.get('mcp-session-id');

  const answer = await post(gateway.url, 'alice', id, CALL);
  expect(answer.headers.get('x-cost-usd')).toBe('0.001');
  expect(await answer.text()).toMatch(
    /^\{"result":\{"content":\[\] ,"z":1e2,"_meta":\{"tollgate\/generation":\{[^}]+\}\}\},"jsonrpc":"2\.0" ,"id":7\}$/,
  );
  const notification =
    '{"method":"notifications/progress" ,"params":{"progress":1.0,"progressToken":"x"},"jsonrpc":"2.0"}';
  expect((await post(gateway.url, 'alice', id, notification)).status).toBe(202);
  const response = '{"id" :3,"result":{"roots":[ ]},"jsonrpc":"2.0"}';
  expect((await post(gateway.url, 'alice', id, response)).status).toBe(202);

  const sent = server.asked.filter(({ session }) => session === 'upstream-2');
  expect(sent.map(({ text }) => text)).toEqual([CALL, notification, response]);
  for (const { headers } of sent) expect(headers['mcp-protocol-version']).toBe('2025-06-18');
  const opened = server.asked.filter(({ message }) => message.method === 'initialize').at(-1)!;
  expect(opened.text).toBe(initialize);
  expect(opened.session).toBeUndefined();
  expect(await world.faults()).toEqual([]);
});

test('a word for tasks is taken back, of the client and of the server, and nothing else', async () => {
  const server = await startScripted({
    initializeResult:
      '{"protocolVersion":"2025-11-25","capabilities":{ "tools":{} ,"tasks":{"list":{}},"odd":1,"extensions":{"io.modelcontextprotocol/tasks":{}}},"serverInfo":{"name":"s","version":"1"}}',
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const declared = JSON.stringify(INITIALIZE).replace(
    '"capabilities":{',
    '"capabilities":{"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{}},',
  );
  const text = await (await post(gateway.url, 'alice', null, declared)).text();
  expect(
    JSON.stringify(server.asked.findLast(({ message }) => message.method === 'initialize')!.message),
  ).not.toContain('tasks');
  expect(text).toBe(
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{ "tools":{},"odd":1},"serverInfo":{"name":"s","version":"1"}}}',
  );
});

test('events come back as they were written, one by one, with their ids', async () => {
  const first = 'id: 1\nretry: 20\ndata: \n\n';
  const second =
    'data:{"jsonrpc":"2.0", "method":"notifications/message","params":{"level":"info","data":1.0}}\nid: a b\nevent: message\nodd: x\n\n';
  const third =
    'event: message\r\nid: ü\r\ndata: {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}\r\n\r\n';
  const go = Promise.withResolvers<void>();
  const server = await startScripted({
    async answer({ message }, response) {
      if (message.method !== 'tools/call') return;
      events(response, first, second);
      await go.promise;
      response.end(`${third}id: 4\ndata: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n`);
    },
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const reply = await post(gateway.url, 'alice', id, CALL);
  expect(reply.headers.get('content-type')).toBe('text/event-stream');
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (text.length < first.length + second.length) text += (await reader.read()).value;
  expect(text).toBe(first + second);
  go.resolve();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  const rest = text.slice(first.length + second.length);
  expect(rest.startsWith(third)).toBe(true);
  expect(rest.slice(third.length)).toMatch(
    /^event: message\nid: 4\ndata: \{"jsonrpc":"2\.0","id":7,"result":\{"content":\[\],"_meta":\{.*\}\}\}\n\n$/,
  );
  expect(await world.faults()).toEqual([]);
});

test.each(['input_required', 'task'])('a result of the type %s is complete, and paid', async (type) => {
  const text = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"${type}","content":[ ]}}`;
  const server = await startScripted({
    answer: ({ message }, response) => (message.method === 'tools/call' ? json(response, text) : undefined),
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const answer = await post(gateway.url, 'alice', await open(gateway.url, 'alice'), CALL);
  expect(await answer.text()).toContain(`{"resultType":"${type}","content":[ ]`);
  expect(gateway.endings).toEqual(['t: complete, 1000']);
  expect(await world.faults()).toEqual([]);
});

test.each([
  ['a response', (text: string) => text, 'application/json'],
  ['an event', (text: string) => `data: ${text}\n\n`, 'text/event-stream'],
])('%s that has a numeric id as a string gets the number of its request', async (_name, write, type) => {
  const server = await startScripted({
    answer({ message }, response) {
      if (message.method !== 'tools/call') return;
      response.writeHead(200, { 'content-type': type });
      response.end(write('{"jsonrpc":"2.0","id" : "7","result":{"content":[ ]}}'));
    },
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const answer = await post(gateway.url, 'alice', await open(gateway.url, 'alice'), CALL);
  expect(await answer.text()).toMatch(/^\{"jsonrpc":"2\.0","id" : 7,"result":\{"content":\[ \]/);
  expect(gateway.endings).toEqual(['t: complete, 1000']);
  expect(await world.faults()).toEqual([]);
});

test.each([0, 20_000])('a byte order mark before a response with %i characters of text is dropped', async (chars) => {
  const body = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"${'x'.repeat(chars)}"}]}}`;
  const server = await startScripted({
    answer: ({ message }, response) => (message.method === 'tools/call' ? json(response, `\uFEFF${body}`) : undefined),
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const answer = await post(gateway.url, 'alice', await open(gateway.url, 'alice'), CALL);
  expect((await answer.text()).startsWith(body.slice(0, -2))).toBe(true);
  expect(gateway.endings).toEqual(['t: complete, 1000']);
  expect(await world.faults()).toEqual([]);
});
