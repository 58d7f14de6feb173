import { posix } from 'node:path';
import { importsOf } from './import-rules.ts';
import type { SourceFile } from './source.ts';

/**
 * The groups of files that import each other in a circle, the largest first; a file alone is no group. Imports of types
 * and by `import()` count, because a reader has to follow them too. Imports by an alias do not count: no module imports
 * one that imports it. The groups are the strongly connected components of the imports, found by Tarjan's algorithm.
 */
export function findCircles(files: readonly SourceFile[]): readonly (readonly string[])[] {
  const known = new Set(files.map(({ path }) => path));
  const edges = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ specifier, isUrl }) => specifier.startsWith('.') && !isUrl)
        .map(({ specifier }) => posix.normalize(posix.join(posix.dirname(file.path), specifier)))
        .filter((path) => known.has(path)),
    ]),
  );
  const found: string[][] = [];
  const index = new Map<string, number>();
  /** The smallest index that each file reaches. A file that reaches none below its own is the first of its group. */
  const low = new Map<string, number>();
  const stack: string[] = [];
  const visit = (path: string): void => {
    index.set(path, index.size);
    low.set(path, index.get(path)!);
    stack.push(path);
    for (const next of edges.get(path) ?? []) {
      if (!index.has(next)) {
        visit(next);
        low.set(path, Math.min(low.get(path)!, low.get(next)!));
      } else if (stack.includes(next)) low.set(path, Math.min(low.get(path)!, index.get(next)!));
    }
    if (low.get(path) !== index.get(path)) return;
    const circle = stack.splice(stack.indexOf(path));
    if (circle.length > 1) found.push(circle);
  };
  for (const { path } of files) if (!index.has(path)) visit(path);
  return found.toSorted((a, b) => b.length - a.length);
}
