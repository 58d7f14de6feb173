import { ChevronsUpDown, Search } from 'lucide-react';
import { useDeferredValue, useEffect, useId, useMemo, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Choice } from '../../../ui/choice.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { KIND_NAMES, KINDS, KindTile } from '../../../ui/kind.tsx';
import type { Service } from '../catalogue.ts';
import { createServiceSearch } from '../../../search/services.ts';

/** The most services that are listed. Typing finds the others. */
const SHOWN_MAX = 80;

/** A button with the chosen service. It opens a dialog with a searchable list of all services. */
export function ServicePicker({
  services,
  chosen,
  onChoose,
}: {
  readonly services: readonly Service[];
  readonly chosen: Service | null;
  readonly onChoose: (service: Service) => void;
}): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
        className="flex w-full min-w-0 items-center gap-3 rounded-xl border border-edge bg-card px-4 py-2.5 text-left hover:border-ink sm:w-auto sm:min-w-[22rem]"
      >
        {chosen !== null && <KindTile kind={chosen.kind} />}
        <span className="min-w-0 grow">
          <span className="block truncate font-semibold">{chosen?.name ?? 'Choose a service'}</span>
          <span className="figures block truncate text-sm text-soft">
            {chosen?.price ?? 'A model, a tool, an agent'}
          </span>
        </span>
        <ChevronsUpDown size={17} aria-hidden className="shrink-0 text-soft" />
        <span className="sr-only">Choose another service</span>
      </button>
      <Dialog title="What do you want to try?" open={open} onClose={() => setOpen(false)}>
        <Finder
          services={services}
          chosen={chosen}
          onChoose={(service) => {
            setOpen(false);
            onChoose(service);
          }}
        />
      </Dialog>
    </>
  );
}

const KIND_OPTIONS = [
  { value: '', text: 'All' },
  ...KINDS.map((kind) => ({ value: kind as string, text: KIND_NAMES[kind].many })),
];

/** The search of the marketplace, over the services that the playground can call. */
function createPickerSearch(services: readonly Service[]): (question: string) => readonly Service[] {
  const byListed = new Map(services.map((service) => [service.listed, service]));
  const tools = new Map(services.map(({ kind, name, tools: own = [] }) => [kind === 'tool' ? name : '', own]));
  const find = createServiceSearch([...byListed.keys()], (name) => tools.get(name) ?? []);
  return (question) => find(question).map((listed) => byListed.get(listed)!);
}

/** Focuses the element when its dialog opens. React's own `autoFocus` would focus it before that. */
const focusFirst = (element: HTMLInputElement | null): void => element?.setAttribute('autofocus', '');

function Finder({
  services,
  chosen,
  onChoose,
}: {
  readonly services: readonly Service[];
  readonly chosen: Service | null;
  readonly onChoose: (service: Service) => void;
}): ReactNode {
  const id = useId();
  const [words, setWords] = useState('');
  const [kind, setKind] = useState('');
  const late = useDeferredValue(words);
  const find = useMemo(() => createPickerSearch(services), [services]);
  const found = useMemo(
    () => (late.trim() === '' ? services : find(late)).filter((service) => kind === '' || service.kind === kind),
    [services, find, late, kind],
  );
  const shown = found.slice(0, SHOWN_MAX);
  const [at, setAt] = useState(0);
  useEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, at]);
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt(Math.max(0, Math.min(shown.length - 1, at + step)));
    }
    if (event.key === 'Enter' && shown[at]) {
      event.preventDefault();
      onChoose(shown[at]);
    }
  };
  return (
    <div className="grid gap-3">
      <div className="relative">
        <Search size={17} aria-hidden className="absolute left-3 top-1/2 -translate-y-1/2 text-soft" />
        <input
          type="search"
          role="combobox"
          aria-label="Search services"
          aria-expanded
          aria-controls={`${id}-list`}
          aria-activedescendant={shown.length > 0 ? `${id}-${at}` : undefined}
          ref={focusFirst}
          value={words}
          placeholder="Search: vision, text to speech, cheap, …"
          onChange={(event) => {
            setWords(event.target.value);
            setAt(0);
          }}
          onKeyDown={onKey}
          className="h-11 w-full rounded-md border border-edge bg-card pl-10 pr-3 text-base placeholder:text-soft"
        />
      </div>
      <Choice
        label="Kind"
        options={KIND_OPTIONS}
        chosen={kind}
        onChoose={(next) => {
          setKind(next);
          setAt(0);
        }}
      />
      {shown.length === 0 && <p className="py-6 text-center text-soft">Nothing here has all of these words.</p>}
      <div id={`${id}-list`} role="listbox" aria-label="Services" className="-mx-2 h-[min(26rem,50vh)] overflow-y-auto">
        {shown.map((service, index) => (
          <button
            type="button"
            tabIndex={-1}
            key={`${service.kind} ${service.name}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => onChoose(service)}
            onMouseMove={() => index !== at && setAt(index)}
            className="flex w-full items-center gap-3 rounded-lg px-3 py-2 text-left aria-selected:bg-sunk"
          >
            <KindTile kind={service.kind} />
            <span className="min-w-0 grow">
              <span className="block truncate font-medium">
                {service.name}
                {service === chosen && <span className="font-normal text-soft"> · chosen</span>}
              </span>
              <span className="figures block truncate text-sm text-soft">{service.price}</span>
            </span>
            <span className="hidden max-w-32 shrink-0 truncate text-sm text-soft sm:block">
              <span className="sr-only">{KIND_NAMES[service.kind].one} by </span>
              {service.providers.length === 1 ? service.providers[0] : `${service.providers.length} providers`}
            </span>
          </button>
        ))}
      </div>
      {found.length > shown.length && (
        <p className="text-sm text-soft">{found.length - shown.length} more. Type to find them.</p>
      )}
    </div>
  );
}
