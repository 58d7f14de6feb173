import { ChevronsUpDown } from 'lucide-react';
import { useDeferredValue, useMemo, useState, type ReactNode } from 'react';
import { Choice } from '../../../ui/choice.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { Finder } from '../../../ui/finder.tsx';
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
        <Services
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

function Services({
  services,
  chosen,
  onChoose,
}: {
  readonly services: readonly Service[];
  readonly chosen: Service | null;
  readonly onChoose: (service: Service) => void;
}): ReactNode {
  const [words, setWords] = useState('');
  const [kind, setKind] = useState('');
  const late = useDeferredValue(words);
  const find = useMemo(() => createPickerSearch(services), [services]);
  const found = useMemo(
    () => (late.trim() === '' ? services : find(late)).filter((service) => kind === '' || service.kind === kind),
    [services, find, late, kind],
  );
  const shown = useMemo(() => found.slice(0, SHOWN_MAX), [found]);
  return (
    <>
      <Finder
        label="Search services"
        listLabel="Services"
        placeholder="Search: vision, text to speech, cheap, …"
        words={words}
        onWords={setWords}
        items={shown}
        isLate={late !== words}
        keyOf={({ kind: own, name }) => `${own} ${name}`}
        onChoose={onChoose}
        above={<Choice label="Kind" options={KIND_OPTIONS} chosen={kind} onChoose={setKind} />}
        empty="Nothing here has all of these words."
        line={(service) => (
          <>
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
          </>
        )}
      />
      {found.length > shown.length && (
        <p className="mt-3 text-sm text-soft">{found.length - shown.length} more. Type to find them.</p>
      )}
    </>
  );
}
