import { type Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const REFUSED_PAUSE_MS = 500;

/**
 * Posts JSON and reads the answer without keeping it. Resolves with its status, and with 0 where the connection broke.
 */
export function post(
  agent: Agent,
  url: string,
  key: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(
      url,
      {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
      },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode!));
        response.on('error', () => resolve(0));
      },
    );
    asked.on('error', () => resolve(0));
    asked.end(JSON.stringify(body));
  });
}

/**
 * Does `call` again and again, so many at once, until `stop`, which resolves with how often each status was answered.
 */
export function crowd(width: number, call: () => Promise<number>): { stop(): Promise<ReadonlyMap<number, number>> } {
  const statuses = new Map<number, number>();
  let over = false;
  const members = Array.from({ length: width }, async () => {
    while (!over) {
      const status = await call();
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // A flood of refusals is another question.
      if (status === 429) await pause(REFUSED_PAUSE_MS);
    }
  });
  return {
    async stop() {
      over = true;
      await Promise.all(members);
      return statuses;
    },
  };
}
