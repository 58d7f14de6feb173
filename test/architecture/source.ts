import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * A source file as the architecture checks see it: its path from the root of the checkout, with forward slashes,
 * and its text.
 */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** One violation, written so that it can be clicked on and says what would be right. */
export type Finding = string;

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const SKIPPED = new Set(['node_modules', 'results', '.git', '.cache', '.tollgate', 'dist', 'coverage']);

/**
 * All files below the given folders of the checkout whose names end in one of `extensions`, sorted by path. Folders
 * that do not exist are empty.
 */
export function readTree(folders: readonly string[], extensions: readonly string[]): SourceFile[] {
  const files: SourceFile[] = [];
  const walk = (folder: string) => {
    for (const name of readdirSync(folder).toSorted()) {
      if (SKIPPED.has(name)) continue;
      const full = join(folder, name);
      if (statSync(full).isDirectory()) walk(full);
      else if (extensions.some((extension) => name.endsWith(extension)))
        files.push({ path: relative(ROOT, full).split(sep).join('/'), text: readFileSync(full, 'utf8') });
    }
  };
  for (const folder of folders)
    if (statSync(join(ROOT, folder), { throwIfNoEntry: false })?.isDirectory()) walk(join(ROOT, folder));
  return files;
}

export interface Literal {
  /** Offset of the first character inside the quotes. */
  readonly start: number;
  readonly value: string;
}

export interface Masked {
  /**
   * The text with comments and the insides of strings, templates and regular expressions blanked: same length, same
   * lines.
   */
  readonly code: string;
  /** Comments alone, everything else blanked. */
  readonly comments: string;
  /** String literals and the plain parts of templates, in order. */
  readonly literals: readonly Literal[];
  /** Regular expressions, with their slashes and flags, in order. */
  readonly patterns: readonly Literal[];
}

const blank = (text: string) => text.replace(/[^\n]+/g, (line) => ' '.repeat(line.length));
/** After one of these a slash starts a regular expression; after anything else it divides. */
const BEFORE_REGEX =
  /(?:^|[=(,[!&|?:;{}+\-*%<>~^]|\b(?:return|typeof|case|in|of|delete|void|throw|new|await|yield))\s*$/;

/** Text in which no comment, literal or brace begins. */
const PLAIN = /[^/'"`{}#]+/y;

/** Tells code from comments and literals. Enough of the grammar of TypeScript for that, and no more. */
export function mask(text: string): Masked {
  const blanked = blank(text);
  const codeParts: string[] = [];
  const commentParts: string[] = [];
  const literals: Literal[] = [];
  const patterns: Literal[] = [];
  /** Depth of braces inside each open `${`. */
  const templates: number[] = [];
  let at = 0;
  const emit = (kind: 'code' | 'comment' | 'literal', end: number) => {
    codeParts.push((kind === 'code' ? text : blanked).slice(at, end));
    commentParts.push((kind === 'comment' ? text : blanked).slice(at, end));
    at = end;
  };
  const quoted = (closers: RegExp) => {
    let end = at;
    for (closers.lastIndex = at; ; closers.lastIndex = end) {
      const closer = closers.exec(text);
      end = closer?.index ?? text.length;
      if (closer?.[0] !== '\\') break;
      end = Math.min(end + 2, text.length);
    }
    if (end > at) literals.push({ start: at, value: text.slice(at, end) });
    emit('literal', end);
  };
  const template = () => {
    quoted(/[\\`]|\$\{/g);
    if (text[at] === '$') {
      templates.push(0);
      emit('code', at + 2);
    } else emit('code', at + 1);
  };
  while (at < text.length) {
    PLAIN.lastIndex = at;
    const plain = PLAIN.exec(text);
    if (plain) {
      emit('code', at + plain[0].length);
      continue;
    }
    const two = text.slice(at, at + 2);
    const one = two[0]!;
    if (two === '//' || (at === 0 && two === '#!')) {
      const end = text.indexOf('\n', at);
      emit('comment', end < 0 ? text.length : end);
    } else if (two === '/*') {
      const end = text.indexOf('*/', at + 2);
      emit('comment', end < 0 ? text.length : end + 2);
    } else if (one === "'" || one === '"') {
      emit('code', at + 1);
      quoted(one === "'" ? /[\\'\n]/g : /[\\"\n]/g);
      emit('code', Math.min(at + 1, text.length));
    } else if (one === '`') {
      emit('code', at + 1);
      template();
    } else if (one === '/' && BEFORE_REGEX.test(codeParts.slice(-8).join('').slice(-80))) {
      let end = at + 1;
      for (let set = false; end < text.length && text[end] !== '\n' && (set || text[end] !== '/'); end++) {
        if (text[end] === '\\') end++;
        else if (text[end] === '[') set = true;
        else if (text[end] === ']') set = false;
      }
      // Without an end in its line it divides after all.
      if (text[end] !== '/') {
        emit('code', at + 1);
        continue;
      }
      patterns.push({ start: at, value: text.slice(at, end + 1) + /^[a-z]*/.exec(text.slice(end + 1))![0] });
      emit('code', at + 1);
      emit('literal', end);
      emit('code', end + 1);
    } else if (templates.length > 0 && (one === '{' || one === '}')) {
      const depth = templates.pop()!;
      emit('code', at + 1);
      if (one === '{') templates.push(depth + 1);
      else if (depth > 0) templates.push(depth - 1);
      else template();
    } else emit('code', at + 1);
  }
  return { code: codeParts.join(''), comments: commentParts.join(''), literals, patterns };
}

/** 1-based line of an offset. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let index = text.indexOf('\n'); index >= 0 && index < offset; index = text.indexOf('\n', index + 1)) line++;
  return line;
}
