import type { ReactNode } from 'react';

const TONES: Readonly<Record<string, string>> = {
  GET: 'text-model',
  POST: 'text-accent',
  DELETE: 'text-bad',
};

/** The method of an endpoint. The colour adds nothing that the word doesn't say. */
export function Method({ name, short = false }: { readonly name: string; readonly short?: boolean }): ReactNode {
  return (
    <span
      className={`shrink-0 font-mono font-semibold ${short ? 'w-10 text-[11px]' : 'text-sm'} ${TONES[name] ?? 'text-tool'}`}
    >
      {short && name === 'DELETE' ? (
        <abbr title="DELETE" className="no-underline">
          DEL
        </abbr>
      ) : (
        name
      )}
    </span>
  );
}
