/** A part of the answer of a tool or an agent. */
export type ShownPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'data'; readonly value: unknown }
  | { readonly kind: 'image'; readonly name: string; readonly url: string }
  | { readonly kind: 'file'; readonly name: string; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'link'; readonly name: string; readonly url: string };

const DATA = /^```json\n([\s\S]*)\n```$/;
const LINK = /^(!?)\[((?:\\.|[^\]\\]){0,400})\]\(([^\s()]*)\)$/;
const DATA_URL = /^data:([\w.+-]{1,64}\/[\w.+-]{1,64});base64,([A-Za-z0-9+/=]*)$/;
const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);

/**
 * Splits an answer into its parts. The gateway writes each part as one piece of Markdown: data as a JSON code block, a
 * file as a link or a picture. Consecutive texts become one part.
 */
export function splitParts(pieces: readonly string[]): readonly ShownPart[] {
  const parts: ShownPart[] = [];
  for (const piece of pieces) {
    const part = partOf(piece);
    const before = parts.at(-1);
    if (part.kind === 'text' && before?.kind === 'text')
      parts[parts.length - 1] = { kind: 'text', text: before.text + part.text };
    else parts.push(part.kind === 'text' ? { kind: 'text', text: part.text.replace(/^\n+/, '') } : part);
  }
  return parts;
}

function partOf(piece: string): ShownPart {
  const bare = piece.startsWith('\n\n') ? piece.slice(2) : piece;
  const json = DATA.exec(bare)?.[1];
  if (json !== undefined) {
    const value = valueOf(json);
    if (value !== undefined) return { kind: 'data', value };
  }
  const link = bare.length > 3 && bare.endsWith(')') ? LINK.exec(bare) : null;
  if (link === null) return { kind: 'text', text: piece };
  const [, , label, url] = link as unknown as readonly [string, string, string, string];
  const name = label.replaceAll(/\\(.)/g, '$1');
  const file = DATA_URL.exec(url);
  if (file === null) return { kind: 'link', name, url };
  const [, mediaType, base64] = file as unknown as readonly [string, string, string];
  return PICTURES.has(mediaType) ? { kind: 'image', name, url } : { kind: 'file', name, mediaType, base64 };
}

function valueOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
