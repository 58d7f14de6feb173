import { parseAst } from 'vitest/node';
import { lineOf, mask, type Finding, type SourceFile } from './source.ts';

/**
 * Findings that are still there, by rule and place (a room of src/, or a folder of the checkout). They may only fall.
 */
export const STILL_ALLOWED: Readonly<Record<Rule, Readonly<Record<string, number>>>> = {
  'long functions': {},
  'export *': {},
  'docstrings that begin with What, Who or Where': {},
  riddles: {},
  "a validator's words": {},
  'wide comments': {},
  'names of files that do not exist': {},
};

export type Rule =
  | 'long functions'
  | 'export *'
  | 'docstrings that begin with What, Who or Where'
  | 'riddles'
  | "a validator's words"
  | 'wide comments'
  | 'names of files that do not exist';

/** Longest function. A longer one holds more than one step; each step deserves a name. */
export const FUNCTION_LINES_MAX = 120;
const COLUMNS_MAX = 120;

/** The place that a file counts for in STILL_ALLOWED. */
export function placeOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return first === 'src' ? second.replace(/\.ts$/, '') : path.includes('/') ? first : path;
}

/** Each function of TypeScript that has more than FUNCTION_LINES_MAX lines, the functions inside it included. */
export function longFunctions({ path, text }: SourceFile): Finding[] {
  // A file as short as this has no long function: most need no parser.
  if (text.split('\n').length <= FUNCTION_LINES_MAX) return [];
  const findings: Finding[] = [];
  const visit = (node: unknown, outerName: string): void => {
    if (Array.isArray(node)) for (const each of node) visit(each, outerName);
    if (!isNode(node)) return;
    const name = node.id?.name ?? node.key?.name ?? outerName;
    if (node.type.includes('Function') && node['body']) {
      const begin = lineOf(text, node.start);
      const lines = lineOf(text, node.end) - begin + 1;
      if (lines > FUNCTION_LINES_MAX)
        findings.push(
          `${path}:${begin} ${name} has ${lines} lines: give its steps names (${FUNCTION_LINES_MAX} at most)`,
        );
    }
    for (const [key, child] of Object.entries(node)) if (key !== 'type') visit(child, name);
  };
  visit(parseAst(text, { lang: 'ts' }).body, 'a function');
  return findings;
}

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

/**
 * Paths from the root, and names of files, that the checkout does not have. `known` is what `knownNames` gives. In
 * comments a path has an ending: `test/model` is also a model.
 */
export function staleNames({ path, text }: SourceFile, known: ReadonlySet<string>): Finding[] {
  const isPage = path.endsWith('.md');
  const words = isPage ? text : mask(text).comments;
  return [
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

/** The findings of one rule, where a place has more of them than STILL_ALLOWED says. */
export function beyondAllowed(
  rule: Rule,
  findings: readonly Finding[],
  allowed: Readonly<Record<string, number>> = STILL_ALLOWED[rule],
): Finding[] {
  const places = Map.groupBy(findings, (finding) => placeOf(finding.slice(0, finding.search(/[: ]/))));
  return [...places].flatMap(([place, each]) =>
    each.length > (allowed[place] ?? 0)
      ? [`${rule}: ${place} has ${each.length}, ${allowed[place] ?? 0} are allowed`, ...each]
      : [],
  );
}
