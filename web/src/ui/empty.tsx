import type { ReactNode } from 'react';

/** Shown if there is no content: says why, and what to do next. */
export function Empty({
  title,
  text,
  action,
  heading: Tag = 'h3',
}: {
  readonly title: string;
  readonly text?: ReactNode;
  readonly action?: ReactNode;
  readonly heading?: 'h1' | 'h2' | 'h3';
}): ReactNode {
  return (
    <div className="flex flex-col items-center px-4 py-14 text-center">
      <svg viewBox="0 0 64 40" width="64" height="40" aria-hidden className="mb-4 text-line">
        <path d="M10 6v32" stroke="currentColor" strokeWidth="6" strokeLinecap="round" />
        <path d="M14 12h44" stroke="currentColor" strokeWidth="6" strokeLinecap="round" />
        <path d="M24 12h7M44 12h7" stroke="var(--gold)" strokeWidth="6" />
      </svg>
      <Tag className="text-lg">{title}</Tag>
      {text !== undefined && <p className="mt-1 max-w-[48ch] text-balance text-soft">{text}</p>}
      {action !== undefined && <div className="mt-4">{action}</div>}
    </div>
  );
}
