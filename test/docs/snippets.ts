import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../architecture/source.ts';

/** A fenced block of a page. */
export interface Snippet {
  /** 1-based line of its fence. */
  readonly line: number;
  /** `sh`, `ts`, `toml`, `json`, …; empty where the fence names none. */
  readonly language: string;
  /** What stands behind the language, which no reader sees: `no-run` and why. */
  readonly note: string;
  readonly text: string;
}

/** The fenced blocks of a page of the repository, in their order. */
export function snippetsOf(page: string): readonly Snippet[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```(\w*)[ \t]*([^\n]*)\n(.*?)^```$/gms)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    language: match[1]!,
    note: match[2]!,
    text: match[3]!,
  }));
}
