import type { Part } from '#gateway';

/** Writes parts as one markdown text, piece by piece as they come. */
interface PartsText {
  /** Returns the next piece: the part, with its separator before it. */
  push(part: Part): string;
}

/**
 * Consecutive texts become one text. A file becomes an image or a link, and data becomes a block of JSON; each of
 * these is a separate paragraph.
 */
export function createPartsText(): PartsText {
  let before: Part['kind'] | null = null;
  return {
    push(part) {
      const gap = before === null || (before === 'text' && part.kind === 'text') ? '' : '\n\n';
      before = part.kind;
      return gap + markdownOf(part);
    },
  };
}

function markdownOf(part: Part): string {
  switch (part.kind) {
    case 'text':
      return part.text;
    case 'data':
      // No line can end the block, because line ends in strings are escaped, and the rest has no backticks.
      return `\`\`\`json\n${JSON.stringify(part.data, null, 2) ?? 'null'}\n\`\`\``;
    case 'file': {
      const { mediaType, name, url, bytes } = part;
      const image = mediaType?.startsWith('image/') ?? false;
      // Only a web address becomes a link. Any other address is shown as text, so that nobody follows it.
      if (url !== null && !/^https?:/i.test(url)) return `${labelOf(name ?? 'file')} (${labelOf(url)})`;
      const target = url === null ? `data:${mediaType ?? 'application/octet-stream'};base64,${bytes ?? ''}` : url;
      return `${image ? '!' : ''}[${labelOf(name ?? (image ? 'image' : 'file'))}](${targetOf(target)})`;
    }
  }
}

const LABEL_MAX = 200;

/** Escapes a name, because it comes from a stranger and must not close its brackets. */
const labelOf = (name: string) =>
  name
    .slice(0, LABEL_MAX)
    .replace(/[\s\p{C}]+/gu, ' ')
    .replace(/[\\[\]`<>]/g, '\\$&');

const targetOf = (url: string) =>
  url.replace(/[\s()<>\\]/g, (character) => encodeURIComponent(character).replace('(', '%28').replace(')', '%29'));
