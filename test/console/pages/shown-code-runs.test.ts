import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Called, snippetsOf } from '../../../web/src/pages/offering/code.ts';
import { makePlace, type Place } from '../../program/cli/tollgate.ts';

// The commands that a service's page shows do what they say when they are pasted.

const CURL = join(import.meta.dirname, '../../program/cli/curl.ts');
/** Not every machine has curl. */
const CURL_HERE = `curl() { "${process.execPath}" "${CURL}" "$@"; }`;

let place: Place;
let directory: string;
let base: string;
let key: string;
beforeAll(async () => {
  [place, directory] = await Promise.all([makePlace(), mkdtemp(join(tmpdir(), 'snippets-'))]);
  await place.gateway(['start']);
  const dev = (await place.read('dev.json')) as { readonly base_url: string; readonly api_key: string };
  [base, key] = [dev.base_url, dev.api_key];
});
afterAll(async () => {
  await place.clear();
  await rm(directory, { recursive: true, force: true });
});

const called = (kind: Called['kind'], name: string, makes: Called['makes'] = null): Called => ({
  kind,
  name,
  base,
  makes,
  tool: { name: 'roll_dice', args: { dice: '1d6' } },
  duration: '2s',
});

async function paste(code: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', `${CURL_HERE}\n${code}`], {
    cwd: directory,
    env: { ...process.env, KEY: key, NO_PROXY: '*' },
  });
  return stdout;
}

test.each([
  ['model', 'demo/speech', 'speech', { curl: '' }],
  ['model', 'demo/transcription', 'transcription', { curl: '"text":"The gate is open."' }],
  ['model', 'demo/chat', null, { curl: '"choices"', a2a: 'tollgate' }],
  ['model', 'demo/embedding', 'embeddings', { curl: '"embedding"' }],
  ['tool', 'demo/tools', null, { curl: '"structuredContent"' }],
  ['agent', 'demo/agent', null, { curl: '"result"', a2a: '"task"', card: '"skills"' }],
  ['image', 'demo/image', null, { curl: '', quote: 'usd' }],
] as const)('%s %s', async (kind, name, makes, answers) => {
  const snippets = snippetsOf(called(kind, name, makes));
  for (const [id, part] of Object.entries(answers)) {
    const answer = await paste(snippets.find((snippet) => snippet.id === id)!.code);
    expect(answer, id).toContain(part);
    expect(answer, id).not.toContain('"error"');
  }
});

test('a video is queued, and fetched by the id of the answer', async () => {
  const { code } = snippetsOf(called('video', 'demo/video'))[0]!;
  expect(await paste(`${code} && head -c 8 video.mp4`)).toContain('ftyp');
});

test('the command for an agent sends another message each time', async () => {
  const { code } = snippetsOf(called('agent', 'demo/agent')).find(({ id }) => id === 'a2a')!;
  const idOf = async () => /"task":\{"id":"([^"]+)"/.exec(await paste(code))?.[1];
  const first = await idOf();
  expect(first).toBeTruthy();
  await expect.poll(idOf).not.toBe(first);
});

test.each([
  ['openai-js', 'demo/speech', 'speech'],
  ['openai-js', 'demo/chat', null],
  ['anthropic', 'demo/chat', null],
  ['openai-js', 'demo/embedding', 'embeddings'],
] as const)('%s with %s runs as a module', async (id, name, makes) => {
  const { code } = snippetsOf(called('model', name, makes)).find((snippet) => snippet.id === id)!;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...process.env, KEY: key },
  });
  expect(stdout.trim()).not.toBe('');
});
