import { parseAst } from 'vitest/node';
import { lineOf, mask, type Finding, type SourceFile } from './source.ts';

export type Rule =
  | 'getters in object literals'
  | 'generator functions in functions'
  | 'functions assigned to properties'
  | 'export *'
  | 'docstrings that begin with What, Who or Where'
  | 'riddles'
  | 'private words'
  | "a validator's words"
  | 'wide comments'
  | 'names of files that do not exist';

const COLUMNS_MAX = 120;

/**
 * Files whose objects with getters are made once: for the process, a gateway, a connection of a database, a network or
 * a command.
 */
export const MADE_ONCE: readonly string[] = [
  'src/billing/analytics/roll-up.ts',
  'src/billing/chains/evm/log-search.ts',
  'src/server/limits/stream-quota.ts',
  'src/mcp/servers/held-calls.ts',
  'src/mcp/translators/legacy-to-modern.ts',
  'src/mcp/servers/upstream-sessions.ts',
  'src/mcp/request/cancellation.ts',
  'src/gateway/network/peer-listener.ts',
  'src/foundation/store/backup/archive.ts',
  'src/foundation/store/backup/copy-files.ts',
  'src/foundation/store/backup/make-backup.ts',
  'src/foundation/store/due-worker.ts',
  'src/foundation/store/log/ledger-log.ts',
  'src/foundation/store/log/shared-progress.ts',
  'src/foundation/store/log/ledger-log.ts',
  'src/foundation/store/postgres.ts',
];

/**
 * Getters and setters in object literals, except in MADE_ONCE. Each time such a literal is evaluated, V8 makes an
 * AccessorPair in the old heap. The pair points to the closure of the getter, and so to everything of the call. It is
 * freed only by a full collection. Until then each scavenge copies the call, although the call has ended: 28 KB for
 * each streamed call, and 5 to 10 ms for a scavenge that would take less than 1 ms. A class has its getters on the
 * prototype, so it makes no pair for an instance.
 */
export function literalGetters({ path, text }: SourceFile): Finding[] {
  // Most files have no getter, so they need no parser.
  if (MADE_ONCE.includes(path) || !/\b[gs]et\s+[\w$"'[]/.test(text)) return [];
  const findings: Finding[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each);
    if (!isNode(node)) return;
    // In a class the type is MethodDefinition.
    if (node.type === 'Property' && (node['kind'] === 'get' || node['kind'] === 'set'))
      findings.push(
        `${path}:${lineOf(text, node.start)} has the ${node['kind']}ter ${node.key?.name ?? ''} in an object literal, ` +
          `which keeps each call in memory until a full collection: use a class, a method or a data property`,
      );
    for (const child of Object.values(node)) visit(child);
  };
  visit(syntaxOf({ path, text }));
  return findings;
}

/** Files that assign functions to properties once: for the process, a gateway or a thread. */
export const ASSIGNED_ONCE: readonly string[] = [
  'src/console/observe/logger.ts',
  'src/console/rpc/dispatch.ts',
  'src/foundation/store/sqlite-thread.ts',
];

/**
 * Functions that are assigned directly to a property, except in ASSIGNED_ONCE. V8 expects such a function to live long
 * and makes it in the old heap. As with getters, it keeps the call alive until a full collection. A function that has a
 * name first is made in the young heap.
 */
export function assignedFunctions({ path, text }: SourceFile): Finding[] {
  if (ASSIGNED_ONCE.includes(path) || !/[\w$\])] = (?:async\s*)?(?:function|\(|[\w$]+\s*=>)/.test(text)) return [];
  const findings: Finding[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each);
    if (!isNode(node)) return;
    const { left, right } = node as { readonly left?: unknown; readonly right?: unknown };
    if (node.type === 'AssignmentExpression' && isNode(left) && isNode(right))
      if (left.type === 'MemberExpression' && /^(?:Arrow)?FunctionExpression$/.test(right.type))
        findings.push(
          `${path}:${lineOf(text, node.start)} assigns a function directly to a property, which keeps each call in ` +
            `memory until a full collection: name the function with const first, and assign the name`,
        );
    for (const child of Object.values(node)) visit(child);
  };
  visit(syntaxOf({ path, text }));
  return findings;
}

