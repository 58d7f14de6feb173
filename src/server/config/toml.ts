import { readFileSync, statSync } from 'node:fs';
import { parse, TomlError } from 'smol-toml';
import { ConfigError } from './problem.ts';

export type Table = Readonly<Record<string, unknown>>;

const FILE_BYTES_MAX = 4 * 1024 * 1024;

/** Reads the text of a TOML file. Throws ConfigError. */
export function readTomlFile(file: string): string {
  const problem = (wrong: string, right: string) => new ConfigError([{ file, line: null, key: 'file', wrong, right }]);
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw problem('is not a file', 'the path of a TOML file');
    if (stats.size > FILE_BYTES_MAX) throw problem(`is larger than ${FILE_BYTES_MAX} bytes`, 'a smaller file');
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw problem(
      code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`,
      'the path of a readable TOML file',
    );
  }
}

/**
 * Parses TOML. Integers that do not fit into a double become bigint. `file` is used in messages. Throws ConfigError,
 * whose message quotes nothing of the text.
 */
export function parseToml(text: string, file: string | null): Table {
  try {
    return parse(text, { integersAsBigInt: 'asNeeded', maxDepth: 32 });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The rest of the parser's message quotes the line, which may hold a secret.
    const wrong = error.message.split('\n')[0]!.replace(/^Invalid TOML document: /, '');
    throw new ConfigError([
      {
        file,
        line: error.line,
        key: `column ${error.column}`,
        wrong: `is not TOML: ${wrong}`,
        right: 'TOML; see https://toml.io',
      },
    ]);
  }
}

/**
 * The line of a key path (`server.port`, `models[1].pricing.prompt`) or of its nearest parent. null if neither is
 * found.
 */
export type LineOf = (path: string) => number | null;

/**
 * Finds the lines of keys in TOML text, because the parser gives values without positions. It only recognises headers,
 * `key =` at the start of a line, and multi-line strings, which it skips. It takes linear time.
 */
export function indexLines(text: string): LineOf {
  const lines = new Map<string, number>();
  const tables = new Map<string, number>();
  let table = '';
  let quote: string | null = null;

  const remember = (path: string, line: number) => {
    if (!lines.has(path)) lines.set(path, line);
  };
  /** The path of a header, with the index of the newest table for each array in it. */
  const place = (segments: readonly string[]): string => {
    let path = '';
    for (const segment of segments) {
      path = path ? `${path}.${segment}` : segment;
      const count = tables.get(path);
      if (count !== undefined) path = `${path}[${count - 1}]`;
    }
    return path;
  };

  text.split('\n').forEach((line, index) => {
    const number = index + 1;
    if (quote !== null) {
      if (line.includes(quote)) quote = null;
      return;
    }
    const start = line.length - line.trimStart().length;
    if (line[start] === '[') {
      const array = line[start + 1] === '[';
      const { segments, end } = readKey(line, start + (array ? 2 : 1));
      if (segments.length === 0 || line[end] !== ']') return;
      if (array) {
        const path = [place(segments.slice(0, -1)), segments.at(-1)].filter(Boolean).join('.');
        tables.set(path, (tables.get(path) ?? 0) + 1);
        remember(path, number);
      }
      table = place(segments);
      remember(table, number);
      return;
    }
    const { segments, end } = readKey(line, start);
    if (segments.length === 0 || line[end] !== '=') return;
    remember([table, ...segments].filter(Boolean).join('.'), number);
    for (const marks of ['"""', "'''"]) {
      const open = line.indexOf(marks, end);
      if (open !== -1 && !line.includes(marks, open + 3)) quote = marks;
    }
  });

  return (path) => {
    for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.'), at.lastIndexOf('[')))) {
      const line = lines.get(at);
      if (line !== undefined) return line;
    }
    return null;
  };
}

/**
 * The dotted key at `from`, and the index of the first character after it and the following spaces. No segments if
 * there is no key.
 */
function readKey(line: string, from: number): { readonly segments: readonly string[]; readonly end: number } {
  const segments: string[] = [];
  let at = from;
  const skipSpaces = () => {
    while (line[at] === ' ' || line[at] === '\t') at++;
  };
  for (;;) {
    skipSpaces();
    const quote = line[at];
    const begin = at;
    if (quote === '"' || quote === "'") {
      const close = line.indexOf(quote, at + 1);
      if (close === -1) return { segments: [], end: at };
      segments.push(line.slice(at + 1, close));
      at = close + 1;
    } else {
      while (at < line.length && /[\w-]/.test(line[at]!)) at++;
      if (at === begin) return { segments: [], end: at };
      segments.push(line.slice(begin, at));
    }
    skipSpaces();
    if (line[at] !== '.') return { segments, end: at };
    at++;
  }
}
