import type { ReactNode } from 'react';
import { Copy } from './copy.tsx';

/** Code that can be copied. It scrolls horizontally, also with the keyboard. */
export function CodeBlock({ code, label }: { readonly code: string; readonly label: string }): ReactNode {
  return (
    <div className="relative min-w-0 rounded-lg border border-line bg-sunk">
      <div className="absolute right-1.5 top-1.5 rounded-md bg-sunk">
        <Copy text={code} label={`Copy: ${label}`} />
      </div>
      <pre
        tabIndex={0}
        aria-label={label}
        role="region"
        className="mr-11 overflow-x-auto py-3.5 pl-4 font-mono text-[13px] leading-[21px]"
      >
        <code>{code}</code>
      </pre>
    </div>
  );
}
