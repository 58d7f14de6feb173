import { posix } from 'node:path';
import { importsOf } from './import-rules.ts';
import type { SourceFile } from './source.ts';

type Graph = ReadonlyMap<string, readonly string[]>;

/**
 * The groups of files that import each other in a circle, the largest first; a file alone is no group. Imports of types
 * and by `import()` count, because a reader has to follow them too. Imports by an alias do not count: no module imports
 * one that imports it.
 */
export const findCircles = (files: readonly SourceFile[]): readonly (readonly string[])[] =>
  circlesIn(importsIn(files));

/**
 * The groups of folders of one folder of a module that import each other in a circle. A file beside the folders counts
 * as one of them, so a group has at least one folder. `modules`: the paths of the modules; one that lies in another is
 * no part of it.
 */
export function findFolderCircles(
  files: readonly SourceFile[],
  modules: readonly string[],
): readonly (readonly string[])[] {
  const imports = importsIn(files);
  const folders = new Set<string>();
  for (const path of imports.keys())
    for (let at = posix.dirname(path); modules.some((module) => at === module || at.startsWith(`${module}/`));) {
      folders.add(at);
      at = posix.dirname(at);
    }
  return [...folders].flatMap((folder) => {
    /** The folder or file right below `folder` that has a path; null outside of it and in another module. */
    const partOf = (path: string): string | null => {
      if (!path.startsWith(`${folder}/`)) return null;
      const part = path.split('/', folder.split('/').length + 1).join('/');
      return modules.includes(part) ? null : part;
    };
    const parts = new Map<string, string[]>();
    for (const [path, others] of imports) {
      const part = partOf(path);
      if (part === null) continue;
      const reached = others.map(partOf).filter((other) => other !== null && other !== part) as string[];
      parts.set(part, [...(parts.get(part) ?? []), ...reached]);
    }
    return circlesIn(parts).filter((circle) => circle.some((part) => !imports.has(part)));
  });
}

function importsIn(files: readonly SourceFile[]): Graph {
  const known = new Set(files.map(({ path }) => path));
  return new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ specifier, isUrl }) => specifier.startsWith('.') && !isUrl)
        .map(({ specifier }) => posix.normalize(posix.join(posix.dirname(file.path), specifier)))
        .filter((path) => known.has(path)),
    ]),
  );
}

/** The strongly connected components of more than one node, found by Tarjan's algorithm, the largest first. */
function circlesIn(edges: Graph): readonly (readonly string[])[] {
  const found: string[][] = [];
  const index = new Map<string, number>();
  /** The smallest index that each node reaches. A node that reaches none below its own is the first of its group. */
  const low = new Map<string, number>();
  const stack: string[] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node)!);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) {
        visit(next);
        low.set(node, Math.min(low.get(node)!, low.get(next)!));
      } else if (stack.includes(next)) low.set(node, Math.min(low.get(node)!, index.get(next)!));
    }
    if (low.get(node) !== index.get(node)) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) found.push(circle);
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return found.toSorted((a, b) => b.length - a.length);
}
