import { readFileSync } from 'node:fs';
import type { Worker } from 'node:cluster';
import type { ReloadOutcome, SupervisorMessage } from './workers-messages.ts';

/** The longest wait for a worker to reload. */
const RELOAD_MS = 30_000;

/** Reloads all workers from one text of the file, so that all get the same even if the file changes meanwhile. */
interface WorkersReload {
  all(workers: readonly Worker[]): Promise<ReloadOutcome>;
  took(from: Worker, id: number, outcome: ReloadOutcome): void;
  gone(worker: Worker): void;
}

export function createWorkersReload(configFile: string | null): WorkersReload {
  const waiting = new Map<string, (outcome: ReloadOutcome) => void>();
  const place = (worker: Worker, id: number) => `${worker.id}/${id}`;
  let last = 0;
  return {
    async all(workers) {
      const id = (last += 1);
      const text = readText(configFile);
      const outcomes = await Promise.all(
        workers.map((worker) =>
          new Promise<ReloadOutcome>((resolve) => {
            const late = { problem: `worker ${worker.id} did not answer in time`, isConfig: false };
            const timer = setTimeout(resolve, RELOAD_MS, late);
            waiting.set(place(worker, id), (outcome) => {
              clearTimeout(timer);
              resolve(outcome);
            });
            send(worker, { tollgate: 'reload', id, text });
          }).finally(() => waiting.delete(place(worker, id))),
        ),
      );
      return together(outcomes);
    },
    took: (from, id, outcome) => waiting.get(place(from, id))?.(outcome),
    gone(worker) {
      const ended = { problem: `worker ${worker.id} ended meanwhile`, isConfig: false };
      for (const [key, tell] of waiting) if (key.startsWith(`${worker.id}/`)) tell(ended);
    },
  };
}

/**
 * The report if all workers reloaded. Else the first problem, with the number of workers that reloaded nevertheless.
 */
function together(outcomes: readonly ReloadOutcome[]): ReloadOutcome {
  const failed = outcomes.find((outcome) => 'problem' in outcome);
  if (failed === undefined) return outcomes[0] ?? { problem: 'no worker runs at the moment', isConfig: false };
  const taken = outcomes.filter((outcome) => 'report' in outcome).length;
  if (taken === 0) return failed;
  return {
    problem: `${failed.problem}. ${taken} of ${outcomes.length} workers took the file, so calls may cost two prices: reload again`,
    isConfig: false,
  };
}

function readText(file: string | null): string | null {
  try {
    return file === null ? null : readFileSync(file, 'utf8');
  } catch {
    // The workers report what is wrong with the file.
    return null;
  }
}

function send(worker: Worker, message: SupervisorMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}
