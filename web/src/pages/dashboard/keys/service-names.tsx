import { Plus, X } from 'lucide-react';
import { useId, useState, type ReactNode } from 'react';
import { useServices } from '../../../api/catalogue.ts';
import { Button } from '../../../ui/button.tsx';
import { Field } from '../../../ui/field.tsx';

/**
 * The patterns of what a key may call. `value` has one per line, empty for everything. Names are chosen from the
 * services of this gateway; others can be typed, because a provider may connect later.
 */
export function ServiceNames({
  value,
  error,
  onChange,
}: {
  readonly value: string;
  readonly error: string | null;
  readonly onChange: (value: string) => void;
}): ReactNode {
  const id = useId();
  const [typed, setTyped] = useState('');
  // What is typed is in `value` at once, so that the form can be sent without a press on Add.
  const [pending, setPending] = useState<readonly string[]>([]);
  const names = value.split('\n').filter((name) => name !== '' && !pending.includes(name));
  const { data: services = [] } = useServices();
  const known = [...new Set(services.map(({ name }) => name))].filter((name) => !names.includes(name));
  const type = (text: string, isWhole: boolean) => {
    const more = text.split(/[\s,]+/).filter((name) => name !== '' && !names.includes(name));
    setTyped(isWhole ? '' : text);
    setPending(isWhole ? [] : more);
    onChange([...new Set([...names, ...more])].join('\n'));
  };
  return (
    <div className="grid gap-2">
      <div className="flex items-end gap-2">
        <Field
          label="Services and tools"
          hint={
            names.length === 0
              ? 'Everything. Add names to allow only these.'
              : 'files is a service, files/read one tool, files/* all its tools, model:* all models, -files/delete is taken away.'
          }
          className="grow"
          list={id}
          autoComplete="off"
          spellCheck={false}
          placeholder="Choose a service, or type a pattern"
          value={typed}
          error={error}
          onChange={({ target, nativeEvent }) => {
            // A browser that fills in a suggestion reports no kind of input, or a replacement.
            const { inputType } = nativeEvent as InputEvent;
            const isChosen = inputType === undefined || inputType === 'insertReplacementText';
            type(target.value, isChosen && known.includes(target.value));
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            type(typed, true);
          }}
        />
        <Button onClick={() => type(typed, true)} disabled={typed.trim() === ''}>
          <Plus size={16} aria-hidden />
          Add
        </Button>
        <datalist id={id}>
          {known.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      {names.length > 0 && (
        <ul aria-label="What may be called" className="flex flex-wrap gap-2">
          {names.map((name) => (
            <li
              key={name}
              className="flex items-center gap-1 rounded-md border border-line bg-sunk pl-2.5 font-mono text-sm"
            >
              <span className="break-all">{name}</span>
              <button
                type="button"
                aria-label={`Remove ${name}`}
                onClick={() => onChange([...names.filter((each) => each !== name), ...pending].join('\n'))}
                className="grid size-8 place-items-center rounded-md text-soft hover:text-ink"
              >
                <X size={14} aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
