import type { Worker } from 'node:cluster';
import { createMergedMetrics, linesLostSnapshot, shareText, type MetricSnapshot } from '#observe';
import type { SupervisorMessage } from './workers-messages.ts';

/** The longest wait for a worker's figures. If a worker does not answer, its last known figures count. */
const COLLECT_MS = 2_000;
/** The key of the supervisor's figures. Ids of workers begin at 1. */
const SUPERVISOR = 0;

/** Merges the figures of all workers, whichever worker is scraped. */
interface WorkersMetrics {
  /** Collects the figures of all workers, and sends them to the worker that asked. */
  answer(asker: Worker, id: number, workers: readonly Worker[]): Promise<void>;
  took(from: Worker, id: number, snapshot: readonly MetricSnapshot[]): void;
  gone(worker: Worker): void;
}

/** `logLinesLost`: the count of this process, the supervisor. */
export function createWorkersMetrics(logLinesLost: () => number): WorkersMetrics {
  const merged = createMergedMetrics();
  const collections = new Map<number, { readonly missing: Set<number>; readonly done: () => void }>();
  let last = 0;
  const arrived = (worker: Worker, { missing, done }: { readonly missing: Set<number>; readonly done: () => void }) => {
    if (missing.delete(worker.id) && missing.size === 0) done();
  };
  let asked: readonly Worker[] = [];
  // Several scrapes at the same time share one collection.
  const text = shareText(async () => {
    const collection = (last += 1);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, COLLECT_MS);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      collections.set(collection, { missing: new Set(asked.map((worker) => worker.id)), done });
      for (const worker of asked) send(worker, { tollgate: 'collect', id: collection });
    });
    collections.delete(collection);
    merged.take(SUPERVISOR, await linesLostSnapshot(logLinesLost));
    return merged.text();
  });
  return {
    async answer(asker, id, workers) {
      asked = workers;
      send(asker, { tollgate: 'scraped', id, text: await text() });
    },
    took(from, id, snapshot) {
      // A worker's last figures may come after it was counted as ended.
      if (from.isDead()) return;
      merged.take(from.id, snapshot);
      const collection = collections.get(id);
      if (collection) arrived(from, collection);
    },
    gone(worker) {
      merged.retire(worker.id);
      for (const collection of collections.values()) arrived(worker, collection);
    },
  };
}

function send(worker: Worker, message: SupervisorMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}