/** Files whose inner generator functions are made once: for a gateway, a network or a command. */
export const GENERATORS_MADE_ONCE: readonly string[] = [
  'src/a2a/create-a2a.ts',
  'src/program/demo/dice-game.ts',
  'src/mcp/call/tool-target.ts',
  'src/mcp/own/known-address.ts',
  'src/mcp/http/listen.ts',
  'src/mcp/translators/legacy-to-legacy.ts',
  'src/mcp/translators/legacy-to-modern.ts',
  'src/mcp/translators/legacy-to-modern-listen.ts',
  'src/mcp/translators/modern-to-legacy.ts',
  'src/mcp/translators/modern-to-modern.ts',
  'src/foundation/store/backup/copy-files.ts',
  'src/foundation/store/backup/copy-files.ts',
  'src/foundation/store/backup/make-backup.ts',
];

/**
 * Generator functions inside other functions, and in the fields of classes, except in GENERATORS_MADE_ONCE. When such
 * a function runs for the first time, V8 makes a hidden class for its generators in the old heap. The hidden class
 * points to the function, and so to everything of the call. As with getters, only a full collection frees it. A
 * function of the module and a method of a class are made once, and so is their hidden class.
 */
export function innerGenerators({ path, text }: SourceFile): Finding[] {
  // Most files have no generator, so they need no parser. The formatter puts no space behind the star of a method.
  if (GENERATORS_MADE_ONCE.includes(path) || !/\bfunction\s*\*|(?:^|[\s{,])\*[\w$["'#]/m.test(text)) return [];
  const findings: Finding[] = [];
  const visit = (node: unknown, isInner: boolean, outerName: string): void => {
    if (Array.isArray(node)) for (const each of node) visit(each, isInner, outerName);
    if (!isNode(node)) return;
    const name = node.id?.name ?? node.key?.name ?? outerName;
    const isFunction = node.type.includes('Function') && !node.type.startsWith('TS');
    if (isFunction && isInner && node['generator'] === true)
      findings.push(
        `${path}:${lineOf(text, node.start)} has the generator function ${name} in a function, which keeps each call ` +
          `in memory until a full collection: use a function of the module or a method of a class`,
      );
    const isMadeOften = isFunction || (node.type === 'PropertyDefinition' && node['static'] !== true);
    for (const child of Object.values(node)) visit(child, isInner || isMadeOften, name);
  };
  visit(syntaxOf({ path, text }), false, '');
  return findings;
}

const syntaxOf = ({ path, text }: SourceFile) => parseAst(text, { lang: path.endsWith('.tsx') ? 'tsx' : 'ts' }).body;

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly id?: { readonly name?: string } | null;
  readonly key?: { readonly name?: string } | null;
  readonly [member: string]: unknown;
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && typeof (value as SyntaxNode).type === 'string';

const found = (text: string, pattern: RegExp, path: string, says: string): Finding[] =>
  [...text.matchAll(pattern)].map(
    (match) => `${path}:${lineOf(text, match.index)} has ${JSON.stringify(match[0].trim())}: ${says}`,
  );

const VALIDATOR_WORDS =
  /\bmust (?:NOT (?:have|be)\b|have required propert|match (?:format|pattern|exactly one|a schema|some)|be equal to (?:constant|one of))/g;
const RIDDLES = /\b(?:is|are) none\b|\bthat there (?:is|are)\b/g;

/**
 * Words that this code once had for things with a name in the field, and that name. A reader searches for the name.
 * Numbers, units and protocols may use such a word in another sense: `otherwise` says where.
 */
const PRIVATE_WORDS: readonly (readonly [word: string, name: string, otherwise?: RegExp])[] = [
  ['doors?', 'route', /\bdoors\b/],
  ['speakers?', 'target adapter', /known_speaker_/],
  ['departures?', 'cancel signal'],
  ['tall(?:y|ies)', 'counter'],
  ['untold', 'undelivered'],
  ['sights?', 'observation', /(?:in|out of) sight/],
  ['standings', 'health'],
];

/** Parts of names in camel case, and words of comments. */
const inWords = (text: string): string => text.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ');

/** Words of PRIVATE_WORDS in names, comments and pages. */
export function privateWords({ path, text }: SourceFile): Finding[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      PRIVATE_WORDS.filter(
        ([word, , otherwise]) => new RegExp(`\\b(?:${word})\\b`, 'i').test(inWords(line)) && !otherwise?.test(line),
      ).map(([word, name]) => `${path}:${index + 1} has the word ${word}: the field says ${name}`),
    );
}

/** Words in TypeScript of src/. */
export function checkWording({ path, text }: SourceFile): Readonly<Partial<Record<Rule, Finding[]>>> {
  const { code, comments, literals } = mask(text);
  return {
    'export *': found(code, /\bexport\s*\*/g, path, 'name what the file gives'),
    'docstrings that begin with What, Who or Where': found(
      comments,
      /\/\*\*[\s*]*(?:What|Who|Where)\b/g,
      path,
      'say what the thing is: subject, verb, object',
    ),
    riddles: found(text, RIDDLES, path, 'say it without the inversion'),
    "a validator's words": literals.flatMap(({ start, value }) =>
      found(value, VALIDATOR_WORDS, path, 'say what would be right').map((line) =>
        line.replace(/:\d+/, `:${lineOf(text, start)}`),
      ),
    ),
  };
}

/** Words of a page. */
export function checkPage({ path, text }: SourceFile): Readonly<Partial<Record<Rule, Finding[]>>> {
  return {
    riddles: found(text, RIDDLES, path, 'say it without the inversion'),
    "a validator's words": found(text, VALIDATOR_WORDS, path, 'say what would be right'),
  };
}

/** Lines of comments that are wider than code may be. Tables are as wide as they must be. */
export function wideComments({ path, text }: SourceFile): Finding[] {
  const wide = [...text.split('\n').entries()].filter(
    ([, line]) => line.length > COLUMNS_MAX && /^\s*(?:\/\/|\/\*|\*(?! \|))/.test(line),
  );
  if (wide.length === 0) return [];
  const comments = mask(text).comments.split('\n');
  return wide
    .filter(([index, line]) => comments[index] === line)
    .map(([index, line]) => `${path}:${index + 1} has a comment of ${line.length} columns: ${COLUMNS_MAX} at most`);
}

const PATHS = /(?<![\w./@:-])(?:src|test|docs|bench|scripts|bin|examples)\/[\w./-]*\w/g;
/** Only names of two words: `x.ts` may be anybody's file. */
const NAMES = /(?<![\w./@:*-])[a-z][a-z0-9]*(?:-[a-z0-9]+)+\.(?:ts|sql|mjs|md)\b/g;

/** Files of its module that a page of src/ names by their path in the module. */
const OF_MODULE = /`((?:[a-z][\w-]*\/)+[a-z0-9][a-z0-9.-]*\.(?:ts|sql))`/g;

/**
 * Paths from the root, and names of files, that the checkout does not have. `known` is what `knownNames` gives. In
 * comments a path has an ending: `test/model` is also a model. A page of src/ also names files by their path in its
 * module.
 */
export function staleNames({ path, text }: SourceFile, known: ReadonlySet<string>): Finding[] {
  const isPage = path.endsWith('.md');
  const words = isPage ? text : mask(text).comments;
  const folder = path.replace(/[^/]+$/, '');
  const ofModule = isPage && path.startsWith('src/') ? [...words.matchAll(OF_MODULE)] : [];
  return [
    ...ofModule.filter(([, name]) => !known.has(folder + name!) && !known.has(name!)),
    ...[...words.matchAll(PATHS)].filter(([name]) => !known.has(name) && (isPage || name.includes('.'))),
    ...[...words.matchAll(NAMES)].filter(([name]) => !known.has(`*/${name}`)),
  ].map((match) => `${path}:${lineOf(text, match.index)} names ${match[0]}, which does not exist`);
}

/** What `staleNames` looks up: each path, its folders, and its last part behind a `*`. */
export function knownNames(paths: readonly string[]): ReadonlySet<string> {
  const known = new Set<string>();
  for (const path of paths) {
    const parts = path.split('/');
    for (let end = 1; end <= parts.length; end++) known.add(parts.slice(0, end).join('/'));
    known.add(`*/${parts.at(-1)}`);
  }
  return known;
}

/**
 * Exports of src/ that no other file names. A name in a comment does not count. `others`: files outside src/ that may
 * import them.
 */
export function needlessExports(src: readonly SourceFile[], others: readonly SourceFile[]): Finding[] {
  const uses = new Map<string, number>();
  for (const { text } of [...src, ...others])
    for (const word of wordsOfCode(text)) uses.set(word, (uses.get(word) ?? 0) + 1);
  return src.flatMap(({ path, text }) =>
    [...text.matchAll(EXPORTS)]
      .filter(([, name]) => uses.get(name!) === 1)
      .map((match) => `${path}:${lineOf(text, match.index)} exports ${match[1]}, which no other file uses`),
  );
}

/** The words of a file that are not in comments, each once. */
function wordsOfCode(text: string): ReadonlySet<string> {
  const { comments } = mask(text);
  const found = [...text.matchAll(/[\w$]+/g)].filter(({ 0: word, index }) => comments[index] !== word[0]);
  return new Set(found.map(([word]) => word));
}

const EXPORTS = /^export (?:async )?(?:const|let|function\*?|class|interface|type) ([\w$]+)/gm;
