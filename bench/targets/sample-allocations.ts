/**
 * Loaded into a target before its own code: at the signal SIGUSR2 it begins to sample the allocations of the main
 * thread, and at the next one it writes them to `results/profile/main.heapprofile`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { isMainThread } from 'node:worker_threads';

/** Bytes between two samples, on average. */
const INTERVAL = 4096;
/** Only what outlives a scavenge: loaded as `sample-allocations.ts?promoted`. */
const onlyPromoted = import.meta.url.endsWith('?promoted');

if (isMainThread) {
  const session = new Session();
  session.connect();
  let isSampling = false;
  process.on('SIGUSR2', () => {
    if (!isSampling) {
      isSampling = true;
      session.post('HeapProfiler.startSampling', {
        samplingInterval: INTERVAL,
        includeObjectsCollectedByMinorGC: !onlyPromoted,
        includeObjectsCollectedByMajorGC: true,
      });
      return;
    }
    session.post('HeapProfiler.stopSampling', (error, result) => {
      if (error) throw error;
      const folder = new URL('../results/profile/', import.meta.url);
      mkdirSync(folder, { recursive: true });
      writeFileSync(new URL('main.heapprofile', folder), JSON.stringify(result.profile));
    });
  });
}
