import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startProvider } from '../support/provider.ts';
import { ask, startSpine } from '../support/spine.ts';

test.each(ENGINES)('what the pages show of a provider is the same after a restart, on %s', async (engine) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-figures-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  if (fresh) onTestFinished(fresh.drop);
  const provider = await startProvider();
  onTestFinished(() => provider.stop());
  // Times come back as far as they were added up before the restart: another test asks for them.
  const toml = '[analytics]\nevery_ms = 0\n';
  const start = () => startSpine({ dataDir, provider, toml, ...(fresh ? { databaseUrl: fresh.url } : {}) });
  const shown = async (spine: Awaited<ReturnType<typeof start>>) => {
    const { data } = (await (await spine.get('/models/test/model/endpoints')).json()) as {
      data: { endpoints: object[] };
    };
    return data.endpoints[0];
  };

  const first = await start();
  for (const text of ['hello', 'hello !usage:none', 'hello !usage:none'])
    await (await first.post('/chat/completions', ask(text))).text();
  const before = await shown(first);
  expect(before).toMatchObject({ requests: 3, flags: { usage_missing: 2 }, uptime_last_1h: 1, compliance: 1 - 2 / 8 });
  expect(await first.faults()).toEqual([]);
  await first.stop();

  const second = await start();
  expect(await shown(second)).toEqual({ ...before, latency: null, throughput: null });
  await (await second.post('/chat/completions', ask('hello !usage:none'))).text();
  expect(await shown(second)).toMatchObject({ requests: 4, flags: { usage_missing: 3 } });
  expect(await second.faults()).toEqual([]);
  await second.stop();
});
