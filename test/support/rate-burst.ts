import { ask, type Spine } from './spine.ts';
import { until } from './cluster.ts';

/** The result of a burst of calls by a caller without earlier calls. */
export interface Burst {
  readonly passed: number;
  readonly seconds: number;
  readonly answers: readonly Response[];
}

/**
 * Concurrent calls at each gateway. In everyday runs they are few, because the gateways share a thread and must still
 * read Redis's answers in time.
 */
const AT_ONCE = process.env['TOLLGATE_DEEP'] === '1' ? 24 : 9;
const ATTEMPTS_MAX = 5;

/** Makes one call with only these credentials, and reads its answer. */
export async function callAs(gateway: Spine, headers: Record<string, string>): Promise<Response> {
  const response = await fetch(`${gateway.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(ask('hello !tokens:1')),
  });
  await response.text();
  return response;
}

/** Makes this many calls, alternating between the gateways. */
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
 * Runs a test that needs shared limits. On a busy machine a gateway may get so little CPU time that it considers Redis
 * unreachable and limits locally, as it should. Then the test is run again. It may also limit locally since the test
 * before, which is not in its log again.
 */
export async function whileShared<T>(gateways: readonly Spine[], run: (attempt: number) => Promise<T>): Promise<T> {
  const local = () => gateways.reduce((sum, { logs }) => sum + logs.filter((line) => line.includes(LOCAL)).length, 0);
  for (let attempt = 1; ; attempt += 1) {
    await until(() => isShared(gateways), 'limits are shared');
    const before = local();
    try {
      return await run(attempt);
    } catch (error) {
      if (local() === before || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

const LOCAL = 'rate limits are local';

/**
 * Whether all gateways count through Redis. Each one is called first, because a gateway finds this out only when it is
 * called.
 */
export async function isShared(gateways: readonly Spine[]): Promise<boolean> {
  for (const gateway of gateways) await callAs(gateway, { authorization: `Bearer ${gateway.key}` });
  return gateways.every(
    ({ logs }) => !(logs.findLast((line) => line.includes('rate limits are')) ?? '').includes(LOCAL),
  );
}
