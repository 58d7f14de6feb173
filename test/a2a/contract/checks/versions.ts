import { expect } from 'vitest';
import { expectError, type Bench, type Checks } from '../bench.ts';
import { writeMessage, type Json } from '../shapes.ts';
import type { Reply } from '../client-calls.ts';

/** Which version is spoken (§3.6, §9.2, §11.2, §14.2.1). */
export const versionChecks: Checks = {
  'VER-01': async (bench) => {
    for (const version of ['9.9', '0.5']) {
      expectError(await echo(bench, { 'a2a-version': version }), 'versionNotSupported', bench);
    }
  },
  'VER-02': async ({ talk }) => {
    const message = writeMessage('0.3', 'echo x');
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: { message, configuration: { blocking: true } },
    });
    for (const version of [null, '']) {
      const reply = await talk.raw('POST', '/', body, { 'a2a-version': version });
      if (reply.error) expect(reply.error.code).toBe(-32009);
      else expect(reply.result()).toMatchObject({ kind: 'message', role: 'agent' });
    }
  },
  'VER-03': async (bench) => {
    expect((await echo(bench, { 'a2a-version': '1.0.1' })).result()).toHaveProperty('message');
  },
  'VER-04': async (bench) => {
    expect((await echo(bench, { 'a2a-version': null }, '?A2A-Version=1.0')).result()).toHaveProperty('message');
  },
  'VER-05': async (bench) => {
    expect((await echo(bench, { 'a2a-version': null, 'A2A-VERSION': '1.0' })).result()).toHaveProperty('message');
  },
  'VER-06': async (bench) => {
    const reply = await echo(bench, { 'a2a-version': '9.9' });
    expect(reply.error?.message).toMatch(/9\.9/u);
    expect(JSON.stringify(reply.json as Json)).toMatch(/1\.0/u);
  },
  'VER-07': async (bench) => {
    expect((await echo(bench, { 'a2a-version': '0.3' })).result()).toMatchObject({ kind: 'message' });
    expect((await echo(bench, { 'a2a-version': null })).result()).toMatchObject({ kind: 'message' });
  },
};

/** Sends `echo x` in the talk's own words under these headers. */
function echo({ talk }: Bench, headers: Readonly<Record<string, string | null>>, query = ''): Promise<Reply> {
  const params = { message: writeMessage(talk.version, 'echo x') };
  if (talk.binding === 'HTTP+JSON') return talk.raw('POST', `/message:send${query}`, JSON.stringify(params), headers);
  const method = talk.version === '1.0' ? 'SendMessage' : 'message/send';
  return talk.raw('POST', `/${query}`, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers);
}
