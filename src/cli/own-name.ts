import { basename, relative } from 'node:path';

/**
 * How this program is called where it was called now, for commands to paste. Never by `npx`: the name is not ours
 * on the registry, so where nothing of it is installed, npx would fetch whatever a stranger has published under it.
 */
export function ownName(program: string, cwd: string): string {
  // Linked into the search path.
  const linked = basename(program);
  if (linked === 'tollgate' || linked === 'tollgate-provide') return linked;
  const below = relative(cwd, program);
  return `node ${shellWord(below.startsWith('..') ? program : below)}`;
}

/** A text as one word of a shell's command. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

export const OWN_NAME = ownName(process.argv[1] ?? 'tollgate', process.cwd());

/** How to start the gateway to try things with: in a checkout by npm, where a package is installed by its name. */
export const START = import.meta.url.endsWith('.ts') ? 'npm start' : `${OWN_NAME} start`;
/** The same, for options behind it. */
export const START_WITH = START === 'npm start' ? 'npm start --' : START;
