import type { Part } from '#gateway';

/** Writes parts as one markdown text, piece by piece as they come. */
interface PartsText {
  /** The next piece: the part with what separates it from the one before. */
  push(part: Part): string;
}

/**
 * Texts that follow each other are one text; a file is an image or a link, data is a block of JSON, each a
 * paragraph of its own.
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
      // No line of it can be the end of the block: strings have their line ends escaped, and all else is digits and
      // brackets.
      return `\`\`\`json\n${JSON.stringify(part.data, null, 2) ?? 'null'}\n\`\`\``;
    case 'file': {
      const { mediaType, name, url, bytes } = part;
      const image = mediaType?.startsWith('image/') ?? false;
      // What is no address of the web is shown, and not made a link that somebody might follow.
      if (url !== null && !/^https?:/i.test(url)) return `${labelOf(name ?? 'file')} (${labelOf(url)})`;
      const target = url === null ? `data:${mediaType ?? 'application/octet-stream'};base64,${bytes ?? ''}` : url;
      return `${image ? '!' : ''}[${labelOf(name ?? (image ? 'image' : 'file'))}](${targetOf(target)})`;
    }
  }
}

const LABEL_MAX = 200;

/** A name comes from a stranger, and must not end its brackets. */
const labelOf = (name: string) =>
  name
    .slice(0, LABEL_MAX)
    .replace(/[\s\p{C}]+/gu, ' ')
    .replace(/[\\[\]`<>]/g, '\\$&');

const targetOf = (url: string) =>
  url.replace(/[\s()<>\\]/g, (character) => encodeURIComponent(character).replace('(', '%28').replace(')', '%29'));
