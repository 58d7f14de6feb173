import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CHAT_WIRES } from '#openai';
import { NATIVE_APIS } from '#config';
import { importsOf } from './import-rules.ts';
import { readTree } from './source.ts';

// Each chat wire is a folder of src/openai with the same files, and knows little of the rest of it.

const PARTS = ['schema.ts', 'decode-request.ts', 'encode-reply.ts', 'errors.ts', 'routes.ts'];
/** Wires of one short file, and chat, which the others are translated to. */
const OF_ONE_FILE: ReadonlySet<string> = new Set(['completions']);
const folders = CHAT_WIRES.map(({ name }) => name).filter((name) => name !== 'chat' && !OF_ONE_FILE.has(name));

/**
 * The most names that a wire may import from the rest of src/openai, for what each has now. Those above 30 have more
 * than their chats: kept responses, embeddings and lists of models.
 */
const NAMES_MAX: Readonly<Record<string, number>> = { messages: 58, responses: 64, gemini: 74 };
const NEW_WIRE_MAX = 30;

/** The names that the files of a folder import from the rest of src/openai. */
function namesFromCore(folder: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { path, text } of readTree([folder], ['.ts']))
    for (const [, list, specifier] of text.matchAll(/^import (?:type )?\{([^}]*)\} from '(\.[^']*)';/gm)) {
      const target = posix.join(posix.dirname(path), specifier!);
      if (target.startsWith(`${folder}/`)) continue;
      for (const name of list!.split(','))
        if (name.trim() !== '') names.add(`${name.trim().replace('type ', '')} ${target}`);
    }
  return names;
}

test('the folders are read', () => {
  expect(folders).toEqual(expect.arrayContaining(['messages', 'responses', 'gemini']));
  expect(readTree(['src/openai/messages'], ['.ts']).flatMap(importsOf).length).toBeGreaterThan(20);
});

describe.each(folders)('%s', (name) => {
  const folder = `src/openai/${name}`;
  const files = readTree([folder], ['.ts']).map(({ path }) => path);

  test('has the files of every wire', () => {
    const parts = Object.hasOwn(NATIVE_APIS, name) ? [...PARTS, 'passthrough.ts'] : PARTS;
    expect(files).toEqual(expect.arrayContaining(parts.map((part) => `${folder}/${part}`)));
  });

  test('imports few names of the core', () => {
    const names = namesFromCore(folder);
    expect(names.size, [...names].join('\n')).toBeLessThanOrEqual(NAMES_MAX[name] ?? NEW_WIRE_MAX);
    expect(names.size).toBeGreaterThan(10);
  });
});
