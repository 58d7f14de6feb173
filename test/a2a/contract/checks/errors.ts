import { expect } from 'vitest';
import type { Bench, Checks } from '../bench.ts';
import { writeMessage, type Json } from '../shapes.ts';

/** JSON-RPC as such: its requests, its answers and its errors (§9.1–§9.5; 0.3 §6.11, §8.1). */
export const errorChecks: Checks = {
  'RPC-01': async (bench) => {
    const reply = await rpc(bench, '{"jsonrpc":"2.0","id":1,"method":');
    expect(reply.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32700 } });
  },
  'RPC-02': async (bench) => {
    const { talk } = bench;
    const reply = await rpc(
      bench,
      JSON.stringify({ id: 7, method: method(bench), params: { message: writeMessage(talk.version, 'task x') } }),
    );
    expect(reply.json).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } });
  },
  'RPC-03': async (bench) => {
    expect((await rpc(bench, JSON.stringify({ jsonrpc: '2.0', id: 7, params: {} }))).json).toMatchObject({
      error: { code: -32600 },
    });
    expect((await rpc(bench, JSON.stringify({ jsonrpc: '2.0', id: 7, method: 12, params: {} }))).json).toMatchObject({
      error: { code: -32600 },
    });
  },
  'RPC-04': async (bench) => {
    const reply = await rpc(bench, JSON.stringify({ jsonrpc: '2.0', id: 'a', method: 'tasks/foo', params: {} }));
    expect(reply.json).toMatchObject({ jsonrpc: '2.0', id: 'a', error: { code: -32601 } });
  },
  'RPC-05': async (bench) => {
    for (const params of [[], ['x'], 'text', null]) {
      const reply = await rpc(bench, JSON.stringify({ jsonrpc: '2.0', id: 1, method: method(bench), params }));
      expect([-32602, -32600]).toContain(reply.error?.code);
    }
  },
  'RPC-06': async (bench) => {
    for (const id of ['text', 'ü"\\', 0, 42, -1]) {
      const reply = await rpc(bench, request(bench, id));
      expect(reply.json).toMatchObject({ jsonrpc: '2.0', id });
    }
  },
  'RPC-07': async (bench) => {
    const good = (await rpc(bench, request(bench, 1))).json as Json;
    expect(Object.keys(good).toSorted()).toEqual(['id', 'jsonrpc', 'result']);
    const bad = (await rpc(bench, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/foo', params: {} })))
      .json as Json;
    expect(Object.keys(bad).toSorted()).toEqual(['error', 'id', 'jsonrpc']);
    expect(bad['error']).toMatchObject({ code: expect.any(Number), message: expect.stringMatching(/./u) });
  },
  'RPC-08': async ({ talk }) => {
    const data = (await talk.call('GetTask', { id: 'no-such-task' })).error?.raw['data'];
    expect(data).toEqual(expect.any(Array));
    for (const detail of data as Json[])
      expect(detail['@type']).toEqual(expect.stringMatching(/^type\.googleapis\.com\/./u));
  },
  'RPC-09': async ({ talk }) => {
    const data = (await talk.call('GetTask', { id: 'no-such-task' })).error?.raw['data'];
    expect(data).toContainEqual(
      expect.objectContaining({
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'TASK_NOT_FOUND',
        domain: 'a2a-protocol.org',
      }),
    );
  },
  'RPC-10': async (bench) => {
    expect((await rpc(bench, request(bench, 1))).contentType).toMatch(/^application\/json\b/u);
    expect((await rpc(bench, '{')).contentType).toMatch(/^application\/json\b/u);
  },
  'RPC-11': async (bench) => {
    const wrong = bench.talk.version === '1.0' ? 'message/send' : 'SendMessage';
    const params = { message: writeMessage(bench.talk.version, 'task x') };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: wrong, params });
    const reply = await bench.talk.raw('POST', '/', body, { 'a2a-version': bench.talk.version });
    expect(reply.error?.code).toBe(-32601);
  },
  'RPC-12': async (bench) => {
    for (const id of [null, undefined]) {
      const reply = await rpc(bench, request(bench, id));
      expect(reply.json).toMatchObject({ jsonrpc: '2.0', id: null, result: expect.anything() });
      const stranger = await rpc(bench, JSON.stringify({ jsonrpc: '2.0', id, method: 'tasks/foo', params: {} }));
      expect(stranger.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32601 } });
    }
  },
  'RPC-13': async (bench) => {
    for (const body of ['"text"', '42', 'null', '[]']) {
      const reply = await rpc(bench, body);
      expect(reply.json, body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: expect.any(Number) } });
      expect([-32600, -32700]).toContain(reply.error?.code);
    }
  },
};

const method = ({ talk }: Bench) => (talk.version === '1.0' ? 'SendMessage' : 'message/send');
const request = (bench: Bench, id: unknown) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: method(bench),
    params: { message: writeMessage(bench.talk.version, 'echo x') },
  });
const rpc = ({ talk }: Bench, body: string) => talk.raw('POST', '/', body);
