import { basename } from 'node:path';
import { lineOf, mask, type Finding, type SourceFile } from './source.ts';

/** Longest file of code, and of tests. A longer one holds more than one concept. */
export const LINES_MAX = { code: 500, tests: 500 } as const;

/** Files that may be longer, each with the reason. */
export const LONGER_FILES: Readonly<Record<string, string>> = {};

const FORBIDDEN_NAMES = ['util', 'utils', 'helper', 'helpers', 'common', 'misc', 'base', 'manager'];

/** Words that promise work instead of doing it. */
const PROMISES = /\b(?:TODO|FIXME|XXX|HACK)\b/g;

/** Tests that do not run, or keep others from running. */
const NOT_RUN =
  /(?:\b(?:it|test|describe|suite)\s*\.\s*(?:only|skip|todo|fails|skipIf|runIf)|\b(?:xit|xtest|xdescribe|fit|fdescribe)|\bctx\s*\.\s*skip)\s*\(/g;

/** Places on somebody's own machine. */
const PRIVATE_PATHS = /(?:^|[\s"'`(=:])(?:\/work\/|\/home\/\w|\/Users\/\w|\/root\/|[A-Z]:\\Users\\)/gm;

/**
 * What real secrets look like. The gateway's own keys are recognised by their length: 32 random bytes and a checksum.
 */
const SECRETS: readonly (readonly [string, RegExp])[] = [
  ['an OpenAI key', /\bsk-(?:proj-)?[A-Za-z0-9_]{32,}/g],
  ['an Anthropic key', /\bsk-ant-[\w-]{24,}/g],
  ['a GitHub token', /\bgh[pousr]_[A-Za-z0-9]{36}/g],
  ['an AWS key', /\bAKIA[0-9A-Z]{16}\b/g],
  ['a Google key', /\bAIza[\w-]{35}/g],
  ['a Slack token', /\bxox[abprs]-[\w-]{10,}/g],
  ['a private key', /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s*\S/g],
  ['a JWT', /\beyJ[\w-]{20,}\.eyJ[\w-]{20,}\.[\w-]{20,}/g],
  ['a gateway key', /\bsvc-sk-(?:v2|dev)-[1-9A-HJ-NP-Za-km-z]{44,}/g],
];

const words = (text: string, pattern: RegExp, path: string, says: (match: string) => string): Finding[] =>
  [...text.matchAll(pattern)].map(
    (match) => `${path}:${lineOf(text, match.index + (match[0].search(/\S/) + 1 || 1) - 1)} ${says(match[0].trim())}`,
  );

/** Names of files say the concept, in kebab-case. Folders too. Migrations carry their number in front. */
export function checkName(path: string): Finding[] {
  const parts = path.split('/');
  const findings: Finding[] = [];
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1;
    const stem = last ? basename(part).replace(/\.(?:test\.)?[a-z]+$/, '') : part;
    if (!/^(?:\d{4}_)?[a-z0-9]+(?:[-.][a-z0-9]+)*$/.test(stem)) findings.push(`${path} is not kebab-case: ${part}`);
    if (stem.split(/[-.]/).some((word) => FORBIDDEN_NAMES.includes(word)) || (!last && FORBIDDEN_NAMES.includes(stem)))
      findings.push(`${path} is named by a drawer, not by a concept: ${part}; name it by its main export`);
  }
  return findings;
}

/** Length, promises, tests that do not run, private paths, secrets: for code and for prose. */
export function checkText({ path, text }: SourceFile): Finding[] {
  return [
    ...words(text, PROMISES, path, (word) => `says ${word}: do it, or write down elsewhere that it is missing`),
    ...words(text, PRIVATE_PATHS, path, (place) => `names a place on one machine: ${place}`),
    ...SECRETS.flatMap(([what, pattern]) =>
      words(text, pattern, path, () => `holds what looks like ${what}; build it from parts if a test needs the form`),
    ),
  ];
}

/** Rules for TypeScript alone. */
export function checkCode({ path, text }: SourceFile): Finding[] {
  const { code, comments } = mask(text);
  const lines = text.split('\n').length - 1;
  const findings = words(
    code,
    NOT_RUN,
    path,
    (call) => `has a test that does not run, or keeps others from running: ${call}`,
  );
  const most = path.startsWith('test/') ? LINES_MAX.tests : LINES_MAX.code;
  if (lines > most && !LONGER_FILES[path])
    findings.push(`${path} has ${lines} lines: more than ${most} is more than one concept; split it by concept`);
  findings.push(
    ...words(
      code,
      /(?:[:<|&,(=]|\bas\b|\bextends\b)\s*any\b(?!\s*[:(.]|\s*=>)|\bany\s*\[\]/g,
      path,
      () => `uses any: parse unknown to a type once, at the edge`,
    ),
  );
  findings.push(
    ...words(
      comments,
      /@ts-(?:ignore|expect-error|nocheck)\b/g,
      path,
      (directive) => `silences the compiler with ${directive}: give it the type`,
    ),
  );
  findings.push(
    ...words(
      comments,
      /(?:oxlint|eslint)-disable(?!-next-line [\w/@-]+ -- \S)/g,
      path,
      () => `silences the linter: only "oxlint-disable-next-line <rule> -- <reason>" is accepted`,
    ),
  );
  return findings;
}

/**
 * One statement below each line `-- name: findTask`, whose names are in camelCase and differ.
 */
export function checkSql({ path, text }: SourceFile): Finding[] {
  const [head, ...parts] = text.split(/^-- name: (.*)\n/m);
  if (parts.length === 0) return [`${path} has no line "-- name: …"`];
  const named = parts.flatMap((name, index) =>
    index % 2 === 0 ? [[`${path} ${name}`, parts[index + 1]!] as const] : [],
  );
  const findings = named.flatMap(([name, statement]) => {
    const bare = statement
      .replace(/--[^\n]*/g, '')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/'(?:[^']|'')*'/g, "''");
    const count = bare.split(';').filter((part) => part.trim() !== '').length;
    return count === 1 ? [] : [`${name} holds ${count} statements: one below each line "-- name: …"`];
  });
  if (head!.trim() !== '') findings.push(`${path} has text before its first line "-- name: …"`);
  const names = parts.filter((_, index) => index % 2 === 0);
  for (const [index, name] of names.entries()) {
    if (!/^[a-z][A-Za-z0-9]*$/.test(name)) findings.push(`${path} names a statement ${name}: camelCase`);
    if (names.indexOf(name) < index) findings.push(`${path} names two statements ${name}`);
  }
  return findings;
}

/** Functions and operators of SQL that parse JSON, with what they parse. */
const PARSES = /\bjson\w*\((?:CAST\()?([\w.$']+)|([\w.$)]+)\s*->|([\w.$)]+)::json/gi;
/** A parameter, or a part of one: `rowsParam` made it. */
const OF_PARAMETER = /^(?:\$\d+|(?:\w+\.)?value)$/;
/** Columns that the ledger alone writes, without a text of a client. Only the audit parses them. */
const OF_LEDGER = new Set(["'", 'r.fields', 'b.movements']);

/** Statements that parse JSON of a column: PostgreSQL refuses some texts, and then all rows of the statement. */
export const parsedColumns = ({ path, text }: SourceFile): readonly Finding[] =>
  [...text.replaceAll(/^\s*--.*$/gm, '').matchAll(PARSES)]
    .map(([, ofFunction, ofArrow, ofCast]) => ofFunction ?? ofArrow ?? ofCast!)
    .filter((what) => !OF_PARAMETER.test(what) && !(path.endsWith('/audit.sql') && OF_LEDGER.has(what)))
    .map((what) => `${path} parses the JSON of ${what}: put what it needs into a column, or compare texts`);

/** Named statements that no file of `src` names. */
export function unusedStatements(sql: readonly SourceFile[], src: readonly SourceFile[]): Finding[] {
  const words = new Set(src.flatMap(({ text }) => text.match(/'[a-z]\w*'/g) ?? []));
  return sql.flatMap(({ path, text }) =>
    [...text.matchAll(/^-- name: (.*)$/gm)]
      .filter(([, name]) => !words.has(`'${name}'`))
      .map(([, name]) => `${path} has the statement ${name}, which no file loads`),
  );
}

export interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * Every dependency is pinned to one version and has its row in docs/dependencies.md with that version; no row
 * speaks of one that is gone.
 */
export function checkDependencies(manifests: readonly Manifest[], page: string): Finding[] {
  const all: Readonly<Record<string, string>> = Object.assign(
    {},
    ...manifests.flatMap((each) => [each.dependencies, each.devDependencies, each.optionalDependencies]),
  );
  const rows = new Map([...page.matchAll(/^\| `([^`]+)` \| ([^|]+?) \|/gm)].map((match) => [match[1]!, match[2]!]));
  const findings: Finding[] = [];
  for (const [name, pinned] of Object.entries(all)) {
    // A package may be installed by another name.
    const version = pinned.replace(/^npm:.+@/, '');
    if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))
      findings.push(`package.json: ${name} is ${version}; pin one version exactly`);
    const named = rows.get(name);
    if (named === undefined)
      findings.push(`docs/dependencies.md has no row for ${name}: say its version, licence and reason`);
    else if (named !== version)
      findings.push(`docs/dependencies.md says ${name} ${named}, package.json says ${version}`);
  }
  for (const name of rows.keys())
    if (!(name in all)) findings.push(`docs/dependencies.md names ${name}, which package.json does not have`);
  return findings;
}

/** A table over codes covers each exactly once, and nothing else. */
export function checkTable(
  name: string,
  codes: readonly string[],
  table: Readonly<Record<string, unknown>>,
): Finding[] {
  return [
    ...codes.filter((code) => !Object.hasOwn(table, code)).map((code) => `${name} lacks ${code}`),
    ...Object.keys(table)
      .filter((code) => !codes.includes(code))
      .map((code) => `${name} has ${code}, which is no error code`),
    ...codes.filter((code, index) => codes.indexOf(code) !== index).map((code) => `ERROR_CODES has ${code} twice`),
  ];
}
