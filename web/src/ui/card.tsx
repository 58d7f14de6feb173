import type { ReactNode } from 'react';

/** A section of a page with a heading. With `flush`, its content has no padding. This is for tables. */
export function Card({
  title,
  action,
  flush = false,
  className = '',
  children,
}: {
  readonly title?: ReactNode;
  readonly action?: ReactNode;
  readonly flush?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <section className={`min-w-0 overflow-hidden rounded-xl border border-line bg-card ${className}`}>
      {title !== undefined && (
        <div className="flex min-h-13 flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-2 sm:px-5">
          <h2 className="text-base">{title}</h2>
          {action}
        </div>
      )}
      <div className={flush ? '' : 'px-4 py-4 sm:px-5 sm:py-5'}>{children}</div>
    </section>
  );
}

/** A number with its name, in a `<dl>` of figures. */
export function Figure({
  name,
  value,
  note,
  chart,
  className = '',
}: {
  readonly name: string;
  readonly value: ReactNode;
  readonly note?: ReactNode;
  /** A small chart beside the number, if there is room. */
  readonly chart?: ReactNode;
  readonly className?: string;
}): ReactNode {
  return (
    <div className={`relative min-w-0 ${className}`}>
      <dt className="text-sm text-soft">{name}</dt>
      <dd className="figures mt-0.5 text-xl font-semibold sm:text-2xl tracking-tight">{value}</dd>
      {note !== undefined && <dd className="mt-0.5 text-sm text-soft">{note}</dd>}
      {chart !== undefined && <dd className="absolute right-5 bottom-4 hidden sm:block">{chart}</dd>}
    </div>
  );
}
