import { ask, type Spine } from './spine.ts';
import { until } from './cluster.ts';

/** What came of a burst of calls by one caller that had made none before. */
export interface Burst {
  readonly passed: number;
  readonly seconds: number;
  readonly answers: readonly Response[];
}

/** Several at each gateway. By day so few that the gateways, which share a thread, still hear Redis in time. */
const AT_ONCE = process.env['TOLLGATE_DEEP'] === '1' ? 24 : 9;
const ATTEMPTS_MAX = 5;

/** One call, with these credentials and no others. Its answer has been read. */
export async function callAs(gateway: Spine, headers: Record<string, string>): Promise<Response> {
  const response = await fetch(`${gateway.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(ask('hello !tokens:1')),
  });
  await response.text();
  return response;
}

/** So many calls, taking turns at the gateways. */
export async function burst(
  gateways: readonly Spine[],
  calls: number,
  headersOf: (call: number) => Record<string, string>,
): Promise<Burst> {
  const begun = performance.now();
  const answers: Response[] = [];
  let next = 0;
  const caller = async () => {
    while (next < calls) {
      const index = next++;
      answers.push(await callAs(gateways[index % gateways.length]!, headersOf(index)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  return {
    passed: answers.filter(({ status }) => status === 200).length,
    seconds: (performance.now() - begun) / 1_000,
    answers,
  };
}

/**
 * Runs what holds only for limits that are shared. On a busy machine a gateway may be so starved that it takes
 * Redis for gone, and limits by itself, as it should: then it is run again.
 */
export async function whileShared<T>(gateways: readonly Spine[], run: (attempt: number) => Promise<T>): Promise<T> {
  const local = () => gateways.reduce((sum, { logs }) => sum + logs.filter((line) => line.includes(LOCAL)).length, 0);
  for (let attempt = 1; ; attempt += 1) {
    const before = local();
    try {
      return await run(attempt);
    } catch (error) {
      if (local() === before || attempt === ATTEMPTS_MAX) throw error;
      await until(() => isShared(gateways), 'limits are shared again');
    }
  }
}

const LOCAL = 'rate limits are local';

/** Whether all of them count through Redis. Each is called first, as only who is called finds out. */
export async function isShared(gateways: readonly Spine[]): Promise<boolean> {
  for (const gateway of gateways) await callAs(gateway, { authorization: `Bearer ${gateway.key}` });
  return gateways.every(
    ({ logs }) => !(logs.findLast((line) => line.includes('rate limits are')) ?? '').includes(LOCAL),
  );
}
