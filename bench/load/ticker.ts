/**
 * Reports when each request is due, in milliseconds of the machine's monotonic clock. Atomics.wait is accurate to about
 * 60 µs, a timer only to 1 ms.
 */
import { parentPort, workerData } from 'node:worker_threads';

const { perSecond, total } = workerData as { perSecond: number; total: number };
const sleeper = new Int32Array(new SharedArrayBuffer(4));
const clock = () => Number(process.hrtime.bigint()) / 1e6;
const begun = clock() + 5;

for (let index = 0; index < total; index++) {
  const due = begun + (index * 1000) / perSecond;
  const wait = due - clock();
  if (wait > 0) Atomics.wait(sleeper, 0, 0, wait);
  parentPort!.postMessage(due);
}
