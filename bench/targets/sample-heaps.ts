/**
 * Writes the memory of each thread to `<thread>.json` in a folder, every few seconds. Used with
 * `--import .../sample-heaps.ts?<folder>`.
 */
import { writeFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { isMainThread, threadId } from 'node:worker_threads';

const SAMPLE_MS = 5_000;

const folder = decodeURIComponent(new URL(import.meta.url).search.slice(1));
// Threads get no arguments of the process, but this variable.
if (isMainThread) process.env['NODE_OPTIONS'] = `--import ${import.meta.url}`;
const write = () => {
  const { total_heap_size, used_heap_size } = getHeapStatistics();
  const { external } = process.memoryUsage();
  const memory = { heap: total_heap_size, used: used_heap_size, external, at: Date.now() };
  writeFileSync(`${folder}/${threadId}.json`, JSON.stringify(memory));
};
setInterval(write, SAMPLE_MS).unref();
