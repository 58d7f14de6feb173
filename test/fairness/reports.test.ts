import { expect, inject, it, onTestFinished } from 'vitest';
import { ask, startSpine, UNHURRIED } from '../support/spine.ts';
import { BOTH_ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';

// Reports are read in threads or connections of their own, and every account may request them.

it.each(BOTH_ENGINES)(
  'an account that requests many reports at once gets a few, and others theirs, on %s',
  async (engine) => {
    const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    const spine = await startSpine({ toml: UNHURRIED, ...(fresh && { databaseUrl: fresh.url }) });
    onTestFinished(async () => {
      await spine.stop();
      await fresh?.drop();
    });
    const [greedy, patient] = [await spine.tenant('greedy', '5'), await spine.tenant('patient', '5')];
    const read = (key: string, path: string) => spine.get(path, { authorization: `Bearer ${key}` });
    const month = new Date().toISOString().slice(0, 7);
    const paths = [
      '/analytics/own?group_by=day',
      '/analytics/own?time_zone=Europe/Berlin',
      `/statements/${month}`,
      '/activity',
    ];
    const many = Array.from({ length: 400 }, (_, at) => read(greedy.key, paths[at % paths.length]!));
    const call = await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${patient.key}` });
    expect(call.status).toBe(200);
    expect((await read(patient.key, '/analytics/own')).status).toBe(200);
    const counts = new Map<number, number>();
    for (const answer of await Promise.all(many)) {
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      if (answer.status !== 429) continue;
      expect(answer.headers.get('retry-after')).toBe('2');
      expect(await answer.text()).toContain('Too many figures are being read at once. Retry later');
    }
    expect(new Set(counts.keys())).toEqual(new Set([200, 429]));
    expect(counts.get(200)).toBeGreaterThanOrEqual(32);
    expect(counts.get(429)).toBeGreaterThan(0);
    expect((await read(greedy.key, paths[0]!)).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  },
);

it('an account that downloads many files at once gets a few, and none is left over', async () => {
  const spine = await startSpine({ toml: UNHURRIED });
  onTestFinished(() => spine.stop());
  const [greedy, patient] = [await spine.tenant('greedy', '5'), await spine.tenant('patient', '5')];
  const read = (key: string, path: string) => spine.get(path, { authorization: `Bearer ${key}` });
  const paths = [`/statements/${new Date().toISOString().slice(0, 7)}/focus`, '/generations?format=csv'];
  const statuses = async (key: string) =>
    Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        const answer = await read(key, paths[at % 2]!);
        const text = await answer.text();
        if (answer.status === 429) expect(text).toContain('Too many files are being downloaded at once. Retry later');
        else expect(answer.headers.get('content-type')).toContain('text/csv');
        return answer.status;
      }),
    );
  const [many] = await Promise.all([statuses(greedy.key), read(patient.key, paths[0]!)]);
  expect(new Set(many)).toEqual(new Set([200, 429]));
  // Also those that nobody read to their end.
  const cut = new AbortController();
  const begun = Array.from({ length: 3 }, () =>
    fetch(`${spine.origin}/api/v1${paths[1]!}`, {
      headers: { authorization: `Bearer ${greedy.key}` },
      signal: cut.signal,
    }),
  );
  await Promise.all(begun);
  cut.abort();
  for (const path of [...paths, ...paths, ...paths])
    await expect.poll(async () => (await read(greedy.key, path)).status).toBe(200);
});

it('a key that requests many reports leaves some to the other keys of its account', async () => {
  const spine = await startSpine({ toml: UNHURRIED });
  onTestFinished(() => spine.stop());
  const greedy = await spine.tenant('greedy', '5', { limit: 1_000n });
  const { text: full } = (await spine.app.keys.create({ account: greedy.account, label: 'full', kind: 'live' }))!;
  const read = (key: string) => spine.get('/analytics/own?group_by=day', { authorization: `Bearer ${key}` });
  const many = Array.from({ length: 400 }, () => read(greedy.key));
  expect(new Set(await Promise.all(Array.from({ length: 5 }, async () => (await read(full)).status)))).toEqual(
    new Set([200]),
  );
  const statuses = await Promise.all(many.map(async (answer) => (await answer).status));
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  expect(await spine.faults()).toEqual([]);
});
