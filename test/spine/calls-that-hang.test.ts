import { expect, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { until } from '../support/tunnel-spine.ts';
import { spineOfFile } from '../support/of-file.ts';

/* While calls wait for a provider that does not answer, the operator sees which one it is. */

/** Long enough to ask the operator's pages after the line of the log, which comes within 2.5 s. */
const TIMEOUT_S = Math.ceil(atThisLoad(4_000) / 1_000);
const spine = spineOfFile(() => ({ toml: `${UNHURRIED}[upstream]\nhead_timeout_ms = ${TIMEOUT_S * 1_000}\n` }));

const lines = () =>
  spine.logs.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => 'oldest_s' in line);
const admin = async (path: string) =>
  (await fetch(spine.origin + path, { headers: { authorization: `Bearer ${spine.adminKey}` } })).text();

test('the log, the metrics and the admin API name the provider, the service, how many wait and for how long', async () => {
  const calls = [1, 2, 3].map(() => spine.post('/chat/completions', ask('hello !head-delay:forever')));
  await until(() => lines().length > 0);
  expect(lines()).toMatchObject([
    {
      level: 'warn',
      service: 'test/model',
      provider: 'Test',
      waiting: 3,
      timeout_s: TIMEOUT_S,
      msg: expect.stringContaining('head_timeout_ms'),
    },
  ]);
  const { data } = JSON.parse(await admin('/admin/v1/providers/calls')) as { readonly data: readonly object[] };
  expect(data).toEqual([
    { provider: 'Test', service: 'test/model', in_flight: 3, waiting: 3, oldest_wait_seconds: expect.any(Number) },
  ]);
  expect((data[0] as { readonly oldest_wait_seconds: number }).oldest_wait_seconds).toBeGreaterThanOrEqual(2);
  const of = '{gen_ai_operation_name="chat",gen_ai_request_model="test/model",gen_ai_provider_name="Test"}';
  const metrics = await admin('/metrics');
  expect(metrics).toContain(`tollgate_attempts_in_flight${of} 3\n`);
  expect(metrics).toContain(`tollgate_attempts_waiting${of} 3\n`);
  for (const reply of await Promise.all(calls)) expect(reply.status).toBe(422);
  await spine.quiet();
  await until(async () => (await admin('/metrics')).includes(`tollgate_attempts_in_flight${of} 0\n`));
  // Once a minute for a service.
  expect(lines()).toHaveLength(1);
});

test('a stream that has begun runs and does not wait', async () => {
  const reply = await spine.post('/chat/completions', ask('hello !tokens:30 !token-ms:200', { stream: true }));
  const reader = reply.body!.getReader();
  await reader.read();
  await until(async () => {
    const text = await admin('/admin/v1/providers/calls');
    return text.includes('"in_flight":1') && text.includes('"waiting":0');
  });
  for (;;) if ((await reader.read()).done) break;
  await spine.quiet();
});
