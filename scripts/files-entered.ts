// Counts the files of src/ that one call of each kind enters and their lines, by the engine's own coverage: starts a
// gateway with its demo provider and makes each call six times. A file counts if each of the last five calls entered
// it, so that work beside the calls does not count: node scripts/files-entered.ts [--names]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { names: { type: 'boolean' } } });
const ROOT = new URL('..', import.meta.url);
const SRC = new URL('src/', ROOT).href;
const data = mkdtempSync(join(tmpdir(), 'tollgate-entered-'));
const gateway = spawn(
  process.execPath,
  ['--inspect=127.0.0.1:0', 'bin/tollgate.mjs', 'start', '--port', '0', '--data', data],
  // Without the variable the gateway replaces its process, and the address of the inspector with it.
  { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, MALLOC_ARENA_MAX: '1' } },
);
try {
  const [inspector, key, base] = await Promise.all([
    find(gateway.stderr, /ws:\/\/\S+/),
    find(gateway.stdout, /svc-sk-dev-\w+/),
    find(gateway.stdout, /http:\/\/(?:127\.0\.0\.1|localhost):\d+/),
  ]);
  const engine = await connect(inspector);
  await engine('Profiler.enable');
  await engine('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(base + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok || /"error":\s*\{/.test(text)) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`);
  };
  const messages = [{ role: 'user', content: 'Hello' }];
  const calls: readonly (readonly [string, () => Promise<void>])[] = [
    ['chat', () => post('/api/v1/chat/completions', { model: 'demo/chat', messages, stream: true })],
    ['chat in Anthropic’s form', () => post('/api/v1/messages', { model: 'demo/chat', messages, max_tokens: 64 })],
    [
      'MCP tools/call',
      () =>
        post(
          '/mcp/demo/tools',
          { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'roll_dice', arguments: {} } },
          { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
        ),
    ],
    [
      'A2A message/send',
      () =>
        post('/a2a/demo/agent', {
          jsonrpc: '2.0',
          id: 1,
          method: 'message/send',
          params: {
            message: {
              messageId: crypto.randomUUID(),
              role: 'user',
              parts: [{ kind: 'text', text: 'Roll 2d6' }],
            },
          },
        }),
    ],
  ];
  for (const [name, call] of calls) {
    await call();
    const rounds: (readonly string[])[] = [];
    for (let round = 0; round < 5; round += 1) {
      await engine('Profiler.takePreciseCoverage');
      await call();
      const { result } = (await engine('Profiler.takePreciseCoverage')) as { result: readonly Covered[] };
      const now = result
        .filter(({ url, functions }) => url.startsWith(SRC) && functions.some(({ ranges }) => ranges[0]!.count > 0))
        .map(({ url }) => url.slice(SRC.length));
      rounds.push(now);
    }
    const entered = rounds[0]!.filter((file) => rounds.every((round) => round.includes(file)));
    const lines = entered.map((file) => readFileSync(new URL(file, SRC), 'utf8').split('\n').length - 1);
    console.log(`${name.padEnd(28)} ${entered.length} · ${lines.reduce((all, one) => all + one, 0)}`);
    if (values.names)
      console.log(
        entered
          .toSorted()
          .map((file) => `    ${file}`)
          .join('\n'),
      );
  }
  engine.close();
} finally {
  gateway.kill('SIGINT');
  await once(gateway, 'exit');
  rmSync(data, { recursive: true, force: true });
}

interface Covered {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
}

/** The first text that matches, in the lines that a stream has from now on. */
function find(stream: NodeJS.ReadableStream, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    createInterface({ input: stream })
      .on('line', (line) => {
        const match = pattern.exec(line);
        if (match) resolve(match[0]);
      })
      .on('close', () => reject(new Error(`the gateway ended without ${pattern.source}`)));
  });
}

/** A function that sends a command to the inspector of the engine, and resolves with its result. */
async function connect(address: string) {
  const socket = new WebSocket(address);
  await once(socket, 'open');
  const waiting = new Map<number, (result: unknown) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id?: number; result: unknown };
    if (id !== undefined) waiting.get(id)?.(result);
  });
  let last = 0;
  const send = (method: string, params: object = {}): Promise<unknown> => {
    const id = (last += 1);
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => void waiting.set(id, resolve));
  };
  // An engine does not exit while its inspector is in use.
  return Object.assign(send, { close: () => socket.close() });
}
