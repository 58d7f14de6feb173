import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { modelBlock, startSpine } from '../support/spine.ts';

test('a service of the file keeps the time when it was first there, whenever its gateway starts', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-created-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const day = 86_400_000;
  let skew = -3 * day;
  const created = async (toml: string): Promise<ReadonlyMap<string, number>> => {
    const spine = await startSpine({ dataDir, toml, credit: '0', now: () => Date.now() + skew });
    const { data } = (await (await spine.get('/models')).json()) as { data: { id: string; created: number }[] };
    await spine.stop();
    return new Map(data.map((model) => [model.id, model.created]));
  };
  const more = modelBlock({ name: 'test/more', provider: 'More', url: 'http://127.0.0.1:9/v1' });

  const first = await created('');
  skew += day;
  const second = await created(more);
  expect(second.get('test/model')).toBe(first.get('test/model'));
  expect(second.get('test/more')! - second.get('test/model')!).toBeGreaterThanOrEqual(86_400);
  skew += day;
  expect(await created(more)).toEqual(second);
});
