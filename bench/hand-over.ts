/** What it costs to ask another process or another thread, and to wait for its answer. See `--help`. */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { middle } from './in-turns.ts';
import { WAYS, type Asked } from './hand-over/ways.ts';

const HELP = `node bench/hand-over.ts [--rates 100,500,max] [--rounds 5] [--seconds 2]
  --rates  questions a second, at regular times; max: 32 at once, each followed by the next. Those of one turn of the
           event loop are one message, and so are their answers
A question has 400 bytes and an answer 60, as a lock of the ledger and its result. Nothing is decided or written.
CPU is of the process and of the one that answers, all threads, less what the same program needs without asking.
"process": over a Unix socket. "thread": a worker thread, both ways over a MessagePort. "waiting thread": a worker
thread that sleeps in Atomics.wait and has no event loop; questions are in shared memory, answers come over a MessagePort.
`;

const { values: flags } = parseArgs({
  options: {
    rates: { type: 'string', default: '100,500,max' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    help: { type: 'boolean' },
  },
});

const AT_ONCE = 32;
const WARM_MS = 500;
/** For what V8 has put off. */
const SETTLE_MS = 300;

interface Cost {
  /** CPU microseconds for each question, with those of the program that asks. */
  readonly cpu: number;
  readonly ms: number;
}

async function costOf(asked: Asked, rate: string, ms: number): Promise<Cost> {
  const waited: number[] = [];
  const ask = async () => {
    const begun = performance.now();
    await asked.ask();
    waited.push(performance.now() - begun);
  };
  const before = await asked.cpuMicros();
  const begun = performance.now();
  if (rate === 'max') {
    const asker = async () => {
      while (performance.now() - begun < ms) await ask();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, asker));
  } else {
    for (let at = 0; at < ms; at += 1_000 / Number(rate)) {
      const early = begun + at - performance.now();
      if (early > 0) await pause(early);
      await ask();
    }
  }
  return { cpu: ((await asked.cpuMicros()) - before) / waited.length, ms: middle(waited) };
}

async function main(): Promise<void> {
  if (flags.help) return void process.stdout.write(HELP);
  console.log('| questions/s | asked | CPU µs a question | waits for the answer, p50 ms |');
  console.log('| ---: | --- | ---: | ---: |');
  for (const rate of flags.rates.split(',')) {
    const costs = new Map<string, Cost[]>();
    for (let round = 0; round < Number(flags.rounds); round += 1)
      for (const [name, open] of Object.entries(WAYS)) {
        const asked = await open();
        // V8 compiles the code of the two sides during these.
        await costOf(asked, 'max', WARM_MS);
        await pause(SETTLE_MS);
        const cost = await costOf(asked, rate, Number(flags.seconds) * 1_000);
        costs.set(name, [...(costs.get(name) ?? []), cost]);
        const closed = asked.ends === null ? null : once(asked.ends, 'exit');
        asked.close();
        await closed;
      }
    const alone = costs.get('nobody')!;
    for (const [name, each] of costs) {
      if (name === 'nobody') continue;
      const cpu = middle(each.map((cost, round) => cost.cpu - alone[round]!.cpu));
      console.log(`| ${rate} | ${name} | ${cpu.toFixed(1)} | ${middle(each.map(({ ms }) => ms)).toFixed(3)} |`);
    }
  }
}

await main();
