import { ChevronRight } from 'lucide-react';
import type { ReactNode } from 'react';

/** A section that can be unfolded. */
export function Fold({
  name,
  open = false,
  children,
}: {
  readonly name: string;
  readonly open?: boolean;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <details className="group" open={open}>
      <summary className="flex w-fit list-none items-center gap-1 rounded py-0.5 text-sm text-soft hover:text-ink [&::-webkit-details-marker]:hidden">
        <ChevronRight size={15} aria-hidden className="transition-transform group-open:rotate-90" />
        {name}
      </summary>
      <div className="mt-2">{children}</div>
    </details>
  );
}
