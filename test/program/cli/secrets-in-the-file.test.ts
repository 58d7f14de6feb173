import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelBlock } from '../../support/spine.ts';
import { makePlace, type Place } from './tollgate.ts';

// A secret that stands in the file itself is accepted, and the operator is told.

let place: Place;
beforeAll(async () => {
  place = await makePlace();
});
afterAll(() => place.clear());

const SECRET = 'sk-canary7f3a-0123456789-0123456789';
const fileOf = async (key: string) => {
  const file = join(place.dir, 'tollgate.toml');
  const block = modelBlock({ name: 'a/chat', provider: 'A', url: 'http://127.0.0.1:9/v1' });
  const own = block.replace('std::env::TEST_UPSTREAM_KEY', key);
  await writeFile(file, `[telemetry]\nmetrics_key = "${key}"\n${own}`);
  return file;
};

const WARNING =
  /has secrets in it: telemetry\.metrics_key \(line 2\), models\[0\]\.params\.api_key \(line \d+\)\. Whoever/;

test('a check names the keys and the lines, and not the secrets', async () => {
  const { code, output } = await place.run(['serve', '--validate', '--config', await fileOf(SECRET)]);
  expect([code, output]).toEqual([0, expect.stringMatching(WARNING)]);
  expect(output).toContain('Write "std::env::NAME" in their place, and set NAME, or NAME_FILE');
  expect(output).not.toContain(SECRET);
});

test('a gateway says so when it starts', async () => {
  const gateway = await place.gateway(['serve', '--config', await fileOf(SECRET)]);
  expect(gateway.output()).toMatch(WARNING);
  expect(gateway.output()).not.toContain(SECRET);
});

test('a reference to the environment is no secret', async () => {
  const file = await fileOf('std::env::THE_KEY');
  const { code, output } = await place.run(['serve', '--validate', '--config', file], { THE_KEY: SECRET });
  expect([code, output]).toEqual([0, expect.not.stringContaining('has secrets in it')]);
});
