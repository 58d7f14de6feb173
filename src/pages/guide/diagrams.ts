import { createHash } from 'node:crypto';

/** The sources of a page's Mermaid diagrams, in order. */
export const diagramsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^```mermaid\n([^]*?)^```$/gm)].map(([, source]) => source!.trimEnd());

/** The picture of a page's diagram in `docs/images/`. `file`: `billing.md`. `index`: 0 for the page's first diagram. */
export const diagramFile = (file: string, index: number): string =>
  `diagram-${file.replace(/\.md$/, '').replaceAll('/', '-')}${index === 0 ? '' : `-${index + 1}`}.svg`;

/** A line in the picture that names the source it was drawn from, so that an old picture is noticed. */
export const diagramMark = (source: string): string =>
  `source ${createHash('sha256').update(source).digest('hex').slice(0, 16)}`;
