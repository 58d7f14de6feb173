import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuByThread, cpuMicros } from './program.ts';
import { tollgate } from './targets.ts';

const ROUNDS = 9;
const AT_ONCE = 16;
const REPLY = JSON.stringify({
  id: 'chat-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
});

/** Two gateways that differ in one setting. */
interface Pair {
  /** Configuration lines with the setting on, and with the setting off. */
  readonly settings: readonly [on: string, off: string];
  /** Number of chats in one turn. */
  readonly calls: number;
  /** Milliseconds to wait after each turn, so that its background work can finish. */
  readonly afterMs: number;
  /** Label of the gateway with the setting on, such as "with calls added up". */
  readonly words: string;
}

/**
 * Lets two gateways handle chats in turns. Prints the cost of a chat for each, by thread: the median of nine turns, in
 * microseconds of CPU. An upstream in this process answers the chats.
 */
export async function chatInTurns({ settings, calls, afterMs, words }: Pair): Promise<void> {
  const upstream = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(REPLY);
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const gateways = await Promise.all(settings.map((lines) => startGateway(lines, port)));
  try {
    for (const gateway of gateways) await gateway.chats(calls);
    const used = (pid: number) => {
      const { user, system } = cpuByThread(pid).get('WorkerThread')!;
      return { main: cpuMicros(pid, pid), workers: user + system, all: cpuMicros(pid) };
    };
    const micros = gateways.map(() => ({ main: [] as number[], workers: [] as number[], all: [] as number[] }));
    for (let round = 0; round < ROUNDS; round += 1)
      // The order is always the same, because a thread that has ended after 10 s without work starts again.
      for (const [index, { pid, chats }] of gateways.entries()) {
        const before = used(pid);
        await chats(calls);
        await pause(afterMs);
        const after = used(pid);
        for (const kind of ['main', 'workers', 'all'] as const)
          micros[index]![kind].push((after[kind] - before[kind]) / calls);
      }
    for (const [threads, of] of [
      ['main thread', 'main'],
      ['threads of the database', 'workers'],
      ['all threads', 'all'],
    ] as const) {
      const [on, off] = micros.map((each) => middle(each[of])) as [number, number];
      process.stdout.write(
        `a chat, ${threads}: ${on.toFixed(0)} µs of CPU ${words}, ${off.toFixed(0)} µs without, ratio ${(on / off).toFixed(3)}\n`,
      );
    }
  } finally {
    for (const gateway of gateways) await gateway.stop();
    upstream.close();
    upstream.closeAllConnections();
  }
}

/** The median of the values. */
export function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

async function startGateway(lines: string, port: number) {
  const blocks = `${lines}
[[models]]
name = "bench/model"
display_name = "Bench"
provider_name = "Bench"
context_length = 10000
max_output_tokens = 100
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "m"
api_base = "http://127.0.0.1:${port}/v1"
`;
  const gateway = await tollgate(port, { blocks, logLevel: 'info' });
  const body = JSON.stringify({ model: 'bench/model', messages: [{ role: 'user', content: 'Yes?' }], max_tokens: 9 });
  const chat = async () => {
    const answer = await fetch(`http://127.0.0.1:${gateway.port}${gateway.path}`, {
      method: 'POST',
      headers: { ...gateway.headers, 'content-type': 'application/json' },
      body,
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`a chat was answered with ${answer.status}: ${text}`);
  };
  return {
    pid: gateway.pid!,
    stop: () => gateway.stop(),
    async chats(count: number) {
      let left = count;
      const worker = async () => {
        while (left-- > 0) await chat();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    },
  };
}
