import { Search } from 'lucide-react';
import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';

/** A search box above the list of what it found. The arrows choose in the list while the box has the focus. */
export function Finder<T>({
  label,
  listLabel,
  placeholder,
  words,
  onWords,
  items,
  isLate,
  keyOf,
  line,
  onChoose,
  above,
  empty,
}: {
  readonly label: string;
  readonly listLabel: string;
  readonly placeholder: string;
  readonly words: string;
  readonly onWords: (words: string) => void;
  readonly items: readonly T[];
  /** The items are those of earlier words: Enter chooses once those of these words are there. */
  readonly isLate: boolean;
  readonly keyOf: (item: T) => string;
  readonly line: (item: T) => ReactNode;
  readonly onChoose: (item: T) => void;
  /** Between the box and the list. */
  readonly above?: ReactNode;
  /** In place of an empty list. */
  readonly empty: ReactNode;
}): ReactNode {
  const id = useId();
  // The place belongs to the list in which it was chosen: another list begins at its first line.
  const [{ at, of }, setPlace] = useState({ at: 0, of: items });
  const here = of === items ? at : 0;
  const choose = (place: number) => setPlace({ at: place, of: items });
  useEffect(() => {
    document.getElementById(`${id}-${here}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, here]);
  const isEntered = useRef(false);
  useEffect(() => {
    if (!isEntered.current || isLate) return;
    isEntered.current = false;
    if (items[here] !== undefined) onChoose(items[here]);
  }, [isLate, items, here, onChoose]);
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      choose(Math.max(0, Math.min(items.length - 1, here + step)));
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      if (isLate) isEntered.current = true;
      else if (items[here] !== undefined) onChoose(items[here]);
    }
  };
  return (
    <div className="grid gap-3">
      <div className="relative">
        <Search size={17} aria-hidden className="absolute left-3 top-1/2 -translate-y-1/2 text-soft" />
        <input
          type="search"
          role="combobox"
          aria-label={label}
          aria-expanded
          aria-controls={`${id}-list`}
          aria-activedescendant={items.length > 0 ? `${id}-${here}` : undefined}
          value={words}
          placeholder={placeholder}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => {
            isEntered.current = false;
            onWords(event.target.value);
          }}
          onKeyDown={onKey}
          className="h-11 w-full rounded-md border border-edge bg-card pl-10 pr-3 text-base placeholder:text-soft"
        />
      </div>
      {above}
      {items.length === 0 && <p className="py-6 text-center text-soft">{empty}</p>}
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label={listLabel}
        className="-mx-2 h-[min(26rem,50vh)] overflow-y-auto"
      >
        {items.map((item, index) => (
          <button
            type="button"
            tabIndex={-1}
            key={keyOf(item)}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === here}
            onClick={() => onChoose(item)}
            onMouseMove={() => index !== here && choose(index)}
            className="flex w-full items-center gap-3 rounded-lg px-3 py-2 text-left aria-selected:bg-sunk"
          >
            {line(item)}
          </button>
        ))}
      </div>
    </div>
  );
}
