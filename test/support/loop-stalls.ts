import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { resolve } from 'node:path';
import type { Stalls } from './loop-watch.ts';

/** The environment of a program that reports the stalls of its event loop at this socket. */
export const watchedAt = (socketPath: string) => ({
  STALLS_SOCKET: socketPath,
  NODE_OPTIONS: `--import ${resolve(import.meta.dirname, 'loop-watch.ts')}`,
});

/** Returns the program's longest stalls since the last request. */
export async function stallsAt(socketPath: string): Promise<Stalls> {
  const asked = request({ socketPath, path: '/' });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return JSON.parse(text) as Stalls;
}
