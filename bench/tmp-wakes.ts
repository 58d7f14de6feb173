import { readdirSync, readFileSync } from 'node:fs';
import { startGenerator } from './generator.ts';
import { announcedPort, startProgram, cpuMicros } from './program.ts';
import { TARGETS } from './targets.ts';
import { MODELS } from './upstream/replies.ts';
import { jobFor } from './measure.ts';
const upstream = startProgram([new URL('upstream/main.ts', import.meta.url).pathname]);
const g = startGenerator();
const port = await announcedPort(upstream);
const t = await TARGETS.find((k) => k.name === (process.argv[3] ?? 'tollgate'))!.start(
  port,
  process.argv[4] ? process.argv[4].split(' ') : [],
);
const rate = Number(process.argv[2]);
await g.run(jobFor(t, MODELS.small, { kind: 'closed', connections: 32, durationMs: 6000 }));
const snap = () => {
  const m = new Map<string, number[]>();
  for (const id of readdirSync(`/proc/${t.pid}/task`)) {
    try {
      const st = readFileSync(`/proc/${t.pid}/task/${id}/status`, 'utf8');
      const name = /^Name:\s+(.*)$/m.exec(st)![1]! + ' ' + id;
      m.set(name, [Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(st)![1]), cpuMicros(t.pid!, Number(id))]);
    } catch {}
  }
  return m;
};
console.error('pid', t.pid);
const ms = Number(process.argv[5] ?? 5000);
const a = snap();
const r = await g.run(jobFor(t, MODELS.small, { kind: 'open', perSecond: rate, durationMs: ms }));
const b = snap();
for (const [n, [w, c]] of b) {
  const [w0, c0] = a.get(n) ?? [0, 0];
  const dw = (w! - w0!) / r.calls,
    dc = (c! - c0!) / r.calls;
  if (dw > 0.02 || dc > 2) console.log(n.padEnd(28), 'waits', dw.toFixed(2), 'cpu', dc.toFixed(0));
}
console.log('p50', r.latency.p50, 'p99', r.latency.p99);
await t.stop();
g.stop();
await upstream.stop();
