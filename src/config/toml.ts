import { readFileSync, statSync } from 'node:fs';
import { parse, TomlError } from 'smol-toml';
import { ConfigError } from './problem.ts';
import type { Table } from './reading.ts';

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
