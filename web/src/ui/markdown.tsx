import { Fragment, type ReactNode } from 'react';

/**
 * Renders a subset of Markdown: headings, paragraphs, lists, quotes, code, emphasis, and links to `https:`. Everything
 * else, including HTML and pictures, is shown as text, because strangers write it.
 */
export function Markdown({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="grid gap-3 break-words">
      {blocksOf(text).map((block, index) => (
        <Fragment key={index}>{block}</Fragment>
      ))}
    </div>
  );
}

const TEXT_MAX = 200_000;
const FENCE = /^\s*(```+|~~~+)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const QUOTE = /^\s*>\s?(.*)$/;

function blocksOf(text: string): ReactNode[] {
  const lines = text.slice(0, TEXT_MAX).split(/\r?\n/);
  const blocks: ReactNode[] = [];
  let at = 0;
  /** Takes lines as long as they match, and returns the matches. */
  const take = (pattern: RegExp): RegExpExecArray[] => {
    const taken: RegExpExecArray[] = [];
    for (let match = pattern.exec(lines[at] ?? '\0'); match; match = pattern.exec(lines[at] ?? '\0')) {
      taken.push(match);
      at++;
    }
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line)?.[1];
    const heading = HEADING.exec(line);
    if (line.trim() === '') at++;
    else if (fence !== undefined) {
      const begin = ++at;
      while (at < lines.length && !lines[at]!.trim().startsWith(fence)) at++;
      blocks.push(<CodeLines text={lines.slice(begin, at).join('\n')} />);
      at++;
    } else if (heading) {
      blocks.push(<p className="font-semibold">{inline(heading[2]!)}</p>);
      at++;
    } else if (ITEM.test(line)) blocks.push(<Items items={take(ITEM)} />);
    else if (QUOTE.test(line))
      blocks.push(
        <blockquote className="border-l-2 border-line pl-3 text-soft">
          {inline(
            take(QUOTE)
              .map((match) => match[1])
              .join('\n'),
          )}
        </blockquote>,
      );
    else {
      const begin = at++;
      while (
        at < lines.length &&
        lines[at]!.trim() !== '' &&
        ![FENCE, HEADING, ITEM, QUOTE].some((each) => each.test(lines[at]!))
      )
        at++;
      blocks.push(<p className="whitespace-pre-wrap">{inline(lines.slice(begin, at).join('\n'))}</p>);
    }
  }
  return blocks;
}

function CodeLines({ text }: { readonly text: string }): ReactNode {
  return (
    <pre className="overflow-x-auto rounded-lg border border-line bg-sunk px-3.5 py-3 font-mono text-[13px] leading-[21px]">
      <code>{text}</code>
    </pre>
  );
}

function Items({ items }: { readonly items: readonly RegExpExecArray[] }): ReactNode {
  const rows = items.map((match, index) => <li key={index}>{inline(match[2]!)}</li>);
  return items[0]![1] === undefined ? (
    <ul className="list-disc pl-5">{rows}</ul>
  ) : (
    <ol className="list-decimal pl-6" start={Number(items[0]![1])}>
      {rows}
    </ol>
  );
}

// The lengths are bounded, so that a long line of stars takes no time.
const INLINE =
  /`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|(?<![\w*])[*_]([^*_\n]{1,2000})[*_](?![\w*])|\[([^\]\n]{1,500})\]\((https:\/\/[^\s()<>"]{1,2000})\)/g;

function inline(text: string): ReactNode[] {
  const nodes: ReactNode[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, bold, slanted, label, href] = match;
    if (match.index > at) nodes.push(text.slice(at, match.index));
    at = match.index + whole.length;
    if (code !== undefined)
      nodes.push(
        <code key={at} className="rounded bg-sunk px-1 py-0.5 font-mono text-[0.9em]">
          {code}
        </code>,
      );
    else if (bold !== undefined) nodes.push(<strong key={at}>{bold}</strong>);
    else if (slanted !== undefined) nodes.push(<em key={at}>{slanted}</em>);
    else
      nodes.push(
        <OutLink key={at} href={href!}>
          {label}
        </OutLink>,
      );
  }
  nodes.push(text.slice(at));
  return nodes;
}

/**
 * A link from a stranger. It opens in another tab, which gets no information about this page. Only `https:` links are
 * allowed.
 */
export function OutLink({ href, children }: { readonly href: string; readonly children: ReactNode }): ReactNode {
  if (!href.startsWith('https://')) return children;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow ugc" className="link">
      {children}
    </a>
  );
}
