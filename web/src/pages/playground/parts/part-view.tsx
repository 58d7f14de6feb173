import { Download, ExternalLink } from 'lucide-react';
import type { ReactNode } from 'react';
import { buttonStyle } from '../../../ui/button-style.ts';
import { Copy } from '../../../ui/copy.tsx';
import { JsonView } from '../../../ui/json-view.tsx';
import { Markdown, OutLink } from '../../../ui/markdown.tsx';
import { bytesOf, useObjectUrl } from './object-url.ts';
import type { ShownPart } from './split-parts.ts';

/** A part of the answer of a tool or an agent. A stranger wrote it, so nothing in it is executed or fetched. */
export function PartView({ part }: { readonly part: ShownPart }): ReactNode {
  switch (part.kind) {
    case 'text':
      return <TextPart text={part.text} />;
    case 'data':
      return (
        <div className="relative rounded-lg border border-line bg-sunk py-3 pl-4 pr-12">
          <div className="absolute right-1.5 top-1.5">
            <Copy text={JSON.stringify(part.value, null, 2)} label="Copy the JSON" />
          </div>
          <JsonView value={part.value} />
        </div>
      );
    case 'image':
      return <Picture url={part.url} name={part.name} />;
    case 'file':
      return <FilePart {...part} />;
    case 'link':
      return (
        <p className="break-all">
          <OutLink href={part.url}>{part.name === '' ? part.url : part.name}</OutLink>
          {part.url.startsWith('https://') ? (
            <ExternalLink size={13} aria-hidden className="ml-1 inline text-soft" />
          ) : (
            <span className="text-soft"> ({part.url.slice(0, 2_000)})</span>
          )}
        </p>
      );
  }
}

/** Shows a text as a tree if it is a JSON object or array. */
function TextPart({ text }: { readonly text: string }): ReactNode {
  const value = /^\s*[[{]/.test(text) && text.length < 200_000 ? jsonIn(text) : undefined;
  return value === undefined ? <Markdown text={text} /> : <PartView part={{ kind: 'data', value }} />;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A picture of an answer. Its URL contains the bytes, so nothing is loaded from another host. */
export function Picture({ url, name }: { readonly url: string; readonly name: string }): ReactNode {
  return (
    <img
      src={url}
      alt={name === '' || name === 'image' ? 'A picture of the answer' : name}
      className="max-h-[32rem] max-w-full rounded-lg border border-line"
    />
  );
}

function FilePart({
  name,
  mediaType,
  base64,
}: {
  readonly name: string;
  readonly mediaType: string;
  readonly base64: string;
}): ReactNode {
  // Whatever type the file claims to have, it can only be saved.
  const url = useObjectUrl(base64, 'application/octet-stream');
  const size = bytesOf(base64)?.length ?? 0;
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg border border-line px-4 py-2.5">
      <span className="min-w-0">
        <span className="block break-all font-medium">{name}</span>
        <span className="text-sm text-soft">
          {mediaType} · {sizeText(size)}
        </span>
      </span>
      {url !== null && (
        <a href={url} download={fileName(name)} className={buttonStyle('plain', 'small')}>
          <Download size={15} aria-hidden /> Save
        </a>
      )}
    </div>
  );
}

const fileName = (name: string) => name.replaceAll(/[^\w.\- ]/g, '_').slice(-100) || 'file';

export const sizeText = (bytes: number): string =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1024 ** 2
      ? `${Math.round(bytes / 1024)} KiB`
      : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
