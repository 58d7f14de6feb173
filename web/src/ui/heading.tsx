import type { ReactNode } from 'react';

/** The heading of a page: its title, one sentence, and its actions. */
export function Heading({
  title,
  lead,
  above,
  action,
}: {
  readonly title: ReactNode;
  readonly lead?: ReactNode;
  /** A line above the title, such as a link back. */
  readonly above?: ReactNode;
  readonly action?: ReactNode;
}): ReactNode {
  return (
    <div className="mb-7 flex flex-wrap items-end justify-between gap-x-6 gap-y-4">
      <div className="min-w-0">
        {above !== undefined && <div className="mb-2 text-sm text-soft">{above}</div>}
        <h1 className="text-2xl break-words sm:text-3xl">{title}</h1>
        {lead !== undefined && <p className="mt-2 max-w-[62ch] text-lg text-pretty text-soft">{lead}</p>}
      </div>
      {action !== undefined && <div className="flex flex-wrap gap-2">{action}</div>}
    </div>
  );
}
