import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CHAT_WIRES } from '#openai';
import { WIRES as OF_CORPUS } from '../corpus/world.ts';
import { WIRES } from '../peers/wires.ts';
import { UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What is made from the list of chat wires. Calls by each wire are in test/peer-primitives.test.ts.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

const DOCS = new URL('../../docs/', import.meta.url);
const PAGES = readdirSync(DOCS, { encoding: 'utf8', recursive: true }).filter(
  (file) => file.endsWith('.md') && !file.startsWith('decisions/'),
);
const textOf = (file: string) => readFileSync(new URL(file, DOCS), 'utf8');

test('each is in the corpus', () => {
  expect(Object.keys(OF_CORPUS).toSorted(), 'WIRES of test/corpus/world.ts').toEqual(
    CHAT_WIRES.map(({ name }) => name).toSorted(),
  );
});

test('each is in the table of the tests', () => {
  const listed = CHAT_WIRES.map(({ name, prefix, path }) => `${name}: ${prefix}${path}`);
  expect(
    WIRES.map(({ name, path }) => `${name}: ${path}`),
    'name each wire of src/openai/chat-wires.ts in test/peers/wires.ts, by its name and its path there: the tests of all wires are made from that table',
  ).toEqual(listed);
});

describe.each(CHAT_WIRES)('$name', ({ prefix, path: below, clients }) => {
  const path = prefix + below;
  const post = (url: string) =>
    fetch(spine.origin + url, { method: 'POST', headers: { authorization: `Bearer ${spine.key}` } });

  test('is mounted', async () => {
    expect((await post(path)).status).toBe(400);
  });

  test('is named to a client that has a wrong base URL', async () => {
    const answer = await post(`/wrong${below}`);
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain(`It is at ${path}: check the base URL of the client`);
  });

  test('has answers that link to the record of the call', async () => {
    const document = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
      paths: Record<string, { post: { responses: Record<'200', { links?: object }> } }>;
    };
    expect(document.paths[path]!.post.responses['200'].links).toMatchObject({
      Record: { operationId: 'showOneCall' },
    });
  });

  test('has a page in docs/, to which the lists of pages lead', () => {
    const pages = PAGES.filter((file) => textOf(file).includes(`\`POST ${path}\``));
    expect(pages, `a page in docs/ tells what \`POST ${path}\` does`).not.toEqual([]);
    const lists = [
      ['README.md', ''],
      ['../README.md', 'docs/'],
      ['use/chat.md', ''],
    ] as const;
    for (const [list, prefix] of lists) {
      const isLinked = (page: string) =>
        page === list ||
        textOf(list).includes(`](${prefix}${list === 'use/chat.md' ? page.replace('use/', '') : page})`);
      expect(pages.some(isLinked), `docs/${list} links one of ${pages.join(', ')}`).toBe(true);
    }
  });

  test('is in the text for language models', async () => {
    const text = await (await fetch(`${spine.origin}/llms.txt`)).text();
    expect(text).toContain(`- \`POST ${path}\`: ${clients}.\n`);
  });
});
