import { expect, test } from 'vitest';
import { ask, UNHURRIED } from '../../support/spine.ts';
import { spineOfFile } from '../../support/of-file.ts';

const spine = spineOfFile(() => ({ toml: `${UNHURRIED}[upstream]\nhead_timeout_ms = 1000\n` }));

const late = ask('hello !head-delay:forever');
const lineOf = (id: string) =>
  spine.logs
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find((line) => line['generation_id'] === id && 'attempts' in line);

test('an answer in one piece that comes too late says what it costs, is not repeated by SDKs, and was one attempt', async () => {
  const reply = await spine.post('/chat/completions', late);
  expect(reply.status).toBe(422);
  expect([reply.headers.get('x-should-retry'), reply.headers.get('x-cost-usd')]).toEqual(['false', '0.000008']);
  const { error } = (await reply.json()) as { error: { message: string } };
  expect(error.message).toMatch(
    /^Provider Test was too slow: .* costs 0\.000008 USD\. A stream that does not begin costs nothing/,
  );
  await spine.quiet();
  const id = reply.headers.get('x-generation-id')!;
  const told = { status: 422, error: 'unprocessable', reason: error.message };
  expect(lineOf(id)).toMatchObject({ attempts: 1, ...told, cost_micro_usd: 8 });
  const record = (await (await spine.get(`/generation?id=${id}`)).json()) as { readonly data: object };
  expect(record.data).toMatchObject({
    state: 'settled',
    status: 422,
    error_code: 'unprocessable',
    error: error.message,
    failed_attempts: [{ provider: 'Test', blame: 'provider', upstream_status: null, duration_ms: expect.any(Number) }],
  });
});

test('a stream that does not begin is free, and may be repeated', async () => {
  const before = await spine.balance();
  const reply = await spine.post('/chat/completions', { ...late, stream: true });
  expect([reply.status, reply.headers.get('x-should-retry')]).toEqual([500, null]);
  await reply.text();
  await spine.quiet();
  expect(await spine.balance()).toEqual(before);
});
