import { readdirSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../architecture/source.ts';
import { findProgram } from '../support/find-program.ts';
import { findFreePort } from '../support/free-port.ts';
import { makePlace, type Place } from '../program/cli/tollgate.ts';
import { runPage } from './run-page.ts';
import { snippetsOf, type Snippet } from './snippets.ts';

/**
 * The pages of clients that run by day. Most others only have the command that prints or writes their settings, or
 * programs that other tests run in nearly the same words: they are for the deep run.
 */
const BY_DAY = /\/(?:codex|openai)\.md$/;
/** Its programs of other languages run in test/clients/generated. */
const ELSEWHERE = 'docs/clients/generated.md';
const runsNow = (page: string): boolean =>
  page !== ELSEWHERE && (process.env['TOLLGATE_DEEP'] === '1' || BY_DAY.test(page));

const pagesIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`);
const hasCommands = (page: string): boolean =>
  snippetsOf(page).some(({ language, note }) => /^(?:sh|ts)$/.test(language) && !note.startsWith('no-run'));

/** Their limits hold for the calls of the pages after them, so they are the last. */
const LAST = ['organisations', 'allowed-services', 'approvals', 'budgets', 'rates'].map(
  (name) => `docs/use/${name}.md`,
);

/** Pages that a reader follows beside `npm start`. */
const PAGES = [
  'README.md',
  'docs/reference/admin-api.md',
  'docs/reference/configuration.md',
  ...pagesIn('docs/clients').filter(runsNow),
  'docs/how/browser-sessions.md',
  ...['start', 'use', 'sell', 'run']
    .flatMap((folder) => pagesIn(`docs/${folder}`))
    .filter((page) => hasCommands(page) && !LAST.includes(page)),
  ...LAST,
];

let place: Place;
let gateway: Record<string, string>;
beforeAll(async () => {
  place = await makePlace();
  // Wallets sign in at an address that the gateway knows: any port does not do.
  await place.gateway(['start'], { PORT: String(await findFreePort()) });
  await writeFile(join(place.dir, '.curlrc'), '--silent --show-error\n');
  gateway = await place.read('dev.json');
});
afterAll(() => place.clear());

/** Ports that pages give to programs of their own. */
const PORTS = ['4010', '8500', '8443'];
const PORT = new RegExp(`\\b(?:${PORTS.join('|')})\\b`, 'g');

/** As a reader has it: the checkout is where he is, and the gateway has the usual address. */
async function workplace(page: string): Promise<string> {
  const dir = join(place.dir, page.replace(/\W/g, '-'));
  await mkdir(dir);
  for (const name of ['bin', 'src', 'examples', 'node_modules', 'package.json'])
    await symlink(join(ROOT, name), join(dir, name));
  return dir;
}

const FAILED = /"error":(?! ?null)|isError": ?true|Error:|"level":"(?:warn|error)"/;

/** Names of members that a shown answer has. */
const keysOf = (shown: string) => [...new Set([...shown.matchAll(/"([\w/.-]+)":/g)].map((match) => match[1]!))];

describe.each(PAGES)('%s', (page) => {
  it('has commands and programs that run as they are written, in their order, and answer as is shown', async () => {
    const snippets = snippetsOf(page);
    const dir = await workplace(page);
    const { host } = new URL(gateway['base_url']!);
    const ports = await Promise.all(PORTS.map(() => findFreePort()));
    const printed = await runPage(snippets, {
      dir,
      env: {
        PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}:${dirname(findProgram('caddy').file)}`,
        HOME: place.dir,
        TMPDIR: place.dir,
        TOLLGATE_DATA: place.data,
        OLLAMA_HOST: '127.0.0.1:9',
        PORT: '0',
        KEY: gateway['api_key'],
        ACME_API_KEY: 'a-key-of-the-service',
        npm_config_update_notifier: 'false',
      },
      replace: (text) =>
        text
          .replaceAll('127.0.0.1:8402', host)
          .replaceAll('https://gateway.example', `http://${host}`)
          .replaceAll('--domain gateway.example', `--domain ${host} --uri http://${host}`)
          .replaceAll('svc-sk-dev-…', gateway['api_key']!)
          .replaceAll(PORT, (written) => String(ports[PORTS.indexOf(written)])),
    });
    expect(printed.length).toBeGreaterThan(0);
    const wrong = printed.flatMap(({ snippet, output, code }) => {
      const shown = answerShown(snippets, snippet);
      const problems = [
        ...(code === 0 ? [] : [`ended with ${code}`]),
        ...(FAILED.test(output) && !shown.includes('"error"') ? ['failed'] : []),
        ...keysOf(shown)
          .filter((key) => !output.includes(`"${key}"`))
          .map((key) => `answered without "${key}", which the page shows`),
        ...linesShown(snippets, snippet)
          .filter((line) => !output.includes(line.replaceAll('127.0.0.1:8402', host)))
          .map((line) => `printed no line "${line}", which the page shows`),
      ];
      return problems.length === 0
        ? []
        : [`${page}:${snippet.line} ${problems.join(', ')}:\n${output.slice(0, 2_000)}`];
    });
    expect(wrong.join('\n\n')).toBe('');
  });
});

/** The block of JSON that follows at once, which shows what a command answers. */
function answerShown(snippets: readonly Snippet[], snippet: Snippet): string {
  const next = snippets[snippets.indexOf(snippet) + 1];
  return next?.language === 'json' && snippet.language === 'sh' && !next.note.startsWith('no-run') ? next.text : '';
}

/** Lines of the block without a language that follows at once, which shows what a command prints. */
function linesShown(snippets: readonly Snippet[], snippet: Snippet): readonly string[] {
  const next = snippets[snippets.indexOf(snippet) + 1];
  if (next?.language !== '' || snippet.language !== 'sh' || !snippet.text.includes('bin/tollgate.mjs connect'))
    return [];
  return next.text.split('\n').filter((line) => !line.includes('…'));
}
