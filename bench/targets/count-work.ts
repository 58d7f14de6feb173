/**
 * Loaded into a target before its own code. The signal SIGUSR2 begins a phase, and the next one ends it and writes
 * what the main thread did in it to `results/work.json`: bytes in odd phases, calls of functions in even ones, because
 * counting calls allocates.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { PerformanceObserver, constants } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

interface Bytes {
  readonly allocated: number;
  /** Of the old heap. */
  readonly old: number;
}

function bytesNow(): Bytes {
  let old = 0;
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics())
    if (!/^new|^read_only|^code/.test(name)) old += used;
  return { allocated: getHeapStatistics().total_allocated_bytes, old };
}

if (isMainThread) {
  const session = new Session();
  session.connect();
  let phase = 0;
  let before: Bytes | null = null;
  let majors = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as unknown as { readonly detail: { readonly kind: number } }[])
      if (entry.detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) majors += 1;
  }).observe({ entryTypes: ['gc'] });
  const folder = new URL('../results/', import.meta.url);
  const write = (content: object) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(new URL('work.json.new', folder), JSON.stringify(content));
    renameSync(new URL('work.json.new', folder), new URL('work.json', folder));
  };
  process.on('SIGUSR2', () => {
    phase += 1;
    if (phase % 4 === 1) {
      majors = 0;
      before = bytesNow();
    } else if (phase % 4 === 2 && before) {
      const after = bytesNow();
      write({ allocated: after.allocated - before.allocated, old: after.old - before.old, majors });
    } else if (phase % 4 === 3) {
      session.post('Profiler.enable');
      session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    } else {
      session.post('Profiler.takePreciseCoverage', (error, { result }) => {
        if (error) throw error;
        const functions: [name: string, count: number][] = [];
        for (const script of result)
          for (const { functionName, ranges } of script.functions)
            if (ranges[0]!.count > 0)
              functions.push([`${script.url}:${ranges[0]!.startOffset} ${functionName}`, ranges[0]!.count]);
        session.post('Profiler.stopPreciseCoverage');
        write({ functions });
      });
    }
  });
}
