import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PRIVATE_PARTS, privateUses } from './private-parts.ts';
import { readTree, ROOT } from './source.ts';

const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
  string,
  Record<string, string>
>;
const packages = Object.keys({ ...dependencies, ...optionalDependencies });
const src = readTree(['src'], ['.ts']);
const uses = (text: string, path = 'src/x.ts') => privateUses({ path, text }, packages);

test('private parts of packages are used only in the file of each package', () => {
  expect(src.flatMap((file) => privateUses(file, packages))).toEqual([]);
});

test('each file that may use private parts does so, and its test names the version', () => {
  for (const [path, { of, test: checks }] of Object.entries(PRIVATE_PARTS)) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    expect.soft(uses(text), `${path} uses no private parts any more: remove it from the list`).not.toEqual([]);
    const names = (file: string, what: string) => readFileSync(join(ROOT, file), 'utf8').includes(what);
    expect.soft(names(checks, `checkedWith('${of}', '`), `${checks} has no checkedWith('${of}', …)`).toBe(true);
    expect.soft(names(path, checks), `${path} does not name ${checks}`).toBe(true);
  }
});

test('a package has one file for its private parts', () => {
  const named = Object.values(PRIVATE_PARTS).map(({ of }) => of);
  expect(named).toEqual([...new Set(named)]);
});

test.each([
  ['an underscore', 'stream._read(0);', 'begins with _'],
  ['an underscore in brackets', `const { length } = client['_queryQueue'];`, 'begins with _'],
  ['an underscore of an optional object', 'socket?._handle;', 'begins with _'],
  ['symbols of an object', 'Object.getOwnPropertySymbols(reply)', 'looks for symbols'],
  ['a symbol of a package', 'reply[kReplyHeaders]', 'a symbol of a package'],
  ['a symbol that a package shows', 'logger[symbols.chindingsSym]', 'a symbol of a package'],
  ['a prototype', 'Socket.prototype.write = write;', 'changes a prototype'],
  ['a method', 'stream.push = push;', 'replaces a method'],
  ['a callback', 'parser.onHeadersComplete = skip;', 'replaces a method'],
  ['a method by assign', 'Object.assign(server, { register: named });', 'replaces a method'],
  ['a file of a package', `load('undici/lib/core/symbols.js');`, 'a file inside of a package'],
  ['a file of a package in a scope', 'resolve(`@fastify/swagger/lib/${name}`)', 'a file inside of a package'],
  ['a file of a package that offers it', `import 'pg/lib/query.js';`, 'a file inside of a package'],
  ['a package of a package', 'createRequire(createRequire(a).resolve(b))', 'a package of a package'],
  ['the stream of a connection', 'client.connection.stream.cork();', 'undocumented'],
])('%s is found', (_name, text, says) => expect(uses(text).join()).toContain(says));

test.each([
  'class Own extends Duplex {\n  override _read(): void {}\n}',
  `params['_meta']; const text = '_private';`,
  'import { privateKeyToAccount } from "viem/accounts";',
  `import type { A } from '@x402/core/types'; const about = 'pg/redis';`,
  'const push = stream.push; stream.once("end", done); x.close === y;',
  '// stream._read(0)',
])('%s is not found', (text) => expect(uses(text)).toEqual([]));
