import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { makePlace } from './tollgate.ts';

const CURL = join(import.meta.dirname, 'curl.ts');
const PAGES = [
  'chat',
  'models',
  'choose-providers',
  'fallbacks',
  'prompt-caching',
  'streams',
  'caps',
  'repeats',
  'thinking',
];
const commands = PAGES.flatMap((name) => {
  const page = readFileSync(new URL(`../../../docs/use/${name}.md`, import.meta.url), 'utf8');
  return [...page.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) => text!);
});

/** What each command of the pages answers, in their order; the ends of long answers. */
const ANSWERS: readonly RegExp[] = [
  /^\{"id":"gen-.*"finish_reason":"length".*"cost":0\.\d+/,
  /"param":"provider\.oder"/,
  /"id":"demo\/chat".*"provider_name":"Demo"/s,
  /"model":"demo\/chat"/,
  /"model":"demo\/chat"/,
  /"finish_reason":"stop"\}\],.*"usage":.*\n\ndata: \[DONE\]\n\n$/s,
  /"model":"demo\/chat"/,
  /"finish_reason":"stop"\}\],.*"usage":.*\n\ndata: \[DONE\]\n\n$/s,
  /^HTTP\/1\.1 200.*^x-max-tokens: 4096$/ms,
  /^\{"id":"gen-.*"finish_reason":"length"/,
  /^\{"id":"gen-/,
];

it('every command of the pages about chat answers as they say', async () => {
  const place = await makePlace();
  onTestFinished(() => place.clear());
  await place.gateway(['start']);
  const { base_url, api_key } = (await place.read('dev.json')) as { base_url: string; api_key: string };
  const answers = [];
  for (const command of commands) {
    const text = `curl() { "${process.execPath}" "${CURL}" "$@"; }\n${command.replaceAll('http://127.0.0.1:8402', base_url)}`;
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', text], {
      env: { KEY: api_key, PATH: process.env['PATH'] },
      maxBuffer: 1 << 24,
    });
    answers.push(stdout);
  }
  expect(answers).toEqual(ANSWERS.map((wanted) => expect.stringMatching(wanted)));
});
