import { CircleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { ApiError, explain } from '../api/api-error.ts';

/** Shows an error as a sentence, with advice. `error` is the thrown value. `help` replaces the default advice. */
export function ErrorNote({
  error,
  title,
  help,
  action,
}: {
  readonly error: unknown;
  readonly title?: string;
  readonly help?: string | undefined;
  readonly action?: ReactNode;
}): ReactNode {
  const told = typeof error === 'string' ? { sentence: error, help: null } : explain(error);
  const id = error instanceof ApiError && error.status >= 500 ? error.requestId : null;
  return (
    <div role="alert" className="flex gap-3 rounded-lg border border-bad/40 bg-bad-wash px-4 py-3">
      <CircleAlert size={18} aria-hidden className="mt-1 shrink-0 text-bad" />
      <div className="min-w-0">
        {title !== undefined && <p className="font-semibold">{title}</p>}
        <p className="break-words">
          {told.sentence} {help ?? told.help}
        </p>
        {id !== null && <p className="mt-1 font-mono text-xs text-soft">Request {id}</p>}
        {action !== undefined && <div className="mt-3">{action}</div>}
      </div>
    </div>
  );
}
