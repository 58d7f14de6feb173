import type { ReactNode } from 'react';
import { useCurrentInView } from './current-in-view.ts';

/** A choice of few options, side by side, such as 7, 30 or 90 days. */
export function Choice<T extends string>({
  label,
  options,
  chosen,
  onChoose,
}: {
  readonly label: string;
  readonly options: readonly { readonly value: T; readonly text: ReactNode }[];
  /** null if none of them is. */
  readonly chosen: T | null;
  readonly onChoose: (value: T) => void;
}): ReactNode {
  const row = useCurrentInView<HTMLDivElement>(chosen ?? '');
  return (
    <div
      ref={row}
      role="group"
      aria-label={label}
      className="inline-flex max-w-full gap-0.5 overflow-x-auto rounded-lg bg-sunk p-0.5 [scrollbar-width:none]"
    >
      {options.map(({ value, text }) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === chosen}
          onClick={() => onChoose(value)}
          className="h-8 rounded-md px-3 text-sm font-medium whitespace-nowrap text-soft -outline-offset-2 hover:text-ink aria-pressed:bg-card aria-pressed:text-ink aria-pressed:shadow-sm"
        >
          {text}
        </button>
      ))}
    </div>
  );
}
