import { useId, type KeyboardEvent, type ReactNode } from 'react';
import { useCurrentInView } from './current-in-view.ts';

export interface Tab {
  readonly id: string;
  readonly name: string;
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** Tabs with one panel. The arrow keys move between tabs. The caller keeps the chosen tab. */
export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
  children,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly chosen: string;
  readonly onChoose: (id: string) => void;
  /** The panel of the chosen tab. */
  readonly children: ReactNode;
}): ReactNode {
  const base = useId();
  const row = useCurrentInView<HTMLDivElement>(chosen);
  const go = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ id }) => id === chosen);
    const next =
      event.key === 'Home' ? 0 : event.key === 'End' ? tabs.length - 1 : at + (STEPS[event.key] ?? Number.NaN);
    const tab = tabs[(next + tabs.length) % tabs.length];
    if (Number.isNaN(next) || !tab) return;
    event.preventDefault();
    onChoose(tab.id);
    document.getElementById(`${base}-${tab.id}`)?.focus();
  };
  return (
    <>
      <div
        ref={row}
        role="tablist"
        aria-label={label}
        className="flex gap-1 overflow-x-auto border-b border-line [scrollbar-width:none]"
      >
        {tabs.map(({ id, name }) => (
          <button
            key={id}
            id={`${base}-${id}`}
            type="button"
            role="tab"
            aria-selected={id === chosen}
            aria-controls={`${base}-panel`}
            tabIndex={id === chosen ? 0 : -1}
            onClick={() => onChoose(id)}
            onKeyDown={go}
            className="border-b-2 border-transparent px-3 py-2.5 text-sm font-medium whitespace-nowrap text-soft -outline-offset-2 hover:text-ink aria-selected:border-accent aria-selected:text-ink"
          >
            {name}
          </button>
        ))}
      </div>
      <div id={`${base}-panel`} role="tabpanel" aria-labelledby={`${base}-${chosen}`} className="pt-4">
        {children}
      </div>
    </>
  );
}
