import { basename, relative } from 'node:path';

/**
 * How this program is called where it was called now, for commands to paste. Never by `npx`: the name is not ours
 * on the registry, so where nothing of it is installed, npx would fetch whatever a stranger has published under it.
 */
export function ownName(program: string, cwd: string): string {
  // Linked into the search path.
  if (basename(program) === 'tollgate') return 'tollgate';
  const below = relative(cwd, program);
  return `node ${shellWord(below.startsWith('..') ? program : below)}`;
}

/** A text as one word of a shell's command. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

export const OWN_NAME = ownName(process.argv[1] ?? 'tollgate', process.cwd());
