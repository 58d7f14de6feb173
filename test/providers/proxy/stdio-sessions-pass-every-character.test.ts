import { describe, expect, it } from 'vitest';
import { readEvents, stdioTool } from './stdio-tool.ts';

const tool = stdioTool();
/** Big numbers, unusual numbers, keys that JavaScript would sort, escapes that it would not write, spaces. */
const ODD = String.raw`{"b":12345678901234567890,"2":1.0,"1":-0,"e":1e400,"esc":"é\/😀\u2028","__proto__":{"a": 1 },"dup":{"x":1,"x":2}, "z" : [ 1 ,2.50 ]}`;

describe('a session passes on', () => {
  it('what the client says, character by character', async () => {
    await tool.start();
    const session = await tool.session();
    const text = `{"params":{"name":"echo","arguments":${ODD},"_meta":{"progressToken":1.50,"own":null}},"id":1e2,"x-own":[],"method":"tools/call","jsonrpc":"2.0"}`;
    expect((await tool.post(text, session)).status).toBe(200);
    expect(tool.journalled()).toContain(`line ${text}`);
    await tool.post(`{"jsonrpc":"2.0","method":"own/note","params":${ODD}}`, session);
    await tool.post('{"jsonrpc":"2.0",\r\n "id":7,\n\n"method":"ping"}', session);
    expect(tool.journalled()).toContain(`line {"jsonrpc":"2.0","method":"own/note","params":${ODD}}`);
    expect(tool.journalled()).toContain('line {"jsonrpc":"2.0",  "id":7, "method":"ping"}');
  });

  it('what the server says, character by character', async () => {
    await tool.start();
    const session = await tool.session();
    const say = (line: string, id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'line', arguments: { line } },
    });
    const response = `{"result":${ODD},"x":1.0,"id":5,"jsonrpc":"2.0"}`;
    expect((await tool.post(say(response, 5), session)).body.toString()).toBe(response);

    // Clients of the reference implementation accept this too.
    const asText = `{"result":${ODD},"id" : "8","jsonrpc":"2.0"}`;
    const expected = asText.replace('"8"', '8.0');
    const request = JSON.stringify(say(asText, 8)).replace('"id":8,', '"id":8.0,');
    expect((await tool.post(request, session)).body.toString()).toBe(expected);

    const [question, note, last] = [
      `{"id":12345678901234567890,"params":${ODD},"method":"sampling/createMessage","jsonrpc":"2.0"}`,
      `{"method":"notifications/message","params":${ODD},"jsonrpc":"2.0"}`,
      `{"jsonrpc":"2.0","id":6.0,"error":{"code":-1.0,"data":${ODD}}}`,
    ];
    const call = readEvents(tool.open(say(`${question}\r\n${note}\n${last}`, 6), session));
    expect([await call.next(), await call.next(), await call.next()]).toEqual([question, note, last]);
    expect(await call.over).toBe('complete');
  });
});

describe('a shared process', () => {
  const shared = { shared: true };

  it('gets every character but the id, and every character of its answer comes back', async () => {
    await tool.start([], {}, shared);
    const text = (id: string) =>
      `{"params":{"name":"echo","arguments":${ODD}},"id":${id},"x-own":[],"method":"tools/call","jsonrpc":"2.0"}`;
    await tool.post(text('"my\\u0069d"'));
    const [id] = tool.got('x-own').map((message) => String(message['id']));
    expect(tool.journalled()).toContain(`line ${text(id!)}`);

    const said = (own: string) => `{"result":${ODD},"x":1.0,"id":${own},"jsonrpc":"2.0"}`;
    const next = said(String(Number(id) + 1));
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'line', arguments: { line: next } } };
    const reply = await tool.post(`${JSON.stringify(call).slice(0, -1)},"id":"my\\u0069d"}`);
    expect(reply.body.toString()).toBe(said('"my\\u0069d"'));
  });
});
