import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '#config';
import { createKeeper } from '../support/server-process.ts';
import { emptyDataDirectory } from '../support/data-directory.ts';

const RIGS = join(import.meta.dirname, '../../bench/rigs');

test('one command measures tollgate beside others, and writes what it has seen', async () => {
  const out = emptyDataDirectory();
  const keeper = createKeeper([]);
  try {
    const rigs = 'direct-chat,tollgate-chat,direct-tools,tollgate-tools';
    const child = keeper.start({
      file: process.execPath,
      args: [join(RIGS, 'run.ts'), '--quick', '--rounds', '1', '--seconds', '0.3', '--only', rigs, '--out', out],
      env: { PATH: process.env['PATH'] ?? '' },
    });
    await child.exited;
    expect(child.exitCode, child.output()).toBe(0);
    const [head = '', ...rows] = (await readFile(join(out, 'samples.csv'), 'utf8')).trim().split('\n');
    const at = head.split(',').indexOf('errors');
    expect(rows.map((row) => [row.split(',')[0], row.split(',')[at]])).toEqual(
      rigs.split(',').flatMap((rig) => [
        [rig, '0'],
        [rig, '0'],
      ]),
    );
    expect(JSON.parse(await readFile(join(out, 'machine.json'), 'utf8'))).toMatchObject({ cores: expect.any(Number) });
    expect(JSON.parse(await readFile(join(out, 'left-out.json'), 'utf8'))).toEqual({});
  } finally {
    await keeper.close();
  }
});

test('the file for rigs of others is one that a gateway takes', () => {
  const { services } = loadConfig({ file: join(RIGS, 'tollgate.toml'), env: {}, mode: 'production' });
  expect(services.map(({ service }) => service.name)).toEqual(['bench-small', 'bench-tools']);
});
