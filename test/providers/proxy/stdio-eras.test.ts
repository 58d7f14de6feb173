import { afterEach, expect, it } from 'vitest';
import { askEra } from '../../../src/providers/proxy/stdio/era.ts';
import { openPipe, type Pipe } from '../../../src/providers/proxy/stdio/pipe.ts';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { toolOfScript } from '../../support/provider-proxy.ts';

let pipe: Pipe;
afterEach(() => pipe.kill());

/** Asks a server that answers with what `answer`, the body of a function of the message, returns. */
function eraOf(answer: string, discoverMs?: number): ReturnType<typeof askEra> {
  const { target } = toolOfScript('t', '-', [], {}, { args: ['-e', PROGRAM, answer] });
  if (target.kind !== 'command') throw new Error('no command');
  const log = createLog({ level: 'debug', style: 'json', secrets: [], write() {}, now: Date.now });
  pipe = openPipe({ service: 't', target, env: { PATH: process.env['PATH'] }, log });
  return askEra(pipe, { version: '0', discover: true, ...(discoverMs === undefined ? {} : { discoverMs }) });
}
const PROGRAM = `
const answer = new Function('message', process.argv[1]);
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  const said = message.id === undefined ? undefined : answer(message);
  if (said) console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...said }));
});`;
const DISCOVERED = `{ result: { supportedVersions: ['2026-07-28'] } }`;
const INITIALIZED = `{ result: { protocolVersion: '2025-06-18' } }`;
const on = (method: string, said: string) => `if (message.method === '${method}') return ${said};`;
const refuse = (code: number) => `return { error: { code: ${code}, message: 'no' } };`;
const LEGACY = { kind: 'legacy', initialized: { protocolVersion: '2025-06-18' } };
const MODERN = { kind: 'modern', discovered: { supportedVersions: ['2026-07-28'] } };

it.each([
  ['discover alone', on('server/discover', DISCOVERED) + refuse(-32022), MODERN],
  ['both', on('server/discover', DISCOVERED) + on('initialize', INITIALIZED), MODERN],
  ['initialize, after "method not found"', on('initialize', INITIALIZED) + refuse(-32601), LEGACY],
  ['initialize, after whatever other error', on('initialize', INITIALIZED) + refuse(-32602), LEGACY],
  ['neither, by "method not found"', refuse(-32601), { kind: 'modern', discovered: null }],
  [
    'discover, with revisions that are older',
    on('server/discover', `{ result: { supportedVersions: ['2025-11-25'] } }`) + on('initialize', INITIALIZED),
    LEGACY,
  ],
])('a server that knows %s', async (_what, answer, era) => {
  expect(await eraOf(answer)).toEqual(era);
});

it('a server that refuses both cannot be used', async () => {
  await expect(eraOf(refuse(-32603))).rejects.toThrow('refused to initialize');
});

it('a server that passes over what it does not know is begun with initialize', async () => {
  expect(await eraOf(on('initialize', INITIALIZED), 50)).toEqual(LEGACY);
});

it('a modern server that was slow to start is taken for what it is', async () => {
  expect(await eraOf(on('server/discover', DISCOVERED) + refuse(-32022), 0)).toEqual(MODERN);
});

it('a server that ends when it is asked has no era', async () => {
  expect(await eraOf('process.exit(1)')).toBeNull();
});
